/* The route that joins each pair of ranks. */
#include "model/topology.h"

#include <string.h>

unsigned
route_classes(RouteKind kind)
{
	static const unsigned classes[N_ROUTE_KINDS] = {
		[ROUTE_NVLINK] = 1u << LINK_NVLINK, [ROUTE_XGMI] = 1u << LINK_XGMI,
		[ROUTE_LOCAL] = ~(1u << LINK_NET), [ROUTE_NET] = ~0u,
	};
	return classes[kind];
}

static bool
has_classes(const Topology *topo, unsigned classes)
{
	for (int l = 0; l < topo->n_links; l++)
		if (classes >> topo->link[l].class & 1)
			return true;
	return false;
}

/* The routes from a rank over links of these classes, for ranks that have none yet. queue, seen: work space; seen[v]
 * is the last search that saw v. */
static void
routes_from(const Topology *topo, int source, RouteKind kind, unsigned char *row, int *queue, int *seen, int search)
{
	unsigned classes = route_classes(kind);
	int head = 0, tail = 0;
	queue[tail++] = source;
	seen[source] = search;
	while (head < tail) {
		int v = queue[head++];
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			const Link *link = &topo->link[topo->out[i]];
			if (!(classes >> link->class & 1) || seen[link->to] == search)
				continue;
			seen[link->to] = search;
			if (link->to >= topo->n_ranks)
				queue[tail++] = link->to;
			else if (row[link->to] == ROUTE_NONE)
				row[link->to] = (unsigned char)kind;
		}
	}
}

Status
topo_pair_routes(Ctx *ctx, const Topology *topo, unsigned char *kind)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	size_t n = (size_t)topo->n_ranks;
	int *queue, *seen, search = 0;
	TRY(TEMP_EACH(ctx, topo->n_vertices, queue, seen));
	memset(kind, ROUTE_NONE, n * n);
	for (int k = ROUTE_NONE + 1; k < N_ROUTE_KINDS; k++)
		for (int r = 0; r < topo->n_ranks && has_classes(topo, route_classes((RouteKind)k)); r++)
			routes_from(topo, r, (RouteKind)k, kind + (size_t)r * n, queue, seen, ++search);
	arena_release(&ctx->scratch, mark);
	return OK;
}
