/* The cheapest tree of a demand. One tree of an allreduce serves both phases: data goes up in one direction of its
 * edges and down in the other. Its cost does not depend on its root, so the cheapest is a minimum spanning tree; it
 * is rooted at its centre. On full-duplex links nothing is lost by that. Where some link has no equal in the other
 * direction, a tree is an arborescence into a rank and another one out of it, the cheapest pair over all ranks. */
#include "graph/cheapest_tree.h"
#include "graph/reversible.h"

#include <string.h>

enum { FEW_ROOTS = 16 };

Status
cheapest_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, Cheapest *out)
{
	Cheapest c = { .ctx = ctx, .topo = topo, .path_end = -1, .last_to = -1,
		.n_roots = sym ? sym->n_representatives : topo->n_ranks,
		.roots = sym ? sym->representative : NULL };
	bool mirrored;
	TRY(topo_mirrored(ctx, topo, &mirrored));
	/* Pairs take a search at each root: with many roots, a single tree is tried first where it is likely to be
	 * optimal. */
	if (!mirrored && c.n_roots > FEW_ROOTS)
		TRY(topo_twinned(ctx, topo, &mirrored));
	c.paired = !mirrored;
	TRY(search_new(ctx, topo, &c.search));
	TRY(TEMP_EACH(ctx, topo->n_ranks, c.there, c.back, c.into, c.out_of, c.distance, c.path_hop));
	TRY(TEMP_EACH(ctx, topo->n_links, c.used, c.uses));
	*out = c;
	return OK;
}

Status
cheapest_limit(Cheapest *c, const Family *family, const Symmetry *sym)
{
	c->family = family;
	return family ? family->start(c, sym) : OK;
}

/* The subproblem that a hop is in; NULL: none. */
static const struct subproblem *
subproblem_of(const Cheapest *c, int hop)
{
	int low = 0, high = c->n_subproblems;
	if (hop < c->search.n_hops)
		return NULL;
	while (high - low > 1) {
		int middle = (low + high) / 2;
		if (c->subproblem[middle].first_hop <= hop)
			low = middle;
		else
			high = middle;
	}
	return &c->subproblem[low];
}

static int
source_of(const Cheapest *c, int hop)
{
	const struct subproblem *sub = subproblem_of(c, hop);
	return sub ? sub->rank[sub->search.hop[hop - sub->first_hop].src] : c->search.hop[hop].src;
}

/* Its links are those in `link`. */
static Status
hop_edge(const Cheapest *c, int hop, int link[LIMIT_ROUTE_LINKS], Edge *out)
{
	const struct subproblem *sub = subproblem_of(c, hop);
	const Search *search = sub ? &sub->search : &c->search;
	const struct hop *h = &search->hop[hop - (sub ? sub->first_hop : 0)];
	int n = search_route(search, (int)(h - search->hop), link);
	*out = (Edge){ sub ? sub->rank[h->src] : h->src, sub ? sub->rank[h->dst] : h->dst, n, link };
	if (n < 0)
		return fail(c->ctx, LIMIT, "%s: a route from %s to %s needs more than %d links", c->topo->name,
		    c->topo->vertex[out->src].id, c->topo->vertex[out->dst].id, LIMIT_ROUTE_LINKS);
	for (int i = 0; sub && i < n; i++)
		link[i] = sub->link[link[i]];
	return OK;
}

static Status
use_route(Cheapest *c, int hop)
{
	int link[LIMIT_ROUTE_LINKS];
	Edge edge;
	TRY(hop_edge(c, hop, link, &edge));
	for (int i = 0; i < edge.n_links; i++)
		if (c->uses[link[i]]++ == 0)
			c->used[c->n_used++] = link[i];
	return OK;
}

/* The halves in the work space become the current tree, if both were found and it is cheaper. *least: below 0: none. */
static void
keep_halves(Cheapest *c, int root, int64_t up, int64_t down, int64_t *least)
{
	if (up < 0 || down < 0 || (*least >= 0 && up + down >= *least))
		return;
	*least = up + down;
	c->root = root;
	memcpy(c->there, c->into, (size_t)c->topo->n_ranks * sizeof *c->there);
	memcpy(c->back, c->out_of, (size_t)c->topo->n_ranks * sizeof *c->back);
}

/* Is the time over for a search that may end without the cheapest tree? One search costs about 100 ns for each hop. */
static bool
is_late(const Cheapest *c)
{
	return c->hurries && out_of_time(c->ctx, 100 * (int64_t)c->search.n_hops);
}

/* The cheapest pair of arborescences into and out of one rank. */
static int64_t
cheapest_pair(Cheapest *c)
{
	int64_t least = -1;
	for (int i = 0; i < c->n_roots && (least < 0 || !is_late(c)); i++) {
		int r = c->roots ? c->roots[i] : i;
		int64_t up = search_arborescence(&c->search, r, true, c->into);
		int64_t down = search_arborescence(&c->search, r, false, c->out_of);
		keep_halves(c, r, up, down, &least);
	}
	return least;
}

/* Shortest paths from a rank, or to it. */
static void
find_paths(Cheapest *c, int end, bool into)
{
	if (c->path_end == end && c->paths_into == into)
		return;
	if (is_late(c))
		search_quick_tree(&c->search, end, into, c->path_hop);
	else
		search_shortest_paths(&c->search, end, into, c->distance, c->path_hop);
	c->path_end = end;
	c->paths_into = into;
}

/* The shortest path: its hops in `there`, each at the rank that it enters. Many paths to one rank are found at once. */
static int64_t
cheapest_path(Cheapest *c, int from, int to)
{
	enum { RANKS = 256 };
	bool into = c->topo->n_ranks > RANKS && c->last_to == to && c->path_end != from;
	int end = into ? to : from;
	c->last_to = to;
	find_paths(c, end, into);
	for (int v = into ? from : to; v != (into ? to : from);) {
		if (c->path_hop[v] < 0)
			return -1;
		const struct hop *hop = &c->search.hop[c->path_hop[v]];
		c->there[hop->dst] = c->path_hop[v];
		v = into ? hop->dst : hop->src;
	}
	return c->distance[into ? from : to];
}

/* As cheapest_pair, where the halves share the hops that are allowed. */
static int64_t
limited_pair(Cheapest *c)
{
	int64_t least = -1;
	for (int i = 0; i < c->n_roots && (least < 0 || !is_late(c)); i++) {
		int r = c->roots ? c->roots[i] : i;
		int in = search_depths(&c->search, r, true, c->into, NULL),
		    out = search_depths(&c->search, r, false, c->into, NULL);
		int up_hops = c->max_depth / 2 > in ? c->max_depth / 2 : in, down_hops = c->max_depth - up_hops;
		if (in < 0 || out < 0 || in + out > c->max_depth)
			continue;
		if (down_hops < out) {
			down_hops = out;
			up_hops = c->max_depth - out;
		}
		int64_t up = search_depth_limited(&c->search, r, true, up_hops, c->into, NULL);
		int64_t down = search_depth_limited(&c->search, r, false, down_hops, c->out_of, NULL);
		keep_halves(c, r, up, down, &least);
	}
	return least;
}

/* A spanning tree within half the hops from some rank. */
static int64_t
limited_spanning_tree(Cheapest *c)
{
	int64_t least = -1;
	for (int i = 0; i < c->n_roots && (least < 0 || !is_late(c)); i++) {
		int64_t cost = search_depth_limited(&c->search, c->roots ? c->roots[i] : i, false, c->max_depth / 2,
		    c->into, c->out_of);
		keep_halves(c, c->roots ? c->roots[i] : i, cost, 0, &least);
	}
	return least;
}

/* No path has more hops than there are other ranks. */
static Status
limited_path(Cheapest *c, int from, int to, int64_t *cost)
{
	ArenaMark mark = arena_mark(&c->ctx->scratch);
	int n = c->topo->n_ranks, limit = c->max_depth < n ? c->max_depth : n - 1;
	int64_t *layer;
	TRY(TEMP(c->ctx, layer, ((size_t)limit + 1) * (size_t)n));
	*cost = search_depth_limited_path(&c->search, from, to, limit, layer, c->into);
	for (int v = to; *cost >= 0 && v != from; v = c->search.hop[c->there[v]].src)
		c->there[v] = c->into[v];
	arena_release(&c->ctx->scratch, mark);
	return OK;
}

static Status
find_limited(Cheapest *c, int64_t *cost)
{
	const Demand *d = &c->demand;
	if (d->kind == DEMAND_PATH)
		return limited_path(c, d->from, d->to, cost);
	if (d->kind == DEMAND_BROADCAST)
		*cost = search_depth_limited(&c->search, d->from, false, c->max_depth, c->there, NULL);
	else if (d->kind == DEMAND_REDUCE)
		*cost = search_depth_limited(&c->search, d->to, true, c->max_depth, c->there, NULL);
	else
		*cost = c->paired ? limited_pair(c) : limited_spanning_tree(c);
	return OK;
}

/* What is quick, where cheapest_tree needs arborescences. *cost is that of the tree. */
static bool
find_quick(Cheapest *c, int64_t *cost)
{
	const Demand *d = &c->demand;
	int n = c->topo->n_ranks;
	if (d->kind == DEMAND_PATH || (d->kind == DEMAND_ALLREDUCE && !c->paired))
		return false;
	bool into = d->kind != DEMAND_BROADCAST, pair = d->kind == DEMAND_ALLREDUCE;
	c->root = pair ? c->roots ? c->roots[0] : 0 : into ? d->to : d->from;
	bool found = search_quick_tree(&c->search, c->root, into, c->there)
	    && (!pair || search_quick_tree(&c->search, c->root, false, c->back));
	*cost = found ? 0 : -1;
	for (int v = 0; v < n && found; v++) {
		*cost += c->there[v] >= 0 ? c->search.hop[c->there[v]].cost : 0;
		*cost += c->back[v] >= 0 ? c->search.hop[c->back[v]].cost : 0;
	}
	return found;
}

static int64_t
find_any(Cheapest *c)
{
	const Demand *d = &c->demand;
	if (d->kind == DEMAND_BROADCAST)
		return search_arborescence(&c->search, d->from, false, c->there);
	if (d->kind == DEMAND_REDUCE)
		return search_arborescence(&c->search, d->to, true, c->there);
	if (d->kind == DEMAND_PATH)
		return cheapest_path(c, d->from, d->to);
	return c->paired ? cheapest_pair(c) : search_spanning_tree(&c->search, c->there, c->back);
}

void
cheapest_price(Cheapest *c, const int64_t *price)
{
	search_price(&c->search, price);
	c->path_end = -1;
	if (c->family)
		c->family->price(c, price);
}

Status
cheapest_find(Cheapest *c, Demand demand, int64_t *cost)
{
	int n = c->topo->n_ranks;
	c->demand = demand;
	memset(c->there, -1, (size_t)n * sizeof *c->there);
	memset(c->back, -1, (size_t)n * sizeof *c->back);
	if (c->family)
		TRY(c->family->find(c, cost));
	else if (c->max_depth)
		TRY(find_limited(c, cost));
	else if (!is_late(c) || !find_quick(c, cost))
		*cost = find_any(c);
	for (int i = 0; i < c->n_used; i++)
		c->uses[c->used[i]] = 0;
	c->n_used = 0;
	for (int i = 0; i < n && *cost >= 0; i++) {
		if (c->there[i] >= 0)
			TRY(use_route(c, c->there[i]));
		if (c->back[i] >= 0)
			TRY(use_route(c, c->back[i]));
	}
	return OK;
}

/* ---- the current tree ---- */

static Status
edge_of_hop(Cheapest *c, int hop, Edge *out)
{
	int link[LIMIT_ROUTE_LINKS], *copy;
	TRY(hop_edge(c, hop, link, out));
	TRY(NEW(c->ctx, copy, out->n_links));
	memcpy(copy, link, (size_t)out->n_links * sizeof *copy);
	out->link = copy;
	return OK;
}

static Status
collect_edges(Cheapest *c, const int *hop, Edge **out, int *n_edges)
{
	int n = c->topo->n_ranks;
	*n_edges = 0;
	TRY(TEMP(c->ctx, *out, n));
	for (int i = 0; i < n; i++)
		if (hop[i] >= 0)
			TRY(edge_of_hop(c, hop[i], &(*out)[(*n_edges)++]));
	return OK;
}

/* Edges from the source on. */
static Status
path_tree(Cheapest *c, bool rooted_at_end, Tree *out)
{
	int n = 0, from = c->demand.from, to = c->demand.to;
	Edge *edge;
	for (int v = to; v != from; v = source_of(c, c->there[v]))
		n++;
	TRY(NEW(c->ctx, edge, n));
	for (int v = to, e = n; v != from; v = source_of(c, c->there[v]))
		TRY(edge_of_hop(c, c->there[v], &edge[--e]));
	*out = rooted_at_end ? (Tree){ .root = to, .n_up = n, .up = edge }
	    : (Tree){ .root = from, .n_down = n, .down = edge };
	return OK;
}

static Status
arranged_tree(Cheapest *c, Tree *out)
{
	int n = c->topo->n_ranks, n_there, n_back;
	Edge *there, *back;
	Tree up, down;
	TRY(collect_edges(c, c->there, &there, &n_there));
	TRY(collect_edges(c, c->back, &back, &n_back));
	if (c->demand.kind == DEMAND_BROADCAST)
		return tree_arrange(c->ctx, n, BROADCAST, c->demand.from, there, back, n_there, out);
	if (c->demand.kind == DEMAND_REDUCE)
		return tree_arrange(c->ctx, n, REDUCE, c->demand.to, there, back, n_there, out);
	if (!c->paired)
		return tree_arrange(c->ctx, n, ALLREDUCE, -1, there, back, n_there, out);
	TRY(tree_arrange(c->ctx, n, REDUCE, c->root, there, NULL, n_there, &up));
	TRY(tree_arrange(c->ctx, n, BROADCAST, c->root, back, NULL, n_back, &down));
	*out = (Tree){ .root = c->root, .n_down = down.n_down, .n_up = up.n_up, .down = down.down, .up = up.up };
	return OK;
}

Status
cheapest_tree(Cheapest *c, bool rooted_at_end, Tree *out)
{
	ArenaMark mark = arena_mark(&c->ctx->scratch);
	TRY(c->demand.kind == DEMAND_PATH ? path_tree(c, rooted_at_end, out) : arranged_tree(c, out));
	arena_release(&c->ctx->scratch, mark);
	return OK;
}
