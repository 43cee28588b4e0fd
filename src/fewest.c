/* The fewest trees for a rate, proven, where the ranks have few enough spanning trees to try them all.
 *
 * Say that k trees reach the rate and no k - 1 do. The best weights for these k trees are a vertex of their own linear
 * program, so they solve M w = c, where M has k rows and entries of 0 and 1 (which trees use a link that is full) and c
 * counts physical links. By Cramer's rule all weights are whole multiples of 1 / D link, D = |det M|, and the largest
 * determinant of such a matrix is known: maxdet(k) = 1, 1, 2, 3, 5, 9, 32, 56, 144 for k = 1 to 9 (OEIS A003432). So
 *
 *     for k = 1, 2, ...   for D = 1, 2, ... maxdet(k)   for all whole weights a_1 >= ... >= a_k with rate / D enough
 *
 * a depth-first search that places one tree after the other either finds k trees or proves that there are none.
 *
 * What keeps it short: every tree has n - 1 edges, so what all links together have above (n - 1) * sum a is the slack S that
 * may be left over. Of a link with room r the trees still to come can use no more than the largest sum of some of their
 * weights that is at most r; if what is left over then is above S in total, the branch is dead, and a link whose use (or whose
 * being left out) would make it so forces (or forbids) the link in the next tree. The first tree is taken up to symmetry.
 *
 * Then the same search over shallower trees only, until k of them no longer do. */
#include "passes.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_ROWS = 64,		/* bits of a tree */
	MAX_PICKS = 12,		/* trees that are searched for */
	MAX_UNITS = 255,	/* units of 1 / D link that a link has */
	MAX_PROVEN = 9,		/* up to so many trees maxdet is right */
	MAX_RANKS = 9,		/* whose permutations are searched for symmetries, and all cuts are watched */
	MAX_CUTS = 1 << (MAX_RANKS - 1),
};

/* maxdet(k), and from 10 on no more than is of use: what is found so is not called proven. */
static const int max_det[MAX_PICKS + 1] = { 0, 1, 1, 2, 3, 5, 9, 32, 56, 144, 64, 48, 32 };

struct few {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	int root;
	int n_rows;
	int row_of[LIMIT_FEW_LINKS];	/* row of a link: itself, or for allreduce the pair of both directions */
	int there[MAX_ROWS], back[MAX_ROWS];	/* links of a row; back: -1 but for allreduce */
	int64_t links[MAX_ROWS];	/* capacity in links */
	int n_trees, space;
	uint64_t *tree;			/* rows of each tree */
	int *depth;			/* hops from the root, allreduce: up and down from the centre */
	int *orbit;			/* first tree of its orbit under symmetries of the ranks */
	/* of the search at hand */
	int max_depth, k, weight[MAX_PICKS], pick[MAX_PICKS];
	int room[MAX_PICKS + 1][MAX_ROWS];
	int left[MAX_PICKS + 1][MAX_UNITS + 1];	/* left over of a room, if trees j .. k - 1 use what they can of it */
	int slack, units;
	int n_cuts;
	uint64_t crossing[MAX_CUTS];	/* rows of each cut that every tree crosses */
	int cut[MAX_PICKS + 1][MAX_CUTS];	/* room of a cut */
	int64_t nodes, nodes_each;	/* left to all weights together, and of each choice of weights in this pass */
	int64_t nodes_here;
	bool found, halted, given_up, exhausted;	/* halted: nodes_here are spent; given_up: so it was in this pass */
	bool skipped;		/* weights finer than MAX_UNITS would have been needed to be sure */
};

/* ---- all trees ---- */

static Status
keep_tree(struct few *f, uint64_t rows)
{
	if (f->n_trees == f->space) {
		int space = 2 * f->space + 256;
		uint64_t *grown;
		TRY(TEMP(f->ctx, grown, space));
		if (f->n_trees)
			memcpy(grown, f->tree, (size_t)f->n_trees * sizeof *grown);
		f->tree = grown;
		f->space = space;
	}
	f->tree[f->n_trees++] = rows;
	return OK;
}

/* Ranks that are reached from `reached` over links whose rows are not closed. */
static unsigned
reach(const struct few *f, unsigned reached, uint64_t closed)
{
	bool against = f->coll == REDUCE;
	for (bool more = true; more;) {
		more = false;
		for (int l = 0; l < f->topo->n_links; l++) {
			int from = against ? f->topo->link[l].to : f->topo->link[l].from;
			int to = against ? f->topo->link[l].from : f->topo->link[l].to;
			if ((closed >> f->row_of[l] & 1) || !(reached >> from & 1) || (reached >> to & 1))
				continue;
			reached |= 1u << to;
			more = true;
		}
	}
	return reached;
}

/* Every arborescence over links that are not closed: with the first link that leaves what is reached, and without it. */
static Status
enumerate(struct few *f, unsigned reached, uint64_t rows, uint64_t closed)
{
	bool against = f->coll == REDUCE;
	unsigned all = (1u << f->topo->n_ranks) - 1;
	while (f->n_trees <= LIMIT_FEW_TREES) {
		int l = 0, to = -1;
		if (reached == all)
			return keep_tree(f, rows);
		for (; l < f->topo->n_links && to < 0; l++) {
			int from = against ? f->topo->link[l].to : f->topo->link[l].from;
			int end = against ? f->topo->link[l].from : f->topo->link[l].to;
			if (!(closed >> f->row_of[l] & 1) && (reached >> from & 1) && !(reached >> end & 1))
				to = end;
		}
		uint64_t row = UINT64_C(1) << f->row_of[l - 1];
		TRY(enumerate(f, reached | 1u << to, rows | row, closed));
		closed |= row;
		if (reach(f, reached, closed) != all)
			return OK;
	}
	return OK;
}

/* ---- a tree as a noun ---- */

static Status
arrange(struct few *f, uint64_t rows, Tree *out)
{
	int n = 0;
	Edge *there, *back;
	ArenaMark mark = arena_mark(&f->ctx->scratch);
	TRY(TEMP(f->ctx, there, f->topo->n_ranks));
	TRY(TEMP(f->ctx, back, f->topo->n_ranks));
	for (int row = 0; row < f->n_rows; row++) {
		if (!(rows >> row & 1))
			continue;
		const Link *link = &f->topo->link[f->there[row]];
		there[n] = (Edge){ link->from, link->to, 1, &f->there[row] };
		back[n++] = (Edge){ link->to, link->from, 1, &f->back[row] };
	}
	TRY(tree_arrange(f->ctx, f->topo->n_ranks, f->coll, f->root, there, back, n, out));
	arena_release(&f->ctx->scratch, mark);
	return OK;
}

/* Links in the run arena: a tree outlives the rows. */
static Status
own_links(struct few *f, Edge *edge, int n)
{
	int *link;
	TRY(NEW(f->ctx, link, n));
	for (int e = 0; e < n; e++) {
		link[e] = edge[e].link[0];
		edge[e].link = &link[e];
	}
	return OK;
}

static Status
measure_depths(struct few *f)
{
	int work[MAX_RANKS];
	TRY(TEMP(f->ctx, f->depth, f->n_trees));
	for (int t = 0; t < f->n_trees; t++) {
		ArenaMark run = arena_mark(&f->ctx->run);
		Tree tree;
		TRY(arrange(f, f->tree[t], &tree));
		f->depth[t] = tree_depth(&tree, work);
		arena_release(&f->ctx->run, run);
	}
	return OK;
}

/* ---- symmetries of the ranks ---- */

static int64_t
capacity_between(const struct few *f, int a, int b)
{
	int64_t sum = 0;
	for (int i = f->topo->first_out[a]; i < f->topo->first_out[a + 1]; i++)
		if (f->topo->link[f->topo->out[i]].to == b)
			sum += f->topo->link[f->topo->out[i]].capacity;
	return sum;
}

static int
tree_number(const struct few *f, uint64_t rows)
{
	int lo = 0, hi = f->n_trees - 1;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (f->tree[mid] < rows)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* One more symmetry: each tree's image may name an earlier tree of its orbit. */
static void
use_symmetry(struct few *f, const int *image)
{
	int row_image[MAX_ROWS];
	for (int row = 0; row < f->n_rows; row++) {
		const Link *link = &f->topo->link[f->there[row]];
		row_image[row] = -1;
		for (int l = 0; l < f->topo->n_links && row_image[row] < 0; l++)
			if (f->topo->link[l].from == image[link->from] && f->topo->link[l].to == image[link->to])
				row_image[row] = f->row_of[l];
	}
	for (int t = 0; t < f->n_trees; t++) {
		uint64_t rows = 0;
		for (int row = 0; row < f->n_rows; row++)
			if (f->tree[t] >> row & 1)
				rows |= UINT64_C(1) << row_image[row];
		int other = tree_number(f, rows);
		if (f->orbit[other] < f->orbit[t])
			f->orbit[t] = f->orbit[other];
		else
			f->orbit[other] = f->orbit[t];
	}
}

/* All permutations of the ranks that keep every capacity (and the root), rank by rank. */
static void
find_symmetries(struct few *f, int *image, int n, unsigned used)
{
	if (n == f->topo->n_ranks) {
		use_symmetry(f, image);
		return;
	}
	for (int r = 0; r < f->topo->n_ranks; r++) {
		bool fits = !(used >> r & 1) && (f->root < 0 || (n == f->root) == (r == f->root));
		for (int m = 0; m < n && fits; m++)
			fits = capacity_between(f, n, m) == capacity_between(f, r, image[m])
			    && capacity_between(f, m, n) == capacity_between(f, image[m], r);
		image[n] = r;
		if (fits)
			find_symmetries(f, image, n + 1, used | 1u << r);
	}
}

static int
by_rows(const void *a, const void *b)
{
	const uint64_t *s = a, *t = b;
	return (*s > *t) - (*s < *t);
}

/* ---- rows ---- */

/* False: links that lie side by side or have no equal the other way: not for this search. */
static bool
make_rows(struct few *f)
{
	const Topology *topo = f->topo;
	int64_t unit = topo_link_unit(topo);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int row = -1;
		for (int m = 0; m < l; m++) {
			const Link *other = &topo->link[m];
			if (other->from == link->from && other->to == link->to)
				return false;
			if (f->coll == ALLREDUCE && other->from == link->to && other->to == link->from) {
				if (other->capacity != link->capacity)
					return false;
				row = f->row_of[m];
				f->back[row] = l;
			}
		}
		if (row < 0) {
			if (f->n_rows == MAX_ROWS)
				return false;
			row = f->n_rows++;
			f->there[row] = l;
			f->back[row] = -1;
			f->links[row] = link->capacity / unit;
			if (f->links[row] > MAX_UNITS)
				return false;
		}
		f->row_of[l] = row;
	}
	for (int row = 0; row < f->n_rows; row++)
		if (f->coll == ALLREDUCE && f->back[row] < 0)
			return false;
	return true;
}

/* Every tree leaves (reduce: enters) each side that holds the root (an allreduce's: crosses each cut) at least once. */
static void
find_cuts(struct few *f)
{
	int n = f->topo->n_ranks, root = f->root < 0 ? 0 : f->root;
	for (unsigned side = 0; side < (1u << n) - 1; side++) {
		uint64_t rows = 0;
		if (!(side >> root & 1))
			continue;
		for (int l = 0; l < f->topo->n_links; l++) {
			bool from = side >> f->topo->link[l].from & 1, to = side >> f->topo->link[l].to & 1;
			if (f->coll == REDUCE ? to && !from : from && !to)
				rows |= UINT64_C(1) << f->row_of[l];
		}
		f->crossing[f->n_cuts++] = rows;
	}
}

/* ---- the search ---- */

/* left[j][r], from the sums of weights j .. k - 1. */
static void
measure_left(struct few *f)
{
	bool sum[MAX_UNITS + 1] = { true };
	for (int j = f->k; j >= 0; j--) {
		if (j < f->k)
			for (int s = MAX_UNITS; s >= f->weight[j]; s--)
				sum[s] = sum[s] || sum[s - f->weight[j]];
		for (int r = 0, best = 0; r <= MAX_UNITS; r++) {
			best = sum[r] ? r : best;
			f->left[j][r] = r - best;
		}
	}
}

/* What a tree leaves of the cuts; false: less than the trees after it need. */
static bool
keep_cuts(struct few *f, int j, uint64_t rows, int w, int still)
{
	for (int c = 0; c < f->n_cuts; c++) {
		f->cut[j + 1][c] = f->cut[j][c] - w * __builtin_popcountll(rows & f->crossing[c]);
		if (f->cut[j + 1][c] < still)
			return false;
	}
	return true;
}

static void
place(struct few *f, int j, int still)
{
	uint64_t must = 0, may = 0;
	int use[MAX_ROWS], base = 0, w;
	if (j == f->k) {
		f->found = true;
		return;
	}
	if (--f->nodes_here <= 0) {
		f->halted = f->given_up = true;
		return;
	}
	w = f->weight[j];
	for (int row = 0; row < f->n_rows; row++) {
		int room = f->room[j][row], skip = f->left[j + 1][room];
		use[row] = room >= w ? f->left[j + 1][room - w] : f->slack + 1;
		base += use[row] < skip ? use[row] : skip;
	}
	if (base > f->slack)
		return;
	for (int row = 0; row < f->n_rows; row++) {
		int skip = f->left[j + 1][f->room[j][row]], least = use[row] < skip ? use[row] : skip;
		if (base - least + use[row] <= f->slack)
			may |= UINT64_C(1) << row;
		if (base - least + skip > f->slack)
			must |= UINT64_C(1) << row;
	}
	bool like_first = j > 0 && w == f->weight[0], like_last = j > 1 && w == f->weight[j - 1];
	for (int t = like_last ? f->pick[j - 1] + 1 : 0; t < f->n_trees && !f->found && !f->halted; t++) {
		uint64_t rows = f->tree[t];
		if ((rows & ~may) || (must & ~rows) || f->depth[t] > f->max_depth)
			continue;
		if (j == 0 ? f->orbit[t] != t : like_first && (f->orbit[t] < f->pick[0] || t == f->pick[0]))
			continue;
		int left = 0;
		for (int row = 0; row < f->n_rows; row++)
			left += rows >> row & 1 ? use[row] : f->left[j + 1][f->room[j][row]];
		if (left > f->slack || !keep_cuts(f, j, rows, w, still - w))
			continue;
		for (int row = 0; row < f->n_rows; row++)
			f->room[j + 1][row] = f->room[j][row] - (rows >> row & 1 ? w : 0);
		f->pick[j] = t;
		place(f, j + 1, still - w);
	}
}

/* All weights from place j on that are at most the one before and have `still` units together. */
static void
weigh(struct few *f, int j, int still, int most)
{
	if (j == f->k) {
		measure_left(f);
		int64_t most_here = f->nodes < f->nodes_each ? f->nodes : f->nodes_each;
		f->nodes_here = most_here;
		f->halted = false;
		place(f, 0, f->units);
		f->nodes -= most_here - f->nodes_here + 1;
		f->exhausted = f->nodes <= 0 || progress(f->ctx, "fewest trees: trying %d", f->k) <= 0;
		return;
	}
	int places = f->k - j;
	for (int w = still - (places - 1) < most ? still - (places - 1) : most; w * places >= still && w > 0; w--) {
		f->weight[j] = w;
		weigh(f, j + 1, still - w, w);
		if (f->found || f->exhausted)
			return;
	}
}

/* Trees f->k of some weights in units of 1 / parts link, `need` units to `most` together; more first. */
static void
try_parts(struct few *f, int parts, int64_t need, int64_t most)
{
	int64_t all = 0, top = 0;
	for (int row = 0; row < f->n_rows; row++) {
		int64_t units = f->links[row] * parts;
		if (units > MAX_UNITS) {
			f->given_up = f->skipped = true;
			return;
		}
		f->room[0][row] = (int)units;
		all += units;
		top = units > top ? units : top;
	}
	for (int c = 0; c < f->n_cuts; c++) {
		f->cut[0][c] = 0;
		for (int row = 0; row < f->n_rows; row++)
			f->cut[0][c] += f->crossing[c] >> row & 1 ? f->room[0][row] : 0;
	}
	for (int64_t units = most; units >= need && !f->found && !f->exhausted; units--) {
		/* An arborescence leaves links unused anyway; only spanning trees of an allreduce need all but the slack. */
		int64_t slack = all - units * (f->topo->n_ranks - 1);
		if (slack < 0 || units < f->k)
			continue;
		f->units = (int)units;
		f->slack = slack > 1 << 20 ? 1 << 20 : (int)slack;
		weigh(f, 0, f->units, (int)top);
	}
}

/* floor(a / b) */
static int64_t
quotient(Frac a, Frac b)
{
	return (int64_t)((Wide)a.num * b.den / ((Wide)a.den * b.num));
}

static void
try_denominators(struct few *f, Frac target, Frac optimum, int *parts)
{
	Frac unit;
	for (int d = 1; d <= max_det[f->k] && !f->found && !f->exhausted; d++) {
		if (!frac_make(topo_link_unit(f->topo), d, &unit))
			return;
		int64_t most = quotient(optimum, unit), need = quotient(target, unit);
		if ((Wide)need * unit.num * target.den < (Wide)target.num * unit.den)
			need++;
		try_parts(f, d, need, most);
		*parts = d;
	}
}

/* f->k trees no deeper than f->max_depth, in weights of 1 / *parts link. Weights that have trees show it soon as a rule, and
 * some that have none take long: so all are tried for a moment first. */
static void
try_count(struct few *f, Frac target, Frac optimum, int *parts)
{
	enum { MOMENT = 1000 };
	f->found = false;
	for (f->nodes_each = MOMENT;; f->nodes_each = INT64_MAX) {
		f->given_up = false;
		try_denominators(f, target, optimum, parts);
		if (f->found || !f->given_up || f->exhausted || f->nodes_each > MOMENT)
			return;
	}
}

static Status
few_new(Ctx *ctx, const Topology *topo, const Request *ask, struct few *f, bool *fits)
{
	int image[MAX_RANKS];
	*f = (struct few){ .ctx = ctx, .topo = topo, .coll = ask->coll, .root = ask->root };
	f->max_depth = ask->max_depth ? ask->max_depth : 2 * topo->n_ranks;
	*fits = topo->n_vertices == topo->n_ranks && topo->n_ranks <= MAX_RANKS && topo->n_links <= LIMIT_FEW_LINKS
	    && make_rows(f);
	if (!*fits)
		return OK;
	TRY(enumerate(f, 1u << (f->root < 0 ? 0 : f->root), 0, 0));
	*fits = f->n_trees <= LIMIT_FEW_TREES;
	if (!*fits)
		return OK;
	qsort(f->tree, (size_t)f->n_trees, sizeof *f->tree, by_rows);
	TRY(measure_depths(f));
	TRY(TEMP(ctx, f->orbit, f->n_trees));
	for (int t = 0; t < f->n_trees; t++)
		f->orbit[t] = t;
	find_symmetries(f, image, 0, 0);
	find_cuts(f);
	return OK;
}

static Status
found_packing(struct few *f, int parts, Packing **out)
{
	Packing *pack;
	TRY(NEW(f->ctx, pack, 1));
	TRY(NEW(f->ctx, pack->tree, f->k));
	TRY(NEW(f->ctx, pack->weight, f->k));
	if (!frac_make(topo_link_unit(f->topo), parts, &pack->unit))
		return OK;
	for (int j = 0; j < f->k; j++) {
		Tree *tree = &pack->tree[pack->n_trees];
		TRY(arrange(f, f->tree[f->pick[j]], tree));
		TRY(own_links(f, tree->down, tree->n_down));
		TRY(own_links(f, tree->up, tree->n_up));
		pack->weight[pack->n_trees++] = f->weight[j];
	}
	TRY(pack_check(f->ctx, f->topo, pack));
	*out = pack;
	return OK;
}

/* A node looks at every tree: of more trees than a DGX-1 has, fewer nodes. */
static int64_t
nodes_of(const struct few *f, int64_t nodes)
{
	enum { USUAL = 3456 };
	return f->n_trees > USUAL ? nodes * USUAL / f->n_trees : nodes;
}

/* As many trees, but shallower, as long as there are any. */
static Status
flatten(struct few *f, Frac target, Frac optimum, Packing **few)
{
	for (;;) {
		int deepest = 0, parts;
		f->nodes = nodes_of(f, LIMIT_FLAT_NODES);
		f->exhausted = false;
		for (int j = 0; j < f->k; j++)
			deepest = f->depth[f->pick[j]] > deepest ? f->depth[f->pick[j]] : deepest;
		f->max_depth = deepest - 1;
		try_count(f, target, optimum, &parts);
		if (!f->found)
			break;
		TRY(found_packing(f, parts, few));
	}
	return OK;
}

/* A rate that k trees may have. */
struct aim {
	int units, parts;	/* units / parts links */
};

static int
by_rate(const void *a, const void *b)
{
	const struct aim *p = a, *q = b;
	int64_t over = (int64_t)q->units * p->parts - (int64_t)p->units * q->parts;
	return over ? (over > 0) - (over < 0) : (p->parts > q->parts) - (p->parts < q->parts);
}

/* The highest rate of f->k trees: rates one after the other, the highest first, each for a moment; then those above the one
 * that is found, as long as nodes last. False in *sure: they did not. */
static Status
seek_rate(struct few *f, Frac optimum, Packing **out, struct aim *best, bool *sure)
{
	enum { MOMENT = 300 };
	struct aim *aim;
	int n = 0, room = 0, top;
	int64_t widest = 1;
	for (int row = 0; row < f->n_rows; row++)
		widest = f->links[row] > widest ? f->links[row] : widest;
	int most = (int)(MAX_UNITS / widest < max_det[f->k] ? MAX_UNITS / widest : max_det[f->k]);
	for (int d = 1; d <= most; d++)
		room += (int)(frac_double(optimum) / (double)topo_link_unit(f->topo) * d) + 1;
	TRY(TEMP(f->ctx, aim, room));
	for (int d = 1; d <= most; d++)
		for (int units = f->k; (Wide)units * topo_link_unit(f->topo) * optimum.den <= (Wide)d * optimum.num && n < room; units++)
			if ((int64_t)units * best->parts > (int64_t)best->units * d)
				aim[n++] = (struct aim){ units, d };
	qsort(aim, (size_t)n, sizeof *aim, by_rate);
	top = n;
	*sure = true;
	for (f->nodes_each = MOMENT;; f->nodes_each = INT64_MAX) {
		int i = 0;
		f->given_up = f->skipped = false;
		f->found = false;
		for (; i < top && !f->found && !f->exhausted; i++)
			try_parts(f, aim[i].parts, aim[i].units, aim[i].units);
		if (f->found) {
			top = i - 1;
			*best = aim[top];
			TRY(found_packing(f, best->parts, out));
		}
		*sure = !f->given_up && !f->exhausted && most == max_det[f->k];
		if (*sure || f->exhausted || f->nodes_each > MOMENT)
			return OK;
	}
}

/* Up to max_trees trees. */
static Status
seek_rates(struct few *f, Frac optimum, int max_trees, Packing **out, bool *proven)
{
	struct aim best = { 0, 1 };
	*proven = max_trees <= MAX_PROVEN;
	for (f->k = 1; f->k <= max_trees && f->k <= MAX_PICKS; f->k++) {
		bool sure;
		f->nodes = nodes_of(f, LIMIT_RATE_NODES);
		f->exhausted = false;
		TRY(seek_rate(f, optimum, out, &best, &sure));
		*proven = *proven && sure;
		if ((Wide)best.units * topo_link_unit(f->topo) * optimum.den == (Wide)best.parts * optimum.num)
			break;
	}
	return OK;
}

static Status
seek_fewest(struct few *f, Frac optimum, Frac tolerance, Packing **out, bool *proven)
{
	Frac keep, target;
	int parts = 0;
	if (!frac_sub(FRAC_ONE, tolerance, &keep) || !frac_mul(optimum, keep, &target))
		return OK;
	f->nodes = nodes_of(f, LIMIT_FEW_NODES);
	f->skipped = false;
	for (f->k = 1; f->k <= MAX_PICKS && !f->exhausted; f->k++) {
		/* What was skipped for fewer trees leaves a doubt. */
		bool sure = !f->skipped;
		try_count(f, target, optimum, &parts);
		if (!f->found)
			continue;
		*proven = f->k <= MAX_PROVEN && sure;
		TRY(found_packing(f, parts, out));
		return flatten(f, target, optimum, out);
	}
	return OK;
}

Status
pack_fewest(Ctx *ctx, const Topology *topo, Frac optimum, const Request *ask, Packing **out, bool *proven)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct few f;
	Packing *few = NULL;
	bool fits;
	*proven = false;
	TRY(few_new(ctx, topo, ask, &f, &fits));
	if (fits && ask->max_trees)
		TRY(seek_rates(&f, optimum, ask->max_trees, &few, proven));
	else if (fits)
		TRY(seek_fewest(&f, optimum, ask->tolerance, &few, proven));
	if (few)
		talk(ctx, "fewest: %d of %d trees%s", few->n_trees, f.n_trees, !*proven ? "" : ask->max_trees
		    ? ", no others have a higher rate" : ", no fewer have that rate");
	else if (fits)
		talk(ctx, "fewest: nothing found with up to %d trees of %d", f.k < MAX_PICKS ? f.k : MAX_PICKS, f.n_trees);
	arena_release(&ctx->scratch, mark);
	*out = few;
	return OK;
}

Status
pack_every(Ctx *ctx, const Topology *topo, const Request *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct few f;
	bool fits;
	Packing *pool = NULL;
	TRY(few_new(ctx, topo, ask, &f, &fits));
	if (fits) {
		TRY(NEW(ctx, pool, 1));
		TRY(NEW(ctx, pool->tree, f.n_trees));
		TRY(NEW(ctx, pool->weight, f.n_trees));
		pool->unit = FRAC_ONE;
	}
	for (int t = 0; fits && t < f.n_trees; t++) {
		Tree *tree = &pool->tree[pool->n_trees];
		if (f.depth[t] > f.max_depth)
			continue;
		TRY(arrange(&f, f.tree[t], tree));
		TRY(own_links(&f, tree->down, tree->n_down));
		TRY(own_links(&f, tree->up, tree->n_up));
		pool->weight[pool->n_trees++] = 1;
	}
	arena_release(&ctx->scratch, mark);
	*out = pool;
	return OK;
}
