/* Shortest paths under prices of links, and what these prove. */
#include "plan/pack/paths.h"

#include <math.h>
#include <string.h>

void
paths_price(struct paths *p, const double *y)
{
	double top = 1e-300;
	for (int l = 0; l < p->n_links; l++)
		top = fmax(top, y[l]);
	double scale = ldexp(1, p->price_bits) / top;
	/* Of routes of equal price the shorter is cheaper. */
	for (int l = 0; l < p->n_links; l++)
		p->price[l] = (int64_t)(y[l] * scale) + 1;
	search_price(&p->search, p->price);
}

int
paths_demand(const struct paths *p, int from, int to)
{
	return from * (p->n_ranks - 1) + to - (to > from);
}

void
paths_add_load(struct paths *p, const struct path *path, double x)
{
	for (int i = 0; i < path->n; i++)
		p->load[path->link[i]] += x;
}

Status
paths_take(struct paths *p, int from, int to, struct path *out)
{
	int link[LIMIT_ROUTE_LINKS], n = 0, *all;
	for (int v = to; v != from; v = p->search.hop[p->hop[v]].src) {
		int more = p->hop[v] < 0 ? -1 : search_route(&p->search, p->hop[v], link);
		if (more < 0)
			return fail(p->ctx, LIMIT, "%s: a route to %s needs more than %d links", p->topo->name,
			    p->topo->vertex[v].id, LIMIT_ROUTE_LINKS);
		n += more;
	}
	TRY(TEMP(p->ctx, all, n));
	*out = (struct path){ n, all };
	for (int v = to; v != from; v = p->search.hop[p->hop[v]].src) {
		int more = search_route(&p->search, p->hop[v], link);
		n -= more;
		memcpy(all + n, link, (size_t)more * sizeof *link);
	}
	return OK;
}

double
paths_price_sum(const struct paths *p)
{
	double sum = 0;
	for (int l = 0; l < p->n_links; l++)
		sum += (double)p->price[l] * p->capacity[l];
	return sum;
}

double
paths_bound(struct paths *p, const double *y)
{
	double cost = 0;
	paths_price(p, y);
	for (int from = 0; from < p->n_ranks; from++) {
		search_shortest_paths(&p->search, from, false, p->distance, p->hop);
		for (int to = 0; to < p->n_ranks; to++)
			cost += (double)p->distance[to];
	}
	return cost / paths_price_sum(p);
}
