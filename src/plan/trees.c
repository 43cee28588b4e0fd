/* Blink's TreeGen: pack trees by multiplicative weights, then keep few of them (Blink 3.2).
 *
 * A choice of whole links exists for broadcast and reduce whenever the bound is a whole number of links (Edmonds), but the
 * trees that MWU needs for its own rate need not hold it. Other first weights and smaller gaps bring other trees, so it
 * is asked again, a few times, before units are cut finer. */
#include "passes.h"

enum { VARIANTS = 6 };

Status
plan_trees(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out)
{
	Packing *many, *pool, *more, *few = NULL;
	Request other = *ask;
	Frac optimum, unused, finest = { 1, 1000 };
	bool possible;
	TRY(pack_mwu(ctx, topo, bound, ask, &many, &optimum));
	if (!ask->minimise) {
		*out = many;
		return OK;
	}
	pool = many;
	TRY(pack_select(ctx, topo, optimum, pool, ask, &possible, &few));
	while (!few && possible && other.variant < VARIANTS && pool->n_trees < LIMIT_ILP_TREES) {
		int known = pool->n_trees;
		other.variant++;
		TRY(pack_mwu(ctx, topo, bound, &other, &more, &unused));
		TRY(pack_pool(ctx, pool, more, &pool));
		if (pool->n_trees > known)
			TRY(pack_select(ctx, topo, optimum, pool, ask, &possible, &few));
	}
	if (!few)
		TRY(pack_minimise(ctx, topo, optimum, pool, ask, &few));
	if (!few && frac_cmp(ask->tolerance, ask->epsilon) < 0) {
		/* What MWU found is not as close as it has to be. */
		other = *ask;
		other.epsilon = frac_cmp(ask->tolerance, finest) > 0 ? ask->tolerance : finest;
		TRY(pack_mwu(ctx, topo, bound, &other, &many, &optimum));
		TRY(pack_minimise(ctx, topo, optimum, many, ask, &few));
	}
	*out = few ? few : many;
	return OK;
}
