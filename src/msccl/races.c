/* Races of a run, by vector clocks: run.c has the idea. */
#include "msccl/state.h"

static Status
report_race(struct run *run, const struct block *b, const struct access *other, int64_t cell, bool writes, bool wrote)
{
	const struct block *o = &run->block[other->block];
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

static bool
is_before(const struct block *b, const struct access *access)
{
	return access->block < 0 || b->clock[access->block] >= access->clock;
}

Status
run_note_read(struct run *run, struct block *b, int self, int64_t at)
{
	struct cell *cell = &run->cell[at];
	struct access *read = cell->reads;
	if (!is_before(b, &cell->wrote))
		TRY(report_race(run, b, &cell->wrote, at, false, true));
	while (read && read->block != self)
		read = read->next;
	if (!read) {
		read = run->unused;
		if (read)
			run->unused = read->next;
		else
			TRY(TEMP(run->ctx, read, 1));
		read->next = cell->reads;
		cell->reads = read;
	}
	read->block = self;
	read->clock = b->clock[self];
	read->step = b->at;
	return OK;
}

Status
run_note_write(struct run *run, struct block *b, int self, int64_t at)
{
	struct cell *cell = &run->cell[at];
	if (!is_before(b, &cell->wrote))
		TRY(report_race(run, b, &cell->wrote, at, true, true));
	while (cell->reads) {
		struct access *read = cell->reads;
		if (!is_before(b, read))
			TRY(report_race(run, b, read, at, true, false));
		cell->reads = read->next;
		read->next = run->unused;
		run->unused = read;
	}
	cell->wrote = (struct access){ self, b->clock[self], b->at, NULL };
	return OK;
}
