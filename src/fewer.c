/* Fewer trees for a rate that is known, from the same linear program: r is held at its target, and sum cost(t) x(t) is made
 * least. A solution of a linear program uses no more trees than rows are tight; which ones depends on the costs. At first a
 * tree costs what it is deep, then 1 / (x(t) + delta), so that trees of little weight become dear and vanish (iteratively
 * reweighted l1 minimisation: Candes, Wakin and Boyd 2008); after that costs lean this way and that, by fixed sequences.
 *
 * Any tree that costs its demand's z under the optimal prices can be in an optimal packing. Prices with a little noise,
 * less than any difference between prices, find more of these than came up on the way to the optimum. */
#include "base/mix.h"
#include "exact.h"

#include <math.h>
#include <string.h>

enum {
	ROUNDS = 24,		/* programs solved */
	SETTLE = 4,		/* of them before costs lean another way */
	NOISES = 12,		/* price vectors with noise */
	MOST_CELLS = 1 << 20	/* rows times columns of a program that is solved so often */
};

/* More trees that cost what their demands' z are, under the duals at hand. */
static Status
widen(struct exact *e)
{
	enum { PRICE_BITS = 26, SHIFT = SEARCH_PRICE_BITS - 1 - PRICE_BITS };
	double top = 1e-9;
	for (int row = 0; row < e->n_links; row++)
		top = fmax(top, e->dual[row] / (double)e->fold[row]);
	for (int n = 0; n < NOISES; n++) {
		double range = ldexp(1, SHIFT) / (4.0 * e->topo->n_ranks);
		for (int l = 0; l < e->topo->n_links; l++) {
			int row = e->sym->link_orbit[l];
			int64_t price = (int64_t)(e->dual[row] / (double)e->fold[row] / top * (1 << PRICE_BITS) + 0.5);
			e->price[l] = (price << SHIFT) + (int64_t)(range * mix_unit((uint64_t)n + 1, (uint64_t)l));
		}
		cheapest_price(&e->cheapest, e->price);
		for (int d = 0; d < e->n_demands; d++) {
			Demand demand = collective_demand(e->coll, e->topo->n_ranks, e->root, e->lead[d]);
			int64_t cost;
			bool added;
			TRY(cheapest_find(&e->cheapest, demand, &cost));
			if (cost >= 0)
				TRY(exact_add_cheapest(e, d, &added));
		}
	}
	return OK;
}

/* ---- programs ---- */

static void
hold_rate(void *with)
{
	struct exact *e = with;
	double target = (double)e->target.num / (double)e->target.den / e->scale;
	glp_set_row_bnds(e->lp, e->n_rows, GLP_LO, target, 0);
	glp_set_obj_dir(e->lp, GLP_MIN);
	glp_set_obj_coef(e->lp, 1, 0);
}

struct costs {
	struct exact *e;
	double *cost;
};

static void
set_costs(void *with)
{
	struct costs *costs = with;
	for (int c = 0; c < costs->e->loaded; c++)
		glp_set_obj_coef(costs->e->lp, c + 2, costs->cost[c]);
}

/* x of all columns, from the basis. */
static void
read_values(const struct exact *e, double *x)
{
	memset(x, 0, (size_t)e->n_columns * sizeof *x);
	for (int i = 0; i < e->n_basis; i++)
		if (e->basic[i] >= 0)
			x[e->basic[i]] = e->value[i];
}

/* Fewer trees, then less depth, then fewer edges. */
static bool
is_better(const struct exact *e, const Packing *a, const Packing *b)
{
	int depth[2] = { 0, 0 };
	const Packing *pack[2] = { a, b };
	if (a->n_trees != b->n_trees)
		return a->n_trees < b->n_trees;
	for (int i = 0; i < 2; i++) {
		for (int t = 0; t < pack[i]->n_trees; t++) {
			int one = tree_depth(&pack[i]->tree[t], e->work);
			depth[i] = one > depth[i] ? one : depth[i];
		}
	}
	return depth[0] < depth[1];
}

static bool
reaches(const struct exact *e, const Packing *pack)
{
	Frac rate, share = { collective_shares(e->coll, e->topo->n_ranks), 1 }, want;
	return pack_rate(pack, e->coll, e->topo->n_ranks, &rate) && frac_mul(e->target, (Frac){ e->unit, 1 }, &want)
	    && frac_mul(want, share, &want) && frac_cmp(rate, want) >= 0;
}

static void
choose_costs(const struct exact *e, int round, const double *x, double *cost)
{
	double delta = 1e-3 * (double)e->target.num / (double)e->target.den;
	for (int c = 0; c < e->n_columns; c++) {
		/* A tree stands for its images: as many as its demand's orbit has members, or more. */
		double shape = (1 + 0.1 * e->column[c].depth) * e->members[e->column[c].orbit];
		if (round % SETTLE > 0)
			cost[c] = shape * delta / (x[c] + delta);
		else
			cost[c] = round == 0 ? shape : shape * (0.2 + mix_unit((uint64_t)round, (uint64_t)c));
	}
}

Status
exact_fewer(struct exact *e, Packing **pack)
{
	double *x;
	struct costs costs = { .e = e };
	Packing *found;
	int least = collective_demands(e->coll, e->topo->n_ranks);
	/* What was rounded may be below the target: other trees may have it in small numbers. */
	bool rounded = !reaches(e, *pack);
	if (((*pack)->n_trees <= least && !rounded) || e->topo->n_ranks > EXACT_FEW_RANKS || e->stalled)
		return OK;
	TRY(widen(e));
	if ((int64_t)e->n_rows * e->n_columns > MOST_CELLS)
		return OK;
	TRY(TEMP(e->ctx, x, e->n_columns));
	TRY(TEMP(e->ctx, costs.cost, e->n_columns));
	read_values(e, x);
	/* New columns are loaded before they have costs. */
	TRY(exact_solve(e));
	TRY(lp_guard(e->ctx, hold_rate, e));
	for (int round = 0; round < ROUNDS && ((*pack)->n_trees > least || rounded); round++) {
		if (progress(e->ctx, "fewer trees: %d", (*pack)->n_trees) <= 0)
			break;
		choose_costs(e, round, x, costs.cost);
		TRY(lp_guard(e->ctx, set_costs, &costs));
		TRY(exact_solve(e));
		if (!e->solved)
			break;
		read_values(e, x);
		TRY(exact_trees(e, &found));
		if (found && reaches(e, found) && (rounded || is_better(e, found, *pack))) {
			*pack = found;
			rounded = false;
		}
	}
	return OK;
}

/* ---- a limit on the number of trees ---- */

static void
seek_rate(void *with)
{
	struct exact *e = with;
	glp_set_row_bnds(e->lp, e->n_rows, GLP_FR, 0, 0);
	glp_set_obj_dir(e->lp, GLP_MAX);
	glp_set_obj_coef(e->lp, 1, 1);
	for (int c = 0; c < e->loaded; c++)
		glp_set_obj_coef(e->lp, c + 2, 0);
}

struct closing {
	struct exact *e;
	const bool *closed;
};

static void
close_columns(void *with)
{
	struct closing *closing = with;
	for (int c = 0; c < closing->e->loaded; c++)
		if (closing->closed[c])
			glp_set_col_bnds(closing->e->lp, c + 2, GLP_FX, 0, 0);
}

/* Close the lightest trees of the basis, but never the last of a demand: one in eight of what is too many, at least one. */
static bool
close_lightest(const struct exact *e, const double *x, int too_many, bool *closed, int *left)
{
	memset(left, 0, (size_t)e->n_demands * sizeof *left);
	for (int c = 0; c < e->n_columns; c++) {
		/* What is out of the basis stays out. */
		closed[c] = closed[c] || x[c] <= 0;
		left[e->column[c].orbit] += !closed[c];
	}
	int close = too_many / 8 > 1 ? too_many / 8 : 1;
	for (; close > 0; close--) {
		int lightest = -1;
		for (int c = 0; c < e->n_columns; c++)
			if (!closed[c] && left[e->column[c].orbit] > 1 && (lightest < 0 || x[c] < x[lightest]))
				lightest = c;
		if (lightest < 0)
			return false;
		closed[lightest] = true;
		left[e->column[lightest].orbit]--;
	}
	return true;
}

Status
exact_at_most(struct exact *e, int max_trees, Packing **pack)
{
	double *x;
	int *left, n_trees = (*pack)->n_trees;
	bool *closed;
	Packing *found = *pack;
	struct closing closing = { .e = e };
	TRY(TEMP(e->ctx, x, e->n_columns));
	TRY(TEMP(e->ctx, left, e->n_demands));
	TRY(TEMP(e->ctx, closed, e->n_columns));
	closing.closed = closed;
	TRY(lp_guard(e->ctx, seek_rate, e));
	TRY(exact_solve(e));
	while (e->solved) {
		read_values(e, x);
		TRY(exact_trees(e, &found));
		if (found && found->n_trees <= max_trees) {
			*pack = found;
			break;
		}
		n_trees = found ? found->n_trees : n_trees;
		if (!close_lightest(e, x, (n_trees - max_trees) / e->sym->size, closed, left))
			break;
		TRY(lp_guard(e->ctx, close_columns, &closing));
		TRY(exact_solve(e));
	}
	return OK;
}
