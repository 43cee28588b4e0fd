/* The fewest trees of a pool that reach a rate, over small machines, against trying everything: up to four trees whose
 * links are used once have weights in units of 1, 1/2 or 1/3 of a link of 1 (by Cramer's rule; the largest determinant
 * of a matrix of 0 and 1 is 1, 1, 2 and 3 for 1 to 4 rows). */
#include "plan/pack/pool/pool.h"
#include "quick.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { MACHINES = 1600, MOST = 5, MOST_POOL = 9, MOST_TREES = 4, LINK = 1000 };

struct machine {
	Topology topo;
	Vertex vertex[MOST];
	Link link[MOST * MOST];
	int number[MOST][MOST];	/* of a link */
	Tree tree[MOST_POOL];
	Edge edge[MOST_POOL][MOST];
	int64_t weight[MOST_POOL];
	Packing pool;
};

static int room[MOST * MOST];
static int failures;

static void
ok(bool right, int machine, const char *what)
{
	if (!right)
		printf("# machine %d: not so: %s\n", machine, what);
	failures += !right;
}

static Status
make(Ctx *ctx, struct machine *m)
{
	int n = 3 + below(MOST - 2), widest = 1 + below(4);
	memset(m, 0, sizeof *m);
	m->topo = (Topology){ .name = "machine", .n_ranks = n, .n_vertices = n, .vertex = m->vertex, .link = m->link };
	for (int a = 0; a < n; a++) {
		m->vertex[a] = (Vertex){ .id = "v", .kind = VERTEX_GPU, .node = 0 };
		for (int b = 0; b < n; b++) {
			if (a == b)
				continue;
			m->number[a][b] = m->topo.n_links;
			m->link[m->topo.n_links++] = (Link){ .from = a, .to = b, .count = 1,
				.capacity = LINK * (1 + below(widest)) };
		}
	}
	m->pool = (Packing){ .tree = m->tree, .weight = m->weight, .n_trees = 2 + below(MOST_POOL - 1),
		.unit = FRAC_ONE };
	for (int t = 0; t < m->pool.n_trees; t++) {
		int order[MOST] = { 0 };
		m->weight[t] = 1;
		m->tree[t] = (Tree){ .n_down = n - 1, .down = m->edge[t] };
		for (int v = 1; v < n; v++) {
			int at = 1 + below(v);
			order[v] = order[at];
			order[at] = v;
		}
		for (int v = 1; v < n; v++) {
			int from = order[below(v)];
			m->edge[t][v - 1] = (Edge){ .src = from, .dst = order[v], .n_links = 1,
				.link = &m->number[from][order[v]] };
		}
	}
	return topo_index(ctx, &m->topo);
}

/* Do `trees` of the trees from t on have this many units together, in what is left of the links? */
static bool
any_reach(const struct machine *m, int t, int trees, int units)
{
	if (units <= 0)
		return true;
	if (trees == 0 || t == m->pool.n_trees)
		return false;
	if (any_reach(m, t + 1, trees, units))
		return true;
	int most = units, w = 0;
	bool reach = false;
	for (int e = 0; e < m->tree[t].n_down; e++)
		most = room[*m->edge[t][e].link] < most ? room[*m->edge[t][e].link] : most;
	for (; w < most && !reach; w++) {
		for (int e = 0; e < m->tree[t].n_down; e++)
			room[*m->edge[t][e].link]--;
		reach = any_reach(m, t + 1, trees - 1, units - w - 1);
	}
	for (int e = 0; e < m->tree[t].n_down; e++)
		room[*m->edge[t][e].link] += w;
	return reach;
}

/* MOST_TREES + 1: more. rate: in links. */
static int
fewest(const struct machine *m, int rate)
{
	for (int trees = 1; trees <= MOST_TREES; trees++) {
		for (int parts = 1; parts <= 3; parts++) {
			for (int l = 0; l < m->topo.n_links; l++)
				room[l] = (int)(m->link[l].capacity / LINK) * parts;
			if (any_reach(m, 0, trees, rate * parts))
				return trees;
		}
	}
	return MOST_TREES + 1;
}

static bool
fits(const struct machine *m, const Packing *pack, int rate)
{
	Wide sum = 0, load[MOST * MOST] = { 0 };
	for (int t = 0; t < pack->n_trees; t++) {
		sum += pack->weight[t];
		for (int e = 0; e < pack->tree[t].n_down; e++)
			load[*pack->tree[t].down[e].link] += pack->weight[t];
	}
	for (int l = 0; l < m->topo.n_links; l++)
		if (load[l] * pack->unit.num > (Wide)m->link[l].capacity * pack->unit.den)
			return false;
	return sum * pack->unit.num >= (Wide)rate * LINK * pack->unit.den;
}

/* Returns the fewest trees. */
static int
check(int machine)
{
	static struct machine m;
	Packing *few = NULL;
	bool searched;
	Ctx ctx;
	ctx_init(&ctx);
	if (make(&ctx, &m) != OK)
		exit(1);
	int rate = 1 + below(5), want = fewest(&m, rate);
	Frac target = { rate * LINK, 1 };
	ok(pack_sparsest(&ctx, &m.topo, target, &m.pool, MOST_TREES + 1, &searched, &few) == OK, machine,
	    "it ends well");
	ok(searched, machine, "small pools are searched");
	ok(few ? few->n_trees == want : want > MOST_TREES, machine, "as few as there are");
	ok(!few || fits(&m, few, rate), machine, "at the rate, and no link carries more than it can");
	ctx_free(&ctx);
	return want;
}

int
main(void)
{
	int machines = quick_check() ? MACHINES / 2 : MACHINES, of[MOST_TREES + 2] = { 0 };
	for (int machine = 0; machine < machines; machine++)
		of[check(machine)]++;
	for (int trees = 1; trees <= MOST_TREES; trees++)
		ok(of[trees] > 0, machines, "each number of trees is the fewest of some");
	printf("# %d machines: 1 to 4 trees: %d, %d, %d, %d; more, or none: %d\n", machines, of[1], of[2], of[3], of[4],
	    of[MOST_TREES + 1]);
	return report(failures, "the fewest trees of a pool");
}
