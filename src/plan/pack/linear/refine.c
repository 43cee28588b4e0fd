/* The solution of the linear program beyond the digits of doubles, by iterative refinement (Gleixner, Steffy and
 * Wolter 2016, Iterative refinement for linear programming).
 *
 * x, the slacks and y are whole numbers of small units, so that what they leave of the capacities and of the costs is
 * exact:
 *
 *     left = capacity - A x - slack,     gain = c - A' y
 *
 * The program with these in place of capacities and costs, both made larger, and with -x as lower bounds has
 * corrections of x and y as its solution, in doubles; each round adds about 20 bits. GLPK starts each from the basis
 * of the one before. What is a trifle to its tolerances in one round is large in the next, so the basis becomes
 * optimal, too. Capacities without a common unit have solutions whose fractions need thousands of digits: these are
 * as near to them as is wanted, and what is rounded is checked in integers. */
#include "plan/pack/linear/master.h"

#include <math.h>

enum {
	ROUNDS = 10,
	STEP = 24,		/* bits by which the scale grows in a round at most */
	X_BITS = 96,		/* of x with its fractions, */
	X_FRACTION = 60,	/* of which at most this many are after the point */
	Y_BITS = FINE_DUAL_BITS
};

struct refine {
	struct master *m;
	int n_rows, x_bits;	/* rows of links and demands; bits of fractions in x */
	Wide *x, *slack, *left, *gain;	/* x: of trees; slack, left: of rows; gain: of trees */
	Wide rate, rate_gain;
	double x_scale, y_scale;
	glp_prob *lp;		/* columns: r, trees, slacks */
	bool solved, out_of_range;
};

/* ---- what is left ---- */

static void
find_left(struct refine *f)
{
	const struct master *m = f->m;
	for (int row = 0; row < f->n_rows; row++)
		f->left[row] = (row < m->n_link_rows ? (Wide)m->capacity[row] << f->x_bits : -f->rate) - f->slack[row];
	f->rate_gain = (Wide)1 << Y_BITS;
	for (int d = 0; d < m->n_demand_rows; d++)
		f->rate_gain -= m->fine_dual[m->n_link_rows + d];
	for (int c = 0; c < m->n_columns; c++) {
		const struct column *column = &m->column[c];
		int demand = m->n_link_rows + column->orbit;
		f->left[demand] += f->x[c];
		f->gain[c] = m->fine_dual[demand];
		for (int i = 0; i < column->n; i++) {
			f->left[column->row[i]] -= column->uses[i] * f->x[c];
			f->gain[c] -= column->uses[i] * m->fine_dual[column->row[i]];
		}
	}
}

static double
larger(double worst, Wide value)
{
	return fmax(worst, (double)value);
}

/* By how much x and y miss their program; and sum of capacity * y less r. */
static void
find_errors(const struct refine *f, double *x_error, double *y_error, double *gap)
{
	const struct master *m = f->m;
	double dual = 0, rate = ldexp((double)f->rate, -f->x_bits);
	*x_error = larger(0, -f->rate);
	*y_error = larger(0, f->rate_gain < 0 ? -f->rate_gain : f->rate_gain);
	for (int row = 0; row < f->n_rows; row++) {
		*x_error = larger(larger(*x_error, f->left[row]), -f->left[row]);
		*x_error = larger(*x_error, -f->slack[row]);
		*y_error = larger(*y_error, -m->fine_dual[row]);
		if (row < m->n_link_rows)
			dual += (double)m->capacity[row] * ldexp((double)m->fine_dual[row], -Y_BITS);
	}
	for (int c = 0; c < m->n_columns; c++) {
		*x_error = larger(*x_error, -f->x[c]);
		*y_error = larger(*y_error, f->gain[c]);
	}
	*gap = rate > 0 ? fabs(dual - rate) / rate : 1;
}

/* ---- the program ---- */

static void
create_program(void *with)
{
	struct refine *f = with;
	struct master *m = f->m;
	f->lp = glp_create_prob();
	glp_set_obj_dir(f->lp, GLP_MAX);
	glp_add_rows(f->lp, f->n_rows);
	glp_add_cols(f->lp, 1 + m->n_columns + f->n_rows);
	for (int d = 0; d < m->n_demand_rows; d++) {
		m->index[d + 1] = m->n_link_rows + d + 1;
		m->entry[d + 1] = 1;
	}
	glp_set_mat_col(f->lp, 1, m->n_demand_rows, m->index, m->entry);
	glp_set_col_stat(f->lp, 1, master_is_basic(m, RATE_COLUMN) ? GLP_BS : GLP_NL);
	for (int c = 0; c < m->n_columns; c++) {
		const struct column *column = &m->column[c];
		for (int i = 0; i < column->n; i++) {
			m->index[i + 1] = column->row[i] + 1;
			m->entry[i + 1] = (double)column->uses[i];
		}
		m->index[column->n + 1] = m->n_link_rows + column->orbit + 1;
		m->entry[column->n + 1] = -1;
		glp_set_mat_col(f->lp, c + 2, column->n + 1, m->index, m->entry);
		glp_set_col_stat(f->lp, c + 2, master_is_basic(m, c) ? GLP_BS : GLP_NL);
	}
	for (int row = 0; row < f->n_rows; row++) {
		int slack = 2 + m->n_columns + row;
		m->index[1] = row + 1;
		m->entry[1] = 1;
		glp_set_mat_col(f->lp, slack, 1, m->index, m->entry);
		glp_set_col_stat(f->lp, slack, m->tight_at[row] < 0 ? GLP_BS : GLP_NL);
		glp_set_row_stat(f->lp, row + 1, GLP_NS);
	}
}

static void
set_column(struct refine *f, int col, Wide value, Wide gain)
{
	glp_set_col_bnds(f->lp, col, GLP_LO, -(double)value * f->x_scale, 0);
	glp_set_obj_coef(f->lp, col, (double)gain * f->y_scale);
}

/* False: it is out of range. */
static bool
add_double(double more, int bits, Wide *value)
{
	if (!(fabs(more) < ldexp(1, bits)))
		return false;
	*value += (Wide)more;
	return *value >> bits == 0 || -*value >> bits == 0;
}

static bool
correct(const struct refine *f, int col, Wide *value)
{
	if (glp_get_col_stat(f->lp, col) == GLP_BS)
		return add_double(glp_get_col_prim(f->lp, col) / f->x_scale, X_BITS, value);
	/* At its lower bound it is 0. */
	*value = 0;
	return true;
}

static bool
correct_all(struct refine *f)
{
	struct master *m = f->m;
	bool fits = correct(f, 1, &f->rate);
	for (int c = 0; c < m->n_columns; c++)
		fits = correct(f, c + 2, &f->x[c]) && fits;
	for (int row = 0; row < f->n_rows; row++) {
		fits = correct(f, m->n_columns + 2 + row, &f->slack[row]) && fits;
		fits = add_double(glp_get_row_dual(f->lp, row + 1) / f->y_scale, Y_BITS + 8, &m->fine_dual[row])
		    && fits;
	}
	return fits;
}

static bool
is_solved(glp_prob *lp, const glp_smcp *options)
{
	int code = glp_simplex(lp, options);
	return code == 0 && glp_get_status(lp) == GLP_OPT;
}

static void
solve_program(void *with)
{
	struct refine *f = with;
	struct master *m = f->m;
	int slack = 2 + m->n_columns;
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.it_lim = m->ctx->pivots > 0 ? (int)m->ctx->pivots : LIMIT_LP_STEPS;
	options.tm_lim = progress(m->ctx, "linear program: more digits");
	options.tm_lim = options.tm_lim < 1 ? 1 : options.tm_lim;
	for (int row = 0; row < f->n_rows; row++)
		glp_set_row_bnds(f->lp, row + 1, GLP_FX, (double)f->left[row] * f->x_scale, 0);
	set_column(f, 1, f->rate, f->rate_gain);
	for (int c = 0; c < m->n_columns; c++)
		set_column(f, c + 2, f->x[c], f->gain[c]);
	for (int row = 0; row < f->n_rows; row++)
		set_column(f, slack + row, f->slack[row], -m->fine_dual[row]);
	f->solved = is_solved(f->lp, &options);
	/* The basis may be singular under other tolerances, or too far away. */
	if (!f->solved && !m->refined) {
		glp_adv_basis(f->lp, 0);
		f->solved = is_solved(f->lp, &options);
	}
	if (!f->solved && !m->refined) {
		glp_scale_prob(f->lp, GLP_SF_AUTO);
		glp_adv_basis(f->lp, 0);
		f->solved = is_solved(f->lp, &options);
	}
	if (f->solved)
		f->out_of_range = !correct_all(f);
}

static void
delete_program(void *with)
{
	struct refine *f = with;
	glp_delete_prob(f->lp);
}

/* ---- rounds ---- */

/* The largest power of 2 that is at most 1 / error, and at most `most`. */
static double
scale_for(double error, double most)
{
	int exponent;
	if (error <= 0)
		return most;
	frexp(error, &exponent);
	return fmin(ldexp(1, -exponent), most);
}

static Status
refine_new(struct master *m, struct refine *f)
{
	Wide all = 1;
	*f = (struct refine){ .m = m, .n_rows = m->n_rows - 1, .x_bits = X_BITS };
	for (int row = 0; row < m->n_link_rows; row++)
		all += m->capacity[row];
	/* No rate is above the sum of all capacities. */
	for (; all; all >>= 1)
		f->x_bits--;
	f->x_bits = f->x_bits > X_FRACTION ? X_FRACTION : f->x_bits;
	TRY(TEMP(m->ctx, f->x, m->n_columns));
	TRY(TEMP(m->ctx, f->gain, m->n_columns));
	TRY(TEMP(m->ctx, f->slack, f->n_rows));
	TRY(TEMP(m->ctx, f->left, f->n_rows));
	f->x_scale = ldexp(1 / m->scale, -f->x_bits);
	f->y_scale = ldexp(1, -Y_BITS);
	for (int row = 0; row < f->n_rows; row++)
		m->fine_dual[row] = 0;
	return OK;
}

/* x as rates that fit the capacities: none is negative, and trees over a link with too much load give some up. */
static void
make_fit(struct refine *f)
{
	const struct master *m = f->m;
	for (int c = 0; c < m->n_columns; c++)
		f->x[c] = f->x[c] < 0 ? 0 : f->x[c];
	for (int row = 0; row < f->n_rows; row++)
		f->slack[row] = 0;
	find_left(f);
	for (int c = 0; c < m->n_columns; c++) {
		const struct column *column = &m->column[c];
		double keep = 1;
		for (int i = 0; i < column->n; i++) {
			double capacity = ldexp((double)m->capacity[column->row[i]], f->x_bits);
			if (f->left[column->row[i]] < 0)
				keep = fmin(keep, capacity / (capacity - (double)f->left[column->row[i]]));
		}
		f->x[c] -= (Wide)((double)f->x[c] * (1 - keep));
	}
}

/* What is near enough: errors of 2^-42, relative to r and to the sum of all z, which is 1. */
static Status
run_rounds(struct refine *f)
{
	const double enough = ldexp(1, -42);
	struct master *m = f->m;
	double x_error, y_error, gap;
	find_left(f);
	for (int round = 0; round < ROUNDS; round++) {
		TRY(lp_guard(m->ctx, solve_program, f));
		/* Where GLPK fails, the numbers of the round before are still there. */
		m->refined = (m->refined || f->solved) && !f->out_of_range;
		if (!f->solved || f->out_of_range)
			return OK;
		find_left(f);
		find_errors(f, &x_error, &y_error, &gap);
		if (x_error <= enough * (double)f->rate && ldexp(y_error, -Y_BITS) <= enough && gap <= 1e-12)
			return OK;
		f->x_scale = scale_for(x_error, f->x_scale * (1 << STEP));
		f->y_scale = scale_for(y_error, f->y_scale * (1 << STEP));
	}
	return OK;
}

Status
refine(struct master *m, struct fine *out)
{
	struct refine f;
	m->refined = false;
	TRY(refine_new(m, &f));
	TRY(lp_guard(m->ctx, create_program, &f));
	TRY(run_rounds(&f));
	TRY(lp_guard(m->ctx, delete_program, &f));
	if (m->refined)
		make_fit(&f);
	*out = (struct fine){ .x = f.x, .rate = f.rate, .bits = f.x_bits };
	return OK;
}
