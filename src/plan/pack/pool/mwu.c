/* Fractional packing of trees by multiplicative weights (Blink 3.2; Garg and Koenemann 2007, fig. 1).
 *
 * Every link has a weight y, at first 1 / capacity. In each round the cheapest tree under y gets as much flow as its
 * bottleneck link can carry, and the weight of each of its links l grows by the factor 1 + step * uses * flow /
 * capacity(l): so later trees avoid links that are full already. At the end all flow is scaled down by the worst
 * congestion.
 *
 * Two proofs of the gap, whichever comes first, end the rounds: the bound of the collective, and weak duality, since
 * sum (capacity * y) / (cost of the cheapest tree under y) bounds every packing of such trees. */
#include "base/array.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "plan/pack/pool/pool.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tree found, with its flow. */
struct column {
	uint64_t hash;
	int n_links;		/* in use, with repetition */
	int *link;		/* ascending */
	Tree tree;
	double flow;
};

struct mwu {
	Ctx *ctx;
	const Topology *topo;
	const Ask *ask;
	Cheapest tree;		/* the current one */
	bool one_root;		/* each round looks at pairs of one root, the next one */
	int root;
	double *weight;		/* y, of each link */
	double *load;		/* flow over each link, unscaled */
	int64_t *price;
	struct column *column;
	int n_columns, room;
	int *table, table_size;	/* open hashing of columns by hash */
};

/* ---- one round ---- */

static void
set_prices(struct mwu *m)
{
	double top = 0;
	for (int l = 0; l < m->topo->n_links; l++)
		top = m->weight[l] > top ? m->weight[l] : top;
	/* Integers for the searches: at least 1, so that of equal routes the shorter is cheaper. */
	double scale = ldexp(1, SEARCH_PRICE_BITS - 1) / top;
	for (int l = 0; l < m->topo->n_links; l++)
		m->price[l] = 1 + (int64_t)(m->weight[l] * scale);
}

/* ---- columns ---- */

static void
sort_ints(int *list, int n)
{
	for (int gap = n / 2; gap > 0; gap /= 2)
		for (int i = gap; i < n; i++)
			for (int j = i; j >= gap && list[j - gap] > list[j]; j -= gap) {
				int t = list[j];
				list[j] = list[j - gap];
				list[j - gap] = t;
			}
}

static Status
new_column(struct mwu *m, uint64_t hash, const int *link, int n_links)
{
	TRY(GROW(m->ctx, m->column, m->n_columns, m->room));
	struct column *c = &m->column[m->n_columns];
	*c = (struct column){ .hash = hash, .n_links = n_links };
	TRY(NEW(m->ctx, c->link, n_links));
	memcpy(c->link, link, (size_t)n_links * sizeof *link);
	TRY(cheapest_tree(&m->tree, false, &c->tree));
	m->n_columns++;
	return OK;
}

static Status
grow_table(struct mwu *m)
{
	int size = m->table_size ? 2 * m->table_size : 256, *table;
	TRY(TEMP(m->ctx, table, size));
	memset(table, -1, (size_t)size * sizeof *table);
	for (int c = 0; c < m->n_columns; c++) {
		int at = (int)(m->column[c].hash & (uint64_t)(size - 1));
		while (table[at] >= 0)
			at = (at + 1) & (size - 1);
		table[at] = c;
	}
	m->table = table;
	m->table_size = size;
	return OK;
}

/* The column of the current tree. Two trees over the same links load them equally: one column is enough. */
static Status
column_of(struct mwu *m, struct column **out)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	int n = 0, *link;
	uint64_t hash = 14695981039346656037u;	/* FNV-1a */
	for (int i = 0; i < m->tree.n_used; i++)
		n += m->tree.uses[m->tree.used[i]];
	if (2 * m->n_columns >= m->table_size) {
		TRY(grow_table(m));
		mark = arena_mark(&m->ctx->scratch);
	}
	TRY(TEMP(m->ctx, link, n));
	n = 0;
	for (int i = 0; i < m->tree.n_used; i++)
		for (int k = 0; k < m->tree.uses[m->tree.used[i]]; k++)
			link[n++] = m->tree.used[i];
	sort_ints(link, n);
	for (int i = 0; i < n; i++)
		hash = (hash ^ (uint64_t)link[i]) * 1099511628211u;
	int at = (int)(hash & (uint64_t)(m->table_size - 1));
	for (; m->table[at] >= 0; at = (at + 1) & (m->table_size - 1)) {
		const struct column *c = &m->column[m->table[at]];
		if (c->hash == hash && c->n_links == n && memcmp(c->link, link, (size_t)n * sizeof *link) == 0)
			break;
	}
	if (m->table[at] < 0) {
		m->table[at] = m->n_columns;
		TRY(new_column(m, hash, link, n));
	}
	*out = &m->column[m->table[at]];
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

/* ---- the rounds ---- */

static double
capacity_of(const struct mwu *m, int l)
{
	return (double)m->topo->link[l].capacity;
}

struct gap {
	double rate;		/* of the packing so far, scaled to fit */
	double congestion;	/* what all flow is divided by */
	double best_dual;	/* no packing of such trees has a higher rate */
};

static Status
push_round(struct mwu *m, double step, double *flow_sum, struct gap *gap)
{
	struct column *c;
	double bottleneck = INFINITY, volume = 0;
	int64_t cost;
	set_prices(m);
	m->root = (m->root + 1) % m->topo->n_ranks;
	cheapest_price(&m->tree, m->price);
	TRY(cheapest_find(&m->tree, collective_demand(m->ask->coll, m->topo->n_ranks, m->ask->root, 0), &cost));
	if (cost < 0)
		return fail(m->ctx, INTERNAL, "%s: no tree over connected ranks", m->topo->name);
	for (int i = 0; i < m->tree.n_used; i++) {
		int l = m->tree.used[i];
		double carries = capacity_of(m, l) / m->tree.uses[l];
		bottleneck = carries < bottleneck ? carries : bottleneck;
	}
	for (int l = 0; l < m->topo->n_links; l++)
		volume += capacity_of(m, l) * (double)m->price[l];
	/* The tree of a search that ran out of time, or searched from one root, is no dual. */
	if (!m->ctx->late && !m->one_root && volume / (double)cost < gap->best_dual)
		gap->best_dual = volume / (double)cost;
	TRY(column_of(m, &c));
	c->flow += bottleneck;
	*flow_sum += bottleneck;
	for (int i = 0; i < m->tree.n_used; i++) {
		int l = m->tree.used[i];
		m->load[l] += bottleneck * m->tree.uses[l];
		m->weight[l] *= 1 + step * m->tree.uses[l] * bottleneck / capacity_of(m, l);
		double congestion = m->load[l] / capacity_of(m, l);
		gap->congestion = congestion > gap->congestion ? congestion : gap->congestion;
		if (m->weight[l] > 1e200)
			for (int k = 0; k < m->topo->n_links; k++)
				m->weight[k] *= 1e-150;
	}
	gap->rate = *flow_sum / gap->congestion;
	return OK;
}

/* 0 for variant 0; else a number of [0, 1) that depends on the variant and the link only. */
static double
random_weight(int variant, int l)
{
	return variant ? hash_unit((uint64_t)variant, (uint64_t)l) : 0;
}

/* Rounds with one step size, from the start. False in *done: the gap is still above epsilon when they are used up. */
static Status
run_phase(struct mwu *m, double step, int rounds, double epsilon, struct gap *gap, bool *done)
{
	double flow_sum = 0;
	gap->congestion = 0;
	for (int l = 0; l < m->topo->n_links; l++) {
		m->weight[l] = 1e9 / capacity_of(m, l) * (1 + random_weight(m->ask->variant, l));
		m->load[l] = 0;
	}
	for (int c = 0; c < m->n_columns; c++)
		m->column[c].flow = 0;
	for (*done = false; !*done && rounds > 0; rounds--) {
		if (rounds % 16 == 0 && progress(m->ctx, "mwu: %.4f of the optimum", gap->rate / gap->best_dual) <= 0) {
			*done = gap->congestion > 0;
			if (*done)
				break;
		}
		if ((*done = gap->congestion > 0 && m->ctx->late))
			break;
		TRY(push_round(m, step, &flow_sum, gap));
		/* The linear program starts from these trees, and needs no more to start from. */
		*done = gap->rate >= (1 - epsilon) * gap->best_dual
		    || (m->ask->packing == PACKING_EXACT && m->n_columns > LIMIT_ILP_TREES);
	}
	return OK;
}

static int
by_flow(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x < *y) - (*x > *y);
}

/* The flow that LIMIT_MWU_TREES columns have at least; 0 if there are no more. */
static double
lightest_kept(struct mwu *m)
{
	double *flow = m->n_columns > LIMIT_MWU_TREES
	    ? arena_array(&m->ctx->scratch, (size_t)m->n_columns, sizeof *flow) : NULL;
	if (!flow)
		return 0;
	for (int c = 0; c < m->n_columns; c++)
		flow[c] = m->column[c].flow;
	qsort(flow, (size_t)m->n_columns, sizeof *flow, by_flow);
	return flow[LIMIT_MWU_TREES - 1];
}

/* Flows, scaled to fit, as whole multiples of a small part of their sum, rounded down. */
static Status
to_packing(struct mwu *m, const struct gap *gap, Packing **out)
{
	Packing *pack;
	TRY(pack_new(m->ctx, m->n_columns, false, &pack));
	pack->unit = pack_unit(gap->rate, 1);
	double least = lightest_kept(m);
	for (int c = 0; c < m->n_columns && pack->n_trees < LIMIT_MWU_TREES; c++) {
		if (m->column[c].flow < least)
			continue;
		int64_t weight = (int64_t)(m->column[c].flow / gap->congestion / frac_double(pack->unit) * (1 - 1e-9));
		if (weight < 1)
			continue;
		pack->tree[pack->n_trees] = m->column[c].tree;
		pack->weight[pack->n_trees++] = weight;
	}
	TRY(pack_check(m->ctx, m->topo, pack));
	*out = pack;
	return OK;
}

/* Where a search at each root, of 100 ns for each hop, takes too much of the time, rounds look at one root each: many
 * rounds with good pairs are better than a few with the best. */
static void
spare_time(struct mwu *m)
{
	enum { ROUNDS = 50 };
	int left = progress(m->ctx, "multiplicative weights");
	int64_t round = 2 * (int64_t)m->tree.n_roots * m->tree.search.n_hops / 10000;
	if (!m->tree.paired || left == INT_MAX || round * ROUNDS <= left)
		return;
	m->one_root = m->ctx->cut_short = true;
	m->tree.n_roots = 1;
	m->tree.roots = &m->root;
}

Status
pack_mwu(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out, Frac *optimum)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct mwu m = { .ctx = ctx, .topo = topo, .ask = ask };
	struct gap gap = { .best_dual = frac_double(bound->rate) };
	double epsilon = frac_double(ask->epsilon), step = epsilon;
	bool done = false;
	int rounds = 0;
	TRY(cheapest_new(ctx, topo, NULL, &m.tree));
	m.tree.hurries = true;
	spare_time(&m);
	TRY(TEMP(ctx, m.weight, topo->n_links));
	TRY(TEMP(ctx, m.load, topo->n_links));
	TRY(TEMP(ctx, m.price, topo->n_links));
	/* Steps of epsilon reach the gap nearly always; where many links tie, the theory needs smaller ones. */
	for (; !done; step /= 2) {
		int phase = (int)fmin(64 + topo->n_links / (step * step), LIMIT_MWU_ROUNDS);
		if (rounds + phase > LIMIT_MWU_ROUNDS)
			break;
		TRY(run_phase(&m, step, phase, epsilon, &gap, &done));
		rounds += phase;
	}
	TRY(to_packing(&m, &gap, out));
	if ((*out)->n_trees == 0)
		return fail(ctx, INTERNAL, "%s: no tree is heavy enough", topo->name);
	/* Doubles carry 15 digits; the bound is exact. */
	*optimum = bound->rate;
	if (gap.best_dual < frac_double(bound->rate) * (1 - 1e-9))
		*optimum = (Frac){ (int64_t)(gap.best_dual * (1 + 1e-9)) + 1, 1 };
	log_verbose(ctx, "mwu: %d %s, %.6g GB/s = %.6g links of %.6g GB/s, within %.3g of the optimum", (*out)->n_trees,
	    (*out)->n_trees == 1 ? "tree" : "trees", gap.rate / 1e9, gap.rate / (double)topo_link_unit(topo),
	    (double)topo_link_unit(topo) / 1e9, fmax(1 - gap.rate / gap.best_dual, 0));
	arena_release(&ctx->scratch, mark);
	return OK;
}
