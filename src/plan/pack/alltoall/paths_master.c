/* The linear program over detours, in GLPK. Demand d takes its key path but for what its detours take of it:
 *
 *     minimise    L
 *     such that   keys(l) + sum over detours t of (uses(l, t) - uses(l, key of t)) x(t) <= capacity(l) L
 *                 0 <= x(t) <= 1
 *                 sum over detours t of d of x(t) <= 1    where that is not so by itself
 *
 * where keys and uses count the weight of their demand.
 * So there is a row for each link, and for few demands, instead of one for each demand: 1,000 instead of 66,000 for 256
 * GPUs. Detours that have all of their demand become its key path.
 *
 * A few columns leave many prices undetermined, so that they jump, and columns that are priced by them are of no use.
 * While columns are missing each row has two more: load above what is allowed, at a little more than the best price
 * known, and load that is missing, which gives back a little less; prices stay between both (Marsten, Hogan and
 * Blankenship 1975, the boxstep method; du Merle, Villeneuve, Desrosiers and Hansen 1999). */
#include "base/array.h"
#include "base/hash.h"
#include "plan/pack/alltoall/paths.h"

#include <math.h>
#include <string.h>

enum { LOAD_COLUMN = 1, ABOVE_COLUMN = 2 };	/* L; the first of n_rows each above and below */

/* Of a column, or of a row of all detours. */
static Status
make_room(struct paths *p)
{
	int most = p->n_rows + p->n_detours + 2;
	if (most <= p->work_room)
		return OK;
	p->work_room = 2 * most;
	TRY(TEMP(p->ctx, p->index, p->work_room));
	return TEMP(p->ctx, p->entry, p->work_room);
}

static void
create_problem(void *with)
{
	struct paths *p = with;
	p->lp = glp_create_prob();
	glp_set_obj_dir(p->lp, GLP_MIN);
	glp_add_rows(p->lp, p->n_rows);
	p->lp_rows = p->n_rows;
	p->first = glp_add_cols(p->lp, 1 + 2 * p->n_rows) + 1 + 2 * p->n_rows;
	for (int l = 0; l < p->n_rows; l++) {
		p->index[l + 1] = l + 1;
		p->entry[l + 1] = -p->capacity[l];
	}
	glp_set_mat_col(p->lp, LOAD_COLUMN, p->n_rows, p->index, p->entry);
	glp_set_col_bnds(p->lp, LOAD_COLUMN, GLP_FR, 0, 0);
	glp_set_obj_coef(p->lp, LOAD_COLUMN, p->n_rows);
	for (int l = 0; l < 2 * p->n_rows; l++) {
		p->index[1] = 1 + l % p->n_rows;
		p->entry[1] = l < p->n_rows ? -1 : 1;
		glp_set_mat_col(p->lp, ABOVE_COLUMN + l, 1, p->index, p->entry);
	}
}

Status
paths_open(struct paths *p)
{
	TRY(TEMP(p->ctx, p->row_of, p->n_demands));
	TRY(TEMP(p->ctx, p->sum, p->n_demands));
	TRY(make_room(p));
	return lp_guard(p->ctx, create_problem, p);
}

void
paths_box(struct paths *p, double width, double limit)
{
	for (int l = 0; l < p->n_rows; l++) {
		int above = ABOVE_COLUMN + l, below = above + p->n_rows;
		double most = p->best_y[l] * (1 + width) + limit / p->capacity[l];
		double least = width > 0 ? p->best_y[l] * (1 - width) - 15 * limit / p->capacity[l] : 0;
		glp_set_col_bnds(p->lp, above, GLP_LO, 0, 0);
		glp_set_col_bnds(p->lp, below, least > 0 ? GLP_LO : GLP_FX, 0, 0);
		glp_set_obj_coef(p->lp, above, most);
		glp_set_obj_coef(p->lp, below, -fmax(0, least));
	}
}

void
paths_sides(struct paths *p)
{
	for (int l = 0; l < p->n_rows; l++)
		glp_set_row_bnds(p->lp, l + 1, GLP_UP, 0,
		    -p->load[l] - p->perturbation * hash_unit(0, (uint64_t)l));
}

/* ---- columns ---- */

static int
find_row(const struct paths *p, int n, int row)
{
	int k = 1;
	while (k <= n && p->index[k] != row)
		k++;
	return k;
}

static int
fill_path(struct paths *p, const struct path *path, double x, int n)
{
	for (int i = 0; i < path->n; i++) {
		int k = find_row(p, n, p->row[path->link[i]] + 1);
		if (k > n) {
			p->index[++n] = p->row[path->link[i]] + 1;
			p->entry[n] = 0;
		}
		p->entry[k] += x;
	}
	return n;
}

/* In index and entry. Returns the number of entries. */
static int
fill_column(struct paths *p, const struct detour *d)
{
	double weight = p->weight[d->demand];
	int n = fill_path(p, &p->key[d->demand], -weight, fill_path(p, &d->path, weight, 0)), kept = 0;
	for (int k = 1; k <= n; k++) {
		if (p->entry[k] == 0)
			continue;
		p->index[++kept] = p->index[k];
		p->entry[kept] = p->entry[k];
	}
	if (p->row_of[d->demand]) {
		p->index[++kept] = p->row_of[d->demand];
		p->entry[kept] = 1;
	}
	return kept;
}

static void
load_columns(struct paths *p)
{
	int col = p->first + p->loaded;
	if (p->loaded < p->n_detours)
		glp_add_cols(p->lp, p->n_detours - p->loaded);
	for (; p->loaded < p->n_detours; p->loaded++, col++) {
		int n = fill_column(p, &p->detour[p->loaded]);
		glp_set_mat_col(p->lp, col, n, p->index, p->entry);
		glp_set_col_bnds(p->lp, col, GLP_DB, 0, 1);
	}
}

/* ---- the simplex method ---- */

static void
read_solution(struct paths *p)
{
	p->value = glp_get_obj_val(p->lp) / p->n_rows;
	p->excess = 0;
	for (int l = 0; l < p->n_rows; l++)
		p->y[l] = fmax(0, -glp_get_row_dual(p->lp, l + 1));
	for (int l = 0; l < 2 * p->n_rows; l++)
		p->excess += fmax(0, glp_get_col_prim(p->lp, ABOVE_COLUMN + l));
	for (int i = 0; i < p->n_detours; i++)
		p->detour[i].x = fmin(1, fmax(0, glp_get_col_prim(p->lp, p->first + i)));
}

static bool
run_simplex(struct paths *p)
{
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.meth = p->dual ? GLP_DUALP : GLP_PRIMAL;
	options.tol_dj = options.tol_bnd = p->tolerance;
	options.it_lim = LIMIT_LP_STEPS;
	if (p->most_steps)
		options.it_lim = p->most_steps - glp_get_it_cnt(p->lp);
	options.tm_lim = progress(p->ctx, "linear program: %d rows, %d paths", p->lp_rows, p->n_demands + p->n_detours);
	options.tm_lim = options.tm_lim < 1 ? 1 : options.tm_lim;
	int code = glp_simplex(p->lp, &options);
	p->timed_out = code == GLP_ETMLIM;
	p->too_long = p->most_steps && code == GLP_EITLIM;
	return code == 0 && glp_get_status(p->lp) == GLP_OPT;
}

static void
solve_program(void *with)
{
	struct paths *p = with;
	load_columns(p);
	p->solved = run_simplex(p);
	if (p->timed_out)
		time_is_over(p->ctx);
	/* Rounding may have made the last basis singular: try once more, from the standard one. */
	if (!p->solved && !p->timed_out && !p->too_long) {
		glp_std_basis(p->lp);
		p->solved = run_simplex(p);
	}
	p->dual = false;
	if (p->solved)
		read_solution(p);
}

Status
paths_solve(struct paths *p)
{
	TRY(make_room(p));
	return lp_guard(p->ctx, solve_program, p);
}

/* ---- between solutions ---- */

static void
add_row(struct paths *p, int demand)
{
	int row = glp_add_rows(p->lp, 1), n = 0;
	for (int i = 0; i < p->n_detours; i++) {
		if (p->detour[i].demand != demand)
			continue;
		p->index[++n] = p->first + i;
		p->entry[n] = 1;
	}
	glp_set_mat_row(p->lp, row, n, p->index, p->entry);
	glp_set_row_bnds(p->lp, row, GLP_UP, 0, 1);
	p->row_of[demand] = row;
	p->lp_rows++;
}

struct rows {
	struct paths *p;
	int added;
};

static void
limit_demands(void *with)
{
	struct rows *rows = with;
	struct paths *p = rows->p;
	memset(p->sum, 0, (size_t)p->n_demands * sizeof *p->sum);
	for (int i = 0; i < p->n_detours; i++)
		p->sum[p->detour[i].demand] += p->detour[i].x;
	for (int i = 0; i < p->n_detours; i++) {
		int d = p->detour[i].demand;
		if (p->sum[d] <= 1 + 1e-9 || p->row_of[d])
			continue;
		add_row(p, d);
		rows->added++;
	}
	p->dual = rows->added > 0;
}

Status
paths_limit_demands(struct paths *p, int *added)
{
	struct rows rows = { .p = p };
	TRY(lp_guard(p->ctx, limit_demands, &rows));
	*added = rows.added;
	return OK;
}

/* Is it the only detour of its demand, and does it have all of it? */
static bool
becomes_key(const struct paths *p, int i, const int *n_detours)
{
	int d = p->detour[i].demand;
	return glp_get_col_stat(p->lp, p->first + i) == GLP_NU && n_detours[d] == 1 && !p->row_of[d];
}

static bool
is_useless(struct paths *p, int i)
{
	const double dear = 0.3;
	const int long_idle = 5;
	if (glp_get_col_stat(p->lp, p->first + i) != GLP_NL) {
		p->detour[i].idle = 0;
		return false;
	}
	return ++p->detour[i].idle > long_idle || glp_get_col_dual(p->lp, p->first + i) > dear;
}

struct tidy {
	struct paths *p;
	int *n_detours;		/* of each demand */
};

static void
tidy_columns(void *with)
{
	struct tidy *t = with;
	struct paths *p = t->p;
	int n = 0, n_gone = 0;
	for (int i = 0; i < p->n_detours; i++)
		t->n_detours[p->detour[i].demand]++;
	for (int i = 0; i < p->n_detours; i++) {
		struct detour *d = &p->detour[i];
		bool key = becomes_key(p, i, t->n_detours);
		if (key) {
			paths_add_load(p, &p->key[d->demand], -p->weight[d->demand]);
			p->key[d->demand] = d->path;
			paths_add_load(p, &d->path, p->weight[d->demand]);
		}
		if (key || is_useless(p, i)) {
			t->n_detours[d->demand]--;
			p->index[++n_gone] = p->first + i;
		} else {
			p->detour[n++] = *d;
		}
	}
	if (n_gone > 0)
		glp_del_cols(p->lp, n_gone, p->index);
	p->n_detours = p->loaded = n;
	paths_sides(p);
}

Status
paths_tidy(struct paths *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	struct tidy tidy = { .p = p };
	TRY(TEMP(p->ctx, tidy.n_detours, p->n_demands));
	TRY(lp_guard(p->ctx, tidy_columns, &tidy));
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

static void
delete_problem(void *with)
{
	struct paths *p = with;
	glp_delete_prob(p->lp);
}

Status
paths_close(struct paths *p)
{
	return lp_guard(p->ctx, delete_problem, p);
}
