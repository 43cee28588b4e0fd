/* The fewest trees for a rate, proven, where the ranks have few enough spanning trees to try them all. Those of an
 * allreduce go down as they came up.
 *
 * Say that k trees reach the rate and no k - 1 do. The best weights for these k trees are a vertex of their own
 * linear program, so they solve M w = c, where M has k rows and entries of 0 and 1 (which trees use a full link) and
 * c counts physical links. By Cramer's rule all weights are whole multiples of 1 / D link, D = |det M|, and the
 * largest determinant of such a matrix is known: maxdet(k) = 1, 1, 2, 3, 5, 9, 32, 56, 144 for k = 1 to 9 (OEIS
 * A003432). So
 *
 *     for k = 1, 2, ...   for D = 1, 2, ... maxdet(k)   for all whole weights a_1 >= ... >= a_k with rate / D enough
 *
 * that are a vertex (vertex.c), a depth-first search that places one tree after the other either finds k trees or
 * proves that there are none.
 *
 * What keeps it short: every tree has n - 1 edges, so all links together may leave a slack S unused, their capacity
 * less (n - 1) * sum a. Of a residual capacity r the trees not yet placed can use no more than the largest sum of
 * some of their weights that is at most r. If what must stay unused exceeds S in total, the branch is cut off; and a
 * link whose use (or whose omission) would make it so is forbidden (or required) in the next tree. The first tree is
 * taken up to symmetry.
 *
 * A node of the search takes a fraction of a us. Trees that have all required rows and no forbidden one are looked up
 * as sets of bits (enumerate.c), and what a tree leaves of all cuts between the ranks is subtracted eight cuts at a
 * time.
 *
 * Then the same search over shallower trees only, until there are no k of them. */
#include "base/bits.h"
#include "plan/pack/few/mirrored.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_PROVEN = 9,		/* up to this number of trees max_det is the true maximum */
	MOST_SLACK = TREES_ROWS * MIRRORED_UNITS	/* no more is ever unused */
};

/* maxdet(k), and from 10 on no more than is of use: what is found with these is not called proven. */
static const int max_det[MIRRORED_PICKS + 1] = { 0, 1, 1, 2, 3, 5, 9, 32, 56, 144, 64, 48, 32 };

/* Cuts of few links first: most trees that overload a cut overload one of these. */
static int
by_links(const void *a, const void *b)
{
	const uint64_t *s = a, *t = b;
	int over = bits_count(*s) - bits_count(*t);
	return over ? over : (*s > *t) - (*s < *t);
}

/* Rows of the links that leave (reduce: enter) a side. */
static uint64_t
rows_crossing(const struct trees *all, unsigned side)
{
	uint64_t rows = 0;
	for (int l = 0; l < all->topo->n_links; l++) {
		bool from = side >> all->topo->link[l].from & 1, to = side >> all->topo->link[l].to & 1;
		if (all->coll == REDUCE ? to && !from : from && !to)
			rows |= UINT64_C(1) << all->row_of[l];
	}
	return rows;
}

static void
limit_depth(struct mirrored *f, int max_depth)
{
	f->max_depth = max_depth;
	memset(f->shallow, 0, (size_t)(TREES_WORDS * f->all.n_blocks) * sizeof *f->shallow);
	for (int t = 0; t < f->all.n; t++)
		f->shallow[t / 64] |= (uint64_t)(f->all.depth[t] <= max_depth) << t % 64;
}

/* Every tree leaves (reduce: enters) each side that holds the root (an allreduce's: crosses each cut) at least once. */
Status
mirrored_begin(struct mirrored *f, int max_depth)
{
	int n = f->all.topo->n_ranks, root = f->all.root < 0 ? 0 : f->all.root;
	for (unsigned side = 0; side < (1u << n) - 1; side++)
		if (side >> root & 1)
			f->crossing[f->n_cuts++] = rows_crossing(&f->all, side);
	qsort(f->crossing, (size_t)f->n_cuts, sizeof *f->crossing, by_links);
	/* The last cut once more, until lanes are full. */
	while (f->n_cuts % LANES && f->n_cuts > 0) {
		f->crossing[f->n_cuts] = f->crossing[f->n_cuts - 1];
		f->n_cuts++;
	}
	for (int c = 0; c < f->n_cuts; c++)
		for (uint64_t rest = f->crossing[c]; rest; rest &= rest - 1)
			f->crosses[__builtin_ctzll(rest)][c / LANES][c % LANES] = 1;
	TRY(TEMP(f->ctx, f->shallow, TREES_WORDS * f->all.n_blocks));
	limit_depth(f, max_depth);
	return OK;
}

/* What stays unused of a row, from the sums of the weights after tree j. */
static void
measure_choices(struct mirrored *f)
{
	bool sum[MIRRORED_UNITS + 1] = { true };
	int waste[MIRRORED_UNITS + 1];
	for (int j = f->k - 1; j >= 0; j--) {
		int w = f->weight[j];
		for (int r = 0, best = 0; r <= f->top; r++) {
			best = sum[r] ? r : best;
			waste[r] = r - best;
			int use = r >= w ? waste[r - w] : f->slack + 1;
			f->choice[j][r] = (struct choice){ (int16_t)waste[r], (int16_t)(use - waste[r]) };
		}
		for (int s = f->top; s >= w; s--)
			sum[s] = sum[s] || sum[s - w];
	}
}

/* The residual capacity of the cuts after a tree; false: less than the trees after it need. */
static bool
keep_cuts(struct mirrored *f, int j, uint64_t rows, int remaining)
{
	enum { EDGES = TREES_RANKS - 1 };	/* of a tree, the last of which may cross nothing */
	static const Lanes none[MIRRORED_CUTS / LANES];
	const Lanes *crosses[EDGES];
	int n = 0;
	int16_t w = (int16_t)f->weight[j], need = (int16_t)remaining;
	for (uint64_t rest = rows; rest; rest &= rest - 1)
		crosses[n++] = f->crosses[__builtin_ctzll(rest)];
	while (n < EDGES)
		crosses[n++] = none;
	for (int i = 0; i < f->n_cuts / LANES; i++) {
		Lanes times = crosses[0][i];
#pragma GCC unroll 8
		for (int e = 1; e < EDGES; e++)
			times += crosses[e][i];
		Lanes left = f->cut[j][i] - times * w;
		f->cut[j + 1][i] = left;
		if (lanes_any((Lanes)(left < need)))
			return false;
	}
	return true;
}

/* Of the rows, for the next tree: */
struct rows {
	uint64_t required, closed;	/* it has to use them, it may not */
	int skip;		/* units that stay unused if it uses none, */
	int16_t more[TREES_ROWS];	/* and how many more if it uses a row */
};

/* False: more than the slack stays unused whatever tree comes. */
static bool
find_rows(const struct mirrored *f, int j, struct rows *rows)
{
	int least = 0, spare;
	*rows = (struct rows){ 0 };
	for (int row = 0; row < f->all.n_rows; row++) {
		struct choice choice = f->choice[j][f->residual[j][row]];
		rows->more[row] = choice.more;
		rows->skip += choice.skip;
		least += choice.more < 0 ? choice.more : 0;
	}
	spare = f->slack - rows->skip - least;
	if (spare < 0)
		return false;
	for (int row = 0; row < f->all.n_rows; row++) {
		rows->closed |= (uint64_t)(rows->more[row] > spare) << row;
		rows->required |= (uint64_t)(-rows->more[row] > spare) << row;
	}
	return true;
}

/* Up to symmetry: the first tree is the first of its orbit, later ones of the same weight are in no earlier orbit,
 * and trees of equal weight ascend. */
static bool
is_redundant(const struct mirrored *f, int j, int t)
{
	if (j == 0)
		return f->all.orbit[t] != t;
	return f->weight[j] == f->weight[0] && (f->all.orbit[t] < f->pick[0] || t == f->pick[0]);
}

/* The residual capacities after tree t in place j; false: more than the slack stays unused, or less than `remaining`
 * units, which the later trees need, is left over a cut. */
static bool
subtract(struct mirrored *f, int j, int t, const struct rows *rows, int remaining)
{
	int unused = rows->skip;
	for (uint64_t rest = f->all.rows[t]; rest; rest &= rest - 1)
		unused += rows->more[__builtin_ctzll(rest)];
	if (unused > f->slack || !keep_cuts(f, j, f->all.rows[t], remaining))
		return false;
	memcpy(f->residual[j + 1], f->residual[j], sizeof f->residual[j]);
	for (uint64_t rest = f->all.rows[t]; rest; rest &= rest - 1)
		f->residual[j + 1][__builtin_ctzll(rest)] -= (uint8_t)f->weight[j];
	return true;
}

static void place(struct mirrored *f, int j, int remaining);

/* Place one of these trees of a block as the j-th, and those after it. */
static void
place_some(struct mirrored *f, int j, int block, const uint64_t *fit, const struct rows *rows, int remaining)
{
	int w = f->weight[j], first = j > 1 && w == f->weight[j - 1] ? f->pick[j - 1] + 1 : 0;
	for (int word = 0; word < TREES_WORDS; word++)
		for (uint64_t left = fit[word]; left; left &= left - 1) {
			int t = TREES_BLOCK * block + 64 * word + __builtin_ctzll(left);
			if (t < first || is_redundant(f, j, t) || !subtract(f, j, t, rows, remaining - w))
				continue;
			f->pick[j] = t;
			place(f, j + 1, remaining - w);
			if (f->found || f->halted)
				return;
		}
}

/* Place trees j .. k - 1, which have `remaining` units of weight together. */
static void
place(struct mirrored *f, int j, int remaining)
{
	struct rows rows;
	uint64_t fit[TREES_WORDS];
	if (j == f->k) {
		f->found = true;
		return;
	}
	if (--f->nodes_here <= 0) {
		f->halted = f->given_up = true;
		return;
	}
	if (!find_rows(f, j, &rows))
		return;
	for (int block = 0; block < f->all.n_blocks && !f->found && !f->halted; block++)
		if (trees_fitting(&f->all, block, f->shallow, rows.required, rows.closed, fit))
			place_some(f, j, block, fit, &rows, remaining);
}

/* All weights are chosen. */
static void
try_weights(struct mirrored *f)
{
	int64_t most_here = f->nodes < f->nodes_each ? f->nodes : f->nodes_each;
	f->nodes_here = most_here;
	f->halted = false;
	if (vertex_holds(&f->vertex)) {
		measure_choices(f);
		place(f, 0, f->units);
	}
	f->nodes -= most_here - f->nodes_here + 1;
	f->exhausted = f->nodes <= 0 || progress(f->ctx, "fewest trees: trying %d", f->k) <= 0;
}

/* All descending weights of trees j .. k - 1, none above `most`, that have `remaining` units together. */
static void
weigh(struct mirrored *f, int j, int remaining, int most)
{
	if (j == f->k) {
		try_weights(f);
		return;
	}
	int places = f->k - j;
	most = remaining - (places - 1) < most ? remaining - (places - 1) : most;
	for (int w = most; w * places >= remaining && w > 0; w--) {
		f->weight[j] = w;
		vertex_weigh(&f->vertex, j, w);
		weigh(f, j + 1, remaining - w, w);
		if (f->found || f->exhausted)
			return;
	}
}

/* f->k trees with weights in units of 1 / den link, from `most` units together down to `need`. */
static void
try_denominator(struct mirrored *f, int den, int64_t need, int64_t most)
{
	int64_t all = 0;
	f->top = 0;
	vertex_begin(&f->vertex, f->k, 1);
	for (int row = 0; row < f->all.n_rows; row++) {
		int64_t units = f->all.capacity[row] * den;
		if (units > MIRRORED_UNITS) {
			f->given_up = f->skipped = true;
			return;
		}
		f->residual[0][row] = (uint8_t)units;
		vertex_link(&f->vertex, units);
		all += units;
		f->top = units > f->top ? (int)units : f->top;
	}
	for (int i = 0; i < f->n_cuts / LANES; i++) {
		f->cut[0][i] = (Lanes){ 0 };
		for (int row = 0; row < f->all.n_rows; row++)
			f->cut[0][i] += f->crosses[row][i] * (int16_t)f->residual[0][row];
	}
	for (int64_t units = most; units >= need && !f->found && !f->exhausted; units--) {
		/* Each tree uses n - 1 rows; the rest of the capacity is slack. */
		int64_t slack = all - units * (f->all.topo->n_ranks - 1);
		if (slack < 0 || units < f->k)
			continue;
		f->units = (int)units;
		f->slack = slack > MOST_SLACK ? MOST_SLACK : (int)slack;
		weigh(f, 0, f->units, f->top);
	}
}

static void
try_denominators(struct mirrored *f, Frac target, Frac optimum, int *den)
{
	Frac unit;
	for (int d = 1; d <= max_det[f->k] && !f->found && !f->exhausted; d++) {
		if (!frac_make(topo_link_unit(f->all.topo), d, &unit))
			return;
		int64_t most = frac_floor_div(optimum, unit), need = frac_floor_div(target, unit);
		if ((Wide)need * unit.num * target.den < (Wide)target.num * unit.den)
			need++;
		try_denominator(f, d, need, most);
		*den = d;
	}
}

/* f->k trees no deeper than f->max_depth, in weights of 1 / *den link. As a rule trees are found soon where there are
 * some, while weights without any may take long; so all are tried with few nodes first. */
static void
try_count(struct mirrored *f, Frac target, Frac optimum, int *den)
{
	enum { FIRST_NODES = 1000 };
	f->found = false;
	for (f->nodes_each = FIRST_NODES;; f->nodes_each = INT64_MAX) {
		f->given_up = false;
		try_denominators(f, target, optimum, den);
		if (f->found || !f->given_up || f->exhausted || f->nodes_each > FIRST_NODES)
			return;
	}
}

static Status
found_packing(struct mirrored *f, int den, Packing **out)
{
	Packing *pack;
	TRY(pack_new(f->ctx, f->k, false, &pack));
	if (!frac_make(topo_link_unit(f->all.topo), den, &pack->unit))
		return OK;
	for (int j = 0; j < f->k; j++) {
		TRY(trees_make(&f->all, f->all.rows[f->pick[j]], &pack->tree[j]));
		pack->weight[j] = f->weight[j];
	}
	pack->n_trees = f->k;
	TRY(pack_check(f->ctx, f->all.topo, pack));
	*out = pack;
	return OK;
}

/* A node tries every tree; where there are more trees than a DGX-1 has, fewer nodes are allowed. */
static int64_t
nodes_of(const struct mirrored *f, int64_t nodes)
{
	enum { DGX1_TREES = 3456 };
	return f->all.n > DGX1_TREES ? nodes * DGX1_TREES / f->all.n : nodes;
}

/* The same number of trees, but shallower, as long as there are any. */
static Status
flatten(struct mirrored *f, Frac target, Frac optimum, Packing **few)
{
	for (;;) {
		int deepest = 0, den;
		f->nodes = nodes_of(f, LIMIT_FLAT_NODES);
		f->exhausted = false;
		for (int j = 0; j < f->k; j++)
			deepest = f->all.depth[f->pick[j]] > deepest ? f->all.depth[f->pick[j]] : deepest;
		limit_depth(f, deepest - 1);
		try_count(f, target, optimum, &den);
		if (!f->found)
			break;
		TRY(found_packing(f, den, few));
	}
	return OK;
}

/* A rate that k trees may have. */
struct rate {
	int units, den;	/* units / den links */
};

static int
by_rate(const void *a, const void *b)
{
	const struct rate *p = a, *q = b;
	int64_t over = (int64_t)q->units * p->den - (int64_t)p->units * q->den;
	return over ? (over > 0) - (over < 0) : (p->den > q->den) - (p->den < q->den);
}

/* The highest rate of f->k trees: all rates, the highest first, each with few nodes; then those above the one that
 * was found, with all nodes that are left. False in *sure: they were used up. */
static Status
seek_rate(struct mirrored *f, Frac optimum, Packing **out, struct rate *best, bool *sure)
{
	enum { FIRST_NODES = 300 };
	struct rate *rate;
	int n = 0, room = 0, top;
	int64_t widest = 1;
	for (int row = 0; row < f->all.n_rows; row++)
		widest = f->all.capacity[row] > widest ? f->all.capacity[row] : widest;
	int most = (int)(MIRRORED_UNITS / widest < max_det[f->k] ? MIRRORED_UNITS / widest : max_det[f->k]);
	for (int d = 1; d <= most; d++)
		room += (int)(frac_double(optimum) / (double)topo_link_unit(f->all.topo) * d) + 1;
	TRY(TEMP(f->ctx, rate, room));
	for (int d = 1; d <= most; d++)
		for (int units = f->k; (Wide)units * topo_link_unit(f->all.topo) * optimum.den <= (Wide)d * optimum.num
		    && n < room; units++)
			if ((int64_t)units * best->den > (int64_t)best->units * d)
				rate[n++] = (struct rate){ units, d };
	qsort(rate, (size_t)n, sizeof *rate, by_rate);
	top = n;
	*sure = true;
	for (f->nodes_each = FIRST_NODES;; f->nodes_each = INT64_MAX) {
		int i = 0;
		f->given_up = f->skipped = false;
		f->found = false;
		for (; i < top && !f->found && !f->exhausted; i++)
			try_denominator(f, rate[i].den, rate[i].units, rate[i].units);
		if (f->found) {
			top = i - 1;
			*best = rate[top];
			TRY(found_packing(f, best->den, out));
		}
		*sure = !f->given_up && !f->exhausted && most == max_det[f->k];
		if (*sure || f->exhausted || f->nodes_each > FIRST_NODES)
			return OK;
	}
}

Status
mirrored_rates(struct mirrored *f, Frac optimum, int max_trees, Packing **out, struct proof *proof)
{
	struct rate best = { 0, 1 };
	proof->mirrored = max_trees <= MAX_PROVEN;
	for (f->k = 1; f->k <= max_trees && f->k <= MIRRORED_PICKS; f->k++) {
		bool sure;
		f->nodes = nodes_of(f, LIMIT_RATE_NODES);
		f->exhausted = false;
		TRY(seek_rate(f, optimum, out, &best, &sure));
		proof->mirrored = proof->mirrored && sure;
		if ((Wide)best.units * topo_link_unit(f->all.topo) * optimum.den == (Wide)best.den * optimum.num) {
			proof->least = max_trees + 1;
			break;
		}
	}
	return OK;
}

Status
mirrored_fewest(struct mirrored *f, Frac target, Frac optimum, Packing **out, struct proof *proof)
{
	int den = 0;
	f->nodes = nodes_of(f, LIMIT_FEW_NODES);
	f->skipped = false;
	for (f->k = 1; f->k <= MIRRORED_PICKS && !f->exhausted; f->k++) {
		/* Not sure where weights were skipped for fewer trees. */
		bool sure = !f->skipped;
		try_count(f, target, optimum, &den);
		if (!f->found)
			continue;
		proof->mirrored = f->k <= MAX_PROVEN && sure;
		TRY(found_packing(f, den, out));
		return flatten(f, target, optimum, out);
	}
	return OK;
}
