/* Vertices and nodes of a topology file: counted within limits, allocated, read, sorted by id. */
#include "format/blink/topology_reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- ids ---- */

static int
by_id_alone(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

static int
by_id(const void *a, const void *b)
{
	int order = by_id_alone(a, b);
	return order ? order : ((const struct named *)a)->vertex - ((const struct named *)b)->vertex;
}

/* Sort for look-up. Of several duplicate ids the message names the one that the file repeats first. */
static Status
sort_ids(struct reading *r, struct named *named, int n)
{
	const struct named *twice = NULL;
	qsort(named, (size_t)n, sizeof *named, by_id);
	for (int i = 1; i < n; i++)
		if (strcmp(named[i - 1].id, named[i].id) == 0 && (!twice || named[i].vertex < twice->vertex))
			twice = &named[i];
	return twice ? doc_fail(r->ctx, r->label, twice->at, BAD_INPUT, "\"%s\": given twice: want each id once",
	    twice->id) : OK;
}

int
vertex_find(const struct reading *r, const char *id)
{
	const struct named key = { .id = id }, *found;
	found = bsearch(&key, r->named, (size_t)r->topo->n_vertices, sizeof key, by_id_alone);
	return found ? found->vertex : -1;
}

/* ---- counts ---- */

/* Vertices of a copy of an entry; the most ports of each kind that one of its nodes has. */
static Status
count_server(struct reading *r, const Doc *object, struct server *server, int *most_ports)
{
	const Topology *topo = server->topo;
	int *ports, n_nodes = topo ? topo->n_nodes : 1;
	TRY(TEMP(r->ctx, ports, (size_t)n_nodes * N_VERTEX_KINDS));
	for (int kind = 0; kind < N_VERTEX_KINDS && !topo; kind++) {
		const Doc *list;
		TRY(read_children(r, object, vertex_kind_plural((VertexKind)kind), &list));
		ports[kind] = list->n;
		*(kind == VERTEX_GPU ? &server->n_gpus : &server->n_others) += list->n;
	}
	for (int v = 0; topo && v < topo->n_vertices; v++) {
		const Vertex *vertex = &topo->vertex[v];
		if (vertex->node >= 0)
			ports[vertex->node * N_VERTEX_KINDS + (int)vertex->kind]++;
		*(v < topo->n_ranks ? &server->n_gpus : vertex->node < 0 ? &server->n_fabric : &server->n_others) += 1;
	}
	for (int i = 0; i < n_nodes * N_VERTEX_KINDS; i++)
		if (ports[i] > most_ports[i % N_VERTEX_KINDS])
			most_ports[i % N_VERTEX_KINDS] = ports[i];
	return OK;
}

/* The number of everything, within limits, before anything is allocated for it. */
static Status
count_vertices(struct reading *r, const Doc *nodes)
{
	const Doc *list;
	int64_t n_nodes = 0, n_gpus = 0, n_others = 0, n_fabric = 0, most;
	int most_ports[N_VERTEX_KINDS] = { 0 };
	for (int i = 0; i < nodes->n; i++) {
		struct server *server = &r->server[i];
		TRY(count_server(r, nodes->child[i], server, most_ports));
		n_nodes += (int64_t)server->copies * (server->topo ? server->topo->n_nodes : 1);
		n_gpus += (int64_t)server->copies * server->n_gpus;
		n_others += (int64_t)server->copies * server->n_others;
		n_fabric += (int64_t)server->copies * server->n_fabric;
	}
	TRY(read_children(r, r->root, vertex_kind_plural(VERTEX_SWITCH), &list));
	if (n_gpus == 0)
		return doc_fail(r->ctx, r->label, r->root, BAD_INPUT, "no GPU: want at least one");
	if (n_gpus > LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, r->root, LIMIT, "%lld GPUs: want at most %d", (long long)n_gpus,
		    LIMIT_RANKS);
	TRY(fabrics_read(r, (int)n_nodes, most_ports, &most));
	if (n_gpus + n_others + n_fabric + list->n + most > LIMIT_VERTICES)
		return doc_fail(r->ctx, r->label, r->root, LIMIT, "%lld GPUs, CPUs, switches and NICs: want at most %d",
		    (long long)(n_gpus + n_others + n_fabric + list->n + most), LIMIT_VERTICES);
	r->topo->n_nodes = (int)n_nodes;
	r->topo->n_ranks = (int)n_gpus;
	r->topo->n_vertices = (int)(n_gpus + n_others + n_fabric + list->n + most);
	r->next_other = (int)n_gpus;
	r->next_fabric = (int)(n_gpus + n_others);
	return OK;
}

/* ---- vertices ---- */

static Status
read_vertex(struct reading *r, const Doc *object, VertexKind kind, int node)
{
	static const char *const plain[] = { "id", NULL }, *const active[] = { "id", "multicast", "reduce", NULL },
	    *const port[] = { "id", "capacity", NULL };
	const char *const *members = kind == VERTEX_SWITCH ? active : kind == VERTEX_NIC ? port : plain;
	int v = kind == VERTEX_GPU ? r->next_rank++ : node >= 0 ? r->next_other++ : r->next_fabric++;
	Vertex *vertex = &r->topo->vertex[v];
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(read_id(r, object, &vertex->id));
	vertex->kind = kind;
	vertex->node = node;
	TRY(read_flag(r, object, "multicast", &vertex->multicast));
	TRY(read_flag(r, object, "reduce", &vertex->reduce));
	TRY(read_capacity(r, object, &vertex->port));
	r->named[v] = (struct named){ vertex->id, v, doc_get(object, "id") };
	return OK;
}

static Status
read_node(struct reading *r, const Doc *object)
{
	static const char *const members[] = { "id",
#define X(name, one, many) many,
	    VERTEX_LIST(X)
#undef X
	    NULL };
	const Doc *list;
	int node = r->next_node++;
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(read_id(r, object, &r->topo->node[node]));
	r->node[node] = (struct named){ r->topo->node[node], node, doc_get(object, "id") };
	for (int kind = 0; kind < N_VERTEX_KINDS; kind++) {
		TRY(read_children(r, object, vertex_kind_plural((VertexKind)kind), &list));
		for (int i = 0; i < list->n; i++)
			TRY(read_vertex(r, list->child[i], (VertexKind)kind, node));
	}
	return OK;
}

Status
vertices_read(struct reading *r)
{
	const Doc *nodes, *fabric;
	Topology *topo = r->topo;
	TRY(read_children(r, r->root, "nodes", &nodes));
	if (nodes->n > LIMIT_NODES)
		return doc_fail(r->ctx, r->label, nodes, LIMIT, "%d nodes: want at most %d", nodes->n, LIMIT_NODES);
	TRY(servers_read(r, nodes));
	TRY(count_vertices(r, nodes));
	TRY(NEW(r->ctx, topo->node, topo->n_nodes));
	TRY(NEW(r->ctx, topo->vertex, topo->n_vertices));
	TRY(TEMP(r->ctx, r->named, topo->n_vertices));
	TRY(TEMP(r->ctx, r->node, topo->n_nodes));
	for (int i = 0; i < nodes->n; i++)
		TRY(r->server[i].topo ? server_graft(r, nodes->child[i], &r->server[i])
		    : read_node(r, nodes->child[i]));
	TRY(read_children(r, r->root, vertex_kind_plural(VERTEX_SWITCH), &fabric));
	for (int i = 0; i < fabric->n; i++)
		TRY(read_vertex(r, fabric->child[i], VERTEX_SWITCH, -1));
	TRY(servers_link(r));
	TRY(fabrics_join(r));
	topo->n_vertices = r->next_fabric;
	TRY(sort_ids(r, r->node, topo->n_nodes));
	return sort_ids(r, r->named, topo->n_vertices);
}
