/* Into how many units the rate is divided, so that capacities of links are whole numbers of these, or nearly
 * (enter_once.c). */
#include "plan/pack/cluster/enter_once_units.h"

#include <math.h>

enum { MOST_RATES = 64 };	/* of links that differ */

/* What links lose of their capacities, at most, where these are divided into whole units, k of them for the rate. Links
 * that all trees may pass do not count: capacities of `most` times the rate. */
static double
find_loss(const int64_t *capacity, int n, double rate, int k, double most)
{
	double worst = 0, unit = rate / k;
	for (int i = 0; i < n; i++) {
		double units = (double)capacity[i] / unit, lost = units - floor(units + 1e-9);
		if ((double)capacity[i] < most * rate && lost > worst * units)
			worst = lost / units;
	}
	return worst;
}

/* The least of an arc's links, if it is not in the list. */
static void
add_capacity(const struct grower *g, int arc, int64_t *capacity, int *n)
{
	const TreeNetwork *net = &g->net;
	int64_t least = INT64_MAX;
	int at = 0;
	for (int l = arc; l >= 0; l = net->next[l])
		least = net->topo->link[net->link[l]].capacity < least ? net->topo->link[net->link[l]].capacity : least;
	while (at < *n && capacity[at] != least)
		at++;
	if (arc < 0 || at < *n || *n > MOST_RATES)
		return;
	capacity[(*n)++] = least;
}

void
entering_units(const struct grower *g, Frac rate, int from, int to, double most, int *out)
{
	const TreeNetwork *net = &g->net;
	int64_t capacity[MOST_RATES + 1];
	int n = 0;
	double least = 1;
	for (int v = 0; v < net->topo->n_vertices; v++)
		if (net->level[v] >= 0 && net->above[v] >= 0 && net->n_below[v] > 0) {
			add_capacity(g, net->rise[v], capacity, &n);
			add_capacity(g, net->fall[v], capacity, &n);
		}
	for (int r = 0; r < g->n; r++)
		if (net->end[net->server[r]] - net->first[net->server[r]] > 1) {
			add_capacity(g, net->to_switch[r], capacity, &n);
			add_capacity(g, net->from_switch[r], capacity, &n);
		}
	*out = 0;
	for (int k = from; k <= to && least > 0 && n <= MOST_RATES; k++) {
		double loss = find_loss(capacity, n, frac_double(rate), k, most);
		if (loss < least / 2) {
			*out = k;
			least = loss;
		}
	}
}
