/* Topology to XML: one class, vertex or link a line, as in JSON. */
#include "base/xml_write.h"
#include "format/blink/write_topology.h"
#include "format/format.h"

#include <string.h>

static void
put_notes(XmlWriter *w, const Topology *topo)
{
	for (int i = 0; i < topo->n_notes; i++) {
		xml_begin(w, "note");
		xml_attribute(w, "text", topo->note[i]);
		xml_end(w);
	}
}

static void
put_classes(XmlWriter *w, const Topology *topo)
{
	for (int class = 0; class < N_LINK_CLASSES; class++) {
		const ClassDefault *given = &topo->class[class];
		if (!given->given)
			continue;
		xml_begin(w, "class");
		xml_attribute(w, "name", link_class_name((LinkClass)class));
		if (given->capacity)
			xml_attribute_gb(w, "capacity", (Frac){ given->capacity, 1 });
		if (given->latency)
			xml_attribute_us(w, "latency", given->latency);
		xml_attribute(w, "source", given->source);
		xml_end(w);
	}
}

static void
put_peer_accesses(XmlWriter *w, const Topology *topo)
{
	for (int i = 0; i < topo->n_peer_accesses; i++) {
		const PeerAccess *entry = &topo->peer_access[i];
		xml_begin(w, "peer_access");
		xml_attribute_int(w, "gpus", entry->gpus);
		xml_attribute_us(w, "time", entry->time);
		xml_attribute(w, "source", entry->source);
		xml_end(w);
	}
}

/* n of them, as attributes. */
static void
put_values(XmlWriter *w, const Parameter *of, int n)
{
	char value[48];
	for (int i = 0; i < n; i++) {
		decimal_text(of[i].value, of[i].unit, 15, value);
		xml_attribute(w, of[i].class ? of[i].class : of[i].name, value);
	}
}

static void
put_parameters(XmlWriter *w, const Parameters *p)
{
	if (p->n == 0)
		return;
	xml_begin(w, "parameters");
	xml_elements(w);
	for (int i = 0; i < p->n;) {
		const Parameter *first = &p->of[i];
		bool lists = false;
		xml_begin(w, first->executor);
		while (i < p->n && strcmp(p->of[i].executor, first->executor) == 0) {
			int from = i;
			while (i < p->n && parameters_together(&p->of[from], &p->of[i]))
				i++;
			if (p->of[from].class && !lists)
				xml_elements(w);
			lists |= p->of[from].class != NULL;
			if (p->of[from].class)
				xml_begin(w, p->of[from].name);
			put_values(w, &p->of[from], i - from);
			if (p->of[from].class)
				xml_end(w);
		}
		xml_end(w);
	}
	xml_end(w);
}

static void
put_vertices(XmlWriter *w, const Topology *topo, const FileOrder *order, int node, int kind)
{
	const int *first = &order->first[node * N_VERTEX_KINDS + kind];
	for (int i = first[0]; i < first[1]; i++) {
		const Vertex *vertex = &topo->vertex[order->vertex[i]];
		xml_begin(w, vertex_kind_name((VertexKind)kind));
		xml_attribute(w, "id", vertex->id);
		xml_attribute(w, "multicast", vertex->multicast ? "true" : NULL);
		xml_attribute(w, "reduce", vertex->reduce ? "true" : NULL);
		if (vertex->port)
			xml_attribute_gb(w, "capacity", (Frac){ vertex->port, 1 });
		xml_end(w);
	}
}

static void
put_nodes(XmlWriter *w, const Topology *topo, const FileOrder *order)
{
	for (int i = 0; i < topo->n_nodes; i++) {
		xml_begin(w, "node");
		xml_attribute(w, "id", topo->node[i]);
		xml_elements(w);
		for (int kind = 0; kind < N_VERTEX_KINDS; kind++)
			put_vertices(w, topo, order, i, kind);
		xml_end(w);
	}
}

static void
put_link(XmlWriter *w, const Topology *topo, LinkEntry entry)
{
	const Link *link = entry.link;
	xml_begin(w, "link");
	xml_attribute(w, "from", topo->vertex[link->from].id);
	xml_attribute(w, "to", topo->vertex[link->to].id);
	xml_attribute(w, "class", link_class_name(link->class));
	if (link->count != 1)
		xml_attribute_int(w, "count", link->count);
	if (entry.capacity)
		xml_attribute_gb(w, "capacity", (Frac){ link->capacity / link->count, 1 });
	if (entry.latency)
		xml_attribute_us(w, "latency", link->latency);
	xml_attribute(w, "duplex", entry.full ? NULL : "simplex");
	xml_attribute(w, "source", link->source);
	xml_end(w);
}

void
topo_write_xml(const Topology *topo, Text *out)
{
	XmlWriter w = { .out = out };
	FileOrder order;
	out->failed |= !file_order(topo, &order);
	xml_declaration(&w);
	xml_begin(&w, "topology");
	xml_attribute(&w, "format", "blink-topology");
	xml_attribute_int(&w, "version", 1);
	xml_attribute(&w, "name", topo->name);
	xml_attribute(&w, "source", topo->source);
	xml_elements(&w);
	put_notes(&w, topo);
	put_classes(&w, topo);
	put_peer_accesses(&w, topo);
	put_parameters(&w, &topo->parameters);
	if (!out->failed) {
		put_nodes(&w, topo, &order);
		put_vertices(&w, topo, &order, topo->n_nodes, VERTEX_SWITCH);
	}
	file_order_free(&order);
	for (int l = 0; l < topo->n_links;) {
		LinkEntry entry = topo_link_entry(topo, l);
		put_link(&w, topo, entry);
		l += entry.full ? 2 : 1;
	}
	xml_end(&w);
}
