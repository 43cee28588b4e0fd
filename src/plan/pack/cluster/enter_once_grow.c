/* One tree that enters each server once: which GPU sends to which (enter_once.c). */
#include "plan/pack/cluster/enter_once_grow.h"

#include <stdlib.h>
#include <string.h>

enum { FAIR = 4 };	/* fifths of what any other uplink of the server has left that an uplink must have left */

/* ---- links ---- */

int64_t
entering_left(const struct grower *g, const int *arcs, int way, int top)
{
	int64_t least = INT64_MAX;
	for (int v = way; v != top; v = g->net.above[v])
		for (int l = arcs[v]; l >= 0; l = g->net.next[l])
			least = g->left[g->net.link[l]] < least ? g->left[g->net.link[l]] : least;
	return least;
}

void
entering_use(struct grower *g, const int *arcs, int way, int top, int64_t units)
{
	for (int v = way; v != top; v = g->net.above[v])
		for (int l = arcs[v]; l >= 0; l = g->net.next[l])
			g->left[g->net.link[l]] -= units;
}

int
entering_meet(const struct grower *g, int a, int b)
{
	const TreeNetwork *net = &g->net;
	while (a != b && a >= 0 && b >= 0) {
		int down = net->level[b] >= net->level[a] ? b : a;
		int up = net->above[down];
		a = down == a ? up : a;
		b = down == b ? up : b;
	}
	return a == b ? a : -1;
}

bool
entering_is_below(const struct grower *g, int way, int v)
{
	int place = g->net.place[way];
	return place >= g->net.at[v] && place < g->net.at[v] + g->net.n_below[v];
}

/* Units of a server's ways that this tree may use: each later one of its own ranks has to leave it, and each later one
 * of an allreduce has to enter it, over the same links. */
static int64_t
left_for_others(const struct grower *g, int server)
{
	int64_t own = server == g->net.server[g->root] ? g->weight : 0;
	return g->pool[server] + (g->both ? -g->ahead : own);
}

/* Arcs of a rank, and on from inside of its server. */
static bool
is_inner(const struct grower *g, int v)
{
	return v >= 0 && (v < g->n || g->net.topo->vertex[v].node >= 0);
}

void
entering_need(struct grower *g, int root, int64_t units)
{
	for (int v = root; is_inner(g, v); v = g->net.above[v])
		g->needs[v] += units;
}

/* Units of a way up to a vertex that its rank may use for trees of other roots. */
static int64_t
spare(const struct grower *g, int way, int top)
{
	const TreeNetwork *net = &g->net;
	int rank = net->rank_of[way];
	int64_t own = g->needs[g->root], least = left_for_others(g, net->server[way]);
	for (int v = way; v != top; v = net->above[v]) {
		int64_t needs = g->needs[v] - (entering_is_below(g, g->root, v) && is_inner(g, v) ? own : 0);
		int64_t left = entering_left(g, net->rise, v, net->above[v]) - needs;
		least = left < least ? left : least;
	}
	if (way != rank && net->rise[rank] >= 0) {
		int64_t first = g->left[net->link[net->rise[rank]]] - (rank == g->root ? 0 : g->needs[rank]);
		least = first < least ? first : least;
	}
	return least;
}

static void
use_one_way(struct grower *g, const struct hop *hop, bool back, int64_t units)
{
	const TreeNetwork *net = &g->net;
	int src = back ? hop->dst : hop->src, dst = back ? hop->src : hop->dst;
	if (hop->inside) {
		g->left[net->to_switch[src]] -= units;
		g->left[net->from_switch[dst]] -= units;
		return;
	}
	int top = entering_meet(g, src, dst);
	entering_use(g, net->rise, src, top, units);
	entering_use(g, net->fall, dst, top, units);
}

static void
use(struct grower *g, const struct hop *hop, int64_t units)
{
	use_one_way(g, hop, false, units);
	if (g->both)
		use_one_way(g, hop, true, units);
	if (!hop->inside) {
		g->pool[g->net.server[hop->src]] -= units;
		g->pool[g->net.server[hop->dst]] -= g->both ? units : 0;
	}
}

static void
add_hop(struct grower *g, int src, int dst, bool inside)
{
	const int *rank_of = g->net.rank_of;
	struct hop *hop = &g->hop[g->n_hops++];
	*hop = (struct hop){ src, dst, inside };
	g->depth[rank_of[dst]] = g->depth[rank_of[src]] + 1;
	use(g, hop, g->weight);
}

static void
hold(struct grower *g, int rank)
{
	g->holds[rank] = true;
	g->held[rank] = g->n_holders;
	g->holder[g->n_holders++] = rank;
}

/* Units that a rank may send in its server: the only root of all trees needs one for each later one. */
static int64_t
left_inside(const struct grower *g, int rank)
{
	return g->left[g->net.to_switch[rank]] - (rank == g->sole_root ? g->ahead : 0);
}

static bool
reaches_all(const struct grower *g, int rank)
{
	int s = g->net.server[rank], n = g->net.end[s] - g->net.first[s];
	return n == 1 || left_inside(g, rank) >= (n - 1) * g->weight;
}

/* May a rank send to all others of its server, or, where that is enough, with others that pass it on? */
static bool
has_room_inside(const struct grower *g, int rank)
{
	const TreeNetwork *net = &g->net;
	int s = net->server[rank], n = net->end[s] - net->first[s];
	int64_t all = 0;
	bool room = true;
	for (int i = net->first[s]; n > 1 && room && i < net->end[s]; i++) {
		int r = net->member[i];
		room = r == rank || g->left[net->from_switch[r]] >= g->weight;
		all += left_inside(g, r) / g->weight;
	}
	bool relayed = n > 1 && g->relaxed && g->relayed && left_inside(g, rank) >= g->weight && all >= n - 1;
	return room && (relayed || reaches_all(g, rank));
}

/* Of the ranks of a server that hold the data, or do not, the one that may send most; -1: none. */
static int
widest_inside(const struct grower *g, int server, bool holds)
{
	const TreeNetwork *net = &g->net;
	int best = -1;
	for (int i = net->first[server]; i < net->end[server]; i++) {
		int r = net->member[i];
		if (g->holds[r] == holds && (best < 0 || left_inside(g, r) > left_inside(g, best)))
			best = r;
	}
	return best;
}

/* Its first rank sends to all others, if it can; else each that has the data, to those that may pass on most first. */
static void
fill_server(struct grower *g, int rank)
{
	const TreeNetwork *net = &g->net;
	int s = net->server[rank];
	bool star = reaches_all(g, rank);
	g->entered[s] = true;
	hold(g, rank);
	for (int i = net->first[s], r; star && i < net->end[s]; i++)
		if ((r = net->member[i]) != rank) {
			add_hop(g, rank, r, true);
			hold(g, r);
		}
	for (int r; !star && (r = widest_inside(g, s, false)) >= 0;) {
		add_hop(g, widest_inside(g, s, true), r, true);
		hold(g, r);
	}
}

/* ---- a tree ---- */

/* Of several networks, as rails: has a way into a server nearly as much left as its other ones? */
static bool
is_fair(const struct grower *g, int way, int64_t left)
{
	const TreeNetwork *net = &g->net;
	bool fair = true;
	const int s = net->server[way];
	for (int i = net->first[s]; fair && i < net->first[s + 1]; i++) {
		int w = net->member[i], top = w;
		while (net->above[top] >= 0)
			top = net->above[top];
		fair = w == top || left * (FAIR + 1) >= entering_left(g, net->fall, w, top) * FAIR;
	}
	return fair;
}

/* The way by which a tree enters a server from a vertex; -1: none has room. */
static int
entry_of(const struct grower *g, int server, int top)
{
	const TreeNetwork *net = &g->net;
	int best = -1;
	int64_t most = g->weight - 1;
	for (int i = net->first[server]; i < net->first[server + 1]; i++) {
		int w = net->member[i];
		int64_t left = entering_is_below(g, w, top) ? entering_left(g, net->fall, w, top) : -1;
		if (left > most && has_room_inside(g, net->rank_of[w]) && (g->relaxed || is_fair(g, w, left))) {
			best = w;
			most = left;
		}
	}
	return best;
}

/* Ways up of all ranks of a server, as far as a vertex. */
static int64_t
spare_of_server(const struct grower *g, int server, int top)
{
	const TreeNetwork *net = &g->net;
	int64_t sum = 0;
	for (int i = net->first[server]; i < net->first[server + 1]; i++)
		sum += entering_is_below(g, net->member[i], top) ? spare(g, net->member[i], top) : 0;
	return sum;
}

/* By which way a group is entered from a vertex; -1: none. */
static int
choose_entry(const struct grower *g, const Group *group, int top)
{
	const TreeNetwork *net = &g->net;
	int best = -1;
	int64_t most = 0;
	if (group->child < 0)
		return entry_of(g, group->server, top);
	for (int i = 0, last = -1; i < net->n_below[group->child]; i++) {
		int s = net->server[net->way[net->at[group->child] + i]];
		if (s == last || g->entered[s])
			continue;
		last = s;
		int w = entry_of(g, s, top);
		int64_t sum = w < 0 ? 0 : spare_of_server(g, s, group->child);
		if (w >= 0 && (best < 0 || sum > most)) {
			best = w;
			most = sum;
		}
	}
	return best;
}

static int64_t
worse(const struct grower *g, int rank)
{
	return g->deep * g->depth[rank] * g->weight;
}

struct sender {
	int way;		/* -1: none yet */
	int64_t worth;
};

/* A way to a vertex, if it has enough to spare, in place of one that has less, or is deeper, or comes later. */
static void
weigh(const struct grower *g, int way, int top, struct sender *best)
{
	const TreeNetwork *net = &g->net;
	int r = net->rank_of[way], other = best->way < 0 ? r : net->rank_of[best->way];
	int64_t left = spare(g, way, top), worth = left - worse(g, r);
	bool earlier = g->held[r] != g->held[other] ? g->held[r] < g->held[other]
	    : best->way < 0 || net->place[way] < net->place[best->way];
	if (left >= g->weight && (worth > best->worth || (worth == best->worth && earlier)))
		*best = (struct sender){ way, worth };
}

/* Of the ways of the first n holders to a vertex one with much to spare that is not deep; -1: none has enough. */
static int
choose_among(const struct grower *g, int n, int top)
{
	const TreeNetwork *net = &g->net;
	struct sender best = { -1, INT64_MIN };
	bool few = n < net->n_below[top];
	for (int k = 0; few && k < n; k++)
		for (int w = g->holder[k]; w >= 0; w = net->more[w])
			if (entering_is_below(g, w, top))
				weigh(g, w, top, &best);
	for (int i = 0; !few && i < net->n_below[top]; i++) {
		int w = net->way[net->at[top] + i], r = net->rank_of[w];
		if (g->holds[r] && g->held[r] < n)
			weigh(g, w, top, &best);
	}
	return best.way;
}

/* The root, one of the first n holders, or any; -1. */
static int
choose_sender(const struct grower *g, int n, int top)
{
	if (entering_is_below(g, g->root, top) && entering_left(g, g->net.rise, g->root, top) >= g->weight
	    && (g->both || left_for_others(g, g->net.server[g->root]) >= g->weight))
		return g->root;
	int best = choose_among(g, n, top);
	return best >= 0 ? best : choose_among(g, g->n_holders, top);
}

static bool
is_entered(const struct grower *g, const Group *group)
{
	const TreeNetwork *net = &g->net;
	if (group->child < 0)
		return g->entered[group->server];
	for (int i = 0; i < net->n_below[group->child]; i++)
		if (g->holds[net->rank_of[net->way[net->at[group->child] + i]]])
			return true;
	return false;
}

/* Units left of the ways down from a vertex, into servers. */
static int64_t
left_below(const struct grower *g, int v)
{
	const TreeNetwork *net = &g->net;
	int64_t sum = 0;
	for (int i = 0, w; i < net->n_below[v]; i += net->n_below[w]) {
		w = net->way[net->at[v] + i];
		while (net->above[w] != v && is_inner(g, net->above[w]))
			w = net->above[w];
		sum += g->left[net->link[net->fall[w]]];
	}
	return sum;
}

static int
compare_keys(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

/* The groups of a vertex in turn: first those with most left of the way down to them, or to the ranks below them, as
 * of the leaf switches of several rails. Where one root has all trees, servers that may send most come first. */
static const struct turn *
take_turns(const struct grower *g, int v, bool inside, int *n)
{
	const TreeNetwork *net = &g->net;
	struct turn *turn = g->turn + net->first_group[v];
	*n = net->first_group[v + 1] - net->first_group[v];
	for (int i = 0; i < *n; i++) {
		int c = net->group[net->first_group[v] + i].child, s = net->group[net->first_group[v] + i].server;
		int64_t alone = c < 0 && g->sole_root >= 0 ? g->pool[s] : 0;
		turn[i] = (struct turn){ c < 0 ? alone : inside ? left_below(g, c) : g->left[net->fall[c]],
		    net->first_group[v] + i };
	}
	qsort(turn, (size_t)*n, sizeof *turn, compare_keys);
	return turn;
}

/* From what holds the data below a vertex to all groups there, then in each. What has no room is left out. */
static void
spread(struct grower *g, int v)
{
	const TreeNetwork *net = &g->net;
	int n_groups, n = g->n_holders;
	const struct turn *turn = take_turns(g, v, false, &n_groups);
	for (int i = 0; i < n_groups; i++) {
		const Group *group = &net->group[turn[i].group];
		int to = is_entered(g, group) ? -1 : choose_entry(g, group, v);
		int from = to < 0 ? -1 : choose_sender(g, n, v);
		if (from < 0)
			continue;
		add_hop(g, from, to, false);
		fill_server(g, net->rank_of[to]);
	}
	turn = take_turns(g, v, true, &n_groups);
	for (int i = 0; i < n_groups; i++)
		if (net->group[turn[i].group].child >= 0 && is_entered(g, &net->group[turn[i].group]))
			spread(g, net->group[turn[i].group].child);
}

/* Like that, of all ways of holders that have room to a way down; where none has enough to spare, one that has least
 * too little. -1: none. *left: the least of the way down. */
static int
find_sender(const struct grower *g, int to, int64_t *left)
{
	const TreeNetwork *net = &g->net;
	int best = -1;
	int64_t most = 0;
	for (int k = 0; k < g->n_holders; k++)
		for (int w = g->holder[k]; w >= 0; w = net->more[w]) {
			int top = entering_meet(g, w, to);
			if (top < 0 || entering_left(g, net->rise, w, top) < g->weight
			    || entering_left(g, net->fall, to, top) < g->weight)
				continue;
			int64_t has = spare(g, w, top), less = worse(g, g->holder[k]);
			if (!g->both && left_for_others(g, net->server[w]) < g->weight)
				continue;
			has = has >= g->weight ? has - less : has - INT32_MAX * g->weight;
			if (best < 0 || has > most) {
				best = w;
				most = has;
				*left = entering_left(g, net->fall, to, top);
			}
		}
	return best;
}

/* A server that was left out, from any holder, by the way that has most left, of one root's trees from the least deep
 * holder. */
static bool
enter_late(struct grower *g, int server)
{
	const TreeNetwork *net = &g->net;
	int src = -1, dst = -1;
	int64_t most = -1, left = 0;
	for (int i = net->first[server]; i < net->first[server + 1]; i++) {
		int w = net->member[i], from = has_room_inside(g, net->rank_of[w]) ? find_sender(g, w, &left) : -1;
		bool nearer = g->sole_root >= 0 && src >= 0 && from >= 0 && left == most
		    && g->depth[net->rank_of[from]] < g->depth[net->rank_of[src]];
		if (from >= 0 && (left > most || nearer)) {
			most = left;
			src = from;
			dst = w;
		}
	}
	if (src < 0)
		return false;
	add_hop(g, src, dst, false);
	fill_server(g, net->rank_of[dst]);
	return true;
}

/* A server that was left out: the first, or of one root's trees the one that may send most; -1: there is none. */
static int
choose_late(const struct grower *g)
{
	int best = -1;
	for (int s = 0; s < g->net.n_servers; s++)
		if (!g->entered[s] && (best < 0 || (g->sole_root >= 0 && g->pool[s] > g->pool[best])))
			best = s;
	return best;
}

/* Of several networks, as rails, the one whose ways down to ranks have most left comes first. */
static int
choose_network(const struct grower *g)
{
	const TreeNetwork *net = &g->net;
	int best = 0;
	for (int i = 1; i < net->n_tops; i++)
		best = left_below(g, net->top[i]) > left_below(g, net->top[best]) ? i : best;
	return best;
}

bool
entering_grow(struct grower *g, int root, int64_t weight)
{
	const TreeNetwork *net = &g->net;
	g->root = root;
	g->depth[root] = 0;
	g->weight = weight;
	g->ahead -= weight;
	g->n_hops = g->n_holders = 0;
	memset(g->entered, 0, (size_t)net->n_servers * sizeof *g->entered);
	memset(g->holds, 0, (size_t)g->n * sizeof *g->holds);
	g->relaxed = true;
	bool good = has_room_inside(g, root);
	if (good)
		fill_server(g, root);
	/* From one root on several networks, as rails, servers come one by one: those that may send most first. */
	int passes = !g->fair ? net->n_tops : g->sole_root >= 0 ? 0 : 2 * net->n_tops;
	for (int i = 0, first = choose_network(g); good && i < passes; i++) {
		g->relaxed = !g->fair || i >= net->n_tops;
		spread(g, net->top[(i + first) % net->n_tops]);
	}
	g->relaxed = true;
	for (int s; good && (s = choose_late(g)) >= 0;)
		good = enter_late(g, s);
	for (int i = 0; !good && i < g->n_hops; i++)
		use(g, &g->hop[i], -weight);
	g->ahead += good ? 0 : weight;
	return good;
}
