/* Topology to JSON: one class, vertex or link a line, so that a change to the machine is a change of its lines. */
#include "base/json_write.h"
#include "format/blink/write_topology.h"
#include "format/format.h"

static void
put_optional(JsonWriter *w, const char *name, const char *value)
{
	if (value)
		json_string(w, name, value);
}

static void
put_class(JsonWriter *w, LinkClass class, const ClassDefault *given)
{
	json_object(w, NULL, JSON_LINE);
	json_string(w, "name", link_class_name(class));
	if (given->capacity)
		json_gb(w, "capacity", (Frac){ given->capacity, 1 });
	if (given->latency)
		json_us(w, "latency", given->latency);
	put_optional(w, "source", given->source);
	json_end(w);
}

static void
put_notes(JsonWriter *w, const Topology *topo)
{
	if (!topo->n_notes)
		return;
	json_array(w, "notes", JSON_BLOCK);
	for (int i = 0; i < topo->n_notes; i++)
		json_string(w, NULL, topo->note[i]);
	json_end(w);
}

static void
put_classes(JsonWriter *w, const Topology *topo)
{
	int n = 0;
	for (int class = 0; class < N_LINK_CLASSES; class++) {
		if (!topo->class[class].given)
			continue;
		if (n++ == 0)
			json_array(w, "classes", JSON_BLOCK);
		put_class(w, (LinkClass)class, &topo->class[class]);
	}
	if (n)
		json_end(w);
}

static void
put_peer_accesses(JsonWriter *w, const Topology *topo)
{
	if (!topo->n_peer_accesses)
		return;
	json_array(w, "peer_accesses", JSON_BLOCK);
	for (int i = 0; i < topo->n_peer_accesses; i++) {
		json_object(w, NULL, JSON_LINE);
		json_int(w, "gpus", topo->peer_access[i].gpus);
		json_us(w, "time", topo->peer_access[i].time);
		put_optional(w, "source", topo->peer_access[i].source);
		json_end(w);
	}
	json_end(w);
}

static void
put_parameter(JsonWriter *w, const Parameter *of)
{
	const char *name = of->class ? of->class : of->name;
	if (of->unit == NS_PER_US)
		json_us(w, name, of->value);
	else if (of->unit == BYTES_PER_GB)
		json_gb(w, name, (Frac){ of->value, 1 });
	else if (of->unit == 1)
		json_int64(w, name, of->value);
	else
		json_number(w, name, (double)of->value / (double)of->unit);
}

static void
put_parameters(JsonWriter *w, const Parameters *p)
{
	if (p->n == 0)
		return;
	json_object(w, "parameters", JSON_BLOCK);
	for (int i = 0; i < p->n;) {
		int first = i;
		json_object(w, p->of[first].executor, JSON_LINE);
		while (i < p->n && p->of[i].executor == p->of[first].executor) {
			int list = i;
			if (p->of[i].class)
				json_object(w, p->of[i].name, JSON_LINE);
			do
				put_parameter(w, &p->of[i++]);
			while (i < p->n && p->of[list].class && parameters_together(&p->of[list], &p->of[i]));
			if (p->of[list].class)
				json_end(w);
		}
		json_end(w);
	}
	json_end(w);
}

/* The vertices of one kind in one node, as an array; nothing where there are none. */
static void
put_vertices(JsonWriter *w, const Topology *topo, const FileOrder *order, int node, int kind)
{
	const int *first = &order->first[node * N_VERTEX_KINDS + kind];
	if (first[0] == first[1])
		return;
	json_array(w, vertex_kind_plural((VertexKind)kind), JSON_BLOCK);
	for (int i = first[0]; i < first[1]; i++) {
		const Vertex *vertex = &topo->vertex[order->vertex[i]];
		json_object(w, NULL, JSON_LINE);
		json_string(w, "id", vertex->id);
		if (vertex->multicast)
			json_bool(w, "multicast", true);
		if (vertex->reduce)
			json_bool(w, "reduce", true);
		if (vertex->port)
			json_gb(w, "capacity", (Frac){ vertex->port, 1 });
		json_end(w);
	}
	json_end(w);
}

static void
put_nodes(JsonWriter *w, const Topology *topo, const FileOrder *order)
{
	json_array(w, "nodes", JSON_BLOCK);
	for (int i = 0; i < topo->n_nodes; i++) {
		json_object(w, NULL, JSON_BLOCK);
		json_string(w, "id", topo->node[i]);
		for (int kind = 0; kind < N_VERTEX_KINDS; kind++)
			put_vertices(w, topo, order, i, kind);
		json_end(w);
	}
	json_end(w);
}

static void
put_link(JsonWriter *w, const Topology *topo, LinkEntry entry)
{
	const Link *link = entry.link;
	json_object(w, NULL, JSON_LINE);
	json_string(w, "from", topo->vertex[link->from].id);
	json_string(w, "to", topo->vertex[link->to].id);
	json_string(w, "class", link_class_name(link->class));
	if (link->count != 1)
		json_int(w, "count", link->count);
	if (entry.capacity)
		json_gb(w, "capacity", (Frac){ link->capacity / link->count, 1 });
	if (entry.latency)
		json_us(w, "latency", link->latency);
	put_optional(w, "duplex", entry.full ? NULL : "simplex");
	put_optional(w, "source", link->source);
	json_end(w);
}

static void
put_links(JsonWriter *w, const Topology *topo)
{
	if (!topo->n_links)
		return;
	json_array(w, "links", JSON_BLOCK);
	for (int l = 0; l < topo->n_links;) {
		LinkEntry entry = topo_link_entry(topo, l);
		put_link(w, topo, entry);
		l += entry.full ? 2 : 1;
	}
	json_end(w);
}

void
topo_write_json(const Topology *topo, Text *out)
{
	JsonWriter w = { .out = out };
	FileOrder order;
	out->failed |= !file_order(topo, &order);
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "format", "blink-topology");
	json_int(&w, "version", 1);
	json_string(&w, "name", topo->name);
	put_optional(&w, "source", topo->source);
	put_notes(&w, topo);
	put_classes(&w, topo);
	put_peer_accesses(&w, topo);
	put_parameters(&w, &topo->parameters);
	if (!out->failed) {
		put_nodes(&w, topo, &order);
		put_vertices(&w, topo, &order, topo->n_nodes, VERTEX_SWITCH);
	}
	file_order_free(&order);
	put_links(&w, topo);
	json_end(&w);
	text_put(out, "\n");
}
