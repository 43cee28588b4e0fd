/* The order of packings (plan_better): each rule decides where those before it do not. */
#include "plan/plan.h"
#include "tap.h"

#include <math.h>
#include <string.h>

enum { RANKS = 4, TREES = 3 };

static Edge star[] = { { .src = 0, .dst = 1 }, { .src = 0, .dst = 2 }, { .src = 0, .dst = 3 } };
static Edge chain[] = { { .src = 0, .dst = 1 }, { .src = 1, .dst = 2 }, { .src = 2, .dst = 3 } };

static Edge levels[] = { { .src = 0, .dst = 1 }, { .src = 1, .dst = 2 }, { .src = 1, .dst = 3 } };

static const Topology topo = { .name = "machine", .n_ranks = RANKS, .n_vertices = RANKS };
static const Bound bound = { .rate = { INT64_C(25000000000), 1 } };
static Ask ask = { .coll = BROADCAST, .packing = PACKING_EXACT };
static const Planning in = { .topo = &topo, .bound = &bound, .ask = &ask };

/* A tree of three hops, and two of two hops, of which the second has a millionth of the rate: its part of the message
 * takes each hop as long as all of it takes the first. */
static void
deep_parts(void)
{
	enum { MOST = 999999 };
	Tree shallow[] = { { .n_down = RANKS - 1, .down = levels }, { .n_down = RANKS - 1, .down = levels } };
	Tree deep[] = { { .n_down = RANKS - 1, .down = chain } };
	int64_t parts[] = { MOST, 1 }, whole[] = { MOST + 1 };
	Packing two = { .tree = shallow, .weight = parts, .n_trees = 2, .unit = { 1000, 1 } };
	Packing one = { .tree = deep, .weight = whole, .n_trees = 1, .unit = { 1000, 1 } };
	int work[2 * RANKS + 1];
	const Frac rate = { INT64_C(1000) * (MOST + 1), 1 };
	const double bytes = 1 << 26, seconds = bytes / frac_double(rate);
	const char *why = plan_better(&in, &one, &two, work);
	check(why && strcmp(why, "less time") == 0 && !plan_better(&in, &two, &one, work),
	    "a deep part of the message is slower than a hop more", "%s", why ? why : "not better");
	double slow = pack_time(&topo, &two, rate, bytes, work), fast = pack_time(&topo, &one, rate, bytes, work);
	check(slow > 2 * seconds && slow < 2.01 * seconds && fast > seconds && fast < 1.1 * seconds,
	    "time of both", "%g and %g of the time of the bytes", slow / seconds, fast / seconds);
}

/* k chunks over d hops take (k + d - 1) (s + S / k r), least for k = sqrt((d - 1) S / (s r)). */
static void
closed_term(void)
{
	const double bytes = 1 << 26, rate = 25e9, step = KERNEL_STEP_NS * 1e-9;
	Tree tree[] = { { .n_down = RANKS - 1, .down = chain } };
	int64_t weight[] = { 1 };
	Packing pack = { .tree = tree, .weight = weight, .n_trees = 1, .unit = { INT64_C(25000000000), 1 } };
	int work[2 * RANKS + 1];
	double k = sqrt((RANKS - 2) * bytes / (step * rate)), least = (k + RANKS - 2) * (step + bytes / k / rate);
	double got = pack_time(&topo, &pack, pack.unit, bytes, work);
	check(got > least * (1 - 1e-12) && got < least * (1 + 1e-3), "the closed term of a chain", "%.9g us: want %.9g",
	    got * 1e6, least * 1e6);
}

/* Forty trees over links of their own machine, so that more edges leave rank 0 than it sends at once. The last has a
 * 39001st of the rate; its part moves at a fortieth of a link, and is not the last. */
static void
edges_in_turn(void)
{
	enum { MANY = 40, WEIGHT = 1000, LINKS = RANKS - 1 };
	const int64_t capacity = INT64_C(25000000000);
	Link link[LINKS] = { { .from = 0, .to = 1, .capacity = capacity }, { .from = 1, .to = 2, .capacity = capacity },
		{ .from = 1, .to = 3, .capacity = capacity } };
	int number[LINKS] = { 0, 1, 2 };
	Edge edge[] = { { 0, 1, 1, &number[0] }, { 1, 2, 1, &number[1] }, { 1, 3, 1, &number[2] } };
	const Topology linked = { .name = "machine", .n_ranks = RANKS, .n_vertices = RANKS, .n_links = LINKS,
		.link = link };
	Tree tree[MANY];
	int64_t weight[MANY];
	for (int t = 0; t < MANY; t++) {
		tree[t] = (Tree){ .n_down = RANKS - 1, .down = edge };
		weight[t] = t < MANY - 1 ? WEIGHT : 1;
	}
	Packing pack = { .tree = tree, .weight = weight, .n_trees = MANY,
		.unit = { capacity, (MANY - 1) * WEIGHT + 1 } };
	int work[2 * RANKS + LINKS];
	const double bytes = 1 << 26, seconds = bytes / (double)capacity;
	double turns = pack_time(&linked, &pack, (Frac){ capacity, 1 }, bytes, work);
	pack.n_trees = KERNEL_AT_ONCE / 2;
	pack.weight = weight + MANY - pack.n_trees;
	double sum = (pack.n_trees - 1) * WEIGHT + 1;
	pack.unit.den = (Wide)sum;
	double own = pack_time(&linked, &pack, (Frac){ capacity, 1 }, bytes, work);
	check(turns > seconds && turns < 1.2 * seconds && own > 1.9 * seconds,
	    "edges that take turns: a tree of low rate is not the last", "%g and %g of the time of the bytes",
	    turns / seconds, own / seconds);
}

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
	int work[2 * RANKS + 1];
	const char *got = plan_better(&in, &a, &b, work), *back = plan_better(&in, &b, &a, work);
	check(got && strcmp(got, why) == 0 && !back, name, "%s, and back %s: want %s", got ? got : "not better",
	    back ? back : "not better", why);
}

int
main(void)
{
	const Frac full = { INT64_C(25000000000), 1 }, rounded = { INT64_C(24999999999), 1 },
	    most = { INT64_C(23750000000), 1 }, half = { INT64_C(12500000000), 1 }, slow = { 1000, 1 };
	int work[2 * RANKS + 1];
	Packing one = packing(star, 1, full);
	check(plan_better(&in, &one, NULL, work) && !plan_better(&in, NULL, &one, work)
	    && !plan_better(&in, NULL, NULL, work), "any trees are better than none", "they are not");
	check(!plan_better(&in, &one, &one, work), "none are better than themselves", "they are");
	holds("the rate before time and trees", "a higher rate", packing(chain, 3, full), packing(star, 1, most));
	holds("time before trees", "less time", packing(star, 3, full), packing(chain, 1, full));
	holds("rounding is no higher rate", "less time", packing(star, 3, rounded), packing(chain, 1, full));
	holds("of slow links, where start-ups are nothing: depth", "less depth", packing(star, 3, slow),
	    packing(chain, 1, slow));
	holds("then trees", "fewer trees", packing(chain, 2, full), packing(chain, 3, full));
	ask.tolerance = (Frac){ 1, 10 };
	holds("a tolerance: trees before time", "fewer trees", packing(chain, 1, most), packing(star, 3, full));
	holds("and time then", "less time", packing(star, 2, full), packing(chain, 2, most));
	holds("but not below it", "a higher rate", packing(chain, 3, most), packing(star, 1, half));
	ask.tolerance = FRAC_ZERO;
	ask.max_trees = 3;
	holds("a limit on trees: trees before time", "fewer trees", packing(chain, 2, full), packing(star, 3, full));
	ask.max_trees = 0;
	deep_parts();
	closed_term();
	edges_in_turn();
	return end_tests();
}
