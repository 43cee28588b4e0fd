/* Topology to XML: one class, vertex or link a line, as in JSON. */
#include "emit/topo.h"
#include "passes.h"

static void
put_attribute(Text *out, const char *name, const char *value)
{
	if (!value)
		return;
	text_printf(out, " %s=\"", name);
	text_xml(out, value);
	text_put(out, "\"");
}

static void
put_capacity(Text *out, int64_t capacity, int count)
{
	text_put(out, " capacity=\"");
	topo_put_capacity(out, capacity, count);
	text_put(out, "\"");
}

static void
put_latency(Text *out, int64_t latency)
{
	text_put(out, " latency=\"");
	text_us(out, latency);
	text_put(out, "\"");
}

static void
put_classes(const Topology *topo, Text *out)
{
	for (int class = 0; class < N_LINK_CLASSES; class++) {
		const ClassDefault *given = &topo->class[class];
		if (!given->given)
			continue;
		text_put(out, "  <class");
		put_attribute(out, "name", link_class_name((LinkClass)class));
		if (given->capacity)
			put_capacity(out, given->capacity, 1);
		if (given->latency)
			put_latency(out, given->latency);
		put_attribute(out, "source", given->source);
		text_put(out, "/>\n");
	}
}

static void
put_peer_accesses(const Topology *topo, Text *out)
{
	for (int i = 0; i < topo->n_peer_accesses; i++) {
		const PeerAccess *entry = &topo->peer_access[i];
		text_printf(out, "  <peer_access gpus=\"%d\" time=\"", entry->gpus);
		text_us(out, entry->time);
		text_put(out, "\"");
		put_attribute(out, "source", entry->source);
		text_put(out, "/>\n");
	}
}

static void
put_vertices(const Topology *topo, const FileOrder *order, int node, int kind, const char *indent, Text *out)
{
	const int *first = &order->first[node * N_VERTEX_KINDS + kind];
	for (int i = first[0]; i < first[1]; i++) {
		text_printf(out, "%s<%s", indent, vertex_kind_name((VertexKind)kind));
		const Vertex *vertex = &topo->vertex[order->vertex[i]];
		put_attribute(out, "id", vertex->id);
		put_attribute(out, "multicast", vertex->multicast ? "true" : NULL);
		put_attribute(out, "reduce", vertex->reduce ? "true" : NULL);
		if (vertex->port)
			put_capacity(out, vertex->port, 1);
		text_put(out, "/>\n");
	}
}

static void
put_nodes(const Topology *topo, const FileOrder *order, Text *out)
{
	for (int i = 0; i < topo->n_nodes; i++) {
		text_put(out, "  <node");
		put_attribute(out, "id", topo->node[i]);
		text_put(out, ">\n");
		for (int kind = 0; kind < N_VERTEX_KINDS; kind++)
			put_vertices(topo, order, i, kind, "    ", out);
		text_put(out, "  </node>\n");
	}
}

static void
put_link(const Topology *topo, LinkEntry entry, Text *out)
{
	const Link *link = entry.link;
	text_put(out, "  <link");
	put_attribute(out, "from", topo->vertex[link->from].id);
	put_attribute(out, "to", topo->vertex[link->to].id);
	put_attribute(out, "class", link_class_name(link->class));
	if (link->count != 1)
		text_printf(out, " count=\"%d\"", link->count);
	if (entry.capacity)
		put_capacity(out, link->capacity, link->count);
	if (entry.latency)
		put_latency(out, link->latency);
	put_attribute(out, "duplex", entry.full ? NULL : "simplex");
	put_attribute(out, "source", link->source);
	text_put(out, "/>\n");
}

void
emit_topo_xml(const Topology *topo, Text *out)
{
	FileOrder order;
	out->failed |= !file_order(topo, &order);
	text_put(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology format=\"blink-topology\" version=\"1\"");
	put_attribute(out, "name", topo->name);
	put_attribute(out, "source", topo->source);
	text_put(out, ">\n");
	put_classes(topo, out);
	put_peer_accesses(topo, out);
	if (!out->failed) {
		put_nodes(topo, &order, out);
		put_vertices(topo, &order, topo->n_nodes, VERTEX_SWITCH, "  ", out);
	}
	file_order_free(&order);
	for (int l = 0; l < topo->n_links;) {
		LinkEntry entry = topo_link_entry(topo, l);
		put_link(topo, entry, out);
		l += entry.full ? 2 : 1;
	}
	text_put(out, "</topology>\n");
}
