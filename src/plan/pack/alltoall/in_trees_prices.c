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
in_trees_reprice(struct in_trees *s, double part, double momentum)
{
	double sum = 0;
	s->held = false;
	for (int l = 0; l < s->n_links; l++) {
		double cost = cost_at(s, l, s->use);
		s->link[l].price = fmax(0, cost + momentum * (cost - s->last_cost[l]));
		s->last_cost[l] = cost;
		sum += s->capacity[l] * s->link[l].price;
	}
	for (int l = 0; l < s->n_links; l++) {
		s->link[l].price /= momentum > 0 ? sum : 1;
		s->mean_price[l] += part * (s->link[l].price - s->mean_price[l]);
	}
}

static int
uplink(const Topology *topo, int rank)
{
	return topo->out[topo->first_out[rank]];
}

static int
downlink(const Topology *topo, int rank)
{
	return topo->in[topo->first_in[rank]];
}

/* The switch on which a rank hangs by one link each way; else the rank. */
static int
root_of(const Topology *topo, int rank)
{
	bool hangs = topo->first_out[rank + 1] == topo->first_out[rank] + 1
	    && topo->first_in[rank + 1] == topo->first_in[rank] + 1;
	int to = hangs ? topo->link[uplink(topo, rank)].to : rank;
	return to >= topo->n_ranks && topo->link[downlink(topo, rank)].from == to ? to : rank;
}

Status
in_trees_find_roots(struct in_trees *s)
{
	int *at, *ranks;
	TRY(TEMP(s->ctx, at, s->n_vertices + 1));
	TRY(TEMP(s->ctx, ranks, s->n));
	TRY(TEMP(s->ctx, s->root, s->n));
	for (int r = 0; r < s->n; r++)
		at[root_of(s->topo, r) + 1]++;
	for (int v = 0; v < s->n_vertices; v++) {
		if (at[v + 1] > 0)
			s->root[s->n_roots++] = (struct in_root){ v, at[v + 1], ranks + at[v] };
		at[v + 1] += at[v];
	}
	for (int r = 0; r < s->n; r++)
		ranks[at[root_of(s->topo, r)]++] = r;
	return OK;
}

/* Sum of the shortest distances by s->price to all ranks, from those of roots 0, stride, 2 * stride and so on; these
 * ranks are *sources. */
static Wide
all_distances(struct in_trees *s, int stride, int *sources)
{
	Wide sum = 0;
	*sources = 0;
	for (int i = 0; i < s->n_roots; i += stride) {
		const struct in_root *root = &s->root[i];
		shortest_paths(&s->paths, root->vertex, false, s->distance, NULL);
		for (int to = 0; to < s->n; to++)
			sum += (Wide)root->n * s->distance[to];
		*sources += root->n;
		for (int j = 0; j < root->n && root->vertex >= s->n; j++)
			sum += (Wide)(s->n - 1) * s->price[uplink(s->topo, root->rank[j])]
			    - s->price[downlink(s->topo, root->rank[j])];
	}
	return sum;
}

/* s->price: mean prices scaled and rounded to integers of at most path_small_price[i], or FINE_PRICE after those.
 * Returns the bound that they prove, by duality; with a stride above 1 an estimate of it by a sample of sources. */
static double
bound_of(struct in_trees *s, int i, int stride)
{
	enum { FINE_PRICE = 1 << 20 };
	double cost = 0;
	int sources;
	path_whole_prices(s->mean_price, s->n_links, NULL, s->n_links,
	    i < N_SMALL_PRICES ? path_small_price[i] : FINE_PRICE, s->price);
	for (int l = 0; l < s->n_links; l++)
		cost += s->capacity[l] * (double)s->price[l];
	double sum = (double)all_distances(s, stride, &sources);
	return sum * (s->n / (double)sources) / cost;
}

/* Optimal prices are often small integers, which means come close to long before they converge. A sample of sources
 * shows which roundings prove most; its stride is a prime, so that it has ranks of all rows of a grid. */
void
in_trees_bound(struct in_trees *s, int roundings)
{
	enum { STRIDE = 17 };
	double estimate[N_SMALL_PRICES + 1];
	for (int i = 0; i <= N_SMALL_PRICES; i++)
		estimate[i] = bound_of(s, i, s->n_roots > STRIDE * STRIDE ? STRIDE : 1);
	for (; roundings > 0 && !out_of_time(s->ctx, s->n_links); roundings--) {
		int best = 0;
		for (int i = 1; i <= N_SMALL_PRICES; i++)
			if (estimate[i] > estimate[best])
				best = i;
		estimate[best] = 0;
		double bound = bound_of(s, best, 1);
		if (bound <= s->bound)
			continue;
		s->bound = bound;
		memcpy(s->best_price, s->price, (size_t)s->n_links * sizeof *s->price);
	}
}

void
in_trees_bound_by_costs(struct in_trees *s)
{
	for (int l = 0; l < s->n_links; l++)
		s->mean_price[l] = cost_at(s, l, s->use);
	in_trees_bound(s, 1);
}

Status
in_trees_prove(struct in_trees *s, Bound *proof)
{
	const Topology *topo = s->topo;
	int shares = collective_shares(ALLTOALL, s->n), sources;
	Bound bound = { .kind = CERTIFICATE_LENGTHS };
	Wide sum = 0;
	if (!s->held)
		in_trees_bound(s, LAST_ROUNDINGS);
	memcpy(s->price, s->best_price, (size_t)s->n_links * sizeof *s->price);
	Wide cost = all_distances(s, 1, &sources);
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
