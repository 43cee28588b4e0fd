/* k-nomial trees (Awan et al.); with k = 2 binomial ones, the minimum spanning tree of Wang et al.
 *
 * The parent of a position is itself with its lowest digit, of base k, that is not 0 made 0. So the positions under
 * d k^j are the k^j from there on, which keeps servers together. k = 2, n = 8:
 *
 *     0 -> 4, 2, 1     4 -> 6, 5     2 -> 3     6 -> 7
 *
 * A broadcast has ceil(log_k n) steps of k - 1 messages at once. The root sends one to each of its children, and its
 * port is the bottleneck: with one port log2 n M bytes for k = 2, and more for any other k. Awan's
 * ceil(log_k n) (t_s + M/B) is that of k - 1 ports, and of messages that are not pipelined. */
#include "plan/classic/classic.h"

static void
parents(const Shape *shape, int t, int *parent)
{
	(void)t;
	parent[0] = -1;
	for (int p = 1; p < shape->n; p++) {
		int unit = 1;
		while (p / unit % shape->radix == 0)
			unit *= shape->radix;
		parent[p] = p - p / unit % shape->radix * unit;
	}
}

/* Of the root: d k^j below n, for each digit d that is not 0. */
static int
children(const Shape *shape)
{
	int children = 0;
	for (int64_t unit = 1; unit < shape->n; unit *= shape->radix) {
		int64_t digits = (shape->n - 1) / unit;
		children += (int)(digits < shape->radix - 1 ? digits : shape->radix - 1);
	}
	return children;
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, phases = shape_phases(shape);
	*out = (Cost){ .steps = phases * digits_of(n, shape->radix), .ports = shape->radix - 1,
		.depth = phases * digits_most(n, shape->radix), .added = FRAC_ZERO };
	out->load = collective_has_blocks(shape->coll) ? shape_part(n - 1, n) : shape_part(children(shape), 1);
	if (collective_reduces(shape->coll))
		out->added = out->load;
}

const Classic knomial_classic = { one_tree, parents, cost, .alone = false };
/* Awan et al.: data is copied to the memory of a host, and from there to the next GPU. They copy once and send from
 * host to host; here a hop is from GPU to GPU, so each has both copies. */
const Classic host_staged_knomial_classic = { one_tree, parents, cost, .staged = true };
