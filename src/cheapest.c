/* One tree of an allreduce serves both phases: data goes up one direction of its edges and down the other. Its cost
 * does not depend on its root, so the cheapest is a minimum spanning tree; it is rooted at its centre. On full-duplex links
 * nothing is lost by that. Where some link has no equal in the other direction, a tree is an arborescence into a rank and
 * another one out of it, the cheapest pair over all ranks. */
#include "cheapest.h"

#include <string.h>

/* Is there as much capacity from a to b as from b to a, for all vertices? */
static Status
is_mirrored(Ctx *ctx, const Topology *topo, bool *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *net;		/* to each vertex from the one at hand, less what comes back */
	TRY(TEMP(ctx, net, topo->n_vertices));
	*out = true;
	for (int v = 0; v < topo->n_vertices; v++) {
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
			net[topo->link[topo->out[i]].to] += topo->link[topo->out[i]].capacity;
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++)
			net[topo->link[topo->in[i]].from] -= topo->link[topo->in[i]].capacity;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			*out = *out && net[topo->link[topo->out[i]].to] == 0;
			net[topo->link[topo->out[i]].to] = 0;
		}
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
			*out = *out && net[topo->link[topo->in[i]].from] == 0;
			net[topo->link[topo->in[i]].from] = 0;
		}
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
cheapest_new(Ctx *ctx, const Topology *topo, Cheapest *out)
{
	Cheapest c = { .ctx = ctx, .topo = topo, .path_from = -1 };
	bool mirrored;
	TRY(is_mirrored(ctx, topo, &mirrored));
	c.paired = !mirrored;
	TRY(search_new(ctx, topo, &c.search));
	TRY(TEMP(ctx, c.there, topo->n_ranks));
	TRY(TEMP(ctx, c.back, topo->n_ranks));
	TRY(TEMP(ctx, c.into, topo->n_ranks));
	TRY(TEMP(ctx, c.out_of, topo->n_ranks));
	TRY(TEMP(ctx, c.distance, topo->n_ranks));
	TRY(TEMP(ctx, c.path_hop, topo->n_ranks));
	TRY(TEMP(ctx, c.used, topo->n_links));
	TRY(TEMP(ctx, c.uses, topo->n_links));
	*out = c;
	return OK;
}

static Status
use_route(Cheapest *c, int hop)
{
	int link[LIMIT_ROUTE_LINKS], n = search_route(&c->search, hop, link);
	if (n < 0)
		return fail(c->ctx, LIMIT, "%s: a route from %s to %s needs more than %d links", c->topo->name,
		    c->topo->vertex[c->search.hop[hop].src].id, c->topo->vertex[c->search.hop[hop].dst].id,
		    LIMIT_ROUTE_LINKS);
	for (int i = 0; i < n; i++)
		if (c->uses[link[i]]++ == 0)
			c->used[c->n_used++] = link[i];
	return OK;
}

/* The cheapest pair of arborescences into and out of one rank. */
static int64_t
cheapest_pair(Cheapest *c)
{
	int64_t least = -1;
	for (int r = 0; r < c->topo->n_ranks; r++) {
		int64_t up = search_arborescence(&c->search, r, true, c->into);
		int64_t down = search_arborescence(&c->search, r, false, c->out_of);
		if (up < 0 || down < 0 || (least >= 0 && up + down >= least))
			continue;
		least = up + down;
		c->root = r;
		memcpy(c->there, c->into, (size_t)c->topo->n_ranks * sizeof *c->there);
		memcpy(c->back, c->out_of, (size_t)c->topo->n_ranks * sizeof *c->back);
	}
	return least;
}

void
cheapest_price(Cheapest *c, const int64_t *price)
{
	search_price(&c->search, price);
	c->path_from = -1;
}

/* The shortest path to `to`: its hops in `there`, each at the rank that it enters. */
static int64_t
cheapest_path(Cheapest *c, int from, int to)
{
	if (c->path_from != from) {
		search_paths(&c->search, from, c->distance, c->path_hop);
		c->path_from = from;
	}
	for (int v = to; v != from; v = c->search.hop[c->there[v]].src) {
		if (c->path_hop[v] < 0)
			return -1;
		c->there[v] = c->path_hop[v];
	}
	return c->distance[to];
}

Status
cheapest_find(Cheapest *c, Demand demand, int64_t *cost)
{
	int n = c->topo->n_ranks;
	c->demand = demand;
	memset(c->there, -1, (size_t)n * sizeof *c->there);
	memset(c->back, -1, (size_t)n * sizeof *c->back);
	if (demand.kind == DEMAND_SPREAD)
		*cost = search_arborescence(&c->search, demand.from, false, c->there);
	else if (demand.kind == DEMAND_COLLECT)
		*cost = search_arborescence(&c->search, demand.to, true, c->there);
	else if (demand.kind == DEMAND_CARRY)
		*cost = cheapest_path(c, demand.from, demand.to);
	else if (c->paired)
		*cost = cheapest_pair(c);
	else
		*cost = search_spanning_tree(&c->search, c->there, c->back);
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

/* ---- the tree at hand, as a noun ---- */

static Status
edge_of_hop(Cheapest *c, int hop, Edge *out)
{
	int link[LIMIT_ROUTE_LINKS], n = search_route(&c->search, hop, link), *copy;
	TRY(NEW(c->ctx, copy, n));
	memcpy(copy, link, (size_t)n * sizeof *copy);
	*out = (Edge){ c->search.hop[hop].src, c->search.hop[hop].dst, n, copy };
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
	for (int v = to; v != from; v = c->search.hop[c->there[v]].src)
		n++;
	TRY(NEW(c->ctx, edge, n));
	for (int v = to, e = n; v != from; v = c->search.hop[c->there[v]].src)
		TRY(edge_of_hop(c, c->there[v], &edge[--e]));
	*out = rooted_at_end ? (Tree){ .root = to, .n_up = n, .up = edge } : (Tree){ .root = from, .n_down = n, .down = edge };
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
	if (c->demand.kind == DEMAND_SPREAD)
		return tree_arrange(c->ctx, n, BROADCAST, c->demand.from, there, back, n_there, out);
	if (c->demand.kind == DEMAND_COLLECT)
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
	TRY(c->demand.kind == DEMAND_CARRY ? path_tree(c, rooted_at_end, out) : arranged_tree(c, out));
	arena_release(&c->ctx->scratch, mark);
	return OK;
}
