/* A path as a tree. */
#include "plan/pack/alltoall/path_tree.h"

#include <string.h>

Status
pack_path_tree(Ctx *ctx, const Topology *topo, const int *path, int n_links, Tree *out)
{
	int n = 0, *link;
	Edge *edge;
	TRY(NEW(ctx, link, n_links));
	memcpy(link, path, (size_t)n_links * sizeof *link);
	for (int i = 0; i < n_links; i++)
		n += topo->link[link[i]].to < topo->n_ranks;
	TRY(NEW(ctx, edge, n));
	*out = (Tree){ .root = topo->link[link[0]].from, .n_down = n, .down = edge };
	for (int i = 0, first = 0; i < n_links; i++) {
		if (topo->link[link[i]].to >= topo->n_ranks)
			continue;
		*edge++ = (Edge){ topo->link[link[first]].from, topo->link[link[i]].to, i + 1 - first, link + first };
		first = i + 1;
	}
	return OK;
}
