/* What several algorithms share: digits of positions, and counts. */
#include "plan/classic/classic.h"

Frac
shape_part(int64_t of, int64_t all)
{
	Frac part = FRAC_ZERO;
	frac_make(of, all, &part);
	return part;
}

bool
shape_rooted(const Shape *shape)
{
	return collective_rooted(shape->coll);
}

int
shape_phases(const Shape *shape)
{
	return shape->coll == ALLREDUCE ? 2 : 1;
}

int
digits_of(int n, int radix)
{
	int digits = 0;
	for (int64_t reach = 1; reach < n; reach *= radix)
		digits++;
	return digits;
}

/* Of the numbers below n those that begin like n - 1 for some digits, have a lower one, and then may have any. */
int
digits_most(int n, int radix)
{
	int most = 0, low = 0;
	for (int left = n - 1; left > 0; left /= radix, low++) {
		int digit = left % radix;
		/* The digits below: all of them not 0 if this one is lowered, or as they were found. */
		int lowered = digit > 0 ? low + (digit > 1) : 0;
		most = most + (digit > 0) > lowered ? most + (digit > 0) : lowered;
	}
	return most;
}

int
power_of_two(int n)
{
	int exponent = 0;
	while (n >> (exponent + 1))
		exponent++;
	return exponent;
}

int
one_tree(const Shape *shape)
{
	(void)shape;
	return 1;
}

int
tree_of_each(const Shape *shape)
{
	return shape->n;
}
