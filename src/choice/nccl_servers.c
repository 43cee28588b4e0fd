/* NCCL over several servers.
 *
 * Trees of four servers of three GPUs, the first of the two for the head 0 of each, where s1 is server 1 and its
 * heads are marked: each server is a chain, and heads are a binary tree:
 *
 *     [s0] - [s2] - [s1]            s0: [0] - 1 - 2
 *                 \ [s3]
 *
 * The second is its mirror image, or, of an odd number of servers, moved by one. */
#include "choice/nccl_servers.h"

#include "topology/topology.h"

/* ---- servers and their network cards ---- */

Status
nccl_servers(Ctx *ctx, const Topology *machine, const int *gpu, int n, NcclServers *out, bool *equal)
{
	int *server, *count;
	out->n = 0;
	TRY(NEW_EACH(ctx, machine->n_nodes + 1, server, count));
	for (int i = 0; i < n; i++)
		if (count[machine->vertex[gpu[i]].node]++ == 0)
			server[machine->vertex[gpu[i]].node] = out->n++;
	out->gpus = n / out->n;
	*equal = true;
	for (int i = 0; i < n; i++)
		*equal = *equal && count[machine->vertex[gpu[i]].node] == out->gpus;
	if (!*equal)
		return OK;
	TRY(NEW(ctx, out->rank, n));
	for (int i = 0; i < n; i++) {
		int node = machine->vertex[gpu[i]].node;
		out->rank[server[node] * out->gpus + out->gpus - count[node]--] = i;
	}
	return OK;
}

/* GB/s of the links of a class out of a vertex, together. */
static double
capacity_out(const Topology *machine, int v, LinkClass class)
{
	int64_t sum = 0;
	for (int i = machine->first_out[v]; i < machine->first_out[v + 1]; i++)
		if (machine->link[machine->out[i]].class == class)
			sum += machine->link[machine->out[i]].capacity;
	return (double)sum / BYTES_PER_GB;
}

/* A card: its port, within PCIe of itself and of GPUs. Cards of several speeds count as the slowest. */
static void
add_card(const Topology *machine, int v, double gpus, NcclCards *out)
{
	double speed = capacity_out(machine, v, LINK_NET), pcie = capacity_out(machine, v, LINK_PCIE);
	speed = pcie > 0 && pcie < speed ? pcie : speed;
	speed = gpus > 0 && gpus < speed ? gpus : speed;
	out->speed = out->n == 0 || speed < out->speed ? speed : out->speed;
	out->n++;
}

/* The GPUs of the first server, and after them its cards. */
static Status
devices(Ctx *ctx, const Topology *machine, const int *gpu, const NcclServers *servers, int **out, int *n)
{
	int node = machine->vertex[gpu[servers->rank[0]]].node;
	TRY(NEW(ctx, *out, machine->n_vertices));
	for (*n = 0; *n < servers->gpus; (*n)++)
		(*out)[*n] = gpu[servers->rank[*n]];
	for (int v = machine->n_ranks; v < machine->n_vertices; v++)
		if (machine->vertex[v].kind == VERTEX_NIC && machine->vertex[v].node == node
		    && capacity_out(machine, v, LINK_NET) > 0)
			(*out)[(*n)++] = v;
	return OK;
}

Status
nccl_cards(Ctx *ctx, const Topology *machine, const int *gpu, const NcclServers *servers, NcclCards *out, bool *far)
{
	int n, *device;
	double pcie = 0;
	Matrix matrix;
	TRY(devices(ctx, machine, gpu, servers, &device, &n));
	*out = (NcclCards){ .gpus = servers->gpus };
	*far = false;
	for (int g = 0; g < servers->gpus; g++) {
		double of = capacity_out(machine, device[g], LINK_PCIE);
		pcie = of > pcie ? of : pcie;
		if (n == servers->gpus && capacity_out(machine, device[g], LINK_NET) > 0)
			add_card(machine, device[g], 0, out);
	}
	TRY(topo_matrix(ctx, machine, device, n, &matrix));
	for (int c = servers->gpus; c < n; c++) {
		bool near = false;
		for (int g = 0; g < servers->gpus; g++)
			near = near || matrix.entry[g * n + c].kind <= JOIN_PXB;
		if (near)
			add_card(machine, device[c], pcie, out);
	}
	if (out->n > 0)
		return OK;
	*far = true;
	for (int c = servers->gpus; c < n; c++)
		add_card(machine, device[c], pcie, out);
	return OK;
}

/* ---- routes ---- */

enum { BEGIN = -1, NOT_REACHED = -2 };

struct routes {
	const Topology *topo;
	int *by;		/* of each vertex the link that the search came by, or one of these */
	int *queue, *link;
};

static Status
begin_routes(Ctx *ctx, const Topology *topo, struct routes *out)
{
	out->topo = topo;
	TRY(NEW_EACH(ctx, topo->n_vertices, out->by, out->queue));
	return NEW(ctx, out->link, topo->n_vertices);
}

typedef bool (*Found)(const Topology *topo, int v, int to);

/* Vertices that links of these classes join to v and that were not reached yet, to the end of the queue. */
static void
reach(struct routes *r, int v, bool back, unsigned classes, int *n)
{
	const Topology *topo = r->topo;
	const int *first = back ? topo->first_in : topo->first_out, *list = back ? topo->in : topo->out;
	for (int i = first[v]; i < first[v + 1]; i++) {
		const Link *link = &topo->link[list[i]];
		int next = back ? link->from : link->to;
		if (!(classes & 1u << link->class) || r->by[next] != NOT_REACHED)
			continue;
		r->by[next] = list[i];
		r->queue[(*n)++] = next;
	}
}

/* The nearest vertex of which `found` is true, from another over links of these classes, through no GPU; of several the
 * one whose turn it is; -1: there is none. back: against the links. */
static int
search(struct routes *r, int from, bool back, unsigned classes, int turn, Found found, int to)
{
	int n = 0, end = 1;
	for (int v = 0; v < r->topo->n_vertices; v++)
		r->by[v] = NOT_REACHED;
	r->by[from] = BEGIN;
	r->queue[n++] = from;
	for (int begin = 0; begin < end; begin = end, end = n) {
		int last = begin;
		for (int i = begin; i < end; i++)
			if (found(r->topo, r->queue[i], to))
				r->queue[last++] = r->queue[i];
		if (last > begin)
			return r->queue[begin + turn % (last - begin)];
		for (int i = begin; i < end; i++)
			if (r->queue[i] >= r->topo->n_ranks || r->queue[i] == from)
				reach(r, r->queue[i], back, classes, &n);
	}
	return -1;
}

/* Links of the last search that lead to v, in their order, behind n others: their new number. */
static int
links_to(struct routes *r, int v, bool back, int n)
{
	int begin = n;
	for (int l = r->by[v]; l >= 0; l = r->by[back ? r->topo->link[l].to : r->topo->link[l].from])
		r->link[n++] = l;
	for (int i = begin, j = n - 1; i < j && !back; i++, j--) {
		int l = r->link[i];
		r->link[i] = r->link[j];
		r->link[j] = l;
	}
	return n;
}

static bool
is_it(const Topology *topo, int v, int to)
{
	(void)topo;
	return v == to;
}

/* Is v at the border of the network: a card, or a GPU that is one? to: 1 out of the server, 0 into it. */
static bool
at_network(const Topology *topo, int v, int to)
{
	const int *first = to ? topo->first_out : topo->first_in, *list = to ? topo->out : topo->in;
	for (int i = first[v]; i < first[v + 1]; i++)
		if (topo->link[list[i]].class == LINK_NET && topo->vertex[v].node >= 0)
			return true;
	return false;
}

enum { NET = 1u << LINK_NET, BUS = 1u << LINK_PCIE | 1u << LINK_QPI | 1u << LINK_C2C };

/* Links between two GPUs of a server: of these classes, or else of any. */
static int
inner_route(struct routes *r, int src, int dst, unsigned classes)
{
	if (search(r, src, false, classes, 0, is_it, dst) < 0
	    && search(r, src, false, classes | BUS, 0, is_it, dst) < 0)
		return 0;
	return links_to(r, dst, false, 0);
}

/* By the card nearest to each, of equal ones in turn. */
static int
net_route(struct routes *r, int src, int dst, int turn)
{
	int out = search(r, src, false, BUS, turn, at_network, 1), n, into, before;
	if (out < 0)
		return 0;
	n = before = links_to(r, out, false, 0);
	into = search(r, dst, true, BUS, turn, at_network, 0);
	if (into < 0 || search(r, out, false, NET, turn, is_it, into) < 0)
		return 0;
	n = links_to(r, into, false, n);
	search(r, dst, true, BUS, turn, at_network, 0);
	int end = links_to(r, into, true, n);
	return n > before ? end : 0;
}

static Status
edge_of(Ctx *ctx, struct routes *r, int src, int dst, int n, Edge *out)
{
	int *link;
	TRY(NEW(ctx, link, n));
	for (int i = 0; i < n; i++)
		link[i] = r->link[i];
	*out = (Edge){ .src = src, .dst = dst, .n_links = n, .link = link };
	return OK;
}

/* ---- trees ---- */

/* In the first tree; -1: it is the root. Odd servers are leaves. */
static int
parent_in_first(int server, int n)
{
	int bit = server & -server;
	int up = (server ^ bit) | bit << 1;
	if (server == 0)
		return -1;
	return up < n ? up : server ^ bit;
}

static int
parent(int tree, int server, int n)
{
	int up;
	if (tree == 0)
		return parent_in_first(server, n);
	up = parent_in_first(n % 2 ? (server + n - 1) % n : n - 1 - server, n);
	if (up < 0)
		return -1;
	return n % 2 ? (up + 1) % n : n - 1 - up;
}

/* The GPUs of a server, by their places, in the order in which a tree's chain has them. */
static Status
chain_of(Ctx *ctx, const NcclServers *servers, const RingPacking *rings, int head, int heads, int **out)
{
	int *next, at = (int)((int64_t)head * servers->gpus / heads);
	TRY(NEW_EACH(ctx, servers->gpus, *out, next));
	for (int i = 0; i < servers->gpus; i++)
		next[i] = (i + 1) % servers->gpus;
	for (int i = 0; i < servers->gpus && rings->n > 0; i++) {
		const Edge *edge = &rings->ring[head % rings->n].edge[i];
		next[edge->src] = edge->dst;
	}
	for (int i = 0; i < servers->gpus; i++, at = next[at])
		(*out)[i] = at;
	return OK;
}

struct builder {
	Ctx *ctx;
	const NcclServers *servers;
	struct routes routes;
	unsigned classes;	/* within servers */
	Tree *tree;
	int turn;
	bool possible;
};

static Status
add_edge(struct builder *b, int src, int dst, bool net, Edge *out)
{
	int n = net ? net_route(&b->routes, src, dst, b->turn) : inner_route(&b->routes, src, dst, b->classes);
	b->possible = b->possible && n > 0;
	return edge_of(b->ctx, &b->routes, src, dst, n, out);
}

/* The hop between a rank and the one above it, both ways. Hops are added from the root on. */
static Status
add_hop(struct builder *b, int above, int below, bool net)
{
	Tree *tree = b->tree;
	int i = tree->n_down++;
	TRY(add_edge(b, above, below, net, &tree->down[i]));
	return add_edge(b, below, above, net, &tree->up[b->routes.topo->n_ranks - 2 - i]);
}

/* Servers of a tree, parents first. */
static Status
order_servers(Ctx *ctx, int tree, int n, int **out)
{
	int done = 0;
	TRY(NEW(ctx, *out, n));
	for (int s = 0; s < n; s++)
		if (parent(tree, s, n) < 0)
			(*out)[done++] = s;
	for (int i = 0; i < done; i++)
		for (int s = 0; s < n; s++)
			if (parent(tree, s, n) == (*out)[i])
				(*out)[done++] = s;
	return OK;
}

static Status
build_tree(struct builder *b, int which, const int *chain)
{
	const NcclServers *servers = b->servers;
	int n = b->routes.topo->n_ranks, gpus = servers->gpus, *order;
	TRY(order_servers(b->ctx, which, servers->n, &order));
	*b->tree = (Tree){ .root = servers->rank[order[0] * gpus + chain[0]], .n_up = n - 1 };
	TRY(NEW_EACH(b->ctx, n - 1, b->tree->up, b->tree->down));
	for (int i = 1; i < servers->n && b->possible; i++) {
		const int *above = &servers->rank[parent(which, order[i], servers->n) * gpus];
		TRY(add_hop(b, above[chain[0]], servers->rank[order[i] * gpus + chain[0]], true));
	}
	for (int k = 1; k < gpus; k++)
		for (int s = 0; s < servers->n && b->possible; s++) {
			const int *rank = &servers->rank[s * gpus];
			TRY(add_hop(b, rank[chain[k - 1]], rank[chain[k]], false));
		}
	return OK;
}

Status
nccl_server_rings(Ctx *ctx, const Topology *topo, const NcclServers *servers, const RingPacking *rings,
    int heads, Cycle **out)
{
	struct builder b = { .ctx = ctx, .servers = servers, .classes = rings->n ? rings->classes : BUS };
	int *chain, gpus = servers->gpus;
	Cycle *ring;
	b.possible = true;
	TRY(begin_routes(ctx, topo, &b.routes));
	TRY(NEW(ctx, ring, heads));
	for (int h = 0; h < heads; h++) {
		TRY(chain_of(ctx, servers, rings, h, heads, &chain));
		b.turn = h;
		ring[h].width = 1;
		TRY(NEW(ctx, ring[h].edge, topo->n_ranks));
		for (int i = 0; i < topo->n_ranks && b.possible; i++) {
			int next = (i + 1) % topo->n_ranks;
			int src = servers->rank[i / gpus * gpus + chain[i % gpus]];
			int dst = servers->rank[next / gpus * gpus + chain[next % gpus]];
			TRY(add_edge(&b, src, dst, next % gpus == 0, &ring[h].edge[i]));
		}
	}
	*out = b.possible ? ring : NULL;
	return OK;
}

Status
nccl_server_trees(Ctx *ctx, const Topology *topo, const NcclServers *servers, const RingPacking *rings,
    int heads, Packing **out)
{
	struct builder b = { .ctx = ctx, .servers = servers, .classes = rings->n ? rings->classes : BUS };
	Packing *pack;
	int *chain;
	b.possible = true;
	TRY(begin_routes(ctx, topo, &b.routes));
	TRY(pack_new(ctx, 2 * heads, false, &pack));
	for (int h = 0; h < heads; h++) {
		TRY(chain_of(ctx, servers, rings, h, heads, &chain));
		b.turn = h;
		for (int t = 0; t < 2 && b.possible; t++) {
			b.tree = &pack->tree[pack->n_trees];
			pack->weight[pack->n_trees++] = 1;
			TRY(build_tree(&b, t, chain));
		}
	}
	*out = b.possible ? pack : NULL;
	return OK;
}
