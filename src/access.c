/* The way between GPUs and NICs, for a job that uses the network but not the links that lead to the NICs.
 *
 * GPUs of a job talk over NVLink, say, and the network. To a NIC data goes over PCIe, which carries nothing else: two GPUs that
 * NVLink joins do not use PCIe as well. So each CPU and switch on the way, and the NIC, is split in two: `out` copies lead from
 * GPUs to the network, and `in` copies from it, and none has a way back:
 *
 *	gpu0 --+                                                             +--> gpu0
 *	       +--> plx0:out --> nic0:out --> network --> nic0:in --> plx0:in --+
 *	gpu1 --+                                                             +--> gpu1
 *
 * A GPU uses the NICs that are nearest, by links; and a NIC that is nearest to no GPU serves those that are nearest to it. Where links
 * lead both ways, by the first rule no link is on ways out and on ways in: were x -> y on the way of g to its nearest n, and on that
 * of n' to g', whose nearest it is, then n would be nearer to x than n' is, and n' nearer to y than n. The second rule can break
 * that; then the NIC stays unused. So each link is in one copy, and capacities are those of the machine.
 *
 * A way may end with links of the job, and has none behind its first other link: those carry what the job sends. A link of the
 * job's classes that none of its GPUs reaches by them is no link of the job. */
#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT, IN, N_WAYS };

struct access {
	const Topology *topo;
	unsigned classes;	/* of the job */
	const int *first[N_WAYS], *list[N_WAYS];	/* links that leave a vertex, and those that enter it */
	/* From the GPU at hand: hops over links of the job alone, and with others behind them; -1: none. */
	int *hops[2];
	int n_queue, *queue;	/* in order of hops: 2 * vertex, and 1 more for the others */
	bool *on_way;		/* work space: NICs that follow begins at */
	bool *barred;		/* of bar */
	bool *of_job;		/* GPUs of the job, and what they reach, or are reached from, over links of its classes in their server */
	bool *carries[N_WAYS];	/* links, not of the job, on the way to a NIC, or from one */
	bool *serves[N_WAYS];	/* NICs at the end of one */
	int *least[N_WAYS];	/* of each NIC: hops from the nearest GPU; -1: none */
	int n_vertices, *copy[N_WAYS];	/* of each vertex; -1: none */
};

static int
other_end(const struct access *a, int way, int l)
{
	return way == OUT ? a->topo->link[l].to : a->topo->link[l].from;
}

static bool
is_of_class(const struct access *a, int l)
{
	return a->classes >> a->topo->link[l].class & 1;
}

static bool
is_job(const struct access *a, int l)
{
	return is_of_class(a, l) && a->of_job[a->topo->link[l].from] && a->of_job[a->topo->link[l].to];
}

/* Within a server, past other GPUs and not over the network. */
static bool
stays_inside(const struct access *a, int way, int l)
{
	const Vertex *v = &a->topo->vertex[other_end(a, !way, l)], *w = &a->topo->vertex[other_end(a, way, l)];
	return w->kind != VERTEX_GPU && w->node == v->node && a->topo->link[l].class != LINK_NET;
}

static void
mark_job(struct access *a, int way, const int *gpu, int n)
{
	int tail = 0;
	for (int i = 0; i < n; i++)
		a->queue[tail++] = gpu[i];
	for (int head = 0; head < tail; head++) {
		int v = a->queue[head];
		a->of_job[v] = true;
		for (int i = a->first[way][v]; i < a->first[way][v + 1] && a->topo->vertex[v].kind != VERTEX_NIC; i++) {
			int l = a->list[way][i], w = other_end(a, way, l);
			if (a->on_way[w] || !is_of_class(a, l) || !stays_inside(a, way, l))
				continue;
			a->on_way[w] = true;
			a->queue[tail++] = w;
		}
	}
	for (int i = 0; i < tail; i++)
		a->on_way[a->queue[i]] = false;
}

/* Hops to v, if it is a NIC with a link of the network in this direction; else -1. */
static int
hops_to_nic(const struct access *a, int way, int v)
{
	for (int i = a->first[way][v]; i < a->first[way][v + 1] && a->topo->vertex[v].kind == VERTEX_NIC; i++)
		if (a->topo->link[a->list[way][i]].class == LINK_NET)
			return a->hops[0][v] >= 0 ? a->hops[0][v] : a->hops[1][v];
	return -1;
}

static void
visit(struct access *a, int v, bool other, int hops)
{
	if (a->hops[other][v] >= 0)
		return;
	a->hops[other][v] = hops;
	a->queue[a->n_queue++] = 2 * v + other;
}

/* Through CPUs and switches of a GPU's server: over links of the job, then over others. */
static void
walk(struct access *a, int way, int gpu)
{
	for (int i = 0; i < a->n_queue; i++)
		a->hops[a->queue[i] % 2][a->queue[i] / 2] = -1;
	a->n_queue = 0;
	visit(a, gpu, false, 0);
	for (int head = 0; head < a->n_queue; head++) {
		int v = a->queue[head] / 2;
		bool other = a->queue[head] % 2;
		if (a->topo->vertex[v].kind == VERTEX_NIC)
			continue;
		for (int i = a->first[way][v]; i < a->first[way][v + 1]; i++) {
			int l = a->list[way][i], w = other_end(a, way, l);
			if (stays_inside(a, way, l) && !(other && is_job(a, l)))
				visit(a, w, other || !is_job(a, l), a->hops[other][v] + 1);
		}
	}
}

/* Is u, hops away, before the end of link l on a shortest way from the GPU at hand, and l no link of the job? */
static bool
precedes(const struct access *a, int u, int l, int hops)
{
	return !is_job(a, l) && a->topo->vertex[u].kind != VERTEX_NIC && (a->hops[0][u] == hops || a->hops[1][u] == hops);
}

/* A NIC for follow; what links of the job lead to needs no way. */
static void
aim(struct access *a, int way, int nic)
{
	a->on_way[nic] = a->hops[0][nic] < 0;
	a->serves[way][nic] |= a->on_way[nic];
}

/* Mark links that are not the job's on all shortest ways to these NICs. */
static void
follow(struct access *a, int way)
{
	for (int i = a->n_queue - 1; i >= 0; i--) {
		int v = a->queue[i] / 2, hops = a->hops[1][v] - 1;
		if (a->queue[i] % 2 == 0 || !a->on_way[v])
			continue;
		a->on_way[v] = false;
		for (int k = a->first[!way][v]; k < a->first[!way][v + 1]; k++) {
			int l = a->list[!way][k], u = other_end(a, !way, l);
			if (!precedes(a, u, l, hops))
				continue;
			a->carries[way][l] = true;
			a->on_way[u] = a->hops[1][u] == hops;
		}
	}
}

/* Vertices to which a shortest way has a link that is on a way in the other direction. */
static void
bar(struct access *a, int way)
{
	for (int i = 0; i < a->n_queue; i++) {
		int v = a->queue[i] / 2, hops = a->hops[1][v] - 1;
		if (a->queue[i] % 2 == 0)
			continue;
		a->barred[v] = false;
		for (int k = a->first[!way][v]; k < a->first[!way][v + 1]; k++) {
			int l = a->list[!way][k], u = other_end(a, !way, l);
			if (precedes(a, u, l, hops))
				a->barred[v] |= a->carries[!way][l] || (a->hops[1][u] == hops && a->barred[u]);
		}
	}
}

/* The nearest NICs of a GPU; what is known of those in its reach. */
static void
use_nearest(struct access *a, int way, int gpu)
{
	int least = -1;
	walk(a, way, gpu);
	for (int i = 0; i < a->n_queue; i++) {
		int v = a->queue[i] / 2, hops = hops_to_nic(a, way, v);
		if (hops >= 0 && (least < 0 || hops < least))
			least = hops;
		if (hops >= 0 && (a->least[way][v] < 0 || hops < a->least[way][v]))
			a->least[way][v] = hops;
	}
	for (int i = a->n_queue - 1; i >= 0; i--)
		if (hops_to_nic(a, way, a->queue[i] / 2) == least && least >= 0)
			aim(a, way, a->queue[i] / 2);
	follow(a, way);
}

/* NICs that serve nobody and have no nearer GPU than this one. idle: work space. */
static void
use_idle(struct access *a, int gpu, const bool *served, int *idle)
{
	int n = 0, kept = 0;
	for (int way = OUT; way < N_WAYS; way++) {
		walk(a, way, gpu);
		for (int i = 0; i < a->n_queue && way == OUT; i++)
			if (!served[a->queue[i] / 2] && hops_to_nic(a, way, a->queue[i] / 2) >= 0)
				idle[n++] = a->queue[i] / 2;
		kept = 0;
		bar(a, way);
		for (int i = 0; i < n; i++)
			if (hops_to_nic(a, way, idle[i]) == a->least[way][idle[i]] && (a->hops[0][idle[i]] >= 0 || !a->barred[idle[i]]))
				idle[kept++] = idle[i];
		n = kept;
	}
	for (int way = OUT; way < N_WAYS && n > 0; way++) {
		walk(a, way, gpu);
		for (int i = 0; i < n; i++)
			aim(a, way, idle[i]);
		follow(a, way);
	}
}

static Status
new_access(Ctx *ctx, const Topology *topo, unsigned classes, struct access *a)
{
	*a = (struct access){ .topo = topo, .classes = classes, .first = { topo->first_out, topo->first_in },
		.list = { topo->out, topo->in }, .n_vertices = topo->n_vertices };
	TRY(TEMP(ctx, a->queue, 2 * (size_t)topo->n_vertices));
	TRY(TEMP(ctx, a->on_way, topo->n_vertices));
	TRY(TEMP(ctx, a->barred, topo->n_vertices));
	TRY(TEMP(ctx, a->of_job, topo->n_vertices));
	for (int way = OUT; way < N_WAYS; way++) {
		TRY(TEMP(ctx, a->hops[way], topo->n_vertices));
		TRY(TEMP(ctx, a->carries[way], topo->n_links));
		TRY(TEMP(ctx, a->serves[way], topo->n_vertices));
		TRY(TEMP(ctx, a->least[way], topo->n_vertices));
		TRY(TEMP(ctx, a->copy[way], topo->n_vertices));
		for (int v = 0; v < topo->n_vertices; v++)
			a->hops[way][v] = a->least[way][v] = a->copy[way][v] = -1;
	}
	return OK;
}

/* What a carried link, or a NIC's link of the network, ends at instead of v. */
static int
place_of(struct access *a, int way, int v)
{
	if (v < a->topo->n_ranks || a->of_job[v])
		return v;
	if (a->copy[way][v] < 0)
		a->copy[way][v] = a->n_vertices++;
	return a->copy[way][v];
}

/* The job's links and those carried, between copies; false: a link of a NIC that serves nobody. */
static bool
place_link(struct access *a, int l, Link *link)
{
	*link = a->topo->link[l];
	for (int way = OUT; way < N_WAYS; way++) {
		int nic = way == OUT ? link->from : link->to;
		int *end = way == OUT ? &link->from : &link->to;
		if (a->carries[way][l]) {
			*link = (Link){ place_of(a, way, link->from), place_of(a, way, link->to), link->class, link->count, link->capacity,
				link->latency, link->source };
			return true;
		}
		if (link->class == LINK_NET && a->topo->vertex[nic].kind == VERTEX_NIC) {
			if (!a->serves[way][nic] && !a->of_job[nic])
				return false;
			*end = place_of(a, way, nic);
		}
	}
	return is_of_class(a, l);
}

static Status
copy_vertices(Ctx *ctx, const struct access *a, Topology *out)
{
	static const char *const ending[N_WAYS] = { ":out", ":in" };
	const Topology *topo = a->topo;
	TRY(NEW(ctx, out->vertex, a->n_vertices));
	memcpy(out->vertex, topo->vertex, (size_t)topo->n_vertices * sizeof *out->vertex);
	out->n_vertices = a->n_vertices;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		for (int way = OUT; way < N_WAYS; way++) {
			char id[LIMIT_ID_BYTES + 8];
			if (a->copy[way][v] < 0)
				continue;
			Vertex *copy = &out->vertex[a->copy[way][v]];
			*copy = topo->vertex[v];
			snprintf(id, sizeof id, "%s%s", copy->id, ending[way]);
			if (!topo_id_valid(id))
				return fail(ctx, LIMIT, "%s: %s: want an id of at most %d bytes on the way to the network", topo->name, copy->id,
				    LIMIT_ID_BYTES - (int)strlen(ending[way]));
			copy->id = arena_text(&ctx->run, id, strlen(id));
			if (!copy->id)
				return fail_memory(ctx);
		}
	}
	return OK;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A machine may have called a vertex as a copy is called. */
static Status
check_ids(Ctx *ctx, const Topology *topo)
{
	const char **id;
	TRY(TEMP(ctx, id, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		id[v] = topo->vertex[v].id;
	qsort(id, (size_t)topo->n_vertices, sizeof *id, by_text);
	for (int v = 1; v < topo->n_vertices; v++)
		if (strcmp(id[v - 1], id[v]) == 0)
			return fail(ctx, BAD_INPUT, "%s: %s: is what the way to the network is called: want another id", topo->name, id[v]);
	return OK;
}

static Status
build(Ctx *ctx, struct access *a, Topology **out)
{
	Topology *made;
	TRY(NEW(ctx, made, 1));
	*made = *a->topo;
	TRY(NEW(ctx, made->link, a->topo->n_links));
	made->n_links = 0;
	for (int l = 0; l < a->topo->n_links; l++)
		made->n_links += place_link(a, l, &made->link[made->n_links]);
	TRY(copy_vertices(ctx, a, made));
	TRY(check_ids(ctx, made));
	TRY(topo_index(ctx, made));
	*out = made;
	return OK;
}

Status
topo_access(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned classes, const Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct access a;
	Topology *made;
	bool *served, any = false;
	int *idle;
	*out = topo;
	if (!(classes >> LINK_NET & 1))
		return OK;
	TRY(new_access(ctx, topo, classes, &a));
	TRY(TEMP(ctx, served, topo->n_vertices));
	TRY(TEMP(ctx, idle, topo->n_vertices));
	for (int way = OUT; way < N_WAYS; way++)
		mark_job(&a, way, gpu, n);
	for (int i = 0; i < n; i++)
		for (int way = OUT; way < N_WAYS; way++)
			use_nearest(&a, way, gpu[i]);
	for (int v = 0; v < topo->n_vertices; v++)
		served[v] = a.serves[OUT][v] || a.serves[IN][v] || a.of_job[v];
	for (int i = 0; i < n; i++)
		use_idle(&a, gpu[i], served, idle);
	for (int l = 0; l < topo->n_links; l++)
		any = any || a.carries[OUT][l] || a.carries[IN][l];
	if (any) {
		TRY(build(ctx, &a, &made));
		*out = made;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
