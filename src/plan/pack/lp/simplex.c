/* The simplex method in whole numbers. Edmonds' integral pivoting: with the pivot p, each other row becomes
 *
 *     (row * p - its entry * pivot row) / den
 *
 * which is a whole number, and p is the next den. From: Edmonds 1967; Dantzig, Orden and Wolfe 1955 for the
 * lexicographic rule. */
#include "plan/pack/lp/simplex.h"

#define MOST_ENTRY (INT64_C(1) << 30)	/* so that a product of two fits 63 bits, and one with a value 118 */
#define MOST_VALUE ((Wide)1 << 88)

Status
simplex_new(Ctx *ctx, const int64_t *limit, int m, Simplex *out)
{
	Simplex s = { .m = m, .den = 1 };
	TRY(TEMP(ctx, s.inverse, (size_t)m * (size_t)m));
	TRY(TEMP(ctx, s.value, m));
	TRY(TEMP(ctx, s.column, m));
	TRY(TEMP(ctx, s.price, m));
	TRY(TEMP(ctx, s.entering, m));
	for (int i = 0; i < m; i++) {
		s.inverse[i * m + i] = 1;
		s.value[i] = limit[i];
		s.column[i] = SIMPLEX_SLACK;
	}
	*out = s;
	return OK;
}

/* Below, at or above 0: rows i and k of the basis, each divided by its entry of the entering column. */
static int
compare_rows(const Simplex *s, int i, int k)
{
	Wide a = s->value[i] * s->entering[k], b = s->value[k] * s->entering[i];
	for (int j = 0; a == b && j < s->m; j++) {
		a = (Wide)s->inverse[i * s->m + j] * s->entering[k];
		b = (Wide)s->inverse[k * s->m + j] * s->entering[i];
	}
	return (a > b) - (a < b);
}

/* The row that leaves; -1: none, and the sum has no limit. */
static int
leaving_row(const Simplex *s)
{
	int leave = -1;
	for (int i = 0; i < s->m; i++)
		if (s->entering[i] > 0 && (leave < 0 || compare_rows(s, i, leave) < 0))
			leave = i;
	return leave;
}

/* A row after the pivot. False: too large. */
static bool
reduce_row(Simplex *s, int i, int leave)
{
	int64_t *row = s->inverse + i * s->m, *from = s->inverse + leave * s->m;
	int64_t pivot = s->entering[leave], times = s->entering[i];
	if (times == 0 && pivot == s->den)
		return true;
	for (int j = 0; j < s->m; j++) {
		if (row[j] == 0 && (times == 0 || from[j] == 0))
			continue;
		row[j] = (row[j] * pivot - times * from[j]) / s->den;
		if (row[j] >= MOST_ENTRY || row[j] <= -MOST_ENTRY)
			return false;
	}
	s->value[i] = (s->value[i] * pivot - times * s->value[leave]) / s->den;
	return s->value[i] < MOST_VALUE;
}

/* The entering column is in s->entering. */
static bool
pivot(Simplex *s, int number)
{
	for (int i = 0; i < s->m; i++)
		if (s->entering[i] >= MOST_ENTRY || s->entering[i] <= -MOST_ENTRY)
			return false;
	int leave = leaving_row(s);
	if (leave < 0)
		return false;
	for (int i = 0; i < s->m; i++)
		if (i != leave && !reduce_row(s, i, leave))
			return false;
	s->den = s->entering[leave];
	s->column[leave] = number;
	return true;
}

static void
set_prices(Simplex *s)
{
	for (int j = 0; j < s->m; j++)
		s->price[j] = 0;
	for (int i = 0; i < s->m; i++)
		for (int j = 0; s->column[i] != SIMPLEX_SLACK && j < s->m; j++)
			s->price[j] += s->inverse[i * s->m + j];
}

bool
simplex_price(Simplex *s, int *pivots)
{
	for (;;) {
		int least = 0;
		set_prices(s);
		for (int j = 1; j < s->m; j++)
			least = s->price[j] < s->price[least] ? j : least;
		if (s->m == 0 || s->price[least] >= 0)
			return true;
		if (--*pivots <= 0)
			return false;
		for (int i = 0; i < s->m; i++)
			s->entering[i] = s->inverse[i * s->m + least];
		if (!pivot(s, SIMPLEX_SLACK))
			return false;
	}
}

bool
simplex_enter(Simplex *s, int number, const int *row, const int *times, int n)
{
	for (int i = 0; i < s->m; i++) {
		int64_t sum = 0;
		for (int k = 0; k < n; k++)
			sum += s->inverse[i * s->m + row[k]] * times[k];
		s->entering[i] = sum;
	}
	return pivot(s, number);
}

Wide
simplex_sum(const Simplex *s)
{
	Wide sum = 0;
	for (int i = 0; i < s->m; i++)
		if (s->column[i] != SIMPLEX_SLACK)
			sum += s->value[i];
	return sum;
}
