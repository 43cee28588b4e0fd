/* The cheapest ring through servers: of each server the cheapest path from each of its ranks through all others to each
 * (Held and Karp 1962), then from server to server the cheapest path to each rank, for each rank to begin with.
 *
 *     server 0   a .. x  ->  e .. y   server 1      cost = path(a, x) + hop(x, e) + path(e, y) + hop(y, a)
 *         ^______________________|  */
#include "plan/pack/rings/server_ring.h"

enum { MOST_BEFORE = 1 << 24 };

static int
ranks_of(const ServerRing *of, int server)
{
	return of->first[server + 1] - of->first[server];
}

/* Where what a server has for each of its ranks, sets and ranks begins: as many sets as the largest has. */
static signed char *
before_of(const ServerRing *of, int server, int begin)
{
	int slots = (1 << SERVER_RING_RANKS) * SERVER_RING_RANKS;
	return of->before + (int64_t)(of->first[server] + begin) * slots;
}

static int64_t *
inside_of(const ServerRing *of, int server)
{
	return of->inside + server * SERVER_RING_RANKS * SERVER_RING_RANKS;
}

static int
server_number(const Topology *topo, int rank)
{
	int node = topo->vertex[rank].node;
	return node < 0 ? topo->n_nodes : node;
}

static Status
sort_ranks(Ctx *ctx, const Topology *topo, ServerRing *out, int *most)
{
	TRY(TEMP(ctx, out->rank, topo->n_ranks));
	TRY(TEMP(ctx, out->first, topo->n_nodes + 2));
	out->n_ranks = *most = 0;
	out->n_servers = 0;
	for (int s = 0; s <= topo->n_nodes; s++) {
		int begin = out->n_ranks;
		for (int r = 0; r < topo->n_ranks; r++)
			if (server_number(topo, r) == s)
				out->rank[out->n_ranks++] = r;
		if (out->n_ranks == begin)
			continue;
		out->first[++out->n_servers] = out->n_ranks;
		*most = out->n_ranks - begin > *most ? out->n_ranks - begin : *most;
	}
	return OK;
}

Status
server_ring_new(Ctx *ctx, const Topology *topo, ServerRing *out, bool *fits)
{
	int slots = (1 << SERVER_RING_RANKS) * SERVER_RING_RANKS, most;
	TRY(sort_ranks(ctx, topo, out, &most));
	*fits = out->n_servers > 1 && most <= SERVER_RING_RANKS && (int64_t)slots * topo->n_ranks <= MOST_BEFORE;
	if (!*fits)
		return OK;
	TRY(TEMP(ctx, out->path, slots));
	TRY(TEMP(ctx, out->before, slots * topo->n_ranks));
	TRY(TEMP(ctx, out->inside, out->n_servers * SERVER_RING_RANKS * SERVER_RING_RANKS));
	TRY(TEMP(ctx, out->end, topo->n_ranks));
	TRY(TEMP(ctx, out->entry, topo->n_ranks));
	TRY(TEMP(ctx, out->from, topo->n_ranks));
	return OK;
}

/* From one rank of a server through each set of its ranks to each of them. Ranks are numbered in the server. */
static void
find_paths(ServerRing *of, int server, int begin, const int64_t *cost)
{
	int k = ranks_of(of, server), all = (1 << k) - 1;
	const int *rank = of->rank + of->first[server];
	signed char *before = before_of(of, server, begin);
	for (int i = 0; i < (all + 1) * k; i++)
		of->path[i] = SERVER_RING_NONE;
	of->path[(1 << begin) * k + begin] = 0;
	for (int set = 1; set <= all; set++) {
		for (int last = 0; last < k; last++) {
			int64_t so_far = of->path[set * k + last];
			for (int v = 0; so_far < SERVER_RING_NONE && v < k; v++) {
				int64_t sum = so_far + cost[rank[last] * of->n_ranks + rank[v]];
				int at = (set | 1 << v) * k + v;
				if (set >> v & 1 || sum >= of->path[at])
					continue;
				of->path[at] = sum;
				before[at] = (signed char)last;
			}
		}
	}
	for (int last = 0; last < k; last++)
		inside_of(of, server)[begin * k + last] = of->path[all * k + last];
}

/* What ends at each rank of a server, entered at rank `entry` of it for `sum`. */
static void
pass_server(ServerRing *of, int server, int entry, int64_t sum)
{
	int k = ranks_of(of, server), first = of->first[server];
	for (int v = 0; v < k; v++) {
		int64_t inside = inside_of(of, server)[entry * k + v];
		if (inside >= SERVER_RING_NONE || sum + inside >= of->end[first + v])
			continue;
		of->end[first + v] = sum + inside;
		of->entry[first + v] = entry;
	}
}

/* From the server before: each rank is entered from where that is cheapest. */
static void
enter_server(ServerRing *of, int server, const int64_t *cost)
{
	for (int e = of->first[server]; e < of->first[server + 1]; e++) {
		int64_t least = SERVER_RING_NONE;
		for (int x = of->first[server - 1]; x < of->first[server]; x++) {
			int64_t hop = cost[of->rank[x] * of->n_ranks + of->rank[e]];
			if (of->end[x] < SERVER_RING_NONE && hop < SERVER_RING_NONE && of->end[x] + hop < least) {
				least = of->end[x] + hop;
				of->from[e] = x;
			}
		}
		if (least < SERVER_RING_NONE)
			pass_server(of, server, e - of->first[server], least);
	}
}

/* Ranks in order, from the last: index `last` of of->rank. */
static void
read_order(const ServerRing *of, int last, int *order)
{
	int n = of->n_ranks;
	for (int s = of->n_servers - 1; s >= 0; s--) {
		int k = ranks_of(of, s), set = (1 << k) - 1, at = last - of->first[s];
		const signed char *before = before_of(of, s, of->entry[last]);
		for (int i = 0; i < k; i++) {
			int now = at;
			order[--n] = of->rank[of->first[s] + now];
			at = before[set * k + now];
			set &= ~(1 << now);
		}
		last = of->from[of->first[s] + of->entry[last]];
	}
}

int64_t
server_ring_cheapest(ServerRing *of, const int64_t *cost, int *order)
{
	int64_t least = SERVER_RING_NONE;
	int n = of->n_ranks, last = of->n_servers - 1;
	for (int s = 0; s < of->n_servers; s++)
		for (int begin = 0; begin < ranks_of(of, s); begin++)
			find_paths(of, s, begin, cost);
	for (int begin = 0; begin < of->first[1]; begin++) {
		for (int i = 0; i < n; i++)
			of->end[i] = SERVER_RING_NONE;
		pass_server(of, 0, begin, 0);
		for (int s = 1; s <= last; s++)
			enter_server(of, s, cost);
		for (int i = of->first[last]; i < n; i++) {
			int64_t hop = cost[of->rank[i] * n + of->rank[begin]];
			if (of->end[i] >= SERVER_RING_NONE || hop >= SERVER_RING_NONE || of->end[i] + hop >= least)
				continue;
			least = of->end[i] + hop;
			read_order(of, i, order);
		}
	}
	return least;
}
