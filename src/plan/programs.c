/* Blink's TreeGen: pack trees by multiplicative weights (MWU), then keep few of them (Blink 3.2). With PACKING_EXACT
 * a linear program in between finds the optimal rate itself. */
#include "plan/programs.h"
#include "graph/graph.h"
#include "plan/pack/few/few.h"
#include "plan/pack/linear/linear.h"
#include "plan/pack/pool/pool.h"
#include "plan/plan.h"

#include <limits.h>

enum {
	VARIANTS = 6,
	MOST_CELLS = 1 << 20	/* of a linear program that is solved for each depth */
};

/* Each tree once or not at all, at the rate of a whole link. For broadcast and reduce such a choice exists whenever
 * the bound is a whole number of links (Edmonds), but not necessarily among the trees that MWU found for its own
 * rate. Other initial weights find other trees, so MWU runs a few times more before units become finer. Its trees are
 * added to *pool. */
static Status
choose_whole(Ctx *ctx, const Topology *topo, const Bound *bound, Frac optimum, const Ask *ask, int64_t *cells,
    Packing **pool, Packing **few)
{
	Ask other = *ask;
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
choose_few(Ctx *ctx, const Topology *topo, const Bound *bound, Frac optimum, const Ask *ask, Packing *pool,
    Packing **few)
{
	int64_t cells = LIMIT_ILP_CELLS;
	*few = NULL;
	TRY(choose_whole(ctx, topo, bound, optimum, ask, &cells, &pool, few));
	return *few ? OK : pack_minimise(ctx, topo, optimum, pool, ask, INT_MAX, &cells, few);
}

/* Fewer trees than `best` has: of whole links, for which the pool may grow, then of any weights. *few: NULL where
 * none are found. */
static Status
choose_fewer(Ctx *ctx, const Topology *topo, const Bound *bound, Frac optimum, const Ask *ask, Packing *pool, int best,
    Packing **few)
{
	int64_t cells = LIMIT_FEWER_CELLS;
	Packing *whole, *fewer = NULL;
	Frac keep, target;
	bool searched;
	*few = NULL;
	if (best <= 1 || !frac_sub(FRAC_ONE, ask->tolerance, &keep) || !frac_mul(optimum, keep, &target))
		return OK;
	TRY(choose_whole(ctx, topo, bound, optimum, ask, &cells, &pool, &whole));
	if (whole && whole->n_trees < best) {
		*few = whole;
		best = whole->n_trees;
	}
	if (best <= 1)
		return OK;
	TRY(pack_sparsest(ctx, topo, target, pool, best, &searched, &fewer));
	*few = fewer ? fewer : *few;
	best = fewer ? fewer->n_trees : best;
	if (searched || whole)
		return OK;
	TRY(pack_minimise(ctx, topo, optimum, pool, ask, best - 1, &cells, &fewer));
	*few = fewer ? fewer : *few;
	return OK;
}

/* MWU, then the ILP; where that finds nothing, the linear program, whose basic solutions have no more trees than
 * links. */
static Status
plan_mwu(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **out)
{
	Packing *many, *few = NULL;
	Bound unused = *bound;
	Frac optimum, rate, known;
	TRY(pack_mwu(ctx, topo, bound, ask, &many, &optimum));
	if (ask->minimise)
		TRY(choose_few(ctx, topo, bound, optimum, ask, many, &few));
	if (ask->minimise && !few)
		TRY(pack_exact(ctx, topo, sym, bound, many, ask, &few, &unused));
	bool worse = few && ctx->late && pack_rate(few, ask->coll, topo->n_ranks, &rate)
	    && pack_rate(many, ask->coll, topo->n_ranks, &known) && frac_cmp(rate, known) < 0;
	*out = few && !worse ? few : many;
	return OK;
}

/* By a tolerance the trees may be below the optimum: what it is, and whether that is the bound. */
static Status
reach_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask,
    const Packing *few, Bound *proof)
{
	Ask any = *ask;
	Packing *unused;
	Frac rate;
	any.minimise = false;
	if (pack_rate(few, ask->coll, topo->n_ranks, &rate) && frac_cmp(rate, bound->rate) >= 0)
		return OK;
	return pack_exact(ctx, topo, sym, bound, NULL, &any, &unused, proof);
}

/* *out: NULL where the linear program has no answer. */
static Status
plan_exact(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **out,
    Bound *proof)
{
	Packing *many, *best, *pool, *few = NULL;
	Frac optimum, rate, known;
	/* With few ranks all trees can be tried. A packing at the bound is optimal; if there is none, the programs
	 * follow. */
	if (ask->minimise)
		TRY(pack_fewest(ctx, topo, bound->rate, bound->rate, ask, &few));
	if (few) {
		*out = few;
		return ask->tolerance.num ? reach_bound(ctx, topo, sym, bound, ask, few, proof) : OK;
	}
	TRY(pack_mwu(ctx, topo, bound, ask, &many, &optimum));
	TRY(pack_exact(ctx, topo, sym, bound, many, ask, &best, proof));
	/* Where the linear program was rounded, the ILP may have a higher rate. */
	bool rounded = best && (!pack_rate(best, ask->coll, topo->n_ranks, &rate) || frac_cmp(rate, proof->rate) < 0);
	/* Programs over very many trees take seconds, and find nothing. */
	if (best && ask->minimise && topo->n_ranks <= LIMIT_ILP_RANKS && many->n_trees <= LIMIT_ILP_TREES) {
		TRY(pack_pool(ctx, many, best, &pool));
		if (rounded)
			TRY(choose_few(ctx, topo, bound, proof->rate, ask, pool, &few));
		else
			TRY(choose_fewer(ctx, topo, bound, proof->rate, ask, pool, best->n_trees, &few));
	}
	*out = few && (few->n_trees < best->n_trees || rounded) ? few : best;
	/* Cut short, the linear program may have a lower rate than the trees of MWU that it started from. */
	if (rounded && *out == best && pack_rate(many, ask->coll, topo->n_ranks, &known) && frac_cmp(rate, known) < 0)
		*out = many;
	return OK;
}

/* ---- shallow trees ---- */

static int
larger(int a, int b)
{
	return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

Status
plan_least(Ctx *ctx, const Topology *topo, const Ask *ask, int *depth, int *trees)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Search search;
	int64_t *price;
	int *hops, most = 0, least = -1;
	TRY(search_new(ctx, topo, &search));
	TRY(TEMP(ctx, price, topo->n_links));
	TRY(TEMP(ctx, hops, topo->n_ranks));
	search_price(&search, price);
	for (int r = 0; r < topo->n_ranks; r++) {
		if (ask->root >= 0 && r != ask->root)
			continue;
		int in = search_depths(&search, r, true, hops, NULL),
		    out = search_depths(&search, r, false, hops, NULL);
		bool collects = ask->coll == REDUCE || ask->coll == GATHER || ask->coll == REDUCESCATTER;
		most = larger(most, collects ? in : out);
		least = least < 0 || in + out < least ? in + out : least;
	}
	arena_release(&ctx->scratch, mark);
	*depth = ask->coll == ALLREDUCE ? least : most;
	*trees = collective_demands(ask->coll, topo->n_ranks);
	return OK;
}

struct flat {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	const Bound *bound;
	const Ask *ask;
	Frac target;		/* rate to reach */
	KnownTrees known;	/* of the shallowest packing that reaches it */
};

/* *out: trees of this depth, 0: of any, at the target; NULL: there are none. With `few` there are few of them. */
static Status
pack_flat(struct flat *f, int depth, bool few, Packing **out)
{
	Ask limited = *f->ask;
	Bound unused = *f->bound;
	KnownTrees known = f->known;
	Packing *flat;
	Frac rate;
	limited.max_depth = depth;
	limited.minimise = few;
	*out = NULL;
	TRY(pack_exact_from(f->ctx, f->topo, f->sym, f->bound, &known, &limited, &flat, &unused));
	if (!flat || !pack_rate(flat, f->ask->coll, f->topo->n_ranks, &rate) || frac_cmp(rate, f->target) < 0)
		return OK;
	f->known = known;
	*out = flat;
	return OK;
}

/* The rate that other trees have to reach: within tolerance of the bound; if the packing is below that, no less than
 * its rate. False: it is not known. */
static bool
set_target(struct flat *f, const Packing *pack)
{
	Frac keep, rate;
	if (!pack_rate(pack, f->ask->coll, f->topo->n_ranks, &rate) || !frac_sub(FRAC_ONE, f->ask->tolerance, &keep)
	    || !frac_mul(f->bound->rate, keep, &f->target))
		return false;
	f->target = frac_cmp(rate, f->target) < 0 ? rate : f->target;
	return true;
}

/* *depth, which has trees at the target: the least that has, no less than `least`, by halving. */
static Status
find_least_depth(struct flat *f, int least, int *depth)
{
	while (least < *depth && progress(f->ctx, "depth %d", least) > 0) {
		int middle = least + (*depth - least) / 2;
		Packing *flat;
		TRY(pack_flat(f, middle, false, &flat));
		if (flat)
			*depth = middle;
		else
			least = middle + 1;
	}
	return OK;
}

/* With very few ranks: the least depth that has trees at the rate, and few trees of that depth. pack: at the optimum,
 * however many. */
static Status
plan_shallow(struct flat *f, Packing **pack)
{
	Packing *few;
	int *work, least, trees;
	TRY(TEMP(f->ctx, work, f->topo->n_ranks));
	TRY(plan_least(f->ctx, f->topo, f->ask, &least, &trees));
	int depth = pack_depth(*pack, work);
	if (!set_target(f, *pack))
		return OK;
	TRY(find_least_depth(f, least, &depth));
	TRY(pack_flat(f, depth, true, &few));
	if (!few)
		TRY(pack_flat(f, 0, true, &few));
	*pack = few ? few : *pack;
	return OK;
}

/* With few ranks, the linear program once more over trees of limited depth: there are fewer shallow trees, so where
 * they reach the rate a packing often has fewer of them, too. */
static Status
flatten(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **pack)
{
	Ask limited = *ask;
	Packing *flat;
	Frac keep, rate, target;
	Bound unused = *bound;
	int *work, least, trees, missed = 0;
	int64_t cells = (*pack)->cells;
	TRY(TEMP(ctx, work, topo->n_ranks));
	TRY(plan_least(ctx, topo, ask, &least, &trees));
	if (!pack_rate(*pack, ask->coll, topo->n_ranks, &rate) || !frac_sub(FRAC_ONE, ask->tolerance, &keep)
	    || !frac_mul(bound->rate, keep, &target))
		return OK;
	/* If the packing is below that, no less than its rate. */
	target = frac_cmp(rate, target) < 0 ? rate : target;
	/* Where trees of a depth miss the rate, shallower ones hardly reach it; and a program over very many trees
	 * takes seconds for each depth. */
	for (int depth = pack_depth(*pack, work) - 1; depth >= least && missed < 2 && cells <= MOST_CELLS
	    && progress(ctx, "depth %d", depth) > 0; depth--) {
		limited.max_depth = depth;
		TRY(pack_exact(ctx, topo, sym, bound, NULL, &limited, &flat, &unused));
		missed++;
		cells = flat ? flat->cells : cells;
		if (!flat || !pack_rate(flat, ask->coll, topo->n_ranks, &rate) || frac_cmp(rate, target) < 0)
			continue;
		missed = 0;
		if (flat->n_trees <= (*pack)->n_trees)
			*pack = flat;
	}
	return OK;
}

/* ---- all of these ---- */

Status
plan_programs(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **out,
    Bound *proof)
{
	Packing *pack = NULL;
	Ask any = *ask;
	struct flat f = { .ctx = ctx, .topo = topo, .sym = sym, .bound = proof, .ask = ask };
	bool shallow = pack_has_tableau(topo, ask) && ask->minimise && !ask->max_depth && !ask->max_trees;
	*proof = *bound;
	if (collective_has_blocks(ask->coll) || sym->size > 1
	    || (tree_shares(topo, ask->coll) && ask->packing == PACKING_EXACT)) {
		any.minimise = ask->minimise && !shallow;
		TRY(pack_exact_from(ctx, topo, sym, bound, &f.known, &any, &pack, proof));
		if (pack && shallow)
			TRY(plan_shallow(&f, &pack));
		else if (pack && ask->minimise && topo->n_ranks <= LIMIT_FLAT_RANKS)
			TRY(flatten(ctx, topo, sym, proof, ask, &pack));
		if (!pack)
			return fail(ctx, LIMIT, "%s: %s over %d ranks: too large for the linear program", topo->name,
			    collective_name(ask->coll), topo->n_ranks);
		*out = pack;
		return OK;
	}
	if (ask->packing == PACKING_EXACT)
		TRY(plan_exact(ctx, topo, sym, bound, ask, &pack, proof));
	if (!pack)
		TRY(plan_mwu(ctx, topo, sym, bound, ask, &pack));
	*out = pack;
	return OK;
}
