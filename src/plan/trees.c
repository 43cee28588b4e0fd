/* Blink's planner: linear programs and MWU (programs.c), or, where the machine is large or irregular, flows, exchanges
 * and trees over servers. */
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/linear/linear.h"
#include "plan/plan.h"
#include "plan/programs.h"
#include "topology/topology.h"

enum { FLOW_RANKS = 512 };	/* of flows behind switches that take seconds */

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
