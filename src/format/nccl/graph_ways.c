/* A ring's way through each server, in numbers that NCCL knows. An id of a GPU or NIC ends in its number in its server:
 * s1/gpu3 is 3, mlx5_0 is 0; where a port is divided, mlx5_0:out is one half. Each rank reads the file for its own
 * server. All may read the same, if each ring takes the same way through each:
 *
 *     ring      s0/gpu0 s0/gpu1 -> mlx5_1 ... mlx5_0 -> s1/gpu0 s1/gpu1 -> mlx5_1 ... mlx5_0 -> s0/gpu0
 *     channel   net 0, gpu 0, gpu 1, net 1
 *
 * Otherwise each has a file of its own. NCCL then joins the first channels of all servers, the second and so on, from
 * each server to the next by ranks, so that rings have to go through them in that order. */
#include "format/nccl/graph.h"

#include <ctype.h>
#include <string.h>

/* What the ways are found with. */
struct ways {
	Ctx *ctx;
	const Topology *topo;
	NcclGraph *graph;
	int n_servers, server;	/* the one that is asked for; -1: all */
	int *node, *count;	/* of each server: its number in the topology, and its ranks */
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

/* The number of a rank's server. */
static int
server_of(const struct ways *s, int rank)
{
	int k = 0;
	while (s->node[k] != s->topo->vertex[rank].node)
		k++;
	return k;
}

static bool
is_last_of_way(const struct ways *s, int rank, const Edge *hop)
{
	return s->n_servers > 1 && s->topo->vertex[hop->dst].node != s->topo->vertex[rank].node;
}

/* Through the server of rank *at, where the ring enters it; *at: where it enters the next one, by the NIC *in. */
static Status
find_way(const struct ways *s, const struct nccl_ring *ring, int *at, struct nccl_way *way, int *in)
{
	int n = s->count[server_of(s, *at)];
	for (int i = 0; i < n; i++) {
		const Edge *hop = ring->hop[*at];
		bool last = is_last_of_way(s, *at, hop);
		if (s->n_servers > 1 && last != (i == n - 1))
			return fail_ring(s, "rings that enter a server twice: want rings that go once through each");
		TRY(vertex_number(s, *at, &way->gpu[i]));
		for (int j = 0; j < i; j++)
			if (way->gpu[j] == way->gpu[i])
				return fail_ring(s, "two GPUs of a server with one number: want each once");
		*at = hop->dst;
		if (last)
			TRY(see_nics(s, hop, &way->out, in));
		else
			TRY(see_path(s, hop, 0, hop->n_links, &s->graph->intra));
	}
	return OK;
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

/* Of all servers. in_order: the ring goes through them in the order of their first ranks. */
static Status
find_ways(const struct ways *s, const struct nccl_ring *ring, struct nccl_way *way, bool *in_order)
{
	int at = entry(s, ring), in = -1, *gpu;
	TRY(NEW(s->ctx, gpu, s->topo->n_ranks));
	for (int k = 0; k < s->n_servers; gpu += s->count[k++])
		way[k] = (struct nccl_way){ .gpu = gpu, .in = -1, .out = -1 };
	*in_order = true;
	for (int k = 0; k < s->n_servers; k++) {
		int now = server_of(s, at);
		*in_order &= now == k;
		TRY(find_way(s, ring, &at, &way[now], &in));
		way[server_of(s, at)].in = in;
	}
	return OK;
}

static bool
same_ways(const struct ways *s, const struct nccl_way *way)
{
	size_t size = (size_t)s->count[0] * sizeof *way->gpu;
	for (int k = 1; k < s->n_servers; k++)
		if (s->count[k] != s->count[0] || way[k].in != way->in || way[k].out != way->out ||
		    memcmp(way[k].gpu, way->gpu, size) != 0)
			return false;
	return true;
}

/* The way of a ring through the server that is asked for. */
static Status
choose_way(const struct ways *s, const struct nccl_ring *ring, struct nccl_way *out)
{
	struct nccl_way *way;
	bool in_order;
	TRY(TEMP(s->ctx, way, s->n_servers));
	TRY(find_ways(s, ring, way, &in_order));
	if (s->server < 0 && !same_ways(s, way))
		return fail_ring(s, "a ring goes other ways through other servers: want --server, and a file for each");
	if (s->server >= 0 && !in_order)
		return fail_ring(s, "a ring goes through servers in another order than ranks: want theirs");
	*out = way[s->server < 0 ? 0 : s->server];
	return OK;
}

/* ---- servers ---- */

/* In the order of their first ranks, with their numbers of ranks. */
static Status
find_servers(struct ways *s)
{
	const Topology *topo = s->topo;
	TRY(TEMP(s->ctx, s->node, topo->n_ranks));
	TRY(TEMP(s->ctx, s->count, topo->n_ranks));
	for (int r = 0; r < topo->n_ranks; r++) {
		int k = 0;
		while (k < s->n_servers && s->node[k] != topo->vertex[r].node)
			k++;
		s->node[k] = topo->vertex[r].node;
		s->count[k]++;
		s->n_servers += k == s->n_servers;
	}
	return OK;
}

/* name: NULL: for all servers. */
static Status
choose_server(struct ways *s, const char *name)
{
	s->server = -1;
	for (int k = 0; name && k < s->n_servers; k++)
		if (s->node[k] >= 0 && strcmp(s->topo->node[s->node[k]], name) == 0)
			s->server = k;
	return !name || s->server >= 0 ? OK : fail(s->ctx, USAGE, "--server: %.80s: want a server with ranks of %.80s",
	    name, s->topo->name);
}

Status
nccl_graph_ways(Ctx *ctx, const Schedule *sched, const char *server, NcclGraph *out)
{
	struct ways s = { .ctx = ctx, .topo = sched->topo, .graph = out };
	TRY(find_servers(&s));
	TRY(choose_server(&s, server));
	out->n_gpus = s.count[s.server < 0 ? 0 : s.server];
	out->inter = NCCL_PIX;
	out->both_ways = s.n_servers == 1;
	TRY(NEW(ctx, out->way, out->n_rings));
	for (int i = 0; i < out->n_rings; i++)
		TRY(choose_way(&s, &out->ring[i], &out->way[i]));
	return OK;
}
