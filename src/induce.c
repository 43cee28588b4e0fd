/* The topology of a job: a subset of the GPUs, in the order given, and the link classes it may use; which those are by default. */
#include "passes.h"

#include <string.h>

/* A CPU, switch or NIC is of use only if data can enter it from one vertex and leave to another. Dropping one may
 * leave a neighbour without use, so repeat until none goes. */
static bool
is_dead_end(const Topology *topo, const bool *keep, int v)
{
	int from = -1, to = -1;
	bool two_from = false, two_to = false;
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
		int l = topo->in[i], u = topo->link[l].from;
		if (!keep[topo->n_vertices + l] || !keep[u])
			continue;
		two_from = two_from || (from >= 0 && from != u);
		from = u;
	}
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		int l = topo->out[i], w = topo->link[l].to;
		if (!keep[topo->n_vertices + l] || !keep[w])
			continue;
		two_to = two_to || (to >= 0 && to != w);
		to = w;
	}
	return from < 0 || to < 0 || (from == to && !two_from && !two_to);
}

/* keep[v] for vertices, keep[n_vertices + l] for links. queue: switches to look at, each in it once at a time. */
static Status
mark_kept(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned classes, bool *keep)
{
	int n_switches = topo->n_vertices - topo->n_ranks, head = 0, waiting = 0, *queue;
	bool *queued;
	TRY(TEMP(ctx, queue, n_switches));
	TRY(TEMP(ctx, queued, topo->n_vertices));
	for (int i = 0; i < n; i++)
		keep[gpu[i]] = true;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		keep[v] = queued[v] = true;
		queue[waiting++] = v;
	}
	for (int l = 0; l < topo->n_links; l++)
		keep[topo->n_vertices + l] = classes >> topo->link[l].class & 1;
	while (waiting > 0) {
		int v = queue[head];
		head = (head + 1) % n_switches;
		waiting--;
		queued[v] = false;
		if (!is_dead_end(topo, keep, v))
			continue;
		keep[v] = false;
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1] + topo->first_out[v + 1] - topo->first_out[v]; i++) {
			int out = i - topo->first_in[v + 1];
			int w = out < 0 ? topo->link[topo->in[i]].from : topo->link[topo->out[topo->first_out[v] + out]].to;
			if (w < topo->n_ranks || !keep[w] || queued[w])
				continue;
			queued[w] = true;
			queue[(head + waiting++) % n_switches] = w;
		}
	}
	for (int l = 0; l < topo->n_links; l++)
		keep[topo->n_vertices + l] &= keep[topo->link[l].from] && keep[topo->link[l].to];
	return OK;
}

static Status
copy_vertices(Ctx *ctx, const Topology *topo, const int *gpu, int n, const bool *keep, int *new_of, Topology *job)
{
	int *node_of;
	int n_kept = n;
	TRY(TEMP(ctx, node_of, topo->n_nodes));
	memset(node_of, -1, (size_t)topo->n_nodes * sizeof *node_of);
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		n_kept += keep[v];
	TRY(NEW(ctx, job->vertex, n_kept));
	TRY(NEW(ctx, job->node, topo->n_nodes));
	for (int i = 0; i < n; i++)
		new_of[gpu[i]] = i;
	job->n_ranks = job->n_vertices = n;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if (keep[v])
			new_of[v] = job->n_vertices++;
	for (int v = 0; v < topo->n_vertices; v++)
		if (keep[v])
			job->vertex[new_of[v]] = topo->vertex[v];
	/* Nodes keep their order; those without a vertex go. */
	for (int v = 0; v < job->n_vertices; v++)
		if (job->vertex[v].node >= 0)
			node_of[job->vertex[v].node] = 0;
	for (int s = 0; s < topo->n_nodes; s++) {
		if (node_of[s] == 0) {
			node_of[s] = job->n_nodes;
			job->node[job->n_nodes++] = topo->node[s];
		}
	}
	for (int v = 0; v < job->n_vertices; v++)
		if (job->vertex[v].node >= 0)
			job->vertex[v].node = node_of[job->vertex[v].node];
	return OK;
}

static Status
copy_links(Ctx *ctx, const Topology *topo, const bool *keep, const int *new_of, Topology *job)
{
	int n = 0;
	for (int l = 0; l < topo->n_links; l++)
		n += keep[topo->n_vertices + l];
	TRY(NEW(ctx, job->link, n));
	for (int l = 0; l < topo->n_links; l++) {
		if (!keep[topo->n_vertices + l])
			continue;
		Link *link = &job->link[job->n_links++];
		*link = topo->link[l];
		link->from = new_of[link->from];
		link->to = new_of[link->to];
	}
	return OK;
}

/* What keeps a rank from others: perhaps its server has no way to any other server at all. */
static Status
fail_connected(Ctx *ctx, const Topology *job, const Topology *machine, const int *gpu, int from, int to)
{
	int ends[2] = { from, to };
	for (int i = 0; i < 2; i++) {
		int node = machine->vertex[gpu[ends[i]]].node;
		bool leads_out = machine->vertex[gpu[from]].node == machine->vertex[gpu[to]].node, nic = false;
		for (int l = 0; l < machine->n_links; l++)
			leads_out |= (machine->vertex[machine->link[l].from].node == node) != (machine->vertex[machine->link[l].to].node == node);
		for (int v = 0; v < machine->n_vertices; v++)
			nic |= machine->vertex[v].node == node && machine->vertex[v].kind == VERTEX_NIC;
		if (!leads_out && node >= 0)
			return fail(ctx, INFEASIBLE, "%s: no path from %s to %s: server %s has no %s: want GPUs that the links in use connect",
			    job->name, job->vertex[from].id, job->vertex[to].id, machine->node[node],
			    nic ? "link from a NIC to a network" : "NIC, and no other link to other servers");
	}
	return fail(ctx, INFEASIBLE, "%s: no path from %s to %s: want GPUs that the links in use connect", job->name,
	    job->vertex[from].id, job->vertex[to].id);
}

/* Every rank reaches every other if rank 0 does, along links and against them. */
static Status
check_connected(Ctx *ctx, const Topology *job, const Topology *machine, const int *gpu)
{
	int *queue;
	bool *seen;
	TRY(TEMP(ctx, queue, job->n_vertices));
	TRY(TEMP(ctx, seen, job->n_vertices));
	for (int against = 0; against < 2; against++) {
		const int *first = against ? job->first_in : job->first_out;
		const int *list = against ? job->in : job->out;
		int head = 0, tail = 0;
		memset(seen, 0, (size_t)job->n_vertices * sizeof *seen);
		queue[tail++] = 0;
		seen[0] = true;
		while (head < tail) {
			int v = queue[head++];
			for (int i = first[v]; i < first[v + 1]; i++) {
				int w = against ? job->link[list[i]].from : job->link[list[i]].to;
				if (!seen[w]) {
					seen[w] = true;
					queue[tail++] = w;
				}
			}
		}
		for (int r = 0; r < job->n_ranks; r++)
			if (!seen[r])
				return fail_connected(ctx, job, machine, gpu, against ? r : 0, against ? 0 : r);
	}
	return OK;
}

Status
topo_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo;
	Topology *job;
	bool *keep;
	int *new_of;
	TRY(topo_access(ctx, machine, gpu, n, classes, &topo));
	TRY(NEW(ctx, job, 1));
	TRY(TEMP(ctx, keep, (size_t)topo->n_vertices + (size_t)topo->n_links));
	TRY(TEMP(ctx, new_of, topo->n_vertices));
	job->name = topo->name;
	job->source = topo->source;
	job->digest = topo->digest;
	memcpy(job->class, topo->class, sizeof job->class);
	/* Of what leads to the network every link is in use, whatever its class. */
	TRY(mark_kept(ctx, topo, gpu, n, topo == machine ? classes : ~0u, keep));
	TRY(copy_vertices(ctx, topo, gpu, n, keep, new_of, job));
	TRY(copy_links(ctx, topo, keep, new_of, job));
	TRY(topo_index(ctx, job));
	TRY(check_connected(ctx, job, machine, gpu));
	arena_release(&ctx->scratch, mark);
	*out = job;
	return OK;
}

/* ---- choice of link classes ---- */

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

static int
root_of(int *parent, int v)
{
	while (parent[v] != v)
		v = parent[v] = parent[parent[v]];
	return v;
}

/* Do links of one class connect the chosen GPUs of each server, whatever their direction? split: of each server, that they do not.
 * part, first: work space. */
static bool
connects_servers(const Topology *topo, const bool *chosen, const int *gpu, int n, LinkClass class, bool *split, int *part, int *first)
{
	bool any = false;
	for (int v = 0; v < topo->n_vertices; v++)
		part[v] = v;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		bool other = (link->from < topo->n_ranks && !chosen[link->from]) || (link->to < topo->n_ranks && !chosen[link->to]);
		if (link->class == class && !other)
			part[root_of(part, link->from)] = root_of(part, link->to);
	}
	memset(first, -1, (size_t)topo->n_nodes * sizeof *first);
	memset(split, 0, (size_t)topo->n_nodes * sizeof *split);
	for (int i = 0; i < n; i++) {
		int *other = &first[topo->vertex[gpu[i]].node];
		if (*other >= 0 && root_of(part, *other) != root_of(part, gpu[i]))
			any = split[topo->vertex[gpu[i]].node] = true;
		*other = gpu[i];
	}
	return !any;
}

struct choice {
	const Topology *topo;
	const int *gpu;
	int n;
	bool *chosen, *split;	/* GPUs of the job; servers */
	int *part, *first;	/* work space */
};

/* With the way to the network, if net is one of `classes`. */
static Status
connects_all(Ctx *ctx, const struct choice *c, unsigned classes, bool *out)
{
	const Topology *reach;
	bool *seen;
	int *queue;
	TRY(topo_access(ctx, c->topo, c->gpu, c->n, classes, &reach));
	TRY(TEMP(ctx, seen, reach->n_vertices));
	TRY(TEMP(ctx, queue, reach->n_vertices));
	*out = connects(reach, c->chosen, c->gpu[0], c->n, reach == c->topo ? classes : ~0u, queue, seen);
	return OK;
}

/* Servers that are not alike: of each with several GPUs of the job the fastest class that connects them, and net. 0: one has none, or
 * all have one GPU. */
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

Status
topo_default_classes(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned *out)
{
	int64_t fastest[N_LINK_CLASSES] = { 0 };
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct choice c = { .topo = topo, .gpu = gpu, .n = n };
	unsigned best = 0, all = 0;
	bool connected;
	TRY(TEMP(ctx, c.chosen, topo->n_vertices));
	TRY(TEMP(ctx, c.split, topo->n_nodes));
	TRY(TEMP(ctx, c.part, topo->n_vertices));
	TRY(TEMP(ctx, c.first, topo->n_nodes));
	for (int i = 0; i < n; i++)
		c.chosen[gpu[i]] = true;
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].capacity > fastest[topo->link[l].class])
			fastest[topo->link[l].class] = topo->link[l].capacity;
	for (int k = 0; k < N_LINK_CLASSES; k++)
		all |= fastest[k] ? 1u << k : 0;
	/* The network joins what connects each server; by itself, or within a server, it would leave faster links unused. */
	for (int with_net = 0; with_net < 2 && !best; with_net++) {
		int64_t best_capacity = 0;
		for (int k = 0; k < N_LINK_CLASSES; k++) {
			unsigned classes = 1u << k | (with_net ? 1u << LINK_NET : 0);
			if (k == LINK_NET || fastest[k] <= best_capacity
			    || !connects_servers(topo, c.chosen, gpu, n, (LinkClass)k, c.split, c.part, c.first))
				continue;
			TRY(connects_all(ctx, &c, classes, &connected));
			if (connected) {
				best = classes;
				best_capacity = fastest[k];
			}
		}
	}
	if (!best) {
		TRY(classes_of_servers(ctx, &c, &best));
		if (best)
			TRY(connects_all(ctx, &c, best, &connected));
		best = best && connected ? best : 0;
	}
	arena_release(&ctx->scratch, mark);
	*out = best ? best : all;
	return OK;
}
