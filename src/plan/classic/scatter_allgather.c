/* Scatter and allgather (van de Geijn; Awan et al.), the bidirectional exchange of Wang et al. for a broadcast: the
 * root scatters n blocks along a binomial tree, and rings gather them. Block b takes the path of the tree from
 * position 0 to b, and then the ring from there on, b -> b+1 -> ...
 *
 *     n = 8, block 5:   0 -> 4 -> 5, then 5 -> 6 -> 7, and 0 -> 1 -> 2 -> 3
 *
 * Those on the path have the block already, and send it on around the ring at once; the papers send it to them once
 * more, and begin with the ring when the scatter is over. So here the tree is n - 1 deep, and theirs takes ceil(log2
 * n) + n - 1 steps. The load is theirs, that of the root: 2 (n - 1)/n M. */
#include "plan/classic/classic.h"

static void
parents(const Shape *shape, int t, int *parent)
{
	int n = shape->n;
	for (int p = 0; p < n; p++)
		parent[p] = (p + n - 1) % n;
	for (int p = t; p > 0; p &= p - 1)
		parent[p] = p & (p - 1);
	parent[0] = -1;
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n;
	*out = (Cost){ .steps = digits_of(n, 2) + n - 1, .ports = 1, .depth = n - 1, .load = shape_part(2 * (n - 1), n),
		.added = FRAC_ZERO };
	if (collective_reduces(shape->coll))
		out->added = out->load;
}

const Classic scatter_allgather_classic = { tree_of_each, parents, cost, .alone = false };
