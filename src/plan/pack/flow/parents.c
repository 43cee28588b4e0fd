/* An allreduce over full-duplex links between ranks, or to switches of ranks alone, by trees in which each rank chooses
 * its parent, so that no link has more than its capacity.
 *
 * A tree that goes down as it came up loads a link and the opposite one equally, so that both are one edge of an
 * undirected graph, and a packing is one of spanning trees (Tutte 1961; Nash-Williams 1961). Roots and weights of the
 * trees are given: what is left is that of each tree each rank but the root takes a hop to its parent, any neighbour
 * that is not below it: over one edge, or over two with a switch between. Each rank of a tree has a level, which is
 * above that of its parent and at most the depth that is allowed; with a rank all that is below it may go to further
 * levels. So no move closes a cycle, and no tree is deep.
 *
 * Edges that have too much push ranks of trees to other hops of these ranks, towards edges that have room, as preflows
 * are pushed (Goldberg and Tarjan 1988): an edge has a label, about how many moves it is from one with room, and pushes
 * to where labels are lower. Weights of trees fall by halves: heavy trees first, each rank on the hop with most room,
 * and enough of weight one last, which fill what the others left. So a few trees have the rate of a fraction with a
 * large denominator:
 *
 *     16 x 16 x 16 torus, open in one dimension, without a rank: 12026 edges, 4094 of each tree
 *     6013 / 2047 of a link: 6013 trees of weight 1, or 158 of weights 1 to 253
 *
 * Which ranks are inner ones is chosen as trees grow, from the root: through a switch a few of those that have most
 * room, and whose other neighbours are not in the tree yet. */
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/halves.h"
#include "plan/pack/flow/orient.h"
#include "plan/pack/flow/parents_push.h"

#include <string.h>

enum {
	ENOUGH_UNITS = 64,		/* of all trees; of fewer each tree is one, or half of it, and so on */
	MOST_UNITS = 1 << 14,		/* lighter ones than a part of that take long over their hops */
	MOST_HOPS = 256,		/* of a rank, in the mean */
	MOST_LOOKS = 128,		/* at each hop of each tree; where these are found, half of that at most */
	MOST_DIRECT = 1 << 27,		/* looks over direct links, where trees have more hops: 2 s */
	FAN_OUT = 4			/* of a rank through a switch */
};

static Status
list_edges(struct parents *p)
{
	const Topology *topo = p->topo;
	int *fill;
	TRY(TEMP_EACH(p->ctx, topo->n_links, p->link, p->edge));
	TRY(TEMP_EACH(p->ctx, topo->n_vertices + 1, p->first_edge, fill));
	for (int l = 0; l < topo->n_links; l++) {
		p->first_edge[topo->link[l].from + 1]++;
		if (l < p->opposite[l])
			p->link[p->n_edges++] = l;
	}
	for (int v = 0; v < topo->n_vertices; v++)
		p->first_edge[v + 1] += p->first_edge[v];
	memcpy(fill, p->first_edge, (size_t)topo->n_vertices * sizeof *fill);
	for (int e = 0; e < p->n_edges; e++) {
		const Link *link = &topo->link[p->link[e]];
		p->edge[fill[link->from]++] = e;
		p->edge[fill[link->to]++] = e;
	}
	return OK;
}

static void
add_hop(struct parents *p, int to, int near, int far)
{
	p->other[p->n_hops] = to;
	p->over[p->n_hops][0] = near;
	p->over[p->n_hops++][1] = far;
}

/* p->n_hops: how many, or 0 where switches have links to each other, or there are too many. */
static Status
list_hops(struct parents *p)
{
	const int *first = p->first_edge;
	int64_t n = 0;
	for (int v = 0; v < p->topo->n_vertices; v++)
		for (int i = first[v]; i < first[v + 1]; i++) {
			int w = parents_across(p, v, p->edge[i]);
			n += v < p->n ? w < p->n : w < p->n ? first[v + 1] - first[v] - 1 : INT32_MAX;
		}
	if (n > (int64_t)MOST_HOPS * p->n)
		return OK;
	TRY(TEMP_EACH(p->ctx, n, p->other, p->over));
	TRY(TEMP(p->ctx, p->first, p->n + 1));
	for (int v = 0; v < p->n; v++) {
		p->first[v] = p->n_hops;
		for (int i = first[v]; i < first[v + 1]; i++) {
			int e = p->edge[i], w = parents_across(p, v, e);
			if (w < p->n)
				add_hop(p, w, e, -1);
			for (int k = first[w]; w >= p->n && k < first[w + 1]; k++)
				if (p->edge[k] != e)
					add_hop(p, parents_across(p, w, p->edge[k]), e, p->edge[k]);
		}
	}
	p->first[p->n] = p->n_hops;
	return OK;
}

/* Over direct links: hops from each rank to the farthest, the least of which is returned. Through switches any rank is
 * near all others. */
static Status
find_farthest(struct parents *p, int *radius)
{
	short *hops;
	*radius = 0;
	TRY(TEMP_EACH(p->ctx, p->n, hops, p->far));
	for (int v = 0; v < p->n && p->topo->n_vertices == p->n; v++) {
		p->far[v] = parents_hops(p, v, 1, hops);
		*radius = v == 0 || p->far[v] < *radius ? p->far[v] : *radius;
	}
	return OK;
}

/* Ranks with at most this many hops to the farthest, in turn. */
static void
choose_roots(struct parents *p, int most)
{
	int n = 0, *near = p->queue;
	for (int v = 0; v < p->n; v++)
		if (p->far[v] <= most)
			near[n++] = v;
	int stride = (int)(n * 0.618) | 1;
	while (gcd64(stride, n) > 1)
		stride += 2;
	for (int t = 0; t < p->n_trees; t++)
		p->root[t] = near[(int64_t)t * stride % n];
}

/* Of each hop the links from the rank to its parent, and back. */
static Status
list_links(const struct parents *p, int (**out)[2][2])
{
	int (*links)[2][2];
	TRY(NEW(p->ctx, links, p->n_hops));
	for (int v = 0; v < p->n; v++)
		for (int h = p->first[v]; h < p->first[v + 1]; h++)
			for (int k = 0, at = v; k < 2 && p->over[h][k] >= 0; k++) {
				int l = p->link[p->over[h][k]], last = p->over[h][1] >= 0 ? 1 : 0;
				l = p->topo->link[l].from == at ? l : p->opposite[l];
				links[h][0][k] = l;
				links[h][1][last - k] = p->opposite[l];
				at = p->topo->link[l].to;
			}
	*out = links;
	return OK;
}

static Status
make_trees(struct parents *p, Frac unit, Packing **out)
{
	Edge *there, *back;
	int (*links)[2][2];
	Packing *pack;
	TRY(TEMP_EACH(p->ctx, p->n, there, back));
	TRY(list_links(p, &links));
	TRY(pack_new(p->ctx, p->n_trees, false, &pack));
	pack->unit = unit;
	for (int t = 0; t < p->n_trees; t++) {
		int n = 0;
		for (int v = 0; v < p->n; v++) {
			int h = p->up[t * p->n + v];
			if (v == p->root[t])
				continue;
			int n_links = p->over[h][1] >= 0 ? 2 : 1;
			there[n] = (Edge){ p->other[h], v, n_links, links[h][1] };
			back[n++] = (Edge){ v, p->other[h], n_links, links[h][0] };
		}
		pack->weight[t] = p->weight[t];
		TRY(tree_arrange(p->ctx, p->n, ALLREDUCE, -1, there, back, n, &pack->tree[pack->n_trees++]));
	}
	TRY(pack_check(p->ctx, p->topo, pack));
	*out = pack;
	return OK;
}

/* Trees of roots that have at most this many hops to the farthest, and of as many levels, and some more. Returns
 * whether no edge has too much. */
static bool
try_levels(struct parents *p, int hops, int fan_out, int more, const int64_t *capacity)
{
	const int n_trees = p->n_trees;
	memcpy(p->room, capacity, (size_t)p->n_edges * sizeof *p->room);
	p->excess = 0;
	p->spare = p->most_spare;
	choose_roots(p, hops);
	int deepest = parents_grow(p, fan_out);
	p->most = (deepest > hops ? deepest : hops) + more;
	bool done = parents_push(p);
	p->n_trees = done ? p->n_trees : n_trees;
	return done;
}

/* Trees of the least depth, or some more. */
static bool
find_trees(struct parents *p, int radius, const int64_t *capacity)
{
	return try_levels(p, radius, FAN_OUT, 0, capacity) || try_levels(p, radius, FAN_OUT, 1, capacity)
	    || try_levels(p, radius + 1, FAN_OUT - 1, 1, capacity)
	    || try_levels(p, radius + 1, FAN_OUT - 2, 3, capacity)
	    || try_levels(p, radius + 1 + radius / 8, FAN_OUT - 2, 1, capacity);
}

/* parts: the rate, in units of links. */
static Status
choose_parents(struct parents *p, Frac parts, Packing **out)
{
	const int64_t common = topo_link_unit(p->topo);
	int radius;
	int64_t *capacity;
	Frac unit;
	TRY(TEMP(p->ctx, p->queue, p->topo->n_links + p->n));
	TRY(list_edges(p));
	TRY(list_hops(p));
	TRY(halves_choose(p->ctx, p->n, (int64_t)parts.num, &p->weight, &p->n_trees));
	if (p->n_hops == 0 || p->n_trees == 0 || !frac_div((Frac){ common, 1 }, (Frac){ parts.den, 1 }, &unit))
		return OK;
	TRY(find_farthest(p, &radius));
	size_t places = (size_t)p->n_trees * (size_t)p->n;
	p->most_looks = MOST_LOOKS * (int64_t)p->n_trees * p->n_hops;
	if (p->topo->n_vertices == p->n && p->most_looks > MOST_DIRECT)
		p->most_looks = MOST_DIRECT;
	TRY(TEMP(p->ctx, p->root, p->n_trees));
	TRY(TEMP_EACH(p->ctx, places, p->up, p->level, p->children));
	TRY(TEMP_EACH(p->ctx, 2 * places, p->next, p->prev));
	TRY(TEMP_EACH(p->ctx, p->n_edges, p->room, p->label, p->head, p->active, p->waits, capacity));
	for (int e = 0; e < p->n_edges; e++)
		capacity[e] = p->topo->link[p->link[e]].capacity / common * parts.den;
	return radius >= 0 && find_trees(p, radius, capacity) ? make_trees(p, unit, out) : OK;
}

/* Units finer, until a few of them are no more than what trees may lack. */
static void
refine_units(Frac *parts, Frac less)
{
	enum { A_FEW = 2 };
	while (less.num > 0 && parts->num * less.num < A_FEW * less.den && parts->num <= MOST_UNITS / 2
	    && parts->den <= MOST_UNITS / 2)
		*parts = (Frac){ 2 * parts->num, 2 * parts->den };
}

Status
pack_parents(Ctx *ctx, const Topology *topo, Frac rate, Frac less, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const int *opposite;
	Frac parts;
	*out = NULL;
	if (topo->route || topo->n_ranks > LIMIT_PAIR_RANKS
	    || !frac_div(rate, (Frac){ topo_link_unit(topo), 1 }, &parts)
	    || parts.num > MOST_UNITS || parts.den > MOST_UNITS)
		return OK;
	refine_units(&parts, less);
	TRY(orient_opposite(ctx, topo, &opposite));
	for (bool few = true; few && opposite && !*out; parts.num *= 2, parts.den *= 2) {
		const int64_t spare = (int64_t)(parts.num * less.num / less.den);
		struct parents p = { .ctx = ctx, .topo = topo, .n = topo->n_ranks, .opposite = opposite,
			.most_spare = spare };
		few = parts.num < ENOUGH_UNITS;
		TRY(choose_parents(&p, parts, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
