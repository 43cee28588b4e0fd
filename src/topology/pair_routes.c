/* The topology of a job whose hops keep to the one route of each pair of GPUs.
 *
 * Between servers a route leads over the network. How it gets to the NICs is for each server to say: where NVLink or
 * xGMI joins all GPUs of the job in a server, PCIe leads to its NICs only (nic_paths.c); where some pair has PCIe
 * alone, PCIe joins GPUs as well.
 *
 * Links that are on no route of their pairs are dropped, so that no schedule seems to leave capacity unused that it
 * must not use: of two GPUs that NVLink joins, on a PCIe switch of their own, the links to that switch. */
#include "topology/topology.h"

#include <string.h>

enum { FAST = 1u << LINK_NVLINK | 1u << LINK_XGMI, WORD = 64 };

/* ---- classes of each server ---- */

/* The topology of the machine that has these GPUs as ranks, for their routes: other GPUs and classes are dropped. */
static Status
only_classes(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Topology **out)
{
	Topology *some;
	int *new_of;
	TRY(NEW(ctx, some, 1));
	TRY(TEMP(ctx, new_of, machine->n_vertices));
	TRY(TEMP(ctx, some->link, machine->n_links));
	*some = (Topology){ .name = machine->name, .link = some->link, .n_ranks = n, .vertex = machine->vertex,
		.n_vertices = machine->n_vertices };
	for (int v = 0; v < machine->n_vertices; v++)
		new_of[v] = v < machine->n_ranks ? -1 : v - machine->n_ranks + n;
	for (int i = 0; i < n; i++)
		new_of[gpu[i]] = i;
	for (int l = 0; l < machine->n_links; l++)
		if (classes >> machine->link[l].class & 1)
			some->link[some->n_links++] = machine->link[l];
	*out = some;
	return topo_renumber(ctx, new_of, n + machine->n_vertices - machine->n_ranks, some);
}

/* Where PCIe and the like join GPUs of a server, all classes; else those that are fast. */
static Status
classes_of_servers(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, unsigned *of_node)
{
	ArenaMark run = arena_mark(&ctx->run);
	Topology *some;
	unsigned char *kind;
	TRY(only_classes(ctx, machine, gpu, n, classes, &some));
	TRY(topo_check_pairs(ctx, some));
	TRY(TEMP(ctx, kind, (size_t)n * (size_t)n));
	TRY(topo_pair_routes(ctx, some, kind));
	for (int s = 0; s < machine->n_nodes; s++)
		of_node[s] = classes & FAST;
	for (size_t i = 0; i < (size_t)n * (size_t)n; i++) {
		int a = machine->vertex[gpu[i / (size_t)n]].node, b = machine->vertex[gpu[i % (size_t)n]].node;
		if (kind[i] != ROUTE_LOCAL)
			continue;
		if (a >= 0)
			of_node[a] = classes;
		if (b >= 0)
			of_node[b] = classes;
	}
	arena_release(&ctx->run, run);
	return OK;
}

/* ---- links on routes ---- */

struct usable {
	const Topology *topo;
	const unsigned char *kind;
	size_t n_words;
	uint64_t *reaches;	/* of each vertex: ranks that routes of the current kind lead to from it, a bit set */
	uint64_t *wanted;	/* ranks to which the current rank has such a route */
	int *queue, *seen, search;
	bool *link;		/* that is on some route */
};

static bool
is_set(const uint64_t *set, int r)
{
	return set[r / WORD] >> r % WORD & 1;
}

static void
add(uint64_t *set, int r)
{
	set[r / WORD] |= UINT64_C(1) << r % WORD;
}

static uint64_t *
reached_from(const struct usable *u, int v)
{
	return u->reaches + (size_t)v * u->n_words;
}

/* Vertices from which links of these classes lead to a rank, through no other rank. */
static void
find_sources(struct usable *u, int rank, unsigned classes)
{
	const Topology *topo = u->topo;
	int head = 0, tail = 0;
	u->queue[tail++] = rank;
	add(reached_from(u, rank), rank);
	while (head < tail) {
		int v = u->queue[head++];
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
			const Link *link = &topo->link[topo->in[i]];
			if (!(classes >> link->class & 1) || link->from < topo->n_ranks
			    || is_set(reached_from(u, link->from), rank))
				continue;
			add(reached_from(u, link->from), rank);
			u->queue[tail++] = link->from;
		}
	}
}

static bool
leads_on(const struct usable *u, int v)
{
	const uint64_t *reached = reached_from(u, v);
	for (size_t i = 0; i < u->n_words; i++)
		if (reached[i] & u->wanted[i])
			return true;
	return false;
}

/* Links on routes of this kind from a rank. */
static void
mark_routes(struct usable *u, int rank, RouteKind kind)
{
	const Topology *topo = u->topo;
	const unsigned char *row = u->kind + (size_t)rank * (size_t)topo->n_ranks;
	unsigned classes = route_classes(kind);
	int head = 0, tail = 0;
	memset(u->wanted, 0, u->n_words * sizeof *u->wanted);
	for (int r = 0; r < topo->n_ranks; r++)
		if (row[r] == kind && r != rank)
			add(u->wanted, r);
	u->queue[tail++] = rank;
	u->seen[rank] = ++u->search;
	while (head < tail) {
		int v = u->queue[head++];
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], w = topo->link[l].to;
			if (!(classes >> topo->link[l].class & 1))
				continue;
			u->link[l] = u->link[l] || leads_on(u, w);
			if (w < topo->n_ranks || u->seen[w] == u->search)
				continue;
			u->seen[w] = u->search;
			u->queue[tail++] = w;
		}
	}
}

/* u->link: of each link, whether it is on a route. */
static Status
find_usable(Ctx *ctx, const Topology *topo, const unsigned char *kind, struct usable *u)
{
	size_t n = (size_t)topo->n_ranks;
	*u = (struct usable){ .topo = topo, .kind = kind, .n_words = (n + WORD - 1) / WORD };
	TRY(TEMP(ctx, u->reaches, (size_t)topo->n_vertices * u->n_words));
	TRY(TEMP(ctx, u->wanted, u->n_words));
	TRY(TEMP(ctx, u->queue, topo->n_vertices));
	TRY(TEMP(ctx, u->seen, topo->n_vertices));
	TRY(TEMP(ctx, u->link, topo->n_links));
	for (int k = ROUTE_NONE + 1; k < N_ROUTE_KINDS; k++) {
		if (!memchr(kind, k, n * n))
			continue;
		memset(u->reaches, 0, (size_t)topo->n_vertices * u->n_words * sizeof *u->reaches);
		for (int r = 0; r < topo->n_ranks; r++)
			find_sources(u, r, route_classes((RouteKind)k));
		for (int r = 0; r < topo->n_ranks; r++)
			mark_routes(u, r, (RouteKind)k);
	}
	return OK;
}

/* The job with the links that are on routes, and with the routes that it has then, which are those from before. */
static Status
drop_others(Ctx *ctx, const Topology *job, const unsigned char *kind, Topology **out)
{
	size_t n = (size_t)job->n_ranks;
	Topology some = *job, *left;
	struct usable u;
	unsigned char *route;
	int *rank;
	TRY(find_usable(ctx, job, kind, &u));
	TRY(NEW(ctx, some.link, job->n_links));
	TRY(TEMP(ctx, rank, n));
	some.n_links = 0;
	for (int l = 0; l < job->n_links; l++)
		if (u.link[l])
			some.link[some.n_links++] = job->link[l];
	for (int r = 0; r < job->n_ranks; r++)
		rank[r] = r;
	TRY(topo_index(ctx, &some));
	TRY(topo_induce(ctx, &some, rank, job->n_ranks, &(JobLinks){ .classes = ~0u, .topo = &some }, &left));
	TRY(NEW(ctx, route, n * n));
	TRY(topo_pair_routes(ctx, left, route));
	left->route = route;
	*out = left;
	return OK;
}

Status
topo_induce_pairs(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	JobLinks links;
	Topology *job;
	unsigned char *kind;
	unsigned *of_node;
	TRY(TEMP(ctx, of_node, machine->n_nodes));
	TRY(classes_of_servers(ctx, machine, gpu, n, classes, of_node));
	TRY(topo_nic_paths(ctx, machine, gpu, n, classes, of_node, &links));
	TRY(topo_induce(ctx, machine, gpu, n, &links, &job));
	TRY(topo_check_pairs(ctx, job));
	TRY(TEMP(ctx, kind, (size_t)n * (size_t)n));
	TRY(topo_pair_routes(ctx, job, kind));
	TRY(drop_others(ctx, job, kind, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
