/* One tree or two of an allreduce over 400 random clusters on rails that lost GPUs. The oracle tries all: each spanning
 * tree over servers with a rail for each edge, and each pair of them, of which a small linear program has the best
 * rates. Schedules are built and verified, which walks each tree and adds up the loads of links. */
#include "clusters.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/plan.h"
#include "quick.h"
#include "random.h"
#include "schedule/schedule.h"

#include <string.h>

enum { CLUSTERS = 400, SERVERS = 4, RAILS = 3, ENDS = SERVERS * RAILS, MOST = 1024, RATE = 25 };

/* Edges of a tree at each GPU. */
struct ends {
	int most, at[ENDS];
};

static struct ends tree[MOST];
static int n_trees, failures;

/* ---- all trees ---- */

static void
add_tree(const int *ends)
{
	struct ends *new = &tree[n_trees];
	*new = (struct ends){ 0 };
	memcpy(new->at, ends, sizeof new->at);
	for (int i = 0; i < ENDS; i++)
		new->most = new->at[i] > new->most ? new->at[i] : new->most;
	for (int t = 0; t < n_trees; t++)
		if (memcmp(tree[t].at, new->at, sizeof new->at) == 0)
			return;
	n_trees++;
}

/* Edges from number `from` on, of all pairs of servers and rails. part: of each server, those that are joined. */
static void
list_trees(int servers, const bool *has, int from, int left, const int *part, int *ends)
{
	int all = servers * servers * RAILS;
	if (left == 0)
		add_tree(ends);
	for (int i = from; i < all && left > 0; i++) {
		int a = i / (servers * RAILS), b = i / RAILS % servers, g = i % RAILS, joined[SERVERS];
		if (a >= b || part[a] == part[b] || !has[a * RAILS + g] || !has[b * RAILS + g])
			continue;
		for (int s = 0; s < servers; s++)
			joined[s] = part[s] == part[b] ? part[a] : part[s];
		ends[a * RAILS + g]++;
		ends[b * RAILS + g]++;
		list_trees(servers, has, i + 1, left - 1, joined, ends);
		ends[a * RAILS + g]--;
		ends[b * RAILS + g]--;
	}
}

/* The highest x + y with a x + b y <= RATE for all ends a, b. */
static double
best_of_two(const struct ends *one, const struct ends *other)
{
	double best = 0;
	for (int i = 0; i < ENDS; i++)
		for (int k = i; k < ENDS; k++) {
			double a = one->at[i], b = other->at[i], c = one->at[k], d = other->at[k], x = 0, y = 0;
			double det = a * d - b * c;
			if (det != 0) {
				x = RATE * (d - b) / det;
				y = RATE * (a - c) / det;
			} else if (b > 0 && a == 0)
				y = RATE / b;
			bool fits = x >= -1e-9 && y >= -1e-9;
			for (int e = 0; e < ENDS && fits; e++)
				fits = one->at[e] * x + other->at[e] * y <= RATE + 1e-9;
			best = fits && x + y > best ? x + y : best;
		}
	return best;
}

static double
best_rate(int most)
{
	double best = 0;
	for (int t = 0; t < n_trees; t++)
		best = best > (double)RATE / tree[t].most ? best : (double)RATE / tree[t].most;
	for (int t = 0; t < n_trees && most > 1; t++)
		for (int u = t; u < n_trees; u++)
			if ((double)RATE / tree[t].most + (double)RATE / tree[u].most > best + 1e-9) {
				double two = best_of_two(&tree[t], &tree[u]);
				best = two > best ? two : best;
			}
	return best;
}

/* ---- plans ---- */

/* The rate of a plan, GB/s; 0: there is none. */
static double
plan_rate_of(Ctx *ctx, const Topology *topo, int most)
{
	Ask ask = { .coll = ALLREDUCE, .root = -1, .packing = PACKING_EXACT, .tolerance = FRAC_ZERO };
	Symmetry *none;
	Bound bound;
	Packing *pack;
	Schedule *sched;
	Text text = { 0 };
	Frac rate;
	ask.max_trees = most;
	must(ctx, topo_symmetry(ctx, topo, -1, SYMMETRY_NONE, &none));
	must(ctx, bound_compute(ctx, topo, none, ALLREDUCE, -1, &bound));
	must(ctx, pack_cluster_few(ctx, topo, &ask, &pack));
	if (!pack)
		return 0;
	must(ctx, pack_check(ctx, topo, pack));
	failures += pack->n_trees > most || !pack_rate(pack, ALLREDUCE, topo->n_ranks, &rate);
	must(ctx, sched_build(ctx, topo, &bound, &ask, "trees", pack, &sched));
	sched_write_json(sched, &text);
	must(ctx, sched_read(ctx, "x", text.data, text.size, &sched));
	must(ctx, sched_verify(ctx, "x", sched));
	text_free(&text);
	return frac_double(rate) / 1e9;
}

/* *counts: clusters with a plan; those at the optimum. *sum: of rates by the optimum. */
static void
check_cluster(int number, int counts[2], double *sum)
{
	int servers = 3 + number % 2, rails = 2 + below(2), gpu[ENDS], n = 0, ends[ENDS] = { 0 }, part[SERVERS];
	int most = 1 + number / 2 % 2;
	bool has[ENDS] = { false };
	char line[64];
	Ctx ctx;
	Topology *topo;
	for (int s = 0; s < servers; s++) {
		int kept = below(rails);
		part[s] = s;
		for (int g = 0; g < rails; g++)
			if (g == kept || below(4) > 0) {
				gpu[n++] = s * rails + g;
				has[s * RAILS + g] = true;
			}
	}
	snprintf(line, sizeof line, "server:%d gpu:%d switch:300 net:%d rails", servers, rails, RATE);
	ctx_init(&ctx);
	read_cluster(&ctx, line, gpu, n, &topo);
	if (topo) {
		n_trees = 0;
		list_trees(servers, has, 0, servers - 1, part, ends);
		double optimum = best_rate(most), rate = plan_rate_of(&ctx, topo, most);
		counts[0]++;
		counts[1] += rate >= optimum * (1 - 1e-9);
		*sum += optimum > 0 ? rate / optimum : 0;
		if (rate > optimum * (1 + 1e-9)) {
			printf("# %s, %d GPUs left, %d trees: %g GB/s, of all trees at most %g\n", line, n, most, rate,
			    optimum);
			failures++;
		}
	}
	ctx_free(&ctx);
}

int
main(void)
{
	static const int reached[] = { 100, 65 };	/* percent that are at the optimum, of one tree, of two */
	int clusters = quick_check() ? CLUSTERS / 2 : CLUSTERS, counts[2][2] = { { 0 } };
	double sum[2] = { 0 };
	for (int i = 0; i < clusters; i++)
		check_cluster(i, counts[i / 2 % 2], &sum[i / 2 % 2]);
	for (int i = 0; i < 2; i++) {
		printf("# %d trees: %d of %d at the optimum, on average %.4f of it\n", i + 1, counts[i][1],
		    counts[i][0], sum[i] / counts[i][0]);
		failures += counts[i][1] * 100 < counts[i][0] * reached[i];
	}
	return report(failures, "few trees over rails");
}
