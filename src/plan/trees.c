/* Blink's TreeGen: pack trees by multiplicative weights (MWU), then keep few of them (Blink 3.2). With PACKING_EXACT
 * a linear program in between finds the optimal rate itself. */
#include "graph/graph.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/few/few.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/linear/linear.h"
#include "plan/pack/pool/pool.h"
#include "plan/plan.h"
#include "topology/topology.h"

#include <limits.h>

enum {
	VARIANTS = 6,
	MOST_CELLS = 1 << 20,	/* of a linear program that is solved for each depth */
	FLOW_RANKS = 512	/* of flows behind switches that take seconds */
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
	TRY(pack_select(ctx, topo, optimum, *pool, ask, INT_MAX, cells, &possible, few));
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
		TRY(pack_select(ctx, topo, optimum, *pool, ask, INT_MAX, cells, &possible, few));
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
	int least;
	bool searched;
	*few = NULL;
	if (!frac_sub(FRAC_ONE, ask->tolerance, &keep) || !frac_mul(optimum, keep, &target))
		return OK;
	TRY(pack_least_trees(ctx, topo, ask, target, &least));
	if (best <= least)
		return OK;
	TRY(choose_whole(ctx, topo, bound, optimum, ask, &cells, &pool, &whole));
	if (whole && whole->n_trees < best) {
		*few = whole;
		best = whole->n_trees;
	}
	if (best <= least)
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

/* Each demand needs a tree of its own, and a tree that reaches every rank an edge for each rank: a schedule that
 * would be too large to be written is not planned. */
Status
plan_check_size(Ctx *ctx, const Topology *topo, Collective coll)
{
	int64_t n = topo->n_ranks, demands = collective_demands(coll, topo->n_ranks);
	bool spans = collective_demand(coll, topo->n_ranks, 0, 0).kind != DEMAND_PATH;
	TRY(topo_check_pairs(ctx, topo));
	int64_t edges = demands * (spans ? n - 1 : 1) * (coll == ALLREDUCE ? 2 : 1);
	if (demands > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: want a schedule of at most %d trees and %d edges",
		    topo->name, collective_name(coll), topo->n_ranks, LIMIT_TREES, LIMIT_TREE_EDGES);
	return OK;
}

/* With few ranks and links between GPUs only, fewer trees are found without symmetry, since there is more choice.
 * Behind a switch ranks are symmetric, and one short tree for each of them is enough. With a root the full program
 * stays small for more ranks. */
SymmetryKind
trees_symmetry(const Topology *topo, const Ask *ask)
{
	bool wanted = topo->n_ranks > 16 || topo->n_vertices > topo->n_ranks;
	if (ask->root >= 0)
		wanted = topo->n_ranks > (collective_has_blocks(ask->coll) || topo->n_nodes == 1 ? 32 : 128);
	return ask->packing == PACKING_EXACT && wanted ? SYMMETRY_ANY : SYMMETRY_NONE;
}

/* ---- limits ---- */

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
		int in = search_depths(&search, r, true, hops), out = search_depths(&search, r, false, hops);
		bool collects = ask->coll == REDUCE || ask->coll == GATHER || ask->coll == REDUCESCATTER;
		most = larger(most, collects ? in : out);
		least = least < 0 || in + out < least ? in + out : least;
	}
	arena_release(&ctx->scratch, mark);
	*depth = ask->coll == ALLREDUCE ? least : most;
	*trees = collective_demands(ask->coll, topo->n_ranks);
	return OK;
}

/* With a root and this number of ranks a greedy choice is tried before the linear program. */
static bool
is_large(const Topology *topo, const Ask *ask)
{
	enum { LARGE = 64 };
	return topo->n_ranks > LARGE && ask->packing == PACKING_EXACT && ask->minimise && !tree_shares(topo, ask->coll)
	    && (ask->coll == BROADCAST || ask->coll == REDUCE);
}

/* More ranks than integer programs are made for. */
static bool
is_large_program(const Topology *topo, const Ask *ask)
{
	return topo->n_ranks > LIMIT_ILP_RANKS && ask->packing == PACKING_EXACT && ask->minimise;
}

/* That, and not a few orbits of ranks: the linear program takes minutes where many trees cost the same, and ends with
 * more trees, where flows and exchanges take seconds. */
static bool
is_irregular(const Topology *topo, const Symmetry *sym, const Ask *ask)
{
	enum { FEW_ORBITS = 8 };
	bool rooted = collective_rooted(ask->coll) && topo->n_vertices == topo->n_ranks;
	return is_large_program(topo, ask) && (rooted || sym->n_representatives > FEW_ORBITS);
}

/* An alltoall with so many orbits of pairs that a program with a row for each takes seconds to hours, and its basis is
 * not solved for exactly. */
static bool
has_many_pairs(const Topology *topo, const Symmetry *sym, const Ask *ask)
{
	return ask->coll == ALLTOALL && is_large_program(topo, ask)
	    && collective_demands(ALLTOALL, topo->n_ranks) / LIMIT_LP_BASIS >= sym->size;
}

/* By the linear program, or by MWU where it has no answer. */
static Status
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

/* The linear program, or trees that are below the bound, where these have a higher rate, or where it is too large. */
static Status
plan_or_lower(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing *lower,
    Packing **out, Bound *proof)
{
	Packing *pack = NULL;
	Frac rate, other;
	Status status = plan_programs(ctx, topo, sym, bound, ask, &pack, proof);
	if (status != OK && status != LIMIT)
		return status;
	ctx->error.status = OK;
	bool higher = status == LIMIT || (pack_rate(lower, ask->coll, topo->n_ranks, &rate)
	    && pack_rate(pack, ask->coll, topo->n_ranks, &other) && frac_cmp(rate, other) > 0);
	if (status == LIMIT)
		*proof = *bound;
	*out = higher ? lower : pack;
	return OK;
}

/* As plan_programs, where the linear program ends soon, as it often does with a root, or for an allreduce behind
 * switches; else *out stays. */
static Status
plan_soon(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **out,
    Bound *proof)
{
	enum { RANKS = 256, PIVOTS = 5000 };
	bool late = ctx->late, cut_short = ctx->cut_short;
	Packing *pack;
	Bound found;
	bool flat = ask->coll == ALLREDUCE && topo->n_vertices > topo->n_ranks;
	if ((!collective_rooted(ask->coll) && !flat) || topo->n_ranks > RANKS || late)
		return OK;
	ctx->pivots = PIVOTS;
	TRY(plan_programs(ctx, topo, sym, bound, ask, &pack, &found));
	bool spent = ctx->pivots <= 1;
	ctx->pivots = 0;
	if (spent) {
		ctx->late = late;
		ctx->cut_short = cut_short;
		return OK;
	}
	*out = pack;
	*proof = found;
	return OK;
}

/* Are these at the bound, and others none, or not there, or in no way better? */
static bool
is_no_worse(const Topology *topo, const Ask *ask, const Packing *pack, const Packing *other, const Bound *bound,
    int *work)
{
	Bound known = *bound;
	pack_note_reached(other, ask->coll, topo->n_ranks, &known);
	return pack && (!known.reached || (pack->n_trees <= other->n_trees
	    && pack_depth(pack, work) <= pack_depth(other, work)));
}

/* Over direct links: by flows; an allreduce also by exchanges, which take longer, where flows find no trees, on small
 * machines, and where a lower rate may do. If time was over before flows ended, exchanges take milliseconds more for
 * trees of a lower rate. *out: NULL where no trees are found. */
static Status
plan_direct(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out)
{
	enum { RANKS = 64 };
	Packing *flows, *exchanges = NULL;
	int *work;
	TRY(TEMP(ctx, work, topo->n_ranks));
	bool before = ctx->late;
	TRY(pack_branchings(ctx, topo, bound, ask, &flows));
	bool late = ctx->late;
	ctx->late = before;
	if (ask->coll == ALLREDUCE && (!flows || topo->n_ranks <= RANKS || ask->tolerance.num > 0))
		TRY(pack_spanning(ctx, topo, bound, ask, &exchanges));
	ctx->late = ctx->late || late;
	*out = !flows || (exchanges && (exchanges->n_trees < flows->n_trees || (exchanges->n_trees == flows->n_trees
	    && pack_depth(exchanges, work) < pack_depth(flows, work)))) ? exchanges : flows;
	return OK;
}

/* By flows and exchanges. Over direct links these take milliseconds, and are not taken where the linear program has
 * fewer trees or shallower ones; else only if it does not end soon. *out: NULL where no trees are found. */
static Status
plan_irregular(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **out,
    Bound *proof)
{
	bool direct = topo->n_vertices == topo->n_ranks;
	Packing *pack = NULL;
	int *work;
	TRY(TEMP(ctx, work, topo->n_ranks));
	if (direct)
		TRY(plan_direct(ctx, topo, bound, ask, &pack));
	TRY(plan_soon(ctx, topo, sym, bound, ask, out, proof));
	if (!direct && !*out)
		TRY(pack_branchings(ctx, topo, bound, ask, &pack));
	if (is_no_worse(topo, ask, pack, *out, bound, work)) {
		*proof = *bound;
		pack_note_reached(pack, ask->coll, topo->n_ranks, proof);
		*out = pack;
	}
	return OK;
}

/* Of an allreduce over unequal servers below the bound: those with hubs that share the places of a cluster, if their
 * rate is higher. So too where servers share no network, so that some tree has no hop between them, and flows, which
 * are at the bound, take minutes. */
static Status
raise_unequal(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **pack)
{
	Packing *few;
	Frac rate, other;
	if (ask->coll != ALLREDUCE || (!*pack && topo->n_ranks <= FLOW_RANKS)
	    || (*pack && pack_rate(*pack, ask->coll, topo->n_ranks, &rate)
	    && frac_double(rate) >= frac_double(bound->rate) * (1 - RATE_ROUNDING)))
		return OK;
	TRY(pack_cluster_few(ctx, topo, ask, &few));
	if (few && (!*pack || (pack_rate(*pack, ask->coll, topo->n_ranks, &rate)
	    && pack_rate(few, ask->coll, topo->n_ranks, &other) && frac_cmp(other, rate) > 0)))
		*pack = few;
	return OK;
}

/* Is its rate this part of the bound? pack: may be NULL. */
static bool
is_at(const Topology *topo, const Ask *ask, const Bound *bound, const Packing *pack, double part)
{
	Frac rate;
	return pack && pack_rate(pack, ask->coll, topo->n_ranks, &rate)
	    && frac_double(rate) >= frac_double(bound->rate) * part * (1 - RATE_ROUNDING);
}

/* More switches than one for each server, and some between them: a search over routes through all takes long. */
static bool
has_nics(const Topology *topo)
{
	return topo->n_nodes > 0 && topo->n_vertices - topo->n_ranks > 2 * topo->n_nodes
	    && topo->n_ranks > FLOW_RANKS;
}

/* Over many ranks, where the packing misses `near` of the bound, or there is none: trees over servers, and then in
 * these, if their rate is higher. They may be deep. */
static Status
raise_by_servers(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, double near, Packing **pack)
{
	Packing *other;
	Frac rate, known;
	if (topo->n_ranks <= FLOW_RANKS || topo_active(topo) || is_at(topo, ask, bound, *pack, near))
		return OK;
	TRY(pack_two_level(ctx, topo, ask->coll, ask->root, bound, &other));
	if (other && (!*pack || (pack_rate(*pack, ask->coll, topo->n_ranks, &known)
	    && pack_rate(other, ask->coll, topo->n_ranks, &rate) && frac_cmp(rate, known) > 0)))
		*pack = other;
	return OK;
}

Status
plan_free(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask, Packing **out,
    Bound *proof)
{
	enum { MANY_ORBITS = 64 };	/* of a linear program that takes minutes */
	const double near = 0.995;	/* of the bound, by shallow trees: others are much deeper */
	Packing *greedy = NULL, *pack = NULL, *lower = NULL;
	Frac rate, other;
	*proof = *bound;
	if (is_large(topo, ask)) {
		TRY(pack_rooted(ctx, topo, ask->coll, ask->root, bound, &pack));
		bool best = pack && pack_rate(pack, ask->coll, topo->n_ranks, &rate)
		    && frac_cmp(rate, bound->rate) >= 0;
		if (!pack && has_nics(topo))
			TRY(raise_by_servers(ctx, topo, bound, ask, 1, &greedy));
		if (!is_at(topo, ask, bound, greedy, 1))
			TRY(pack_greedy(ctx, topo, bound, ask, best ? pack : NULL, &greedy));
		if (!best)
			TRY(raise_by_servers(ctx, topo, bound, ask, 1, &greedy));
		pack = NULL;
	}
	bool known = greedy && pack_rate(greedy, ask->coll, topo->n_ranks, &rate);
	if (known && frac_cmp(rate, bound->rate) >= 0) {
		*out = greedy;
		return OK;
	}
	if (is_large_program(topo, ask)) {
		TRY(pack_unequal(ctx, topo, ask->coll, bound, &pack, &lower));
		if (pack || lower || sym->n_representatives > MANY_ORBITS)
			TRY(raise_unequal(ctx, topo, bound, ask, pack ? &pack : &lower));
		if (sym->n_representatives > MANY_ORBITS)
			TRY(raise_by_servers(ctx, topo, bound, ask, near, pack ? &pack : &lower));
	}
	if (lower && sym->n_representatives > MANY_ORBITS) {
		if (topo->n_ranks <= FLOW_RANKS)
			TRY(plan_irregular(ctx, topo, sym, bound, ask, &pack, proof));
		pack = pack ? pack : lower;
	}
	if (!pack && has_many_pairs(topo, sym, ask))
		TRY(pack_paths(ctx, topo, &pack, proof));
	if (pack)
		pack_note_reached(pack, ask->coll, topo->n_ranks, proof);
	else if (is_irregular(topo, sym, ask))
		TRY(plan_irregular(ctx, topo, sym, bound, ask, &pack, proof));
	if (!pack && lower)
		return plan_or_lower(ctx, topo, sym, bound, ask, lower, out, proof);
	if (!pack)
		TRY(plan_programs(ctx, topo, sym, bound, ask, &pack, proof));
	*out = known && pack_rate(pack, ask->coll, topo->n_ranks, &other) && frac_cmp(rate, other) > 0 ? greedy : pack;
	return OK;
}
