/* A topology file (blink-topology(5)) to a Topology: one reader for both spellings, since doc_read_xml gives what
 * doc_read_json gives. What is wrong in the file is refused here, where we know the place in it; topo_check then
 * holds the invariants of what we built. */
#include "read/topo.h"

#include <stdlib.h>
#include <string.h>

static const char *const plural[] = {
	"class", "classes", "node", "nodes", "fabric", "fabrics", "link", "links", "peer_access", "peer_accesses",
#define X(name, one, many) one, many,
	VERTEX_LIST(X)
#undef X
	NULL
};

/* ---- Text and ids -------------------------------------------------------------------------------------- */

/* Control characters, line separators, and what XML cannot hold: U+0080..9f, U+2028, U+2029, U+FFFE and U+FFFF. */
static bool
one_line(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < ' ' || *c == 127 || (*c == 0xc2 && c[1] < 0xa0))
			return false;
		if (*c == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
			return false;
		if (*c == 0xef && c[1] == 0xbf && c[2] >= 0xbe)
			return false;
	}
	return true;
}

Status
read_text(struct reading *r, const Doc *object, const char *name, const char **out)
{
	const char *text;
	TRY(doc_string(r->ctx, r->label, object, name, &text));
	if (!*text || !one_line(text))
		return doc_fail(r->ctx, r->label, doc_get(object, name), BAD_INPUT,
		    "%s: want one line of text without control characters", doc_found(doc_get(object, name)).text);
	*out = text;
	return OK;
}

static Status
read_source(struct reading *r, const Doc *object, const char **out)
{
	return doc_get(object, "source") ? read_text(r, object, "source", out) : OK;
}

Status
read_id(struct reading *r, const Doc *object, const char **out)
{
	const char *id;
	TRY(doc_string(r->ctx, r->label, object, "id", &id));
	const Doc *at = doc_get(object, "id");
	if (strlen(id) > LIMIT_ID_BYTES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%zu bytes: want at most %d", strlen(id), LIMIT_ID_BYTES);
	if (!topo_id_valid(id))
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%s: want 1 to %d of A-Z a-z 0-9 _.:@/+-",
		    doc_found(at).text, LIMIT_ID_BYTES);
	*out = id;
	return OK;
}

Status
read_children(struct reading *r, const Doc *object, const char *name, const Doc **out)
{
	static const Doc none = { .kind = DOC_ARRAY };
	*out = &none;
	if (!doc_get(object, name))
		return OK;
	TRY(doc_need(r->ctx, r->label, object, name, DOC_ARRAY, out));
	for (int i = 0; i < (*out)->n; i++) {
		const Doc *child = (*out)->child[i];
		if (child->kind != DOC_OBJECT)
			return doc_fail(r->ctx, r->label, child, BAD_INPUT, "%s: want an object", doc_found(child).text);
	}
	return OK;
}

static int
by_id(const void *a, const void *b)
{
	const struct named *l = a, *r = b;
	int order = strcmp(l->id, r->id);
	return order ? order : l->vertex - r->vertex;
}

/* Sort for look-up; of several ids given twice, name the one that the file repeats first. */
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

/* ---- Head and classes ---------------------------------------------------------------------------------- */

/* Other tools' XML, which people will try: say what it is. */
static Status
check_root(struct reading *r)
{
	const Doc *root = r->root;
	static const char want[] = "want a <topology format=\"blink-topology\"> element";
	if (root->kind != DOC_OBJECT)
		return doc_fail(r->ctx, r->label, root, BAD_INPUT, "%s: want an object", doc_found(root).text);
	if (!root->line)
		return OK;
	if (strcmp(root->text, "system") == 0)
		return doc_fail(r->ctx, r->label, root, BAD_INPUT, "a topology of NCCL, which blinkc does not read: %s", want);
	if (strcmp(root->text, "topology") != 0)
		return doc_fail(r->ctx, r->label, root, BAD_INPUT, "unknown element: %s", want);
	if (!doc_get(root, "format") && doc_get(root, "object"))
		return doc_fail(r->ctx, r->label, root, BAD_INPUT, "a topology of hwloc, which blinkc does not read: %s", want);
	return OK;
}

static Status
read_head(struct reading *r)
{
	static const char *const members[] = { "format", "version", "name", "source", "classes", "nodes", "switches",
	    "fabrics", "links", "peer_accesses", NULL };
	const char *format;
	int64_t version;
	TRY(check_root(r));
	TRY(doc_string(r->ctx, r->label, r->root, "format", &format));
	if (strcmp(format, "blink-topology") != 0)
		return doc_fail(r->ctx, r->label, doc_get(r->root, "format"), BAD_INPUT, "%s: want \"blink-topology\"",
		    doc_found(doc_get(r->root, "format")).text);
	const Doc *at = doc_get(r->root, "version");
	if (!at)
		return doc_missing(r->ctx, r->label, r->root, "version", "1");
	TRY(doc_int(r->ctx, r->label, at, 1, 1, &version));
	TRY(doc_only(r->ctx, r->label, r->root, members));
	TRY(read_text(r, r->root, "name", &r->topo->name));
	return read_source(r, r->root, &r->topo->source);
}

Status
read_capacity(struct reading *r, const Doc *at, int64_t *out)
{
	return doc_scaled(r->ctx, r->label, at, BYTES_PER_GB, LIMIT_CAPACITY_MIN, LIMIT_CAPACITY_MAX, "GB/s", out);
}

Status
read_latency(struct reading *r, const Doc *at, int64_t *out)
{
	return doc_scaled(r->ctx, r->label, at, NS_PER_US, 0, LIMIT_LATENCY_NS, "us", out);
}

Status
read_class_name(struct reading *r, const Doc *object, const char *member, LinkClass *out)
{
	const char *name;
	TRY(doc_string(r->ctx, r->label, object, member, &name));
	if (link_class_parse(name, out))
		return OK;
	return doc_fail(r->ctx, r->label, doc_get(object, member), BAD_INPUT, "%s: want one of"
#define X(id, text, what) " " text
	    LINK_CLASS_LIST(X)
#undef X
	    , doc_found(doc_get(object, member)).text);
}

static Status
read_class(struct reading *r, const Doc *object)
{
	static const char *const members[] = { "name", "capacity", "latency", "source", NULL };
	LinkClass class;
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(read_class_name(r, object, "name", &class));
	ClassDefault *given = &r->topo->class[class];
	if (given->given)
		return doc_fail(r->ctx, r->label, doc_get(object, "name"), BAD_INPUT, "\"%s\": given twice: want each class once",
		    link_class_name(class));
	given->given = true;
	if (doc_get(object, "capacity"))
		TRY(read_capacity(r, doc_get(object, "capacity"), &given->capacity));
	if (doc_get(object, "latency"))
		TRY(read_latency(r, doc_get(object, "latency"), &given->latency));
	return read_source(r, object, &given->source);
}

static Status
read_classes(struct reading *r)
{
	const Doc *classes;
	TRY(read_children(r, r->root, "classes", &classes));
	for (int i = 0; i < classes->n; i++)
		TRY(read_class(r, classes->child[i]));
	return OK;
}

static int
by_gpus(const void *a, const void *b)
{
	const PeerAccess *p = a, *q = b;
	return (p->gpus > q->gpus) - (p->gpus < q->gpus);
}

static Status
read_peer_access(struct reading *r, const Doc *object, PeerAccess *out)
{
	static const char *const members[] = { "gpus", "time", "source", NULL };
	int64_t gpus;
	TRY(doc_only(r->ctx, r->label, object, members));
	if (!doc_get(object, "gpus"))
		return doc_missing(r->ctx, r->label, object, "gpus", "a number of GPUs");
	if (!doc_get(object, "time"))
		return doc_missing(r->ctx, r->label, object, "time", "a number (us)");
	TRY(doc_int(r->ctx, r->label, doc_get(object, "gpus"), 2, LIMIT_RANKS, &gpus));
	TRY(doc_scaled(r->ctx, r->label, doc_get(object, "time"), NS_PER_US, 0, LIMIT_SETUP_NS, "us", &out->time));
	out->gpus = (int)gpus;
	return read_source(r, object, &out->source);
}

static Status
read_peer_accesses(struct reading *r)
{
	const Doc *list;
	bool *given;
	TRY(read_children(r, r->root, "peer_accesses", &list));
	/* Else those of the first file by reference that has some. */
	if (list->n == 0)
		return OK;
	TRY(TEMP(r->ctx, given, LIMIT_RANKS + 1));
	if (list->n > LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, list, LIMIT, "%d entries: want at most %d", list->n, LIMIT_RANKS);
	TRY(NEW(r->ctx, r->topo->peer_access, list->n));
	for (int i = 0; i < list->n; i++) {
		PeerAccess *entry = &r->topo->peer_access[i];
		TRY(read_peer_access(r, list->child[i], entry));
		if (given[entry->gpus])
			return doc_fail(r->ctx, r->label, doc_get(list->child[i], "gpus"), BAD_INPUT,
			    "%d: given twice: want each number once", entry->gpus);
		given[entry->gpus] = true;
	}
	r->topo->n_peer_accesses = list->n;
	qsort(r->topo->peer_access, (size_t)list->n, sizeof *r->topo->peer_access, by_gpus);
	return OK;
}

/* ---- Vertices ------------------------------------------------------------------------------------------ */

static const char *
plural_of_kind(int kind)
{
	static const char *const name[] = {
#define X(id, one, many) many,
		VERTEX_LIST(X)
#undef X
	};
	return name[kind];
}

/* How many an entry of `nodes` has, and the most ports of a kind that one of its servers has. */
static Status
count_server(struct reading *r, const Doc *object, struct server *server, int *most_ports)
{
	const Topology *topo = server->topo;
	int *ports, n_nodes = topo ? topo->n_nodes : 1;
	TRY(TEMP(r->ctx, ports, (size_t)n_nodes * N_VERTEX_KINDS));
	for (int kind = 0; kind < N_VERTEX_KINDS && !topo; kind++) {
		const Doc *list;
		TRY(read_children(r, object, plural_of_kind(kind), &list));
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

/* How many of everything, within limits, before anything is allocated for it. */
static Status
count_vertices(struct reading *r, const Doc *nodes)
{
	const Doc *list;
	int64_t n_nodes = 0, n_gpus = 0, n_others = 0, n_fabric = 0, room;
	int most_ports[N_VERTEX_KINDS] = { 0 };
	for (int i = 0; i < nodes->n; i++) {
		struct server *server = &r->server[i];
		TRY(count_server(r, nodes->child[i], server, most_ports));
		n_nodes += (int64_t)server->copies * (server->topo ? server->topo->n_nodes : 1);
		n_gpus += (int64_t)server->copies * server->n_gpus;
		n_others += (int64_t)server->copies * server->n_others;
		n_fabric += (int64_t)server->copies * server->n_fabric;
	}
	TRY(read_children(r, r->root, plural_of_kind(VERTEX_SWITCH), &list));
	if (n_gpus == 0)
		return doc_fail(r->ctx, r->label, r->root, BAD_INPUT, "no GPU: want at least one");
	if (n_gpus > LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, r->root, LIMIT, "%lld GPUs: want at most %d", (long long)n_gpus, LIMIT_RANKS);
	TRY(fabrics_read(r, (int)n_nodes, most_ports, &room));
	if (n_gpus + n_others + n_fabric + list->n + room > LIMIT_VERTICES)
		return doc_fail(r->ctx, r->label, r->root, LIMIT, "%lld GPUs, CPUs, switches and NICs: want at most %d",
		    (long long)(n_gpus + n_others + n_fabric + list->n + room), LIMIT_VERTICES);
	r->topo->n_nodes = (int)n_nodes;
	r->topo->n_ranks = (int)n_gpus;
	r->topo->n_vertices = (int)(n_gpus + n_others + n_fabric + list->n + room);
	r->next_other = (int)n_gpus;
	r->next_fabric = (int)(n_gpus + n_others);
	return OK;
}

/* true or false; in XML they are spelled. Without it: false. */
Status
read_flag(struct reading *r, const Doc *object, const char *member, bool *out)
{
	const Doc *at = doc_get(object, member);
	bool spelled = at && at->kind == DOC_STRING && r->root->text;
	if (!at)
		return OK;
	if (at->kind != DOC_BOOL && !(spelled && (strcmp(at->text, "true") == 0 || strcmp(at->text, "false") == 0)))
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%s: want true or false", doc_found(at).text);
	*out = spelled ? strcmp(at->text, "true") == 0 : at->flag;
	return OK;
}

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
	if (doc_get(object, "capacity"))
		TRY(read_capacity(r, doc_get(object, "capacity"), &vertex->port));
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
		TRY(read_children(r, object, plural_of_kind(kind), &list));
		for (int i = 0; i < list->n; i++)
			TRY(read_vertex(r, list->child[i], (VertexKind)kind, node));
	}
	return OK;
}

/* Within limits so far? Before the next file is read, for each has a topology of its own in memory. */
static Status
check_so_far(struct reading *r, const Doc *at, int64_t n_nodes, int64_t n_vertices, int64_t n_links)
{
	if (n_nodes > LIMIT_NODES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%lld nodes: want at most %d", (long long)n_nodes, LIMIT_NODES);
	if (n_vertices > LIMIT_VERTICES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%lld GPUs, CPUs, switches and NICs: want at most %d",
		    (long long)n_vertices, LIMIT_VERTICES);
	if (n_links > LIMIT_LINKS)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%lld links, one for each direction: want at most %d", (long long)n_links,
		    LIMIT_LINKS);
	return OK;
}

static Status
read_servers(struct reading *r, const Doc *nodes)
{
	int64_t n_nodes = 0, n_vertices = 0, n_links = 0;
	r->n_servers = nodes->n;
	TRY(TEMP(r->ctx, r->server, nodes->n));
	for (int i = 0; i < nodes->n; i++) {
		struct server *server = &r->server[i];
		server->copies = 1;
		if (doc_get(nodes->child[i], "file"))
			TRY(server_read(r, nodes->child[i], server));
		n_nodes += (int64_t)server->copies * (server->topo ? server->topo->n_nodes : 1);
		n_vertices += (int64_t)server->copies * (server->topo ? server->topo->n_vertices : 0);
		n_links += (int64_t)server->copies * (server->topo ? server->topo->n_links : 0);
		TRY(check_so_far(r, nodes->child[i], n_nodes, n_vertices, n_links));
	}
	return OK;
}

static Status
read_vertices(struct reading *r)
{
	const Doc *nodes, *fabric;
	Topology *topo = r->topo;
	TRY(read_children(r, r->root, "nodes", &nodes));
	if (nodes->n > LIMIT_NODES)
		return doc_fail(r->ctx, r->label, nodes, LIMIT, "%d nodes: want at most %d", nodes->n, LIMIT_NODES);
	TRY(read_servers(r, nodes));
	TRY(count_vertices(r, nodes));
	TRY(NEW(r->ctx, topo->node, topo->n_nodes));
	TRY(NEW(r->ctx, topo->vertex, topo->n_vertices));
	TRY(TEMP(r->ctx, r->named, topo->n_vertices));
	TRY(TEMP(r->ctx, r->node, topo->n_nodes));
	for (int i = 0; i < nodes->n; i++)
		TRY(r->server[i].topo ? server_graft(r, nodes->child[i], &r->server[i]) : read_node(r, nodes->child[i]));
	TRY(read_children(r, r->root, plural_of_kind(VERTEX_SWITCH), &fabric));
	for (int i = 0; i < fabric->n; i++)
		TRY(read_vertex(r, fabric->child[i], VERTEX_SWITCH, -1));
	TRY(servers_link(r));
	TRY(fabrics_join(r));
	topo->n_vertices = r->next_fabric;
	TRY(sort_ids(r, r->node, topo->n_nodes));
	return sort_ids(r, r->named, topo->n_vertices);
}

/* ---- Links --------------------------------------------------------------------------------------------- */

static Status
read_duplex(struct reading *r, const Doc *object, bool *full)
{
	const char *text = "full";
	if (doc_get(object, "duplex"))
		TRY(doc_string(r->ctx, r->label, object, "duplex", &text));
	*full = strcmp(text, "full") == 0;
	if (!*full && strcmp(text, "simplex") != 0)
		return doc_fail(r->ctx, r->label, doc_get(object, "duplex"), BAD_INPUT, "%s: want \"full\" or \"simplex\"",
		    doc_found(doc_get(object, "duplex")).text);
	return OK;
}

static Status
read_end(struct reading *r, const Doc *object, const char *member, int *out)
{
	struct named key = { .vertex = -1 };
	TRY(doc_string(r->ctx, r->label, object, member, &key.id));
	size_t n = (size_t)r->topo->n_vertices;
	/* by_id tells ids of one name apart by vertex, but here each is there once: find the first not below. */
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		if (by_id(&r->named[middle], &key) < 0)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo == n || strcmp(r->named[lo].id, key.id) != 0)
		return doc_fail(r->ctx, r->label, doc_get(object, member), BAD_INPUT,
		    "%s: want the id of a GPU, CPU, switch or NIC of this file", doc_found(doc_get(object, member)).text);
	*out = r->named[lo].vertex;
	return OK;
}

Status
read_count(struct reading *r, const Doc *object, int most, int *out)
{
	const Doc *at = doc_get(object, "count");
	int64_t count = 1;
	if (at)
		TRY(doc_int(r->ctx, r->label, at, 1, INT64_MAX, &count));
	if (count > most)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%s: want at most %d", doc_found(at).text, most);
	*out = (int)count;
	return OK;
}

/* Capacity of all its physical links, and latency: the link's own, or its class's. */
static Status
read_numbers(struct reading *r, const Doc *object, Link *link)
{
	const ClassDefault *given = &r->topo->class[link->class];
	const Doc *capacity = doc_get(object, "capacity"), *latency = doc_get(object, "latency");
	link->capacity = given->capacity;
	link->latency = given->latency;
	if (capacity)
		TRY(read_capacity(r, capacity, &link->capacity));
	if (link->capacity == 0)
		return doc_missing(r->ctx, r->label, object, "capacity", "a number (GB/s), here or in its class");
	if (latency)
		TRY(read_latency(r, latency, &link->latency));
	link->capacity *= link->count;
	return OK;
}

static Status
read_link(struct reading *r, const Doc *object, Link *link)
{
	static const char *const members[] = { "from", "to", "class", "count", "capacity", "latency", "duplex", "source",
	    NULL };
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(read_end(r, object, "from", &link->from));
	TRY(read_end(r, object, "to", &link->to));
	if (link->from == link->to)
		return doc_fail(r->ctx, r->label, doc_get(object, "to"), BAD_INPUT, "%s: want another vertex than \"from\"",
		    doc_found(doc_get(object, "to")).text);
	TRY(read_class_name(r, object, "class", &link->class));
	TRY(read_count(r, object, LIMIT_LINK_COUNT, &link->count));
	TRY(read_numbers(r, object, link));
	return read_source(r, object, &link->source);
}

/* Before links are allocated: one or two for each entry. */
static Status
count_links(struct reading *r, const Doc *links)
{
	int64_t n = r->n_grafted + fabrics_links(r);
	bool full;
	for (int i = 0; i < links->n; i++) {
		TRY(read_duplex(r, links->child[i], &full));
		n += full ? 2 : 1;
	}
	if (n > LIMIT_LINKS)
		return doc_fail(r->ctx, r->label, links->n ? links : r->root, LIMIT, "%lld links, one for each direction: want at most %d",
		    (long long)n, LIMIT_LINKS);
	r->topo->n_links = (int)n;
	return OK;
}

Status
read_capacity_sum(struct reading *r, const Doc *at, int64_t more)
{
	r->capacity_sum += more;
	if (r->capacity_sum > LIMIT_CAPACITY_SUM)
		return doc_fail(r->ctx, r->label, at, LIMIT, "capacities of all links up to here: want at most 4000000000 (GB/s)");
	return OK;
}

/* Links of files by reference, of fabrics, then the file's own. */
static Status
read_links(struct reading *r)
{
	const Doc *links;
	bool full;
	TRY(read_children(r, r->root, "links", &links));
	TRY(count_links(r, links));
	TRY(NEW(r->ctx, r->topo->link, r->topo->n_links));
	Link *link = r->topo->link;
	if (r->n_grafted)
		memcpy(link, r->grafted, (size_t)r->n_grafted * sizeof *link);
	link += r->n_grafted;
	TRY(fabrics_link(r, link));
	link += fabrics_links(r);
	for (int i = 0; i < links->n; i++, link++) {
		const Doc *object = links->child[i];
		TRY(read_link(r, object, link));
		TRY(read_duplex(r, object, &full));
		TRY(read_capacity_sum(r, object, link->capacity * (full ? 2 : 1)));
		if (full) {
			link[1] = link[0];
			link[1].from = link->to;
			link[1].to = link->from;
			link++;
		}
	}
	return OK;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

static char
first_character(const char *data, size_t size)
{
	size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	while (i < size && strchr(" \t\r\n", data[i]) && data[i])
		i++;
	return i < size ? data[i] : 0;
}

/* hwloc's files are known by their DOCTYPE, for which the XML reader would refuse them without saying what they are. */
static bool
is_hwloc(const char *data, size_t size)
{
	static const char doctype[] = "<!DOCTYPE topology SYSTEM \"hwloc";
	return memmem(data, size < 256 ? size : 256, doctype, sizeof doctype - 1);
}

static Status
read_doc(struct reading *r, const char *data, size_t size)
{
	Doc *root;
	if (first_character(data, size) != '<') {
		TRY(doc_read_json(r->ctx, r->label, data, size, &root));
	} else {
		if (is_hwloc(data, size))
			return fail(r->ctx, BAD_INPUT, "%s: a topology of hwloc, which blinkc does not read: want a "
			    "<topology format=\"blink-topology\"> element", r->label);
		TRY(doc_read_xml(r->ctx, r->label, data, size, plural, &root));
	}
	r->root = root;
	return OK;
}

static Status
read_all(struct reading *r, const char *data, size_t size)
{
	TRY(read_doc(r, data, size));
	TRY(NEW(r->ctx, r->topo, 1));
	TRY(read_head(r));
	TRY(read_classes(r));
	TRY(read_peer_accesses(r));
	TRY(read_vertices(r));
	TRY(read_links(r));
	TRY(topo_index(r->ctx, r->topo));
	TRY(topo_check(r->ctx, r->label, r->topo));
	return topo_digest(r->ctx, r->topo, &r->topo->digest);
}

Status
topo_read_within(Ctx *ctx, const char *label, const char *const *dirs, int depth, struct file **files, const char *data,
    size_t size, const Topology **out)
{
	struct reading r = { .ctx = ctx, .label = label, .dirs = dirs, .depth = depth, .files = files };
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = read_all(&r, data, size);
	arena_release(&ctx->scratch, mark);
	if (status == OK)
		*out = r.topo;
	return status;
}

Status
topo_read(Ctx *ctx, const char *label, const char *const *dirs, const char *data, size_t size, Topology **out)
{
	struct file *files = NULL;
	const Topology *topo;
	Topology *copy;
	TRY(topo_read_within(ctx, label, dirs, 0, &files, data, size, &topo));
	TRY(NEW(ctx, copy, 1));
	*copy = *topo;
	*out = copy;
	return OK;
}
