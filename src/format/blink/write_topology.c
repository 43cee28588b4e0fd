#include "format/blink/write_topology.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

static bool
reversed(const Link *a, const Link *b)
{
	return a->from == b->to && a->to == b->from && a->class == b->class && a->count == b->count
	    && a->capacity == b->capacity && a->latency == b->latency && text_same(a->source, b->source);
}

LinkEntry
topo_link_entry(const Topology *topo, int l)
{
	const Link *link = &topo->link[l];
	const ClassDefault *given = &topo->class[link->class];
	return (LinkEntry){
		.link = link,
		.full = l + 1 < topo->n_links && reversed(link, link + 1),
		.capacity = link->capacity / link->count != given->capacity,
		.latency = link->latency != given->latency,
	};
}

bool
parameters_together(const Parameter *a, const Parameter *b)
{
	return strcmp(a->executor, b->executor) == 0 && (a->class != NULL) == (b->class != NULL)
	    && (!a->class || strcmp(a->name, b->name) == 0);
}

static int
place_of(const Topology *topo, int v)
{
	int node = topo->vertex[v].node;
	return (node < 0 ? topo->n_nodes : node) * N_VERTEX_KINDS + (int)topo->vertex[v].kind;
}

bool
file_order(const Topology *topo, FileOrder *order)
{
	size_t n_places = ((size_t)topo->n_nodes + 1) * N_VERTEX_KINDS;
	*order = (FileOrder){ calloc(n_places + 1, sizeof(int)), calloc((size_t)topo->n_vertices + 1, sizeof(int)) };
	if (!order->first || !order->vertex)
		return false;
	for (int v = 0; v < topo->n_vertices; v++)
		order->first[place_of(topo, v) + 1]++;
	for (size_t p = 0; p < n_places; p++)
		order->first[p + 1] += order->first[p];
	/* Each place is filled from its end, so that its first moves down to its start. */
	for (int v = topo->n_vertices - 1; v >= 0; v--)
		order->vertex[--order->first[place_of(topo, v) + 1]] = v;
	memmove(order->first, order->first + 1, n_places * sizeof(int));
	order->first[n_places] = topo->n_vertices;
	return true;
}

void
file_order_free(FileOrder *order)
{
	free(order->first);
	free(order->vertex);
}
