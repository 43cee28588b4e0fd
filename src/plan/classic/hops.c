/* Hops between ranks: the cheapest route, where slow links cost more; and of data that is staged, the way to the
 * memory of the nearest host and from there on. */
#include "graph/search.h"
#include "plan/classic/classic.h"

#include <string.h>

struct Hops {
	const Topology *topo;
	Search search;
	int64_t *price, *base;
	/* Staged: */
	int *host;		/* of each rank: the nearest CPU, -1: none */
	int **last_up;		/* of each rank: the last link of the way to each vertex, -1: none */
	int **last_down;	/* of each CPU that is a host likewise; NULL: others */
};

enum { PRICE_BITS = 40, FINE = 1 << 10 };

static void
set_prices(Hops *hops)
{
	const Topology *topo = hops->topo;
	int64_t most = 0;
	for (int l = 0; l < topo->n_links; l++)
		most = topo->link[l].capacity > most ? topo->link[l].capacity : most;
	for (int l = 0; l < topo->n_links; l++) {
		Wide price = (Wide)most * FINE / topo->link[l].capacity + 1;
		hops->base[l] = price < INT64_C(1) << PRICE_BITS ? (int64_t)price : INT64_C(1) << PRICE_BITS;
		hops->price[l] = hops->base[l];
	}
}

/* Breadth first, through no rank. last[v]: the link over which v is reached. */
static void
reach(const Topology *topo, int from, int *last, int *queue)
{
	int tail = 0;
	memset(last, -1, (size_t)topo->n_vertices * sizeof *last);
	queue[tail++] = from;
	for (int head = 0; head < tail; head++) {
		int v = queue[head];
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], to = topo->link[l].to;
			if (to == from || last[to] >= 0)
				continue;
			last[to] = l;
			if (to >= topo->n_ranks)
				queue[tail++] = to;
		}
	}
}

static int
links_between(const Topology *topo, const int *last, int from, int to)
{
	int n = 0;
	for (; to != from; to = topo->link[last[to]].from) {
		if (last[to] < 0)
			return -1;
		n++;
	}
	return n;
}

static Status
find_hosts(Ctx *ctx, Hops *hops)
{
	const Topology *topo = hops->topo;
	int *queue;
	TRY(TEMP(ctx, queue, topo->n_vertices));
	TRY(TEMP(ctx, hops->host, topo->n_ranks));
	TRY(TEMP(ctx, hops->last_up, topo->n_ranks));
	TRY(TEMP(ctx, hops->last_down, topo->n_vertices));
	if ((int64_t)2 * topo->n_ranks * topo->n_vertices > LIMIT_ROUTE_CELLS)
		return fail(ctx, LIMIT, "%s: routes through hosts of %d ranks over %d vertices: want a smaller machine",
		    topo->name, topo->n_ranks, topo->n_vertices);
	for (int r = 0; r < topo->n_ranks; r++) {
		int nearest = -1;
		TRY(TEMP(ctx, hops->last_up[r], topo->n_vertices));
		reach(topo, r, hops->last_up[r], queue);
		hops->host[r] = -1;
		for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
			int links = links_between(topo, hops->last_up[r], r, v);
			if (topo->vertex[v].kind != VERTEX_CPU || links < 0 || (nearest >= 0 && links >= nearest))
				continue;
			nearest = links;
			hops->host[r] = v;
		}
		int host = hops->host[r];
		if (host < 0 || hops->last_down[host])
			continue;
		TRY(TEMP(ctx, hops->last_down[host], topo->n_vertices));
		reach(topo, host, hops->last_down[host], queue);
	}
	return OK;
}

Status
hops_new(Ctx *ctx, const Topology *topo, bool staged, Hops **out)
{
	Hops *hops;
	TRY(TEMP(ctx, hops, 1));
	*hops = (Hops){ .topo = topo };
	*out = hops;
	if (staged && topo->route)
		return fail(ctx, INFEASIBLE,
		    "%s: each pair of GPUs has its one route: want any, for hops through hosts", topo->name);
	if (staged)
		return find_hosts(ctx, hops);
	TRY(TEMP(ctx, hops->price, topo->n_links));
	TRY(TEMP(ctx, hops->base, topo->n_links));
	TRY(search_new(ctx, topo, &hops->search));
	set_prices(hops);
	search_price(&hops->search, hops->price);
	return OK;
}

/* Appends the links; their number, 0: there is no way, or no room. */
static int
put_way(const Topology *topo, const int *last, int from, int to, int *link, int room)
{
	int n = links_between(topo, last, from, to);
	if (n <= 0 || n > room)
		return 0;
	for (int i = n - 1; i >= 0; i--, to = topo->link[last[to]].from)
		link[i] = last[to];
	return n;
}

static int
staged_route(const Hops *hops, int src, int dst, int *link)
{
	int host = hops->host[src], up, down;
	if (host < 0)
		return 0;
	up = put_way(hops->topo, hops->last_up[src], src, host, link, LIMIT_ROUTE_LINKS);
	down = put_way(hops->topo, hops->last_down[host], host, dst, link + up, LIMIT_ROUTE_LINKS - up);
	return up && down ? up + down : 0;
}

const char *
hops_kind(const Hops *hops)
{
	return hops->host ? "hop through a host" : "hop";
}

int
hops_route(Hops *hops, int src, int dst, int link[LIMIT_ROUTE_LINKS])
{
	if (hops->host)
		return staged_route(hops, src, dst, link);
	int hop = search_cheapest_hop(&hops->search, src, dst);
	int n = hop < 0 ? -1 : search_route(&hops->search, hop, link);
	return n > 0 ? n : 0;
}

void
hops_reprice(Hops *hops, const int64_t *load)
{
	const Topology *topo = hops->topo;
	int worst = -1;
	if (hops->host)
		return;
	for (int l = 0; l < topo->n_links; l++)
		if (load[l] > 0 && (worst < 0
		    || ratio_cmp(load[l], topo->link[l].capacity, load[worst], topo->link[worst].capacity) > 0))
			worst = l;
	for (int l = 0; l < topo->n_links && worst >= 0; l++) {
		double part = (double)load[l] / (double)topo->link[l].capacity
		    * (double)topo->link[worst].capacity / (double)load[worst];
		int64_t price = hops->price[l] + (int64_t)((double)hops->base[l] * part);
		hops->price[l] = price < INT64_C(1) << PRICE_BITS ? price : INT64_C(1) << PRICE_BITS;
	}
	search_price(&hops->search, hops->price);
}
