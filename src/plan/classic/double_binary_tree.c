/* Double binary tree (Sanders, Speck and Träff 2009), as NCCL has since 2.4: two trees with half of the data each,
 * and each rank has children in one of them at most. Positions 1 .. m, m = n - 1, are in order in the first tree, so
 * that odd ones are its leaves; position 0 stands above. The second tree is its mirror image where m is even, and
 * moved by one where m is odd, so odd positions are not its leaves. n = 8:
 *
 *              4                    5
 *          2       6            3       7
 *        1   3   5   7        2   4   6   1
 *
 * In a broadcast a rank sends two halves to children of one tree, so M bytes, which is the least that there is. In
 * an allreduce it sends up once in each tree, and twice down in one: 2 M bytes, where a ring has 2 (n - 1)/n M. */
#include "plan/classic/classic.h"

static int
two_trees(const Shape *shape)
{
	(void)shape;
	return 2;
}

/* Position p of the first tree in tree t. */
static int
moved(int p, int m, int t)
{
	if (t == 0 || p == 0)
		return p;
	return m % 2 == 0 ? m + 1 - p : p % m + 1;
}

/* In order: p, of lowest bit `bit`, has its parent at p + bit or p - bit, whichever has the one lowest bit that is
 * twice as high; where that is beyond m, the parent is that of the place beyond. */
static int
parent_in_order(int p, int m)
{
	int top = 1 << power_of_two(m);
	if (p == top)
		return 0;
	do {
		int bit = p & -p;
		p = (p ^ bit) | bit << 1;
	} while (p > m);
	return p;
}

static void
parents(const Shape *shape, int t, int *parent)
{
	int m = shape->n - 1;
	parent[0] = -1;
	for (int p = 1; p <= m; p++)
		parent[moved(p, m, t)] = moved(parent_in_order(p, m), m, t);
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, depth = shape_phases(shape) * digits_of(n, 2);
	*out = (Cost){ .steps = depth, .ports = 2, .depth = depth, .load = FRAC_ONE, .added = FRAC_ZERO };
	if (shape->coll == ALLREDUCE && n > 2)
		out->load = n == 3 ? shape_part(3, 2) : shape_part(2, 1);
	if (collective_reduces(shape->coll))
		out->added = FRAC_ONE;
}

const Classic double_binary_tree_classic = { two_trees, parents, cost, .alone = false };
