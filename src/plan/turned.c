/* An allgather's trees, turned back: an allreduce (reducescatter_allgather.c). */
#include "graph/reversible.h"
#include "plan/turned.h"

/* The first link from v to w of this class and capacity that is not in use as one back; -1: none. */
static int
unused_link(const Topology *topo, int v, int w, const Link *as, const int *back)
{
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		if (link->to == w && link->class == as->class && link->capacity == as->capacity
		    && back[topo->out[i]] < 0)
			return topo->out[i];
	}
	return -1;
}

/* Of each link one that leads back, as fast and of the same class, each once: between the same vertices, or where
 * switches only lead one way, between those that lead the other way. *out: NULL where there are none. */
static Status
links_back(Ctx *ctx, const Topology *topo, int **out)
{
	int *back, *twin;
	bool found;
	TRY(NEW(ctx, back, topo->n_links));
	TRY(TEMP(ctx, twin, topo->n_vertices));
	TRY(topo_twins(ctx, topo, twin, &found));
	for (int l = 0; l < topo->n_links; l++)
		back[l] = -1;
	for (int l = 0; l < topo->n_links && found; l++) {
		const Link *link = &topo->link[l];
		int m = back[l] < 0 ? unused_link(topo, twin[link->to], twin[link->from], link, back) : back[l];
		found = m >= 0;
		back[l] = m;
		if (found)
			back[m] = l;
	}
	*out = found ? back : NULL;
	return OK;
}

/* The way up of a tree that has a way down. */
static Status
turn_back(Ctx *ctx, const int *back, Tree *tree)
{
	TRY(NEW(ctx, tree->up, tree->n_down));
	for (tree->n_up = 0; tree->n_up < tree->n_down; tree->n_up++) {
		const Edge *edge = &tree->down[tree->n_down - 1 - tree->n_up];
		int *link;
		TRY(NEW(ctx, link, edge->n_links));
		for (int i = 0; i < edge->n_links; i++)
			link[i] = back[edge->link[edge->n_links - 1 - i]];
		tree->up[tree->n_up] = (Edge){ edge->dst, edge->src, edge->n_links, link };
	}
	return OK;
}

Status
plan_turn(Ctx *ctx, const Topology *topo, const Packing *gather, Packing **out)
{
	Packing *pack;
	int64_t *load, edges = 0;
	int *back;
	*out = NULL;
	TRY(links_back(ctx, topo, &back));
	if (!back)
		return OK;
	TRY(NEW(ctx, pack, 1));
	TRY(NEW(ctx, pack->tree, gather->n_trees));
	for (int t = 0; t < gather->n_trees; t++)
		edges += 2 * (int64_t)gather->tree[t].n_down;
	if (edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: reduce-scatter and allgather over %d ranks: want a schedule of at most "
		    "%d edges", topo->name, topo->n_ranks, LIMIT_TREE_EDGES);
	pack->weight = gather->weight;
	for (; pack->n_trees < gather->n_trees; pack->n_trees++) {
		pack->tree[pack->n_trees] = gather->tree[pack->n_trees];
		TRY(turn_back(ctx, back, &pack->tree[pack->n_trees]));
	}
	TRY(TEMP(ctx, load, topo->n_links));
	if (!pack_widest_unit(topo, pack, load, &pack->unit))
		return fail(ctx, INTERNAL, "reduce-scatter and allgather: no links in use");
	*out = pack;
	return OK;
}
