/* What the writers of a topology share, and the text that its digest is of. */
#include "emit/topo.h"

#include "passes.h"

#include <inttypes.h>
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
	/* Filled from its end, each place's start moves down to where it belongs. */
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

const char *
topo_plural(VertexKind kind)
{
	static const char *const name[] = {
#define X(id, one, many) many,
		VERTEX_LIST(X)
#undef X
	};
	return name[kind];
}

void
topo_put_capacity(Text *text, int64_t capacity, int count)
{
	text_gb(text, (Frac){ capacity / count, 1 });
}

/* Integers only: a decimal could be spelled in two ways. */
void
emit_topo_canonical(const Topology *topo, Text *out)
{
	text_put(out, "{\"format\":\"blink-topology\",\"version\":1,\"nodes\":[");
	for (int i = 0; i < topo->n_nodes; i++) {
		text_put(out, i ? "," : "");
		text_json(out, topo->node[i]);
	}
	text_put(out, "],\"vertices\":[");
	for (int v = 0; v < topo->n_vertices; v++) {
		text_put(out, v ? ",[" : "[");
		text_json(out, topo->vertex[v].id);
		text_printf(out, ",\"%s\",%d", vertex_kind_name(topo->vertex[v].kind), topo->vertex[v].node);
		text_put(out, topo->vertex[v].multicast ? ",\"multicast\"" : "");
		text_put(out, topo->vertex[v].reduce ? ",\"reduce\"]" : "]");
	}
	text_put(out, "],\"links\":[");
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		text_printf(out, "%s[%d,%d,\"%s\",%d,%" PRId64 ",%" PRId64 "]", l ? "," : "", link->from, link->to,
		    link_class_name(link->class), link->count, link->capacity, link->latency);
	}
	text_put(out, "]}");
}
