#include "model/blocks.h"

/* Links from rank 0 to each vertex; -1: there is no path. */
static Status
distances(Ctx *ctx, const Topology *topo, int **out)
{
	int *distance, *queue, n = 1;
	TRY(TEMP_EACH(ctx, topo->n_vertices, distance, queue));
	for (int v = 1; v < topo->n_vertices; v++)
		distance[v] = -1;
	for (int i = 0; i < n; i++)
		for (int k = topo->first_out[queue[i]]; k < topo->first_out[queue[i] + 1]; k++) {
			int to = topo->link[topo->out[k]].to;
			if (distance[to] >= 0)
				continue;
			distance[to] = distance[queue[i]] + 1;
			queue[n++] = to;
		}
	*out = distance;
	return OK;
}

Status
blocks_find(Ctx *ctx, const Topology *topo, Blocks *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *distance;
	TRY(distances(ctx, topo, &distance));
	*out = (Blocks){ 1, { 1 } };
	for (int r = 2, most = topo->n_ranks > 1 ? distance[1] : 0; r < topo->n_ranks; r++) {
		int size = out->size[out->n - 1];
		if (r % size > 0 || distance[r] <= most)
			continue;
		most = distance[r];
		if (topo->n_ranks % r == 0)
			out->size[out->n++] = r;
	}
	out->size[out->n] = topo->n_ranks;
	arena_release(&ctx->scratch, mark);
	return OK;
}

int
blocks_turns(const Blocks *blocks, int from, int to)
{
	int turns = 0;
	for (int i = 0; i < blocks->n; i++) {
		int size = blocks->size[i], all = blocks->size[i + 1];
		turns += (to % all / size - from % all / size + all / size) % (all / size) * size;
	}
	return turns;
}
