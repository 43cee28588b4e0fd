/* Recursive doubling for an allreduce of few bytes: log2 n steps, in each of which two ranks exchange all that they
 * have added so far, at distance 1, 2, 4, ...; for other counts than powers of two the ranks 1, 2, 4, ... places on.
 * At the end each rank has the result, and none of them sends it to another.
 *
 * As a forest: a tree into each rank, over all of the data, that serves this rank alone, and no way down. Half as
 * deep as an allreduce in two phases. But trees do not see what others made: where the algorithm sends one sum,
 * which serves many ranks, their trees send it once for each of them. So its log2 n M bytes of each port are (n - 1)
 * M here. */
#include "plan/classic/classic.h"

static void
parents(const Shape *shape, int t, int *parent)
{
	Shape as = { .coll = REDUCESCATTER, .n = shape->n, .radix = 2 };
	bool exchange = (shape->n & (shape->n - 1)) == 0;
	(exchange ? &halving_doubling_classic : &bruck_classic)->parents(&as, t, parent);
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n;
	*out = (Cost){ .steps = digits_of(n, 2), .ports = 1, .depth = digits_most(n, 2), .load = shape_part(n - 1, 1),
		.added = shape_part(n - 1, 1) };
}

const Classic recursive_doubling_classic = { tree_of_each, parents, cost, .alone = true };
