/* What solves the restricted master problem in doubles: a tableau where it is small, else GLPK. */
#include "base/hash.h"
#include "plan/pack/linear/linear.h"
#include "plan/pack/linear/master.h"

#include <math.h>

/* ---- the program ---- */

/* GLPK counts rows and columns from 1. */
static void
create_problem(void *with)
{
	struct master *m = with;
	m->lp = glp_create_prob();
	glp_set_obj_dir(m->lp, GLP_MAX);
	glp_add_rows(m->lp, m->n_rows);
	glp_set_row_bnds(m->lp, m->n_rows, GLP_FR, 0, 0);
	for (int row = 0; row < m->n_link_rows; row++)
		glp_set_row_bnds(m->lp, row + 1, GLP_UP, 0, (double)m->capacity[row] / m->scale);
	/* r - sum of x(t) <= 0 */
	glp_add_cols(m->lp, 1);
	for (int d = 0; d < m->n_demand_rows; d++) {
		glp_set_row_bnds(m->lp, m->n_link_rows + d + 1, GLP_UP, 0, 0);
		m->index[d + 1] = m->n_link_rows + d + 1;
		m->entry[d + 1] = 1;
	}
	m->index[m->n_demand_rows + 1] = m->n_rows;
	m->entry[m->n_demand_rows + 1] = 1;
	glp_set_mat_col(m->lp, 1, m->n_demand_rows + 1, m->index, m->entry);
	glp_set_col_bnds(m->lp, 1, GLP_LO, 0, 0);
	glp_set_obj_coef(m->lp, 1, 1);
}

static void
load_columns(struct master *m)
{
	for (; m->loaded < m->n_columns; m->loaded++) {
		const struct column *c = &m->column[m->loaded];
		int col = glp_add_cols(m->lp, 1);
		for (int i = 0; i < c->n; i++) {
			m->index[i + 1] = c->row[i] + 1;
			m->entry[i + 1] = (double)c->uses[i];
		}
		m->index[c->n + 1] = m->n_link_rows + c->orbit + 1;
		m->entry[c->n + 1] = -1;
		glp_set_mat_col(m->lp, col, c->n + 1, m->index, m->entry);
		glp_set_col_bnds(m->lp, col, GLP_LO, 0, 0);
	}
}

/* ---- the basis ---- */

bool
master_is_basic(const struct master *m, int c)
{
	if (m->tableau)
		return tableau_is_basic(m->tableau, m->tableau->m + c + 1);
	return glp_get_col_stat(m->lp, c + 2) == GLP_BS;
}

/* The tableau has no row for r >= target: r itself is no less. */
static bool
is_tight(const struct master *m, int row)
{
	if (!m->tableau)
		return glp_get_row_stat(m->lp, row + 1) != GLP_BS;
	return !tableau_is_basic(m->tableau, row);	/* of the last row: r, the first column */
}

static double
value_of(const struct master *m, int c)
{
	return m->tableau ? tableau_value(m->tableau, c + 1) : glp_get_col_prim(m->lp, c + 2);
}

static void
read_basis(struct master *m)
{
	int n_tight = 0, n_basic = 0;
	for (int row = 0; row < m->n_rows; row++) {
		bool tight = is_tight(m, row);
		m->tight_at[row] = tight ? n_tight : -1;
		if (tight)
			m->tight[n_tight++] = row;
	}
	for (int c = RATE_COLUMN; c < m->loaded; c++) {
		bool basic = master_is_basic(m, c) || (m->tableau && c == RATE_COLUMN);
		if (basic && n_basic < n_tight) {
			m->value[n_basic] = fmax(value_of(m, c), 0) * m->scale;
			m->basic[n_basic++] = c;
		}
	}
	m->n_basis = n_tight;
}

/* ---- GLPK ---- */

#define PERTURBATION 1e-5	/* relative */

/* Links of equal capacity make the program degenerate, and the simplex method may cycle. Capacities that are
 * perturbed, made a little larger at random, leave it no ties. The basis that it ends with is solved for the true
 * ones. */
static void
perturb_rows(struct master *m)
{
	for (int row = 0; row < m->n_link_rows; row++)
		glp_set_row_bnds(m->lp, row + 1, GLP_UP, 0,
		    (double)m->capacity[row] / m->scale * (1 + PERTURBATION * hash_unit(0, (uint64_t)row)));
	m->perturbed = true;
}

/* False: none is left, or the simplex method cycles. One stays, so that the number remains a limit. */
static bool
take_pivots(struct master *m, int code, int taken)
{
	bool left = code != GLP_EITLIM && m->ctx->pivots > taken + 1;
	m->ctx->pivots = left ? m->ctx->pivots - taken : 1;
	return left;
}

static void
solve_lp(void *with)
{
	struct master *m = with;
	bool limited = m->ctx->pivots > 0;
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.it_lim = m->perturbed ? LIMIT_LP_STEPS : 1000 + 10 * m->n_rows;
	if (limited && options.it_lim > m->ctx->pivots)
		options.it_lim = (int)m->ctx->pivots;
	/* When its time is over it may stop before the optimum. */
	options.tm_lim = progress(m->ctx, "linear program: %d rows, %d trees", m->n_rows, m->n_columns);
	options.tm_lim = options.tm_lim < 1 ? 1 : options.tm_lim;
	load_columns(m);
	int before = glp_get_it_cnt(m->lp), code = glp_simplex(m->lp, &options);
	if (code == GLP_EITLIM && !m->perturbed && !limited) {
		perturb_rows(m);
		options.it_lim = LIMIT_LP_STEPS;
		code = glp_simplex(m->lp, &options);
	}
	m->timed_out = code == GLP_ETMLIM || (limited && !take_pivots(m, code, glp_get_it_cnt(m->lp) - before));
	if (m->timed_out)
		time_is_over(m->ctx);
	m->solved = code == 0 && glp_get_status(m->lp) == GLP_OPT;
	m->moved = !m->solved || glp_get_it_cnt(m->lp) != before;
	/* Rounding may have made the last basis singular: try once more, from the standard one. */
	if (!m->solved && !m->timed_out) {
		glp_std_basis(m->lp);
		m->solved = glp_simplex(m->lp, &options) == 0 && glp_get_status(m->lp) == GLP_OPT;
	}
	for (int row = 0; m->solved && row < m->n_rows; row++)
		m->dual[row] = fmax(glp_get_row_dual(m->lp, row + 1), 0);
	if (m->solved)
		read_basis(m);
}

/* ---- the tableau ---- */

enum {
	TABLEAU_ROWS = 128,
	TABLEAU_CELLS = 1 << 16		/* beyond these GLPK is as fast */
};

static Status
create_tableau(struct master *m)
{
	double *limit;
	int n = m->n_rows - 1;
	TRY(TEMP(m->ctx, m->tableau, 1));
	TRY(TEMP(m->ctx, limit, n));
	for (int row = 0; row < m->n_link_rows; row++)
		limit[row] = (double)m->capacity[row] / m->scale;
	for (int d = 0; d < m->n_demand_rows; d++) {
		m->index[d] = m->n_link_rows + d;
		m->entry[d] = 1;
	}
	TRY(tableau_new(m->ctx, limit, n, m->tableau));
	TRY(tableau_add(m->tableau, m->index, m->entry, m->n_demand_rows));
	tableau_cost(m->tableau, 0, 1);
	return OK;
}

static Status
extend_tableau(struct master *m)
{
	for (; m->loaded < m->n_columns; m->loaded++) {
		const struct column *c = &m->column[m->loaded];
		for (int i = 0; i < c->n; i++) {
			m->index[i] = c->row[i];
			m->entry[i] = (double)c->uses[i];
		}
		m->index[c->n] = m->n_link_rows + c->orbit;
		m->entry[c->n] = -1;
		TRY(tableau_add(m->tableau, m->index, m->entry, c->n + 1));
	}
	return OK;
}

static Status
solve_tableau(struct master *m)
{
	int most = 1000 + 10 * m->n_rows, steps = most;
	progress(m->ctx, "linear program: %d rows, %d trees", m->n_rows, m->n_columns);
	TRY(extend_tableau(m));
	m->timed_out = false;
	m->solved = tableau_solve(m->tableau, &steps);
	m->moved = !m->solved || steps != most;
	for (int row = 0; m->solved && row < m->tableau->m; row++)
		m->dual[row] = fmax(tableau_price(m->tableau, row), 0);
	if (m->solved)
		read_basis(m);
	return OK;
}

Status
master_thin(struct master *m, int round)
{
	if (round > 0)
		tableau_stir(m->tableau, (uint64_t)round);
	m->solved = tableau_thin(m->tableau);
	if (m->solved)
		read_basis(m);
	return OK;
}

/* ---- both ---- */

static void
set_held(void *with)
{
	struct master *m = with;
	double target = (double)m->target.num / (double)m->target.den / m->scale;
	glp_set_row_bnds(m->lp, m->n_rows, GLP_LO, target, 0);
	glp_set_obj_dir(m->lp, GLP_MIN);
	glp_set_obj_coef(m->lp, 1, 0);
	for (int c = 0; m->cost && c < m->loaded; c++)
		glp_set_obj_coef(m->lp, c + 2, m->cost[c]);
}

/* GLPK's problem, with the basis of the tableau. */
static void
take_over(void *with)
{
	struct master *m = with;
	const Tableau *t = m->tableau;
	int n = m->loaded;
	m->loaded = 0;
	create_problem(m);
	load_columns(m);
	if (m->held)
		set_held(m);
	for (int row = 0; row < t->m; row++)
		glp_set_row_stat(m->lp, row + 1, tableau_is_basic(t, row) ? GLP_BS : GLP_NU);
	for (int c = 0; c < n; c++)
		glp_set_col_stat(m->lp, c + 2, tableau_is_basic(t, t->m + c + 1) ? GLP_BS : GLP_NL);
	/* r is basic, and its row tight, where the tableau has neither. */
	glp_set_col_stat(m->lp, 1, GLP_BS);
	glp_set_row_stat(m->lp, m->n_rows, tableau_is_basic(t, t->m) ? GLP_BS : GLP_NL);
	m->tableau = NULL;
}

Status
master_use_glpk(struct master *m)
{
	return m->tableau ? lp_guard(m->ctx, take_over, m) : OK;
}

Status
master_hold_rate(struct master *m)
{
	double target = (double)m->target.num / (double)m->target.den / m->scale;
	m->held = true;
	m->cost = NULL;
	if (m->tableau && !tableau_raise(m->tableau, target))
		return master_use_glpk(m);
	if (!m->tableau)
		return lp_guard(m->ctx, set_held, m);
	for (int c = RATE_COLUMN; c < m->loaded; c++)
		tableau_cost(m->tableau, c + 1, 0);
	return OK;
}

Status
master_set_costs(struct master *m, const double *cost)
{
	m->cost = cost;
	if (!m->tableau)
		return lp_guard(m->ctx, set_held, m);
	for (int c = 0; c < m->loaded; c++)
		tableau_cost(m->tableau, c + 1, -cost[c]);
	return OK;
}

Status
master_solve(struct master *m)
{
	if (m->tableau && (int64_t)m->n_rows * m->n_columns <= TABLEAU_CELLS) {
		TRY(solve_tableau(m));
		if (m->solved)
			return OK;
	}
	TRY(master_use_glpk(m));
	return lp_guard(m->ctx, solve_lp, m);
}

static void
delete_problem(void *with)
{
	struct master *m = with;
	glp_delete_prob(m->lp);
}

/* Where pack_has_tableau says so, or any number of trees is enough. With a limit on the steps of the simplex method
 * they are GLPK's. */
static bool
wants_tableau(const struct master *m, const Ask *ask)
{
	bool few = !ask->minimise && m->topo->n_ranks <= LIMIT_SHALLOW_RANKS;
	return (few || pack_has_tableau(m->topo, ask)) && m->n_rows <= TABLEAU_ROWS && m->ctx->pivots == 0;
}

bool
pack_has_tableau(const Topology *topo, const Ask *ask)
{
	enum { SOME_ROWS = 36 };
	return (ask->coll == ALLGATHER || ask->coll == REDUCESCATTER)
	    && topo->n_ranks <= LIMIT_SHALLOW_RANKS
	    && topo->n_vertices == topo->n_ranks && topo->n_links + topo->n_ranks > SOME_ROWS;
}

Status
master_open(struct master *m, const Ask *ask)
{
	return wants_tableau(m, ask) ? create_tableau(m) : lp_guard(m->ctx, create_problem, m);
}

Status
master_close(struct master *m)
{
	return m->lp ? lp_guard(m->ctx, delete_problem, m) : OK;
}
