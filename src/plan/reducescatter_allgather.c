/* Reduce-scatter and allgather: an allreduce in which each rank sums its own part of the data, and sends the sum to all
 * others (ForestColl; SCCL, which inverts an allgather). The way down are the trees of the best allgather, the way up
 * the same trees backwards, both at once:
 *
 *     allgather, block of rank 1     1 -> 0 -> 3,  1 -> 2
 *     its part of the allreduce      3 -> 0 -> 1,  2 -> 1,  then  1 -> 0 -> 3,  1 -> 2
 *
 * An allgather has the same rate for each root, and its trees are flat where roots are many. So these trees are often
 * slower than the best ones of an allreduce, which choose their roots, and less deep. */
#include "graph/reversible.h"
#include "plan/family.h"

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
 * switches only lead one way, between those that lead the other way. Fails: INFEASIBLE there are none. */
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
	if (!found)
		return fail(ctx, INFEASIBLE, "%s: reduce-scatter and allgather trees: want links that are as fast in "
		    "both directions, and switches that only forward", topo->name);
	*out = back;
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

static Status
plan_allgather(Ctx *ctx, const Planning *in, Packing **out)
{
	Ask ask = *in->ask;
	Planning half = *in;
	Bound bound;
	Plan plan;
	ask.coll = ALLGATHER;
	half.ask = &ask;
	half.bound = &bound;
	half.known = NULL;
	half.proven = NULL;
	TRY(plan_check_size(ctx, in->topo, ALLGATHER));
	TRY(bound_compute(ctx, in->topo, in->sym, ALLGATHER, -1, &bound));
	TRY(plan_trees(ctx, &half, &plan));
	*out = plan.pack;
	return OK;
}

/* The trees of an allgather, with their ways up. */
static Status
add_ways_up(Ctx *ctx, const Topology *topo, const int *back, const Packing *gather, Packing **out)
{
	Packing *pack;
	int64_t *load, edges = 0;
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

Status
plan_reducescatter_allgather(Ctx *ctx, const Planning *in, Plan *out)
{
	Packing *gather;
	Frac rate = FRAC_ZERO;
	int *back = NULL;
	*out = (Plan){ .proof = *in->bound, .best = FRAC_ZERO };
	TRY(links_back(ctx, in->topo, &back));
	TRY(plan_allgather(ctx, in, &gather));
	TRY(add_ways_up(ctx, in->topo, back, gather, &out->pack));
	if (pack_rate(out->pack, ALLREDUCE, in->topo->n_ranks, &rate) && frac_cmp(rate, in->bound->rate) >= 0)
		out->best = rate;
	return plan_compare(ctx, in, rate, out);
}
