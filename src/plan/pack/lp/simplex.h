/* The simplex method in whole numbers, for linear programs of few rows whose columns come one after the other:
 *
 *     max sum x    A x <= limit, x >= 0    A of small whole numbers, limit >= 0
 *
 * Every number is exact, so the result is the same on every machine. */
#ifndef BLINK_PLAN_PACK_LP_SIMPLEX_H
#define BLINK_PLAN_PACK_LP_SIMPLEX_H

#include "model/units.h"

enum { SIMPLEX_SLACK = -1 };

/* The inverse of the basis is inverse / den, of m * m whole numbers: minors of A. The values of what is in the basis
 * are value / den. */
typedef struct {
	int m;
	int64_t den, *inverse;
	Wide *value;
	int *column;		/* of each row of the basis: the caller's number for the column, or SIMPLEX_SLACK */
	int64_t *price, *entering;	/* m: of each row, times den; work space */
} Simplex;

/* limit: m of them, 0 <= limit < 2^60. In the scratch arena. */
Status simplex_new(Ctx *ctx, const int64_t *limit, int m, Simplex *out);

/* Prices of the rows for the basis, in s->price. Slacks of negative price come in first: afterwards all are at least
 * 0, and a column whose rows cost less than s->den together improves the sum.
 * False: numbers become too large, or *pivots, which it counts down, reaches 0. */
bool simplex_price(Simplex *s, int *pivots);

/* A column of n rows, each with a number of times, comes into the basis. number: what s->column has. Of equal rows the
 * lexicographically least leaves, so that no basis comes twice. False: numbers become too large. */
bool simplex_enter(Simplex *s, int number, const int *row, const int *times, int n);

/* The sum, times den. */
Wide simplex_sum(const Simplex *s);

#endif
