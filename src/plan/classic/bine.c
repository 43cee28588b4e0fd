/* Bine trees (De Sensi et al. 2025) and the exchange of Swing (De Sensi et al. 2024), which is that of Bine trees
 * from every rank at once. In step s of a reduce-scatter a rank exchanges with the one 1, 1, 3, 5, 11, ... places
 * on, as (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11, ... has it for even positions, with the other sign for odd ones.
 * That is nearer than the 1, 2, 4, 8, ... of recursive halving, by a third, so less crosses the links of a ring, of
 * a torus, or between groups of servers; behind one switch there is nothing to win.
 *
 *     n = 8, out of 0:   0 -> 3,  then 0 -> 7, 3 -> 4,  then 0 -> 1, 3 -> 2, 7 -> 6, 4 -> 5
 *
 * Of an even number of positions, be it a power of two or not, who has a block does not get it again. The last of an
 * odd number gets each block from its root, and sends its own to all, as Swing has it. */
#include "plan/classic/classic.h"

/* Places on in step s. */
static int
distance(int s)
{
	int power = 1 << (s + 1);
	return (1 - (s % 2 ? power : -power)) / 3;
}

static int
trees(const Shape *shape)
{
	return shape_rooted(shape) ? 1 : shape->n;
}

/* Of those that do not have the block: not yet, or the one that sends it in this step. */
enum { NONE = -2, SENT_BY = -3 };

static void
spread(int m, int root, int *parent)
{
	for (int p = 0; p < m; p++)
		parent[p] = NONE;
	parent[root] = -1;
	for (int s = digits_of(m, 2) - 1; s >= 0; s--) {
		for (int p = 0; p < m; p++) {
			int way = p % 2 ? -distance(s) : distance(s), to = ((p + way) % m + m) % m;
			if (parent[p] > NONE && parent[to] == NONE)
				parent[to] = SENT_BY - p;
		}
		for (int p = 0; p < m; p++)
			parent[p] = parent[p] <= SENT_BY ? SENT_BY - parent[p] : parent[p];
	}
}

static void
parents(const Shape *shape, int t, int *parent)
{
	int n = shape->n, m = n - n % 2;
	if (t < m)
		spread(m, t, parent);
	for (int p = 0; t == m && p < m; p++)
		parent[p] = t;
	if (m < n)
		parent[m] = t == m ? -1 : t;
}

/* Steps in which the root sends: the least c with 3 m <= 2^(c + 2), since places 1, 3, 5, 11 on are about 2^s / 3. */
static int
children(int n)
{
	int m = n - n % 2, c = 1;
	while (3 * m > 4 << c)
		c++;
	return c + n % 2;
}

static void
cost(const Shape *shape, Cost *out)
{
	int n = shape->n, phases = shape_phases(shape);
	bool whole = shape_rooted(shape) && !collective_has_blocks(shape->coll);
	*out = (Cost){ .steps = phases * (digits_of(n - n % 2, 2) + n % 2), .ports = 1,
		.depth = phases * power_of_two(n), .added = FRAC_ZERO };
	out->load = whole ? shape_part(children(n), 1) : shape_part(phases * (n - 1), n);
	if (collective_reduces(shape->coll))
		out->added = whole ? out->load : shape_part(n - 1, n);
}

const Classic bine_classic = { trees, parents, cost, .alone = false };
