/* The home of each rank: its server, or where servers have no links inside, the network switch that it hangs on. */
#include "graph/homes.h"
#include "base/disjoint.h"

/* The only vertex that rank v has links to; else v. */
static int
only_neighbour(const Topology *topo, int v)
{
	int only = v;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		int w = topo->link[topo->out[i]].to;
		if (only != v && only != w)
			return v;
		only = w;
	}
	return only;
}

/* Are two ranks of a server joined by links inside it? */
static Status
ranks_are_joined(Ctx *ctx, const Topology *topo, bool *joined)
{
	int *set, *ranks;
	*joined = false;
	TRY(TEMP_EACH(ctx, topo->n_vertices, set, ranks));
	for (int v = 0; v < topo->n_vertices; v++)
		set[v] = v;
	for (int l = 0; l < topo->n_links; l++) {
		int from = topo->link[l].from, to = topo->link[l].to;
		if (topo->vertex[from].node >= 0 && topo->vertex[from].node == topo->vertex[to].node)
			set_join(set, from, to);
	}
	for (int v = 0; v < topo->n_ranks; v++)
		*joined |= ++ranks[set_root(set, v)] > 1;
	return OK;
}

/* Servers. */
static void
find_servers(const Topology *topo, int *home, int *n)
{
	*n = topo->n_nodes;
	for (int v = 0; v < topo->n_vertices; v++) {
		int node = topo->vertex[v].node;
		home[v] = node >= 0 || v >= topo->n_ranks ? node : (*n)++;
	}
}

Status
topo_homes(Ctx *ctx, const Topology *topo, int *home, int *n)
{
	int *number;
	bool joined;
	TRY(ranks_are_joined(ctx, topo, &joined));
	if (joined) {
		find_servers(topo, home, n);
		return OK;
	}
	TRY(TEMP(ctx, number, topo->n_vertices));
	*n = 0;
	for (int v = 0; v < topo->n_vertices; v++)
		number[v] = home[v] = -1;
	for (int v = 0; v < topo->n_ranks; v++) {
		int w = only_neighbour(topo, v);
		number[w] = number[w] < 0 ? (*n)++ : number[w];
		home[v] = number[w];
	}
	for (int v = 0; v < topo->n_ranks && *n == 1; v++)
		home[v] = v;
	*n = *n == 1 ? topo->n_ranks : *n;
	return OK;
}
