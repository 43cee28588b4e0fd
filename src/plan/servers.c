/* Servers as subproblems of a topology: ranks, other vertices and links of each, renumbered. */
#include "plan/servers.h"

/* The server of a node, -1: it has no ranks; sizes of the subproblems. */
static Status
count_vertices(Cheapest *c, struct servers *s, int *of_node)
{
	const Topology *topo = c->topo;
	for (int node = 0; node < topo->n_nodes; node++)
		of_node[node] = -1;
	for (int v = 0; v < topo->n_ranks; v++) {
		int node = topo->vertex[v].node;
		if (node < 0)
			return fail(c->ctx, INFEASIBLE, "%s: %s: %s is in no server: want every GPU in one", topo->name,
			    c->family->trees, topo->vertex[v].id);
		if (of_node[node] < 0)
			of_node[node] = s->n++;
	}
	TRY(TEMP(c->ctx, s->subproblem, s->n));
	for (int v = 0; v < topo->n_vertices; v++) {
		int i = topo->vertex[v].node < 0 ? -1 : of_node[topo->vertex[v].node];
		if (i < 0)
			continue;
		s->subproblem[i].topo.n_vertices++;
		s->subproblem[i].topo.n_ranks += v < topo->n_ranks;
	}
	return OK;
}

/* The server of a link, if both ends are in it; else -1. */
static int
server_of(const Topology *topo, const Link *link, const int *of_node)
{
	int node = topo->vertex[link->from].node;
	return node < 0 || topo->vertex[link->to].node != node ? -1 : of_node[node];
}

/* Arrays of the sizes that were counted. Vertices and links are counted anew as they are filled in. */
static Status
allocate(Cheapest *c, struct servers *s, const int *of_node, int **rank, int **link)
{
	const Topology *topo = c->topo;
	for (int l = 0; l < topo->n_links; l++) {
		int i = server_of(topo, &topo->link[l], of_node);
		if (i >= 0)
			s->subproblem[i].topo.n_links++;
	}
	for (int i = 0; i < s->n; i++) {
		Topology *own = &s->subproblem[i].topo;
		own->name = topo->name;
		TRY(TEMP(c->ctx, own->vertex, own->n_vertices));
		TRY(TEMP(c->ctx, own->link, own->n_links));
		TRY(TEMP(c->ctx, rank[i], own->n_ranks));
		TRY(TEMP(c->ctx, link[i], own->n_links));
		s->subproblem[i].rank = rank[i];
		s->subproblem[i].link = link[i];
		own->n_vertices = own->n_links = 0;
	}
	return OK;
}

/* number: of each vertex in its server. Ranks come first there, too. */
static void
place_vertices(const Topology *topo, struct servers *s, const int *of_node, int *number, int **rank)
{
	for (int v = 0; v < topo->n_vertices; v++) {
		int i = topo->vertex[v].node < 0 ? -1 : of_node[topo->vertex[v].node];
		if (i < 0)
			continue;
		number[v] = s->subproblem[i].topo.n_vertices++;
		s->subproblem[i].topo.vertex[number[v]] = topo->vertex[v];
		if (v >= topo->n_ranks)
			continue;
		s->of[v] = i;
		s->place[v] = number[v];
		rank[i][number[v]] = v;
	}
}

static void
place_links(const Topology *topo, struct servers *s, const int *of_node, const int *number, int **link)
{
	for (int l = 0; l < topo->n_links; l++) {
		int i = server_of(topo, &topo->link[l], of_node);
		if (i < 0)
			continue;
		Topology *own = &s->subproblem[i].topo;
		link[i][own->n_links] = l;
		own->link[own->n_links] = topo->link[l];
		own->link[own->n_links].from = number[topo->link[l].from];
		own->link[own->n_links++].to = number[topo->link[l].to];
	}
}

/* Pairs of a server keep the kind of their route. */
static Status
place_routes(Cheapest *c, struct subproblem *sub)
{
	size_t n = (size_t)c->topo->n_ranks, n_own = (size_t)sub->topo.n_ranks;
	unsigned char *route;
	if (!c->topo->route)
		return OK;
	TRY(TEMP(c->ctx, route, n_own * n_own));
	for (size_t i = 0; i < n_own * n_own; i++)
		route[i] = c->topo->route[(size_t)sub->rank[i / n_own] * n + (size_t)sub->rank[i % n_own]];
	sub->topo.route = route;
	return OK;
}

static Status
fill(Cheapest *c, struct servers *s, const int *of_node)
{
	int *number, **rank, **link;
	TRY(TEMP(c->ctx, s->of, c->topo->n_ranks));
	TRY(TEMP(c->ctx, s->place, c->topo->n_ranks));
	TRY(TEMP(c->ctx, number, c->topo->n_vertices));
	TRY(TEMP(c->ctx, rank, s->n));
	TRY(TEMP(c->ctx, link, s->n));
	TRY(allocate(c, s, of_node, rank, link));
	place_vertices(c->topo, s, of_node, number, rank);
	place_links(c->topo, s, of_node, number, link);
	return OK;
}

Status
servers_split(Cheapest *c, struct servers *s)
{
	int *of_node, first_hop = c->search.n_hops;
	*s = (struct servers){ 0 };
	TRY(TEMP(c->ctx, of_node, c->topo->n_nodes + 1));
	TRY(count_vertices(c, s, of_node));
	TRY(fill(c, s, of_node));
	for (int i = 0; i < s->n; i++) {
		struct subproblem *sub = &s->subproblem[i];
		TRY(topo_index(c->ctx, &sub->topo));
		TRY(place_routes(c, sub));
		TRY(search_new(c->ctx, &sub->topo, &sub->search));
		sub->first_hop = first_hop;
		first_hop += sub->search.n_hops;
	}
	c->subproblem = s->subproblem;
	c->n_subproblems = s->n;
	return OK;
}

/* A rank that rank 0 of the server does not reach (into: that does not reach rank 0); -1: there is none. */
static int
disconnected_rank(struct subproblem *sub, bool into, int *depth)
{
	search_depths(&sub->search, 0, into, depth, NULL);
	for (int v = 0; v < sub->topo.n_ranks; v++)
		if (depth[v] < 0)
			return v;
	return -1;
}

Status
servers_check(Cheapest *c, const struct servers *s)
{
	int *depth;
	TRY(TEMP(c->ctx, depth, c->topo->n_ranks));
	for (int i = 0; i < 2 * s->n; i++) {
		struct subproblem *sub = &s->subproblem[i / 2];
		const Vertex *vertex = sub->topo.vertex;
		int lost = disconnected_rank(sub, i % 2, depth), from = i % 2 ? lost : 0, to = i % 2 ? 0 : lost;
		if (lost >= 0)
			return fail(c->ctx, INFEASIBLE,
			    "%s: %s: no path from %s to %s over links of %s: want ranks of one server that its own "
			    "links connect", c->topo->name, c->family->trees, vertex[from].id, vertex[to].id,
			    c->topo->node[vertex[0].node]);
	}
	return OK;
}
