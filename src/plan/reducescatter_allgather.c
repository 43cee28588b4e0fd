/* Reduce-scatter and allgather: an allreduce in which each rank sums its own part of the data, and sends the sum to all
 * others (ForestColl; SCCL, which inverts an allgather). The way down are the trees of the best allgather, the way up
 * the same trees backwards, both at once:
 *
 *     allgather, block of rank 1     1 -> 0 -> 3,  1 -> 2
 *     its part of the allreduce      3 -> 0 -> 1,  2 -> 1,  then  1 -> 0 -> 3,  1 -> 2
 *
 * An allgather has the same rate for each root, and its trees are flat where roots are many. So these trees are often
 * slower than the best ones of an allreduce, which choose their roots, and less deep. */
#include "plan/family.h"
#include "plan/turned.h"

static Status
plan_allgather(Ctx *ctx, const Planning *in, Packing **out)
{
	Ask ask = *in->ask;
	Planning half = *in;
	Bound bound;
	Plan plan;
	ask.coll = ALLGATHER;
	half.ask = &ask;
	half.bound = &bound;
	half.known = NULL;
	half.proven = NULL;
	TRY(plan_check_size(ctx, in->topo, ALLGATHER));
	TRY(bound_compute(ctx, in->topo, in->sym, ALLGATHER, -1, &bound));
	TRY(plan_trees(ctx, &half, &plan));
	*out = plan.pack;
	return OK;
}

Status
plan_reducescatter_allgather(Ctx *ctx, const Planning *in, Plan *out)
{
	Packing *gather;
	Frac rate = FRAC_ZERO;
	*out = (Plan){ .proof = *in->bound, .best = FRAC_ZERO };
	TRY(plan_allgather(ctx, in, &gather));
	TRY(plan_turn(ctx, in->topo, gather, &out->pack));
	if (!out->pack)
		return fail(ctx, INFEASIBLE, "%s: reduce-scatter and allgather trees: want links that are as fast in "
		    "both directions, and switches that only forward", in->topo->name);
	if (pack_rate(out->pack, ALLREDUCE, in->topo->n_ranks, &rate) && frac_cmp(rate, in->bound->rate) >= 0)
		out->best = rate;
	return plan_compare(ctx, in, rate, out);
}
