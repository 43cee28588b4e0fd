/* One run of an algorithm that stands for all.
 *
 * A step waits for fixed events alone: the step before it in its threadblock, the step that it depends on, and for each
 * chunk the message k of a connection (to receive it), or the receipt of message k - slots (to send it). Messages of a
 * connection keep their order, and one threadblock alone sends, another alone receives. Nothing chooses. So the events
 * and their waits are one graph, the same in all interleavings: a run that goes on while anything can ends with exactly
 * the events that do not wait, directly or not, for a cycle. If it ends before the last step, every run hangs, and the
 * cycle is found by asking each threadblock what it waits for. Executors repeat the steps for further slices of each
 * chunk; runs of slices one after the other are such runs, too, so one slice suffices.
 *
 * Fewer slots only add waits, and so does a connection that carries a step of several chunks one by one (executors join
 * them where messages are small). This run moves single chunks: it is the strictest.
 *
 * Races: two accesses to the same chunk, one of them a write, by threadblocks of one GPU that no chain of steps,
 * dependencies and messages orders. Each threadblock has a vector clock, which messages and dependencies carry. That a
 * sender waits for a free slot orders things, too, but does not count: how many there are is up to the executor.
 * Without races all runs have the same result, so the values of this one are those of all.
 */
#include "msccl/state.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

int
msccl_slots(const Msccl *algo)
{
	return strncmp(algo->protocol, "LL", 2) == 0 ? 8 : 2;
}

/* ---- steps ---- */

static void
join(const struct run *run, int *clock, const int *other)
{
	for (int t = 0; t < run->n_blocks; t++)
		clock[t] = clock[t] > other[t] ? clock[t] : other[t];
}

static void
enqueue(struct run *run, int t)
{
	if (run->block[t].next != QUEUED_NOT)
		return;
	run->block[t].next = QUEUED_LAST;
	if (run->first_queued < 0)
		run->first_queued = t;
	else
		run->block[run->last_queued].next = t;
	run->last_queued = t;
}

/* What the current step waits for: the end of a step of another threadblock. */
static const struct block *
dependency_of(const struct run *run, const struct block *b, int *step)
{
	const MscclStep *s = &b->block->step[b->at];
	*step = -1;
	if (s->dep_block < 0)
		return NULL;
	const struct block *on = &run->block[b->first + s->dep_block];
	*step = s->dep_step;
	return on;
}

static bool
is_full(const struct run *run, const struct connection *to)
{
	return to->n_sent - to->n_received >= run->slots;
}

static bool
is_empty(const struct connection *from)
{
	return from->n_sent == from->n_received;
}

static bool
can_go_on(const struct run *run, const struct block *b)
{
	const MscclOpKind *op = &msccl_ops[b->block->step[b->at].op];
	int step;
	const struct block *on = dependency_of(run, b, &step);
	return (!on || on->at > step) && !(op->receives && is_empty(b->in)) && !(op->sends && is_full(run, b->out));
}

static Value *
message(const struct run *run, const struct connection *c, int64_t k)
{
	return (Value *)(c->value + (size_t)(k % run->slots) * run->values.size);
}

/* What a step does with one chunk. */
static Status
move(struct run *run, struct block *b, int self, Value *moved)
{
	const MscclStep *s = &b->block->step[b->at];
	const MscclOpKind *op = &msccl_ops[s->op];
	const int64_t *base = &run->base[b->gpu * N_MSCCL_BUFFERS];
	int64_t src = base[s->src] + s->src_offset + b->unit, dst = base[s->dst] + s->dst_offset + b->unit;
	b->clock[self]++;
	if (op->receives) {
		join(run, b->clock, b->in->clock + (size_t)(b->in->n_received % run->slots) * (size_t)run->n_blocks);
		memcpy(moved, message(run, b->in, b->in->n_received++), run->values.size);
		enqueue(run, b->in->from);
	}
	/* A chunk that is copied to itself, in place, stays as it is. */
	if (s->op == MSCCL_COPY && src == dst)
		return OK;
	if (op->reads) {
		TRY(run_note_read(run, b, self, src));
		if (op->receives)
			values_reduce(&run->values, moved, values_at(&run->values, src));
		else
			memcpy(moved, values_at(&run->values, src), run->values.size);
	}
	if (op->writes) {
		TRY(run_note_write(run, b, self, dst));
		if (s->op == MSCCL_REDUCE)
			values_reduce(&run->values, values_at(&run->values, dst), moved);
		else
			memcpy(values_at(&run->values, dst), moved, run->values.size);
	}
	if (op->sends) {
		memcpy(b->out->clock + (size_t)(b->out->n_sent % run->slots) * (size_t)run->n_blocks, b->clock,
		    (size_t)run->n_blocks * sizeof(int));
		memcpy(message(run, b->out, b->out->n_sent++), moved, run->values.size);
		enqueue(run, b->out->to);
	}
	return OK;
}

static void
end_step(struct run *run, struct block *b)
{
	if (b->posted[b->at])
		memcpy(b->posted[b->at], b->clock, (size_t)run->n_blocks * sizeof(int));
	if (b->block->step[b->at].has_dep)
		for (int t = b->first; t < run->n_blocks && run->block[t].gpu == b->gpu; t++)
			enqueue(run, t);
	b->at++;
	b->unit = 0;
}

static Status
go_on(struct run *run, int self, Value *moved)
{
	struct block *b = &run->block[self];
	while (b->at < b->block->n_steps && can_go_on(run, b)) {
		const MscclStep *s = &b->block->step[b->at];
		int step;
		const struct block *on = dependency_of(run, b, &step);
		if (on && b->unit == 0)
			join(run, b->clock, on->posted[step]);
		if (s->op != MSCCL_NOP)
			TRY(move(run, b, self, moved));
		if (s->op == MSCCL_NOP || ++b->unit == s->count)
			end_step(run, b);
	}
	return OK;
}

/* ---- deadlock ---- */

/* The threadblock that this one waits for. */
static int
waits_for(const struct run *run, const struct block *b)
{
	const MscclOpKind *op = &msccl_ops[b->block->step[b->at].op];
	int step;
	const struct block *on = dependency_of(run, b, &step);
	if (on && on->at <= step)
		return (int)(on - run->block);
	return op->receives && is_empty(b->in) ? b->in->from : b->out->to;
}

/* "gpu 0, tb 1, step 2 waits for gpu 1, tb 0, step 3, which waits for ..." around the cycle, from its first threadblock
 * on. */
static Status
report_deadlock(struct run *run, int t)
{
	enum { SHOWN = 6 };
	char text[512];
	int n = 0, first, at, length = 1;
	for (int i = 0; i < run->n_blocks; i++)
		t = waits_for(run, &run->block[t]);
	for (first = t, at = waits_for(run, &run->block[t]); at != t; at = waits_for(run, &run->block[at]), length++)
		first = at < first ? at : first;
	at = first;
	for (int i = 0; i < length && i < SHOWN; i++) {
		at = waits_for(run, &run->block[at]);
		const struct block *b = &run->block[at];
		n += snprintf(text + n, sizeof text - (size_t)n, "%sgpu %d, tb %d, step %d", i ? ", that for " : "",
		    b->gpu, b->block->id, b->at);
	}
	const struct block *b = &run->block[first];
	return msccl_find(run->ctx, run->list, run->slots == 1 ? MSCCL_RULE_ONE_SLOT : MSCCL_RULE_DEADLOCK, MSCCL_ALL,
	    b->block->step[b->at].line, "gpu %d, tb %d, step %d waits for %s%s: in every order of execution, if "
	    "connections buffer %d chunk%s", b->gpu, b->block->id, b->at, text,
	    length > SHOWN ? ", and so on, back to it" : "", run->slots, run->slots == 1 ? "" : "s");
}

/* ---- the result ---- */

static Status
check_result(struct run *run)
{
	char where[80] = "";
	Wrong wrong = values_wrong(&run->values, run->base + MSCCL_OUTPUT, N_MSCCL_BUFFERS,
	    msccl_expected_chunks(run->algo, MSCCL_OUTPUT));
	run->list->root = wrong.root;
	if (wrong.n == 0)
		return OK;
	const Access *wrote = &run->cells.cell[run->base[wrong.rank * N_MSCCL_BUFFERS + MSCCL_OUTPUT]
	    + wrong.cell].wrote;
	int line = run->algo->gpu[wrong.rank].line;
	if (wrote->actor >= 0) {
		const MscclBlock *b = run->block[wrote->actor].block;
		line = b->step[wrote->step].line;
		snprintf(where, sizeof where, ", tb %d, step %d", b->id, wrote->step);
	}
	return msccl_find(run->ctx, run->list, MSCCL_RULE_RESULT, MSCCL_ALL, line,
	    "gpu %d%s: chunk %d of its output holds %s: want %s (%d chunk%s wrong%s)", wrong.rank, where, wrong.cell,
	    wrong.holds, wrong.want, wrong.n, wrong.n == 1 ? " is" : "s are", run->in_place ? ", in place" : "");
}

/* ---- all of it ---- */

static Status
connect(struct run *run, struct block *b, int self)
{
	const MscclGpu *peer = b->block->send >= 0 ? &run->algo->gpu[b->block->send] : NULL;
	for (int t = 0; t < run->n_blocks && peer; t++) {
		struct block *o = &run->block[t];
		struct connection *c;
		if (o->gpu != peer->id || o->block->recv != b->gpu || o->block->channel != b->block->channel)
			continue;
		TRY(TEMP(run->ctx, c, 1));
		TRY(TEMP(run->ctx, c->value, (size_t)run->slots * run->values.size));
		TRY(TEMP(run->ctx, c->clock, (size_t)run->slots * (size_t)run->n_blocks));
		c->from = self;
		c->to = t;
		b->out = o->in = c;
		return OK;
	}
	return OK;
}

/* Room for the clocks of steps that others wait for. */
static Status
make_posts(struct run *run)
{
	for (int t = 0; t < run->n_blocks; t++) {
		const struct block *b = &run->block[t];
		for (int i = 0; i < b->block->n_steps; i++) {
			const MscclStep *s = &b->block->step[i];
			struct block *on = s->dep_block < 0 ? NULL : &run->block[b->first + s->dep_block];
			if (on && !on->posted[s->dep_step])
				TRY(TEMP(run->ctx, on->posted[s->dep_step], run->n_blocks));
		}
	}
	return OK;
}

static Status
make_blocks(struct run *run)
{
	const Msccl *algo = run->algo;
	int64_t steps = 0, units = 0, t = 0;
	for (int g = 0; g < algo->n_gpus; g++)
		run->n_blocks += algo->gpu[g].n_blocks;
	TRY(TEMP(run->ctx, run->block, run->n_blocks));
	for (int g = 0; g < algo->n_gpus; g++) {
		int first = (int)t;
		for (int i = 0; i < algo->gpu[g].n_blocks; i++, t++) {
			const MscclBlock *b = &algo->gpu[g].block[i];
			run->block[t] = (struct block){ .block = b, .gpu = g, .first = first, .next = QUEUED_NOT };
			TRY(TEMP(run->ctx, run->block[t].posted, b->n_steps));
			steps += b->n_steps;
			for (int k = 0; k < b->n_steps; k++)
				units += b->step[k].count;
		}
	}
	if ((steps + 4 * run->n_blocks) * (run->n_blocks + 1) > LIMIT_MSCCL_CLOCKS)
		return fail(run->ctx, LIMIT, "%s: %lld steps in %d threadblocks: more than a search for races takes",
		    run->label, (long long)steps, run->n_blocks);
	if (units * (4 + run->n_blocks) > LIMIT_VERIFY_STEPS)
		return fail(run->ctx, LIMIT, "%s: steps move %lld chunks in %d threadblocks", run->label,
		    (long long)units, run->n_blocks);
	for (t = 0; t < run->n_blocks; t++)
		TRY(TEMP(run->ctx, run->block[t].clock, run->n_blocks));
	return OK;
}

static Status
run_all(struct run *run)
{
	int64_t n_cells;
	Value *moved;
	TRY(run_lay_out(run, &n_cells));
	TRY(run_fill(run, n_cells));
	TRY(make_blocks(run));
	moved = arena_array(&run->ctx->scratch, 1, run->values.size);
	if (!moved)
		return fail_memory(run->ctx);
	for (int t = 0; t < run->n_blocks; t++)
		TRY(connect(run, &run->block[t], t));
	TRY(make_posts(run));
	for (int t = 0; t < run->n_blocks; t++)
		enqueue(run, t);
	while (run->first_queued >= 0) {
		int t = run->first_queued;
		run->first_queued = run->block[t].next;
		run->block[t].next = QUEUED_NOT;
		TRY(go_on(run, t, moved));
	}
	for (int t = 0; t < run->n_blocks; t++)
		if (run->block[t].at < run->block[t].block->n_steps)
			return report_deadlock(run, t);
	return run->raced || run->slots == 1 ? OK : check_result(run);
}

Status
msccl_run(Ctx *ctx, const char *label, const Msccl *algo, int slots, bool in_place, RuleFindings *list)
{
	struct run run = { .ctx = ctx, .label = label, .algo = algo, .list = list, .slots = slots,
		.in_place = in_place, .first_queued = -1, .raced = slots == 1 };
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = run_all(&run);
	arena_release(&ctx->scratch, mark);
	return status;
}
