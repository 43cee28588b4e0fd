/* The topology of a schedule file: ranks, links, and the switches and NICs that links name. */
#include "format/blink/schedule_reader.h"

#include <stdlib.h>
#include <string.h>

static int
by_id(const void *a, const void *b)
{
	const struct named *m = a, *n = b;
	int order = strcmp(m->id, n->id);
	return order ? order : (m->vertex > n->vertex) - (m->vertex < n->vertex);
}

static int
by_vertex(const void *a, const void *b)
{
	const struct named *m = a, *n = b;
	return (m->vertex > n->vertex) - (m->vertex < n->vertex);
}

/* Servers are numbered in order of first appearance. node[i]: the server of rank i. */
static void
number_nodes(Topology *topo, struct named *node)
{
	int n = topo->n_ranks, first = 0;
	qsort(node, (size_t)n, sizeof *node, by_id);
	/* The first rank of a server stands for it. */
	for (int i = 0; i < n; i++) {
		if (strcmp(node[i].id, node[first].id) != 0)
			first = i;
		topo->vertex[node[i].vertex].node = node[first].vertex;
	}
	qsort(node, (size_t)n, sizeof *node, by_vertex);
	for (int r = 0; r < n; r++) {
		int *of = &topo->vertex[r].node;
		if (*of == r)
			topo->node[topo->n_nodes] = node[r].id;
		*of = *of == r ? topo->n_nodes++ : topo->vertex[*of].node;
	}
}

static Status
read_ranks(struct reader *r, const Doc *ranks)
{
	Topology *topo = r->topo;
	struct named *nodes;
	TRY(count_within(r, ranks, LIMIT_RANKS));
	if (ranks->n == 0)
		return bad(r, ranks, "no rank", "at least 2");
	topo->n_ranks = ranks->n;
	TRY(NEW(r->ctx, topo->node, ranks->n));
	TRY(TEMP(r->ctx, nodes, ranks->n));
	for (int i = 0; i < ranks->n; i++) {
		if (ranks->child[i]->kind != DOC_OBJECT)
			return bad(r, ranks->child[i], "not an object", "{ \"gpu\": id, \"node\": id }");
		TRY(doc_string(r->ctx, r->label, ranks->child[i], "gpu", &topo->vertex[i].id));
		TRY(doc_string(r->ctx, r->label, ranks->child[i], "node", &nodes[i].id));
		topo->vertex[i].kind = VERTEX_GPU;
		nodes[i].vertex = i;
	}
	number_nodes(topo, nodes);
	return OK;
}

/* Every string among the ends of links is a switch or NIC. They are numbered in order of first appearance. */
static Status
read_switches(struct reader *r, const Doc *links)
{
	Topology *topo = r->topo;
	struct named *named;
	int n = 0, unique = 0;
	TRY(TEMP(r->ctx, named, 2 * (size_t)links->n));
	for (int l = 0; l < links->n; l++) {
		static const char *const ends[] = { "from", "to" };
		for (int e = 0; e < 2; e++) {
			const Doc *end = doc_get(links->child[l], ends[e]);
			if (end && end->kind == DOC_STRING)
				named[n++] = (struct named){ end->text, 2 * l + e };
		}
	}
	qsort(named, (size_t)n, sizeof *named, by_id);
	for (int i = 0; i < n; i++)
		if (i == 0 || strcmp(named[i].id, named[i - 1].id) != 0)
			named[unique++] = named[i];
	if (unique > LIMIT_VERTICES - topo->n_ranks)
		return doc_fail(r->ctx, r->label, links, LIMIT, "%d vertices: want at most %d", topo->n_ranks + unique,
		    LIMIT_VERTICES);
	topo->n_vertices = topo->n_ranks + unique;
	Vertex *vertex;
	TRY(NEW(r->ctx, vertex, topo->n_vertices));
	memcpy(vertex, topo->vertex, (size_t)topo->n_ranks * sizeof *vertex);
	topo->vertex = vertex;
	qsort(named, (size_t)unique, sizeof *named, by_vertex);
	for (int i = 0; i < unique; i++) {
		named[i].vertex = topo->n_ranks + i;
		vertex[named[i].vertex] = (Vertex){ .id = named[i].id, .kind = VERTEX_SWITCH, .node = -1 };
	}
	qsort(named, (size_t)unique, sizeof *named, by_id);
	r->named = named;
	r->n_named = unique;
	return OK;
}

static int
id_order(const void *id, const void *named)
{
	return strcmp(id, ((const struct named *)named)->id);
}

Status
schedule_vertex(struct reader *r, const Doc *at, int *out)
{
	if (at->kind != DOC_STRING)
		return read_int(r, at, 0, r->topo->n_ranks - 1, out);
	const struct named *found = bsearch(at->text, r->named, (size_t)r->n_named, sizeof *found, id_order);
	if (!found)
		return doc_want(r->ctx, r->label, at, "a rank or a switch of topology.links");
	*out = found->vertex;
	return OK;
}

static Status
read_flag(struct reader *r, const Doc *object, const char *name, bool *out)
{
	const Doc *at = doc_get(object, name);
	if (at && at->kind != DOC_BOOL)
		return doc_want(r->ctx, r->label, at, "true or false");
	*out = at && at->flag;
	return OK;
}

static Status
read_links(struct reader *r, const Doc *links)
{
	Topology *topo = r->topo;
	TRY(count_within(r, links, LIMIT_LINKS));
	for (int l = 0; l < links->n; l++)
		if (links->child[l]->kind != DOC_OBJECT)
			return bad(r, links->child[l], "not an object",
			    "{ \"from\", \"to\", \"class\", \"capacity\", \"latency\" }");
	TRY(read_switches(r, links));
	topo->n_links = links->n;
	TRY(NEW(r->ctx, topo->link, links->n));
	for (int l = 0; l < links->n; l++) {
		Link *link = &topo->link[l];
		const Doc *at = links->child[l], *from, *to, *capacity, *latency;
		const char *class;
		TRY(need_any(r, at, "from", &from));
		TRY(need_any(r, at, "to", &to));
		TRY(need_any(r, at, "capacity", &capacity));
		TRY(need_any(r, at, "latency", &latency));
		TRY(schedule_vertex(r, from, &link->from));
		TRY(schedule_vertex(r, to, &link->to));
		TRY(doc_string(r->ctx, r->label, at, "class", &class));
		if (!link_class_parse(class, &link->class))
			return doc_want(r->ctx, r->label, doc_get(at, "class"), names_wanted(link_class_names).text);
		/* In a schedule file a capacity is that of all physical links together. */
		link->count = 1;
		TRY(doc_scaled(r->ctx, r->label, capacity, BYTES_PER_GB, LIMIT_CAPACITY_MIN,
		    LIMIT_CAPACITY_MAX * LIMIT_LINK_COUNT, "GB/s", &link->capacity));
		TRY(doc_scaled(r->ctx, r->label, latency, NS_PER_US, 0, LIMIT_LATENCY_NS, "us", &link->latency));
		TRY(read_flag(r, at, "assumed", &link->assumed));
	}
	return OK;
}

/* Switches that multicast or reduce; all others only forward. */
static Status
read_abilities(struct reader *r, const Doc *topology)
{
	const Doc *switches = doc_get(topology, "switches"), *id;
	if (!switches)
		return OK;
	TRY(need(r, topology, "switches", DOC_ARRAY, &switches));
	for (int i = 0; i < switches->n; i++) {
		int v;
		if (switches->child[i]->kind != DOC_OBJECT)
			return bad(r, switches->child[i], "not an object",
			    "{ \"id\": id, \"multicast\": true, \"reduce\": true }");
		TRY(need(r, switches->child[i], "id", DOC_STRING, &id));
		TRY(schedule_vertex(r, id, &v));
		TRY(read_flag(r, switches->child[i], "multicast", &r->topo->vertex[v].multicast));
		TRY(read_flag(r, switches->child[i], "reduce", &r->topo->vertex[v].reduce));
	}
	return OK;
}

Status
schedule_read_topology(struct reader *r, const Doc *root)
{
	const Doc *at, *ranks, *links;
	TRY(need(r, root, "topology", DOC_OBJECT, &at));
	TRY(doc_string(r->ctx, r->label, at, "name", &r->topo->name));
	TRY(doc_string(r->ctx, r->label, at, "digest", &r->topo->digest));
	TRY(need(r, at, "ranks", DOC_ARRAY, &ranks));
	TRY(need(r, at, "links", DOC_ARRAY, &links));
	TRY(TEMP(r->ctx, r->topo->vertex, ranks->n));
	TRY(read_ranks(r, ranks));
	TRY(read_links(r, links));
	TRY(read_abilities(r, at));
	return topo_index(r->ctx, r->topo);
}
