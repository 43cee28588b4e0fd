/* Link classes that a job uses where none are named. */
#include "topology/topology.h"
#include "base/disjoint.h"

#include <string.h>

/* Do the links of `classes` lead from every chosen GPU to every other, through any CPU, switch or NIC but through no
 * GPU that was not chosen? Vertices reached from the first one along links, and against them. */
static bool
connects(const Topology *topo, const bool *chosen, int start, int n, unsigned classes, int *queue, bool *seen)
{
	for (int against = 0; against < 2; against++) {
		int head = 0, tail = 0, ranks = 0;
		memset(seen, 0, (size_t)topo->n_vertices * sizeof *seen);
		queue[tail++] = start;
		seen[start] = true;
		while (head < tail) {
			int v = queue[head++];
			const int *first = against ? topo->first_in : topo->first_out;
			const int *list = against ? topo->in : topo->out;
			ranks += v < topo->n_ranks;
			for (int i = first[v]; i < first[v + 1]; i++) {
				const Link *link = &topo->link[list[i]];
				int w = against ? link->from : link->to;
				if (!(classes >> link->class & 1) || seen[w] || (w < topo->n_ranks && !chosen[w]))
					continue;
				seen[w] = true;
				queue[tail++] = w;
			}
		}
		if (ranks < n)
			return false;
	}
	return true;
}

/* Do links of one class connect the chosen GPUs of each server, whatever their direction? split: the servers where they
 * do not. part, first: work space. */
static bool
connects_servers(const Topology *topo, const bool *chosen, const int *gpu, int n, LinkClass class, bool *split,
    int *part, int *first)
{
	bool any = false;
	for (int v = 0; v < topo->n_vertices; v++)
		part[v] = v;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		bool other = (link->from < topo->n_ranks && !chosen[link->from])
		    || (link->to < topo->n_ranks && !chosen[link->to]);
		if (link->class == class && !other)
			set_join(part, link->from, link->to);
	}
	memset(first, -1, (size_t)topo->n_nodes * sizeof *first);
	memset(split, 0, (size_t)topo->n_nodes * sizeof *split);
	for (int i = 0; i < n; i++) {
		int *other = &first[topo->vertex[gpu[i]].node];
		if (*other >= 0 && set_root(part, *other) != set_root(part, gpu[i]))
			any = split[topo->vertex[gpu[i]].node] = true;
		*other = gpu[i];
	}
	return !any;
}

/* Capacity of the links of a class out of a GPU. */
static int64_t
capacity_out(const Topology *topo, int gpu, LinkClass class)
{
	int64_t sum = 0;
	for (int i = topo->first_out[gpu]; i < topo->first_out[gpu + 1]; i++)
		sum += topo->link[topo->out[i]].class == class ? topo->link[topo->out[i]].capacity : 0;
	return sum;
}

FastestLinks
topo_fastest_links(const Topology *topo)
{
	FastestLinks fastest = { LINK_NVLINK, 0 };
	int64_t most = 0;
	for (int k = 0; k < N_LINK_CLASSES; k++) {
		int64_t all = 0, least = INT64_MAX;
		for (int r = 0; r < topo->n_ranks && k != LINK_NET; r++) {
			int64_t one = capacity_out(topo, r, (LinkClass)k);
			all += one;
			least = one < least ? one : least;
		}
		if (all > most) {
			most = all;
			fastest = (FastestLinks){ (LinkClass)k, least };
		}
	}
	return fastest;
}

struct choice {
	const Topology *topo;
	const int *gpu;
	int n;
	bool *chosen, *split;	/* GPUs of the job; servers */
	int *part, *first;	/* work space */
	int64_t fastest[N_LINK_CLASSES];	/* capacity of the fastest link of each class; 0: none */
};

/* Do links of these classes connect all GPUs, with what leads to the network if net is one of them? */
static Status
connects_all(Ctx *ctx, const struct choice *c, unsigned classes, JobLinks *links, bool *out)
{
	bool *seen;
	int *queue;
	TRY(topo_nic_paths(ctx, c->topo, c->gpu, c->n, classes, NULL, links));
	TRY(TEMP(ctx, seen, links->topo->n_vertices));
	TRY(TEMP(ctx, queue, links->topo->n_vertices));
	*out = connects(links->topo, c->chosen, c->gpu[0], c->n, links->topo == c->topo ? classes : ~0u, queue, seen);
	return OK;
}

/* Where servers differ: of each server with several GPUs of the job the fastest class that connects them, and net.
 * *out: 0 where a server has none, or all have one GPU. */
static Status
classes_of_servers(Ctx *ctx, const struct choice *c, unsigned *out)
{
	const Topology *topo = c->topo;
	int64_t *fastest, *best;
	int *n_gpus, *class;
	TRY(TEMP(ctx, fastest, (size_t)topo->n_nodes * N_LINK_CLASSES));
	TRY(TEMP(ctx, best, topo->n_nodes));
	TRY(TEMP(ctx, n_gpus, topo->n_nodes));
	TRY(TEMP(ctx, class, topo->n_nodes));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int node = topo->vertex[link->from].node;
		if (node >= 0 && link->capacity > fastest[node * N_LINK_CLASSES + (int)link->class])
			fastest[node * N_LINK_CLASSES + (int)link->class] = link->capacity;
	}
	for (int k = 0; k < N_LINK_CLASSES; k++) {
		if (k == LINK_NET)
			continue;
		connects_servers(topo, c->chosen, c->gpu, c->n, (LinkClass)k, c->split, c->part, c->first);
		for (int s = 0; s < topo->n_nodes; s++) {
			if (c->split[s] || fastest[s * N_LINK_CLASSES + k] <= best[s])
				continue;
			best[s] = fastest[s * N_LINK_CLASSES + k];
			class[s] = k;
		}
	}
	for (int i = 0; i < c->n; i++)
		n_gpus[topo->vertex[c->gpu[i]].node]++;
	*out = 1u << LINK_NET;
	for (int s = 0; s < topo->n_nodes && *out; s++)
		if (n_gpus[s] > 1)
			*out = best[s] ? *out | 1u << class[s] : 0;
	*out = *out == 1u << LINK_NET ? 0 : *out;
	return OK;
}

static Status
new_choice(Ctx *ctx, const Topology *topo, const int *gpu, int n, struct choice *c)
{
	*c = (struct choice){ .topo = topo, .gpu = gpu, .n = n };
	TRY(TEMP(ctx, c->chosen, topo->n_vertices));
	TRY(TEMP(ctx, c->split, topo->n_nodes));
	TRY(TEMP(ctx, c->part, topo->n_vertices));
	TRY(TEMP(ctx, c->first, topo->n_nodes));
	for (int i = 0; i < n; i++)
		c->chosen[gpu[i]] = true;
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].capacity > c->fastest[topo->link[l].class])
			c->fastest[topo->link[l].class] = topo->link[l].capacity;
	return OK;
}

/* The fastest class that connects the GPUs of each server, and all of them, alone or with `beside`. *best: no classes
 * where none does. */
static Status
fastest_class(Ctx *ctx, const struct choice *c, unsigned beside, JobLinks *best)
{
	int64_t best_capacity = 0;
	JobLinks links;
	bool connected;
	*best = (JobLinks){ 0 };
	for (int k = 0; k < N_LINK_CLASSES; k++) {
		if (k == LINK_NET || c->fastest[k] <= best_capacity
		    || !connects_servers(c->topo, c->chosen, c->gpu, c->n, (LinkClass)k, c->split, c->part, c->first))
			continue;
		TRY(connects_all(ctx, c, 1u << k | beside, &links, &connected));
		if (connected) {
			*best = links;
			best_capacity = c->fastest[k];
		}
	}
	return OK;
}

/* Does a class join two GPUs of the job, by a link or through CPUs and switches? queue, seen: work space; seen[v]: the
 * last GPU, and 1 more, from which v was seen. */
static bool
joins_pair(const struct choice *c, LinkClass class, int *queue, int *seen)
{
	const Topology *topo = c->topo;
	for (int i = 0; i < c->n && c->fastest[class]; i++) {
		int head = 0, tail = 0;
		queue[tail++] = c->gpu[i];
		while (head < tail) {
			int v = queue[head++];
			for (int k = topo->first_out[v]; k < topo->first_out[v + 1]; k++) {
				int l = topo->out[k], w = topo->link[l].to;
				if (topo->link[l].class != class || seen[w] == i + 1)
					continue;
				if (w < topo->n_ranks && c->chosen[w] && w != c->gpu[i])
					return true;
				seen[w] = i + 1;
				if (w >= topo->n_ranks)
					queue[tail++] = w;
			}
		}
	}
	return false;
}

/* Is NVLink or xGMI faster than the others of these classes, and joins some of the GPUs? Not where there are no others
 * but the network: then it connects those of each server. */
static Status
wants_pairs(Ctx *ctx, const struct choice *c, unsigned classes, bool *out)
{
	static const LinkClass fast[] = { LINK_NVLINK, LINK_XGMI };
	unsigned slow = classes & ~(1u << LINK_NVLINK | 1u << LINK_XGMI | 1u << LINK_NET);
	int *queue, *seen;
	int64_t known = 0;
	TRY(TEMP(ctx, queue, c->topo->n_vertices));
	TRY(TEMP(ctx, seen, c->topo->n_vertices));
	for (int k = 0; k < N_LINK_CLASSES; k++)
		if (slow >> k & 1 && c->fastest[k] > known)
			known = c->fastest[k];
	*out = false;
	for (int i = 0; i < 2 && !*out && (slow || !classes); i++) {
		memset(seen, 0, (size_t)c->topo->n_vertices * sizeof *seen);
		*out = c->fastest[fast[i]] > known && joins_pair(c, fast[i], queue, seen);
	}
	return OK;
}

/* Of each server its own class, and net, where these connect all. */
static Status
choose_servers(Ctx *ctx, const struct choice *c, JobLinks *out)
{
	unsigned classes;
	bool connected = false;
	TRY(classes_of_servers(ctx, c, &classes));
	if (classes)
		TRY(connects_all(ctx, c, classes, out, &connected));
	if (!connected)
		*out = (JobLinks){ 0 };
	return OK;
}

static Status
choose_links(Ctx *ctx, const struct choice *c, Routes routes, JobLinks *out)
{
	unsigned all = 0;
	bool pairs = routes == ROUTES_PAIR;
	TRY(fastest_class(ctx, c, 0, out));
	/* The network joins what connects each server; by itself, or within a server, it would leave faster links
	 * unused. */
	if (!out->classes)
		TRY(fastest_class(ctx, c, 1u << LINK_NET, out));
	if (!out->classes)
		TRY(choose_servers(ctx, c, out));
	for (int k = 0; k < N_LINK_CLASSES; k++)
		all |= c->fastest[k] ? 1u << k : 0;
	if (routes == ROUTES_CHOSEN)
		TRY(wants_pairs(ctx, c, out->classes, &pairs));
	if (pairs)
		*out = (JobLinks){ .classes = all, .pairs = true };
	return out->classes ? OK : topo_nic_paths(ctx, c->topo, c->gpu, c->n, all, NULL, out);
}

Status
topo_choose_links(Ctx *ctx, const Topology *topo, const int *gpu, int n, Routes routes, JobLinks *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct choice c;
	TRY(new_choice(ctx, topo, gpu, n, &c));
	TRY(choose_links(ctx, &c, routes, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
