/* Plans: a rank's program, with pointers to the flags of its peers. */
#include "engine/engine.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Flags of a rank that the net reaches are in memory of this process; most ranks of a large job are never reached. */
int
peer_open(struct engine *e, int rank, struct blink_error *err)
{
	struct peer *peer = &e->peer[rank];
	if (peer->mine)
		return blinkSuccess;
	size_t bytes = sizeof *peer->mine + sizeof *peer->in;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return set_error(err, blinkOutOfMemory, "no memory for the flags of rank %d", rank);
	pthread_mutex_lock(&e->net_lock);
	peer->mine = (struct region_peer *)memory;
	peer->in = (struct channel *)(memory + sizeof *peer->mine);
	pthread_mutex_unlock(&e->net_lock);
	e->self->net->resume(e->self->net_handle, rank);
	return blinkSuccess;
}

void
peer_close(struct peer *peer)
{
	munmap(peer->mine, sizeof *peer->mine + sizeof *peer->in);
	peer->mine = NULL;
}

static void
connect_from(struct engine *e, struct lanes *lanes, const RankLane *lane, struct plan_lane *out)
{
	const struct peer *peer = &e->peer[lane->rank];
	*out = (struct plan_lane){ .peer = lane->rank, .lane = lane->lane, .ring = lane->ring, .mirror = -1,
	    .ready = &peer->mine->ready[lane->lane] };
	if (peer->theirs) {
		out->done = &peer->theirs->done[lane->lane];
	} else {
		lanes->mirror[lanes->n_mirrors] = (struct mirror){ lane->rank, lane->lane };
		out->mirror = lanes->n_mirrors++;
	}
}

static void
connect_to(struct engine *e, const RankLane *lane, struct plan_lane *out)
{
	const struct peer *peer = &e->peer[lane->rank];
	*out = (struct plan_lane){ .peer = lane->rank, .lane = lane->lane, .ring = lane->ring, .mirror = -1,
	    .done = &peer->mine->done[lane->lane],
	    .ready = peer->theirs ? &peer->theirs->ready[lane->lane] : NULL };
}

static int
by_peer_and_lane(const void *a, const void *b)
{
	const struct mirror *x = a, *y = b;
	if (x->peer != y->peer)
		return x->peer > y->peer ? 1 : -1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

int
lanes_mirror(const struct lanes *lanes, int peer, int lane)
{
	struct mirror key = { peer, lane };
	const struct mirror *found = bsearch(&key, lanes->mirror, (size_t)lanes->n_mirrors, sizeof key,
	    by_peer_and_lane);
	return found ? (int)(found - lanes->mirror) : -1;
}

/* Mirrors are found by the net's thread, so they are sorted, and lanes take their new numbers. */
static void
sort_mirrors(struct lanes *lanes, int n_tasks)
{
	qsort(lanes->mirror, (size_t)lanes->n_mirrors, sizeof *lanes->mirror, by_peer_and_lane);
	for (int t = 0; t < n_tasks; t++) {
		struct plan_task *task = &lanes->task[t];
		for (int i = 0; i < task->task->n_from; i++) {
			struct plan_lane *lane = &task->from[i];
			if (lane->mirror >= 0)
				lane->mirror = lanes_mirror(lanes, lane->peer, lane->lane);
		}
	}
}

/* How far the first reader of a task comes after this rank; a task without one comes last. */
static int
reader_after(const struct engine *e, const RankTask *task)
{
	int n = e->self->n_ranks;
	return task->n_to > 0 ? (task->to[0].rank - e->self->rank + n) % n : n;
}

/* Where each rank has something for each other one, and all began with what rank 0 gets, the link of rank 0 would be
 * full while those of others wait. So each begins with what the rank after it gets, and goes around; of what one rank
 * gets, in the order of the schedule. */
static Status
order_tasks(struct engine *e, Ctx *ctx, const RankProgram *prog, struct lanes *lanes)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *first;
	TRY(NEW(ctx, lanes->order, prog->n_tasks));
	TRY(TEMP(ctx, first, e->self->n_ranks + 2));
	for (int t = 0; t < prog->n_tasks; t++)
		first[reader_after(e, &prog->task[t]) + 1]++;
	for (int r = 0; r <= e->self->n_ranks; r++)
		first[r + 1] += first[r];
	for (int t = 0; t < prog->n_tasks; t++)
		lanes->order[first[reader_after(e, &prog->task[t])]++] = t;
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
connect_tasks(struct engine *e, struct plan *plan)
{
	const RankProgram *prog = plan->prog;
	Ctx *ctx = &plan->ctx;
	struct lanes *lanes;
	int n_from = 0, widest = 1;
	for (int t = 0; t < prog->n_tasks; t++) {
		n_from += prog->task[t].n_from;
		widest = prog->task[t].n_from > widest ? prog->task[t].n_from : widest;
	}
	TRY(NEW(ctx, lanes, 1));
	TRY(NEW(ctx, lanes->task, prog->n_tasks));
	TRY(NEW(ctx, lanes->mirror, n_from));
	TRY(NEW(ctx, lanes->operand, widest));
	for (int t = 0; t < prog->n_tasks; t++) {
		const RankTask *task = &prog->task[t];
		struct plan_task *out = &lanes->task[t];
		out->task = task;
		TRY(NEW(ctx, out->from, task->n_from));
		TRY(NEW(ctx, out->to, task->n_to));
		for (int i = 0; i < task->n_from; i++)
			connect_from(e, lanes, &task->from[i], &out->from[i]);
		for (int i = 0; i < task->n_to; i++)
			connect_to(e, &task->to[i], &out->to[i]);
		lanes->n_to += task->n_to;
	}
	sort_mirrors(lanes, prog->n_tasks);
	if (e->self->net)
		TRY(order_tasks(e, ctx, prog, lanes));
	plan->lanes = lanes;
	return OK;
}

int
plan_connect(struct engine *e, struct plan *plan, struct blink_error *err)
{
	const RankProgram *prog = plan->prog;
	if (prog->lanes_max > LANES_MAX)
		return set_error(err, blinkLimit, "%s: %d trees between two ranks: want at most %d",
		    collective_name(prog->coll), prog->lanes_max, (int)LANES_MAX);
	for (int i = 0; i < prog->n_peers; i++)
		if (peer_open(e, prog->peer[i], err) != blinkSuccess)
			return err->code;
	if (connect_tasks(e, plan) != OK)
		return set_error_memory(err);
	return blinkSuccess;
}
