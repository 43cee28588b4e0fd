/* Shortest paths under prices of links, and what these prove. */
#include "plan/pack/alltoall/paths.h"

#include <math.h>
#include <string.h>

void
paths_price(struct paths *p, const double *y)
{
	double top = 1e-300;
	for (int i = 0; i < p->n_rows; i++)
		top = fmax(top, y[i]);
	double scale = ldexp(1, p->price_bits) / top;
	/* Of routes of equal price the shorter is cheaper. */
	for (int l = 0; l < p->topo->n_links; l++)
		p->price[l] = (int64_t)(y[p->row[l]] * scale) + 1;
	paths_use_prices(p);
}

void
paths_use_prices(struct paths *p)
{
	if (p->by_hops)
		search_price(&p->search, p->price);
}

void
paths_from(struct paths *p, int from)
{
	if (p->by_hops)
		search_shortest_paths(&p->search, from, false, p->distance, p->enter);
	else
		search_link_paths(&p->search, p->price, from, p->distance, p->enter);
}

int
paths_demand(const struct paths *p, int source, int to)
{
	return source * (p->n_ranks - 1) + to - (to > p->source[source]);
}

int
paths_from_rank(const struct paths *p, int demand)
{
	return p->source[demand / (p->n_ranks - 1)];
}

int
paths_to_rank(const struct paths *p, int demand)
{
	int to = demand % (p->n_ranks - 1);
	return to + (to >= paths_from_rank(p, demand));
}

void
paths_add_load(struct paths *p, const struct path *path, double x)
{
	for (int i = 0; i < path->n; i++)
		p->load[p->row[path->link[i]]] += x;
}

/* The last hop of the path to v: its links, and the rank where it begins. Returns how many links; -1: too many. */
static int
last_hop(const struct paths *p, int v, int link[LIMIT_ROUTE_LINKS], int *src)
{
	int n = 0;
	*src = v;
	if (p->enter[v] < 0)
		return -1;
	if (p->by_hops) {
		*src = p->search.hop[p->enter[v]].src;
		return search_route(&p->search, p->enter[v], link);
	}
	do {
		if (n == LIMIT_ROUTE_LINKS)
			return -1;
		link[n++] = p->enter[*src];
		*src = p->topo->link[p->enter[*src]].from;
	} while (*src >= p->n_ranks);
	for (int i = 0, j = n - 1; i < j; i++, j--) {
		int l = link[i];
		link[i] = link[j];
		link[j] = l;
	}
	return n;
}

Status
paths_take(struct paths *p, int from, int to, struct path *out)
{
	int link[LIMIT_ROUTE_LINKS], n = 0, src, *all;
	for (int v = to; v != from; v = src) {
		int more = last_hop(p, v, link, &src);
		if (more < 0)
			return fail(p->ctx, LIMIT, "%s: a route to %s needs more than %d links", p->topo->name,
			    p->topo->vertex[v].id, LIMIT_ROUTE_LINKS);
		n += more;
	}
	TRY(TEMP(p->ctx, all, n));
	*out = (struct path){ n, all };
	for (int v = to; v != from; v = src) {
		int more = last_hop(p, v, link, &src);
		n -= more;
		memcpy(all + n, link, (size_t)more * sizeof *link);
	}
	return OK;
}

double
paths_cost(const struct paths *p, int from, int to)
{
	double sum = 0;
	for (int v = to, src; v != from; v = src) {
		int link[LIMIT_ROUTE_LINKS], n = last_hop(p, v, link, &src);
		for (int i = 0; i < n; i++)
			sum += p->y[p->row[link[i]]];
	}
	return sum;
}

double
paths_price_sum(const struct paths *p)
{
	double sum = 0, size = p->sym ? p->sym->size : 1;
	for (int l = 0; l < p->topo->n_links; l++)
		sum += (double)p->price[l] * ((double)p->topo->link[l].capacity / p->mean);
	return sum / size;
}

double
paths_bound(struct paths *p, const double *y)
{
	double cost = 0;
	paths_price(p, y);
	for (int i = 0; i < p->n_sources; i++) {
		paths_from(p, p->source[i]);
		for (int to = 0; to < p->n_ranks; to++)
			if (to != p->source[i])
				cost += p->weight[paths_demand(p, i, to)] * (double)p->distance[to];
	}
	return cost / paths_price_sum(p);
}
