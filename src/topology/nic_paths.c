/* Paths between GPUs and NICs, for a job that uses the network but not the links that lead to the NICs.
 *
 * GPUs of a job exchange data over NVLink, say, and the network. To a NIC data goes over PCIe, which carries nothing
 * else: two GPUs that NVLink joins do not use PCIe as well. So each CPU and switch on such a path, and the NIC, is
 * split in two: `out` copies lead from GPUs to the network, and `in` copies from it, and neither leads back:
 *
 * 	gpu0 --+                                                             +--> gpu0
 * 	       +--> plx0:out --> nic0:out --> network --> nic0:in --> plx0:in --+
 * 	gpu1 --+                                                             +--> gpu1
 *
 * A GPU uses the NICs that are nearest, by hops; and a NIC that is nearest to no GPU serves the GPUs that are nearest
 * to it. Where links have both directions, by the first rule no link is on both a path out and a path in: were x -> y
 * on the path of g to its nearest NIC n, and on that of n' to g', whose nearest it is, then n would be nearer to x than
 * n' is, and n' nearer to y than n. The second rule can break that; then the NIC stays unused. So each link is in one
 * copy, and capacities are those of the machine.
 *
 * A path may begin with links of the job (seen from the GPU), and has none of them after its first other link: those
 * carry what the job sends. A link of the job's classes that none of its GPUs reaches by such links is no link of the
 * job. */
#include "topology/topology.h"
#include "base/sort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT, IN, N_DIRECTIONS };

struct paths {
	const Topology *topo;
	unsigned classes;	/* of the job */
	const unsigned *of_node;	/* those of links within each server; NULL: all */
	const int *first[N_DIRECTIONS], *list[N_DIRECTIONS];	/* links that leave a vertex, and those that enter it */
	/* From the current GPU: hops over links of the job alone, and with other links after them; -1: none. */
	int *hops[2];
	int n_queue, *queue;	/* in order of hops: 2 * vertex, and 1 more with other links */
	bool *on_path;		/* work space: NICs that mark_paths begins at */
	bool *blocked;		/* of find_blocked */
	bool *in_job;		/* GPUs of the job, and what links of its classes join to them within their server */
	bool *carries[N_DIRECTIONS];	/* links, not of the job, on a path to a NIC, or from one */
	bool *serves[N_DIRECTIONS];	/* NICs at the end of such a path */
	int *nearest[N_DIRECTIONS];	/* of each NIC: hops from the nearest GPU; -1: none */
	int n_vertices, *copy[N_DIRECTIONS];	/* of each vertex; -1: none */
};

static int
other_end(const struct paths *p, int dir, int l)
{
	return dir == OUT ? p->topo->link[l].to : p->topo->link[l].from;
}

static bool
is_of_class(const struct paths *p, int l)
{
	const Link *link = &p->topo->link[l];
	int node = p->topo->vertex[link->from].node;
	bool inside = p->of_node && node >= 0 && node == p->topo->vertex[link->to].node && link->class != LINK_NET;
	return (inside ? p->of_node[node] : p->classes) >> link->class & 1;
}

static bool
is_job_link(const struct paths *p, int l)
{
	return is_of_class(p, l) && p->in_job[p->topo->link[l].from] && p->in_job[p->topo->link[l].to];
}

/* Within a server, through no other GPU and not over the network. */
static bool
stays_inside(const struct paths *p, int dir, int l)
{
	const Vertex *v = &p->topo->vertex[other_end(p, !dir, l)], *w = &p->topo->vertex[other_end(p, dir, l)];
	return w->kind != VERTEX_GPU && w->node == v->node && p->topo->link[l].class != LINK_NET;
}

static void
mark_job(struct paths *p, int dir, const int *gpu, int n)
{
	int tail = 0;
	for (int i = 0; i < n; i++)
		p->queue[tail++] = gpu[i];
	for (int head = 0; head < tail; head++) {
		int v = p->queue[head];
		p->in_job[v] = true;
		for (int i = p->first[dir][v]; i < p->first[dir][v + 1] && p->topo->vertex[v].kind != VERTEX_NIC; i++) {
			int l = p->list[dir][i], w = other_end(p, dir, l);
			if (p->on_path[w] || !is_of_class(p, l) || !stays_inside(p, dir, l))
				continue;
			p->on_path[w] = true;
			p->queue[tail++] = w;
		}
	}
	for (int i = 0; i < tail; i++)
		p->on_path[p->queue[i]] = false;
}

/* Hops to v, if it is a NIC with a link of the network in this direction; else -1. */
static int
hops_to_nic(const struct paths *p, int dir, int v)
{
	for (int i = p->first[dir][v]; i < p->first[dir][v + 1] && p->topo->vertex[v].kind == VERTEX_NIC; i++)
		if (p->topo->link[p->list[dir][i]].class == LINK_NET)
			return p->hops[0][v] >= 0 ? p->hops[0][v] : p->hops[1][v];
	return -1;
}

static void
visit(struct paths *p, int v, bool other, int hops)
{
	if (p->hops[other][v] >= 0)
		return;
	p->hops[other][v] = hops;
	p->queue[p->n_queue++] = 2 * v + other;
}

/* Hops from a GPU through CPUs and switches of its server: over links of the job, then over others. */
static void
measure(struct paths *p, int dir, int gpu)
{
	for (int i = 0; i < p->n_queue; i++)
		p->hops[p->queue[i] % 2][p->queue[i] / 2] = -1;
	p->n_queue = 0;
	visit(p, gpu, false, 0);
	for (int head = 0; head < p->n_queue; head++) {
		int v = p->queue[head] / 2;
		bool other = p->queue[head] % 2;
		if (p->topo->vertex[v].kind == VERTEX_NIC)
			continue;
		for (int i = p->first[dir][v]; i < p->first[dir][v + 1]; i++) {
			int l = p->list[dir][i], w = other_end(p, dir, l);
			if (stays_inside(p, dir, l) && !(other && is_job_link(p, l)))
				visit(p, w, other || !is_job_link(p, l), p->hops[other][v] + 1);
		}
	}
}

/* Is u, at this number of hops, the start of link l on a shortest path from the current GPU, and l no link of the
 * job? */
static bool
precedes(const struct paths *p, int u, int l, int hops)
{
	return !is_job_link(p, l) && p->topo->vertex[u].kind != VERTEX_NIC
	    && (p->hops[0][u] == hops || p->hops[1][u] == hops);
}

/* A NIC for mark_paths; one that links of the job lead to needs no path. */
static void
add_target(struct paths *p, int dir, int nic)
{
	p->on_path[nic] = p->hops[0][nic] < 0;
	p->serves[dir][nic] |= p->on_path[nic];
}

/* Mark links that are not the job's on all shortest paths to these NICs. */
static void
mark_paths(struct paths *p, int dir)
{
	for (int i = p->n_queue - 1; i >= 0; i--) {
		int v = p->queue[i] / 2, hops = p->hops[1][v] - 1;
		if (p->queue[i] % 2 == 0 || !p->on_path[v])
			continue;
		p->on_path[v] = false;
		for (int k = p->first[!dir][v]; k < p->first[!dir][v + 1]; k++) {
			int l = p->list[!dir][k], u = other_end(p, !dir, l);
			if (!precedes(p, u, l, hops))
				continue;
			p->carries[dir][l] = true;
			p->on_path[u] = p->hops[1][u] == hops;
		}
	}
}

/* Vertices to which a shortest path has a link that is on a path in the other direction. */
static void
find_blocked(struct paths *p, int dir)
{
	for (int i = 0; i < p->n_queue; i++) {
		int v = p->queue[i] / 2, hops = p->hops[1][v] - 1;
		if (p->queue[i] % 2 == 0)
			continue;
		p->blocked[v] = false;
		for (int k = p->first[!dir][v]; k < p->first[!dir][v + 1]; k++) {
			int l = p->list[!dir][k], u = other_end(p, !dir, l);
			if (precedes(p, u, l, hops))
				p->blocked[v] |= p->carries[!dir][l] || (p->hops[1][u] == hops && p->blocked[u]);
		}
	}
}

/* Use the nearest NICs of a GPU, and note how near it is to each NIC. */
static void
use_nearest(struct paths *p, int dir, int gpu)
{
	int least = -1;
	measure(p, dir, gpu);
	for (int i = 0; i < p->n_queue; i++) {
		int v = p->queue[i] / 2, hops = hops_to_nic(p, dir, v);
		if (hops >= 0 && (least < 0 || hops < least))
			least = hops;
		if (hops >= 0 && (p->nearest[dir][v] < 0 || hops < p->nearest[dir][v]))
			p->nearest[dir][v] = hops;
	}
	for (int i = p->n_queue - 1; i >= 0; i--)
		if (hops_to_nic(p, dir, p->queue[i] / 2) == least && least >= 0)
			add_target(p, dir, p->queue[i] / 2);
	mark_paths(p, dir);
}

/* NICs that serve no GPU yet and have no nearer GPU than this one. idle: work space. */
static void
use_idle(struct paths *p, int gpu, const bool *served, int *idle)
{
	int n = 0, kept = 0;
	for (int dir = OUT; dir < N_DIRECTIONS; dir++) {
		measure(p, dir, gpu);
		for (int i = 0; i < p->n_queue && dir == OUT; i++)
			if (!served[p->queue[i] / 2] && hops_to_nic(p, dir, p->queue[i] / 2) >= 0)
				idle[n++] = p->queue[i] / 2;
		kept = 0;
		find_blocked(p, dir);
		for (int i = 0; i < n; i++)
			if (hops_to_nic(p, dir, idle[i]) == p->nearest[dir][idle[i]]
			    && (p->hops[0][idle[i]] >= 0 || !p->blocked[idle[i]]))
				idle[kept++] = idle[i];
		n = kept;
	}
	for (int dir = OUT; dir < N_DIRECTIONS && n > 0; dir++) {
		measure(p, dir, gpu);
		for (int i = 0; i < n; i++)
			add_target(p, dir, idle[i]);
		mark_paths(p, dir);
	}
}

static Status
new_paths(Ctx *ctx, const Topology *topo, unsigned classes, const unsigned *of_node, struct paths *p)
{
	*p = (struct paths){ .topo = topo, .classes = classes, .of_node = of_node,
		.first = { topo->first_out, topo->first_in },
		.list = { topo->out, topo->in }, .n_vertices = topo->n_vertices };
	TRY(TEMP(ctx, p->queue, 2 * (size_t)topo->n_vertices));
	TRY(TEMP(ctx, p->on_path, topo->n_vertices));
	TRY(TEMP(ctx, p->blocked, topo->n_vertices));
	TRY(TEMP(ctx, p->in_job, topo->n_vertices));
	for (int dir = OUT; dir < N_DIRECTIONS; dir++) {
		TRY(TEMP(ctx, p->hops[dir], topo->n_vertices));
		TRY(TEMP(ctx, p->carries[dir], topo->n_links));
		TRY(TEMP(ctx, p->serves[dir], topo->n_vertices));
		TRY(TEMP(ctx, p->nearest[dir], topo->n_vertices));
		TRY(TEMP(ctx, p->copy[dir], topo->n_vertices));
		for (int v = 0; v < topo->n_vertices; v++)
			p->hops[dir][v] = p->nearest[dir][v] = p->copy[dir][v] = -1;
	}
	return OK;
}

/* The end of a link on a path, or of a NIC's link of the network, in place of v: a new copy, unless the job has v. */
static int
copy_of(struct paths *p, int dir, int v)
{
	if (v < p->topo->n_ranks || p->in_job[v])
		return v;
	if (p->copy[dir][v] < 0)
		p->copy[dir][v] = p->n_vertices++;
	return p->copy[dir][v];
}

/* Links of the job, and those on paths, between copies; false: the link is dropped, as that of a NIC that serves no
 * GPU. */
static bool
place_link(struct paths *p, int l, Link *link)
{
	*link = p->topo->link[l];
	for (int dir = OUT; dir < N_DIRECTIONS; dir++) {
		int nic = dir == OUT ? link->from : link->to;
		int *end = dir == OUT ? &link->from : &link->to;
		if (p->carries[dir][l]) {
			link->from = copy_of(p, dir, link->from);
			link->to = copy_of(p, dir, link->to);
			return true;
		}
		if (link->class == LINK_NET && p->topo->vertex[nic].kind == VERTEX_NIC) {
			if (!p->serves[dir][nic] && !p->in_job[nic])
				return false;
			*end = copy_of(p, dir, nic);
		}
	}
	return is_of_class(p, l);
}

static Status
copy_vertices(Ctx *ctx, const struct paths *p, Topology *out)
{
	static const char *const ending[N_DIRECTIONS] = { ":out", ":in" };
	const Topology *topo = p->topo;
	TRY(NEW(ctx, out->vertex, p->n_vertices));
	memcpy(out->vertex, topo->vertex, (size_t)topo->n_vertices * sizeof *out->vertex);
	out->n_vertices = p->n_vertices;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		for (int dir = OUT; dir < N_DIRECTIONS; dir++) {
			char id[LIMIT_ID_BYTES + 8];
			if (p->copy[dir][v] < 0)
				continue;
			Vertex *copy = &out->vertex[p->copy[dir][v]];
			*copy = topo->vertex[v];
			snprintf(id, sizeof id, "%s%s", copy->id, ending[dir]);
			if (!topo_id_valid(id))
				return fail(ctx, LIMIT,
				    "%s: %s: want an id of at most %d bytes on the path to the network", topo->name,
				    copy->id, LIMIT_ID_BYTES - (int)strlen(ending[dir]));
			copy->id = arena_text(&ctx->run, id, strlen(id));
			if (!copy->id)
				return fail_memory(ctx);
		}
	}
	return OK;
}

/* A machine may have an id that is that of a copy. */
static Status
check_ids(Ctx *ctx, const Topology *topo)
{
	const char **id;
	TRY(TEMP(ctx, id, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		id[v] = topo->vertex[v].id;
	sort_array(id, topo->n_vertices, sizeof *id, order_of_texts);
	for (int v = 1; v < topo->n_vertices; v++)
		if (strcmp(id[v - 1], id[v]) == 0)
			return fail(ctx, BAD_INPUT,
			    "%s: %s: is the name of a copy on the path to the network: want another id",
			    topo->name, id[v]);
	return OK;
}

static Status
build(Ctx *ctx, struct paths *p, Topology **out)
{
	Topology *made;
	TRY(NEW(ctx, made, 1));
	*made = *p->topo;
	TRY(NEW(ctx, made->link, p->topo->n_links));
	made->n_links = 0;
	for (int l = 0; l < p->topo->n_links; l++)
		made->n_links += place_link(p, l, &made->link[made->n_links]);
	TRY(copy_vertices(ctx, p, made));
	TRY(check_ids(ctx, made));
	TRY(topo_index(ctx, made));
	*out = made;
	return OK;
}

Status
topo_nic_paths(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned classes, const unsigned *of_node,
    JobLinks *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct paths p;
	Topology *made;
	bool *served, any = of_node != NULL;
	int *idle;
	*out = (JobLinks){ .classes = classes, .topo = topo };
	if (!(classes >> LINK_NET & 1))
		return OK;
	TRY(new_paths(ctx, topo, classes, of_node, &p));
	TRY(TEMP(ctx, served, topo->n_vertices));
	TRY(TEMP(ctx, idle, topo->n_vertices));
	for (int dir = OUT; dir < N_DIRECTIONS; dir++)
		mark_job(&p, dir, gpu, n);
	for (int i = 0; i < n; i++)
		for (int dir = OUT; dir < N_DIRECTIONS; dir++)
			use_nearest(&p, dir, gpu[i]);
	for (int v = 0; v < topo->n_vertices; v++)
		served[v] = p.serves[OUT][v] || p.serves[IN][v] || p.in_job[v];
	for (int i = 0; i < n; i++)
		use_idle(&p, gpu[i], served, idle);
	for (int l = 0; l < topo->n_links; l++)
		any = any || p.carries[OUT][l] || p.carries[IN][l];
	if (any) {
		TRY(build(ctx, &p, &made));
		out->topo = made;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
