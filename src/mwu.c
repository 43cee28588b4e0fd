/* Fractional packing of trees by multiplicative weights (Blink 3.2; Garg and Koenemann 2007, fig. 1).
 *
 * Every link has a weight y, at first 1 / capacity. In each round the cheapest tree under y gets as much flow as its
 * narrowest link carries, and each of its links l becomes dearer by the factor 1 + step * uses * flow / capacity(l): so
 * trees turn away from links that are full already. At the end all flow is scaled down by the worst congestion.
 *
 * Two proofs of the gap, whichever comes first, end the rounds: the bound of the collective, and weak duality, since
 * sum (capacity * y) / (cost of the cheapest tree under y) bounds every packing of such trees.
 *
 * One tree of an allreduce serves both phases: data goes up one direction of its edges and down the other. Its cost
 * does not depend on its root, so the cheapest is a minimum spanning tree; it is rooted at its centre. On full-duplex links
 * nothing is lost by that. Where some link has no equal in the other direction, a tree is an arborescence into a rank and
 * another one out of it, the cheapest over all ranks. */
#include "passes.h"
#include "search.h"

#include <math.h>
#include <string.h>

/* A tree found, with its flow. hop: of each rank towards the root's side, see `column_of`. */
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
	const Request *ask;
	Search search;
	bool paired;		/* allreduce over links that are not alike in both directions */
	int root;		/* of the tree at hand, if paired */
	int *into, *out_of;	/* hops of other roots, if paired */
	double *weight;		/* y, of each link */
	double *load;		/* flow over each link, unscaled */
	int64_t *price;
	int *there, *back;	/* hops of the tree at hand */
	int *uses, *used, n_used;	/* of each link by the tree at hand; which are not 0 */
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

static Status
use_route(struct mwu *m, int hop)
{
	int link[LIMIT_ROUTE_LINKS], n = search_route(&m->search, hop, link);
	if (n < 0)
		return fail(m->ctx, LIMIT, "%s: a route from %s to %s needs more than %d links", m->topo->name,
		    m->topo->vertex[m->search.hop[hop].src].id, m->topo->vertex[m->search.hop[hop].dst].id,
		    LIMIT_ROUTE_LINKS);
	for (int i = 0; i < n; i++)
		if (m->uses[link[i]]++ == 0)
			m->used[m->n_used++] = link[i];
	return OK;
}

static bool
is_mirrored(const Topology *topo)
{
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int64_t there = 0, back = 0;
		for (int i = topo->first_out[link->from]; i < topo->first_out[link->from + 1]; i++)
			there += topo->link[topo->out[i]].to == link->to ? topo->link[topo->out[i]].capacity : 0;
		for (int i = topo->first_out[link->to]; i < topo->first_out[link->to + 1]; i++)
			back += topo->link[topo->out[i]].to == link->from ? topo->link[topo->out[i]].capacity : 0;
		if (there != back)
			return false;
	}
	return true;
}

/* The cheapest pair of arborescences into and out of one rank. */
static int64_t
cheapest_pair(struct mwu *m)
{
	int64_t least = -1;
	for (int r = 0; r < m->topo->n_ranks; r++) {
		int64_t up = search_arborescence(&m->search, r, true, m->into);
		int64_t down = search_arborescence(&m->search, r, false, m->out_of);
		if (up < 0 || down < 0 || (least >= 0 && up + down >= least))
			continue;
		least = up + down;
		m->root = r;
		memcpy(m->there, m->into, (size_t)m->topo->n_ranks * sizeof *m->there);
		memcpy(m->back, m->out_of, (size_t)m->topo->n_ranks * sizeof *m->back);
	}
	return least;
}

/* The cheapest tree under the prices: its hops in `there` and, for allreduce, in `back`; -1: no hop. */
static Status
cheapest_tree(struct mwu *m)
{
	int n = m->topo->n_ranks;
	int64_t cost;
	memset(m->there, -1, (size_t)n * sizeof *m->there);
	memset(m->back, -1, (size_t)n * sizeof *m->back);
	if (m->paired)
		cost = cheapest_pair(m);
	else if (m->ask->coll == ALLREDUCE)
		cost = search_spanning_tree(&m->search, m->there, m->back);
	else
		cost = search_arborescence(&m->search, m->ask->root, m->ask->coll == REDUCE, m->there);
	if (cost < 0)
		return fail(m->ctx, INTERNAL, "%s: no tree over connected ranks", m->topo->name);
	for (int i = 0; i < m->n_used; i++)
		m->uses[m->used[i]] = 0;
	m->n_used = 0;
	for (int i = 0; i < n; i++) {
		if (m->there[i] >= 0)
			TRY(use_route(m, m->there[i]));
		if (m->back[i] >= 0)
			TRY(use_route(m, m->back[i]));
	}
	return OK;
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
edge_of_hop(struct mwu *m, int hop, Edge *out)
{
	int link[LIMIT_ROUTE_LINKS], n = search_route(&m->search, hop, link), *copy;
	TRY(NEW(m->ctx, copy, n));
	memcpy(copy, link, (size_t)n * sizeof *copy);
	*out = (Edge){ m->search.hop[hop].src, m->search.hop[hop].dst, n, copy };
	return OK;
}

static Status
collect_edges(struct mwu *m, const int *hop, Edge **out, int *n_edges)
{
	int n = m->topo->n_ranks;
	*n_edges = 0;
	TRY(NEW(m->ctx, *out, n));
	for (int i = 0; i < n; i++)
		if (hop[i] >= 0)
			TRY(edge_of_hop(m, hop[i], &(*out)[(*n_edges)++]));
	return OK;
}

static Status
tree_at_hand(struct mwu *m, Tree *out)
{
	int n = m->topo->n_ranks, n_there, n_back;
	Edge *there, *back;
	TRY(collect_edges(m, m->there, &there, &n_there));
	TRY(collect_edges(m, m->back, &back, &n_back));
	if (!m->paired)
		return tree_arrange(m->ctx, n, m->ask->coll, m->ask->root, there, back, n_there, out);
	Tree up, down;
	TRY(tree_arrange(m->ctx, n, REDUCE, m->root, there, NULL, n_there, &up));
	TRY(tree_arrange(m->ctx, n, BROADCAST, m->root, back, NULL, n_back, &down));
	*out = (Tree){ .root = m->root, .n_down = down.n_down, .n_up = up.n_up, .down = down.down, .up = up.up };
	return OK;
}

static Status
new_column(struct mwu *m, uint64_t hash, const int *link, int n_links)
{
	if (m->n_columns == m->room) {
		struct column *grown;
		TRY(NEW(m->ctx, grown, 2 * (size_t)m->room + 64));
		if (m->n_columns)
			memcpy(grown, m->column, (size_t)m->n_columns * sizeof *grown);
		m->column = grown;
		m->room = 2 * m->room + 64;
	}
	struct column *c = &m->column[m->n_columns];
	*c = (struct column){ .hash = hash, .n_links = n_links };
	TRY(NEW(m->ctx, c->link, n_links));
	memcpy(c->link, link, (size_t)n_links * sizeof *link);
	TRY(tree_at_hand(m, &c->tree));
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

/* The column of the tree at hand. Two trees over the same links are the same tree, or as good as each other. */
static Status
column_of(struct mwu *m, struct column **out)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	int n = 0, *link;
	uint64_t hash = 14695981039346656037u;	/* FNV-1a */
	for (int i = 0; i < m->n_used; i++)
		n += m->uses[m->used[i]];
	if (2 * m->n_columns >= m->table_size) {
		TRY(grow_table(m));
		mark = arena_mark(&m->ctx->scratch);
	}
	TRY(TEMP(m->ctx, link, n));
	n = 0;
	for (int i = 0; i < m->n_used; i++)
		for (int k = 0; k < m->uses[m->used[i]]; k++)
			link[n++] = m->used[i];
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
	double narrowest = INFINITY, cost = 0, volume = 0;
	set_prices(m);
	search_price(&m->search, m->price);
	TRY(cheapest_tree(m));
	for (int i = 0; i < m->n_used; i++) {
		int l = m->used[i];
		double carries = capacity_of(m, l) / m->uses[l];
		narrowest = carries < narrowest ? carries : narrowest;
		cost += (double)m->price[l] * m->uses[l];
	}
	for (int l = 0; l < m->topo->n_links; l++)
		volume += capacity_of(m, l) * (double)m->price[l];
	if (volume / cost < gap->best_dual)
		gap->best_dual = volume / cost;
	TRY(column_of(m, &c));
	c->flow += narrowest;
	*flow_sum += narrowest;
	for (int i = 0; i < m->n_used; i++) {
		int l = m->used[i];
		m->load[l] += narrowest * m->uses[l];
		m->weight[l] *= 1 + step * m->uses[l] * narrowest / capacity_of(m, l);
		double congestion = m->load[l] / capacity_of(m, l);
		gap->congestion = congestion > gap->congestion ? congestion : gap->congestion;
		if (m->weight[l] > 1e200)
			for (int k = 0; k < m->topo->n_links; k++)
				m->weight[k] *= 1e-150;
	}
	gap->rate = *flow_sum / gap->congestion;
	return OK;
}

/* 0 for variant 0; else a number of [0, 1), always the same for the same link: splitmix64. */
static double
lean(int variant, int l)
{
	uint64_t z = ((uint64_t)variant << 32 | (uint64_t)l) * 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return variant ? (double)(z >> 11) / 9007199254740992.0 : 0;
}

/* Rounds with one step size, from the start. False in *done: the gap is still above epsilon when they are used up. */
static Status
run_phase(struct mwu *m, double step, int rounds, double epsilon, struct gap *gap, bool *done)
{
	double flow_sum = 0;
	gap->congestion = 0;
	for (int l = 0; l < m->topo->n_links; l++) {
		m->weight[l] = 1e9 / capacity_of(m, l) * (1 + lean(m->ask->variant, l));
		m->load[l] = 0;
	}
	for (int c = 0; c < m->n_columns; c++)
		m->column[c].flow = 0;
	for (*done = false; !*done && rounds > 0; rounds--) {
		TRY(push_round(m, step, &flow_sum, gap));
		*done = gap->rate >= (1 - epsilon) * gap->best_dual;
	}
	return OK;
}

/* Flows, scaled to fit, as whole multiples of 1 / 2^20 of their sum, rounded down. */
static Status
to_packing(struct mwu *m, const struct gap *gap, Packing **out)
{
	enum { BITS = 20 };
	Packing *pack;
	double unit = gap->rate / (1 << BITS);
	TRY(NEW(m->ctx, pack, 1));
	TRY(NEW(m->ctx, pack->tree, m->n_columns));
	TRY(NEW(m->ctx, pack->weight, m->n_columns));
	/* A unit below 2^32 bytes/s keeps 20 bits behind the point; the last one is given to rounding. */
	int fine = unit < 4294967296.0 ? 20 : 0;
	frac_make((Wide)(unit * (1 << fine)) + 1, (Wide)1 << fine, &pack->unit);
	for (int c = 0; c < m->n_columns; c++) {
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

Status
pack_mwu(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out, Frac *optimum)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct mwu m = { .ctx = ctx, .topo = topo, .ask = ask };
	struct gap gap = { .best_dual = frac_double(bound->rate) };
	double epsilon = frac_double(ask->epsilon), step = epsilon;
	bool done = false;
	int rounds = 0;
	TRY(search_new(ctx, topo, &m.search));
	TRY(TEMP(ctx, m.weight, topo->n_links));
	TRY(TEMP(ctx, m.load, topo->n_links));
	TRY(TEMP(ctx, m.price, topo->n_links));
	TRY(TEMP(ctx, m.uses, topo->n_links));
	TRY(TEMP(ctx, m.used, topo->n_links));
	TRY(TEMP(ctx, m.there, topo->n_ranks));
	TRY(TEMP(ctx, m.back, topo->n_ranks));
	TRY(TEMP(ctx, m.into, topo->n_ranks));
	TRY(TEMP(ctx, m.out_of, topo->n_ranks));
	m.paired = ask->coll == ALLREDUCE && !is_mirrored(topo);
	/* Steps of epsilon reach the gap nearly always; the theory wants smaller ones where many links tie. */
	for (; !done; step /= 2) {
		int phase = (int)fmin(64 + topo->n_links / (step * step), LIMIT_MWU_ROUNDS);
		if (rounds + phase > LIMIT_MWU_ROUNDS)
			return fail(ctx, LIMIT, "%s: no packing within epsilon %.3g of the optimum after %d rounds", topo->name,
			    epsilon, rounds);
		TRY(run_phase(&m, step, phase, epsilon, &gap, &done));
		rounds += phase;
	}
	TRY(to_packing(&m, &gap, out));
	/* Doubles carry 15 digits; the bound is exact. */
	*optimum = bound->rate;
	if (gap.best_dual < frac_double(bound->rate) * (1 - 1e-9))
		*optimum = (Frac){ (int64_t)(gap.best_dual * (1 + 1e-9)) + 1, 1 };
	talk(ctx, "mwu: %d trees, %.6g GB/s = %.6g links of %.6g GB/s, within %.3g of the optimum", (*out)->n_trees,
	    gap.rate / 1e9, gap.rate / (double)topo_link_unit(topo), (double)topo_link_unit(topo) / 1e9,
	    1 - gap.rate / gap.best_dual);
	arena_release(&ctx->scratch, mark);
	return OK;
}
