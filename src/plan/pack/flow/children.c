/* An allreduce over GPUs with one link each, where these links limit it and the network behind them does not: trees by
 * numbers of children.
 *
 * Each edge of a tree of weight w takes w of the links of both ends. So rank v, whose link has C units, has in all
 * trees, of W units together,
 *
 *     sum of w (children of v) <= C - W + sum of w over the trees of which v is the root
 *
 * and whatever these numbers are, as long as those of a tree add up to its edges, there is such a tree: ranks with most
 * children come first. Ranks at one switch are a home. A tree enters each home once, so that homes are the ranks of a
 * tree of their own, by the same rule with what their ranks have left; switches between homes then carry little. In
 * each tree the homes with most left, and in a home the ranks, take all the children that they can, so that inner ones
 * are few and no tree is deep. Weights fall by halves: the lightest trees, of weight 1, fill what the others left.
 *
 *     4095 GPUs at a dragonfly: each link 8188 units, 4095 of trees, at the bound; 143 trees of weights 1 to 255;
 *     at half of a link, 0.99976 of the bound: each link 32 units, 16 of trees, of weight 1
 *
 * A tree with these numbers of children is a degree sequence (Senior 1951, "Partitions and Their Representative
 * Graphs"); to take most from the largest is as Havel 1955 and Hakimi 1962 have it for graphs. */
#include "graph/split_off.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/halves.h"
#include "plan/pack/flow/orient.h"

#include <string.h>

enum {
	MOST_UNITS = 1 << 14,	/* of the rate: as parents.c */
	LEAST_UNITS = 16,	/* of a simple rate, which has as many trees */
	FAN_OUT = 32		/* children of a home in others, and of a rank, unless some are left */
};

struct home {
	int first, n;		/* its ranks, in struct children */
	int64_t room;		/* units for ranks of other homes */
};

struct children {
	Ctx *ctx;
	const Topology *topo;
	Supply supply;
	int n, n_homes, n_trees;
	int64_t *weight;
	int *port;		/* of each rank: its link to a switch */
	struct home *home;
	int *rank;		/* by homes */
	int64_t *room;		/* of each rank: units for children */
	int64_t *left;		/* of each link between switches */
	int *via, *queue, *link;	/* work space of routes */
	/* Of the current tree: */
	int *order, *many;	/* homes, those with most children first; of each home how many */
	int *inner, *own, n_inner;	/* of a home: ranks with children, most first; how many each has left */
	int slot;		/* of these, the first that has some left */
	bool *is_inner;		/* of each rank */
	Edge *down, *up;
	int n_edges;
	bool stuck;
};

/* ---- routes ---- */

/* Switches that w units can go to from s: c->via has the last link to each. */
static void
reach(struct children *c, int s, int64_t w)
{
	const Topology *topo = c->topo;
	int tail = 0;
	memset(c->via, -1, (size_t)topo->n_vertices * sizeof *c->via);
	c->queue[tail++] = s;
	for (int head = 0; head < tail; head++)
		for (int v = c->queue[head], i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], to = topo->link[l].to;
			if (to < c->n || to == s || c->via[to] >= 0 || c->left[l] < w)
				continue;
			c->via[to] = l;
			c->queue[tail++] = to;
		}
}

/* Links from s to t as they were reached, in c->link from place 1 on: how many; -1: some have no room now. */
static int
follow(struct children *c, int s, int t, int64_t w)
{
	int n = 0;
	for (int v = t; v != s; v = c->topo->link[c->via[v]].from, n++)
		if (c->via[v] < 0 || c->left[c->via[v]] < w)
			return -1;
	for (int v = t, i = n; v != s; v = c->topo->link[c->via[v]].from)
		c->link[i--] = c->via[v];
	return n;
}

/* An edge of the current tree from a rank to its child. */
static Status
add_edge(struct children *c, int from, int to, int64_t w)
{
	int s = c->topo->link[c->port[from]].to, t = c->topo->link[c->port[to]].to, n = follow(c, s, t, w);
	if (n < 0) {
		reach(c, s, w);
		n = follow(c, s, t, w);
	}
	c->stuck |= n < 0;
	if (c->stuck)
		return OK;
	c->link[0] = c->port[from];
	c->link[n + 1] = c->supply.opposite[c->port[to]];
	for (int i = 1; i <= n; i++) {
		c->left[c->link[i]] -= w;
		c->left[c->supply.opposite[c->link[i]]] -= w;
	}
	TRY(supply_edge(c->ctx, &c->supply, from, to, n + 2, c->link, false, &c->down[c->n_edges]));
	return supply_edge(c->ctx, &c->supply, from, to, n + 2, c->link, true, &c->up[c->n_edges++]);
}

/* ---- numbers of children ---- */

/* As many children as have room, and are left; few: at most FAN_OUT. */
static int
children_of(int64_t room, int64_t w, bool few, int left)
{
	int64_t most = room > 0 ? room / w : 0;
	most = few && most > FAN_OUT ? FAN_OUT : most;
	return most < left ? (int)most : left;
}

/* Homes by falling numbers, which move with them. */
static void
sort_homes(struct children *c)
{
	for (int i = 1; i < c->n_homes; i++) {
		int h = c->order[i], many = c->many[i], k = i;
		for (; k > 0 && (c->many[k - 1] < many
		    || (c->many[k - 1] == many && c->home[c->order[k - 1]].room < c->home[h].room)); k--) {
			c->order[k] = c->order[k - 1];
			c->many[k] = c->many[k - 1];
		}
		c->order[k] = h;
		c->many[k] = many;
	}
}

/* The homes of the current tree: who has most room takes what it can, and then who has most children comes first. */
static void
count_homes(struct children *c, int64_t w)
{
	int left = c->n_homes - 1;
	memset(c->many, 0, (size_t)c->n_homes * sizeof *c->many);
	sort_homes(c);
	c->home[c->order[0]].room += w;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < c->n_homes && left > 0; i++) {
			struct home *home = &c->home[c->order[i]];
			int more = children_of(home->room, w, pass == 0, left);
			c->many[i] += more;
			left -= more;
			home->room -= w * more;
		}
	c->stuck |= left > 0;
	sort_homes(c);
}

/* The rank of a home that has most room: by which trees enter it. */
static int
roomiest(const struct children *c, const struct home *home)
{
	int best = c->rank[home->first];
	for (int i = home->first + 1; i < home->first + home->n; i++)
		best = c->room[c->rank[i]] > c->room[best] ? c->rank[i] : best;
	return best;
}

/* Which ranks of a home have the `many` children that it needs, and how many each; those with most come first. */
static void
count_ranks(struct children *c, const struct home *home, int many, int64_t w)
{
	c->n_inner = c->slot = 0;
	for (int own = 1; many > 0 && c->n_inner < home->n && own > 0; many -= own) {
		int best = roomiest(c, home);
		own = children_of(c->room[best], w, true, many);
		if (own > 0)
			c->inner[c->n_inner] = best;
		c->own[c->n_inner] = own;
		c->n_inner += own > 0;
		c->room[best] -= w * own;
	}
	for (int i = 0; i < c->n_inner; i++) {
		int more = children_of(c->room[c->inner[i]], w, false, many);
		c->own[i] += more;
		c->room[c->inner[i]] -= w * more;
		many -= more;
	}
	c->stuck |= many > 0;
}

/* ---- trees ---- */

/* The rank of the home that has the next child, the nearest to the root. */
static int
next_parent(struct children *c)
{
	while (c->own[c->slot] == 0)
		c->slot++;
	c->own[c->slot]--;
	return c->inner[c->slot];
}

/* Edges from the ranks of a home: to those with children, to the next homes in the order, of which *next is the first,
 * and to its other ranks. */
static Status
add_home(struct children *c, const struct home *home, int others, int64_t w, int *next)
{
	count_ranks(c, home, home->n - 1 + others, w);
	for (int i = 1; i < c->n_inner && !c->stuck; i++)
		TRY(add_edge(c, next_parent(c), c->inner[i], w));
	for (int i = 0; i < others && !c->stuck; i++)
		TRY(add_edge(c, next_parent(c), roomiest(c, &c->home[c->order[(*next)++]]), w));
	for (int i = 0; i < c->n_inner; i++)
		c->is_inner[c->inner[i]] = true;
	for (int i = home->first; i < home->first + home->n && c->n_inner > 0 && !c->stuck; i++)
		if (!c->is_inner[c->rank[i]])
			TRY(add_edge(c, next_parent(c), c->rank[i], w));
	for (int i = 0; i < c->n_inner; i++)
		c->is_inner[c->inner[i]] = false;
	return OK;
}

static Status
add_tree(struct children *c, int t, Packing *pack)
{
	int64_t w = c->weight[t];
	int next = 1;
	count_homes(c, w);
	c->n_edges = 0;
	c->room[roomiest(c, &c->home[c->order[0]])] += w;
	for (int i = 0; i < c->n_homes && !c->stuck; i++)
		TRY(add_home(c, &c->home[c->order[i]], c->many[i], w, &next));
	if (c->stuck)
		return OK;
	pack->weight[t] = w;
	pack->n_trees++;
	return tree_arrange(c->ctx, c->n, ALLREDUCE, -1, c->down, c->up, c->n_edges, &pack->tree[t]);
}

/* ---- what is asked for ---- */

/* The one link of each rank, to a switch. False: some have others, or no room for their part of all trees. */
static bool
find_ports(struct children *c, int64_t units)
{
	const Topology *topo = c->topo;
	for (int v = 0; v < c->n; v++) {
		int l = topo->out[topo->first_out[v]];
		if (topo->first_out[v + 1] - topo->first_out[v] != 1 || topo->link[l].to < c->n
		    || c->supply.capacity[l] < units)
			return false;
		c->port[v] = l;
		c->room[v] = c->supply.capacity[l] - units;
	}
	return true;
}

/* Ranks by the switch that each is linked to. False: one of several switches has so many ranks that trees would have to
 * enter it more than once. */
static bool
find_homes(struct children *c, int64_t units)
{
	const Topology *topo = c->topo;
	int n = 0;
	bool fits = true;
	for (int s = c->n; s < topo->n_vertices; s++) {
		struct home *home = &c->home[c->n_homes];
		*home = (struct home){ .first = n };
		for (int i = topo->first_in[s]; i < topo->first_in[s + 1]; i++) {
			int v = topo->link[topo->in[i]].from;
			if (v >= c->n)
				continue;
			c->rank[n++] = v;
			home->room += c->room[v] - (home->n++ > 0 ? units : 0);
		}
		if (home->n > 0) {
			c->order[c->n_homes] = c->n_homes;
			c->n_homes++;
			fits &= home->room >= 0;
		}
	}
	return fits || c->n_homes == 1;
}

static Status
children_new(struct children *c, const int64_t *capacity)
{
	const Topology *topo = c->topo;
	TRY(TEMP_EACH(c->ctx, c->n, c->port, c->rank, c->room, c->order, c->many, c->inner, c->own, c->is_inner));
	TRY(TEMP_EACH(c->ctx, c->n, c->down, c->up));
	TRY(TEMP_EACH(c->ctx, topo->n_vertices, c->via, c->queue, c->home));
	TRY(TEMP(c->ctx, c->link, topo->n_vertices + 2));
	TRY(TEMP(c->ctx, c->left, topo->n_links));
	memset(c->via, -1, (size_t)topo->n_vertices * sizeof *c->via);
	memcpy(c->left, capacity, (size_t)topo->n_links * sizeof *c->left);
	return OK;
}

/* Capacities and the rate in units. *units: 0: they need too many bits. */
static Status
use_units(struct children *c, Frac parts, int64_t *units, Frac *unit)
{
	const int64_t common = topo_link_unit(c->topo);
	int64_t *capacity;
	TRY(TEMP(c->ctx, capacity, c->topo->n_links));
	*units = frac_div((Frac){ common, 1 }, (Frac){ parts.den, 1 }, unit) ? (int64_t)parts.num : 0;
	for (int l = 0; l < c->topo->n_links; l++) {
		int64_t whole = c->topo->link[l].capacity / common;
		*units = whole <= INT64_MAX / parts.den ? *units : 0;
		capacity[l] = *units ? whole * parts.den : 0;
	}
	c->supply.capacity = capacity;
	return OK;
}

static Status
make_trees(struct children *c, int64_t units, Frac unit, Packing **out)
{
	Packing *pack;
	TRY(children_new(c, c->supply.capacity));
	TRY(halves_choose(c->ctx, c->n, units, &c->weight, &c->n_trees));
	if (c->n_trees == 0 || !find_ports(c, units) || !find_homes(c, units))
		return OK;
	TRY(pack_new(c->ctx, c->n_trees, false, &pack));
	pack->unit = unit;
	for (int t = 0; t < c->n_trees && !c->stuck; t++)
		TRY(add_tree(c, t, pack));
	if (c->stuck)
		return OK;
	TRY(pack_check(c->ctx, c->topo, pack));
	*out = pack;
	return OK;
}

Status
pack_children(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct children c = { .ctx = ctx, .topo = topo, .n = topo->n_ranks, .supply = { .topo = topo } };
	Frac rate, parts, unit;
	int64_t units = 0;
	*out = NULL;
	if (topo->n_vertices == topo->n_ranks || topo_active(topo) || topo->route
	    || !branchings_rate(topo, bound, ask, &rate) || !frac_div(rate, (Frac){ topo_link_unit(topo), 1 }, &parts)
	    || parts.num > MOST_UNITS || parts.den > 2 * MOST_UNITS)
		return OK;
	for (; parts.num < LEAST_UNITS; parts.den *= 2)
		parts.num *= 2;
	TRY(orient_opposite(ctx, topo, &c.supply.opposite));
	if (c.supply.opposite)
		TRY(use_units(&c, parts, &units, &unit));
	if (units > 0)
		TRY(make_trees(&c, units, unit, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
