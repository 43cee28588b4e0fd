/* Direct: every block goes from the rank that has it to each rank that needs it, in one hop. An allreduce is a
 * reduce-scatter and an allgather, as on a DGX-2 (Blink 3.5): rank p adds part p of the data and sends it to all
 * others.
 *
 * A broadcast loads the port of its root n - 1 times, so the rate is low and the depth 1. Awan et al. have n (t_s +
 * M/B), which counts the root as one more. */
#include "plan/classic/classic.h"

static int
trees(const Shape *shape)
{
	return shape_rooted(shape) ? 1 : shape->n;
}

static void
parents(const Shape *shape, int t, int *parent)
{
	for (int p = 0; p < shape->n; p++)
		parent[p] = p == t ? -1 : t;
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, phases = shape_phases(shape);
	bool whole = shape_rooted(shape) && !collective_has_blocks(shape->coll);
	*out = (Cost){ .steps = phases * (n - 1), .ports = 1, .depth = phases, .added = FRAC_ZERO };
	out->load = whole ? shape_part(n - 1, 1) : shape_part(phases * (n - 1), n);
	if (collective_reduces(shape->coll))
		out->added = whole ? shape_part(n - 1, 1) : shape_part(n - 1, n);
}

const Classic direct_classic = { trees, parents, cost, .alone = false };
