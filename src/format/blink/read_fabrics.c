/* Fabrics (blink-topology(5)): switches that join a port of every server to a leaf, and the leaves to a spine. */
#include "format/blink/topology_reader.h"

#include <stdio.h>
#include <string.h>

enum { MICRO = 1000000 };	/* oversubscription is counted in millionths */

static Status
read_ports(struct reading *r, const Doc *object, VertexKind *out)
{
	const char *text = "nics";
	if (doc_get(object, "ports"))
		TRY(doc_string(r->ctx, r->label, object, "ports", &text));
	*out = strcmp(text, "gpus") == 0 ? VERTEX_GPU : VERTEX_NIC;
	if (*out == VERTEX_NIC && strcmp(text, "nics") != 0)
		return doc_want(r->ctx, r->label, doc_get(object, "ports"), "\"nics\" or \"gpus\"");
	return OK;
}

static Status
read_fabric(struct reading *r, const Doc *object, struct fabric *out)
{
	static const char *const members[] = { "id", "class", "ports", "capacity", "count", "latency", "rails",
	    "servers", "oversubscription", "multicast", "reduce", "source", NULL };
	const Doc *at;
	int64_t servers;
	*out = (struct fabric){ .at = object, .id = "net", .class = LINK_NET, .latency = -1, .over = MICRO };
	TRY(doc_only(r->ctx, r->label, object, members));
	if (doc_get(object, "id"))
		TRY(read_id(r, object, &out->id));
	if (doc_get(object, "class"))
		TRY(read_class_name(r, object, "class", &out->class));
	TRY(read_ports(r, object, &out->port));
	TRY(read_capacity(r, object, &out->capacity));
	TRY(read_count(r, object, LIMIT_LINK_COUNT, &out->count));
	TRY(read_latency(r, object, &out->latency));
	TRY(read_flag(r, object, "rails", &out->rails));
	TRY(read_flag(r, object, "multicast", &out->multicast));
	TRY(read_flag(r, object, "reduce", &out->reduce));
	if ((at = doc_get(object, "servers"))) {
		TRY(doc_int(r->ctx, r->label, at, 1, LIMIT_NODES, &servers));
		out->servers = (int)servers;
	}
	if ((at = doc_get(object, "oversubscription")))
		TRY(doc_scaled(r->ctx, r->label, at, MICRO, MICRO / 1000, (int64_t)MICRO * 1000, "", &out->over));
	out->spined = at || out->servers;
	return read_source(r, object, &out->source);
}

Status
fabrics_read(struct reading *r, int n_nodes, const int *most_ports, int64_t *most)
{
	const Doc *list;
	*most = 0;
	TRY(read_children(r, r->root, "fabrics", &list));
	if (list->n > LIMIT_FABRICS)
		return doc_fail(r->ctx, r->label, list, LIMIT, "%d fabrics: want at most %d", list->n, LIMIT_FABRICS);
	r->n_fabrics = list->n;
	TRY(TEMP(r->ctx, r->fabric, list->n));
	for (int i = 0; i < list->n; i++) {
		struct fabric *f = &r->fabric[i];
		TRY(read_fabric(r, list->child[i], f));
		int64_t groups = f->servers ? (n_nodes + f->servers - 1) / f->servers : 1;
		*most += groups * (f->rails ? most_ports[f->port] : 1) + 1;
	}
	return OK;
}

static Status
add_switch(struct reading *r, const struct fabric *f, const char *place)
{
	char text[2 * LIMIT_ID_BYTES];
	int v = r->next_fabric++;
	Vertex *vertex = &r->topo->vertex[v];
	snprintf(text, sizeof text, "%s%s", f->id, place);
	if (!topo_id_valid(text))
		return doc_fail(r->ctx, r->label, f->at, LIMIT, "\"%s\": want ids of at most %d bytes", text,
		    LIMIT_ID_BYTES);
	*vertex = (Vertex){ .id = arena_text(&r->ctx->run, text, strlen(text)), .kind = VERTEX_SWITCH, .node = -1,
		.multicast = f->multicast, .reduce = f->reduce };
	r->named[v] = (struct named){ vertex->id, v, f->at };
	return vertex->id ? OK : fail_memory(r->ctx);
}

/* Ports of this kind, without those that have links of this class in a file by reference. */
static Status
find_ports(struct reading *r, struct fabric *f)
{
	bool *taken, *has;
	TRY(TEMP(r->ctx, taken, r->topo->n_vertices));
	TRY(TEMP(r->ctx, has, r->topo->n_nodes));
	for (int l = 0; l < r->n_grafted; l++)
		if (r->grafted[l].class == f->class)
			taken[r->grafted[l].from] = taken[r->grafted[l].to] = true;
	TRY(TEMP(r->ctx, f->vertex, r->next_fabric));
	for (int v = 0; v < r->next_fabric; v++) {
		const Vertex *vertex = &r->topo->vertex[v];
		if (vertex->kind != f->port || vertex->node < 0)
			continue;
		has[vertex->node] = true;
		if (!taken[v])
			f->vertex[f->n_ports++] = v;
	}
	for (int i = 0; i < r->topo->n_nodes; i++)
		if (!has[i])
			return doc_fail(r->ctx, r->label, f->at, BAD_INPUT,
			    "node %s has no %s: want one for this fabric", r->topo->node[i],
			    f->port == VERTEX_GPU ? "GPU" : "NIC");
	return f->n_ports ? OK : doc_fail(r->ctx, r->label, f->at, BAD_INPUT,
	    "every port has links of class %s in its file: want one to join", link_class_name(f->class));
}

/* Vertices are ordered by server, and so are ports: the j-th of a server is on rail j of the group of its server. */
static int
group_ports(const struct reading *r, const struct fabric *f, int *group, int *rail)
{
	int rails = 1, node = -1, server = -1;
	for (int i = 0; i < f->n_ports; i++) {
		bool same = r->topo->vertex[f->vertex[i]].node == node;
		node = r->topo->vertex[f->vertex[i]].node;
		server += !same;
		group[i] = f->servers ? server / f->servers : 0;
		rail[i] = same && f->rails ? rail[i - 1] + 1 : 0;
		rails = rail[i] >= rails ? rail[i] + 1 : rails;
	}
	return rails;
}

/* A leaf for each rail of each group that has a port on it, in that order, and the spine. */
static Status
add_switches(struct reading *r, struct fabric *f)
{
	int *group, *rail, *leaf;
	TRY(TEMP(r->ctx, group, f->n_ports));
	TRY(TEMP(r->ctx, rail, f->n_ports));
	TRY(TEMP(r->ctx, f->leaf, f->n_ports));
	int rails = group_ports(r, f, group, rail), places = (group[f->n_ports - 1] + 1) * rails;
	TRY(TEMP(r->ctx, leaf, places));
	for (int i = 0; i < f->n_ports; i++)
		leaf[group[i] * rails + rail[i]] = 1;
	f->first = r->next_fabric;
	for (int p = 0; p < places; p++) {
		char name[64] = "";
		if (!leaf[p])
			continue;
		leaf[p] = f->n_leaves++;
		if (f->servers)
			snprintf(name, sizeof name, "/leaf%d", p / rails);
		if (f->rails)
			snprintf(name + strlen(name), sizeof name - strlen(name), "/rail%d", p % rails);
		TRY(add_switch(r, f, name));
	}
	for (int i = 0; i < f->n_ports; i++)
		f->leaf[i] = leaf[group[i] * rails + rail[i]];
	f->spined = f->spined && f->n_leaves > 1;
	return f->spined ? add_switch(r, f, "/spine") : OK;
}

Status
fabrics_join(struct reading *r)
{
	for (int i = 0; i < r->n_fabrics; i++) {
		TRY(find_ports(r, &r->fabric[i]));
		TRY(add_switches(r, &r->fabric[i]));
	}
	return OK;
}

int64_t
fabrics_links(const struct reading *r)
{
	int64_t n = 0;
	for (int i = 0; i < r->n_fabrics; i++)
		n += 2 * ((int64_t)r->fabric[i].n_ports + (r->fabric[i].spined ? r->fabric[i].n_leaves : 0));
	return n;
}

/* The link and its reverse. */
static Status
put_link(struct reading *r, const struct fabric *f, Link link, Link **at)
{
	TRY(read_capacity_sum(r, f->at, 2 * link.capacity));
	*(*at)++ = link;
	*(*at)++ = (Link){ link.to, link.from, link.class, link.count, link.capacity, link.latency, link.source,
		    link.assumed };
	return OK;
}

/* Capacity of a port: the fabric's, else the port's own, else that of its class. */
static Status
port_capacity(struct reading *r, const struct fabric *f, int v, int64_t *out)
{
	int64_t own = r->topo->vertex[v].port, given = r->topo->class[f->class].capacity;
	*out = f->count * (f->capacity ? f->capacity : own ? own : given);
	return *out ? OK : doc_missing(r->ctx, r->label, f->at, "capacity",
	    "a number (GB/s), here, of each NIC, or of the class");
}

static Status
link_fabric(struct reading *r, const struct fabric *f, Link **at)
{
	Link link = { .class = f->class, .latency = f->latency < 0 ? r->topo->class[f->class].latency : f->latency,
	    .source = f->source };
	int64_t *sum;
	TRY(TEMP(r->ctx, sum, f->n_leaves));
	link.count = f->count;
	for (int i = 0; i < f->n_ports; i++) {
		link.from = f->vertex[i];
		link.to = f->first + f->leaf[i];
		TRY(port_capacity(r, f, f->vertex[i], &link.capacity));
		TRY(put_link(r, f, link, at));
		sum[f->leaf[i]] += link.capacity;
	}
	link.count = 1;
	for (int i = 0; f->spined && i < f->n_leaves; i++) {
		Wide uplink = (Wide)sum[i] * MICRO / f->over;
		if (uplink < LIMIT_CAPACITY_MIN || uplink > LIMIT_CAPACITY_MAX)
			return doc_fail(r->ctx, r->label, f->at, LIMIT,
			    "a leaf's uplink: want 0.000001 to 1000000 (GB/s)");
		link.from = f->first + i;
		link.to = f->first + f->n_leaves;
		link.capacity = (int64_t)uplink;
		TRY(put_link(r, f, link, at));
	}
	return OK;
}

Status
fabrics_link(struct reading *r, Link *link)
{
	for (int i = 0; i < r->n_fabrics; i++)
		TRY(link_fabric(r, &r->fabric[i], &link));
	return OK;
}
