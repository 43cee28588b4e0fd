/* Topology: index of links by vertex, invariants, digest, choice of GPUs and of link classes. */
#include "base/mix.h"
#include "passes.h"

#include <stdlib.h>
#include <string.h>

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
			return fail(ctx, BAD_INPUT, "%s: vertex %d: id \"%.80s\": want 1 to %d of A-Z a-z 0-9 _.:@/+-", label, v,
			    vertex->id, LIMIT_ID_BYTES);
		if ((vertex->kind == VERTEX_GPU) != (v < topo->n_ranks))
			return fail(ctx, INTERNAL, "%s: vertex %d (%s): GPUs must come first", label, v, vertex->id);
		if ((vertex->multicast || vertex->reduce) && vertex->kind != VERTEX_SWITCH)
			return fail(ctx, BAD_INPUT, "%s: vertex %s: multicast and reduce are for switches", label, vertex->id);
		if (vertex->node < -1 || vertex->node >= topo->n_nodes)
			return fail(ctx, BAD_INPUT, "%s: vertex %s: node %d does not exist", label, vertex->id, vertex->node);
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
			return fail(ctx, BAD_INPUT, "%s: link %d: count %d: want 1 to %d", label, l, link->count, LIMIT_LINK_COUNT);
		if (link->capacity % link->count)
			return fail(ctx, INTERNAL, "%s: link %d: capacity is not a multiple of its count", label, l);
		if (link->capacity < LIMIT_CAPACITY_MIN || link->capacity / LIMIT_LINK_COUNT > LIMIT_CAPACITY_MAX)
			return fail(ctx, BAD_INPUT, "%s: link %d: capacity: want 0.000001 to 1000000 (GB/s) a physical link",
			    label, l);
		if (link->latency < 0 || link->latency > LIMIT_LATENCY_NS)
			return fail(ctx, BAD_INPUT, "%s: link %d: latency: want 0 to 1000000 (us)", label, l);
		if (link->capacity > LIMIT_CAPACITY_SUM - sum)
			return fail(ctx, LIMIT, "%s: link %d: capacities add up to more than 4000000000 GB/s", label, l);
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

bool
topo_active(const Topology *topo)
{
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if (topo->vertex[v].multicast || topo->vertex[v].reduce)
			return true;
	return false;
}

/* Does as much lead from v to w as from the twin of w to that of v, for all of them? The twin of a twin is the vertex itself. */
static bool
mirrored_by(const Topology *topo, const int *twin, int64_t *net)
{
	bool same = true;
	for (int v = 0; v < topo->n_vertices; v++) {
		int w = twin[v];
		/* net: to each vertex from v, less what comes back. */
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
			net[topo->link[topo->out[i]].to] += topo->link[topo->out[i]].capacity;
		for (int i = topo->first_in[w]; i < topo->first_in[w + 1]; i++)
			net[twin[topo->link[topo->in[i]].from]] -= topo->link[topo->in[i]].capacity;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			same = same && net[topo->link[topo->out[i]].to] == 0;
			net[topo->link[topo->out[i]].to] = 0;
		}
		for (int i = topo->first_in[w]; i < topo->first_in[w + 1]; i++) {
			same = same && net[twin[topo->link[topo->in[i]].from]] == 0;
			net[twin[topo->link[topo->in[i]].from]] = 0;
		}
	}
	return same;
}

Status
topo_mirrored(Ctx *ctx, const Topology *topo, bool *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *net;
	int *self;
	TRY(TEMP(ctx, net, topo->n_vertices));
	TRY(TEMP(ctx, self, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		self[v] = v;
	*out = mirrored_by(topo, self, net);
	arena_release(&ctx->scratch, mark);
	return OK;
}

struct tagged {
	uint64_t colour;
	int v;
};

static int
by_colour(const void *a, const void *b)
{
	const struct tagged *s = a, *t = b;
	return s->colour != t->colour ? (s->colour > t->colour) - (s->colour < t->colour) : (s->v > t->v) - (s->v < t->v);
}

/* Switches in order of colours that they get from what they are linked to, again and again; against: links lead the other way. */
static void
colour_switches(const Topology *topo, bool against, uint64_t *colour, uint64_t *next, struct tagged *order)
{
	enum { ROUNDS = 8 };
	for (int v = 0; v < topo->n_vertices; v++)
		colour[v] = v < topo->n_ranks ? mix64((uint64_t)v + 1) : 0;
	for (int round = 0; round < ROUNDS; round++) {
		memcpy(next, colour, (size_t)topo->n_vertices * sizeof *next);
		for (int l = 0; l < topo->n_links; l++) {
			const Link *link = &topo->link[l];
			int from = against ? link->to : link->from, to = against ? link->from : link->to;
			next[from] += mix64(colour[to] ^ mix64((uint64_t)link->capacity));
			next[to] += mix64(colour[from] + mix64((uint64_t)link->capacity));
		}
		for (int v = topo->n_ranks; v < topo->n_vertices; v++)
			colour[v] = mix64(next[v]);
	}
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		order[v - topo->n_ranks] = (struct tagged){ colour[v], v };
	qsort(order, (size_t)(topo->n_vertices - topo->n_ranks), sizeof *order, by_colour);
}

Status
topo_twinned(Ctx *ctx, const Topology *topo, bool *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct tagged *ahead, *against;
	uint64_t *colour, *next;
	int64_t *net;
	int *twin;
	TRY(TEMP(ctx, ahead, topo->n_vertices));
	TRY(TEMP(ctx, against, topo->n_vertices));
	TRY(TEMP(ctx, colour, topo->n_vertices));
	TRY(TEMP(ctx, next, topo->n_vertices));
	TRY(TEMP(ctx, net, topo->n_vertices));
	TRY(TEMP(ctx, twin, topo->n_vertices));
	colour_switches(topo, false, colour, next, ahead);
	colour_switches(topo, true, colour, next, against);
	*out = !topo_active(topo);
	for (int v = 0; v < topo->n_vertices; v++) {
		int i = v - topo->n_ranks;
		twin[i < 0 ? v : ahead[i].v] = i < 0 ? v : against[i].v;
	}
	for (int v = 0; v < topo->n_vertices; v++)
		*out = *out && twin[twin[v]] == v;
	*out = *out && mirrored_by(topo, twin, net);
	arena_release(&ctx->scratch, mark);
	return OK;
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

/* ---- choice of GPUs ---- */

static int
gpu_named(const Topology *topo, const char *name, size_t length)
{
	int index = 0;
	for (int v = 0; v < topo->n_ranks; v++)
		if (strlen(topo->vertex[v].id) == length && memcmp(topo->vertex[v].id, name, length) == 0)
			return v;
	if (length == 0 || length > 6)
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (name[i] < '0' || name[i] > '9')
			return -1;
		index = index * 10 + (name[i] - '0');
	}
	return index < topo->n_ranks ? index : -1;
}

Status
topo_select(Ctx *ctx, const Topology *topo, const char *gpus, int *gpu, int *n)
{
	*n = 0;
	if (!gpus) {
		for (int v = 0; v < topo->n_ranks; v++)
			gpu[(*n)++] = v;
		return OK;
	}
	for (const char *name = gpus;; name++) {
		size_t length = strcspn(name, ",");
		int v = gpu_named(topo, name, length);
		if (v < 0)
			return fail(ctx, BAD_INPUT, "--gpus: \"%.*s\": %s has no such GPU: want an index 0 to %d or an id, as %s",
			    (int)(length < 80 ? length : 80), name, topo->name, topo->n_ranks - 1, topo->vertex[0].id);
		for (int i = 0; i < *n; i++)
			if (gpu[i] == v)
				return fail(ctx, BAD_INPUT, "--gpus: %s is given twice: want each GPU once", topo->vertex[v].id);
		gpu[(*n)++] = v;
		name += length;
		if (!*name)
			return OK;
	}
}

static bool
same_vertex(const Topology *a, int v, const Topology *b, int w)
{
	return v < a->n_ranks || w < b->n_ranks ? v == w : strcmp(a->vertex[v].id, b->vertex[w].id) == 0;
}

bool
topo_same_in_files(const Topology *a, const Topology *b)
{
	if (a->n_ranks != b->n_ranks || a->n_links != b->n_links || strcmp(a->name, b->name) != 0 || strcmp(a->digest, b->digest) != 0)
		return false;
	for (int r = 0; r < a->n_ranks; r++)
		if (strcmp(a->vertex[r].id, b->vertex[r].id) != 0)
			return false;
	for (int l = 0; l < a->n_links; l++) {
		const Link *k = &a->link[l], *m = &b->link[l];
		if (k->class != m->class || k->capacity != m->capacity || k->latency != m->latency || !same_vertex(a, k->from, b, m->from)
		    || !same_vertex(a, k->to, b, m->to))
			return false;
	}
	return true;
}
