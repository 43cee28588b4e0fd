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
#include "plan/pack/cluster/enter_once_grow.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
	MOST_UNITS = 64,	/* of the trees of a rank together, in the mean */
	LEAST_UNITS = 2,	/* likewise, of an allreduce, */
	FEW_UNITS = 8,		/* and at least of the last try */
	MOST_BITS = 44,		/* of the denominator of the rate */
	HOP_NS = 500,		/* about what one takes */
	MOST_RATES = 64,	/* of links that differ */
	TRIES = 4,		/* also of even use of rails, deeper trees, and such as are passed on in servers */
	DEEP = 4		/* units of a tree that a sender has to have more for each hop that it is deeper */
};

/* ---- all trees ---- */

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

/* Groups at a vertex that cover all servers below it: those of several rails have the same ones. */
static int
count_entries(struct grower *g, int v)
{
	const TreeNetwork *net = &g->net;
	int n = 0;
	memset(g->entered, 0, (size_t)net->n_servers * sizeof *g->entered);
	for (int i = net->first_group[v]; i < net->first_group[v + 1]; i++) {
		int c = net->group[i].child, s = net->group[i].server;
		bool fresh = c < 0 && !g->entered[s];
		if (c < 0)
			g->entered[s] = true;
		for (int k = 0; c >= 0 && k < net->n_below[c]; k++) {
			s = net->server[net->way[net->at[c] + k]];
			fresh |= !g->entered[s];
			g->entered[s] = true;
		}
		n += fresh;
	}
	return n;
}

/* How often the tree of a rank leaves it where it sends to all that has to be entered once; of the only root: once. */
static Status
count_times(struct grower *g)
{
	const TreeNetwork *net = &g->net;
	int *entries;
	TRY(TEMP(g->ctx, entries, net->topo->n_vertices));
	for (int v = 0; v < net->topo->n_vertices; v++)
		entries[v] = count_entries(g, v);
	for (int r = 0; r < g->n; r++) {
		for (int v = net->above[r]; v >= 0; v = net->above[v])
			g->times[r] += entries[v] > 0 ? entries[v] - 1 : 0;
		g->times[r] = g->only < 0 ? g->times[r] : 1;
		entering_need(g, r, g->own[r] * g->times[r]);
	}
	return OK;
}

static int
add_arc(const struct grower *g, int arc, int *link)
{
	int n = 0;
	for (int l = arc; l >= 0; l = g->net.next[l])
		link[n++] = g->net.link[l];
	return n;
}

/* From a vertex down to v. */
static int
add_down(const struct grower *g, const int *arcs, int top, int v, int *link)
{
	if (v == top)
		return 0;
	int n = add_down(g, arcs, top, g->net.above[v], link);
	return n + add_arc(g, arcs[v], link + n);
}

/* Links of a hop, as data pass them, or back. Returns how many. */
static int
add_links(const struct grower *g, const struct hop *hop, bool back, int *link)
{
	const TreeNetwork *net = &g->net;
	bool turned = g->into != back;
	if (hop->inside) {
		link[0] = turned ? net->from_switch[hop->dst] : net->to_switch[hop->src];
		link[1] = turned ? net->to_switch[hop->src] : net->from_switch[hop->dst];
		if (back) {
			link[0] = net->to_switch[hop->dst];
			link[1] = net->from_switch[hop->src];
		}
		return 2;
	}
	int n = 0, top = entering_meet(g, hop->src, hop->dst), from = turned ? hop->dst : hop->src;
	const int *up = g->into ? net->fall : net->rise, *down = g->into ? net->rise : net->fall;
	for (int v = from; v != top; v = net->above[v])
		n += add_arc(g, up[v], link + n);
	return n + add_down(g, down, top, turned ? hop->src : hop->dst, link + n);
}

/* One edge for each hop, as data pass them, or back. */
static Status
list_edges(struct grower *g, int t, bool back, int *links, Edge *out)
{
	int at = 0, *link;
	const int *rank_of = g->net.rank_of;
	bool turned = g->into != back;
	for (int i = 0; i < g->n - 1; i++)
		at += add_links(g, &g->hops[t][i], back, links + at);
	TRY(NEW(g->ctx, link, at));
	memcpy(link, links, (size_t)at * sizeof *link);
	for (int i = 0; i < g->n - 1; i++) {
		const struct hop *hop = &g->hops[t][i];
		int n = add_links(g, hop, back, links), src = rank_of[hop->src], dst = rank_of[hop->dst];
		out[i] = (Edge){ turned ? dst : src, turned ? src : dst, n, link };
		link += n;
	}
	return OK;
}

/* Trees by their roots: first[r], and after tree t next[t]; -1. */
static Status
sort_trees(struct grower *g, int **first, int **next)
{
	TRY(TEMP(g->ctx, *first, g->n));
	TRY(TEMP(g->ctx, *next, g->n_trees));
	memset(*first, -1, (size_t)g->n * sizeof **first);
	for (int t = g->n_trees - 1; t >= 0; t--) {
		(*next)[t] = (*first)[g->of_root[t]];
		(*first)[g->of_root[t]] = t;
	}
	return OK;
}

/* Ranks, then further ways. */
static size_t
number_of(const struct grower *g, int way)
{
	return (size_t)(way < g->n ? way : way - g->net.topo->n_vertices + g->n);
}

static size_t
count_ways(const struct grower *g)
{
	return number_of(g, g->net.n_ways);
}

/* number[dst] of each hop of a tree: that of its edge. at: numbers of edges, by the ways of their hops; 0: it has none
 * yet, else one more. *good: there are few enough edges. */
static Status
number_edges(struct grower *g, int t, int *at, int *links, int *number, Packing *pack, bool *good)
{
	const int *rank_of = g->net.rank_of;
	for (int i = 0; i < g->n - 1; i++) {
		const struct hop *hop = &g->hops[t][i];
		int *of = &at[number_of(g, hop->src) * count_ways(g) + number_of(g, hop->dst)];
		int src = rank_of[hop->src], dst = rank_of[hop->dst];
		if (*of == 0) {
			int n = add_links(g, hop, false, links), *link;
			*good = pack->n_edges < LIMIT_TREE_EDGES;
			if (!*good)
				return OK;
			TRY(NEW(g->ctx, link, n));
			memcpy(link, links, (size_t)n * sizeof *link);
			pack->edge[pack->n_edges++] = (Edge){ g->into ? dst : src, g->into ? src : dst, n, link };
			*of = pack->n_edges;
		}
		number[dst] = *of - 1;
	}
	return OK;
}

/* The packing as numbered edges, where a list is too long. units: those of a block. *out: NULL: there are too many
 * edges. */
static Status
number_trees(struct grower *g, int units, Packing **out)
{
	Packing *pack;
	int *first, *next, *at, *now, *last, links[2 * LIMIT_ROUTE_LINKS];
	int64_t room = LIMIT_IN_LINKS;
	Frac length;
	bool good = true;
	TRY(sort_trees(g, &first, &next));
	TRY(TEMP(g->ctx, at, count_ways(g) * count_ways(g)));
	TRY(TEMP_EACH(g->ctx, g->n, now, last));
	TRY(NEW(g->ctx, pack, 1));
	TRY(NEW(g->ctx, pack->edge, LIMIT_TREE_EDGES));
	TRY(NEW(g->ctx, pack->in_tree, g->n_trees));
	pack->highest = true;
	for (int r = 0; good && r < g->n; r++)
		for (int t = first[r]; good && t >= 0; t = next[t]) {
			TRY(number_edges(g, t, at, links, now, pack, &good));
			if (!frac_make(g->weights[t], units, &length))
				return fail(g->ctx, INTERNAL, "%s: a part of a block", g->net.topo->name);
			if (good)
				TRY(pack_add_numbers(g->ctx, pack, r, g->n, now, length, last, &room, &good));
		}
	*out = good ? pack : NULL;
	return OK;
}

static Status
make_packing(struct grower *g, Frac unit, Packing **out)
{
	Packing *pack;
	Edge *there, *back;
	int *first, *next, *links;
	const Collective coll = g->both ? ALLREDUCE : g->into ? REDUCE : BROADCAST;
	TRY(TEMP_EACH(g->ctx, g->n, there, back));
	TRY(TEMP(g->ctx, links, (size_t)g->n * LIMIT_ROUTE_LINKS));
	TRY(sort_trees(g, &first, &next));
	const bool each = !g->both && g->only < 0;
	TRY(pack_new(g->ctx, g->n_trees, each, &pack));
	pack->unit = unit;
	for (int r = 0; r < g->n; r++)
		for (int t = first[r]; t >= 0; t = next[t]) {
			TRY(list_edges(g, t, false, links, there));
			if (g->both)
				TRY(list_edges(g, t, true, links, back));
			else if (each)
				pack->demand[pack->n_trees] = r;
			pack->weight[pack->n_trees] = g->weights[t];
			TRY(tree_arrange(g->ctx, g->n, coll, g->both ? -1 : r, there, g->both ? back : NULL, g->n - 1,
			    &pack->tree[pack->n_trees++]));
		}
	*out = pack;
	return pack_check(g->ctx, g->net.topo, pack);
}

/* ---- units ---- */

/* What links lose of their capacities, at most, where these are divided into whole units, k of them for the rate. Links
 * that all trees may pass do not count: capacities of `most` times the rate. */
static double
find_loss(const int64_t *capacity, int n, double rate, int k, double most)
{
	double worst = 0, unit = rate / k;
	for (int i = 0; i < n; i++) {
		double units = (double)capacity[i] / unit, lost = units - floor(units + 1e-9);
		if ((double)capacity[i] < most * rate && lost > worst * units)
			worst = lost / units;
	}
	return worst;
}

/* The least of an arc's links, if it is not in the list. */
static void
add_capacity(const struct grower *g, int arc, int64_t *capacity, int *n)
{
	const TreeNetwork *net = &g->net;
	int64_t least = INT64_MAX;
	int at = 0;
	for (int l = arc; l >= 0; l = net->next[l])
		least = net->topo->link[net->link[l]].capacity < least ? net->topo->link[net->link[l]].capacity : least;
	while (at < *n && capacity[at] != least)
		at++;
	if (arc < 0 || at < *n || *n > MOST_RATES)
		return;
	capacity[(*n)++] = least;
}

/* The fewest units, of `from` to `to`, by which arcs lose nothing, or else the least; 0: too many arcs differ. */
static void
choose_units(const struct grower *g, Frac rate, int from, int to, double most, int *out)
{
	const TreeNetwork *net = &g->net;
	int64_t capacity[MOST_RATES + 1];
	int n = 0;
	double least = 1;
	for (int v = 0; v < net->topo->n_vertices; v++)
		if (net->level[v] >= 0 && net->above[v] >= 0 && net->n_below[v] > 0) {
			add_capacity(g, net->rise[v], capacity, &n);
			add_capacity(g, net->fall[v], capacity, &n);
		}
	for (int r = 0; r < g->n; r++)
		if (net->end[net->server[r]] - net->first[net->server[r]] > 1) {
			add_capacity(g, net->to_switch[r], capacity, &n);
			add_capacity(g, net->from_switch[r], capacity, &n);
		}
	*out = 0;
	for (int k = from; k <= to && least > 0 && n <= MOST_RATES; k++) {
		double loss = find_loss(capacity, n, frac_double(rate), k, most);
		if (loss < least / 2) {
			*out = k;
			least = loss;
		}
	}
}

static bool
has_others(const struct grower *g, int v, int server)
{
	const TreeNetwork *net = &g->net;
	for (int i = 0; i < net->n_below[v]; i++)
		if (net->server[net->way[net->at[v] + i]] != server)
			return true;
	return false;
}

/* The first vertex of a way up that has other servers below; -1. */
static int
outside_of(const struct grower *g, int way)
{
	int v = g->net.above[way];
	while (v >= 0 && !has_others(g, v, g->net.server[way]))
		v = g->net.above[v];
	return v;
}

/* Units of all ways out of a server, or into it: those of ways that share links, one after the other. */
static int64_t
ways_of(struct grower *g, const int *arcs, int server, int64_t *units)
{
	const TreeNetwork *net = &g->net;
	int64_t all = 0;
	for (int i = net->first[server]; i < net->first[server + 1]; i++) {
		int w = net->member[i], top = outside_of(g, w);
		units[i] = top < 0 ? 0 : entering_left(g, arcs, w, top);
		entering_use(g, arcs, w, top < 0 ? w : top, units[i]);
		all += units[i];
	}
	for (int i = net->first[server]; i < net->first[server + 1]; i++) {
		int w = net->member[i], top = outside_of(g, w);
		entering_use(g, arcs, w, top < 0 ? w : top, -units[i]);
	}
	return all;
}

/* How many trees have their roots in a group: those that do not enter it. */
struct shares {
	int64_t all;		/* units */
	int64_t *into;		/* of each server: what may enter it */
};

static int
count_ranks(const struct grower *g, const Group *group)
{
	const TreeNetwork *net = &g->net;
	int c = group->child, n = 0;
	if (c < 0)
		return net->end[group->server] - net->first[group->server];
	for (int i = net->first_group[c]; i < net->first_group[c + 1]; i++)
		n += count_ranks(g, &net->group[i]);
	return n;
}

/* Units that have their roots in a group, at the least, as its links have no room for all trees to enter. */
static int64_t
need_of(const struct grower *g, const struct shares *s, const Group *group)
{
	const TreeNetwork *net = &g->net;
	int c = group->child;
	int64_t into = c < 0 ? s->into[group->server] : entering_left(g, net->fall, c, net->above[c]);
	int64_t need = 0, own = s->all - into;
	for (int i = c < 0 ? 0 : net->first_group[c]; c >= 0 && i < net->first_group[c + 1]; i++)
		need += need_of(g, s, &net->group[i]);
	return own > need ? own : need;
}

/* Each group gets what it needs, and of the rest a part like that of its ranks. False: there is too little. */
static bool
share_among(struct grower *g, const struct shares *s, const Group *group, int n, int64_t units)
{
	const TreeNetwork *net = &g->net;
	int64_t rest = units, given = 0;
	int ranks = 0, sum = 0;
	bool good = true;
	for (int i = 0; i < n; i++) {
		rest -= need_of(g, s, &group[i]);
		ranks += count_ranks(g, &group[i]);
	}
	good = rest >= 0;
	for (int i = 0; good && i < n; i++) {
		int c = group[i].child, r = count_ranks(g, &group[i]);
		sum += r;
		int64_t more = (int64_t)((Wide)rest * sum / ranks) - given, all = need_of(g, s, &group[i]) + more;
		given += more;
		if (c >= 0)
			good = share_among(g, s, &net->group[net->first_group[c]],
			    net->first_group[c + 1] - net->first_group[c], all);
		for (int k = 0; c < 0 && k < r; k++)
			g->own[net->member[net->first[group[i].server] + k]] = all / r + (k < all % r);
	}
	return good;
}

/* Trees of an allgather that an allreduce uses in both directions: in each server, and below each switch, there are
 * enough roots that all trees with other roots have room to enter. On several networks, as rails, servers alone count.
 * *good: false: together these need more roots than there are trees. */
static Status
share_roots(struct grower *g, int64_t units, int64_t *used, bool *good)
{
	const TreeNetwork *net = &g->net;
	struct shares s = { .all = units };
	Group *servers;
	TRY(TEMP(g->ctx, s.into, net->n_servers));
	TRY(TEMP(g->ctx, servers, net->n_servers));
	for (int k = 0; k < net->n_servers; k++) {
		s.into[k] = ways_of(g, net->fall, k, used);
		servers[k] = (Group){ -1, k };
	}
	int top = net->n_tops == 1 ? net->top[0] : -1;
	if (top >= 0 && count_ranks(g, &(Group){ top, -1 }) == g->n)
		*good = share_among(g, &s, &net->group[net->first_group[top]],
		    net->first_group[top + 1] - net->first_group[top], units);
	else
		*good = share_among(g, &s, servers, net->n_servers, units);
	return OK;
}

/* Of an allreduce: each server has trees of its own in proportion to what its ways have when all trees entered it once,
 * and its ranks have these in turn. */
static Status
share_units(struct grower *g, int64_t units)
{
	const TreeNetwork *net = &g->net;
	int64_t *more, all = 0, given = 0;
	TRY(TEMP(g->ctx, more, net->n_servers));
	for (int s = 0; s < net->n_servers; s++) {
		more[s] = g->pool[s] > units ? g->pool[s] - units : 0;
		all += more[s];
	}
	/* Server s gets what it should together with those before it, less what these have. */
	for (int64_t s = 0, sum = 0; s < net->n_servers; s++) {
		sum += more[s];
		int64_t now = all > 0 ? (int64_t)((Wide)units * sum / all) - given : 0;
		int n = net->end[s] - net->first[s];
		for (int i = 0; i < n; i++)
			g->own[net->member[net->first[s] + i]] = now / n + (i < now % n);
		given += now;
	}
	return OK;
}

static Status
grow_roots(struct grower *g, Frac rate, int units, bool *good)
{
	const Topology *topo = g->net.topo;
	const TreeNetwork *net = &g->net;
	int64_t *used;
	TRY(TEMP(g->ctx, used, count_ways(g)));
	TRY(TEMP(g->ctx, g->needs, net->n_ways));
	TRY(TEMP_EACH(g->ctx, g->n, g->own, g->times, g->holds, g->depth, g->holder, g->held, g->hop));
	TRY(TEMP(g->ctx, g->left, topo->n_links));
	TRY(TEMP_EACH(g->ctx, net->n_servers, g->entered, g->pool));
	TRY(TEMP(g->ctx, g->turn, net->first_group[topo->n_vertices]));
	TRY(TEMP_EACH(g->ctx, g->most, g->of_root, g->weights, g->hops));
	for (int l = 0; l < topo->n_links; l++)
		g->left[l] = (int64_t)((Wide)topo->link[l].capacity * rate.den * units / rate.num);
	for (int r = 0; r < g->n; r++)
		g->own[r] = g->only < 0 || r == g->only ? units : 0;
	for (int s = 0; s < net->n_servers; s++)
		g->pool[s] = ways_of(g, net->rise, s, used);
	*good = true;
	if (g->both)
		TRY(share_units(g, units));
	else if (g->shared)
		TRY(share_roots(g, units, used, good));
	if (!*good)
		return OK;
	TRY(count_times(g));
	for (int r = 0; r < g->n; r++) {
		g->ahead += g->own[r];
		g->pool[net->server[r]] -= g->both ? g->needs[r] : g->own[r];
	}
	/* The first ranks of all servers, the second ones, and so on. */
	*good = g->ahead > 0;
	for (int k = 0, n = 1; *good && n > 0; k++) {
		n = 0;
		for (int s = 0; *good && s < net->n_servers; s++) {
			int at = net->first[s] + k;
			if (at >= net->end[s])
				continue;
			n++;
			int64_t own = g->own[net->member[at]], each = g->only < 0 ? own : 1;
			for (int64_t i = 0; *good && i < own; i += each)
				TRY(grow_all(g, net->member[at], each, good));
		}
	}
	return OK;
}

static Status
pack_units(struct grower *g, Frac rate, int from, int to, Packing **out)
{
	int units = 0;
	Frac unit;
	bool good;
	*out = NULL;
	g->n_trees = 0;
	g->ahead = 0;
	choose_units(g, rate, from, to, g->both ? 2 : g->shared || g->only >= 0 ? 1 : g->n, &units);
	if (units == 0 || !frac_mul(rate, (Frac){ 1, units }, &unit))
		return OK;
	TRY(grow_roots(g, rate, units, &good));
	return !good ? OK : g->listed ? make_packing(g, unit, out) : number_trees(g, units, out);
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
		.only = collective_rooted(coll) ? root : -1, .n = n, .listed = listed, .deep = DEEP
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
		g.fair = g.net.n_tops > 1 && (i > 0 || g.only >= 0);
		g.deep = i <= 1 ? DEEP : 0;
		g.passed = g.only >= 0 || (i == TRIES - 1 && !g.both);
		if (g.only >= 0)
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
