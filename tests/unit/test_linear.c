/* linear_solve against systems made from solutions that are known. */
#include "base/linear.h"
#include "random.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 60, SPARE = MOST * (MOST + 9) };

/* Random matrices of small entries, dense ones of up to 12 unknowns and others with few entries in a row, and x = p / q
 * with one q for all, so that the right sides are integers times q. */
static int
known_solutions(void)
{
	int wrong = 0;
	for (int round = 0; round < 2000; round++) {
		bool dense = round % 2 == 0;
		int n = 1 + below(dense ? 12 : MOST), q = 1 + below(997);
		int64_t m[MOST * (MOST + 1)], p[MOST];
		Frac x[MOST], want;
		for (int i = 0; i < n; i++)
			p[i] = below(100000);
		for (int i = 0; i < n; i++) {
			int64_t right = 0;
			for (int j = 0; j < n; j++) {
				int64_t entry = dense || below(n) < 2 ? below(7) - 3 : i == j;
				m[i * (n + 1) + j] = entry * q;
				right += entry * p[j];
			}
			m[i * (n + 1) + n] = right;
		}
		/* A singular matrix is refused; nothing else may be. */
		int64_t copy[MOST * (MOST + 1)], spare[SPARE];
		memcpy(copy, m, sizeof copy);
		if (!linear_solve(m, spare, n, x)) {
			for (int i = 0; i < n; i++)
				copy[i * (n + 1) + n] = 0;
			wrong += linear_solve(copy, spare, n, x);
			continue;
		}
		for (int i = 0; i < n; i++)
			wrong += !frac_make(p[i], q, &want) || frac_cmp(x[i], want) != 0;
	}
	return report(wrong, "known solutions");
}

/* x = p / q with p and q of 40 and 31 bits, past what one prime reads back: q x = p, chained so that the second prime
 * is used. */
static int
large_fractions(void)
{
	int wrong = 0;
	for (int round = 0; round < 500; round++) {
		int64_t m[6], spare[SPARE], p = (INT64_C(1) << 40) + below(1 << 30) * INT64_C(2) + 1;
		int64_t q = (INT64_C(1) << 31) + below(1 << 30) * INT64_C(2);
		Frac x[2], want;
		/* q x0 = p;  x1 - x0 = 0 */
		m[0] = q, m[1] = 0, m[2] = p;
		m[3] = -1, m[4] = 1, m[5] = 0;
		wrong += !linear_solve(m, spare, 2, x) || !frac_make(p, q, &want) || frac_cmp(x[0], want)
		    || frac_cmp(x[1], want);
	}
	return report(wrong, "large fractions");
}

static int
refusals(void)
{
	int64_t singular[] = { 1, 2, 3, 2, 4, 6 }, negative[] = { 2, -1 }, spare[SPARE];
	Frac x[2];
	int wrong = linear_solve(singular, spare, 2, x) + linear_solve(negative, spare, 1, x);
	return report(wrong, "singular and negative are refused");
}

int
main(void)
{
	if (linear_spare(MOST) > SPARE)
		return report(1, "work space");
	int failed = known_solutions() + large_fractions();
	return refusals() || failed;
}
