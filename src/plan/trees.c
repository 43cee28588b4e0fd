/* Blink's TreeGen: pack trees by multiplicative weights, then keep few of them (Blink 3.2). With PACKING_EXACT a linear
 * program in between makes the rate the optimum itself. */
#include "passes.h"

enum { VARIANTS = 6 };

/* Each tree once or not at all, at whole links. A choice exists for broadcast and reduce whenever the bound is a whole
 * number of links (Edmonds), but the trees that MWU needs for its own rate need not hold it. Other first weights bring other
 * trees, so it is asked again, a few times, before units are cut finer. *pool grows by what it finds. */
static Status
choose_whole(Ctx *ctx, const Topology *topo, const Bound *bound, Frac optimum, const Request *ask, Packing **pool,
    Packing **few)
{
	Request other = *ask;
	Packing *more;
	Frac unused;
	bool possible;
	TRY(pack_select(ctx, topo, optimum, *pool, ask, &possible, few));
	for (int idle = 0; !*few && possible && idle < 2 && other.variant < VARIANTS; idle++) {
		int known = (*pool)->n_trees;
		if (known >= LIMIT_ILP_TREES)
			break;
		other.variant++;
		TRY(pack_mwu(ctx, topo, bound, &other, &more, &unused));
		TRY(pack_pool(ctx, *pool, more, pool));
		if ((*pool)->n_trees == known)
			continue;
		idle = -1;
		TRY(pack_select(ctx, topo, optimum, *pool, ask, &possible, few));
	}
	return OK;
}

static Status
plan_mwu(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out)
{
	Packing *many, *pool, *few = NULL;
	Frac optimum, finest = { 1, 1000 };
	TRY(pack_mwu(ctx, topo, bound, ask, &many, &optimum));
	if (ask->minimise) {
		pool = many;
		TRY(choose_whole(ctx, topo, bound, optimum, ask, &pool, &few));
		if (!few)
			TRY(pack_minimise(ctx, topo, optimum, pool, ask, &few));
	}
	if (ask->minimise && !few && frac_cmp(ask->tolerance, ask->epsilon) < 0) {
		/* What MWU found is not as close as it has to be. */
		Request closer = *ask;
		closer.epsilon = frac_cmp(ask->tolerance, finest) > 0 ? ask->tolerance : finest;
		TRY(pack_mwu(ctx, topo, bound, &closer, &many, &optimum));
		TRY(pack_minimise(ctx, topo, optimum, many, ask, &few));
	}
	*out = few ? few : many;
	return OK;
}

/* *out: NULL where the linear program has no answer. */
static Status
plan_exact(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out, Bound *proof)
{
	Packing *many, *best, *pool, *few = NULL;
	Frac optimum, rate;
	TRY(pack_mwu(ctx, topo, bound, ask, &many, &optimum));
	TRY(pack_exact(ctx, topo, bound, many, ask, &best, proof));
	if (best && ask->minimise) {
		TRY(pack_pool(ctx, many, best, &pool));
		TRY(choose_whole(ctx, topo, bound, proof->rate, ask, &pool, &few));
		if (!few)
			TRY(pack_minimise(ctx, topo, proof->rate, pool, ask, &few));
	}
	/* What the linear program rounded may be beaten in rate, too. */
	bool rounded = best && (!pack_rate(best, ask->coll, topo->n_ranks, &rate) || frac_cmp(rate, proof->rate) < 0);
	*out = few && (few->n_trees < best->n_trees || rounded) ? few : best;
	return OK;
}

Status
plan_trees(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out, Bound *proof)
{
	Packing *pack = NULL;
	*proof = *bound;
	if (ask->coll > ALLREDUCE) {
		TRY(pack_exact(ctx, topo, bound, NULL, ask, &pack, proof));
		if (!pack)
			return fail(ctx, INTERNAL, "%s: the linear program has no answer", topo->name);
		*out = pack;
		return OK;
	}
	if (ask->packing == PACKING_EXACT)
		TRY(plan_exact(ctx, topo, bound, ask, &pack, proof));
	if (!pack)
		TRY(plan_mwu(ctx, topo, bound, ask, &pack));
	*out = pack;
	return OK;
}
