/* The algorithms of the literature: their forests against their formulas, by counting what passes the ports of every
 * rank, on machines with one switch; the trees of a power of two against the papers; orders against all orders. */
#include "model/model.h"
#include "plan/plan.h"
#include "quick.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 40, LINKS = MOST * MOST };

struct machine {
	Topology topo;
	Vertex vertex[MOST + 1];
	Link link[LINKS];
	const char *node[1];
	char id[MOST + 1][8];
};

static void
add_link(struct machine *m, int from, int to, int64_t capacity)
{
	m->link[m->topo.n_links++] = (Link){ .from = from, .to = to, .count = 1, .capacity = capacity };
}

static void
start(struct machine *m, int n, bool with_switch)
{
	m->node[0] = "server";
	m->topo = (Topology){ .name = "machine", .digest = "sha256:0", .n_nodes = 1, .node = m->node, .n_ranks = n,
		.n_vertices = n + with_switch, .vertex = m->vertex, .link = m->link };
	for (int v = 0; v <= n; v++) {
		snprintf(m->id[v], sizeof m->id[v], "v%d", v);
		m->vertex[v] = (Vertex){ .id = m->id[v], .kind = v < n ? VERTEX_GPU : VERTEX_SWITCH };
	}
}

/* Link 2r leads from rank r to the switch, 2r + 1 back. */
static Status
make_star(Ctx *ctx, struct machine *m, int n)
{
	start(m, n, true);
	for (int r = 0; r < n; r++) {
		add_link(m, r, n, 1000000);
		add_link(m, n, r, 1000000);
	}
	return topo_index(ctx, &m->topo);
}

/* ---- what a packing does, counted ---- */

struct count {
	int64_t out[MOST], in[MOST], added[MOST];	/* of each rank, in trees that all have the same length */
	int depth;
	bool wrong;		/* a tree is none, or does not reach those that it serves */
};

static int
depth_of(const Tree *tree, int n, const Edge *edge, int n_edges, bool up, int *depth)
{
	int deepest = 0;
	for (int r = 0; r < n; r++)
		depth[r] = -1;
	depth[tree->root] = 0;
	for (int i = 0; i < n_edges; i++) {
		const Edge *e = &edge[up ? n_edges - 1 - i : i];
		int near = up ? e->dst : e->src, far = up ? e->src : e->dst;
		if (depth[near] < 0 || depth[far] >= 0)
			return -1;
		depth[far] = depth[near] + 1;
		deepest = depth[far] > deepest ? depth[far] : deepest;
	}
	return deepest;
}

static void
count_tree(const Tree *tree, int n, Collective coll, struct count *c)
{
	int depth[MOST], up = depth_of(tree, n, tree->up, tree->n_up, true, depth),
	    down = depth_of(tree, n, tree->down, tree->n_down, false, depth);
	bool path = collective_demand(coll, n, 0, 0).kind == DEMAND_PATH;
	c->wrong = c->wrong || up < 0 || down < 0 || (!path && tree->n_up > 0 && tree->n_up != n - 1)
	    || (!path && tree->n_down > 0 && tree->n_down != n - 1);
	c->depth = up + down > c->depth ? up + down : c->depth;
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *e = tree_edge(tree, i);
		c->out[e->src]++;
		c->in[e->dst]++;
		if (i >= tree->n_down && collective_reduces(coll))
			c->added[e->dst]++;
	}
}

static int64_t
most_of(const int64_t *value, int n)
{
	int64_t most = 0;
	for (int r = 0; r < n; r++)
		most = value[r] > most ? value[r] : most;
	return most;
}

static bool
same(int64_t pieces, int64_t of, Frac want)
{
	Frac got = FRAC_ZERO;
	return frac_make(pieces, of, &got) && frac_cmp(got, want) == 0;
}

struct test {
	const char *name;
	Ask ask;
	int n;
};

static void
print_wrong(const struct test *t, const char *what)
{
	printf("# %s, %s, %d ranks, radix %d, layers %s, root %d: %s\n", t->name, collective_name(t->ask.coll), t->n,
	    t->ask.radix, hierarchy_text(&t->ask.layers).text, t->ask.root, what);
}

/* The parts of M that its trees have: M is cut into as many as there are trees of one rank's data. */
static int64_t
parts_of(const Packing *pack, Collective coll, int n)
{
	if (pack->serves)
		return 1;
	return collective_has_blocks(coll) ? n : pack->n_trees;
}

static bool
check_packing(const struct test *t, const Algorithm *row, const Shape *shape, const Packing *pack)
{
	static struct count c;
	Cost cost;
	int64_t parts = parts_of(pack, t->ask.coll, t->n);
	c = (struct count){ .depth = 0 };
	for (int i = 0; i < pack->n_trees; i++)
		count_tree(&pack->tree[i], t->n, t->ask.coll, &c);
	int64_t out = most_of(c.out, t->n), in = most_of(c.in, t->n);
	row->classic->cost(shape, &cost);
	if (c.wrong)
		print_wrong(t, "a tree is none");
	if (!same(out > in ? out : in, parts, cost.load))
		print_wrong(t, "the load is not that of the formula");
	if (!same(most_of(c.added, t->n), parts, cost.added))
		print_wrong(t, "what a rank adds is not that of the formula");
	if (c.depth != cost.depth)
		print_wrong(t, "the depth is not that of the formula");
	if (cost.depth > cost.steps)
		print_wrong(t, "the tree is deeper than the steps of the formula");
	return !c.wrong && same(out > in ? out : in, parts, cost.load) && c.depth == cost.depth
	    && same(most_of(c.added, t->n), parts, cost.added) && cost.depth <= cost.steps;
}

/* The packing, its schedule, which is verified, and its rate: one port's worth divided by the load. */
static bool
check_schedule(Ctx *ctx, const struct test *t, const Topology *topo, const Packing *pack, const Cost *cost)
{
	Bound bound = { .rate = FRAC_ONE, .kind = CERTIFICATE_CUT };
	Schedule *sched;
	Frac rate = FRAC_ZERO, want = FRAC_ZERO;
	if (sched_build(ctx, topo, &bound, &t->ask, t->name, pack, &sched) != OK)
		return false;
	return sched_check(ctx, t->name, sched) == OK && pack_rate(pack, t->ask.coll, t->n, &rate)
	    && frac_div((Frac){ 1000000, 1 }, cost->load, &want) && frac_cmp(rate, want) == 0
	    && frac_cmp(sched->achieved, want) == 0;
}

static bool
check_one(Ctx *ctx, struct machine *m, const struct test *t, const Algorithm *row)
{
	ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
	Shape shape;
	Packing *pack;
	Cost cost;
	bool best, right = classic_shape(ctx, &m->topo, &t->ask, &shape) == OK
	    && classic_pack(ctx, &m->topo, row->classic, &shape, t->ask.root, row->trees, &pack, &best) == OK;
	if (right) {
		row->classic->cost(&shape, &cost);
		right = check_packing(t, row, &shape, pack);
		if (right && !check_schedule(ctx, t, &m->topo, pack, &cost)) {
			print_wrong(t, ctx->error.status ? ctx->error.text : "the rate is not that of the formula");
			right = false;
		}
	} else {
		print_wrong(t, ctx->error.text);
	}
	arena_release(&ctx->run, run);
	arena_release(&ctx->scratch, scratch);
	return right;
}

static int
report(int points, int wrong, const char *name)
{
	if (wrong)
		printf("not ok %s: %d of %d points wrong\n", name, wrong, points);
	else if (points < 20)
		printf("not ok %s: %d points: want 20\n", name, points);
	else
		printf("ok %s: load, additions, depth and rate are those of its formula\n", name);
	return wrong > 0 || points < 20;
}

/* Layers of 2 where the number allows it, then what is left; or the other way round. */
static Hierarchy
layers_of(int n, int variant)
{
	Hierarchy h = { 0 };
	int twos = 0;
	for (; variant > 0 && n % 2 == 0 && n > 2 && twos < variant; n /= 2, twos++)
		h.size[h.n++] = 2;
	h.size[h.n++] = n;
	for (int i = 0; variant % 2 && i < h.n / 2; i++) {
		int size = h.size[i];
		h.size[i] = h.size[h.n - 1 - i];
		h.size[h.n - 1 - i] = size;
	}
	return h;
}

enum { VARIANTS = 4 };

/* Radices 2, 3, 4 and 7; hierarchies; a root that is not rank 0. */
static int
check_row(Ctx *ctx, struct machine *machine, int most, const Algorithm *row)
{
	int points = 0, wrong = 0;
	for (int n = 2; n <= most; n++)
		for (int coll = 0; coll < N_COLLECTIVES; coll++)
			for (int variant = 0; variant < (row->options ? VARIANTS : 1); variant++) {
				struct test t = { .name = row->name, .n = n,
					.ask = { .coll = (Collective)coll, .root = -1, .algorithm = row->name } };
				if (!row->serves(t.ask.coll))
					continue;
				if (collective_rooted(t.ask.coll))
					t.ask.root = (n * 5 + variant) % n;
				if (row->options && strcmp(row->options, "radix") == 0)
					t.ask.radix = (int[]){ 2, 3, 4, 7 }[variant];
				if (row->options && strcmp(row->options, "hierarchy") == 0)
					t.ask.layers = layers_of(n, variant);
				points++;
				wrong += !check_one(ctx, &machine[n], &t, row);
			}
	return report(points, wrong, row->name);
}

/* ---- the papers' own numbers ---- */

static const Classic *
classic_of(Ctx *ctx, const char *name, Collective coll)
{
	const Algorithm *row;
	return algorithm_find(ctx, name, coll, &row) == OK ? row->classic : NULL;
}

/* steps and load * 1000000, of shapes that a paper has a number for. */
static const struct {
	const char *what, *name;
	Collective coll;
	int n, radix;
	Hierarchy layers;
	int steps;
	int64_t load, of;
} published[] = {
	/* Wang et al., table 1: log2 p (alpha + n beta + ...), and 2 log2 p alpha + 2 (p - 1)/p n beta. */
	{ "minimum spanning tree", "minimum-spanning-tree", BROADCAST, 16, 2, { 0 }, 4, 4, 1 },
	{ "minimum spanning tree", "binomial", ALLREDUCE, 8, 2, { 0 }, 6, 3, 1 },
	{ "bidirectional exchange", "bidirectional-exchange", BROADCAST, 8, 0, { 0 }, 3 + 7, 14, 8 },
	{ "bidirectional exchange", "bidirectional-exchange", REDUCE, 8, 0, { 0 }, 6, 14, 8 },
	{ "bidirectional exchange", "bidirectional-exchange", ALLREDUCE, 16, 0, { 0 }, 8, 30, 16 },
	{ "linear pipeline", "linear-pipeline", BROADCAST, 8, 0, { 0 }, 7, 1, 1 },
	{ "linear pipeline", "linear-pipeline", ALLREDUCE, 8, 0, { 0 }, 14, 2, 1 },
	/* Awan et al.: (ceil(log2 n) + n - 1) t_s + 2 (n - 1)/n M/B; ceil(log_k n) steps. */
	{ "scatter-allgather", "scatter-allgather", BROADCAST, 16, 0, { 0 }, 19, 30, 16 },
	{ "k-nomial, k = 4", "knomial", BROADCAST, 64, 4, { 0 }, 3, 9, 1 },
	{ "host-staged k-nomial", "host-staged-knomial", BROADCAST, 16, 4, { 0 }, 2, 6, 1 },
	/* Ueno and Yokota: 2 alpha (sum p_i - h) + 2 n sum of (p_i - 1) / (p_1 ... p_i). */
	{ "4 x 8 x 4", "hierarchical-ring", ALLREDUCE, 128, 0, { 3, { 4, 8, 4 } }, 26, 254, 128 },
	{ "one layer", "hierarchical-ring", ALLREDUCE, 128, 0, { 1, { 128 } }, 254, 254, 128 },
	{ "4 x 8 x 8 x 8", "hierarchical-ring", ALLREDUCE, 2048, 0, { 4, { 4, 8, 8, 8 } }, 48, 4094, 2048 },
	/* Rabenseifner 2004; Sanders et al. 2009; Bruck et al. 1997. */
	{ "Rabenseifner", "rabenseifner", ALLREDUCE, 32, 0, { 0 }, 10, 62, 32 },
	{ "double binary tree", "double-binary-tree", BROADCAST, 1024, 0, { 0 }, 10, 1, 1 },
	{ "Bruck", "bruck", ALLGATHER, 100, 0, { 0 }, 7, 99, 100 },
	{ "Swing", "swing", ALLREDUCE, 64, 0, { 0 }, 12, 126, 64 },
};

static int
check_published(Ctx *ctx)
{
	int wrong = 0, n = sizeof published / sizeof *published;
	for (int i = 0; i < n; i++) {
		Shape shape = { .coll = published[i].coll, .n = published[i].n,
			.radix = published[i].radix ? published[i].radix : 2, .layers = published[i].layers };
		const Classic *classic = classic_of(ctx, published[i].name, shape.coll);
		Cost cost = { 0 };
		if (classic)
			classic->cost(&shape, &cost);
		if (classic && cost.steps == published[i].steps && same(published[i].load, published[i].of, cost.load))
			continue;
		printf("# %s: %d steps, load %g\n", published[i].what, cost.steps, frac_double(cost.load));
		wrong++;
	}
	printf("%s the papers' numbers of steps and bytes\n", wrong ? "not ok" : "ok");
	return wrong;
}

/* A tree out of position 0 as an essay has it: the parents of positions 1, 2, ... */
static int
check_tree(const char *what, const Classic *classic, Shape shape, int t, const int *want)
{
	int parent[MOST], wrong = 0;
	classic->parents(&shape, t, parent);
	for (int p = 0; p < shape.n; p++)
		wrong += parent[p] != want[p];
	printf("%s %s\n", wrong ? "not ok" : "ok", what);
	return wrong;
}

static int
check_trees(void)
{
	Shape eight = { .coll = BROADCAST, .n = 8, .radix = 2 }, parts = { .coll = REDUCESCATTER, .n = 8, .radix = 2 };
	return check_tree("a binomial tree", &knomial_classic, eight, 0, (int[]){ -1, 0, 0, 2, 0, 4, 4, 6 })
	    + check_tree("halving", &halving_doubling_classic, parts, 0, (int[]){ -1, 0, 0, 2, 0, 4, 4, 6 })
	    + check_tree("halving into 5", &halving_doubling_classic, parts, 5, (int[]){ 1, 5, 3, 1, 5, -1, 7, 5 })
	    + check_tree("a Bine tree", &bine_classic, eight, 0, (int[]){ -1, 0, 3, 0, 3, 4, 7, 0 })
	    + check_tree("a double binary tree, the first", &double_binary_tree_classic, eight, 0,
	    (int[]){ -1, 2, 4, 2, 0, 6, 4, 6 })
	    + check_tree("a double binary tree, the second", &double_binary_tree_classic, eight, 1,
	    (int[]){ -1, 7, 3, 5, 3, 0, 7, 5 });
}

/* ---- orders ---- */

/* Random direct links: the best order of all, by trying them. */
static uint64_t state = 1;

static int
below(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (unsigned)n);
}

static Status
make_random(Ctx *ctx, struct machine *m, int n)
{
	start(m, n, false);
	for (int v = 0; v < n; v++)
		for (int w = 0; w < v; w++)
			if (below(4) > 0) {
				int64_t capacity = 1000000 * (1 + below(3));
				add_link(m, v, w, capacity);
				add_link(m, w, v, capacity);
			}
	return topo_index(ctx, &m->topo);
}

static int64_t
capacity_between(const Topology *topo, int from, int to)
{
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].from == from && topo->link[l].to == to)
			return topo->link[l].capacity;
	return 0;
}

/* The rate of trees that have `parts` equal parts, with ranks in this order; 0: a hop is missing. All hops have links of
 * their own, so a load is a number of parts. */
static int64_t
rate_of(const Topology *topo, const Classic *classic, const Shape *shape, const int *order)
{
	static int64_t load[MOST][MOST];
	int trees = classic->trees(shape), parent[MOST];
	int64_t least = INT64_MAX;
	memset(load, 0, sizeof load);
	for (int t = 0; t < trees; t++) {
		classic->parents(shape, t, parent);
		for (int p = 0; p < shape->n; p++)
			if (parent[p] >= 0) {
				load[parent[p]][p] += shape->coll != REDUCESCATTER;
				load[p][parent[p]] += shape->coll != BROADCAST;
			}
	}
	for (int p = 0; p < shape->n; p++)
		for (int q = 0; q < shape->n; q++) {
			int64_t rate = capacity_between(topo, order[p], order[q]) * trees;
			if (load[p][q] > 0 && rate / load[p][q] < least)
				least = rate / load[p][q];
		}
	return least;
}

static int64_t
best_of_all(const Topology *topo, const Classic *classic, const Shape *shape, int *order, int placed)
{
	int64_t best = 0;
	if (placed == shape->n)
		return rate_of(topo, classic, shape, order);
	for (int i = placed; i < shape->n; i++) {
		int first = order[placed];
		order[placed] = order[i];
		order[i] = first;
		int64_t rate = best_of_all(topo, classic, shape, order, placed + 1);
		best = rate > best ? rate : best;
		order[i] = order[placed];
		order[placed] = first;
	}
	return best;
}

static bool
check_order(Ctx *ctx, struct machine *m, const Algorithm *row, Collective coll)
{
	ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
	int order[MOST], n = m->topo.n_ranks, root = coll == BROADCAST ? 0 : -1;
	Shape shape = { .coll = coll, .n = n, .radix = 2, .layers = { 1, { n } } };
	Packing *pack;
	bool proven, right;
	for (int r = 0; r < n; r++)
		order[r] = r;
	int64_t best = best_of_all(&m->topo, row->classic, &shape, order, root == 0);
	Frac rate = FRAC_ZERO;
	Status status = classic_pack(ctx, &m->topo, row->classic, &shape, root, row->trees, &pack, &proven);
	if (best == 0)
		right = status == INFEASIBLE;
	else
		right = status == OK && proven && pack_rate(pack, coll, n, &rate)
		    && frac_floor_mul((Frac){ 1, 1 }, best) == (int64_t)(rate.num / rate.den);
	if (!right)
		printf("# %s, %s, %d ranks: status %d, rate %g, best %lld\n", row->name, collective_name(coll), n,
		    (int)status, frac_double(rate), (long long)best);
	ctx->error = (Error){ .status = OK };
	arena_release(&ctx->run, run);
	arena_release(&ctx->scratch, scratch);
	return right;
}

static int
check_orders(Ctx *ctx, struct machine *m)
{
	static const char *const name[] = { "chain", "knomial", "double-binary-tree", "halving-doubling", "bruck",
		"bine", "hierarchical-ring" };
	int wrong = 0, rounds = quick_check() ? 3 : 12;
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < (int)(sizeof name / sizeof *name); i++) {
			const Algorithm *row;
			Collective coll = ALLREDUCE;
			if (make_random(ctx, m, 3 + below(4)) != OK || algorithm_find(ctx, name[i], coll, &row) != OK)
				return printf("not ok orders: %s\n", ctx->error.text), 1;
			wrong += !check_order(ctx, m, row, row->serves(BROADCAST) ? BROADCAST : REDUCESCATTER);
			wrong += !check_order(ctx, m, row, ALLREDUCE);
		}
	printf("%s orders of ranks: the best of all\n", wrong ? "not ok" : "ok");
	return wrong;
}

int
main(void)
{
	static struct machine machine[MOST + 1];
	int most = quick_check() ? 22 : MOST - 1, failed = 0;
	Ctx ctx;
	ctx_init(&ctx);
	for (int n = 2; n <= most; n++)
		if (make_star(&ctx, &machine[n], n) != OK)
			return 1;
	for (int i = 0; i < algorithm_count(); i++)
		if (algorithm_row(i)->classic && !algorithm_row(i)->classic->staged)
			failed += check_row(&ctx, machine, most, algorithm_row(i));
	failed += check_published(&ctx);
	failed += check_trees();
	failed += check_orders(&ctx, &machine[0]);
	ctx_free(&ctx);
	return failed != 0;
}
