/* An exchange: the allreduce of least latency on one server, and of two ranks anywhere. Every rank publishes its value
 * once, for all and itself too, and adds up what all have published, in the order of the ranks. So all get the same
 * bits, also where the order decides: which zero of a maximum, which NaN of two. No rank waits for another to pass
 * something on. Sent in place, the input is kept: peers may read it where it lies. A schedule cannot say all this:
 * there each tree reduces into its root's own value first. */
#include "choose/choose.h"

static Status
all_lanes(Ctx *ctx, int n, RankLane **out)
{
	TRY(NEW(ctx, *out, n));
	for (int r = 0; r < n; r++)
		(*out)[r] = (RankLane){ .rank = r };
	return OK;
}

Status
exchange_program(Ctx *ctx, int n, int rank, RankProgram **out)
{
	RankProgram *prog;
	RankTask *task;
	TRY(NEW(ctx, prog, 1));
	TRY(NEW(ctx, task, 2));
	*prog = (RankProgram){ .coll = ALLREDUCE, .root = -1, .n_ranks = n, .rank = rank, .n_parts = 1, .n_extents = 1,
	    .keep_input = true, .n_tasks = 2, .n_rings = 1, .rings_max = 1, .task = task, .n_peers = n,
	    .lanes_max = 1, .pair_lanes_max = 1 };
	task[0] = (RankTask){ .own = true, .ring = 0, .n_to = n };
	task[1] = (RankTask){ .output = true, .complete = true, .ring = -1, .n_from = n };
	TRY(all_lanes(ctx, n, &task[0].to));
	TRY(all_lanes(ctx, n, &task[1].from));
	TRY(NEW(ctx, prog->longest, 1));
	TRY(NEW(ctx, prog->extent, 1));
	TRY(NEW(ctx, prog->peer, n));
	prog->longest[0] = FRAC_ONE;
	prog->depth = 1;
	prog->segments_max = 1;
	prog->extent[0] = (Extent){ .begin = FRAC_ZERO, .end = FRAC_ONE };
	for (int r = 0; r < n; r++)
		prog->peer[r] = r;
	*out = prog;
	return OK;
}
