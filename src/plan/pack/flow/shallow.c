/* Shallow trees through switches, greedily: what the arcs of split_off.c had best look like.
 *
 * A tree of a number of units grows from its root by routes on which links have as many left. The rank that was reached
 * first sends first, and to whom can send most itself: back along the route that data comes by, as far as the switch of
 * the route with the most links, its core. Ranks behind a switch that the tree has not been to come before others,
 *
 *     a - switch a - core - switch b - b	b, c are fresh for a; then d is not, and c sends to d itself
 *                      \---- switch c - c, d
 *
 * since a server has to be entered once. What a root can send through a switch that cuts it off from other ranks is for
 * all of its trees, so that none takes what later ones need. Where such trees of all units of a root do not fit, trees
 * of half as many are tried; what does not fit then is not wanted. */
#include "base/array.h"
#include "graph/homes.h"
#include "plan/pack/flow/shallow.h"

#include <limits.h>
#include <string.h>

enum { HALVINGS = 4 };

struct grower {
	Ctx *ctx;
	const Supply *supply;
	const Topology *topo;
	bool near_first;
	int64_t *left;		/* units of each link */
	int *reverse;		/* of each link: one that leads back, -1: none */
	int *degree;		/* links out of each vertex */
	bool *entered;		/* vertices that routes of the current tree have been to */
	bool *joined;		/* ranks of the current tree */
	int *server, n_servers;	/* of each rank (graph/homes.h) */
	int *ranks, *missing;	/* of each server: its ranks, and those that are not of the tree; */
	int n_new;		/* servers of which none is */
	int *order, n;		/* these, as they were reached */
	int *via;		/* link by which the search reached a vertex; -1: it did not */
	int *queue;
	int first, end;		/* of it: the ranks that were reached and are not of the tree */
	int *links;		/* of the route to each vertex that was reached */
	bool stale;		/* some link that the search went over has too little left now */
	/* Of switches that all data of the root goes through, to some ranks: */
	bool *guarded;		/* links into such a switch, from the root's side */
	int64_t *spare;		/* units of these that later trees of the root do not need, of each switch */
	Hop *hop;
	int n_hops, capacity;
};

/* Links that leave v for the trees: *n of them. */
static const int *
links_of(const struct grower *g, int v, int *n)
{
	const Topology *topo = g->topo;
	const int *first = g->supply->into ? topo->first_in : topo->first_out;
	*n = first[v + 1] - first[v];
	return (g->supply->into ? topo->in : topo->out) + first[v];
}

static Status
grower_new(Ctx *ctx, const Supply *supply, struct grower *g)
{
	const Topology *topo = supply->topo;
	*g = (struct grower){ .ctx = ctx, .supply = supply, .topo = topo };
	TRY(TEMP(ctx, g->left, topo->n_links));
	TRY(TEMP(ctx, g->reverse, topo->n_links));
	TRY(TEMP(ctx, g->degree, topo->n_vertices));
	TRY(TEMP(ctx, g->entered, topo->n_vertices));
	TRY(TEMP(ctx, g->joined, topo->n_ranks));
	TRY(TEMP(ctx, g->server, topo->n_vertices));
	TRY(topo_homes(ctx, topo, g->server, &g->n_servers));
	TRY(TEMP(ctx, g->ranks, g->n_servers));
	TRY(TEMP(ctx, g->missing, g->n_servers));
	TRY(TEMP(ctx, g->links, topo->n_vertices));
	TRY(TEMP(ctx, g->order, topo->n_ranks));
	TRY(TEMP(ctx, g->via, topo->n_vertices));
	TRY(TEMP(ctx, g->queue, topo->n_vertices));
	TRY(TEMP(ctx, g->guarded, topo->n_links));
	TRY(TEMP(ctx, g->spare, topo->n_vertices));
	memcpy(g->left, supply->capacity, (size_t)topo->n_links * sizeof *g->left);
	for (int v = 0; v < topo->n_ranks; v++)
		g->ranks[g->server[v]]++;
	for (int v = 0; v < topo->n_vertices; v++) {
		int n;
		links_of(g, v, &n);
		g->degree[v] = n;
	}
	for (int l = 0; l < topo->n_links; l++) {
		int n, from = supply_tail(supply, l);
		const int *list = links_of(g, supply_head(supply, l), &n);
		g->reverse[l] = -1;
		for (int i = 0; i < n && g->reverse[l] < 0; i++)
			g->reverse[l] = supply_head(supply, list[i]) == from ? list[i] : -1;
	}
	return OK;
}

/* Vertices in the order in which data of the root reaches them, in the queue: how many. number: of each, its place; -1:
 * it is not reached. */
static int
number_vertices(struct grower *g, int root, int *number)
{
	int n = 0, degree;
	memset(number, -1, (size_t)g->topo->n_vertices * sizeof *number);
	number[root] = 0;
	g->queue[n++] = root;
	for (int at = 0; at < n; at++) {
		const int *list = links_of(g, g->queue[at], &degree);
		for (int i = 0; i < degree; i++) {
			int y = supply_head(g->supply, list[i]);
			if (number[y] >= 0)
				continue;
			number[y] = n;
			g->queue[n++] = y;
		}
	}
	return n;
}

/* Of each vertex that data of the root reaches the last other one through which all of it goes (Cooper, Harvey and
 * Kennedy 2001, "A Simple, Fast Dominance Algorithm"); of the root itself. *before[v]: -1: it is not reached. */
static Status
find_before(struct grower *g, int root, int **before)
{
	const Topology *topo = g->topo;
	int *number, *last;
	TRY(TEMP_EACH(g->ctx, topo->n_vertices, number, last));
	int n = number_vertices(g, root, number);
	memset(last, -1, (size_t)topo->n_vertices * sizeof *last);
	last[root] = root;
	for (bool changed = true; changed;) {
		changed = false;
		for (int at = 1; at < n; at++) {
			int y = g->queue[at], best = -1;
			const int *first = g->supply->into ? topo->first_out : topo->first_in;
			const int *list = g->supply->into ? topo->out : topo->in;
			for (int i = first[y]; i < first[y + 1]; i++) {
				int x = supply_tail(g->supply, list[i]);
				if (last[x] < 0)
					continue;
				for (best = best < 0 ? x : best; x != best;)
					if (number[x] > number[best])
						x = last[x];
					else
						best = last[best];
			}
			changed |= last[y] != best;
			last[y] = best;
		}
	}
	*before = last;
	return OK;
}

/* Links into a switch that all data to some ranks goes through, from where data is before it has been there. */
static Status
find_guarded(struct grower *g, int root)
{
	ArenaMark mark = arena_mark(&g->ctx->scratch);
	const Topology *topo = g->topo;
	int *before;
	bool *cuts;
	TRY(find_before(g, root, &before));
	TRY(TEMP(g->ctx, cuts, topo->n_vertices));
	for (int r = 0; r < topo->n_ranks; r++)
		for (int v = r; before[v] >= 0 && v != root && !cuts[before[v]];) {
			v = before[v];
			cuts[v] = true;
		}
	for (int l = 0; l < topo->n_links; l++) {
		int w = supply_head(g->supply, l), v = supply_tail(g->supply, l);
		g->guarded[l] = w >= topo->n_ranks && cuts[w] && before[v] >= 0;
		for (; g->guarded[l] && v != root; v = before[v])
			g->guarded[l] = v != w;
	}
	arena_release(&g->ctx->scratch, mark);
	return OK;
}

/* later: units of the trees of the root after the current one. */
static void
set_spare(struct grower *g, int64_t later)
{
	for (int v = 0; v < g->topo->n_vertices; v++)
		g->spare[v] = -later;
	for (int l = 0; l < g->topo->n_links; l++)
		g->spare[supply_head(g->supply, l)] += g->guarded[l] ? g->left[l] : 0;
}

/* Ranks that `units` can go to from rank x, through switches, are at the end of the queue. */
static void
reach(struct grower *g, int x, int64_t units)
{
	int head = 0, tail = 0, n;
	g->first = g->end = g->topo->n_vertices;
	g->stale = false;
	memset(g->via, -1, (size_t)g->topo->n_vertices * sizeof *g->via);
	for (int v = x;; v = g->queue[head++]) {
		const int *list = links_of(g, v, &n);
		for (int i = 0; i < n; i++) {
			int y = supply_head(g->supply, list[i]);
			bool rank = y < g->topo->n_ranks;
			if (g->via[y] >= 0 || g->left[list[i]] < units || y == x || (rank && g->joined[y])
			    || (g->guarded[list[i]] && g->spare[y] < units))
				continue;
			g->via[y] = list[i];
			g->links[y] = v == x ? 1 : g->links[v] + 1;
			g->queue[rank ? --g->first : tail++] = y;
		}
		if (head == tail)
			break;
	}
}

/* Rank y is of the tree now: no route leads through it, so that all others are reached as before. */
static void
unreach(struct grower *g, int y)
{
	int i = g->end - 1;
	while (g->queue[i] != y)
		i--;
	memmove(g->queue + g->first + 1, g->queue + g->first, (size_t)(i - g->first) * sizeof *g->queue);
	g->first++;
}

/* May a route from x enter the server of y? That of x, and one that the tree has not been to. */
static bool
may_enter(const struct grower *g, int x, int y)
{
	int server = g->server[y];
	return server == g->server[x] || g->missing[server] == g->ranks[server];
}

/* May a route from x be fresh? */
static bool
may_be_fresh(const struct grower *g, int x)
{
	return g->n_new > 0 || g->missing[g->server[x]] > 0;
}

/* Of the route to y: is its core new to the tree, and how much can go back to that? */
static int64_t
worth_of(const struct grower *g, int x, int y, bool *fresh)
{
	int64_t back = INT64_MAX, best = 0;
	int core = -1, after = y;
	for (int v = y; v != x;) {
		int l = g->via[v], from = supply_tail(g->supply, l);
		int64_t left = g->reverse[l] < 0 ? 0 : g->left[g->reverse[l]];
		back = left < back ? left : back;
		if (from != x && g->degree[from] > core) {
			core = g->degree[from];
			best = back;
			after = v;
		}
		v = from;
	}
	*fresh = !g->entered[after];
	return core < 0 ? back : best;
}

/* Of the ranks that are reached from x, the one that it had best send to next; -1: none. */
static int
choose(const struct grower *g, int x, bool only_fresh)
{
	int best = -1, shortest = INT_MAX;
	int64_t most = -1;
	for (int i = g->end - 1; i >= g->first; i--) {
		int y = g->queue[i], links = g->near_first ? g->links[y] : 0;
		bool fresh;
		if (links > shortest || (only_fresh && !may_enter(g, x, y)))
			continue;
		int64_t worth = worth_of(g, x, y, &fresh);
		if ((links == shortest && worth <= most) || (only_fresh && !fresh))
			continue;
		shortest = links;
		most = worth;
		best = y;
	}
	return best;
}

/* Rank y is of the tree. */
static void
add_rank(struct grower *g, int y)
{
	int server = g->server[y];
	g->n_new -= g->missing[server] == g->ranks[server];
	g->missing[server]--;
	g->joined[y] = true;
	g->order[g->n++] = y;
}

static Status
take(struct grower *g, int x, int y, int64_t units)
{
	int n = 1, *link;
	Hop *hop;
	for (int v = y; v != x; v = supply_tail(g->supply, g->via[v]))
		n++;
	TRY(GROW_TEMP(g->ctx, g->hop, g->n_hops, g->capacity));
	hop = &g->hop[g->n_hops++];
	*hop = (Hop){ .units = units, .n = n, .n_links = n - 1 };
	TRY(TEMP(g->ctx, hop->vertex, n));
	TRY(TEMP(g->ctx, link, n));
	hop->link = link;
	hop->vertex[0] = x;
	for (int v = y; v != x; v = supply_tail(g->supply, g->via[v])) {
		hop->vertex[--n] = v;
		link[n - 1] = g->via[v];
		g->entered[v] = true;
		g->left[g->via[v]] -= units;
		g->spare[v] -= g->guarded[g->via[v]] ? units : 0;
		g->stale |= g->left[g->via[v]] < units || (g->guarded[g->via[v]] && g->spare[v] < units);
	}
	add_rank(g, y);
	return OK;
}

/* Rank x sends to all that it had best send to. */
static Status
send_on(struct grower *g, int x, int64_t units, bool only_fresh)
{
	if (only_fresh && !may_be_fresh(g, x))
		return OK;
	reach(g, x, units);
	for (int y; (y = choose(g, x, only_fresh)) >= 0;) {
		TRY(take(g, x, y, units));
		if (g->stale)
			reach(g, x, units);
		else
			unreach(g, y);
	}
	return OK;
}

/* A tree of this number of units; false in *spans: it does not reach all ranks, and has taken nothing. */
static Status
grow_tree(struct grower *g, int root, int64_t units, int64_t later, int64_t *left, bool *spans)
{
	int hops = g->n_hops;
	memcpy(left, g->left, (size_t)g->topo->n_links * sizeof *left);
	memset(g->entered, 0, (size_t)g->topo->n_vertices * sizeof *g->entered);
	memset(g->joined, 0, (size_t)g->topo->n_ranks * sizeof *g->joined);
	memcpy(g->missing, g->ranks, (size_t)g->n_servers * sizeof *g->missing);
	g->n = g->n_new = 0;
	for (int server = 0; server < g->n_servers; server++)
		g->n_new += g->ranks[server] > 0;
	g->entered[root] = true;
	add_rank(g, root);
	set_spare(g, later);
	for (int any = 0; any < 2; any++)
		for (int i = 0; i < g->n && g->n < g->topo->n_ranks; i++)
			TRY(send_on(g, g->order[i], units, !any));
	*spans = g->n == g->topo->n_ranks;
	if (*spans)
		return OK;
	memcpy(g->left, left, (size_t)g->topo->n_links * sizeof *left);
	g->n_hops = hops;
	return OK;
}

/* Trees of one root; *rest: units that no tree was found for. */
static Status
grow_trees(struct grower *g, int root, int parts, int64_t *work, int64_t *rest)
{
	enum { HOP_NS = 2000 };
	int64_t units = (*rest + parts - 1) / parts;
	if (parts > 1)
		TRY(find_guarded(g, root));
	for (int halvings = 0; *rest > 0 && halvings <= HALVINGS;) {
		bool spans;
		if (out_of_time(g->ctx, (int64_t)HOP_NS * g->topo->n_ranks))
			break;
		units = *rest < units ? *rest : units;
		TRY(grow_tree(g, root, units, *rest - units, work, &spans));
		*rest -= spans ? units : 0;
		halvings += !spans;
		units -= spans ? 0 : units / 2;
	}
	return OK;
}

Status
shallow_hops(Ctx *ctx, const Supply *supply, int parts, bool near_first, bool some, Hop **out, int *n, bool *whole)
{
	struct grower g;
	int64_t *work;
	*whole = true;
	TRY(grower_new(ctx, supply, &g));
	g.near_first = near_first;
	TRY(TEMP(ctx, work, supply->topo->n_links));
	for (int r = 0; r < supply->topo->n_ranks && (some || *whole); r++) {
		int64_t rest = supply->owed[r];
		TRY(grow_trees(&g, r, parts, work, &rest));
		*whole &= rest == 0;
	}
	*out = g.hop;
	*n = g.n_hops;
	return OK;
}

/* ---- the packing ---- */

static Status
tree_of(Ctx *ctx, const Supply *supply, const Hop *hop, Tree *out)
{
	int n = supply->topo->n_ranks;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Edge *edge, *back = NULL;
	TRY(TEMP(ctx, edge, n));
	if (supply->opposite)
		TRY(TEMP(ctx, back, n));
	for (int i = 0; i < n - 1; i++) {
		const int *vertex = hop[i].vertex, to = vertex[hop[i].n - 1];
		TRY(supply_edge(ctx, supply, vertex[0], to, hop[i].n_links, hop[i].link, false, &edge[i]));
		if (back)
			TRY(supply_edge(ctx, supply, vertex[0], to, hop[i].n_links, hop[i].link, true, &back[i]));
	}
	TRY(tree_arrange(ctx, n, supply_collective(supply), back ? -1 : hop->vertex[0], edge, back, n - 1, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
shallow_packing(Ctx *ctx, const Supply *supply, const Hop *hop, int n, Frac unit, Packing **out)
{
	int edges = supply->topo->n_ranks - 1, trees = n / edges;
	int64_t common = 0;
	Packing *pack;
	TRY(pack_new(ctx, trees, true, &pack));
	for (int t = 0; t < trees; t++)
		common = gcd64(common, hop[t * edges].units);
	if (!frac_mul(unit, (Frac){ common, 1 }, &pack->unit))
		return OK;
	for (int t = 0; t < trees; t++) {
		pack->demand[t] = hop[t * edges].vertex[0];
		pack->weight[t] = hop[t * edges].units / common;
		TRY(tree_of(ctx, supply, &hop[t * edges], &pack->tree[t]));
	}
	pack->n_trees = trees;
	if (supply->opposite)
		pack->demand = NULL;
	TRY(pack_check(ctx, supply->topo, pack));
	*out = pack;
	return OK;
}
