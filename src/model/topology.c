/* Topology: names, the index of links by vertex, invariants. */
#include "model/topology.h"

#include <string.h>

const char *
vertex_kind_name(VertexKind kind)
{
	static const char *const names[] = { VERTEX_LIST(ROW_TEXT) };
	return names[kind];
}

const char *
vertex_kind_plural(VertexKind kind)
{
	static const char *const names[] = {
#define X(name, one, many) many,
		VERTEX_LIST(X)
#undef X
	};
	return names[kind];
}

static const char *const class_names[] = { LINK_CLASS_LIST(ROW_TEXT) };

const char *
link_class_name(LinkClass class)
{
	return class_names[class];
}

const Names link_class_names = { N_LINK_CLASSES, class_names };

bool
link_class_parse(const char *text, LinkClass *out)
{
	int class;
	if (!names_find(link_class_names, text, &class))
		return false;
	*out = (LinkClass)class;
	return true;
}

bool
link_classes_parse(const char *text, unsigned *out)
{
	if (strcmp(text, "all") != 0)
		return !names_parse_set(link_class_names, text, out);
	*out = (1u << N_LINK_CLASSES) - 1;
	return true;
}

NamesText
link_classes_text(unsigned classes)
{
	return names_text(link_class_names, classes, ",", ",");
}

/* Links by end, counted and then placed: ascending within a vertex. */
static Status
index_by(Ctx *ctx, const Topology *topo, bool by_source, int **first_out, int **list_out)
{
	int *first, *list;
	TRY(NEW(ctx, first, topo->n_vertices + 1));
	TRY(NEW(ctx, list, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		first[(by_source ? topo->link[l].from : topo->link[l].to) + 1]++;
	for (int v = 0; v < topo->n_vertices; v++)
		first[v + 1] += first[v];
	for (int l = topo->n_links - 1; l >= 0; l--) {
		/* The end of v's part moves down to its start while it fills; n_links down to 0 keeps it ascending. */
		int v = by_source ? topo->link[l].from : topo->link[l].to;
		list[--first[v + 1]] = l;
	}
	/* first[v + 1] is now the start of v's part: shift it into place. */
	for (int v = 0; v < topo->n_vertices; v++)
		first[v] = first[v + 1];
	first[topo->n_vertices] = topo->n_links;
	*first_out = first;
	*list_out = list;
	return OK;
}

Status
topo_index(Ctx *ctx, Topology *topo)
{
	TRY(index_by(ctx, topo, true, &topo->first_out, &topo->out));
	return index_by(ctx, topo, false, &topo->first_in, &topo->in);
}

Status
topo_renumber(Ctx *ctx, const int *now, int n, Topology *topo)
{
	const Topology old = *topo;
	TRY(NEW(ctx, topo->vertex, n));
	TRY(NEW(ctx, topo->link, old.n_links));
	topo->n_vertices = n;
	topo->n_links = 0;
	for (int v = old.n_vertices - 1; v >= 0; v--)
		if (now[v] >= 0)
			topo->vertex[now[v]] = old.vertex[v];
	for (int l = 0; l < old.n_links; l++) {
		Link link = old.link[l];
		link.from = now[link.from];
		link.to = now[link.to];
		if (link.from >= 0 && link.to >= 0)
			topo->link[topo->n_links++] = link;
	}
	return topo_index(ctx, topo);
}

bool
topo_id_valid(const char *id)
{
	static const char marks[] = "_.:@/+-";
	size_t n = strlen(id);
	if (n < 1 || n > LIMIT_ID_BYTES)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = id[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(marks, c)))
			return false;
	}
	return true;
}

static Status
check_vertices(Ctx *ctx, const char *label, const Topology *topo)
{
	if (topo->n_ranks < 1)
		return fail(ctx, BAD_INPUT, "%s: no GPU: want at least one", label);
	if (topo->n_ranks > LIMIT_RANKS)
		return fail(ctx, LIMIT, "%s: %d GPUs: want at most %d", label, topo->n_ranks, LIMIT_RANKS);
	if (topo->n_vertices > LIMIT_VERTICES)
		return fail(ctx, LIMIT, "%s: %d vertices: want at most %d", label, topo->n_vertices, LIMIT_VERTICES);
	for (int v = 0; v < topo->n_vertices; v++) {
		const Vertex *vertex = &topo->vertex[v];
		if (!topo_id_valid(vertex->id))
			return fail(ctx, BAD_INPUT, "%s: vertex %d: id \"%.80s\": want 1 to %d of A-Z a-z 0-9 _.:@/+-",
			    label, v, vertex->id, LIMIT_ID_BYTES);
		if ((vertex->kind == VERTEX_GPU) != (v < topo->n_ranks))
			return fail(ctx, INTERNAL, "%s: vertex %d (%s): GPUs must come first", label, v, vertex->id);
		if ((vertex->multicast || vertex->reduce) && vertex->kind != VERTEX_SWITCH)
			return fail(ctx, BAD_INPUT, "%s: vertex %s: multicast and reduce are for switches", label,
			    vertex->id);
		if (vertex->node < -1 || vertex->node >= topo->n_nodes)
			return fail(ctx, BAD_INPUT, "%s: vertex %s: node %d does not exist", label, vertex->id,
			    vertex->node);
	}
	return OK;
}

static Status
check_links(Ctx *ctx, const char *label, const Topology *topo)
{
	int64_t sum = 0;
	if (topo->n_links > LIMIT_LINKS)
		return fail(ctx, LIMIT, "%s: %d links: want at most %d", label, topo->n_links, LIMIT_LINKS);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (link->from < 0 || link->from >= topo->n_vertices || link->to < 0 || link->to >= topo->n_vertices)
			return fail(ctx, BAD_INPUT, "%s: link %d: its ends are not vertices", label, l);
		if (link->from == link->to)
			return fail(ctx, BAD_INPUT, "%s: link %d: from %s to itself: want two vertices", label, l,
			    topo->vertex[link->from].id);
		if (link->count < 1 || link->count > LIMIT_LINK_COUNT)
			return fail(ctx, BAD_INPUT, "%s: link %d: count %d: want 1 to %d", label, l, link->count,
			    LIMIT_LINK_COUNT);
		if (link->capacity % link->count)
			return fail(ctx, INTERNAL, "%s: link %d: capacity is not a multiple of its count", label, l);
		if (link->capacity < LIMIT_CAPACITY_MIN || link->capacity / LIMIT_LINK_COUNT > LIMIT_CAPACITY_MAX)
			return fail(ctx, BAD_INPUT,
			    "%s: link %d: capacity: want 0.000001 to 1000000 (GB/s) a physical link", label, l);
		if (link->latency < 0 || link->latency > LIMIT_LATENCY_NS)
			return fail(ctx, BAD_INPUT, "%s: link %d: latency: want 0 to 1000000 (us)", label, l);
		if (link->capacity > LIMIT_CAPACITY_SUM - sum)
			return fail(ctx, LIMIT, "%s: link %d: capacities add up to more than 4000000000 GB/s", label,
			    l);
		sum += link->capacity;
	}
	return OK;
}

Status
topo_check(Ctx *ctx, const char *label, const Topology *topo)
{
	TRY(check_vertices(ctx, label, topo));
	return check_links(ctx, label, topo);
}

int64_t
topo_link_unit(const Topology *topo)
{
	int64_t unit = 0;
	for (int l = 0; l < topo->n_links; l++)
		unit = gcd64(topo->link[l].capacity / topo->link[l].count, unit);
	return unit;
}

unsigned
topo_classes(const Topology *topo)
{
	unsigned classes = 0;
	for (int l = 0; l < topo->n_links; l++)
		classes |= 1u << topo->link[l].class;
	return classes;
}

bool
topo_active(const Topology *topo)
{
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if (topo->vertex[v].multicast || topo->vertex[v].reduce)
			return true;
	return false;
}

bool
topo_peer_access(const Topology *topo, int n, int64_t *time)
{
	for (int i = 0; i < topo->n_peer_accesses; i++) {
		*time = topo->peer_access[i].time;
		if (topo->peer_access[i].gpus >= n)
			break;
	}
	return topo->n_peer_accesses > 0;
}

static bool
same_vertex(const Topology *a, int v, const Topology *b, int w)
{
	return v < a->n_ranks || w < b->n_ranks ? v == w : strcmp(a->vertex[v].id, b->vertex[w].id) == 0;
}

bool
topo_same_in_files(const Topology *a, const Topology *b)
{
	if (a->n_ranks != b->n_ranks || a->n_links != b->n_links || strcmp(a->name, b->name) != 0
	    || strcmp(a->digest, b->digest) != 0)
		return false;
	for (int r = 0; r < a->n_ranks; r++)
		if (strcmp(a->vertex[r].id, b->vertex[r].id) != 0)
			return false;
	for (int l = 0; l < a->n_links; l++) {
		const Link *k = &a->link[l], *m = &b->link[l];
		if (k->class != m->class || k->capacity != m->capacity || k->latency != m->latency
		    || !same_vertex(a, k->from, b, m->from) || !same_vertex(a, k->to, b, m->to))
			return false;
	}
	return true;
}

Status
topo_gpu_names(Ctx *ctx, const Topology *topo, GpuNames *out)
{
	const char **id;
	int *node;
	TRY(TEMP_EACH(ctx, topo->n_ranks, id, node));
	for (int v = 0; v < topo->n_ranks; v++) {
		id[v] = topo->vertex[v].id;
		node[v] = topo->vertex[v].node;
	}
	*out = (GpuNames){ topo->n_ranks, id, topo->n_nodes ? node : NULL, topo->node };
	return OK;
}

Status
topo_check_pairs(Ctx *ctx, const Topology *topo)
{
	return topo->n_ranks <= LIMIT_PAIR_RANKS ? OK : fail(ctx, LIMIT,
	    "%s: %d GPUs: want at most %d, for tables of all their pairs", topo->name, topo->n_ranks, LIMIT_PAIR_RANKS);
}
