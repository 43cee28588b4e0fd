/* Bounds, exactly, by maximum flows; docs/bounds.md says of which algorithms.
 *
 * Broadcast, reduce: the least capacity that leaves a side with the root (enters it), over all other ranks.
 * Allreduce: partition.c. Allgather, reducescatter, gather, scatter: the least of capacity of a cut / blocks that
 * must cross it, by Newton's method. Alltoall: cuts around single ranks and servers; no cut need be tight. */
#include "graph/flow.h"
#include "graph/hops.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "schedule/schedule.h"

#include <string.h>

/* ---- what ranks receive together ---- */

/* A tree enters each rank but its root by a hop from another rank. So it costs as many links of a cut as ranks of A
 * that it has to enter, and the rate is at most their capacity divided by that. Of a buffer of n blocks n - 1 enter
 * each rank. The pair of trees of an allreduce has two hops for each rank but the root, each of which enters some rank:
 * A is all of them. */
static Status
hops_bound(Ctx *ctx, const Topology *topo, Collective coll, int root, Bound *bound)
{
	const int n = topo->n_ranks;
	const bool blocks = collective_has_blocks(coll);
	ArenaMark mark = arena_mark(&ctx->scratch);
	Bound found = { .kind = blocks ? CERTIFICATE_LENGTHS : CERTIFICATE_PRICES, .part = bound->part };
	/* The rate, where each rank receives 1. */
	Frac rate = coll == ALLREDUCE ? (Frac){ n, 2 * (n - 1) } : blocks ? (Frac){ n, n - 1 } : FRAC_ONE, each, price;
	bool *cut;
	int n_entered;
	if (topo->n_vertices == n || tree_shares(topo, coll) || !frac_div(bound->rate, rate, &each))
		return OK;
	TRY(TEMP(ctx, cut, topo->n_links));
	TRY(hops_cut(ctx, topo, coll == REDUCE || coll == REDUCESCATTER, root, coll == ALLREDUCE, each, cut,
	    &n_entered));
	if (n_entered > 0 && frac_div(rate, (Frac){ n_entered, 1 }, &price)) {
		TRY(NEW(ctx, found.price, topo->n_links));
		for (int l = 0; l < topo->n_links; l++)
			found.price[l] = cut[l] ? price : FRAC_ZERO;
		TRY(bound_from_certificate(ctx, topo->name, topo, coll, root, &found, &found.rate));
		if (frac_cmp(found.rate, bound->rate) < 0)
			*bound = found;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- one cut for each rank ---- */

static Status
rooted_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *bound)
{
	Flow f;
	int64_t least = INT64_MAX;
	bool *known;
	TRY(flow_new(ctx, topo, &f));
	TRY(TEMP(ctx, known, topo->n_ranks));
	known[root] = true;
	for (int i = 0; i < sym->n_representatives; i++) {
		int r = sym->representative[i];
		if (r == root || (least < INT64_MAX && out_of_time(ctx, FLOW_WORK(topo))))
			continue;
		int64_t between = flow_past(&f, known, r, coll == REDUCE);
		known[r] = true;
		if (between >= least)
			continue;
		least = between;
		for (int v = 0; v < topo->n_vertices; v++)
			bound->part[v] = flow_side(&f, v) == (coll == BROADCAST);
	}
	bound->kind = CERTIFICATE_CUT;
	bound->rate = (Frac){ least, 1 };
	return hops_bound(ctx, topo, coll, root, bound);
}

/* ---- collectives of blocks ---- */

/* The side of the last flow becomes the certificate, if it proves a lower bound. */
static Status
keep_side(Ctx *ctx, const Topology *topo, Flow *f, Collective coll, int root, Bound *bound, bool *lower)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Bound cut = { .kind = CERTIFICATE_CUT };
	int inside = 0;
	TRY(TEMP(ctx, cut.part, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		cut.part[v] = flow_side(f, v);
		inside += v < topo->n_ranks && cut.part[v];
	}
	*lower = false;
	if (inside > 0 && inside < topo->n_ranks) {
		TRY(bound_from_certificate(ctx, topo->name, topo, coll, root, &cut, &cut.rate));
		*lower = bound->rate.num == 0 || frac_cmp(cut.rate, bound->rate) < 0;
	}
	if (*lower) {
		bound->rate = cut.rate;
		memcpy(bound->part, cut.part, (size_t)topo->n_vertices * sizeof *cut.part);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Cuts around each rank, and around all ranks but one. */
static Status
single_cuts(Ctx *ctx, const Topology *topo, const Symmetry *sym, Flow *f, Collective coll, int root, Bound *bound)
{
	bool reversed = coll == GATHER || coll == REDUCESCATTER, lower;
	/* Around one rank, and around all others: the same blocks cross each of these cuts. */
	Wide least[2] = { FLOW_INFINITE, FLOW_INFINITE };
	for (int i = 0; i < sym->n_representatives; i++) {
		int r = sym->representative[i];
		for (int others = 0; others < 2; others++) {
			if ((collective_rooted(coll) && (r == root) == others)
			    || (bound->rate.num > 0 && out_of_time(ctx, FLOW_WORK(topo))))
				continue;
			flow_reset(f, 1, reversed);
			for (int v = 0; v < topo->n_ranks; v++)
				((v == r) != others ? flow_from_source : flow_to_sink)(f, v, FLOW_INFINITE);
			Wide capacity = flow_max(f);
			if (capacity >= least[others])
				continue;
			least[others] = capacity;
			TRY(keep_side(ctx, topo, f, coll, root, bound, &lower));
		}
	}
	return OK;
}

/* Newton's method on mu = capacity / ranks counted: the cut that minimises capacity - mu * ranks, by one maximum flow
 * for each rank that may be left out (allgather, reducescatter: ranks inside count; scatter, gather: ranks outside
 * do, and the root is inside). Everything times the denominator of mu. */
static Status
ratio_cuts(Ctx *ctx, const Topology *topo, const Symmetry *sym, Flow *f, Collective coll, int root, Bound *bound)
{
	bool reversed = coll == GATHER || coll == REDUCESCATTER, rooted = collective_rooted(coll), lower;
	do {
		Frac mu;
		lower = false;
		if (!frac_div(bound->rate, (Frac){ topo->n_ranks, 1 }, &mu))
			return fail(ctx, LIMIT, "%s: the bound needs more than 64 bits", topo->name);
		for (int i = 0; i < (rooted ? 1 : sym->n_representatives) && !lower; i++) {
			if (out_of_time(ctx, FLOW_WORK(topo)))
				return OK;
			int outside = sym->representative[i];
			flow_reset(f, mu.den, reversed);
			for (int v = 0; v < topo->n_ranks; v++) {
				bool fixed = v == (rooted ? root : outside);
				Wide capacity = fixed ? FLOW_INFINITE : mu.num;
				(fixed == rooted ? flow_from_source : flow_to_sink)(f, v, capacity);
			}
			flow_max(f);
			TRY(keep_side(ctx, topo, f, coll, root, bound, &lower));
		}
	} while (lower);
	return OK;
}

/* A server: what its cuts depend on, as a rule. */
struct server {
	int64_t leaving, entering;	/* of links between it and the rest */
	int64_t ranks;
};

static Status
list_servers(Ctx *ctx, const Topology *topo, struct server **out)
{
	struct server *server;
	TRY(TEMP(ctx, server, topo->n_nodes));
	for (int r = 0; r < topo->n_ranks; r++)
		server[topo->vertex[r].node].ranks++;
	for (int l = 0; l < topo->n_links; l++) {
		int from = topo->vertex[topo->link[l].from].node, to = topo->vertex[topo->link[l].to].node;
		if (from != to && from >= 0)
			server[from].leaving += topo->link[l].capacity;
		if (from != to && to >= 0)
			server[to].entering += topo->link[l].capacity;
	}
	*out = server;
	return OK;
}

/* Cuts around one of each kind of server, and around all others. */
static Status
server_cuts(Ctx *ctx, const Topology *topo, Flow *f, Collective coll, Bound *bound)
{
	struct server *server;
	bool lower;
	if (topo->n_nodes < 2)
		return OK;
	TRY(list_servers(ctx, topo, &server));
	for (int s = 0; s < topo->n_nodes; s++) {
		int first = 0;
		while (memcmp(&server[first], &server[s], sizeof *server) != 0)
			first++;
		for (int others = 0; others < 2 && first == s && !out_of_time(ctx, FLOW_WORK(topo)); others++) {
			flow_reset(f, 1, false);
			for (int r = 0; r < topo->n_ranks; r++)
				((topo->vertex[r].node == s) != others ? flow_from_source
				    : flow_to_sink)(f, r, FLOW_INFINITE);
			flow_max(f);
			TRY(keep_side(ctx, topo, f, coll, -1, bound, &lower));
		}
	}
	return OK;
}

static Status
block_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *bound)
{
	Flow f;
	TRY(flow_new(ctx, topo, &f));
	TRY(single_cuts(ctx, topo, sym, &f, coll, root, bound));
	if (coll == ALLTOALL)
		return server_cuts(ctx, topo, &f, coll, bound);
	TRY(ratio_cuts(ctx, topo, sym, &f, coll, root, bound));
	return coll == ALLGATHER || coll == REDUCESCATTER ? hops_bound(ctx, topo, coll, -1, bound) : OK;
}

/* ---- where time is over ---- */

/* Sides of one rank, or of all other vertices: the rank for which the least capacity counts; -1: the root forbids
 * them. */
static int
narrowest(const Topology *topo, Collective coll, int root, bool alone, const int64_t *leaving, const int64_t *entering)
{
	bool enters = coll == REDUCE || coll == GATHER || coll == REDUCESCATTER;
	const int64_t *capacity = alone == enters ? entering : leaving;
	int best = -1;
	for (int r = 0; r < topo->n_ranks; r++)
		if ((!collective_rooted(coll) || (r == root) == alone) && (best < 0 || capacity[r] < capacity[best]))
			best = r;
	return best;
}

/* Cuts that need no flow. */
static Status
plain_cuts(Ctx *ctx, const Topology *topo, Collective coll, int root, Bound *bound)
{
	int64_t *leaving, *entering;
	Bound cut = { .kind = CERTIFICATE_CUT };
	TRY(TEMP(ctx, leaving, topo->n_vertices));
	TRY(TEMP(ctx, entering, topo->n_vertices));
	for (int l = 0; l < topo->n_links; l++) {
		leaving[topo->link[l].from] += topo->link[l].capacity;
		entering[topo->link[l].to] += topo->link[l].capacity;
	}
	for (int alone = 0; alone < 2; alone++) {
		int r = narrowest(topo, coll, root, alone, leaving, entering);
		if (r < 0)
			continue;
		TRY(NEW(ctx, cut.part, topo->n_vertices));
		for (int v = 0; v < topo->n_vertices; v++)
			cut.part[v] = (v == r) == alone;
		TRY(bound_from_certificate(ctx, topo->name, topo, coll, root, &cut, &cut.rate));
		if (bound->rate.num == 0 || frac_cmp(cut.rate, bound->rate) < 0)
			*bound = cut;
	}
	return OK;
}

Status
bound_compute(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Bound bound = { .rate = FRAC_ZERO };
	TRY(NEW(ctx, bound.part, topo->n_vertices));
	if (topo->n_ranks > 1 && (coll == BROADCAST || coll == REDUCE)) {
		TRY(rooted_bound(ctx, topo, sym, coll, root, &bound));
	} else if (topo->n_ranks > 1 && coll == ALLREDUCE) {
		TRY(partition_bound(ctx, topo, sym, &bound));
		TRY(hops_bound(ctx, topo, coll, -1, &bound));
	} else if (topo->n_ranks > 1) {
		TRY(block_bound(ctx, topo, sym, coll, root, &bound));
	}
	if (topo->n_ranks > 1 && (ctx->late || (coll == ALLREDUCE && topo->n_ranks > LIMIT_PAIR_RANKS)))
		TRY(plain_cuts(ctx, topo, coll, root, &bound));
	arena_release(&ctx->scratch, mark);
	*out = bound;
	return OK;
}
