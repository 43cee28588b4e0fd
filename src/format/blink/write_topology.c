/* Topology to a file, in JSON or XML: one class, vertex or link a line, so that a change to the machine is a change of
 * its lines. What is an object in JSON is an element in XML, and its scalars are attributes. */
#include "base/json_write.h"
#include "base/xml_write.h"
#include "format/format.h"

#include <stdlib.h>
#include <string.h>

/* first, vertex: vertices as a file lists them: of kind k in node i, vertex[first[i * N_VERTEX_KINDS + k]] up to the
 * next first; those in no node are in node n_nodes. */
struct writer {
	const Topology *topo;
	bool is_xml;
	JsonWriter json;
	XmlWriter xml;
	int *first, *vertex;
};

/* ---- both spellings ---- */

/* member: its name in JSON; NULL: it is in a list. A block has elements. */
static void
begin(struct writer *w, const char *element, const char *member, JsonStyle style)
{
	if (!w->is_xml) {
		json_object(&w->json, member, style);
		return;
	}
	xml_begin(&w->xml, element);
	if (style == JSON_BLOCK)
		xml_elements(&w->xml);
}

static void
end(struct writer *w)
{
	if (w->is_xml)
		xml_end(&w->xml);
	else
		json_end(&w->json);
}

/* XML has no lists, and JSON none without entries. Returns n. */
static int
begin_list(struct writer *w, const char *name, int n)
{
	if (n && !w->is_xml)
		json_array(&w->json, name, JSON_BLOCK);
	return n;
}

static void
end_list(struct writer *w, int n)
{
	if (n && !w->is_xml)
		json_end(&w->json);
}

/* NULL: none. */
static void
put_text(struct writer *w, const char *name, const char *value)
{
	if (w->is_xml)
		xml_attribute(&w->xml, name, value);
	else if (value)
		json_string(&w->json, name, value);
}

static void
put_flag(struct writer *w, const char *name, bool value)
{
	if (w->is_xml)
		xml_attribute(&w->xml, name, value ? "true" : NULL);
	else if (value)
		json_bool(&w->json, name, true);
}

/* value / unit */
static void
put_number(struct writer *w, const char *name, int64_t value, int64_t unit)
{
	char text[48];
	decimal_text(value, unit, 15, text);
	if (w->is_xml)
		xml_attribute(&w->xml, name, text);
	else
		json_raw(&w->json, name, text);
}

/* 0: none. */
static void
put_capacity(struct writer *w, int64_t capacity)
{
	if (capacity)
		put_number(w, "capacity", capacity, BYTES_PER_GB);
}

/* ---- members ---- */

static void
put_notes(struct writer *w)
{
	const Topology *topo = w->topo;
	int n = begin_list(w, "notes", topo->n_notes);
	for (int i = 0; i < n; i++) {
		if (!w->is_xml) {
			json_string(&w->json, NULL, topo->note[i]);
			continue;
		}
		begin(w, "note", NULL, JSON_LINE);
		put_text(w, "text", topo->note[i]);
		end(w);
	}
	end_list(w, n);
}

static void
put_classes(struct writer *w)
{
	int n = 0;
	for (int class = 0; class < N_LINK_CLASSES; class++) {
		const ClassDefault *given = &w->topo->class[class];
		if (!given->given)
			continue;
		if (n++ == 0)
			begin_list(w, "classes", 1);
		begin(w, "class", NULL, JSON_LINE);
		put_text(w, "name", link_class_name((LinkClass)class));
		put_capacity(w, given->capacity);
		if (given->latency)
			put_number(w, "latency", given->latency, NS_PER_US);
		put_text(w, "source", given->source);
		end(w);
	}
	end_list(w, n);
}

static void
put_peer_accesses(struct writer *w)
{
	int n = begin_list(w, "peer_accesses", w->topo->n_peer_accesses);
	for (int i = 0; i < n; i++) {
		const PeerAccess *entry = &w->topo->peer_access[i];
		begin(w, "peer_access", NULL, JSON_LINE);
		put_number(w, "gpus", entry->gpus, 1);
		put_number(w, "time", entry->time, NS_PER_US);
		put_text(w, "source", entry->source);
		end(w);
	}
	end_list(w, n);
}

static bool
same_list(const Parameter *a, const Parameter *b)
{
	return a->class && b->class && strcmp(a->executor, b->executor) == 0 && strcmp(a->name, b->name) == 0;
}

/* Those of an executor follow each other, and of these each list by link class. */
static void
put_parameters(struct writer *w, const Parameter *of, const Parameter *last)
{
	if (of == last)
		return;
	begin(w, "parameters", "parameters", JSON_BLOCK);
	while (of < last) {
		const char *executor = of->executor;
		begin(w, executor, executor, JSON_LINE);
		while (of < last && strcmp(of->executor, executor) == 0) {
			const Parameter *list = of;
			if (list->class)
				begin(w, list->name, list->name, JSON_LINE);
			do
				put_number(w, of->class ? of->class : of->name, of->value, of->unit);
			while (++of < last && same_list(list, of));
			if (list->class)
				end(w);
		}
		end(w);
	}
	end(w);
}

/* ---- vertices ---- */

static int
place_of(const Topology *topo, int v)
{
	int node = topo->vertex[v].node;
	return (node < 0 ? topo->n_nodes : node) * N_VERTEX_KINDS + (int)topo->vertex[v].kind;
}

/* False: no memory. */
static bool
order_vertices(struct writer *w)
{
	const Topology *topo = w->topo;
	size_t n_places = ((size_t)topo->n_nodes + 1) * N_VERTEX_KINDS;
	w->first = calloc(n_places + 1, sizeof *w->first);
	w->vertex = calloc((size_t)topo->n_vertices + 1, sizeof *w->vertex);
	if (!w->first || !w->vertex)
		return false;
	for (int v = 0; v < topo->n_vertices; v++)
		w->first[place_of(topo, v) + 1]++;
	for (size_t p = 0; p < n_places; p++)
		w->first[p + 1] += w->first[p];
	/* Each place is filled from its end, so that its first moves down to its start. */
	for (int v = topo->n_vertices - 1; v >= 0; v--)
		w->vertex[--w->first[place_of(topo, v) + 1]] = v;
	memmove(w->first, w->first + 1, n_places * sizeof *w->first);
	w->first[n_places] = topo->n_vertices;
	return true;
}

static void
put_vertices(struct writer *w, int node, VertexKind kind)
{
	const int *first = &w->first[node * N_VERTEX_KINDS + (int)kind];
	int n = begin_list(w, vertex_kind_plural(kind), first[1] - first[0]);
	for (int i = 0; i < n; i++) {
		const Vertex *vertex = &w->topo->vertex[w->vertex[first[0] + i]];
		begin(w, vertex_kind_name(kind), NULL, JSON_LINE);
		put_text(w, "id", vertex->id);
		put_flag(w, "multicast", vertex->multicast);
		put_flag(w, "reduce", vertex->reduce);
		put_capacity(w, vertex->port);
		end(w);
	}
	end_list(w, n);
}

static void
put_nodes(struct writer *w)
{
	int n = begin_list(w, "nodes", w->topo->n_nodes);
	for (int i = 0; i < n; i++) {
		begin(w, "node", NULL, JSON_BLOCK);
		put_text(w, "id", w->topo->node[i]);
		for (int kind = 0; kind < N_VERTEX_KINDS; kind++)
			put_vertices(w, i, (VertexKind)kind);
		end(w);
	}
	end_list(w, n);
	put_vertices(w, w->topo->n_nodes, VERTEX_SWITCH);
}

/* ---- links ---- */

static bool
reversed(const Link *a, const Link *b)
{
	return a->from == b->to && a->to == b->from && a->class == b->class && a->count == b->count
	    && a->capacity == b->capacity && a->latency == b->latency && a->assumed == b->assumed
	    && text_same(a->source, b->source);
}

/* Without what follows from its class or from the format. full: it and its exact reverse. */
static void
put_link(struct writer *w, const Link *link, bool full)
{
	const ClassDefault *given = &w->topo->class[link->class];
	begin(w, "link", NULL, JSON_LINE);
	put_text(w, "from", w->topo->vertex[link->from].id);
	put_text(w, "to", w->topo->vertex[link->to].id);
	put_text(w, "class", link_class_name(link->class));
	if (link->count != 1)
		put_number(w, "count", link->count, 1);
	if (link->capacity / link->count != given->capacity)
		put_capacity(w, link->capacity / link->count);
	if (link->latency != given->latency)
		put_number(w, "latency", link->latency, NS_PER_US);
	put_text(w, "duplex", full ? NULL : "simplex");
	put_flag(w, "assumed", link->assumed);
	put_text(w, "source", link->source);
	end(w);
}

static void
put_links(struct writer *w)
{
	const Link *link = w->topo->link;
	int n = begin_list(w, "links", w->topo->n_links);
	for (int l = 0; l < n; l++) {
		bool full = l + 1 < n && reversed(&link[l], &link[l + 1]);
		put_link(w, &link[l], full);
		l += full;
	}
	end_list(w, n);
}

/* ---- the whole ---- */

static void
write_all(struct writer *w)
{
	const Topology *topo = w->topo;
	bool ordered = order_vertices(w);
	begin(w, "topology", NULL, JSON_BLOCK);
	put_text(w, "format", "blink-topology");
	put_number(w, "version", 1, 1);
	put_text(w, "name", topo->name);
	put_text(w, "source", topo->source);
	put_text(w, "gpu_model", topo->gpu_model);
	put_notes(w);
	put_classes(w);
	put_peer_accesses(w);
	put_parameters(w, topo->parameters.of, topo->parameters.of + topo->parameters.n);
	if (ordered)
		put_nodes(w);
	put_links(w);
	end(w);
	w->json.out->failed |= !ordered;
	free(w->first);
	free(w->vertex);
}

void
topo_write_json(const Topology *topo, Text *out)
{
	write_all(&(struct writer){ .topo = topo, .json = { .out = out } });
	text_put(out, "\n");
}

void
topo_write_xml(const Topology *topo, Text *out)
{
	struct writer w = { .topo = topo, .is_xml = true, .json = { .out = out }, .xml = { .out = out } };
	xml_declaration(&w.xml);
	write_all(&w);
}
