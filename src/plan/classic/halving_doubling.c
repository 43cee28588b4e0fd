/* Recursive halving and doubling (Rabenseifner 2004): in each step two ranks exchange half of what they still work
 * on, at distance 1, then 2, 4, ..., until each has one part of n; and then the same backwards. Part b is added
 * along a binomial tree into b, whose parent has the lowest bit in which it differs from b as b has it:
 *
 *     n = 8, b = 0:   1 -> 0, 3 -> 2, 5 -> 4, 7 -> 6,  then 2 -> 0, 6 -> 4,  then 4 -> 0
 *
 * So an allreduce has 2 log2 n steps, and n trees whose edges load each port with 2 (n - 1)/n M. Half of the data
 * goes to the next rank and little to far ones, which suits servers.
 *
 * Other counts, n = 2^q + r: positions 2a + 1, a < r, hand all their data to 2a and get the result back, which loads
 * these with M more and takes two steps more.
 *
 * A broadcast scatters along such a tree, out of position 0, and then doubles; who has a block by then does not get
 * it again. A reduce is the same backwards: the bidirectional exchange of Wang et al. */
#include "plan/classic/classic.h"

/* Of 2^q + r positions those that take part in the exchange, and their numbers in it. */
struct fold {
	int q, r;
};

static struct fold
fold_of(int n)
{
	int q = power_of_two(n);
	return (struct fold){ q, n - (1 << q) };
}

static int
position_of(struct fold f, int active)
{
	return active < f.r ? 2 * active : active + f.r;
}

static int
active_of(struct fold f, int position)
{
	return position < 2 * f.r ? position / 2 : position - f.r;
}

static int
trees(const Shape *shape)
{
	return collective_has_blocks(shape->coll) ? shape->n : 1 << power_of_two(shape->n);
}

/* Into root: the tree of an exchange, and those that are not in it. */
static void
exchange(int n, int root, int *parent)
{
	struct fold f = fold_of(n);
	int at = active_of(f, root);
	for (int a = 0; a < 1 << f.q; a++) {
		int away = a ^ at;
		parent[position_of(f, a)] = away ? position_of(f, a ^ (away & -away)) : -1;
	}
	for (int a = 0; a < f.r; a++)
		parent[2 * a + 1] = 2 * a;
	if (position_of(f, at) != root) {
		parent[root] = -1;
		parent[position_of(f, at)] = root;
	}
}

static void
parents(const Shape *shape, int t, int *parent)
{
	struct fold f = fold_of(shape->n);
	if (collective_has_blocks(shape->coll)) {
		exchange(shape->n, t, parent);
		return;
	}
	exchange(shape->n, position_of(f, t), parent);
	if (!shape_rooted(shape))
		return;
	for (int a = t; a > 0; a &= a - 1)
		parent[position_of(f, a)] = position_of(f, a & (a - 1));
	parent[0] = -1;
}

/* Of an allgather, in blocks, out of position 0: in the step at distance d = 2^(q-1), ..., 1 the blocks of every
 * 2d-th rank of the exchange, those of the ranks that they stand for, too; and all but one to the rank that 0 stands
 * for. */
static int
blocks_sent(struct fold f)
{
	int sent = f.r ? (1 << f.q) + f.r - 1 : 0;
	for (int j = 0; j < f.q; j++) {
		int every = 1 << (f.q - j);
		sent += (1 << j) + (f.r + every - 1) / every;
	}
	return sent;
}

static void
cost_of_blocks(int n, Cost *out)
{
	struct fold f = fold_of(n);
	out->steps = f.q + (f.r ? 2 : 0);
	out->depth = f.q + (f.r > 0) + (2 * f.r > 1 << f.q);
	out->load = out->added = shape_part(blocks_sent(f), n);
}

/* Both phases: in each the parts of all others but one's own. */
static void
cost_of_whole(const Shape *shape, Cost *out)
{
	struct fold f = fold_of(shape->n);
	int parts = 1 << f.q, whole = f.r ? parts : 0;
	bool rooted = shape_rooted(shape);
	out->steps = 2 * f.q + (f.r ? rooted ? 1 : 2 : 0);
	out->depth = rooted ? 2 * f.q - 1 + (f.r > 1) : 2 * (f.q + (f.r > 0));
	out->load = shape_part(2 * (parts - 1) + whole, parts);
	out->added = rooted ? out->load : shape_part(parts - 1 + whole, parts);
}

static void
cost(const Shape *shape, Cost *out)
{
	*out = (Cost){ .ports = 1 };
	if (collective_has_blocks(shape->coll))
		cost_of_blocks(shape->n, out);
	else
		cost_of_whole(shape, out);
	if (!collective_reduces(shape->coll))
		out->added = FRAC_ZERO;
}

const Classic halving_doubling_classic = { trees, parents, cost, .alone = false };
