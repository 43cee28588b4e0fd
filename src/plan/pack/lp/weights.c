/* The linear program
 *
 *     max r    trees of each demand >= r    loads of orbits <= capacities
 *
 * in doubles, whose vertices have no more trees than rows are tight. Its weights are parts of r with small denominators
 * as a rule, as where trees go over seven rails in turn: these are looked for, and else weights are rounded to as many
 * parts as loads have bits for. So weights are whole numbers, and the rate that they have is counted from them. */
#include "plan/pack/lp/tableau.h"
#include "plan/pack/lp/weights.h"

#include <math.h>

enum { MOST_FACTOR = 1 << 12, MOST_PARTS = 1 << 30, ROUND_BITS = 36 };

#define EXACT 1e-8		/* of a full link: by which a multiple of a weight may differ from a whole number */

struct program {
	Ctx *ctx;
	const struct template_pool *pool;
	Tableau tableau;
	int *row;		/* of each orbit that is used; -1: of the others */
	int n_link_rows, *index;
	double *entry, *part;	/* of each tree: its part of r */
	int64_t most_load;	/* of a tree on an orbit */
};

/* What all images of a tree have on an orbit, by its capacity. */
static double
load_of(const struct template_pool *pool, int t, int o)
{
	return (double)pool->load[(size_t)t * (size_t)pool->n_orbits + (size_t)o] / (double)pool->capacity[o];
}

static Status
add_rows(struct program *p)
{
	const struct template_pool *pool = p->pool;
	double *limit;
	TRY(TEMP(p->ctx, p->row, pool->n_orbits));
	TRY(TEMP(p->ctx, limit, pool->n_orbits + pool->n_demands));
	for (int o = 0; o < pool->n_orbits; o++) {
		bool used = false;
		for (int t = 0; t < pool->n && !used; t++)
			used = load_of(pool, t, o) > 0;
		p->row[o] = used ? p->n_link_rows : -1;
		if (used)
			limit[p->n_link_rows++] = 1;
	}
	return tableau_new(p->ctx, limit, p->n_link_rows + pool->n_demands, &p->tableau);
}

/* Loads are by capacities, since one link may be an orbit, and a thousand another; and by the highest of a tree. */
static Status
add_columns(struct program *p)
{
	const struct template_pool *pool = p->pool;
	int m = p->n_link_rows + pool->n_demands;
	double most = 0;
	TRY(TEMP(p->ctx, p->index, m));
	TRY(TEMP(p->ctx, p->entry, m));
	TRY(TEMP(p->ctx, p->part, pool->n));
	for (int t = 0; t < pool->n; t++)
		for (int o = 0; o < pool->n_orbits; o++) {
			int64_t load = pool->load[(size_t)t * (size_t)pool->n_orbits + (size_t)o];
			most = fmax(most, load_of(pool, t, o));
			p->most_load = load > p->most_load ? load : p->most_load;
		}
	for (int d = 0; d < pool->n_demands; d++) {
		p->index[d] = p->n_link_rows + d;
		p->entry[d] = 1;
	}
	TRY(tableau_add(&p->tableau, p->index, p->entry, pool->n_demands));
	tableau_cost(&p->tableau, 0, 1);
	for (int t = 0; t < pool->n; t++) {
		int n = 0;
		for (int o = 0; o < pool->n_orbits; o++) {
			if (load_of(pool, t, o) == 0)
				continue;
			p->index[n] = p->row[o];
			p->entry[n++] = load_of(pool, t, o) / most;
		}
		p->index[n] = p->n_link_rows + pool->demand[t];
		p->entry[n++] = -1;
		TRY(tableau_add(&p->tableau, p->index, p->entry, n));
	}
	return OK;
}

/* As many as the sum of all loads has bits for. */
static int64_t
round_parts(const struct program *p)
{
	int64_t parts = INT64_C(1) << (ROUND_BITS - p->pool->coarser);
	while (parts > INT64_MAX / 2 / p->most_load / p->pool->n_demands)
		parts /= 2;
	return parts;
}

/* The fewest parts of which all weights are whole numbers, as nearly as doubles tell: tree after tree the least factor
 * that makes its weight one. Else more. */
static int64_t
count_parts(const struct program *p)
{
	double exact = EXACT / fmax(1, tableau_value(&p->tableau, 0));
	int parts = 1;
	for (int t = 0; t < p->pool->n; t++) {
		double weight = p->part[t] * parts, rest = 1;
		int factor = 0;
		while (rest >= exact && ++factor <= MOST_FACTOR)
			rest = fabs(weight * factor - nearbyint(weight * factor));
		if (factor > MOST_FACTOR || factor > MOST_PARTS / parts)
			return round_parts(p);
		parts *= factor;
	}
	return parts;
}

/* Those of a demand have the sum `parts`: what is missing, or too much, is the heaviest's. False: it has no tree. */
static bool
set_weights(const struct program *p, int64_t parts, int64_t *weight)
{
	const struct template_pool *pool = p->pool;
	for (int t = 0; t < pool->n; t++)
		weight[t] = (int64_t)nearbyint(p->part[t] * (double)parts);
	for (int d = 0; d < pool->n_demands; d++) {
		int64_t missing = parts;
		for (int t = 0; t < pool->n; t++)
			missing -= pool->demand[t] == d ? weight[t] : 0;
		do {
			int heaviest = -1;
			for (int t = 0; t < pool->n; t++)
				if (pool->demand[t] == d && (heaviest < 0 || weight[t] > weight[heaviest]))
					heaviest = t;
			if (heaviest < 0)
				return false;
			int64_t by = -missing < weight[heaviest] ? missing : -weight[heaviest];
			weight[heaviest] += by;
			missing -= by;
		} while (missing != 0);
	}
	return true;
}

Status
template_weights(Ctx *ctx, const struct template_pool *pool, int64_t *weight, int64_t *sum, double *price)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct program p = { .ctx = ctx, .pool = pool };
	int steps = pool->most_steps;
	*sum = 0;
	if (pool->n_orbits + pool->n_demands > WEIGHT_ROWS)
		return OK;
	TRY(add_rows(&p));
	TRY(add_columns(&p));
	if (tableau_solve(&p.tableau, &steps) && tableau_value(&p.tableau, 0) > 0) {
		for (int t = 0; t < pool->n; t++)
			p.part[t] = fmax(0, tableau_value(&p.tableau, t + 1)) / tableau_value(&p.tableau, 0);
		int64_t parts = count_parts(&p);
		*sum = set_weights(&p, parts, weight) ? parts : 0;
		for (int o = 0; o < pool->n_orbits; o++)
			price[o] = p.row[o] < 0 ? 0 : fmax(0, tableau_price(&p.tableau, p.row[o]))
			    / (double)pool->capacity[o];
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
