/* The order of packings (plan_better): each rule decides where those before it do not. */
#include "plan/plan.h"
#include "tap.h"

#include <string.h>

enum { RANKS = 4, TREES = 3 };

static Edge star[] = { { .src = 0, .dst = 1 }, { .src = 0, .dst = 2 }, { .src = 0, .dst = 3 } };
static Edge chain[] = { { .src = 0, .dst = 1 }, { .src = 1, .dst = 2 }, { .src = 2, .dst = 3 } };

static const Topology topo = { .name = "machine", .n_ranks = RANKS, .n_vertices = RANKS };
static const Bound bound = { .rate = { 1000, 1 } };
static Ask ask = { .coll = BROADCAST, .packing = PACKING_EXACT };
static const Planning in = { .topo = &topo, .bound = &bound, .ask = &ask };

/* Trees of one kind that have this rate together. */
static Packing
packing(Edge *edge, int n_trees, Frac rate)
{
	static Tree tree[2][TREES];
	static int64_t weight[TREES] = { 1, 1, 1 };
	Tree *at = tree[edge == chain];
	for (int t = 0; t < TREES; t++)
		at[t] = (Tree){ .n_down = RANKS - 1, .down = edge };
	Packing pack = { .tree = at, .weight = weight, .n_trees = n_trees, .unit = rate };
	pack.unit.den *= n_trees;
	return pack;
}

/* a is better than b, and b not than a. */
static void
holds(const char *name, const char *why, Packing a, Packing b)
{
	int work[RANKS];
	const char *got = plan_better(&in, &a, &b, work), *back = plan_better(&in, &b, &a, work);
	check(got && strcmp(got, why) == 0 && !back, name, "%s, and back %s: want %s", got ? got : "not better",
	    back ? back : "not better", why);
}

int
main(void)
{
	const Frac full = { 1000, 1 }, rounded = { 999999999999, 1000000000 }, most = { 950, 1 }, half = { 500, 1 };
	int work[RANKS];
	Packing one = packing(star, 1, full);
	check(plan_better(&in, &one, NULL, work) && !plan_better(&in, NULL, &one, work)
	    && !plan_better(&in, NULL, NULL, work), "any trees are better than none", "they are not");
	check(!plan_better(&in, &one, &one, work), "none are better than themselves", "they are");
	holds("the rate before depth and trees", "a higher rate", packing(chain, 3, full), packing(star, 1, most));
	holds("depth before trees", "less depth", packing(star, 3, full), packing(chain, 1, full));
	holds("rounding is no higher rate", "less depth", packing(star, 3, rounded), packing(chain, 1, full));
	holds("then trees", "fewer trees", packing(chain, 2, full), packing(chain, 3, full));
	ask.tolerance = (Frac){ 1, 10 };
	holds("a tolerance: trees before depth", "fewer trees", packing(chain, 1, most), packing(star, 3, full));
	holds("and depth then", "less depth", packing(star, 2, most), packing(chain, 2, full));
	holds("but not below it", "a higher rate", packing(chain, 3, most), packing(star, 1, half));
	ask.tolerance = FRAC_ZERO;
	ask.max_trees = 3;
	holds("a limit on trees: trees before depth", "fewer trees", packing(chain, 2, full), packing(star, 3, full));
	return end_tests();
}
