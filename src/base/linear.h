/* Linear equations in integers whose solution is small fractions. */
#ifndef BLINK_LINEAR_H
#define BLINK_LINEAR_H

#include "base/frac.h"

/* Solve n equations, the rows of m: n coefficients and the right side, each of less than 60 bits. m is spent.
 * False: singular, or some unknown is no fraction p/q with 0 <= p < 2^42 and 0 < q < 2^18. True is no proof: the solution
 * is right modulo 2^61 - 1, and if it is made of such fractions at all these are they; whoever needs more checks.
 * Cost: n^3 products. From: Wang 1981, A p-adic algorithm for univariate partial fractions (the reading back). */
bool linear_solve(int64_t *m, int n, Frac *x);

#endif
