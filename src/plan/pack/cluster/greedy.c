/* Broadcast and reduce over many servers at the bound, by few trees of equal rate, bound / K each, built one after
 * the other. The root breaks the symmetry of servers, so the linear program is large; but where each server has a few
 * NICs and a tree has to enter each server just once, a simple greedy choice has enough freedom.
 *
 * A link has floor(capacity * K / bound) slots, and each route through it takes one. A tree grows from the root by
 * the shortest routes that have slots: inside servers first, then from server to server behind one leaf switch, and
 * to other leaf switches only when nothing nearer is left; of ranks that could send the one that was reached first
 * does. It sends to the server, behind other leaf switches to the group of servers, with the most slots left: so
 * those that can forward are reached early, and those whose slots are used up become leaves of the tree. In one tree
 * some servers send, in the next tree others:
 *
 *     2 NICs, each half as fast as the bound; K = 2:     tree 1   root -> a -> b, c     c -> d, e ...
 *                                                        tree 2   root -> d -> e, b     e -> a, c ...
 *
 * The slots of servers behind one leaf switch are reserved for them: each later tree enters all but one of them from
 * within the group, and leaves the group of the root at least once. A server is entered a second time only if its
 * ranks are not reached otherwise. With a larger K trees are less deep. All trees fit by construction, and together
 * they have the rate of the bound, which is optimal; where some tree cannot reach all ranks, the linear program is
 * used instead. */
#include "base/heap.h"
#include "graph/homes.h"
#include "graph/search.h"
#include "plan/pack/cluster/cluster.h"

#include <limits.h>
#include <string.h>

enum {
	MOST_TREES = 64,
	MOST_LEVELS = 6,
	MOST_SLOTS = 1 << 16,	/* of a link: all ranks' trees have no more */
	TRIES = 4,		/* K, 2 K, 4 K ... */
	MOST_WORK = 1 << 28	/* trees times pairs of ranks of one try: a few seconds */
};

/* Price of a link without slots: more than any route with some. */
#define NO_SLOTS (INT64_C(1) << 36)

struct greedy {
	Ctx *ctx;
	const Topology *topo;
	bool into;		/* reduce: hops lead to the root */
	int root;
	Search search;
	int *slots;		/* of each link: free slots */
	int *node_of;		/* of each vertex: graph/homes.h; -1: in none */
	int n_nodes;
	/* Groups of servers that are connected by routes of at most n_links links; level 0 is the servers themselves.
	 * Of each group: */
	int n_levels;
	struct level {
		int n_links, *group;	/* of each server: its group */
		int *n_servers, *n_missing;	/* servers in it; and those that the current tree has not entered */
		int64_t *slots;		/* free slots of links that leave (enter) its servers */
	} level[MOST_LEVELS];
	int64_t *rank_slots;	/* likewise of single ranks */
	int stop_at;		/* ms that must be left to go on */
	Packing *incomplete;	/* the best of those with too few trees; NULL: none */
	bool by_rank;		/* of equal routes: the one to the rank with the most free slots */
	int n_later;		/* trees after this one */
	int most_depth;		/* deeper trees would not be taken */
	bool *reached, *entered;	/* ranks; servers */
	int *missing, n_missing;	/* ranks that were not reached when they were last looked at, ascending */
	int *queue, tail;
	int *heap;		/* places in the queue, by the nearest route on, then as they are there */
	int *length;		/* links of the shortest route between two servers; 0: the same server, or none */
	int *nearest;		/* of each rank: no route on from it has fewer links; INT_MAX: there is none */
	Edge *edge;		/* to each rank, in the current tree */
	int *depth;		/* its hops from (to) the root */
	int64_t *price;
};

/* ---- groups ---- */

static Status
new_level(struct greedy *g, int n_links)
{
	struct level *level = &g->level[g->n_levels++];
	level->n_links = n_links;
	TRY(TEMP(g->ctx, level->group, g->n_nodes));
	TRY(TEMP(g->ctx, level->n_servers, g->n_nodes));
	TRY(TEMP(g->ctx, level->n_missing, g->n_nodes));
	TRY(TEMP(g->ctx, level->slots, g->n_nodes));
	for (int s = 0; s < g->n_nodes; s++)
		level->group[s] = s;
	return OK;
}

static void
join_groups(const struct greedy *g, struct level *level, int s, int t)
{
	int to = level->group[s], from = level->group[t];
	for (int i = 0; i < g->n_nodes && from != to; i++)
		level->group[i] = level->group[i] == from ? to : level->group[i];
}

/* Groups of servers by the number of links between them, the nearest first, until one group is left. */
static Status
find_groups(struct greedy *g)
{
	int n = g->topo->n_ranks, *length, beyond = 0, n_groups, h;
	TRY(TEMP(g->ctx, length, (size_t)n * (size_t)n));
	g->length = length;
	/* The cost of a route is the number of its links. */
	for (int l = 0; l < g->topo->n_links; l++)
		g->price[l] = 1;
	search_price(&g->search, g->price);
	for (int u = 0; u < n; u++)
		for (int v = 0; v < n; v++)
			if (g->node_of[u] != g->node_of[v] && (h = search_cheapest_hop(&g->search, u, v)) >= 0)
				length[(size_t)u * (size_t)n + (size_t)v] = (int)g->search.hop[h].cost;
	TRY(new_level(g, 0));
	do {
		int next = INT_MAX;
		for (size_t i = 0; i < (size_t)n * (size_t)n; i++)
			if (length[i] > beyond && length[i] < next)
				next = length[i];
		if (next == INT_MAX)
			break;
		TRY(new_level(g, next));
		struct level *level = &g->level[g->n_levels - 1];
		for (size_t i = 0; i < (size_t)n * (size_t)n; i++)
			if (length[i] > 0 && length[i] <= next)
				join_groups(g, level, g->node_of[i / (size_t)n], g->node_of[i % (size_t)n]);
		n_groups = 0;
		for (int s = 0; s < g->n_nodes; s++)
			n_groups += level->group[s] == s;
		beyond = next;
	} while (n_groups > 1 && g->n_levels < MOST_LEVELS);
	for (int i = 0; i < g->n_levels; i++)
		for (int s = 0; s < g->n_nodes; s++)
			g->level[i].n_servers[g->level[i].group[s]]++;
	return OK;
}

/* ---- routes ---- */

/* A route from a rank to rank v, with the least number of free slots on its links. */
struct route {
	int v, n_links, slots;
	int link[LIMIT_ROUTE_LINKS];
};

/* False: there is none with a free slot on every link. */
static bool
route_to(const struct greedy *g, int u, int v, struct route *route)
{
	int h = g->into ? search_cheapest_hop(&g->search, v, u) : search_cheapest_hop(&g->search, u, v);
	if (h < 0 || g->search.hop[h].cost < 0 || g->search.hop[h].cost >= NO_SLOTS
	    || g->slots[g->search.hop[h].link] < 1)
		return false;
	route->v = v;
	route->n_links = search_route(&g->search, h, route->link);
	route->slots = INT_MAX;
	for (int i = 0; i < route->n_links; i++)
		route->slots = g->slots[route->link[i]] < route->slots ? g->slots[route->link[i]] : route->slots;
	return route->n_links > 0 && route->slots > 0;
}

/* May u send to v? Slots that later trees, and the rest of this one, need inside a group do not leave it. */
static bool
may_send(const struct greedy *g, int u, int v)
{
	if (u == g->root && g->rank_slots[u] <= g->n_later)
		return false;
	for (int i = 0; i < g->n_levels; i++) {
		const struct level *level = &g->level[i];
		int group = level->group[g->node_of[u]];
		if (group == level->group[g->node_of[v]])
			return true;
		int64_t keep = (int64_t)(level->n_servers[group] - 1) * g->n_later + level->n_missing[group];
		if (group == level->group[g->node_of[g->root]])
			keep += g->n_later;
		if (level->slots[group] <= keep)
			return false;
	}
	return true;
}

static bool
stays_inside(const struct greedy *g, const struct route *route, int node)
{
	for (int i = 0; i < route->n_links; i++)
		if (g->node_of[g->topo->link[route->link[i]].from] != node
		    || g->node_of[g->topo->link[route->link[i]].to] != node)
			return false;
	return true;
}

/* Above 0: of the groups without u, that of v has more free slots than that of w. */
static int
compare_groups(const struct greedy *g, int u, int v, int w)
{
	for (int i = g->n_levels - 1; i >= 0; i--) {
		const struct level *level = &g->level[i];
		int p = level->group[g->node_of[v]], q = level->group[g->node_of[w]], own = level->group[g->node_of[u]];
		if (p != own && q != own && level->slots[p] != level->slots[q])
			return level->slots[p] > level->slots[q] ? 1 : -1;
	}
	return 0;
}

static bool
is_better(const struct greedy *g, int u, const struct route *a, const struct route *b)
{
	if (a->n_links != b->n_links)
		return a->n_links < b->n_links;
	int order = compare_groups(g, u, a->v, b->v);
	if (order)
		return order > 0;
	int by_route = (a->slots > b->slots) - (a->slots < b->slots);
	int by_rank = (g->rank_slots[a->v] > g->rank_slots[b->v]) - (g->rank_slots[a->v] < g->rank_slots[b->v]);
	if (g->by_rank)
		return (by_rank ? by_rank : by_route) > 0;
	return (by_route ? by_route : by_rank) > 0;
}

/* again: servers that were entered may be entered once more. best->v: -1: there is no route. */
static void
best_route(struct greedy *g, int u, bool again, struct route *best)
{
	struct route route;
	int node = g->node_of[u], n = g->topo->n_ranks, n_missing = g->n_missing;
	best->v = -1;
	g->n_missing = 0;
	for (int i = 0; i < n_missing; i++) {
		int v = g->missing[i];
		if (g->reached[v])
			continue;
		g->missing[g->n_missing++] = v;
		if (!again && g->entered[g->node_of[v]] && g->node_of[v] != node)
			continue;
		/* Most routes are worse than the best without a look at their links. */
		int length = g->length[(size_t)(g->into ? v : u) * (size_t)n + (size_t)(g->into ? u : v)];
		if (best->v >= 0 && (length > best->n_links
		    || (length == best->n_links && compare_groups(g, u, v, best->v) < 0)))
			continue;
		if (may_send(g, u, v) && route_to(g, u, v, &route)
		    && (again || g->node_of[v] != node || stays_inside(g, &route, node))
		    && (best->v < 0 || is_better(g, u, &route, best)))
			*best = route;
	}
}

static Status
add_route(struct greedy *g, int u, const struct route *route)
{
	int *link, node = g->node_of[route->v];
	TRY(NEW(g->ctx, link, route->n_links));
	memcpy(link, route->link, (size_t)route->n_links * sizeof *link);
	for (int i = 0; i < route->n_links; i++) {
		const Link *l = &g->topo->link[link[i]];
		int near = g->node_of[g->into ? l->to : l->from], far = g->node_of[g->into ? l->from : l->to];
		g->slots[link[i]]--;
		if ((g->into ? l->to : l->from) < g->topo->n_ranks)
			g->rank_slots[g->into ? l->to : l->from]--;
		for (int k = 0; k < g->n_levels && near >= 0 && near != far; k++)
			g->level[k].slots[g->level[k].group[near]]--;
	}
	for (int k = 0; k < g->n_levels && !g->entered[node]; k++)
		g->level[k].n_missing[g->level[k].group[node]]--;
	g->edge[route->v] = (Edge){ g->into ? route->v : u, g->into ? u : route->v, route->n_links, link };
	g->depth[route->v] = g->depth[u] + 1;
	g->reached[route->v] = g->entered[node] = true;
	g->nearest[route->v] = 0;
	g->queue[g->tail++] = route->v;
	return OK;
}

static bool
is_nearer(const struct greedy *g, int a, int b)
{
	int x = g->nearest[g->queue[a]], y = g->nearest[g->queue[b]];
	return x < y || (x == y && a < b);
}

HEAP(heap_put, const struct greedy, int, is_nearer, HEAP_UNMOVED)

/* From ranks that were reached: the shortest route, from the first rank that has it. Ends at ranks that are too
 * deep. */
static Status
spread(struct greedy *g, bool again)
{
	for (int i = 0; i < g->tail; i++) {
		g->nearest[g->queue[i]] = 0;
		g->heap[i] = i;
	}
	while (g->tail < g->topo->n_ranks) {
		struct route best;
		int u = g->queue[g->heap[0]];
		if (g->nearest[u] == INT_MAX || g->depth[g->queue[g->tail - 1]] > g->most_depth)
			return OK;
		best_route(g, u, again, &best);
		if (best.v >= 0 && best.n_links <= g->nearest[u]) {
			TRY(add_route(g, u, &best));
			heap_put(g, g->heap, g->tail, g->tail - 1, g->tail - 1);
			continue;
		}
		g->nearest[u] = best.v < 0 ? INT_MAX : best.n_links;
		heap_put(g, g->heap, g->tail, 0, g->heap[0]);
	}
	return OK;
}

/* ---- trees ---- */

/* The fewer slots a link has left, the higher its price. */
static void
price_slots(struct greedy *g)
{
	for (int l = 0; l < g->topo->n_links; l++)
		g->price[l] = 1 + (g->slots[l] > 0 ? (INT64_C(1) << 28) / g->slots[l] : NO_SLOTS);
	search_price(&g->search, g->price);
}

static Status
grow_tree(struct greedy *g, Tree *out, bool *whole)
{
	const Topology *topo = g->topo;
	Edge *edge;
	price_slots(g);
	memset(g->reached, 0, (size_t)topo->n_ranks * sizeof *g->reached);
	memset(g->entered, 0, (size_t)g->n_nodes * sizeof *g->entered);
	for (int i = 0; i < g->n_levels; i++) {
		memcpy(g->level[i].n_missing, g->level[i].n_servers,
		    (size_t)g->n_nodes * sizeof *g->level[i].n_missing);
		g->level[i].n_missing[g->level[i].group[g->node_of[g->root]]]--;
	}
	for (g->n_missing = 0; g->n_missing < topo->n_ranks; g->n_missing++)
		g->missing[g->n_missing] = g->n_missing;
	g->tail = 0;
	g->queue[g->tail++] = g->root;
	g->reached[g->root] = g->entered[g->node_of[g->root]] = true;
	TRY(spread(g, false));
	TRY(spread(g, true));
	*whole = g->tail == topo->n_ranks && g->depth[g->queue[g->tail - 1]] <= g->most_depth;
	if (!*whole)
		return OK;
	TRY(TEMP(g->ctx, edge, topo->n_ranks));
	for (int i = 1; i < g->tail; i++)
		edge[i - 1] = g->edge[g->queue[i]];
	return tree_arrange(g->ctx, topo->n_ranks, g->into ? REDUCE : BROADCAST, g->root, edge, NULL, topo->n_ranks - 1,
	    out);
}

/* The first trees of a packing that could not be completed, if they have a higher rate than any before. */
static Status
keep_incomplete(struct greedy *g, const Packing *pack, int n_trees)
{
	Frac rate, known;
	Packing first = *pack;
	first.n_trees = n_trees;
	if (n_trees == 0 || !frac_mul(first.unit, (Frac){ n_trees, 1 }, &rate)
	    || (g->incomplete && pack_rate(g->incomplete, BROADCAST, g->topo->n_ranks, &known)
	    && frac_cmp(rate, known) <= 0))
		return OK;
	TRY(NEW(g->ctx, g->incomplete, 1));
	*g->incomplete = first;
	return OK;
}

/* n_trees trees; *out stays where they do not fit. */
static Status
grow_trees(struct greedy *g, Frac rate, int n_trees, Packing **out)
{
	Packing pack = { .n_trees = n_trees }, *made;
	if (!frac_div(rate, (Frac){ n_trees, 1 }, &pack.unit))
		return OK;
	TRY(pack_room(g->ctx, n_trees, false, &pack));
	for (int i = 0; i < g->n_levels; i++)
		memset(g->level[i].slots, 0, (size_t)g->n_nodes * sizeof *g->level[i].slots);
	memset(g->rank_slots, 0, (size_t)g->topo->n_ranks * sizeof *g->rank_slots);
	for (int l = 0; l < g->topo->n_links; l++) {
		const Link *link = &g->topo->link[l];
		Wide slots = (Wide)link->capacity * pack.unit.den / pack.unit.num;
		int near = g->node_of[g->into ? link->to : link->from],
		    far = g->node_of[g->into ? link->from : link->to];
		g->slots[l] = slots > MOST_SLOTS ? MOST_SLOTS : (int)slots;
		if ((g->into ? link->to : link->from) < g->topo->n_ranks)
			g->rank_slots[g->into ? link->to : link->from] += g->slots[l];
		for (int i = 0; i < g->n_levels && near >= 0 && near != far; i++)
			g->level[i].slots[g->level[i].group[near]] += g->slots[l];
	}
	for (int t = 0; t < n_trees; t++) {
		bool whole;
		g->n_later = n_trees - 1 - t;
		if (progress(g->ctx, "tree %d of %d", t + 1, n_trees) <= g->stop_at) {
			g->ctx->cut_short = true;
			return keep_incomplete(g, &pack, t);
		}
		TRY(grow_tree(g, &pack.tree[t], &whole));
		if (!whole)
			return keep_incomplete(g, &pack, t);
		pack.weight[t] = 1;
	}
	TRY(pack_check(g->ctx, g->topo, &pack));
	TRY(NEW(g->ctx, made, 1));
	*made = pack;
	*out = made;
	return OK;
}

/* The least number of trees for which whole slots fill every link of the cut that the bound is. 0: there are too
 * many. */
static int
least_trees(const Topology *topo, const Bound *bound, bool into)
{
	int64_t least = 1;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		Frac share;
		if (bound->part[into ? link->to : link->from] != 1 || bound->part[into ? link->from : link->to] == 1)
			continue;
		if (!frac_div((Frac){ link->capacity, 1 }, bound->rate, &share) || share.den > MOST_TREES)
			return 0;
		least = least / gcd64(least, share.den) * share.den;
		if (least > MOST_TREES)
			return 0;
	}
	return (int)least;
}

static Status
greedy_new(Ctx *ctx, const Topology *topo, const Ask *ask, struct greedy *g)
{
	*g = (struct greedy){ .ctx = ctx, .topo = topo, .into = ask->coll == REDUCE, .root = ask->root };
	TRY(search_new(ctx, topo, &g->search));
	TRY(TEMP(ctx, g->slots, topo->n_links));
	TRY(TEMP(ctx, g->price, topo->n_links));
	TRY(TEMP(ctx, g->node_of, topo->n_vertices));
	TRY(TEMP(ctx, g->entered, topo->n_nodes + topo->n_ranks));
	TRY(TEMP(ctx, g->reached, topo->n_ranks));
	TRY(TEMP_EACH(ctx, topo->n_ranks, g->queue, g->heap, g->missing));
	TRY(TEMP(ctx, g->nearest, topo->n_ranks));
	TRY(TEMP(ctx, g->rank_slots, topo->n_ranks));
	TRY(TEMP(ctx, g->edge, topo->n_ranks));
	TRY(TEMP(ctx, g->depth, topo->n_ranks));
	TRY(topo_homes(ctx, topo, g->node_of, &g->n_nodes));
	return find_groups(g);
}

Status
pack_greedy(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing *known, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct greedy g;
	Packing *best = known;
	int *work, most = INT_MAX,
	    n_trees = bound->kind == CERTIFICATE_CUT ? least_trees(topo, bound, ask->coll == REDUCE) : 0;
	TRY(greedy_new(ctx, topo, ask, &g));
	/* If there is a time limit, half of it. */
	g.stop_at = progress(ctx, "growing trees");
	g.stop_at = g.stop_at == INT_MAX ? 0 : g.stop_at / 2;
	TRY(TEMP(ctx, work, topo->n_ranks));
	/* A tree more makes parts of the buffer smaller, a hop more takes longer: neither is worth many of the other.
	 * So the sum of both is to become less. */
	if (known)
		most = pack_depth(known, work) + known->n_trees;
	for (int i = 0; i < TRIES && n_trees > 0 && n_trees <= MOST_TREES; i++, n_trees *= 2) {
		Packing *found = NULL;
		g.most_depth = most == INT_MAX ? INT_MAX : most - n_trees;
		if (g.most_depth < 1)
			break;
		if ((int64_t)topo->n_ranks * topo->n_ranks * n_trees > MOST_WORK)
			break;
		for (int by_rank = 0; by_rank < 2 && !found; by_rank++) {
			g.by_rank = by_rank;
			TRY(grow_trees(&g, bound->rate, n_trees, &found));
		}
		if (!found)
			continue;
		most = pack_depth(found, work) + n_trees - 1;
		best = found;
	}
	if (best != known)
		log_verbose(ctx, "greedy: %d trees of equal rate, at the bound", best->n_trees);
	arena_release(&ctx->scratch, mark);
	*out = best ? best : g.incomplete;
	return OK;
}
