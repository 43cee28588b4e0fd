/* A ring's way through each server, in numbers that NCCL knows. An id of a GPU or NIC ends in its number in its server:
 * s1/gpu3 is 3, mlx5_0 is 0; where a port is divided, mlx5_0:out is one half. Each rank reads the file for its own
 * server, and all may be given the same, so that a ring has to take the same way through each:
 *
 *     ring      s0/gpu0 s0/gpu1 -> mlx5_1 ... mlx5_0 -> s1/gpu0 s1/gpu1 -> mlx5_1 ... mlx5_0 -> s0/gpu0
 *     channel   net 0, gpu 0, gpu 1, net 1 */
#include "format/nccl/graph.h"

#include <ctype.h>
#include <string.h>

/* What the ways are found with. */
struct ways {
	Ctx *ctx;
	const Topology *topo;
	NcclGraph *graph;
	int n_servers;
};

static Status
fail_ring(const struct ways *s, const char *what)
{
	return fail(s->ctx, INFEASIBLE, "nccl-graph: %.200s: %.200s", s->topo->name, what);
}

/* The number that an id ends in, without ":in" and ":out"; -1: none. */
static int
number_of(const char *id)
{
	size_t n = strcspn(id, ":");
	int number = 0, digits = 0;
	while (n > 0 && isdigit((unsigned char)id[n - 1]))
		n--;
	for (; isdigit((unsigned char)id[n]) && digits < 6; n++, digits++)
		number = 10 * number + id[n] - '0';
	return digits && !isdigit((unsigned char)id[n]) ? number : -1;
}

static Status
vertex_number(const struct ways *s, int v, int *out)
{
	*out = number_of(s->topo->vertex[v].id);
	return *out >= 0 ? OK : fail(s->ctx, INFEASIBLE,
	    "nccl-graph: %.80s: no number at its end: want that of the GPU or NIC in its server, as gpu0",
	    s->topo->vertex[v].id);
}

static bool
has_opposite(const Topology *topo, const Link *link)
{
	for (int i = topo->first_out[link->to]; i < topo->first_out[link->to + 1]; i++) {
		const Link *other = &topo->link[topo->out[i]];
		if (other->to == link->from && other->class == link->class && other->capacity >= link->capacity)
			return true;
	}
	return false;
}

/* What links with numbers from `from` to `to` - 1 of a hop lead over. One switch of PCIe joins two links of it. */
static Status
see_path(const struct ways *s, const Edge *hop, int from, int to, NcclPath *worst)
{
	NcclPath path = NCCL_NVL;
	int pcie = 0;
	for (int i = from; i < to; i++) {
		LinkClass class = s->topo->link[hop->link[i]].class;
		if (class == LINK_XGMI)
			return fail_ring(s, "links of xGMI: want those that NCCL has: NVLink, PCIe, network");
		if (class == LINK_NET)
			return fail_ring(s, "a hop over the network within a server: want rings that keep inside");
		pcie += class == LINK_PCIE;
		s->graph->both_ways &= has_opposite(s->topo, &s->topo->link[hop->link[i]]);
		if (class == LINK_QPI)
			path = NCCL_SYS;
		else if (path < NCCL_PHB && (class == LINK_C2C || pcie > 2))
			path = NCCL_PHB;
		else if (path < NCCL_PIX && class == LINK_PCIE)
			path = NCCL_PIX;
	}
	if (path > *worst)
		*worst = path;
	return OK;
}

/* A hop to another server: the NICs at both ends. */
static Status
see_nics(const struct ways *s, const Edge *hop, int *out, int *in)
{
	const Link *link = s->topo->link;
	int first = 0, last = hop->n_links;
	while (first < last && link[hop->link[first]].class != LINK_NET)
		first++;
	while (last > first && link[hop->link[last - 1]].class != LINK_NET)
		last--;
	if (first == 0 || first == last || last == hop->n_links)
		return fail_ring(s, "no NIC between a GPU and another server: want a topology with NICs");
	TRY(see_path(s, hop, 0, first, &s->graph->inter));
	TRY(see_path(s, hop, last, hop->n_links, &s->graph->inter));
	TRY(vertex_number(s, link[hop->link[first]].from, out));
	return vertex_number(s, link[hop->link[last - 1]].to, in);
}

static bool
same_way(const struct nccl_way *a, const struct nccl_way *b, int n)
{
	return a->in == b->in && a->out == b->out && memcmp(a->gpu, b->gpu, (size_t)n * sizeof *a->gpu) == 0;
}

static Status
fail_unequal(const struct ways *s)
{
	return fail_ring(s, "servers with fewer GPUs than others, or rings that enter one twice: want rings that go "
	    "once through each of equal servers");
}

/* Through the server of rank *at, which is the first of it; afterwards that of the next server. */
static Status
find_way(const struct ways *s, const struct nccl_ring *ring, int *at, struct nccl_way *way)
{
	int node = s->topo->vertex[*at].node;
	for (int i = 0; i < s->graph->n_gpus; i++) {
		const Edge *hop = ring->hop[*at];
		if (s->topo->vertex[*at].node != node)
			return fail_unequal(s);
		TRY(vertex_number(s, *at, &way->gpu[i]));
		for (int j = 0; j < i; j++)
			if (way->gpu[j] == way->gpu[i])
				return fail_ring(s, "two GPUs of a server with one number: want each once");
		*at = hop->dst;
		if (s->topo->vertex[*at].node == node)
			TRY(see_path(s, hop, 0, hop->n_links, &s->graph->intra));
		else
			TRY(see_nics(s, hop, &way->out, &way->in));
	}
	return s->n_servers > 1 && s->topo->vertex[*at].node == node ? fail_unequal(s) : OK;
}

/* Where a ring enters the server of rank 0; rank 0 where there is one server. */
static int
entry(const struct ways *s, const struct nccl_ring *ring)
{
	const Vertex *vertex = s->topo->vertex;
	for (int r = 0, at = 0; r < s->topo->n_ranks; r++, at = ring->hop[at]->dst)
		if (vertex[at].node != vertex[0].node && vertex[ring->hop[at]->dst].node == vertex[0].node)
			return ring->hop[at]->dst;
	return 0;
}

/* NICs of a way as find_way has them are those of the hop out of a server; `in` belongs to the next, which is the same
 * where all ways are. */
static Status
find_ways(const struct ways *s, const struct nccl_ring *ring, struct nccl_way *out)
{
	int at = entry(s, ring), n = s->graph->n_gpus;
	struct nccl_way way = { .in = -1, .out = -1 };
	out->in = out->out = -1;
	TRY(NEW(s->ctx, out->gpu, n));
	TRY(TEMP(s->ctx, way.gpu, n));
	TRY(find_way(s, ring, &at, out));
	for (int i = 1; i < s->n_servers; i++) {
		TRY(find_way(s, ring, &at, &way));
		if (!same_way(&way, out, n))
			return fail_ring(s, "a ring's way through one server is another than through the next: want "
			    "one for all, since they read one file");
	}
	return OK;
}

/* Servers that ranks are in. */
static int
count_servers(const Topology *topo)
{
	int n = 0;
	for (int r = 0; r < topo->n_ranks; r++) {
		bool seen = false;
		for (int q = 0; q < r && !seen; q++)
			seen = topo->vertex[q].node == topo->vertex[r].node;
		n += !seen;
	}
	return n;
}

Status
nccl_graph_ways(Ctx *ctx, const Schedule *sched, NcclGraph *out)
{
	const struct ways s = { ctx, sched->topo, out, count_servers(sched->topo) };
	out->n_gpus = sched->topo->n_ranks / s.n_servers;
	out->inter = NCCL_PIX;
	out->both_ways = s.n_servers == 1;
	TRY(NEW(ctx, out->way, out->n_rings));
	for (int i = 0; i < out->n_rings; i++)
		TRY(find_ways(&s, &out->ring[i], &out->way[i]));
	return OK;
}
