/* Rows, columns, and GLPK. */
#include "plan/pack/concurrent/program.h"
#include "base/array.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static Status
fail_sizes(Ctx *ctx)
{
	return fail(ctx, LIMIT, "bytes of calls without a common unit: want sizes in multiples of a power of two, "
	    "or fewer");
}

int
concurrent_shares(const Concurrent *group)
{
	return group->weight ? 1 : collective_shares(group->coll, group->topo->n_ranks);
}

/* Of the demands of a bundle, at least 1. */
static double
mean_weight(const Concurrent *group, int at)
{
	int first, n = program_demands(group, at, &first);
	double sum = 0;
	for (int d = first; d < first + n && group->weight; d++)
		sum += (double)group->weight[d];
	return fmax(sum / n, 1);
}

/* GLPK's tolerances are absolute, and r and x are small where sizes have no common unit that is large: then r is to be
 * about the largest capacity, and so are x of all bundles together. */
static void
scale_rate(struct program *p)
{
	enum { LARGE = 1 << 16 };
	double most = 1;
	int exponent;
	p->rate_scale = 1;
	for (int d = 0; d < p->n_bundles; d++) {
		const struct bundle_row *bundle = &p->bundle[d];
		most = fmax(most, (double)bundle->size * mean_weight(&p->group[bundle->group], bundle->at));
	}
	if (most < LARGE)
		return;
	frexp(most, &exponent);
	p->rate_scale = ldexp(1, exponent);
	for (int d = 0; d < p->n_bundles; d++)
		p->bundle[d].scale = p->rate_scale / (double)p->bundle[d].size;
}

/* Sizes of demands are bytes / shares: all of them times a common multiple of the shares, over what divides all. */
static Status
measure_bundles(struct program *p)
{
	Wide multiple = 1;
	int64_t common = 0;
	for (int g = 0; g < p->n_groups; g++) {
		int shares = concurrent_shares(&p->group[g]);
		multiple = multiple / gcd64((int64_t)multiple, shares) * shares;
		if (multiple >> 40)
			return fail_sizes(p->ctx);
	}
	for (int g = 0; g < p->n_groups; g++) {
		const Concurrent *group = &p->group[g];
		Wide size = (Wide)group->bytes * (multiple / concurrent_shares(group));
		if (size >> 62)
			return fail_sizes(p->ctx);
		common = gcd64((int64_t)size, common);
		for (int at = 0; at < group->n_bundles; at++)
			p->bundle[p->first[g] + at] = (struct bundle_row){ .group = g, .at = at, .size = (int64_t)size,
				.scale = 1, .last = -1 };
	}
	for (int d = 0; d < p->n_bundles; d++)
		p->bundle[d].size /= common;
	scale_rate(p);
	p->rate_unit = (double)multiple * (double)p->unit / (double)common;
	return OK;
}

/* A row of links is divided by what divides all that it may have. */
static Status
measure_links(struct program *p)
{
	int64_t common = 0;
	double least = INFINITY, most = 0;
	for (int row = 0; row < p->n_links; row++)
		p->unit = gcd64(p->links->capacity[row], p->unit);
	for (int g = 0; g < p->n_groups; g++)
		for (int at = 0; at < p->group[g].n_bundles; at++)
			common = gcd64(p->group[g].copies * p->group[g].alike[at], common);
	for (int row = 0; row < p->n_links; row++) {
		p->divisor[row] = gcd64(p->links->capacity[row] / p->unit, common);
		p->capacity[row] = p->links->capacity[row] / p->unit / p->divisor[row];
		least = fmin(least, (double)p->capacity[row]);
		most = fmax(most, (double)p->capacity[row]);
	}
	/* GLPK's tolerances are absolute: capacities should be neither large nor below 1. */
	p->scale = fmax(1, fmin(most / 1e4, least));
	return OK;
}

static Status
new_searches(struct program *p)
{
	TRY(TEMP(p->ctx, p->cheapest, p->n_groups));
	TRY(TEMP(p->ctx, p->price, p->n_groups));
	for (int g = 0; g < p->n_groups; g++) {
		TRY(cheapest_new(p->ctx, p->group[g].topo, NULL, &p->cheapest[g]));
		p->cheapest[g].hurries = true;
		/* Prices of the two directions of a link may differ, as other groups use them. */
		p->cheapest[g].paired = p->group[g].coll == ALLREDUCE;
		TRY(TEMP(p->ctx, p->price[g], p->group[g].topo->n_links));
	}
	return OK;
}

/* ---- the program of a level ---- */

/* GLPK counts rows and columns from 1. In rows of levels before the current one capacities are those of load_rate. */
static void
create_problem(void *with)
{
	struct program *p = with;
	int first = program_bundles(p);
	if (p->lp)
		glp_delete_prob(p->lp);
	p->lp = glp_create_prob();
	p->loaded = 0;
	p->perturbed = false;
	glp_set_obj_dir(p->lp, GLP_MAX);
	glp_add_rows(p->lp, first + p->n_bundles);
	for (int row = 0; row < first; row++)
		glp_set_row_bnds(p->lp, row + 1, GLP_UP, 0, row / p->n_links < p->level ? 0
		    : (double)p->capacity[row % p->n_links] / p->scale);
	for (int d = 0; d < p->n_bundles; d++)
		glp_set_row_bnds(p->lp, first + d + 1, p->group[p->bundle[d].group].level > p->level ? GLP_FR : GLP_UP,
		    0, 0);
	glp_add_cols(p->lp, 1);
	glp_set_col_bnds(p->lp, 1, GLP_LO, 0, 0);
	glp_set_obj_coef(p->lp, 1, 1);
}

/* r: size x r - sum of x <= 0 of demands; load - capacity x time x r <= 0 of links in levels before. */
static void
load_rate(struct program *p, int *index, double *entry)
{
	int n = 0, first = program_bundles(p);
	for (int row = 0; row < p->level * p->n_links; row++) {
		const struct level_time *time = &p->time[row / p->n_links];
		index[++n] = row + 1;
		entry[n] = -(double)p->capacity[row % p->n_links] * (double)time->num / (double)time->den
		    / p->rate_scale;
	}
	for (int d = 0; d < p->n_bundles; d++) {
		if (p->group[p->bundle[d].group].level > p->level)
			continue;
		index[++n] = first + d + 1;
		entry[n] = (double)p->bundle[d].size * p->bundle[d].scale / p->rate_scale;
	}
	glp_set_mat_col(p->lp, 1, n, index, entry);
}

Status
program_new(Ctx *ctx, const Concurrent *group, int n_groups, const SharedLinks *links, struct program *p)
{
	*p = (struct program){ .ctx = ctx, .group = group, .n_groups = n_groups, .links = links,
		.n_links = links->n_rows };
	TRY(TEMP(ctx, p->first, n_groups));
	for (int g = 0; g < n_groups; g++) {
		p->first[g] = p->n_bundles;
		p->n_bundles += group[g].n_bundles;
		p->n_levels = group[g].level >= p->n_levels ? group[g].level + 1 : p->n_levels;
	}
	int n_rows = p->n_levels * p->n_links + p->n_bundles;
	TRY(TEMP(ctx, p->bundle, p->n_bundles));
	TRY(TEMP_EACH(ctx, p->n_links, p->capacity, p->divisor, p->sum, p->sum_row));
	TRY(TEMP_EACH(ctx, n_rows, p->dual, p->best, p->tight, p->basic, p->tight_at));
	TRY(measure_links(p));
	TRY(measure_bundles(p));
	TRY(TEMP(ctx, p->time, p->n_levels));
	int most = 0, ranks = 0;
	for (int g = 0; g < n_groups; g++) {
		most = group[g].topo->n_links > most ? group[g].topo->n_links : most;
		ranks = group[g].topo->n_ranks > ranks ? group[g].topo->n_ranks : ranks;
	}
	TRY(TEMP(ctx, p->found, ranks));
	TRY(TEMP(ctx, p->times, most));
	TRY(TEMP(ctx, p->used, most));
	return new_searches(p);
}

Status
program_open(struct program *p)
{
	return lp_guard(p->ctx, create_problem, p);
}

/* ---- columns ---- */

int
concurrent_bundles(Collective coll, int n_ranks)
{
	return coll == ALLTOALL ? n_ranks : coll == GATHER || coll == SCATTER ? 1 : collective_demands(coll, n_ranks);
}

int
concurrent_bundle_of(Collective coll, int n_ranks, int demand)
{
	return coll == ALLTOALL ? demand / (n_ranks - 1) : coll == GATHER || coll == SCATTER ? 0 : demand;
}

static int
by_number(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* p->used has n links, and p->times how often each is used, which is 0 again afterwards. */
static bool
is_column(const struct program *p, int bundle, int n)
{
	for (int c = p->bundle[bundle].last; c >= 0; c = p->column[c].before) {
		bool same = p->column[c].n == n;
		for (int i = 0; i < n && same; i++)
			same = p->column[c].link[i] == p->used[i] && p->column[c].times[i] == p->times[p->used[i]];
		if (same)
			return true;
	}
	return false;
}

int
program_demands(const Concurrent *group, int at, int *first)
{
	int n = group->topo->n_ranks;
	bool rooted = group->coll == GATHER || group->coll == SCATTER;
	*first = group->coll == ALLTOALL ? group->bundle[at] * (n - 1) : rooted ? 0 : group->bundle[at];
	return group->coll == ALLTOALL || rooted ? n - 1 : 1;
}

static Status
add_column(struct program *p, int group, int at, int n)
{
	const Concurrent *of = &p->group[group];
	int first, n_trees = program_demands(of, at, &first);
	int bundle = p->first[group] + at;
	TRY(GROW(p->ctx, p->column, p->n_columns, p->room));
	TRY(GROW(p->ctx, p->x, p->n_columns, p->x_room));
	struct concurrent_column *c = &p->column[p->n_columns];
	*c = (struct concurrent_column){ .bundle = bundle, .before = p->bundle[bundle].last, .n = n };
	TRY(NEW(p->ctx, c->link, n));
	TRY(NEW(p->ctx, c->times, n));
	TRY(NEW(p->ctx, c->tree, n_trees));
	memcpy(c->tree, p->found, (size_t)n_trees * sizeof *c->tree);
	for (int i = 0; i < n; i++) {
		int row = of->row[p->used[i]];
		c->link[i] = p->used[i];
		c->times[i] = p->times[p->used[i]];
		if (p->sum[row] == 0)
			p->sum_row[c->n_rows++] = row;
		p->sum[row] += c->times[i];
	}
	TRY(NEW(p->ctx, c->use, c->n_rows));
	for (int i = 0; i < c->n_rows; i++) {
		int row = p->sum_row[i];
		c->use[i] = (struct use){ row, p->sum[row] * (of->copies * of->alike[at] / p->divisor[row]) };
		p->sum[row] = 0;
	}
	p->bundle[bundle].last = p->n_columns++;
	return OK;
}

static void
count(struct program *p, int link, int64_t times)
{
	if (p->times[link] == 0)
		p->used[p->n_used++] = link;
	p->times[link] += times;
}

static void
forget(struct program *p)
{
	for (int i = 0; i < p->n_used; i++)
		p->times[p->used[i]] = 0;
	p->n_used = 0;
}

Status
program_find(struct program *p, int group, int at, bool trees, Wide *cost)
{
	const Concurrent *of = &p->group[group];
	Cheapest *c = &p->cheapest[group];
	int n = of->topo->n_ranks, first, all = program_demands(of, at, &first);
	*cost = 0;
	forget(p);
	for (int d = first; d < first + all; d++) {
		int64_t one;
		TRY(cheapest_find(c, collective_demand(of->coll, n, of->root, d), &one));
		if (one < 0)
			return fail(p->ctx, INTERNAL, "%s: no tree over connected ranks", of->topo->name);
		int64_t weight = of->weight ? of->weight[d] : 1;
		if (trees)
			TRY(cheapest_tree(c, of->coll == GATHER, &p->found[d - first]));
		*cost += (Wide)one * weight;
		for (int i = 0; i < c->n_used && weight > 0; i++)
			count(p, c->used[i], c->uses[c->used[i]] * weight);
	}
	return OK;
}

Status
program_add_found(struct program *p, int group, int at, bool *added)
{
	qsort(p->used, (size_t)p->n_used, sizeof *p->used, by_number);
	*added = !is_column(p, p->first[group] + at, p->n_used);
	if (*added)
		TRY(add_column(p, group, at, p->n_used));
	forget(p);
	return OK;
}

Status
program_add_tree(struct program *p, int group, int at, const Tree *tree, bool *added)
{
	forget(p);
	p->found[0] = *tree;
	for (int i = 0; i < tree->n_down + tree->n_up; i++)
		for (int k = 0; k < tree_edge(tree, i)->n_links; k++)
			count(p, tree_edge(tree, i)->link[k], 1);
	return program_add_found(p, group, at, added);
}

/* ---- solution ---- */

static void
load_columns(struct program *p, int *index, double *entry)
{
	for (; p->loaded < p->n_columns; p->loaded++) {
		const struct concurrent_column *c = &p->column[p->loaded];
		int col = glp_add_cols(p->lp, 1), n = 0;
		for (int level = p->group[p->bundle[c->bundle].group].level; level <= p->level; level++)
			for (int i = 0; i < c->n_rows; i++) {
				index[++n] = level * p->n_links + c->use[i].row + 1;
				entry[n] = (double)c->use[i].uses / p->bundle[c->bundle].scale;
			}
		index[++n] = program_bundles(p) + c->bundle + 1;
		entry[n] = -1;
		glp_set_mat_col(p->lp, col, n, index, entry);
		glp_set_col_bnds(p->lp, col, GLP_LO, 0, 0);
	}
}

static void
read_solution(struct program *p)
{
	int n_rows = program_bundles(p) + p->n_bundles, n_tight = 0, n_basic = 0;
	for (int row = 0; row < n_rows; row++) {
		bool tight = glp_get_row_stat(p->lp, row + 1) != GLP_BS;
		p->tight_at[row] = tight ? n_tight : -1;
		p->dual[row] = fmax(glp_get_row_dual(p->lp, row + 1), 0);
		if (row >= program_bundles(p))
			p->dual[row] *= p->bundle[row - program_bundles(p)].scale;
		if (tight)
			p->tight[n_tight++] = row;
	}
	for (int c = CONCURRENT_RATE; c < p->loaded; c++) {
		double value = fmax(glp_get_col_prim(p->lp, c + 2), 0) * p->scale;
		if (c == CONCURRENT_RATE)
			p->r = value / p->rate_scale;
		else
			p->x[c] = value / p->bundle[p->column[c].bundle].scale;
		if (glp_get_col_stat(p->lp, c + 2) == GLP_BS && n_basic < n_tight)
			p->basic[n_basic++] = c;
	}
	p->n_basis = n_basic == n_tight ? n_tight : 0;
}

/* Links of equal capacity make the program degenerate, and the simplex method may cycle: capacities that are a little
 * larger, at random, leave it no ties. The basis is solved for the true ones. */
static void
perturb(struct program *p)
{
	for (int row = 0; row < p->n_links; row++)
		glp_set_row_bnds(p->lp, p->level * p->n_links + row + 1, GLP_UP, 0,
		    (double)p->capacity[row] / p->scale * (1 + 1e-5 * hash_unit(0, (uint64_t)row)));
	p->perturbed = true;
}

struct solving {
	struct program *p;
	int *index;
	double *entry;
};

static void
solve_lp(void *with)
{
	struct solving *s = with;
	struct program *p = s->p;
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.it_lim = p->perturbed ? LIMIT_LP_STEPS : 1000 + 10 * (program_bundles(p) + p->n_bundles);
	if (p->loaded == 0)
		load_rate(p, s->index, s->entry);
	load_columns(p, s->index, s->entry);
	int code = glp_simplex(p->lp, &options);
	if (code == GLP_EITLIM && !p->perturbed) {
		perturb(p);
		options.it_lim = LIMIT_LP_STEPS;
		code = glp_simplex(p->lp, &options);
	}
	/* Rounding may have made the last basis singular: try once more, from the standard one. */
	if (code != 0 || glp_get_status(p->lp) != GLP_OPT) {
		glp_std_basis(p->lp);
		code = glp_simplex(p->lp, &options);
	}
	p->solved = code == 0 && glp_get_status(p->lp) == GLP_OPT;
	if (p->solved)
		read_solution(p);
}

Status
program_solve(struct program *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	struct solving s = { .p = p };
	size_t n = (size_t)program_bundles(p) + (size_t)p->n_bundles + 2;
	TRY(TEMP(p->ctx, s.index, n));
	TRY(TEMP(p->ctx, s.entry, n));
	TRY(lp_guard(p->ctx, solve_lp, &s));
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

static void
delete_problem(void *with)
{
	struct program *p = with;
	if (p->lp)
		glp_delete_prob(p->lp);
}

Status
program_close(struct program *p)
{
	return lp_guard(p->ctx, delete_problem, p);
}
