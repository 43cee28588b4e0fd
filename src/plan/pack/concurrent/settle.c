/* What follows from the basis that GLPK ends with: prices and amounts in fractions, which are checked in integers. */
#include "base/linear.h"
#include "plan/pack/concurrent/program.h"

#include <math.h>
#include <string.h>

/* ---- the basis ---- */

/* False: it is too large for linear_solve. */
static bool
put(const struct program *p, size_t j, int row, bool transposed, Wide entry, int64_t *matrix)
{
	const Wide most = INT64_C(1) << 59;
	size_t width = (size_t)p->n_basis + 1;
	int at = p->tight_at[row];
	if (entry > most || entry < -most)
		return false;
	if (at >= 0)
		matrix[transposed ? j * width + (size_t)at : (size_t)at * width + j] = (int64_t)entry;
	return true;
}

/* Column j of the basis; rows with slack have no place in the matrix. Rows of levels before the current one are times
 * the denominator of their time. */
static bool
fill_column(const struct program *p, size_t j, bool transposed, int64_t *matrix)
{
	int first = program_bundles(p);
	bool small = true;
	if (p->basic[j] == CONCURRENT_RATE) {
		for (int row = 0; row < p->level * p->n_links && small; row++)
			small = put(p, j, row, transposed, -(Wide)p->capacity[row % p->n_links]
			    * p->time[row / p->n_links].num, matrix);
		for (int d = 0; d < p->n_bundles && small; d++)
			if (p->group[p->bundle[d].group].level <= p->level)
				small = put(p, j, first + d, transposed, p->bundle[d].size, matrix);
		return small;
	}
	const struct concurrent_column *c = &p->column[p->basic[j]];
	for (int level = p->group[p->bundle[c->bundle].group].level; level <= p->level; level++)
		for (int i = 0; i < c->n_rows && small; i++)
			small = put(p, j, level * p->n_links + c->use[i].row, transposed, (Wide)c->use[i].uses
			    * (level < p->level ? p->time[level].den : 1), matrix);
	return small && put(p, j, first + c->bundle, transposed, -1, matrix);
}

/* x: capacities of links. y: of the objective only r has a coefficient, 1. */
static int64_t
right_side(const struct program *p, size_t i, bool transposed)
{
	int row = p->tight[i], links = p->level * p->n_links;
	if (transposed)
		return p->basic[i] == CONCURRENT_RATE;
	return row >= links && row < links + p->n_links ? p->capacity[row - links] : 0;
}

/* x of basic columns, or transposed y of tight rows. False in *done: singular, or no small fractions. */
static Status
solve_basis(struct program *p, bool transposed, Frac *out, bool *done)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	size_t n = (size_t)p->n_basis, width = n + 1;
	int64_t *matrix, *spare;
	*done = false;
	if (p->n_basis == 0 || p->n_basis > LIMIT_LP_BASIS)
		return OK;
	TRY(TEMP(p->ctx, matrix, n * width));
	TRY(TEMP(p->ctx, spare, linear_spare(p->n_basis)));
	*done = true;
	for (size_t i = 0; i < n && *done; i++) {
		*done = fill_column(p, i, transposed, matrix);
		matrix[i * width + n] = right_side(p, i, transposed);
	}
	*done = *done && linear_solve(matrix, spare, p->n_basis, out);
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* Fractions as whole numbers over their least common denominator; false: past `limit`. */
static bool
over_common(const Frac *f, int n, int64_t limit, int64_t *out, int64_t *den)
{
	int64_t common = frac_common(f, n, limit);
	if (common == 0)
		return false;
	for (int i = 0; i < n; i++) {
		Wide value = f[i].num * (common / f[i].den);
		if (value < 0 || value > limit)
			return false;
		out[i] = (int64_t)value;
	}
	*den = common;
	return true;
}

/* ---- prices ---- */

/* By what y of a row of links becomes the price of a link. */
static Frac
per_link(const struct program *p, int row)
{
	int level = row / p->n_links;
	return (Frac){ level < p->level ? p->time[level].den : 1, p->divisor[row % p->n_links] };
}

Status
settle_prices(struct program *p, int64_t *price, bool *known)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	int n_links = program_bundles(p);
	Frac *y, one;
	int64_t *whole, den;
	TRY(TEMP(p->ctx, y, p->n_basis + 1));
	TRY(TEMP(p->ctx, whole, p->n_basis + 1));
	TRY(solve_basis(p, true, y, known));
	for (int i = 0; i < p->n_basis && *known; i++) {
		one = per_link(p, p->tight[i] < n_links ? p->tight[i] : 0);
		if (p->tight[i] >= n_links)
			y[i] = FRAC_ZERO;
		else
			*known = frac_make(one.num, one.den, &one) && frac_mul(y[i], one, &y[i]);
	}
	/* A tree costs the prices of several levels together. */
	*known = *known && over_common(y, p->n_basis, ((INT64_C(1) << SEARCH_PRICE_BITS) - 1) / p->n_levels, whole,
	    &den);
	memset(price, 0, (size_t)n_links * sizeof *price);
	for (int i = 0; i < p->n_basis && *known; i++)
		if (p->tight[i] < n_links)
			price[p->tight[i]] = whole[i];
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

void
settle_grid(const struct program *p, int64_t *price)
{
	enum { GRID_BITS = 36 };
	double top = 1e-300;
	for (int row = 0; row < program_bundles(p); row++)
		top = fmax(top, p->dual[row] / (double)p->divisor[row % p->n_links]);
	for (int row = 0; row < program_bundles(p); row++)
		price[row] = (int64_t)(ldexp(p->dual[row] / (double)p->divisor[row % p->n_links] / top, GRID_BITS)
		    + 0.5);
}

/* ---- amounts ---- */

/* Do links have room for them? */
static Status
fits(struct program *p, const int64_t *amount, int64_t den, bool *out)
{
	Wide *load;
	TRY(TEMP(p->ctx, load, p->n_links));
	for (int c = 0; c < p->n_columns; c++)
		for (int i = 0; i < p->column[c].n_rows; i++)
			load[p->column[c].use[i].row] += (Wide)p->column[c].use[i].uses * amount[c];
	*out = true;
	for (int row = 0; row < p->n_links; row++)
		*out = *out && load[row] <= (Wide)p->capacity[row] * den;
	return OK;
}

/* The bundle that gets the least for its size: its rate is amount / (size * den). */
static Status
find_least(struct program *p, const int64_t *amount, Wide *out, int64_t *size)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	Wide *sum;
	TRY(TEMP(p->ctx, sum, p->n_bundles));
	for (int c = 0; c < p->n_columns; c++)
		sum[p->column[c].bundle] += amount[c];
	*size = 0;
	for (int d = 0; d < p->n_bundles; d++)
		if (p->group[p->bundle[d].group].level <= p->level
		    && (*size == 0 || ratio_cmp(sum[d], p->bundle[d].size, *out, *size) < 0)) {
			*out = sum[d];
			*size = p->bundle[d].size;
		}
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* Have all the rate of the program? */
static Status
reaches(struct program *p, const int64_t *amount, int64_t den, bool *out)
{
	Wide least;
	int64_t size;
	TRY(find_least(p, amount, &least, &size));
	*out = (double)least / (double)size / (double)den >= p->r * (1 - RATE_ROUNDING);
	return OK;
}

static Status
exact_amounts(struct program *p, int64_t *amount, int64_t *den, bool *done)
{
	enum { AMOUNT_BITS = 50 };
	Frac *x;
	int64_t *whole;
	TRY(TEMP(p->ctx, x, p->n_basis + 1));
	TRY(TEMP(p->ctx, whole, p->n_basis + 1));
	TRY(solve_basis(p, false, x, done));
	for (int i = 0; i < p->n_basis && *done; i++)
		if (p->basic[i] == CONCURRENT_RATE)
			x[i] = FRAC_ZERO;
	*done = *done && over_common(x, p->n_basis, INT64_C(1) << AMOUNT_BITS, whole, den);
	memset(amount, 0, (size_t)p->n_columns * sizeof *amount);
	for (int i = 0; i < p->n_basis && *done; i++)
		if (p->basic[i] != CONCURRENT_RATE)
			amount[p->basic[i]] = whole[i];
	if (*done)
		TRY(fits(p, amount, *den, done));
	return *done ? reaches(p, amount, *den, done) : OK;
}

/* GLPK's x, scaled to fit the capacities and rounded down; where blocks are unequal, x of some may be small beside that
 * of others, and is rounded up. */
static Status
rounded_amounts(struct program *p, int64_t *amount, int64_t *den)
{
	double *load, most = 1e-300, congestion = 1;
	bool weights = false;
	int exponent;
	TRY(TEMP(p->ctx, load, p->n_links));
	for (int c = 0; c < p->n_columns; c++) {
		most = fmax(most, p->x[c]);
		for (int i = 0; i < p->column[c].n_rows; i++)
			load[p->column[c].use[i].row] += (double)p->column[c].use[i].uses * p->x[c];
	}
	for (int row = 0; row < p->n_links; row++)
		congestion = fmax(congestion, load[row] / (double)p->capacity[row]);
	for (int g = 0; g < p->n_groups; g++)
		weights = weights || p->group[g].weight;
	frexp(most, &exponent);
	int bits = (weights ? 60 : 45) - exponent, most_bits = weights ? 60 : 50;
	*den = INT64_C(1) << (bits < 0 ? 0 : bits < most_bits ? bits : most_bits);
	for (int c = 0; c < p->n_columns; c++)
		amount[c] = (int64_t)(p->x[c] / congestion * (1 - 1e-12) * (double)*den) + (weights && p->x[c] > 0);
	return OK;
}

Status
settle_amounts(struct program *p, int64_t *amount, int64_t *den, bool *exact)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	TRY(exact_amounts(p, amount, den, exact));
	if (!*exact)
		TRY(rounded_amounts(p, amount, den));
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* Where products with capacities would be too large, a little more. */
Status
settle_time(struct program *p, const int64_t *amount, int64_t den, struct level_time *out)
{
	enum { BITS = 30 };
	int64_t most = 1, size;
	Wide least;
	Frac rate;
	TRY(find_least(p, amount, &least, &size));
	if (least <= 0)
		return fail(p->ctx, INTERNAL, "%d groups at once: nothing for some", p->n_groups);
	for (int row = 0; row < p->n_links; row++)
		most = p->capacity[row] > most ? p->capacity[row] : most;
	bool small = frac_make(least, (Wide)size * den, &rate) && rate.num >> BITS == 0 && rate.den >> BITS == 0
	    && most <= (INT64_C(1) << 59) / rate.den;
	if (small) {
		*out = (struct level_time){ .num = rate.den, .den = (int64_t)rate.num };
		return OK;
	}
	double time = (double)size * (double)den / (double)least;
	int exponent;
	frexp(time, &exponent);
	int shift = exponent > 0 ? 0 : exponent < -BITS ? 58 : BITS - exponent;
	*out = (struct level_time){ .num = (int64_t)(ldexp(time, shift) + 1), .den = INT64_C(1) << shift };
	return OK;
}
