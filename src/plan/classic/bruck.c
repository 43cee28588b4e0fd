/* Bruck's exchange (Bruck et al. 1997): in step j each rank sends what it has to the rank k^j places on, and for a
 * radix k above 2 also to those 2 k^j, 3 k^j, ... places on. So the block of rank p is at p after no step, at p + 1
 * after the first, at p + 2 and p + 3 after the second: the parent of place v, counted from p, is v without its
 * highest digit.
 *
 *     k = 2, n = 6, from p:   p -> p+1, p+2, p+4     p+1 -> p+3, p+5
 *
 * Every rank is at the root of such a tree, so all ports are loaded alike, for any n: an allgather has the least
 * load that there is, (n - 1)/n M, in ceil(log_k n) steps. An alltoall sends a block once for each digit of its
 * distance that is not 0; with k = n it is direct. A reduce-scatter is the same in reverse, and an allreduce both.
 * */
#include "plan/classic/classic.h"

static void
parents(const Shape *shape, int t, int *parent)
{
	int n = shape->n;
	parent[t] = -1;
	for (int v = 1; v < n; v++) {
		int64_t unit = 1;
		while (unit * shape->radix <= v)
			unit *= shape->radix;
		parent[(t + v) % n] = (t + (int)(v % unit)) % n;
	}
}

/* Of all distances below n: digits that are not 0. */
static int
hops_of_blocks(const Shape *shape)
{
	int hops = 0;
	for (int v = 1; v < shape->n; v++)
		for (int left = v; left > 0; left /= shape->radix)
			hops += left % shape->radix != 0;
	return hops;
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, phases = shape_phases(shape);
	*out = (Cost){ .steps = phases * digits_of(n, shape->radix), .ports = shape->radix - 1,
		.depth = phases * digits_most(n, shape->radix), .added = FRAC_ZERO };
	out->load = shape_part(shape->coll == ALLTOALL ? hops_of_blocks(shape) : phases * (n - 1), n);
	if (collective_reduces(shape->coll))
		out->added = shape_part(n - 1, n);
}

const Classic bruck_classic = { tree_of_each, parents, cost, .alone = false };
