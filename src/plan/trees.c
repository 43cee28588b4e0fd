/* Blink's TreeGen: pack trees by multiplicative weights, then keep few of them (Blink 3.2). With PACKING_EXACT a linear
 * program in between makes the rate the optimum itself. */
#include "passes.h"

enum { VARIANTS = 6 };

/* Each tree once or not at all, at whole links. A choice exists for broadcast and reduce whenever the bound is a whole
 * number of links (Edmonds), but the trees that MWU needs for its own rate need not hold it. Other first weights bring other
 * trees, so it is asked again, a few times, before units are cut finer. *pool grows by what it finds. */
static Status
choose_whole(Ctx *ctx, const Topology *topo, const Bound *bound, Frac optimum, const Request *ask, int64_t *cells,
    Packing **pool, Packing **few)
{
	Request other = *ask;
	Packing *more;
	Frac unused;
	bool possible;
	TRY(pack_select(ctx, topo, optimum, *pool, ask, cells, &possible, few));
	for (int idle = 0; !*few && possible && idle < 2 && other.variant < VARIANTS && *cells > 0; idle++) {
		int known = (*pool)->n_trees;
		if (known >= LIMIT_ILP_TREES)
			break;
		other.variant++;
		TRY(pack_mwu(ctx, topo, bound, &other, &more, &unused));
		TRY(pack_pool(ctx, *pool, more, pool));
		if ((*pool)->n_trees == known)
			continue;
		idle = -1;
		TRY(pack_select(ctx, topo, optimum, *pool, ask, cells, &possible, few));
	}
	return OK;
}

static Status
choose_few(Ctx *ctx, const Topology *topo, const Bound *bound, Frac optimum, const Request *ask, Packing *pool,
    Packing **few)
{
	int64_t cells = LIMIT_ILP_CELLS;
	*few = NULL;
	TRY(choose_whole(ctx, topo, bound, optimum, ask, &cells, &pool, few));
	return *few ? OK : pack_minimise(ctx, topo, optimum, pool, ask, &cells, few);
}

/* MWU, then the ILP; where that finds nothing, the linear program, whose solution has no more trees than links. */
static Status
plan_mwu(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out)
{
	Packing *many, *few = NULL;
	Bound unused = *bound;
	Frac optimum;
	TRY(pack_mwu(ctx, topo, bound, ask, &many, &optimum));
	if (ask->minimise)
		TRY(choose_few(ctx, topo, bound, optimum, ask, many, &few));
	if (ask->minimise && !few)
		TRY(pack_exact(ctx, topo, bound, many, ask, &few, &unused));
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
		TRY(choose_few(ctx, topo, bound, proof->rate, ask, pool, &few));
	}
	/* What the linear program rounded may be beaten in rate, too. */
	bool rounded = best && (!pack_rate(best, ask->coll, topo->n_ranks, &rate) || frac_cmp(rate, proof->rate) < 0);
	*out = few && (few->n_trees < best->n_trees || rounded) ? few : best;
	return OK;
}

/* Each demand needs a tree of its own, and a tree that reaches every rank an edge for each: what cannot be written is not
 * planned. */
static Status
check_size(Ctx *ctx, const Topology *topo, Collective coll)
{
	int64_t n = topo->n_ranks, demands = collective_demands(coll, topo->n_ranks);
	bool spans = collective_demand(coll, topo->n_ranks, 0, 0).kind != DEMAND_CARRY;
	int64_t edges = demands * (spans ? n - 1 : 1) * (coll == ALLREDUCE ? 2 : 1);
	if (demands > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: want a schedule of at most %d trees and %d edges", topo->name,
		    collective_name(coll), topo->n_ranks, LIMIT_TREES, LIMIT_TREE_EDGES);
	return OK;
}

Status
plan_trees(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out, Bound *proof)
{
	Packing *pack = NULL;
	*proof = *bound;
	TRY(check_size(ctx, topo, ask->coll));
	if (collective_has_blocks(ask->coll)) {
		TRY(pack_exact(ctx, topo, bound, NULL, ask, &pack, proof));
		if (!pack)
			return fail(ctx, LIMIT, "%s: %s over %d ranks: too large for the linear program", topo->name,
			    collective_name(ask->coll), topo->n_ranks);
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
