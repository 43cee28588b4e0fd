#include "graph/finder.h"

#include <string.h>

void
set_units(struct finder *p, int parts)
{
	const Topology *topo = p->topo;
	int64_t least = INT64_MAX;
	for (int l = 0; l < topo->n_links; l++) {
		int64_t one = topo->link[l].capacity / topo->link[l].count;
		least = one < least ? one : least;
	}
	p->unit = least / parts > 0 ? least / parts : 1;
	for (int l = 0; l < topo->n_links; l++)
		p->left[l] = topo->link[l].capacity / p->unit;
}

int64_t
units_of_ranks(const struct finder *p)
{
	const Topology *topo = p->topo;
	int64_t least = INT64_MAX;
	for (int r = 0; r < topo->n_ranks; r++) {
		int64_t out = 0, in = 0;
		for (int i = topo->first_out[r]; i < topo->first_out[r + 1]; i++)
			out += p->left[topo->out[i]];
		for (int i = topo->first_in[r]; i < topo->first_in[r + 1]; i++)
			in += p->left[topo->in[i]];
		least = out < least ? out : least;
		least = in < least ? in : least;
	}
	return least;
}

Status
add_ring(struct finder *p, const int *hop, int64_t width)
{
	Cycle *ring = &p->ring[p->n_rings++];
	int route[LIMIT_ROUTE_LINKS];
	TRY(NEW(p->ctx, ring->edge, p->topo->n_ranks));
	ring->width = width;
	p->units += width;
	for (int i = 0; i < p->topo->n_ranks; i++) {
		int *link, n = search_route(&p->search, hop[i], route);
		TRY(NEW(p->ctx, link, n));
		memcpy(link, route, (size_t)n * sizeof *link);
		ring->edge[i] = (Edge){ p->search.hop[hop[i]].src, p->search.hop[hop[i]].dst, n, link };
		for (int k = 0; k < n; k++)
			p->left[link[k]] -= width;
	}
	return OK;
}
