/* The optimal rate, exactly, by column generation (Dantzig and Wolfe 1960) over all trees of a collective:
 *
 *     maximise    r
 *     such that   sum over trees t of uses(l, t) x(t) <= capacity(l)     for every link l, with dual price y(l)
 *                 sum over trees t of demand d of x(t) >= r              for every demand d, with dual z(d)
 *
 * GLPK solves it over the trees at hand, in doubles; of each demand the cheapest tree under y comes in if it costs less
 * than z. When none does, doubles are left behind: the basis that GLPK ended with names as many columns as rows that are
 * tight, and x, r and y, z are solved for it once more, exactly. Then x is what is packed and y is the proof that nothing
 * beats it; both are checked in integers: no load above capacity, nothing negative, no tree cheaper than its z. A cheaper
 * one comes in, too, and it goes on.
 *
 * Allreduce first packs trees that go up and down the same way; only if those stay below the bound, pairs of
 * arborescences. Links are counted in units of one physical link, so that numbers stay small. */
#include "base/linear.h"
#include "cheapest.h"
#include "lp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct column {
	Tree tree;
	int demand;
	int n;			/* links in use */
	int *link, *uses;
};

struct exact {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	int root, n_demands, n_rows;	/* rows: the links, then the demands */
	Cheapest cheapest;
	int64_t unit;		/* one physical link, bytes/s */
	struct column *column;
	int n_columns, room;
	int64_t *price;
	double *dual, *value;	/* y and z of rows and x of trees, as GLPK says */
	glp_prob *lp;
	int loaded;		/* trees that the LP has; its first column is r */
	bool solved;
	bool proven;		/* y is exact and proves that `optimum` is the best algorithm bandwidth, bytes/s */
	Frac optimum;
	/* The basis: rows that are tight and columns in use, equally many; column -1 is r. */
	int n_basis, *full, *basic, *place;	/* place[row]: in full, -1: it has slack */
	Frac *x, *y;		/* of basic columns, in units; of full rows */
};

enum { RATE_COLUMN = -1 };

static Status
find_cheapest(struct exact *e, int d, int64_t *cost)
{
	TRY(cheapest_find(&e->cheapest, collective_demand(e->coll, e->topo->n_ranks, e->root, d), cost));
	return *cost >= 0 ? OK : fail(e->ctx, INTERNAL, "%s: no tree over connected ranks", e->topo->name);
}

/* ---- columns ---- */

static Status
add_column(struct exact *e, int demand, const Tree *tree, const int *used, int n, const int *uses)
{
	if (e->n_columns == e->room) {
		struct column *grown;
		TRY(NEW(e->ctx, grown, 2 * (size_t)e->room + 64));
		if (e->n_columns)
			memcpy(grown, e->column, (size_t)e->n_columns * sizeof *grown);
		e->column = grown;
		e->room = 2 * e->room + 64;
	}
	struct column *c = &e->column[e->n_columns];
	*c = (struct column){ .tree = *tree, .demand = demand, .n = n };
	TRY(NEW(e->ctx, c->link, n));
	TRY(NEW(e->ctx, c->uses, n));
	for (int i = 0; i < n; i++) {
		c->link[i] = used[i];
		c->uses[i] = uses[used[i]];
	}
	e->n_columns++;
	return OK;
}

/* A tree of a collective with one demand. */
static Status
add_tree(struct exact *e, const Tree *tree)
{
	ArenaMark mark = arena_mark(&e->ctx->scratch);
	int *used, *uses, n = 0;
	TRY(TEMP(e->ctx, used, e->topo->n_links));
	TRY(TEMP(e->ctx, uses, e->topo->n_links));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = i < tree->n_down ? &tree->down[i] : &tree->up[i - tree->n_down];
		for (int k = 0; k < edge->n_links; k++)
			if (uses[edge->link[k]]++ == 0)
				used[n++] = edge->link[k];
	}
	TRY(add_column(e, 0, tree, used, n, uses));
	arena_release(&e->ctx->scratch, mark);
	return OK;
}

static Status
add_cheapest(struct exact *e, int demand)
{
	Tree tree;
	TRY(cheapest_tree(&e->cheapest, e->coll == GATHER, &tree));
	return add_column(e, demand, &tree, e->cheapest.used, e->cheapest.n_used, e->cheapest.uses);
}

/* ---- the linear program ---- */

static void
start_lp(void *with)
{
	struct exact *e = with;
	int n_links = e->topo->n_links;
	e->lp = glp_create_prob();
	glp_set_obj_dir(e->lp, GLP_MAX);
	glp_add_rows(e->lp, e->n_rows);
	for (int l = 0; l < n_links; l++)
		glp_set_row_bnds(e->lp, l + 1, GLP_UP, 0, (double)(e->topo->link[l].capacity / e->unit));
	/* r - sum of x(t) <= 0 */
	glp_add_cols(e->lp, 1);
	for (int d = 0; d < e->n_demands; d++) {
		glp_set_row_bnds(e->lp, n_links + d + 1, GLP_UP, 0, 0);
		e->place[d + 1] = n_links + d + 1;
		e->dual[d + 1] = 1;
	}
	glp_set_mat_col(e->lp, 1, e->n_demands, e->place, e->dual);
	glp_set_col_bnds(e->lp, 1, GLP_LO, 0, 0);
	glp_set_obj_coef(e->lp, 1, 1);
}

static void
load_columns(struct exact *e)
{
	for (; e->loaded < e->n_columns; e->loaded++) {
		const struct column *c = &e->column[e->loaded];
		int col = glp_add_cols(e->lp, 1);
		/* GLPK counts from 1; place and dual are free to be used as work space here. */
		for (int i = 0; i < c->n; i++) {
			e->place[i + 1] = c->link[i] + 1;
			e->dual[i + 1] = c->uses[i];
		}
		e->place[c->n + 1] = e->topo->n_links + c->demand + 1;
		e->dual[c->n + 1] = -1;
		glp_set_mat_col(e->lp, col, c->n + 1, e->place, e->dual);
		glp_set_col_bnds(e->lp, col, GLP_LO, 0, 0);
	}
}

static void
read_basis(struct exact *e)
{
	int n_full = 0, n_basic = 0;
	for (int row = 0; row < e->n_rows; row++) {
		bool full = glp_get_row_stat(e->lp, row + 1) != GLP_BS;
		e->place[row] = full ? n_full : -1;
		if (full)
			e->full[n_full++] = row;
	}
	for (int c = RATE_COLUMN; c < e->loaded; c++) {
		if (glp_get_col_stat(e->lp, c + 2) == GLP_BS && n_basic < n_full) {
			e->value[n_basic] = fmax(glp_get_col_prim(e->lp, c + 2), 0);
			e->basic[n_basic++] = c;
		}
	}
	e->n_basis = n_full;
}

static void
solve_lp(void *with)
{
	struct exact *e = with;
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.it_lim = LIMIT_LP_STEPS;
	load_columns(e);
	/* A second try from scratch, should rounding have made the last basis singular. */
	e->solved = glp_simplex(e->lp, &options) == 0 && glp_get_status(e->lp) == GLP_OPT;
	if (!e->solved) {
		glp_std_basis(e->lp);
		e->solved = glp_simplex(e->lp, &options) == 0 && glp_get_status(e->lp) == GLP_OPT;
	}
	for (int row = 0; e->solved && row < e->n_rows; row++)
		e->dual[row] = fmax(glp_get_row_dual(e->lp, row + 1), 0);
	if (e->solved)
		read_basis(e);
}

static void
end_lp(void *with)
{
	struct exact *e = with;
	glp_delete_prob(e->lp);
}

/* ---- the basis, exactly ---- */

/* Solve for x (transposed: for y) in the basis. False: singular, or no small fractions. */
static Status
solve_basis(struct exact *e, bool transposed, Frac *out, bool *done)
{
	ArenaMark mark = arena_mark(&e->ctx->scratch);
	size_t n = (size_t)e->n_basis, width = n + 1;
	int64_t *m;
	TRY(TEMP(e->ctx, m, n * width));
	for (size_t j = 0; j < n; j++) {
		bool rate = e->basic[j] == RATE_COLUMN;
		const struct column *c = rate ? NULL : &e->column[e->basic[j]];
		for (int i = 0; i < (rate ? e->n_demands : c->n + 1); i++) {
			int row = e->topo->n_links + (rate ? i : c->demand);
			int64_t entry = rate ? 1 : -1;
			if (!rate && i < c->n) {
				row = c->link[i];
				entry = c->uses[i];
			}
			int at = e->place[row];
			if (at >= 0)
				m[transposed ? j * width + (size_t)at : (size_t)at * width + j] = entry;
		}
	}
	/* x: what the links have, and 0 for demands. y: only r is worth something. */
	for (size_t i = 0; i < n; i++) {
		int64_t *right = &m[i * width + n];
		if (transposed)
			*right = e->basic[i] == RATE_COLUMN;
		else
			*right = e->full[i] < e->topo->n_links ? e->topo->link[e->full[i]].capacity / e->unit : 0;
	}
	*done = linear_solve(m, e->n_basis, out);
	arena_release(&e->ctx->scratch, mark);
	return OK;
}

/* Least common denominator; 0: past `limit`. */
static int64_t
common_denominator(const Frac *f, int n, int64_t limit)
{
	int64_t den = 1;
	for (int i = 0; i < n; i++) {
		Wide next = (Wide)den / gcd64(den, f[i].den) * f[i].den;
		if (next > limit)
			return 0;
		den = (int64_t)next;
	}
	return den;
}

/* Is no tree under the exact y cheaper than its z? Those that are come in. *known: y is exact and nothing is out of range. */
static Status
prove_prices(struct exact *e, bool *known, bool *optimal)
{
	int64_t den = common_denominator(e->y, e->n_basis, (INT64_C(1) << SEARCH_PRICE_BITS) - 1), cost;
	*known = den > 0;
	memset(e->price, 0, (size_t)e->n_rows * sizeof *e->price);
	for (int i = 0; i < e->n_basis && *known; i++) {
		Wide price = (Wide)e->y[i].num * (den / e->y[i].den);
		*known = price >> SEARCH_PRICE_BITS == 0;
		e->price[e->full[i]] = (int64_t)price;
	}
	if (!*known)
		return OK;
	*optimal = true;
	cheapest_price(&e->cheapest, e->price);
	for (int d = 0; d < e->n_demands; d++) {
		TRY(find_cheapest(e, d, &cost));
		if (cost < e->price[e->topo->n_links + d]) {
			*optimal = false;
			TRY(add_cheapest(e, d));
		}
	}
	return OK;
}

/* ---- result ---- */

struct part {
	int column, demand;
	int64_t weight;
};

static int
by_demand(const void *a, const void *b)
{
	const struct part *p = a, *q = b;
	return p->demand != q->demand ? (p->demand > q->demand) - (p->demand < q->demand)
	    : (p->column > q->column) - (p->column < q->column);
}

/* Parts to a packing: what a demand has above `each` goes, from its last trees. NULL: some demand has less. */
static Status
pack_parts(struct exact *e, struct part *part, int n, int64_t each, Frac unit, Packing **out)
{
	Packing *pack;
	int64_t common = each;
	qsort(part, (size_t)n, sizeof *part, by_demand);
	for (int i = 0, d = 0; d < e->n_demands; d++) {
		int64_t room = each;
		for (; i < n && part[i].demand == d; i++) {
			part[i].weight = part[i].weight < room ? part[i].weight : room;
			room -= part[i].weight;
			common = gcd64(part[i].weight, common);
		}
		if (room > 0)
			return OK;
	}
	if (common == 0 || (Wide)each / common * e->n_demands >> 32 || !frac_mul(unit, (Frac){ common, 1 }, &unit))
		return OK;
	TRY(NEW(e->ctx, pack, 1));
	TRY(NEW(e->ctx, pack->tree, n));
	TRY(NEW(e->ctx, pack->demand, n));
	TRY(NEW(e->ctx, pack->weight, n));
	pack->unit = unit;
	for (int i = 0; i < n; i++) {
		if (part[i].weight == 0)
			continue;
		pack->tree[pack->n_trees] = e->column[part[i].column].tree;
		pack->demand[pack->n_trees] = part[i].demand;
		pack->weight[pack->n_trees++] = part[i].weight / common;
	}
	*out = pack;
	return OK;
}

/* The exact x as a packing; NULL where its numbers are too large. */
static Status
exact_packing(struct exact *e, Packing **out)
{
	struct part *part;
	int n = 0;
	int64_t den = common_denominator(e->x, e->n_basis, INT64_C(1) << 32), each = 0;
	Frac unit;
	if (den == 0 || !frac_make(e->unit, den, &unit))
		return OK;
	TRY(TEMP(e->ctx, part, e->n_basis));
	for (int i = 0; i < e->n_basis; i++) {
		Wide weight = (Wide)e->x[i].num * (den / e->x[i].den);
		if (weight >> 62)
			return OK;
		if (e->basic[i] == RATE_COLUMN)
			each = (int64_t)weight;
		else
			part[n++] = (struct part){ e->basic[i], e->column[e->basic[i]].demand, (int64_t)weight };
	}
	return pack_parts(e, part, n, each, unit, out);
}

/* x as GLPK says, scaled back into the capacities and rounded down to whole multiples of a small part of the rate. */
static Status
rounded_packing(struct exact *e, Packing **out)
{
	struct part *part;
	double *load, congestion = 1, rate = 0;
	int64_t *sum, each = INT64_MAX;
	int n = 0;
	TRY(TEMP(e->ctx, part, e->n_basis));
	TRY(TEMP(e->ctx, load, e->topo->n_links));
	TRY(TEMP(e->ctx, sum, e->n_demands));
	for (int i = 0; i < e->n_basis; i++) {
		if (e->basic[i] == RATE_COLUMN) {
			rate = e->value[i];
			continue;
		}
		const struct column *c = &e->column[e->basic[i]];
		for (int k = 0; k < c->n; k++)
			load[c->link[k]] += c->uses[k] * e->value[i];
	}
	for (int l = 0; l < e->topo->n_links; l++)
		congestion = fmax(congestion, load[l] * (double)e->unit / (double)e->topo->link[l].capacity);
	Frac unit = pack_unit(e->topo, rate * e->n_demands / congestion * (double)e->unit);
	for (int i = 0; i < e->n_basis; i++) {
		if (e->basic[i] == RATE_COLUMN)
			continue;
		int64_t weight = (int64_t)(e->value[i] / congestion * (double)e->unit / frac_double(unit) * (1 - 1e-9));
		part[n] = (struct part){ e->basic[i], e->column[e->basic[i]].demand, weight };
		sum[part[n++].demand] += weight;
	}
	for (int d = 0; d < e->n_demands; d++)
		each = sum[d] < each ? sum[d] : each;
	if (each > 0)
		TRY(pack_parts(e, part, n, each, unit, out));
	return *out ? pack_check(e->ctx, e->topo, *out) : OK;
}

static bool
fits(struct exact *e, const Packing *pack)
{
	int64_t *load = e->price;
	memset(load, 0, (size_t)e->topo->n_links * sizeof *load);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		for (int i = 0; i < tree->n_down + tree->n_up; i++) {
			const Edge *edge = i < tree->n_down ? &tree->down[i] : &tree->up[i - tree->n_down];
			for (int k = 0; k < edge->n_links; k++)
				load[edge->link[k]] += pack->weight[t];
		}
	}
	for (int l = 0; l < e->topo->n_links; l++)
		if ((Wide)load[l] * pack->unit.num > (Wide)e->topo->link[l].capacity * pack->unit.den)
			return false;
	return true;
}

/* The certificate of the collective where it is tight, else y, times M by the size of a demand. */
static Status
bound_of(struct exact *e, const Bound *known, Bound *out)
{
	Bound bound = { .rate = e->optimum, .kind = collective_has_blocks(e->coll) ? CERTIFICATE_LENGTHS : CERTIFICATE_PRICES };
	if (frac_cmp(e->optimum, known->rate) >= 0) {
		*out = *known;
		return OK;
	}
	TRY(NEW(e->ctx, bound.part, e->topo->n_vertices));
	TRY(NEW(e->ctx, bound.price, e->topo->n_links));
	for (int l = 0; l < e->topo->n_links; l++) {
		bound.price[l] = e->place[l] < 0 ? FRAC_ZERO : e->y[e->place[l]];
		if (!frac_mul(bound.price[l], (Frac){ collective_shares(e->coll, e->topo->n_ranks), 1 }, &bound.price[l]))
			return OK;
	}
	*out = bound;
	return OK;
}

/* Where numbers do not stay small, prices near GLPK's still prove a bound near the optimum: whatever the prices are, the
 * cheapest trees of all demands cost `cost` together, so prices times M by a demand's size / cost are a certificate. */
static Status
rounded_bound(struct exact *e, Bound *out)
{
	enum { BITS = 16 };
	int shares = collective_shares(e->coll, e->topo->n_ranks);
	Bound bound = { .kind = collective_has_blocks(e->coll) ? CERTIFICATE_LENGTHS : CERTIFICATE_PRICES };
	double top = 1e-9;
	Wide sum = 0, cost = 0;
	for (int l = 0; l < e->topo->n_links; l++)
		top = fmax(top, e->dual[l]);
	for (int l = 0; l < e->topo->n_links; l++) {
		e->price[l] = (int64_t)(e->dual[l] / top * (1 << BITS));
		sum += (Wide)e->topo->link[l].capacity * e->price[l];
	}
	/* The proof is for trees of any kind. */
	e->cheapest.paired = true;
	cheapest_price(&e->cheapest, e->price);
	for (int d = 0; d < e->n_demands; d++) {
		int64_t one;
		TRY(find_cheapest(e, d, &one));
		cost += one;
	}
	if (cost == 0 || sum >> 100 || !frac_make(sum * shares, cost, &bound.rate) || frac_cmp(bound.rate, out->rate) >= 0)
		return OK;
	TRY(NEW(e->ctx, bound.part, e->topo->n_vertices));
	TRY(NEW(e->ctx, bound.price, e->topo->n_links));
	for (int l = 0; l < e->topo->n_links; l++)
		if (!frac_make((Wide)e->price[l] * shares, cost, &bound.price[l]))
			return OK;
	*out = bound;
	return OK;
}

/* ---- column generation ---- */

/* Of each demand the cheapest tree under GLPK's duals, if it improves by more than doubles err, comes in. */
static Status
price_columns(struct exact *e, bool *improved)
{
	double top = 1e-9;
	int64_t cost;
	*improved = false;
	for (int l = 0; l < e->topo->n_links; l++)
		top = fmax(top, e->dual[l]);
	double scale = ldexp(1, SEARCH_PRICE_BITS - 1) / top;
	for (int l = 0; l < e->topo->n_links; l++)
		e->price[l] = (int64_t)(e->dual[l] * scale);
	cheapest_price(&e->cheapest, e->price);
	for (int d = 0; d < e->n_demands; d++) {
		TRY(find_cheapest(e, d, &cost));
		if ((double)cost >= scale * (e->dual[e->topo->n_links + d] - 1e-7 / e->n_demands))
			continue;
		*improved = true;
		TRY(add_cheapest(e, d));
	}
	return OK;
}

/* Something to begin with: of each demand the cheapest tree where every link costs what it takes to fill it. */
static Status
first_columns(struct exact *e)
{
	int64_t least = INT64_MAX, cost;
	for (int l = 0; l < e->topo->n_links; l++)
		least = e->topo->link[l].capacity < least ? e->topo->link[l].capacity : least;
	for (int l = 0; l < e->topo->n_links; l++)
		e->price[l] = 1 + (int64_t)(((Wide)least << (SEARCH_PRICE_BITS - 1)) / e->topo->link[l].capacity);
	cheapest_price(&e->cheapest, e->price);
	for (int d = 0; d < e->n_demands; d++) {
		TRY(find_cheapest(e, d, &cost));
		TRY(add_cheapest(e, d));
	}
	return OK;
}

/* What the exact y proves: M by the size of a demand times the sum of capacity * y. */
static bool
proven_rate(struct exact *e, Frac *out)
{
	Frac sum = FRAC_ZERO, one;
	for (int i = 0; i < e->n_basis; i++) {
		if (e->full[i] >= e->topo->n_links)
			continue;
		if (!frac_mul((Frac){ e->topo->link[e->full[i]].capacity, 1 }, e->y[i], &one) || !frac_add(sum, one, &sum))
			return false;
	}
	return frac_mul(sum, (Frac){ collective_shares(e->coll, e->topo->n_ranks), 1 }, out);
}

/* The basis at hand, exactly: its prices, and if these prove that it is optimal its trees. False in *optimal: trees came
 * in. Numbers that do not stay small leave e->proven false, or *pack NULL. */
static Status
settle_basis(struct exact *e, Packing **pack, bool *optimal)
{
	bool known = e->n_basis <= LIMIT_LP_BASIS, exact = false;
	Packing *found = NULL;
	Frac rate;
	*optimal = true;
	if (known)
		TRY(solve_basis(e, true, e->y, &known));
	if (known)
		TRY(prove_prices(e, &known, optimal));
	if (known && !*optimal)
		return OK;
	e->proven = known && proven_rate(e, &e->optimum);
	if (e->proven)
		TRY(solve_basis(e, false, e->x, &exact));
	if (exact)
		TRY(exact_packing(e, &found));
	/* What was read back is no proof until it is checked. */
	if (found && fits(e, found) && pack_rate(found, e->coll, e->topo->n_ranks, &rate)
	    && frac_cmp(rate, e->optimum) == 0)
		*pack = found;
	return OK;
}

/* Solve to the end over the kinds of trees that `cheapest` finds. *pack: NULL only if GLPK has no solution. */
static Status
optimise(struct exact *e, Packing **pack)
{
	bool optimal = false;
	*pack = NULL;
	e->proven = false;
	for (int round = 0; round < LIMIT_LP_ROUNDS && !optimal; round++) {
		bool improved;
		TRY(lp_guard(e->ctx, solve_lp, e));
		if (!e->solved)
			return OK;
		TRY(price_columns(e, &improved));
		if (!improved)
			TRY(settle_basis(e, pack, &optimal));
	}
	return *pack ? OK : rounded_packing(e, pack);
}

static Status
exact_new(Ctx *ctx, const Topology *topo, const Request *ask, struct exact *e)
{
	*e = (struct exact){ .ctx = ctx, .topo = topo, .coll = ask->coll, .root = ask->root, .unit = topo_link_unit(topo) };
	e->n_demands = collective_demands(ask->coll, topo->n_ranks);
	e->n_rows = topo->n_links + e->n_demands;
	size_t n = (size_t)e->n_rows;
	TRY(cheapest_new(ctx, topo, &e->cheapest));
	TRY(TEMP(ctx, e->price, n));
	TRY(TEMP(ctx, e->dual, n + 2));
	TRY(TEMP(ctx, e->value, n));
	TRY(TEMP(ctx, e->full, n));
	TRY(TEMP(ctx, e->basic, n));
	TRY(TEMP(ctx, e->place, n + 2));
	TRY(TEMP(ctx, e->x, n));
	return TEMP(ctx, e->y, n);
}

/* Do trees both ways leave something to pairs? A rounded rate is near enough to the bound or it is not. */
static bool
wants_pairs(struct exact *e, const Bound *bound, const Packing *pack)
{
	Frac rate;
	if (e->coll != ALLREDUCE || e->cheapest.paired || !pack)
		return false;
	if (e->proven)
		return frac_cmp(e->optimum, bound->rate) < 0;
	return !pack_rate(pack, e->coll, e->topo->n_ranks, &rate) || frac_double(rate) < 0.999 * frac_double(bound->rate);
}

Status
pack_exact(Ctx *ctx, const Topology *topo, const Bound *bound, const Packing *pool, const Request *ask, Packing **out,
    Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct exact e;
	Packing *pack, *paired;
	TRY(exact_new(ctx, topo, ask, &e));
	TRY(first_columns(&e));
	for (int t = 0; pool && t < pool->n_trees; t++)
		TRY(add_tree(&e, &pool->tree[t]));
	TRY(lp_guard(ctx, start_lp, &e));
	Status status = optimise(&e, &pack);
	if (status == OK && wants_pairs(&e, bound, pack)) {
		e.cheapest.paired = true;
		status = optimise(&e, &paired);
		pack = paired ? paired : pack;
	}
	if (status == OK && e.solved)
		status = e.proven ? bound_of(&e, bound, proof) : rounded_bound(&e, proof);
	if (status == OK)
		status = lp_guard(ctx, end_lp, &e);
	lp_release();
	TRY(status);
	if (pack)
		talk(ctx, "lp: %d trees of %d that came up, %s", pack->n_trees, e.n_columns, e.proven ? "proven" : "rounded");
	arena_release(&ctx->scratch, mark);
	*out = pack;
	return OK;
}
