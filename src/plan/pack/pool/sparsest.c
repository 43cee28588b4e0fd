/* The fewest trees of a pool that reach a rate: the sparsest solution of its linear program. Say that x(t) is the share
 * of tree t in the rate and u(t) the largest that it can have; then
 *
 *     minimise    number of t with x(t) > 0
 *     such that   sum of x(t) = 1,   sum of uses(l, t) x(t) <= capacity(l) / rate   for every link l
 *
 * is at least the minimum of sum x(t) / u(t), a linear program. Of the fewest some are a vertex, and each vertex that
 * the simplex method meets is a solution; most have few trees already.
 *
 * u(t) is the narrowest link of t at first, which often proves that there are no fewer: where no tree can have the
 * whole rate, two are the fewest. Else u(t) is a linear program for each tree, whose vertices are solutions, too; where
 * links are full and the pool has not many more trees than rows, u(t) is all that x(t) can be, and the bound is the
 * answer:
 *
 *     a torus of 4 x 4   32 full links, 32 trees in the pool: one solution, all 32
 *
 * Then branch and bound: a tree with the largest x(t) / u(t) is taken (it costs nothing any more) or left out. Weights
 * of integer programs are multiples of some unit that has to be guessed, while here they are what the links ask for,
 * and solved for exactly (weights.c). */
#include "plan/pack/lp/glpk.h"
#include "plan/pack/pool/pool.h"
#include "plan/pack/pool/weights.h"

#include <limits.h>
#include <math.h>

enum { FREE, TAKEN, LEFT_OUT };

static const double TRIFLE = 1e-7;	/* a share that is 0 but for rounding */
static const double ROUNDING = 1e-6;	/* of a number of trees */

struct sparsest {
	Ctx *ctx;
	const Topology *topo;
	const Packing *pool;
	Frac target;
	struct pool_rows rows;
	glp_prob *lp;		/* column t + 1 is tree t */
	double *widest;		/* u(t) */
	unsigned char *state;	/* of each tree */
	int *depth;		/* of each tree */
	int *path, *chosen;	/* trees that were decided on, in order; work space */
	int fewest;		/* fewer are searched for */
	int64_t cells;		/* left: pivots times size */
	bool halted;		/* before the end: by the cells, the time or the arithmetic */
	bool proven, searched;	/* as pack_sparsest says */
	Status status;
	Packing *found;
};

/* ---- linear programs ---- */

/* Links that cannot be full have no row. index and value: n_trees + 1 entries. */
static void
fill_program(struct sparsest *s, int *index, double *value)
{
	double rate = frac_double(s->target);
	int row;
	glp_add_cols(s->lp, s->pool->n_trees);
	for (int r = 0; r < s->rows.n; r++) {
		double share = (double)s->topo->link[s->rows.link[r]].capacity / rate;
		int n = 0, most = 0;
		for (int e = s->rows.first[r]; e < s->rows.first[r + 1]; e++) {
			int t = s->rows.entry[e], uses = s->rows.uses[e];
			index[++n] = t + 1;
			value[n] = uses;
			most = uses > most ? uses : most;
			s->widest[t] = fmin(s->widest[t], share / uses);
		}
		if (share >= most)
			continue;
		row = glp_add_rows(s->lp, 1);
		glp_set_mat_row(s->lp, row, n, index, value);
		glp_set_row_bnds(s->lp, row, GLP_UP, 0, share);
	}
	for (int t = 0; t < s->pool->n_trees; t++) {
		glp_set_col_bnds(s->lp, t + 1, GLP_LO, 0, 0);
		index[t + 1] = t + 1;
		value[t + 1] = 1;
	}
	row = glp_add_rows(s->lp, 1);
	glp_set_mat_row(s->lp, row, s->pool->n_trees, index, value);
	glp_set_row_bnds(s->lp, row, GLP_FX, 1, 1);
}

/* Is there a solution? GLP_PRIMAL where the objective has changed, GLP_DUALP where bounds have. */
static bool
solve(struct sparsest *s, int method)
{
	glp_smcp with;
	int pivots = glp_get_it_cnt(s->lp), left = progress(s->ctx, "fewer than %d trees", s->fewest);
	glp_init_smcp(&with);
	with.msg_lev = GLP_MSG_OFF;
	with.meth = method;
	with.it_lim = 1000;
	with.tm_lim = left < 1 ? 1 : left;
	int code = glp_simplex(s->lp, &with), status = glp_get_status(s->lp);
	pivots = glp_get_it_cnt(s->lp) - pivots;
	/* A program that was solved already takes two, too. */
	s->cells -= (int64_t)(pivots + 2) * glp_get_num_rows(s->lp) * s->pool->n_trees;
	if (code == GLP_ETMLIM)
		time_is_over(s->ctx);
	bool solved = code == 0 && status == GLP_OPT;
	if (!solved && !(code == 0 && status == GLP_NOFEAS))
		s->halted = true;
	if (s->cells < 0 || code == GLP_ETMLIM || left < 1)
		s->halted = true;
	return solved;
}

static void
set_cost(struct sparsest *s, int t)
{
	glp_set_obj_coef(s->lp, t + 1, s->state[t] == FREE ? 1 / s->widest[t] : 0);
}

static void
decide(struct sparsest *s, int t, int state)
{
	s->state[t] = (unsigned char)state;
	if (state == LEFT_OUT)
		glp_set_col_bnds(s->lp, t + 1, GLP_FX, 0, 0);
	else
		glp_set_col_bnds(s->lp, t + 1, GLP_LO, 0, 0);
	set_cost(s, t);
}

/* Trees of the current vertex, if they are fewer than any before. */
static void
consider(struct sparsest *s)
{
	Packing *few;
	int n = 0;
	for (int t = 0; t < s->pool->n_trees && n < s->fewest; t++)
		if (glp_get_col_prim(s->lp, t + 1) > TRIFLE)
			s->chosen[n++] = t;
	if (n >= s->fewest || s->status)
		return;
	s->status = pool_weights(s->ctx, s->topo, s->pool, &s->rows, s->chosen, n, s->target, &few);
	if (s->status || !few)
		return;
	s->found = few;
	s->fewest = few->n_trees;
}

/* No fewer are below this node of the search. */
static bool
is_bounded(const struct sparsest *s, int taken)
{
	return taken + ceil(glp_get_obj_val(s->lp) - ROUNDING) >= s->fewest;
}

/* ---- search ---- */

/* u(t), as far as the cells last. */
static void
widen(struct sparsest *s)
{
	for (int t = 0; t < s->pool->n_trees; t++)
		glp_set_obj_coef(s->lp, t + 1, 0);
	for (int t = 0; t < s->pool->n_trees && !s->halted && !s->status; t++) {
		glp_set_obj_coef(s->lp, t + 1, -1);
		if (solve(s, GLP_PRIMAL)) {
			s->widest[t] = fmin(s->widest[t], -glp_get_obj_val(s->lp));
			consider(s);
		}
		glp_set_obj_coef(s->lp, t + 1, 0);
	}
	s->searched = !s->halted;
}

/* The free tree that is used most, of what it can be; -1: none is used. */
static int
most_used(const struct sparsest *s)
{
	int best = -1;
	double most = TRIFLE;
	for (int t = 0; t < s->pool->n_trees; t++) {
		double used = s->state[t] == FREE ? glp_get_col_prim(s->lp, t + 1) / s->widest[t] : 0;
		if (used > most) {
			most = used;
			best = t;
		}
	}
	return best;
}

/* Depth-first: each tree of the path is taken at first, then left out. */
static void
branch(struct sparsest *s)
{
	for (int n = 0, taken = 0;;) {
		int next = -1;
		if (solve(s, GLP_DUALP)) {
			consider(s);
			if (!is_bounded(s, taken))
				next = most_used(s);
		}
		if (s->halted || s->status)
			return;
		if (next >= 0) {
			s->path[n++] = next;
			decide(s, next, TAKEN);
			taken++;
			continue;
		}
		for (; n > 0 && s->state[s->path[n - 1]] == LEFT_OUT; n--)
			decide(s, s->path[n - 1], FREE);
		if (n == 0)
			return;
		decide(s, s->path[n - 1], LEFT_OUT);
		taken--;
	}
}

/* Among trees of less than this depth. */
static void
search_within(struct sparsest *s, int depth, int64_t cells)
{
	for (int t = 0; t < s->pool->n_trees; t++)
		decide(s, t, s->widest[t] > TRIFLE && s->depth[t] < depth ? FREE : LEFT_OUT);
	s->halted = false;
	s->cells = cells;
	branch(s);
}

/* The first program, over all trees. False: it has not proven that there are no fewer. */
static bool
search_root(struct sparsest *s)
{
	for (int t = 0; t < s->pool->n_trees; t++)
		set_cost(s, t);
	s->cells = LIMIT_WIDEN_CELLS;
	if (!solve(s, GLP_PRIMAL))
		return false;
	consider(s);
	return !s->halted && is_bounded(s, 0);
}

static void
search(struct sparsest *s)
{
	s->searched = s->proven = search_root(s);
	if (!s->proven && !s->status) {
		widen(s);
		search_within(s, INT_MAX, LIMIT_SPARSEST_CELLS);
		s->proven = !s->halted;
	}
	/* No more trees, but shallower, as long as there are any. */
	for (const Packing *known = NULL; s->found && s->found != known && !s->status;) {
		known = s->found;
		s->fewest = known->n_trees + 1;
		search_within(s, pack_depth(known, s->chosen), LIMIT_SPARSEST_CELLS / 4);
	}
}

/* ---- GLPK's part ---- */

struct program {
	struct sparsest *s;
	int *index;
	double *value;
};

static void
run(void *with)
{
	struct program *p = with;
	p->s->lp = glp_create_prob();
	fill_program(p->s, p->index, p->value);
	search(p->s);
	glp_delete_prob(p->s->lp);
}

Status
pack_sparsest(Ctx *ctx, const Topology *topo, Frac target, const Packing *pool, int fewer_than, bool *searched,
    Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = pool->n_trees;
	struct sparsest s = { .ctx = ctx, .topo = topo, .pool = pool, .target = target, .fewest = fewer_than };
	struct program p = { .s = &s };
	TRY(pool_rows(ctx, topo, pool, &s.rows));
	TRY(TEMP(ctx, s.widest, n));
	TRY(TEMP(ctx, s.state, n));
	TRY(TEMP(ctx, s.path, n));
	TRY(TEMP(ctx, s.depth, n));
	TRY(TEMP(ctx, s.chosen, n > topo->n_vertices ? n : topo->n_vertices));
	TRY(TEMP(ctx, p.index, n + 1));
	TRY(TEMP(ctx, p.value, n + 1));
	for (int t = 0; t < n; t++) {
		s.widest[t] = 1;
		s.depth[t] = tree_depth(&pool->tree[t], s.chosen);
	}
	TRY(lp_guard(ctx, run, &p));
	lp_release();
	TRY(s.status);
	if (s.found)
		log_verbose(ctx, "sparsest: %d of %d trees%s", s.found->n_trees, n,
		    s.proven ? ", the fewest of these" : "");
	arena_release(&ctx->scratch, mark);
	*searched = s.searched;
	*out = s.found;
	return OK;
}
