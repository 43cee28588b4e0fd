/* Prices of links for trees into each rank, and the bound that they prove. */
#include "plan/pack/alltoall/in_trees.h"
#include "plan/pack/alltoall/path_columns.h"

#include <math.h>
#include <string.h>

static double
cost_at(const struct in_trees *s, int l, double use)
{
	const struct in_link *link = &s->link[l];
	return fmax(0, link->price + s->stiffness * (link->load * link->per_load - use));
}

/* By bisection, since costs fall where the use rises. */
void
in_trees_settle(struct in_trees *s)
{
	enum { STEPS = 100 };
	double low = 0, high = 0;
	for (int l = 0; l < s->n_links; l++)
		high = fmax(high, s->link[l].load * s->link[l].per_load + s->link[l].price / s->stiffness);
	for (int i = 0; i < STEPS; i++) {
		double use = 0.5 * (low + high), sum = 0;
		for (int l = 0; l < s->n_links; l++)
			sum += s->capacity[l] * cost_at(s, l, use);
		*(sum > 1 ? &low : &high) = use;
	}
	s->use = high;
}

void
in_trees_reprice(struct in_trees *s, double part)
{
	s->held = false;
	for (int l = 0; l < s->n_links; l++) {
		s->link[l].price = cost_at(s, l, s->use);
		s->mean_price[l] += part * (s->link[l].price - s->mean_price[l]);
	}
}

/* Shortest distances of all pairs together, by s->price. */
static Wide
all_distances(struct in_trees *s)
{
	Wide sum = 0;
	for (int from = 0; from < s->n; from++) {
		shortest_paths(&s->paths, from, false, s->distance, NULL);
		for (int to = 0; to < s->n; to++)
			sum += s->distance[to];
	}
	return sum;
}

/* Mean prices as whole numbers up to `most`. */
static void
try_prices(struct in_trees *s, double most)
{
	double cost = 0;
	path_whole_prices(s->mean_price, s->n_links, NULL, s->n_links, most, s->price);
	for (int l = 0; l < s->n_links; l++)
		cost += s->capacity[l] * (double)s->price[l];
	double bound = (double)all_distances(s) / cost;
	if (bound <= s->bound)
		return;
	s->bound = bound;
	memcpy(s->best_price, s->price, (size_t)s->n_links * sizeof *s->price);
}

/* Where the best prices are small ones, means miss them by a little, and long before they are near. */
void
in_trees_bound(struct in_trees *s, int turn, bool fine)
{
	enum { FINE_PRICE = 1 << 20 };
	try_prices(s, path_small_price[turn % N_SMALL_PRICES]);
	if (fine)
		try_prices(s, FINE_PRICE);
}

Status
in_trees_prove(struct in_trees *s, Bound *proof)
{
	const Topology *topo = s->topo;
	int shares = collective_shares(ALLTOALL, s->n);
	Bound bound = { .kind = CERTIFICATE_LENGTHS };
	Wide sum = 0;
	for (int i = 0; i < N_SMALL_PRICES && !s->held && !out_of_time(s->ctx, s->n_links); i++)
		in_trees_bound(s, i, i == 0);
	memcpy(s->price, s->best_price, (size_t)s->n_links * sizeof *s->price);
	Wide cost = all_distances(s);
	if (cost == 0)
		return OK;
	TRY(NEW(s->ctx, bound.part, topo->n_vertices));
	TRY(NEW(s->ctx, bound.price, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		sum += (Wide)topo->link[l].capacity * s->price[l];
	bool fits = frac_make(sum * shares, cost, &bound.rate);
	for (int l = 0; l < topo->n_links && fits; l++)
		fits = frac_make((Wide)s->price[l] * shares, cost, &bound.price[l]) && frac_fits(bound.price[l]);
	if (fits && frac_cmp(bound.rate, proof->rate) < 0)
		*proof = bound;
	return OK;
}
