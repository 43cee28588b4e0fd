/* The edges of the trees of enter_once.c, one for each hop, with its links: a list for each tree, or numbers of edges
 * that trees share. */
#include "plan/pack/cluster/enter_once_edges.h"

#include <string.h>

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

Status
entering_number(struct grower *g, int units, Packing **out)
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

Status
entering_list(struct grower *g, Frac unit, Packing **out)
{
	Packing *pack;
	Edge *there, *back;
	int *first, *next, *links;
	const Collective coll = g->both ? ALLREDUCE : g->into ? REDUCE : BROADCAST;
	TRY(TEMP_EACH(g->ctx, g->n, there, back));
	TRY(TEMP(g->ctx, links, (size_t)g->n * LIMIT_ROUTE_LINKS));
	TRY(sort_trees(g, &first, &next));
	const bool each = !g->both && g->sole_root < 0;
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
