/* An allreduce over GPUs with one link each, where these links limit it and the network behind them does not: trees by
 * numbers of children.
 *
 * All trees have one unit of the rate. Each edge takes that of the links of both ends. So rank v, whose link has C
 * units, has in all trees, W of them,
 *
 *     children of v <= C - W + trees of which v is the root
 *
 * and whatever these numbers are, as long as those of a tree add up to its edges, there is such a tree: ranks with most
 * children come first. A leaf is a switch with ranks. A tree enters each leaf once, so that leaves are the ranks of a
 * tree of their own, by the same rule with what their ranks have left; links between leaves then carry little. In each
 * tree the leaves with most left, and at a leaf the ranks, take all the children that they can, so that inner ones are
 * few and no tree is deep.
 *
 *     4095 GPUs at a dragonfly, at half of a link, 0.99976 of the bound: each link 32 units, and 16 trees
 *
 * A tree with these numbers of children is a degree sequence (Senior 1951, "Partitions and Their Representative
 * Graphs"); to take most from the largest is as Havel 1955 and Hakimi 1962 have it for graphs. */
#include "graph/split_off.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/orient.h"

#include <string.h>

enum {
	LEAST_UNITS = 16,	/* of a simple rate, which has as many trees */
	FAN_OUT = 32		/* children of a leaf at others, and of a rank, unless some are left */
};

struct leaf {
	int first, n;		/* its ranks, in struct children */
	int64_t room;		/* units for ranks of other leaves */
};

struct children {
	Ctx *ctx;
	const Topology *topo;
	Supply supply;
	int n, n_leaves;
	int *port;		/* of each rank: its link to a switch */
	struct leaf *leaf;
	int *rank;		/* by leaves */
	int64_t *room;		/* of each rank: units for children */
	int64_t *left;		/* of each link between switches */
	int *via, *queue, *link;	/* work space of routes */
	/* Of the current tree: */
	int *order, *many;	/* leaves, those with most children first; of each how many */
	int *inner, *own, n_inner;	/* of a leaf: ranks with children, most first; how many each has left */
	int slot;		/* of these, the first that has some left */
	bool *is_inner;		/* of each rank */
	Edge *down, *up;
	int n_edges;
	bool stuck;
};

/* ---- routes ---- */

/* Switches that one unit can go to from s: c->via has the last link to each. */
static void
reach(struct children *c, int s)
{
	const Topology *topo = c->topo;
	int tail = 0;
	memset(c->via, -1, (size_t)topo->n_vertices * sizeof *c->via);
	c->queue[tail++] = s;
	for (int head = 0; head < tail; head++)
		for (int v = c->queue[head], i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], to = topo->link[l].to;
			if (to < c->n || to == s || c->via[to] >= 0 || c->left[l] < 1)
				continue;
			c->via[to] = l;
			c->queue[tail++] = to;
		}
}

/* Links from s to t as they were reached, in c->link from place 1 on: how many; -1: some have no room now. */
static int
follow(struct children *c, int s, int t)
{
	int n = 0;
	for (int v = t; v != s; v = c->topo->link[c->via[v]].from, n++)
		if (c->via[v] < 0 || c->left[c->via[v]] < 1)
			return -1;
	for (int v = t, i = n; v != s; v = c->topo->link[c->via[v]].from)
		c->link[i--] = c->via[v];
	return n;
}

/* An edge of the current tree from a rank to its child. */
static Status
add_edge(struct children *c, int from, int to)
{
	int s = c->topo->link[c->port[from]].to, t = c->topo->link[c->port[to]].to, n = follow(c, s, t);
	if (n < 0) {
		reach(c, s);
		n = follow(c, s, t);
	}
	c->stuck |= n < 0;
	if (c->stuck)
		return OK;
	c->link[0] = c->port[from];
	c->link[n + 1] = c->supply.opposite[c->port[to]];
	for (int i = 1; i <= n; i++) {
		c->left[c->link[i]]--;
		c->left[c->supply.opposite[c->link[i]]]--;
	}
	TRY(supply_edge(c->ctx, &c->supply, from, to, n + 2, c->link, false, &c->down[c->n_edges]));
	return supply_edge(c->ctx, &c->supply, from, to, n + 2, c->link, true, &c->up[c->n_edges++]);
}

/* ---- numbers of children ---- */

/* As many children as have room, and are left; few: at most FAN_OUT. */
static int
children_of(int64_t room, bool few, int left)
{
	int64_t most = room < 0 ? 0 : few && room > FAN_OUT ? FAN_OUT : room;
	return most < left ? (int)most : left;
}

/* Leaves by falling numbers, which move with them. */
static void
sort_leaves(struct children *c)
{
	for (int i = 1; i < c->n_leaves; i++) {
		int h = c->order[i], many = c->many[i], k = i;
		for (; k > 0 && (c->many[k - 1] < many
		    || (c->many[k - 1] == many && c->leaf[c->order[k - 1]].room < c->leaf[h].room)); k--) {
			c->order[k] = c->order[k - 1];
			c->many[k] = c->many[k - 1];
		}
		c->order[k] = h;
		c->many[k] = many;
	}
}

/* The leaves of the current tree: who has most room takes what it can, and then who has most children comes first. */
static void
count_leaves(struct children *c)
{
	int left = c->n_leaves - 1;
	memset(c->many, 0, (size_t)c->n_leaves * sizeof *c->many);
	sort_leaves(c);
	c->leaf[c->order[0]].room++;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < c->n_leaves && left > 0; i++) {
			struct leaf *leaf = &c->leaf[c->order[i]];
			int more = children_of(leaf->room, pass == 0, left);
			c->many[i] += more;
			left -= more;
			leaf->room -= more;
		}
	c->stuck |= left > 0;
	sort_leaves(c);
}

/* The rank of a leaf that has most room: by which trees enter it. */
static int
roomiest(const struct children *c, const struct leaf *leaf)
{
	int best = c->rank[leaf->first];
	for (int i = leaf->first + 1; i < leaf->first + leaf->n; i++)
		best = c->room[c->rank[i]] > c->room[best] ? c->rank[i] : best;
	return best;
}

/* Which ranks of a leaf have the `many` children that it needs, and how many each; those with most come first. */
static void
count_ranks(struct children *c, const struct leaf *leaf, int many)
{
	c->n_inner = c->slot = 0;
	for (int own = 1; many > 0 && c->n_inner < leaf->n && own > 0; many -= own) {
		int best = roomiest(c, leaf);
		own = children_of(c->room[best], true, many);
		if (own > 0)
			c->inner[c->n_inner] = best;
		c->own[c->n_inner] = own;
		c->n_inner += own > 0;
		c->room[best] -= own;
	}
	for (int i = 0; i < c->n_inner; i++) {
		int more = children_of(c->room[c->inner[i]], false, many);
		c->own[i] += more;
		c->room[c->inner[i]] -= more;
		many -= more;
	}
	c->stuck |= many > 0;
}

/* ---- trees ---- */

/* The rank of the leaf that has the next child, the nearest to the root. */
static int
next_parent(struct children *c)
{
	while (c->own[c->slot] == 0)
		c->slot++;
	c->own[c->slot]--;
	return c->inner[c->slot];
}

/* Edges from the ranks of a leaf: to those with children, to the next leaves in the order, of which *next is the first,
 * and to its other ranks. */
static Status
add_leaf(struct children *c, const struct leaf *leaf, int others, int *next)
{
	count_ranks(c, leaf, leaf->n - 1 + others);
	for (int i = 1; i < c->n_inner && !c->stuck; i++)
		TRY(add_edge(c, next_parent(c), c->inner[i]));
	for (int i = 0; i < others && !c->stuck; i++)
		TRY(add_edge(c, next_parent(c), roomiest(c, &c->leaf[c->order[(*next)++]])));
	for (int i = 0; i < c->n_inner; i++)
		c->is_inner[c->inner[i]] = true;
	for (int i = leaf->first; i < leaf->first + leaf->n && c->n_inner > 0 && !c->stuck; i++)
		if (!c->is_inner[c->rank[i]])
			TRY(add_edge(c, next_parent(c), c->rank[i]));
	for (int i = 0; i < c->n_inner; i++)
		c->is_inner[c->inner[i]] = false;
	return OK;
}

static Status
add_tree(struct children *c, int t, Packing *pack)
{
	int next = 1;
	count_leaves(c);
	c->n_edges = 0;
	c->room[roomiest(c, &c->leaf[c->order[0]])]++;
	for (int i = 0; i < c->n_leaves && !c->stuck; i++)
		TRY(add_leaf(c, &c->leaf[c->order[i]], c->many[i], &next));
	if (c->stuck)
		return OK;
	pack->weight[t] = 1;
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

/* Ranks by the switch that each is linked to. False: one of several switches has more ranks than a tree that enters it
 * once can serve. */
static bool
find_leaves(struct children *c, int64_t units)
{
	const Topology *topo = c->topo;
	int n = 0;
	bool fits = true;
	for (int s = c->n; s < topo->n_vertices; s++) {
		struct leaf *leaf = &c->leaf[c->n_leaves];
		*leaf = (struct leaf){ .first = n };
		for (int i = topo->first_in[s]; i < topo->first_in[s + 1]; i++) {
			int v = topo->link[topo->in[i]].from;
			if (v >= c->n)
				continue;
			c->rank[n++] = v;
			leaf->room += c->room[v] - (leaf->n++ > 0 ? units : 0);
		}
		if (leaf->n > 0) {
			c->order[c->n_leaves] = c->n_leaves;
			c->n_leaves++;
			fits &= leaf->room >= 0;
		}
	}
	return fits || c->n_leaves == 1;
}

static Status
children_new(struct children *c, const int64_t *capacity)
{
	const Topology *topo = c->topo;
	TRY(TEMP_EACH(c->ctx, c->n, c->port, c->rank, c->room, c->order, c->many, c->inner, c->own, c->is_inner));
	TRY(TEMP_EACH(c->ctx, c->n, c->down, c->up));
	TRY(TEMP_EACH(c->ctx, topo->n_vertices, c->via, c->queue, c->leaf));
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
		*units = whole <= INT64_MAX / LIMIT_RANKS / parts.den ? *units : 0;
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
	if (!find_ports(c, units) || !find_leaves(c, units))
		return OK;
	TRY(pack_new(c->ctx, (int)units, false, &pack));
	pack->unit = unit;
	for (int t = 0; t < units && !c->stuck; t++)
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
	    || parts.num > LIMIT_TREE_EDGES / (2 * (topo->n_ranks - 1)) || parts.den > LIMIT_TREE_EDGES)
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
