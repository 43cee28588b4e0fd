/* Hierarchical ring (Ueno and Yokota 2019) over p1 x p2 x ... x ph ranks: a reduce-scatter in the rings of the first
 * layer, then in those of the second, over ranks that have the same part, and so on; and allgathers backwards.
 * Positions are numbers with a digit for each layer, the first the lowest. Part b is added into position b: along
 * the ring until the first digit is that of b, then the second.
 *
 *     4 x 2, b = 0:   1 -> 2 -> 3 -> 0 in the first layer, 5 -> 6 -> 7 -> 4 likewise, then 4 -> 0
 *
 * T = 2 alpha (sum p_i - h) + 2 M sum over i of beta_i (p_i - 1) / (p_1 ... p_i), and where all layers have the same
 * beta the load is 2 (n - 1)/n M. One layer is a ring, layers of 2 are recursive halving and doubling. */
#include "plan/classic/classic.h"

static void
parents(const Shape *shape, int t, int *parent)
{
	const Hierarchy *h = &shape->layers;
	for (int p = 0; p < shape->n; p++) {
		int unit = 1, layer = 0;
		parent[p] = -1;
		while (layer < h->n && p / unit % h->size[layer] == t / unit % h->size[layer])
			unit *= h->size[layer++];
		if (layer == h->n)
			continue;
		int digit = p / unit % h->size[layer];
		parent[p] = p + ((digit + 1) % h->size[layer] - digit) * unit;
	}
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, phases = shape_phases(shape), hops = 0;
	for (int i = 0; i < shape->layers.n; i++)
		hops += shape->layers.size[i] - 1;
	*out = (Cost){ .steps = phases * hops, .ports = 1, .depth = phases * hops,
		.load = shape_part(phases * (n - 1), n), .added = FRAC_ZERO };
	if (collective_reduces(shape->coll))
		out->added = shape_part(n - 1, n);
}

const Classic hierarchical_ring_classic = { tree_of_each, parents, cost, .alone = false };
