/* Topology to JSON: one class, vertex or link a line, so that a change to the machine is a change of its lines. */
#include "emit/topo.h"
#include "passes.h"

static void
put_text(Text *out, const char *before, const char *name, const char *value)
{
	if (!value)
		return;
	text_printf(out, "%s\"%s\": ", before, name);
	text_json(out, value);
}

static void
put_class(const Topology *topo, LinkClass class, Text *out)
{
	const ClassDefault *given = &topo->class[class];
	text_printf(out, "{ \"name\": \"%s\"", link_class_name(class));
	if (given->capacity) {
		text_put(out, ", \"capacity\": ");
		topo_put_capacity(out, given->capacity, 1);
	}
	if (given->latency) {
		text_put(out, ", \"latency\": ");
		text_us(out, given->latency);
	}
	put_text(out, ", ", "source", given->source);
	text_put(out, " }");
}

static void
put_classes(const Topology *topo, Text *out)
{
	int n = 0;
	for (int class = 0; class < N_LINK_CLASSES; class++) {
		if (!topo->class[class].given)
			continue;
		text_put(out, n++ ? ",\n    " : ",\n  \"classes\": [\n    ");
		put_class(topo, (LinkClass)class, out);
	}
	text_put(out, n ? "\n  ]" : "");
}

static void
put_peer_accesses(const Topology *topo, Text *out)
{
	for (int i = 0; i < topo->n_peer_accesses; i++) {
		const PeerAccess *entry = &topo->peer_access[i];
		text_printf(out, "%s{ \"gpus\": %d, \"time\": ", i ? ",\n    " : ",\n  \"peer_accesses\": [\n    ", entry->gpus);
		text_us(out, entry->time);
		put_text(out, ", ", "source", entry->source);
		text_put(out, " }");
	}
	text_put(out, topo->n_peer_accesses ? "\n  ]" : "");
}

/* The vertices of one kind in one node, as an array; nothing where there are none. */
static void
put_vertices(const Topology *topo, const FileOrder *order, int node, int kind, const char *indent, Text *out)
{
	const int *first = &order->first[node * N_VERTEX_KINDS + kind];
	for (int i = first[0]; i < first[1]; i++) {
		if (i == first[0])
			text_printf(out, ",\n%s\"%s\": [\n%s  ", indent, topo_plural((VertexKind)kind), indent);
		const Vertex *vertex = &topo->vertex[order->vertex[i]];
		put_text(out, "{ ", "id", vertex->id);
		text_put(out, vertex->multicast ? ", \"multicast\": true" : "");
		text_put(out, vertex->reduce ? ", \"reduce\": true" : "");
		if (vertex->port) {
			text_put(out, ", \"capacity\": ");
			topo_put_capacity(out, vertex->port, 1);
		}
		text_put(out, i + 1 < first[1] ? " },\n" : " }\n");
		text_printf(out, "%s%s", indent, i + 1 < first[1] ? "  " : "]");
	}
}

static void
put_nodes(const Topology *topo, const FileOrder *order, Text *out)
{
	text_put(out, ",\n  \"nodes\": [");
	for (int i = 0; i < topo->n_nodes; i++) {
		text_put(out, i ? ",\n    {\n" : "\n    {\n");
		put_text(out, "      ", "id", topo->node[i]);
		for (int kind = 0; kind < N_VERTEX_KINDS; kind++)
			put_vertices(topo, order, i, kind, "      ", out);
		text_put(out, "\n    }");
	}
	text_put(out, "\n  ]");
}

static void
put_link(const Topology *topo, LinkEntry entry, Text *out)
{
	const Link *link = entry.link;
	put_text(out, "{ ", "from", topo->vertex[link->from].id);
	put_text(out, ", ", "to", topo->vertex[link->to].id);
	put_text(out, ", ", "class", link_class_name(link->class));
	if (link->count != 1)
		text_printf(out, ", \"count\": %d", link->count);
	if (entry.capacity) {
		text_put(out, ", \"capacity\": ");
		topo_put_capacity(out, link->capacity, link->count);
	}
	if (entry.latency) {
		text_put(out, ", \"latency\": ");
		text_us(out, link->latency);
	}
	put_text(out, ", ", "duplex", entry.full ? NULL : "simplex");
	put_text(out, ", ", "source", link->source);
	text_put(out, " }");
}

static void
put_links(const Topology *topo, Text *out)
{
	for (int l = 0; l < topo->n_links;) {
		LinkEntry entry = topo_link_entry(topo, l);
		text_put(out, l ? ",\n    " : ",\n  \"links\": [\n    ");
		put_link(topo, entry, out);
		l += entry.full ? 2 : 1;
	}
	text_put(out, topo->n_links ? "\n  ]" : "");
}

void
emit_topo_json(const Topology *topo, Text *out)
{
	FileOrder order;
	out->failed |= !file_order(topo, &order);
	text_put(out, "{\n  \"format\": \"blink-topology\",\n  \"version\": 1");
	put_text(out, ",\n  ", "name", topo->name);
	put_text(out, ",\n  ", "source", topo->source);
	put_classes(topo, out);
	put_peer_accesses(topo, out);
	if (!out->failed) {
		put_nodes(topo, &order, out);
		put_vertices(topo, &order, topo->n_nodes, VERTEX_SWITCH, "  ", out);
	}
	file_order_free(&order);
	put_links(topo, out);
	text_put(out, "\n}\n");
}
