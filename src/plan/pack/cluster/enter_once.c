/* Collectives over servers that a tree of switches joins, as leaf switches and a spine: trees that enter each server
 * once, and what lies below each switch once, as far as ways have room.
 *
 *     spine ---- leaf 0 ---- servers 0, 1, 2, 3      from GPU a of server 0: to b of 4 and c of 8, by the spine;
 *            \-- leaf 1 ---- servers 4, 5, 6, 7      to 1, 2, 3 by leaf 0, from b's server to 5, 6, 7 by leaf 1, ...
 *            \-- leaf 2 ---- servers 8, 9
 *
 * In a server the GPU that was reached sends to the others over their switch. To other servers the root itself sends,
 * where its uplink has capacity left; elsewhere, of the GPUs that hold the data, the one with the most capacity left on
 * its uplink that no tree with that GPU as its root will need. It sends to the GPU with the most capacity left on its
 * downlink, in the server with the most left on its uplinks. So the links of all GPUs fill evenly. A server that no
 * link had capacity for is tried again from all GPUs that hold the data; where that fails, two trees of half the weight
 * take the place of this one. On rails a server is entered by one of which it has nearly as much left as of its others.
 *
 * A broadcast has trees of one weight, which enter the servers first that may send most. Where the GPU that was reached
 * has no room for a star in its server, others pass on what they have.
 *
 * An allreduce may use an allgather's trees in both directions. Then any rank may be the root of any number of trees:
 * where the links of a server let only T - k of all T units in, at least k have their roots there. So 128 servers with
 * 8 NICs each, one of which lost a GPU, have T = 1024: 127 pass each NIC, and each server has the roots of 8. */
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/enter_once_edges.h"
#include "plan/pack/cluster/enter_once_roots.h"
#include "plan/pack/cluster/enter_once_units.h"

#include <limits.h>
#include <string.h>

enum {
	MOST_UNITS = 64,	/* of the trees of a rank together, in the mean */
	LEAST_UNITS = 2,	/* likewise, of an allreduce, */
	FEW_UNITS = 8,		/* and at least of the last try */
	MOST_BITS = 44,		/* of the denominator of the rate */
	HOP_NS = 500,		/* about what one takes */
	TRIES = 4,		/* also of even use of rails, deeper trees, and such as are passed on in servers */
	DEEP = 4		/* units of a tree that a sender has to have more for each hop that it is deeper */
};

/* Trees of a root with this weight together. *good: they were found. */
static Status
grow_all(struct grower *g, int root, int64_t weight, bool *good)
{
	*good = !out_of_time(g->ctx, HOP_NS * g->n) && entering_grow(g, root, weight);
	if (!*good && weight > 1 && !g->ctx->late) {
		TRY(grow_all(g, root, weight - weight / 2, good));
		return *good ? grow_all(g, root, weight / 2, good) : OK;
	}
	*good &= g->n_trees < g->most;
	if (!*good)
		return OK;
	TRY(TEMP(g->ctx, g->hops[g->n_trees], g->n_hops));
	memcpy(g->hops[g->n_trees], g->hop, (size_t)g->n_hops * sizeof *g->hop);
	g->weights[g->n_trees] = weight;
	g->of_root[g->n_trees++] = root;
	entering_need(g, root, -weight * g->times[root]);
	g->pool[g->net.server[root]] += weight * (g->both ? g->times[root] : 1);
	return OK;
}

static Status
grow_roots(struct grower *g, Frac rate, int units, bool *good)
{
	const Topology *topo = g->net.topo;
	const TreeNetwork *net = &g->net;
	TRY(TEMP(g->ctx, g->needs, net->n_ways));
	TRY(TEMP_EACH(g->ctx, g->n, g->own, g->times, g->holds, g->depth, g->holder, g->held, g->hop));
	TRY(TEMP(g->ctx, g->left, topo->n_links));
	TRY(TEMP_EACH(g->ctx, net->n_servers, g->entered, g->pool));
	TRY(TEMP(g->ctx, g->turn, net->first_group[topo->n_vertices]));
	TRY(TEMP_EACH(g->ctx, g->most, g->of_root, g->weights, g->hops));
	for (int l = 0; l < topo->n_links; l++)
		g->left[l] = (int64_t)((Wide)topo->link[l].capacity * rate.den * units / rate.num);
	TRY(entering_share(g, units, good));
	/* The first ranks of all servers, the second ones, and so on. */
	for (int k = 0, n = 1; *good && n > 0; k++) {
		n = 0;
		for (int s = 0; *good && s < net->n_servers; s++) {
			int at = net->first[s] + k;
			if (at >= net->end[s])
				continue;
			n++;
			int64_t own = g->own[net->member[at]], each = g->sole_root < 0 ? own : 1;
			for (int64_t i = 0; *good && i < own; i += each)
				TRY(grow_all(g, net->member[at], each, good));
		}
	}
	return OK;
}

/* *out: NULL: there are none; or the call before had the same units and rules, and is not repeated. */
static Status
pack_units(struct grower *g, Frac rate, int from, int to, Packing **out)
{
	ArenaMark mark = arena_mark(&g->ctx->scratch);
	int units = 0;
	Frac unit;
	bool good;
	*out = NULL;
	g->n_trees = 0;
	g->ahead = 0;
	entering_units(g, rate, from, to, g->both ? 2 : g->shared || g->sole_root >= 0 ? 1 : g->n, &units);
	int tried = units << 3 | (g->deep > 0) << 2 | g->fair << 1 | g->relayed;
	if (units == 0 || tried == g->tried || !frac_mul(rate, (Frac){ 1, units }, &unit))
		return OK;
	g->tried = tried;
	TRY(grow_roots(g, rate, units, &good));
	if (good)
		TRY(g->listed ? entering_list(g, unit, out) : entering_number(g, units, out));
	arena_release(&g->ctx->scratch, mark);
	return OK;
}

/* Trees of one root, a unit each: as few and as shallow as they are by some numbers. */
static Status
pack_of_root(struct grower *g, Frac rate, Packing **out)
{
	int *work, least = INT_MAX;
	TRY(TEMP(g->ctx, work, g->n));
	for (int k = 1; k < MOST_UNITS; k *= 2) {
		Packing *pack;
		TRY(pack_units(g, rate, k, MOST_UNITS, &pack));
		int sum = pack ? pack->n_trees + pack_depth(pack, work) : INT_MAX;
		*out = sum < least ? pack : *out;
		least = sum < least ? sum : least;
	}
	return OK;
}

Status
pack_enter_once_levels(Ctx *ctx, const Topology *topo, Collective coll, bool *has)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	TreeNetwork net;
	bool is_one = false;
	*has = false;
	if (!topo->route)
		TRY(tree_network(ctx, topo, coll == REDUCESCATTER, &net, &is_one));
	for (int i = 0; is_one && i < net.first_group[topo->n_vertices]; i++)
		*has |= net.group[i].child >= 0;
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Of all links of a server's ranks to its switch, or, if these have less, from there. */
static int64_t
switch_capacity(const TreeNetwork *net, int server)
{
	int64_t up = 0, down = 0;
	for (int i = net->first[server]; i < net->end[server]; i++) {
		up += net->topo->link[net->to_switch[net->member[i]]].capacity;
		down += net->topo->link[net->from_switch[net->member[i]]].capacity;
	}
	return up < down ? up : down;
}

Status
pack_enter_once_inside(Ctx *ctx, const Topology *topo, Collective coll, Frac *rate)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const int ways = coll == ALLREDUCE ? 2 : 1;
	TreeNetwork net;
	bool is_one = false;
	*rate = FRAC_ZERO;
	if (!topo->route)
		TRY(tree_network(ctx, topo, coll == REDUCESCATTER, &net, &is_one));
	for (int s = 0; is_one && s < net.n_servers; s++) {
		int hops = (net.end[s] - net.first[s] - 1) * ways;
		Frac most;
		if (hops > 0 && frac_make(switch_capacity(&net, s), hops, &most)
		    && (rate->num == 0 || frac_cmp(most, *rate) < 0))
			*rate = most;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
start(Ctx *ctx, const Topology *topo, Collective coll, int root, Frac rate, bool listed, struct grower *g, bool *serves)
{
	int n = topo->n_ranks, edges = listed ? LIMIT_TREE_EDGES : LIMIT_IN_LINKS;
	*g = (struct grower){
		.ctx = ctx, .into = coll == REDUCESCATTER || coll == REDUCE, .both = coll == ALLREDUCE,
		.sole_root = collective_rooted(coll) ? root : -1, .n = n, .listed = listed, .deep = DEEP
	};
	int each = g->both ? 2 : 1;
	g->most = edges / n / each < LIMIT_TREES ? edges / n / each : LIMIT_TREES;
	*serves = false;
	if (topo->route || n > LIMIT_PAIR_RANKS || rate.den >> MOST_BITS)
		return OK;
	return tree_network(ctx, topo, g->into, &g->net, serves);
}

Status
pack_enter_once(Ctx *ctx, const Topology *topo, Collective coll, int root, Frac rate, bool late, bool listed,
    Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct grower g;
	bool serves;
	*out = NULL;
	TRY(start(ctx, topo, coll, root, rate, listed, &g, &serves));
	for (int i = 0; serves && !*out && i < (late ? TRIES : 1); i++) {
		g.fair = g.net.n_tops > 1 && (i > 0 || g.sole_root >= 0);
		g.deep = i <= 1 ? DEEP : 0;
		g.relayed = g.sole_root >= 0 || (i == TRIES - 1 && !g.both);
		if (g.sole_root >= 0)
			TRY(pack_of_root(&g, rate, out));
		else if (!g.both)
			TRY(pack_units(&g, rate, 1, MOST_UNITS, out));
		/* More units find room more often, but trees of few are slow. */
		for (int k = late ? FEW_UNITS : LEAST_UNITS; g.both && !*out && k <= FEW_UNITS; k *= 2)
			TRY(pack_units(&g, rate, k * g.n, MOST_UNITS * g.n, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
pack_enter_once_shared(Ctx *ctx, const Topology *topo, Frac rate, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct grower g;
	bool serves;
	*out = NULL;
	TRY(start(ctx, topo, ALLGATHER, -1, rate, true, &g, &serves));
	g.shared = true;
	g.most /= 2;
	for (int k = 1; serves && !*out && k <= FEW_UNITS; k *= 2)
		TRY(pack_units(&g, rate, k * g.n, MOST_UNITS * g.n, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
