/* Chain: a path through all ranks, each of which passes on what it gets; with chunks the linear pipeline of Wang et
 * al.
 *
 *     0 -> 1 -> 2 -> 3
 *
 * Its rate does not depend on n, its depth does: a broadcast takes (n - 1 + M/b) alpha + (b (n - 1) + M) beta in
 * chunks of b bytes. An allreduce goes up to the first rank of the path and back; between those at its ends each
 * rank has all of the data in twice, and out twice. */
#include "plan/classic/classic.h"

static void
parents(const Shape *shape, int t, int *parent)
{
	(void)t;
	for (int p = 0; p < shape->n; p++)
		parent[p] = p - 1;
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, phases = shape_phases(shape);
	*out = (Cost){ .steps = phases * (n - 1), .ports = 1, .depth = phases * (n - 1), .added = FRAC_ZERO };
	out->load = collective_has_blocks(shape->coll) ? shape_part(n - 1, n) : shape_part(n == 2 ? 1 : phases, 1);
	if (collective_reduces(shape->coll))
		out->added = FRAC_ONE;
}

const Classic chain_classic = { one_tree, parents, cost, .alone = false };
