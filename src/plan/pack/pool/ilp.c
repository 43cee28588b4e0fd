/* Fewer trees for the same rate: integer programs over the trees that MWU found (Blink 3.2.1).
 *
 * With unit u of rate, link l can carry floor(capacity / u) units. A choice is a tree t with a number w of units, and
 * x(t, w) = 1 takes it:
 *     minimise    sum of x(t, w)
 *     such that   sum of uses(l, t) w x(t, w) <= floor(capacity(l) / u)      for every link l
 *                 need <= sum of w x(t, w) <= most
 * where `most` is the largest number of units that the bound allows, and `need` the least within tolerance of it.
 * pack_select: u is one physical link and w = 1, each tree once or not at all.
 * pack_minimise: u = 1/2, 1/3, ... of a link, until there is a solution; then, for
 * that number of trees, the rate is maximised. (Whole numbers k(t) of units with k(t) <= M y(t) are equivalent and
 * need fewer columns, but GLPK takes ten times as long over the additional rows.)
 *
 * Branch and bound is cut off after a number of nodes, the fewer the larger the program is, and not of seconds, so
 * that the result does not depend on the machine. */
#include "plan/pack/lp/glpk.h"
#include "plan/pack/pool/pool.h"
#include "plan/pack/pool/rows.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ILP_ROOT = 20 };	/* nodes that the first linear program of an ILP costs at least */

struct ilp {
	Ctx *ctx;
	const Topology *topo;
	const Packing *pack;
	struct pool_rows rows;
	int most_trees;		/* that are of use */
	Frac target, top;	/* rates: within tolerance of the optimum; the optimum, as far as is known */
	/* Of the current unit: */
	Frac unit;
	int64_t need, most;
	int n_choices, *tree, *units;	/* t and w of each choice */
	int *first_choice;	/* of each tree */
	int *k;			/* result: units of each tree */
	int64_t *cells;		/* left of LIMIT_ILP_CELLS */
};

/* ---- one integer program ---- */

/* Units that a link can carry. */
static int64_t
capacity_in_units(const struct ilp *p, int row)
{
	return (int64_t)((Wide)p->topo->link[p->rows.link[row]].capacity * p->unit.den / p->unit.num);
}

struct node_limit {
	int nodes, most;
	double enough;		/* an objective that no solution can improve on */
	bool maximise;
};

static void
watch(glp_tree *tree, void *info)
{
	struct node_limit *limit = info;
	if (glp_ios_reason(tree) == GLP_ISELECT && ++limit->nodes > limit->most)
		glp_ios_terminate(tree);
	if (glp_ios_reason(tree) == GLP_IBINGO) {
		double best = glp_mip_obj_val(glp_ios_get_prob(tree));
		if (limit->maximise ? best >= limit->enough - 0.5 : best <= limit->enough + 0.5)
			glp_ios_terminate(tree);
	}
}

static int
add_row(glp_prob *lp, int n, const int *index, const double *value)
{
	int row = glp_add_rows(lp, 1);
	glp_set_mat_row(lp, row, n, index, value);
	return row;
}

/* What the number of trees is at least: as many as the widest choices need. */
static int
least_trees(const struct ilp *p)
{
	int widest = 1;
	for (int c = 0; c < p->n_choices; c++)
		widest = p->units[c] > widest ? p->units[c] : widest;
	return (int)((p->need + widest - 1) / widest);
}

/* Column c + 1 is choice c. index and value: n_choices + 1 entries. least: of trees. */
static void
fill_program(const struct ilp *p, glp_prob *lp, int least, int *index, double *value)
{
	int row;
	glp_add_cols(lp, p->n_choices);
	for (int c = 0; c < p->n_choices; c++) {
		glp_set_col_kind(lp, c + 1, GLP_BV);
		glp_set_obj_coef(lp, c + 1, 1);
		index[c + 1] = c + 1;
		value[c + 1] = p->units[c];
	}
	row = add_row(lp, p->n_choices, index, value);
	glp_set_row_bnds(lp, row, p->need == p->most ? GLP_FX : GLP_DB, (double)p->need, (double)p->most);
	for (int r = 0; r < p->rows.n; r++) {
		int n = 0;
		for (int i = p->rows.first[r]; i < p->rows.first[r + 1]; i++) {
			int t = p->rows.entry[i];
			for (int c = p->first_choice[t]; c < p->first_choice[t + 1]; c++) {
				index[++n] = c + 1;
				value[n] = p->rows.uses[i] * p->units[c];
			}
		}
		row = add_row(lp, n, index, value);
		glp_set_row_bnds(lp, row, GLP_UP, 0, (double)capacity_in_units(p, r));
	}
	/* The number of trees. Integer, so this cuts. */
	for (int c = 0; c < p->n_choices; c++) {
		index[c + 1] = c + 1;
		value[c + 1] = 1;
	}
	row = add_row(lp, p->n_choices, index, value);
	bool any = p->most_trees >= p->n_choices;
	glp_set_row_bnds(lp, row, any ? GLP_LO : least == p->most_trees ? GLP_FX : GLP_DB, least, p->most_trees);
}

static bool
solve(const struct ilp *p, glp_prob *lp, bool maximise, double enough)
{
	int64_t size = (int64_t)glp_get_num_rows(lp) * glp_get_num_cols(lp), nodes = *p->cells / size;
	struct node_limit limit = { .enough = enough, .maximise = maximise };
	glp_iocp with;
	limit.most = nodes < LIMIT_ILP_NODES ? (int)nodes : LIMIT_ILP_NODES;
	if (limit.most == 0)
		return false;
	glp_init_iocp(&with);
	with.msg_lev = GLP_MSG_OFF;
	with.presolve = GLP_ON;
	with.bt_tech = GLP_BT_BPH;	/* best projection: good solutions early, of the four that GLPK has */
	int left = progress(p->ctx, "ilp: %d choices", p->n_choices);
	with.tm_lim = left > LIMIT_ILP_SECONDS * 1000 ? LIMIT_ILP_SECONDS * 1000 : left < 1 ? 1 : left;
	with.cb_func = watch;
	with.cb_info = &limit;
	glp_set_obj_dir(lp, maximise ? GLP_MAX : GLP_MIN);
	int code = glp_intopt(lp, &with);
	/* The first linear program takes as long as ILP_ROOT nodes, even if it proves that there is no solution. */
	int64_t used = limit.nodes < limit.most ? limit.nodes : limit.most;
	*p->cells -= (used > ILP_ROOT ? used : ILP_ROOT) * size;
	if (code == GLP_ETMLIM && with.tm_lim < LIMIT_ILP_SECONDS * 1000)
		time_is_over(p->ctx);
	if (code == GLP_ETMLIM)
		return false;
	return glp_mip_status(lp) == GLP_OPT || glp_mip_status(lp) == GLP_FEAS;
}

/* Returns the number of choices taken. */
static int
keep_solution(const struct ilp *p, glp_prob *lp)
{
	int taken = 0;
	memset(p->k, 0, (size_t)p->pack->n_trees * sizeof *p->k);
	for (int c = 0; c < p->n_choices; c++) {
		if (glp_mip_col_val(lp, c + 1) > 0.5) {
			p->k[p->tree[c]] += p->units[c];
			taken++;
		}
	}
	return taken;
}

/* Fewest trees with need..most units, then most units with as many trees. False: none was found. */
static bool
fewest_trees(const struct ilp *p, glp_prob *lp, int *index, double *value)
{
	int counts, trees, least = least_trees(p);
	if (least > p->most_trees)
		return false;
	fill_program(p, lp, least, index, value);
	counts = glp_get_num_rows(lp);
	if (!solve(p, lp, false, least))
		return false;
	trees = keep_solution(p, lp);
	if (p->need == p->most)
		return true;
	glp_set_row_bnds(lp, counts, GLP_UP, 0, trees);
	for (int c = 0; c < p->n_choices; c++)
		glp_set_obj_coef(lp, c + 1, p->units[c]);
	if (solve(p, lp, true, (double)p->most))
		keep_solution(p, lp);
	return true;
}

struct attempt {
	const struct ilp *p;
	int *index;
	double *value;
	bool found;
};

static void
attempt(void *with)
{
	struct attempt *a = with;
	glp_prob *lp = glp_create_prob();
	a->found = fewest_trees(a->p, lp, a->index, a->value);
	glp_delete_prob(lp);
}

static Status
run_glpk(const struct ilp *p, bool *found)
{
	struct attempt a = { .p = p };
	TRY(TEMP(p->ctx, a.index, p->n_choices + 1));
	TRY(TEMP(p->ctx, a.value, p->n_choices + 1));
	TRY(lp_guard(p->ctx, attempt, &a));
	lp_release();
	*found = a.found;
	return OK;
}

/* Choices of a tree: 1, 2, 3, 4, 6, 8, 12, 16, ... units, and as many as it can carry. */
static bool
is_offered(int64_t w, int64_t all)
{
	while (w > 4 && w % 2 == 0)
		w /= 2;
	return w <= 4 || w == all || w == 5 || (w <= 6 && all <= 12);
}

/* The units that each tree could carry by itself. */
static Status
narrowest_of(const struct ilp *p, int64_t **out)
{
	int64_t *least;
	TRY(TEMP(p->ctx, least, p->pack->n_trees));
	for (int t = 0; t < p->pack->n_trees; t++)
		least[t] = p->most;
	for (int r = 0; r < p->rows.n; r++) {
		for (int i = p->rows.first[r]; i < p->rows.first[r + 1]; i++) {
			int64_t carries = capacity_in_units(p, r) / p->rows.uses[i];
			if (carries < least[p->rows.entry[i]])
				least[p->rows.entry[i]] = carries;
		}
	}
	*out = least;
	return OK;
}

static Status
make_choices(struct ilp *p, bool once)
{
	int n = p->pack->n_trees, most = 0;
	int64_t *narrowest;
	TRY(narrowest_of(p, &narrowest));
	for (int t = 0; t < n; t++)
		for (int64_t w = 1; w <= narrowest[t]; w++)
			most += w == 1 || (!once && is_offered(w, narrowest[t]));
	TRY(TEMP(p->ctx, p->tree, most));
	TRY(TEMP(p->ctx, p->units, most));
	TRY(TEMP(p->ctx, p->first_choice, n + 1));
	p->n_choices = 0;
	for (int t = 0; t < n; t++) {
		for (int64_t w = 1; w <= narrowest[t]; w++) {
			if (w > 1 && (once || !is_offered(w, narrowest[t])))
				continue;
			p->tree[p->n_choices] = t;
			p->units[p->n_choices++] = (int)w;
		}
		p->first_choice[t + 1] = p->n_choices;
	}
	return OK;
}

/* ---- units ---- */

static Status
selected(const struct ilp *p, Packing **out)
{
	Packing *few;
	TRY(pack_new(p->ctx, p->pack->n_trees, false, &few));
	few->unit = p->unit;
	for (int t = 0; t < p->pack->n_trees; t++) {
		if (p->k[t] < 1)
			continue;
		few->tree[few->n_trees] = p->pack->tree[t];
		few->weight[few->n_trees++] = p->k[t];
	}
	TRY(pack_check(p->ctx, p->topo, few));
	*out = few;
	return OK;
}

/* One unit: *out, if there is a solution. False in *fine: the unit is too fine to be tried. */
static Status
try_unit(struct ilp *p, Frac base, int parts, Packing **out, bool *fine)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	bool found = false;
	Frac reached;
	if (progress(p->ctx, "ilp: units of 1/%d", parts) <= 0) {
		*fine = false;
		return OK;
	}
	*fine = frac_div(base, (Frac){ parts, 1 }, &p->unit) && frac_floor_div(p->top, p->unit) <= LIMIT_ILP_UNITS;
	if (!*fine)
		return OK;
	p->most = frac_floor_div(p->top, p->unit);
	p->need = frac_floor_div(p->target, p->unit);
	if (!frac_mul(p->unit, (Frac){ p->need, 1 }, &reached) || frac_cmp(reached, p->target) < 0)
		p->need++;
	if (p->need > p->most || p->most < 1)
		return OK;
	TRY(make_choices(p, parts == 1));
	if (p->n_choices > 0)
		TRY(run_glpk(p, &found));
	if (found)
		TRY(selected(p, out));
	if (found)
		log_verbose(p->ctx, "ilp: %d of %d trees, at least %lld and at most %lld units of %.6g GB/s",
		    (*out)->n_trees, p->pack->n_trees, (long long)p->need, (long long)p->most,
		    frac_double(p->unit) / 1e9);
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

static Status
ilp_new(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int most_trees,
    int64_t *cells, struct ilp *p)
{
	Frac keep;
	*p = (struct ilp){ .ctx = ctx, .topo = topo, .pack = pack, .most_trees = most_trees, .top = optimum,
	    .cells = cells };
	TRY(TEMP(ctx, p->k, pack->n_trees));
	TRY(pool_rows(ctx, topo, pack, &p->rows));
	/* Units are compared by products of 128 bits. */
	if (!frac_fits(optimum))
		p->top = optimum = frac_whole_above(optimum);
	if (!frac_sub(FRAC_ONE, ask->tolerance, &keep) || !frac_mul(optimum, keep, &p->target)
	    || !frac_fits(p->target))
		return fail(ctx, LIMIT, "%s: rates need more than 64 bits", topo->name);
	return OK;
}

Status
pack_select(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int64_t *cells,
    bool *possible, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct ilp p;
	Packing *few = NULL;
	bool fine;
	TRY(ilp_new(ctx, topo, optimum, pack, ask, INT_MAX, cells, &p));
	TRY(try_unit(&p, (Frac){ topo_link_unit(topo), 1 }, 1, &few, &fine));
	*possible = fine && p.need <= p.most;
	arena_release(&ctx->scratch, mark);
	*out = few;
	return OK;
}

Status
pack_minimise(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int most_trees,
    int64_t *cells, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct ilp p;
	Packing *few = NULL;
	bool fine = true;
	TRY(ilp_new(ctx, topo, optimum, pack, ask, most_trees, cells, &p));
	/* Where one link is too fine a unit, units are fractions of the optimum instead. */
	Frac base = (Frac){ topo_link_unit(topo), 1 };
	if (frac_floor_div(p.top, base) > LIMIT_ILP_UNITS / 4)
		base = p.top;
	for (int parts = 2; !few && fine && *cells > 0; parts++)
		TRY(try_unit(&p, base, parts, &few, &fine));
	arena_release(&ctx->scratch, mark);
	*out = few;
	return OK;
}
