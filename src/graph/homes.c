/* Servers as homes of ranks; where each is a rank, those at one switch of the network. */
#include "graph/homes.h"

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

Status
topo_homes(Ctx *ctx, const Topology *topo, int *home, int *n)
{
	int *number;
	bool alone = true;
	*n = topo->n_nodes;
	TRY(TEMP(ctx, number, topo->n_vertices + topo->n_nodes));
	for (int v = 0; v < topo->n_ranks; v++) {
		int node = topo->vertex[v].node;
		home[v] = node >= 0 ? node : (*n)++;
		alone &= node < 0 || ++number[node] == 1;
	}
	if (!alone)
		return OK;
	*n = 0;
	for (int v = 0; v < topo->n_vertices; v++)
		number[v] = -1;
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
