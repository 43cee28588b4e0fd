/* Vertices and links are kept in the order of the calls. builder_finish sorts the vertices into the order of topology
 * files and renumbers the links. */
#include "format/builder.h"
#include "base/array.h"
#include "base/hash.h"
#include "topology/topology.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_ROOM = LIMIT_ID_BYTES + 1, FIRST_SLOTS = 64 };

/* Ids that are taken: open addressing, never more than half full. */
struct id_set {
	const char **slot;
	int n, n_slots;
};

struct TopologyBuilder {
	Ctx *ctx;
	Status status;
	const char *label;
	Topology *topo;
	int room_nodes, room_vertices, room_links, room_notes;
	int n_last;			/* links of the last builder_link */
	int64_t capacity_sum;
	struct id_set nodes, vertices, notes;
};

/* ---- texts and ids ---- */

/* Where an id is, or would be. */
static const char **
slot_of(const struct id_set *set, const char *id)
{
	size_t mask = (size_t)set->n_slots - 1, i = (size_t)hash_bytes(id, strlen(id)) & mask;
	while (set->slot[i] && strcmp(set->slot[i], id) != 0)
		i = (i + 1) & mask;
	return &set->slot[i];
}

static Status
set_grow(Ctx *ctx, struct id_set *set)
{
	struct id_set larger = { .n = set->n, .n_slots = set->n_slots ? 2 * set->n_slots : FIRST_SLOTS };
	if (2 * (set->n + 1) <= set->n_slots)
		return OK;
	TRY(NEW(ctx, larger.slot, larger.n_slots));
	for (int i = 0; i < set->n_slots; i++)
		if (set->slot[i])
			*slot_of(&larger, set->slot[i]) = set->slot[i];
	*set = larger;
	return OK;
}

/* Characters that ids do not have become '_'; long ids lose their middle, as their ends tell them apart. */
static void
make_valid(const char *text, char out[ID_ROOM])
{
	size_t n = strlen(text);
	if (n <= LIMIT_ID_BYTES)
		snprintf(out, ID_ROOM, "%s", n ? text : "_");
	else
		snprintf(out, ID_ROOM, "%.*s..%s", LIMIT_ID_BYTES / 2 - 2, text, text + n - LIMIT_ID_BYTES / 2);
	for (char *c = out; *c; c++)
		if (!topo_id_valid((char[]){ *c, 0 }))
			*c = '_';
}

/* A valid id that nothing in the set has: with -2, -3, ... at its end where it is taken. */
static Status
new_id(Ctx *ctx, struct id_set *set, const char *text, const char **out)
{
	char id[ID_ROOM], tried[2 * ID_ROOM];
	TRY(set_grow(ctx, set));
	make_valid(text, id);
	snprintf(tried, sizeof tried, "%s", id);
	for (int i = 2; *slot_of(set, tried); i++) {
		char number[16];
		int n = snprintf(number, sizeof number, "-%d", i);
		snprintf(tried, sizeof tried, "%.*s%s", LIMIT_ID_BYTES - n, id, number);
	}
	*out = arena_text(&ctx->run, tried, strlen(tried));
	if (!*out)
		return fail_memory(ctx);
	*slot_of(set, tried) = *out;
	set->n++;
	return OK;
}

/* One line of at most LIMIT_TEXT_BYTES; NULL where there is none. */
static Status
keep_text(Ctx *ctx, const char *text, const char **out)
{
	*out = NULL;
	if (!text || !*text)
		return OK;
	size_t n = strnlen(text, LIMIT_TEXT_BYTES);
	char *copy = arena_text(&ctx->run, text, n);
	if (!copy)
		return fail_memory(ctx);
	make_printable(copy);
	*out = copy;
	return OK;
}

/* ---- parts ---- */

Status
builder_new(Ctx *ctx, const char *label, const char *name, const char *source, TopologyBuilder **out)
{
	TopologyBuilder *b;
	TRY(NEW(ctx, b, 1));
	*b = (TopologyBuilder){ .ctx = ctx, .label = label };
	TRY(NEW(ctx, b->topo, 1));
	TRY(keep_text(ctx, name && *name ? name : "machine", &b->topo->name));
	TRY(keep_text(ctx, source, &b->topo->source));
	*out = b;
	return OK;
}

Status
builder_status(const TopologyBuilder *b)
{
	return b->status;
}

static Status
add_node(TopologyBuilder *b, const char *id)
{
	Topology *topo = b->topo;
	if (topo->n_nodes == LIMIT_NODES)
		return fail(b->ctx, LIMIT, "%s: more than %d servers", b->label, LIMIT_NODES);
	TRY(GROW(b->ctx, topo->node, topo->n_nodes, b->room_nodes));
	TRY(new_id(b->ctx, &b->nodes, id, &topo->node[topo->n_nodes]));
	topo->n_nodes++;
	return OK;
}

int
builder_node(TopologyBuilder *b, const char *id)
{
	if (b->status == OK)
		b->status = add_node(b, id);
	return b->topo->n_nodes - 1;
}

static Status
add_vertex(TopologyBuilder *b, VertexKind kind, int node, const char *id)
{
	Topology *topo = b->topo;
	assert(node < topo->n_nodes && (node >= 0 || kind == VERTEX_SWITCH));
	if (topo->n_vertices == LIMIT_VERTICES)
		return fail(b->ctx, LIMIT, "%s: more than %d GPUs, CPUs, switches and NICs", b->label, LIMIT_VERTICES);
	if (kind == VERTEX_GPU && topo->n_ranks == LIMIT_RANKS)
		return fail(b->ctx, LIMIT, "%s: more than %d GPUs", b->label, LIMIT_RANKS);
	TRY(GROW(b->ctx, topo->vertex, topo->n_vertices, b->room_vertices));
	Vertex *vertex = &topo->vertex[topo->n_vertices];
	*vertex = (Vertex){ .kind = kind, .node = node };
	TRY(new_id(b->ctx, &b->vertices, id, &vertex->id));
	topo->n_vertices++;
	topo->n_ranks += kind == VERTEX_GPU;
	return OK;
}

int
builder_vertex(TopologyBuilder *b, VertexKind kind, int node, const char *id)
{
	if (b->status == OK)
		b->status = add_vertex(b, kind, node, id);
	return b->topo->n_vertices - 1;
}

const char *
builder_id(const TopologyBuilder *b, int vertex)
{
	return b->status == OK ? b->topo->vertex[vertex].id : "";
}

static int64_t
clamp_capacity(int64_t capacity)
{
	return capacity < LIMIT_CAPACITY_MIN ? LIMIT_CAPACITY_MIN
	    : capacity > LIMIT_CAPACITY_MAX ? LIMIT_CAPACITY_MAX : capacity;
}

void
builder_port(TopologyBuilder *b, int vertex, int64_t capacity)
{
	if (b->status == OK)
		b->topo->vertex[vertex].port = clamp_capacity(capacity);
}

void
builder_gpus(TopologyBuilder *b, const GpuModel *model)
{
	b->topo->gpu_model = model ? model->name : NULL;
}

void
builder_class(TopologyBuilder *b, LinkClass class, int64_t capacity, int64_t latency, const char *source)
{
	ClassDefault *given = &b->topo->class[class];
	if (b->status != OK)
		return;
	*given = (ClassDefault){ .given = true, .capacity = capacity ? clamp_capacity(capacity) : 0,
		.latency = latency };
	b->status = keep_text(b->ctx, source, &given->source);
}

void
builder_gpu_links(TopologyBuilder *b, const GpuModel *model, bool switched)
{
	static const char *const ordinal[] = { "zeroth", "first", "second", "third", "fourth", "fifth", "sixth" };
	char source[512];
	bool nvlink = model->class == LINK_NVLINK;
	snprintf(source, sizeof source, "nominal, %s generation of %s, each direction: %s; %s",
	    ordinal[model->generation % 7], nvlink ? "NVLink" : "xGMI", model->source,
	    nvlink && switched ? nvswitch_latency_source() : link_class_latency_source(model->class));
	builder_class(b, model->class, model->rate, nvlink && switched ? nvswitch_latency()
	    : link_class_latency(model->class), source);
}

/* Links in a row often have one source: they share it. */
static Status
link_source(TopologyBuilder *b, const char *source, const char **out)
{
	const Topology *topo = b->topo;
	const char *last = topo->n_links ? topo->link[topo->n_links - 1].source : NULL;
	if (last && source && strcmp(last, source) == 0) {
		*out = last;
		return OK;
	}
	return keep_text(b->ctx, source, out);
}

static Status
add_link(TopologyBuilder *b, const Link *link)
{
	Topology *topo = b->topo;
	if (topo->n_links == LIMIT_LINKS)
		return fail(b->ctx, LIMIT, "%s: more than %d links, one for each direction", b->label, LIMIT_LINKS);
	b->capacity_sum += link->capacity;
	if (b->capacity_sum > LIMIT_CAPACITY_SUM)
		return fail(b->ctx, LIMIT, "%s: capacities of all links: want at most 4000000000 (GB/s)", b->label);
	TRY(GROW(b->ctx, topo->link, topo->n_links, b->room_links));
	topo->link[topo->n_links++] = *link;
	return OK;
}

void
builder_link(TopologyBuilder *b, int from, int to, LinkClass class, int count, int64_t capacity, Duplex duplex,
    const char *source)
{
	Link link = { .from = from, .to = to, .class = class };
	if (b->status != OK)
		return;
	assert(from != to && from >= 0 && to >= 0 && from < b->topo->n_vertices && to < b->topo->n_vertices);
	assert(count >= 1 && capacity > 0);
	link.count = count > LIMIT_LINK_COUNT ? LIMIT_LINK_COUNT : count;
	link.capacity = clamp_capacity(capacity) * link.count;
	b->n_last = duplex == DUPLEX ? 2 : 1;
	b->status = link_source(b, source, &link.source);
	if (b->status == OK)
		b->status = add_link(b, &link);
	if (b->status == OK && duplex == DUPLEX) {
		link.from = to;
		link.to = from;
		b->status = add_link(b, &link);
	}
}

void
builder_link_assumed(TopologyBuilder *b)
{
	for (int i = 1; i <= b->n_last && b->status == OK; i++)
		b->topo->link[b->topo->n_links - i].assumed = true;
}

void
builder_join_cpus(TopologyBuilder *b, const int *cpu, int n, const SocketLink *link)
{
	if (n < 2)
		return;
	builder_sockets(b, n, link);
	for (int i = 0; i < n; i++) {
		for (int k = i + 1; k < n && b->status == OK; k++) {
			builder_link(b, cpu[i], cpu[k], LINK_QPI, 1, link->capacity, DUPLEX, NULL);
			if (link->assumed)
				builder_link_assumed(b);
		}
	}
}

static Status
add_note(TopologyBuilder *b, const char *line)
{
	Topology *topo = b->topo;
	const char *note;
	if (topo->n_notes == LIMIT_NOTES)
		return OK;
	if (topo->n_notes == LIMIT_NOTES - 1)
		line = "there are more notes than these";
	TRY(set_grow(b->ctx, &b->notes));
	if (*slot_of(&b->notes, line))
		return OK;
	TRY(GROW(b->ctx, topo->note, topo->n_notes, b->room_notes));
	TRY(keep_text(b->ctx, line, &note));
	*slot_of(&b->notes, note) = note;
	b->notes.n++;
	topo->note[topo->n_notes++] = note;
	return OK;
}

void
builder_assume(TopologyBuilder *b, const char *format, ...)
{
	char line[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	make_printable(line);
	if (b->status == OK && *line)
		b->status = add_note(b, line);
}

void
builder_sockets(TopologyBuilder *b, int n, const SocketLink *link)
{
	char source[256];
	snprintf(source, sizeof source, "%s%s", link->source, link->assumed ? ", as the CPU is not known" : "");
	builder_class(b, LINK_QPI, link->capacity, link_class_latency(LINK_QPI), source);
	builder_assume(b, SOCKET_NOTE "%s: %.4g GB/s (%s)%s", n == 2 ? "the CPUs" : "each pair of CPUs",
	    (double)link->capacity / 1e9, link->name, link->assumed ? ", a guess: --cpu or --cpu-link states it" : "");
}

/* ---- the whole ---- */

/* A vertex and where it goes: GPUs, then all others, by node and kind; those in no node last. */
struct place {
	int group, kind, vertex;
};

static struct place
place_of(const Topology *topo, int v)
{
	const Vertex *vertex = &topo->vertex[v];
	int node = vertex->node < 0 ? topo->n_nodes : vertex->node;
	bool gpu = vertex->kind == VERTEX_GPU;
	return (struct place){ node + (gpu ? 0 : topo->n_nodes + 1), (int)vertex->kind, v };
}

static int
by_place(const void *a, const void *b)
{
	const struct place *p = a, *q = b;
	return p->group != q->group ? (p->group > q->group) - (p->group < q->group)
	    : p->kind != q->kind ? p->kind - q->kind : p->vertex - q->vertex;
}

static Status
sort_vertices(Ctx *ctx, Topology *topo)
{
	struct place *place;
	int *number;
	TRY(TEMP(ctx, place, topo->n_vertices));
	TRY(TEMP(ctx, number, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		place[v] = place_of(topo, v);
	qsort(place, (size_t)topo->n_vertices, sizeof *place, by_place);
	for (int i = 0; i < topo->n_vertices; i++)
		number[place[i].vertex] = i;
	return topo_renumber(ctx, number, topo->n_vertices, topo);
}

/* Latencies of links are those of their classes. */
static void
set_latencies(Topology *topo)
{
	for (int l = 0; l < topo->n_links; l++) {
		ClassDefault *class = &topo->class[topo->link[l].class];
		if (!class->given)
			*class = (ClassDefault){ .given = true, .latency = link_class_latency(topo->link[l].class),
				.source = link_class_latency_source(topo->link[l].class) };
		topo->link[l].latency = class->latency;
	}
}

static int
by_capacity(const void *a, const void *b)
{
	const int64_t *p = a, *q = b;
	return (*p > *q) - (*p < *q);
}

/* Capacity of most links of a class, the largest of several: so that a file repeats it less often. */
static Status
set_capacity(Ctx *ctx, Topology *topo, LinkClass class)
{
	int64_t *capacity;
	int n = 0, most = 0;
	TRY(TEMP(ctx, capacity, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].class == class)
			capacity[n++] = topo->link[l].capacity / topo->link[l].count;
	qsort(capacity, (size_t)n, sizeof *capacity, by_capacity);
	for (int i = 0, first = 0; i < n; i++) {
		first = capacity[i] == capacity[first] ? first : i;
		if (i - first + 1 >= most) {
			most = i - first + 1;
			topo->class[class].capacity = capacity[i];
		}
	}
	return OK;
}

static Status
finish(TopologyBuilder *b)
{
	Ctx *ctx = b->ctx;
	Topology *topo = b->topo;
	TRY(b->status);
	if (topo->n_ranks == 0)
		return fail(ctx, BAD_INPUT, "%s: no GPU: want at least one", b->label);
	TRY(sort_vertices(ctx, topo));
	set_latencies(topo);
	for (int class = 0; class < N_LINK_CLASSES; class++)
		if (topo->class[class].given && topo->class[class].capacity == 0)
			TRY(set_capacity(ctx, topo, (LinkClass)class));
	TRY(topo_check(ctx, b->label, topo));
	return topo_digest(ctx, topo, &topo->digest);
}

Status
builder_finish(TopologyBuilder *b, Topology **out)
{
	ArenaMark mark = arena_mark(&b->ctx->scratch);
	Status status = finish(b);
	arena_release(&b->ctx->scratch, mark);
	if (status == OK)
		*out = b->topo;
	return status;
}
