/* The size of messages with which an algorithm of MSCCL takes least time. */
#include "simulate/msccl.h"

enum { SLICE_SHIFT = 12 };	/* slices are no shorter, where the best size is looked for */

/* Messages, if no two chunks share one. */
static bool
too_many(const SimMsccl *program, int64_t m, int64_t slice)
{
	int64_t sends = 0, n = sim_msccl_chunks(program->algo);
	for (int t = 0; t < program->plan.n_hops; t++)
		for (int i = 0; i < program->place[t].block->n_steps; i++) {
			const MscclStep *step = &program->place[t].block->step[i];
			sends += msccl_ops[step->op].sends ? step->count : 0;
		}
	return sends && ((m - 1) / n + 1) / slice > LIMIT_SIM_SEARCH / sends;
}

/* One more simulation; what a worse one has left in the run arena is given back. */
static Status
try_slice(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, int64_t slice, SimResult *best, int64_t *best_slice)
{
	ArenaMark mark = arena_mark(&ctx->run);
	SimAsk one = *ask;
	SimResult result;
	one.chunk = slice;
	one.steps = false;
	TRY(sim_msccl_run(ctx, program, &one, &result));
	if (result.time < best->time) {
		*best = result;
		*best_slice = slice;
	} else {
		arena_release(&ctx->run, mark);
	}
	return OK;
}

Status
sim_msccl_run_best(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out)
{
	int64_t most = sim_msccl_slice(program->algo), best_slice = most;
	SimResult best = { .time = INT64_MAX };
	TRY(try_slice(ctx, program, ask, most, &best, &best_slice));
	for (int64_t slice = INT64_C(1) << SLICE_SHIFT; slice < most; slice *= 2)
		if (!too_many(program, ask->m, slice))
			TRY(try_slice(ctx, program, ask, slice, &best, &best_slice));
	if (ask->steps) {
		SimAsk again = *ask;
		again.chunk = best_slice;
		return sim_msccl_run(ctx, program, &again, out);
	}
	*out = best;
	return OK;
}
