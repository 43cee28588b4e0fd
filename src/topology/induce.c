/* The topology of a job: a subset of the GPUs, in the order given, and the links it may use. */
#include "topology/topology.h"

#include <string.h>

/* A CPU, switch or NIC is of use only if data can enter it from one vertex and leave to another. Dropping one may make
 * a neighbour useless, so repeat until none is dropped. */
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

/* Each CPU that has a GPU of the job in its server and a link in and out, as it is no dead end for data that it sends
 * back. */
static Status
mark_hosts(Ctx *ctx, const Topology *topo, const int *gpu, int n, const bool *keep, bool *host)
{
	bool *has_gpu;
	TRY(TEMP(ctx, has_gpu, topo->n_nodes));
	for (int i = 0; i < n; i++)
		if (topo->vertex[gpu[i]].node >= 0)
			has_gpu[topo->vertex[gpu[i]].node] = true;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		const Vertex *vertex = &topo->vertex[v];
		bool in = false, out = false;
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++)
			in |= keep[topo->n_vertices + topo->in[i]];
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
			out |= keep[topo->n_vertices + topo->out[i]];
		host[v] = vertex->kind == VERTEX_CPU && vertex->node >= 0 && has_gpu[vertex->node] && in && out;
	}
	return OK;
}

/* keep[v] for vertices, keep[n_vertices + l] for links. queue: switches to look at, each in it once at a time. */
static Status
mark_kept(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned classes, bool hosts, bool *keep)
{
	int n_switches = topo->n_vertices - topo->n_ranks, head = 0, waiting = 0, *queue;
	bool *queued, *host;
	TRY(TEMP(ctx, queue, n_switches));
	TRY(TEMP(ctx, queued, topo->n_vertices));
	TRY(TEMP(ctx, host, topo->n_vertices));
	for (int i = 0; i < n; i++)
		keep[gpu[i]] = true;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		keep[v] = queued[v] = true;
		queue[waiting++] = v;
	}
	for (int l = 0; l < topo->n_links; l++)
		keep[topo->n_vertices + l] = classes >> topo->link[l].class & 1;
	if (hosts)
		TRY(mark_hosts(ctx, topo, gpu, n, keep, host));
	while (waiting > 0) {
		int v = queue[head];
		head = (head + 1) % n_switches;
		waiting--;
		queued[v] = false;
		if (host[v] || !is_dead_end(topo, keep, v))
			continue;
		keep[v] = false;
		int n_out = topo->first_out[v + 1] - topo->first_out[v];
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1] + n_out; i++) {
			int out = i - topo->first_in[v + 1];
			int w = out < 0 ? topo->link[topo->in[i]].from
			    : topo->link[topo->out[topo->first_out[v] + out]].to;
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
copy_vertices(Ctx *ctx, const Topology *topo, const int *gpu, int n, const bool *keep, Topology *job)
{
	int *node_of, *new_of, n_kept = n;
	TRY(TEMP(ctx, node_of, topo->n_nodes));
	TRY(TEMP(ctx, new_of, topo->n_vertices));
	TRY(NEW(ctx, job->node, topo->n_nodes));
	memset(new_of, -1, (size_t)topo->n_vertices * sizeof *new_of);
	for (int i = 0; i < n; i++)
		new_of[gpu[i]] = i;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if (keep[v])
			new_of[v] = n_kept++;
	job->vertex = topo->vertex;
	job->n_vertices = topo->n_vertices;
	job->n_ranks = n;
	TRY(topo_renumber(ctx, new_of, n_kept, job));
	/* Nodes keep their order; those without a vertex are dropped. */
	memset(node_of, -1, (size_t)topo->n_nodes * sizeof *node_of);
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
keep_links(Ctx *ctx, const Topology *topo, const bool *keep, Topology *job)
{
	TRY(TEMP(ctx, job->link, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		if (keep[topo->n_vertices + l])
			job->link[job->n_links++] = topo->link[l];
	return OK;
}

/* Why there is no path: perhaps a server has no link to any other server at all. */
static Status
fail_connected(Ctx *ctx, const Topology *job, const Topology *machine, const int *gpu, int from, int to)
{
	int ends[2] = { from, to };
	for (int i = 0; i < 2; i++) {
		int node = machine->vertex[gpu[ends[i]]].node;
		bool leads_out = machine->vertex[gpu[from]].node == machine->vertex[gpu[to]].node, nic = false;
		for (int l = 0; l < machine->n_links; l++) {
			const Link *link = &machine->link[l];
			bool from_inside = machine->vertex[link->from].node == node;
			leads_out |= from_inside != (machine->vertex[link->to].node == node);
		}
		for (int v = 0; v < machine->n_vertices; v++)
			nic |= machine->vertex[v].node == node && machine->vertex[v].kind == VERTEX_NIC;
		if (!leads_out && node >= 0)
			return fail(ctx, INFEASIBLE,
			    "%s: no path from %s to %s: server %s has no %s: want GPUs that the links in use connect",
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
topo_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const JobLinks *links, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = links->topo;
	Topology *job;
	bool *keep;
	TRY(NEW(ctx, job, 1));
	TRY(TEMP(ctx, keep, (size_t)topo->n_vertices + (size_t)topo->n_links));
	job->name = topo->name;
	job->source = topo->source;
	job->digest = topo->digest;
	memcpy(job->class, topo->class, sizeof job->class);
	/* topo_nic_paths leaves only links in use, whatever their class. */
	TRY(mark_kept(ctx, topo, gpu, n, topo == machine ? links->classes : ~0u, links->hosts, keep));
	TRY(keep_links(ctx, topo, keep, job));
	TRY(copy_vertices(ctx, topo, gpu, n, keep, job));
	TRY(check_connected(ctx, job, machine, gpu));
	arena_release(&ctx->scratch, mark);
	*out = job;
	return OK;
}
