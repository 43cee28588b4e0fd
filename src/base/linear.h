/* Linear equations in integers whose solution is small fractions. */
#ifndef BLINK_LINEAR_H
#define BLINK_LINEAR_H

#include "base/frac.h"

/* Solve n equations, the rows of m: n coefficients and the right side, each of less than 60 bits. m is overwritten;
 * spare is work space of linear_spare(n) numbers.
 * False: singular, or some unknown is no fraction p/q with 0 <= p < 2^62 and 0 < q < 2^59. True is no proof: the
 * equations hold modulo 2^61 - 1 and 2^61 - 31, and if the solution consists of fractions that small it is x; a caller
 * that needs certainty has to check it.
 * Cost: n^3 products, and where nearly all coefficients are 0 few more than n^2 steps. From: Wang 1981, A p-adic
 * algorithm for univariate partial fractions (the reconstruction); Markowitz 1957 (the pivots). */
bool linear_solve(int64_t *m, int64_t *spare, int n, Frac *x);
size_t linear_spare(int n);

#endif
