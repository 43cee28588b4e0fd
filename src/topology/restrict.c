/* A machine with fewer GPUs. */
#include "topology/topology.h"

#include <string.h>

/* place: of each vertex that stays, its new number; of the others -1. Returns how many stay. */
static int
number_vertices(const Topology *machine, const int *gpu, int n, const bool *used, int *place)
{
	int next = n;
	memset(place, -1, (size_t)machine->n_vertices * sizeof *place);
	for (int i = 0; i < n; i++)
		place[gpu[i]] = i;
	for (int v = machine->n_ranks; v < machine->n_vertices; v++) {
		int node = machine->vertex[v].node;
		if (node < 0 || used[node])
			place[v] = next++;
	}
	return next;
}

static Status
keep_nodes(Ctx *ctx, const Topology *machine, const bool *used, int *node_place, Topology *topo)
{
	TRY(NEW(ctx, topo->node, machine->n_nodes));
	topo->n_nodes = 0;
	for (int s = 0; s < machine->n_nodes; s++) {
		node_place[s] = used[s] ? topo->n_nodes : -1;
		if (used[s])
			topo->node[topo->n_nodes++] = machine->node[s];
	}
	return OK;
}

Status
topo_restrict(Ctx *ctx, const Topology *machine, const int *gpu, int n, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Topology *topo;
	bool *used;
	int *place, *node_place;
	TRY(NEW(ctx, topo, 1));
	TRY(TEMP(ctx, used, machine->n_nodes));
	TRY(TEMP(ctx, node_place, machine->n_nodes));
	TRY(TEMP(ctx, place, machine->n_vertices));
	*topo = *machine;
	for (int i = 0; i < n; i++)
		if (machine->vertex[gpu[i]].node >= 0)
			used[machine->vertex[gpu[i]].node] = true;
	TRY(keep_nodes(ctx, machine, used, node_place, topo));
	topo->n_ranks = n;
	TRY(topo_renumber(ctx, place, number_vertices(machine, gpu, n, used, place), topo));
	for (int v = 0; v < topo->n_vertices; v++)
		if (topo->vertex[v].node >= 0)
			topo->vertex[v].node = node_place[topo->vertex[v].node];
	arena_release(&ctx->scratch, mark);
	*out = topo;
	return OK;
}
