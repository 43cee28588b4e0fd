/* Races of a run, by vector clocks: run.c has the idea. */
#include "msccl/state.h"

static Status
report_race(struct run *run, const struct block *b, const Access *other, int64_t cell, bool writes, bool wrote)
{
	const struct block *o = &run->block[other->actor];
	const int64_t *base = &run->base[b->gpu * N_MSCCL_BUFFERS];
	const MscclStep *step = &b->block->step[b->at];
	int buffer = cell >= base[MSCCL_SCRATCH] ? MSCCL_SCRATCH : MSCCL_OUTPUT;
	if (buffer == MSCCL_OUTPUT && (cell < base[MSCCL_OUTPUT] || (base[MSCCL_INPUT] > base[MSCCL_OUTPUT]
	    && cell >= base[MSCCL_INPUT] && step->src == MSCCL_INPUT && !writes)))
		buffer = MSCCL_INPUT;
	if (run->raced)
		return OK;
	run->raced = true;
	return msccl_find(run->ctx, run->list, MSCCL_RULE_RACE, MSCCL_ALL, step->line,
	    "gpu %d, tb %d, step %d: %s chunk %lld of %s, which step %d of tb %d %s: want a dependency between them%s",
	    b->gpu, b->block->id, b->at, writes ? "writes" : "reads", (long long)(cell - base[buffer]),
	    msccl_buffers[buffer], other->step, o->block->id, wrote ? "writes" : "reads",
	    run->in_place ? " (in place)" : "");
}

static Access
access_of(const struct block *b, int self)
{
	return (Access){ .actor = self, .time = b->clock[self], .step = b->at };
}

Status
run_note_read(struct run *run, struct block *b, int self, int64_t at)
{
	Access other;
	TRY(cells_read(run->ctx, &run->cells, at, access_of(b, self), b->clock, &other));
	return other.actor < 0 ? OK : report_race(run, b, &other, at, false, true);
}

Status
run_note_write(struct run *run, struct block *b, int self, int64_t at)
{
	Access other;
	bool wrote;
	cells_write(&run->cells, at, access_of(b, self), b->clock, b->clock, &other, &wrote);
	return other.actor < 0 ? OK : report_race(run, b, &other, at, true, wrote);
}
