/* Fewer trees at a given rate, from the same linear program: r is held at its target, and sum cost(t) x(t) is
 * minimised. A basic solution has no more trees than there are tight rows; which ones depends on the costs. At first
 * the cost of a tree grows with its depth; then it is 1 / (x(t) + delta), so that trees of little weight become dear
 * and vanish (iteratively reweighted l1
 * minimisation: Candes, Wakin and Boyd 2008); after that costs are random numbers from fixed sequences.
 *
 * Any tree whose reduced cost is 0 under the optimal prices can be in an optimal packing: the program is degenerate.
 * Prices with a little noise, less than any difference between prices, find more of these than column generation
 * needed.
 *
 * With a tableau neighbours of a basis are tried instead, where a tree that comes in drives out several. */
#include "base/hash.h"
#include "plan/pack/linear/master.h"

#include <math.h>
#include <string.h>

enum {
	ROUNDS = 24,		/* programs solved */
	STIRS = 4,		/* searches of a tableau for fewer trees next to a basis */
	SETTLE = 4,		/* of them before other random costs are chosen */
	NOISES = 12,		/* price vectors with noise */
	MOST_CELLS = 1 << 20	/* rows times columns of a program that is solved ROUNDS times */
};

/* More trees of reduced cost 0, under the current duals. */
static Status
add_degenerate_columns(struct master *m)
{
	enum { PRICE_BITS = 26, SHIFT = SEARCH_PRICE_BITS - 1 - PRICE_BITS };
	double top = master_top_price(m);
	for (int n = 0; n < NOISES; n++) {
		double range = ldexp(1, SHIFT) / (4.0 * m->topo->n_ranks);
		for (int l = 0; l < m->topo->n_links; l++) {
			int64_t price = (int64_t)(master_link_price(m, l) / top * (1 << PRICE_BITS) + 0.5);
			m->price[l] = (price << SHIFT) + (int64_t)(range * hash_unit((uint64_t)n + 1, (uint64_t)l));
		}
		cheapest_price(&m->cheapest, m->price);
		for (int d = 0; d < m->n_demand_rows; d++) {
			Demand demand = collective_demand(m->coll, m->topo->n_ranks, m->root, m->representative[d]);
			int64_t cost;
			bool added;
			TRY(cheapest_find(&m->cheapest, demand, &cost));
			if (cost >= 0)
				TRY(master_add_cheapest(m, d, &added));
		}
	}
	return OK;
}

/* ---- programs ---- */

/* x of all columns, from the basis. */
static void
read_solution(const struct master *m, double *x)
{
	memset(x, 0, (size_t)m->n_columns * sizeof *x);
	for (int i = 0; i < m->n_basis; i++)
		if (m->basic[i] >= 0)
			x[m->basic[i]] = m->value[i];
}

/* Fewer trees, then less depth. */
static bool
is_better(const struct master *m, const Packing *a, const Packing *b)
{
	if (a->n_trees != b->n_trees)
		return a->n_trees < b->n_trees;
	return pack_depth(a, m->work) < pack_depth(b, m->work);
}

static bool
reaches(const struct master *m, const Packing *pack)
{
	Frac rate, share = { collective_shares(m->coll, m->topo->n_ranks), 1 }, want;
	return pack_rate(pack, m->coll, m->topo->n_ranks, &rate) && frac_mul(m->target, (Frac){ m->unit, 1 }, &want)
	    && frac_mul(want, share, &want) && frac_cmp(rate, want) >= 0;
}

static void
choose_costs(const struct master *m, int round, const double *x, double *cost)
{
	double delta = 1e-3 * (double)m->target.num / (double)m->target.den;
	for (int c = 0; c < m->n_columns; c++) {
		/* A column stands for its images: at least one for each demand of its orbit. */
		double shape = (1 + 0.1 * m->column[c].depth) * m->orbit_size[m->column[c].orbit];
		if (round % SETTLE > 0)
			cost[c] = shape * delta / (x[c] + delta);
		else
			cost[c] = round == 0 ? shape : shape * (0.2 + hash_unit((uint64_t)round, (uint64_t)c));
	}
}

struct rounds {
	double *cost;		/* of columns */
	double *x;		/* of the last basis */
	bool rounded;		/* *pack is below the target: other trees may reach it in small numbers */
	bool any;		/* some basis had small numbers */
	bool settled;		/* costs stay what they are until others are chosen, and so do the trees */
};

/* The trees of a basis, if they may be better. */
static Status
take_basis(struct master *m, struct rounds *rounds, Packing **pack)
{
	Packing *found;
	if (rounds->any && !rounds->rounded && basis_no_better(m, *pack))
		return OK;
	TRY(basis_trees(m, &found));
	/* Of capacities without a common unit every basis has too large numbers. */
	rounds->any = rounds->any || found;
	if (found && reaches(m, found) && (rounds->rounded || is_better(m, found, *pack))) {
		*pack = found;
		rounds->rounded = false;
	}
	return OK;
}

static Status
next_basis(struct master *m, struct rounds *rounds, int round, Packing **pack)
{
	choose_costs(m, round, rounds->x, rounds->cost);
	TRY(master_set_costs(m, rounds->cost));
	TRY(master_solve(m));
	rounds->settled = m->solved && !m->moved && round % SETTLE > 0;
	if (!m->solved || rounds->settled)
		return OK;
	read_solution(m, rounds->x);
	return take_basis(m, rounds, pack);
}

/* With a tableau: from the basis where trees are cheapest by their depth to its neighbours, then from others. */
static Status
search_bases(struct master *m, struct rounds *rounds, Packing **pack)
{
	choose_costs(m, 0, rounds->x, rounds->cost);
	TRY(master_set_costs(m, rounds->cost));
	TRY(master_solve(m));
	if (m->solved)
		TRY(take_basis(m, rounds, pack));
	for (int i = 0; i < STIRS && m->solved && m->tableau; i++) {
		TRY(master_thin(m, i));
		if (m->solved)
			TRY(take_basis(m, rounds, pack));
	}
	return OK;
}

Status
sparsify(struct master *m, Packing **pack)
{
	struct rounds rounds = { .rounded = !reaches(m, *pack) };
	int least = collective_demands(m->coll, m->topo->n_ranks);
	if (((*pack)->n_trees <= least && !rounds.rounded) || m->topo->n_ranks > FEW_RANKS || m->perturbed)
		return OK;
	TRY(add_degenerate_columns(m));
	if ((int64_t)m->n_rows * m->n_columns > MOST_CELLS)
		return OK;
	TRY(TEMP(m->ctx, rounds.x, m->n_columns));
	TRY(TEMP(m->ctx, rounds.cost, m->n_columns));
	read_solution(m, rounds.x);
	/* New columns are loaded first: costs are set for columns that the solver has. */
	TRY(master_solve(m));
	TRY(master_hold_rate(m));
	if (m->tableau)
		return search_bases(m, &rounds, pack);
	for (int round = 0; round < ROUNDS && ((*pack)->n_trees > least || rounds.rounded) && m->solved; round++) {
		if (progress(m->ctx, "fewer trees: %d", (*pack)->n_trees) <= 0)
			break;
		if (!rounds.settled || round % SETTLE == 0)
			TRY(next_basis(m, &rounds, round, pack));
		if (!rounds.any && round + 1 >= SETTLE)
			break;
	}
	return OK;
}

/* ---- a limit on the number of trees ---- */

static void
seek_rate(void *with)
{
	struct master *m = with;
	glp_set_row_bnds(m->lp, m->n_rows, GLP_FR, 0, 0);
	glp_set_obj_dir(m->lp, GLP_MAX);
	glp_set_obj_coef(m->lp, 1, 1);
	for (int c = 0; c < m->loaded; c++)
		glp_set_obj_coef(m->lp, c + 2, 0);
}

struct closing {
	struct master *m;
	const bool *closed;
};

static void
close_columns(void *with)
{
	struct closing *closing = with;
	for (int c = 0; c < closing->m->loaded; c++)
		if (closing->closed[c])
			glp_set_col_bnds(closing->m->lp, c + 2, GLP_FX, 0, 0);
}

/* Close the lightest trees of the basis, but never the last of a demand: an eighth of those that are too many, at
 * least one. */
static bool
close_lightest(const struct master *m, const double *x, int too_many, bool *closed, int *left)
{
	memset(left, 0, (size_t)m->n_demand_rows * sizeof *left);
	for (int c = 0; c < m->n_columns; c++) {
		/* A tree that left the basis does not come back. */
		closed[c] = closed[c] || x[c] <= 0;
		left[m->column[c].orbit] += !closed[c];
	}
	int close = too_many / 8 > 1 ? too_many / 8 : 1;
	for (; close > 0; close--) {
		int lightest = -1;
		for (int c = 0; c < m->n_columns; c++)
			if (!closed[c] && left[m->column[c].orbit] > 1 && (lightest < 0 || x[c] < x[lightest]))
				lightest = c;
		if (lightest < 0)
			return false;
		closed[lightest] = true;
		left[m->column[lightest].orbit]--;
	}
	return true;
}

Status
sparsify_to(struct master *m, int max_trees, Packing **pack)
{
	double *x;
	int *left, n_trees = (*pack)->n_trees;
	bool *closed;
	Packing *found = *pack;
	struct closing closing = { .m = m };
	TRY(TEMP(m->ctx, x, m->n_columns));
	TRY(TEMP(m->ctx, left, m->n_demand_rows));
	TRY(TEMP(m->ctx, closed, m->n_columns));
	closing.closed = closed;
	TRY(master_use_glpk(m));
	TRY(lp_guard(m->ctx, seek_rate, m));
	TRY(master_solve(m));
	while (m->solved) {
		read_solution(m, x);
		TRY(basis_trees(m, &found));
		if (found && found->n_trees <= max_trees) {
			*pack = found;
			break;
		}
		n_trees = found ? found->n_trees : n_trees;
		if (!close_lightest(m, x, (n_trees - max_trees) / m->sym->size, closed, left))
			break;
		TRY(lp_guard(m->ctx, close_columns, &closing));
		TRY(master_solve(m));
	}
	return OK;
}
