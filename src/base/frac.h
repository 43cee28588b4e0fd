/* Exact fractions in lowest terms with a denominator above 0. Denominators have 63 bits; numerators have up to
 * FRAC_BITS, since a rate is a capacity times such a denominator. What files hold fits 64 bits. */
#ifndef BLINK_FRAC_H
#define BLINK_FRAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef __int128 Wide;

enum { FRAC_BITS = 118 };	/* of a numerator */

typedef struct {
	Wide num;
	int64_t den;
} Frac;

#define FRAC_ZERO ((Frac){ 0, 1 })
#define FRAC_ONE ((Frac){ 1, 1 })

int64_t gcd64(int64_t a, int64_t b);	/* a, b >= 0 */
Wide gcd_wide(Wide a, Wide b);		/* likewise */

/* Each returns false, and does not change *out, if the result in lowest terms needs more bits than that (or the
 * denominator is 0). */
bool frac_make(Wide num, Wide den, Frac *out);
bool frac_add(Frac a, Frac b, Frac *out);
bool frac_sub(Frac a, Frac b, Frac *out);
bool frac_mul(Frac a, Frac b, Frac *out);
bool frac_div(Frac a, Frac b, Frac *out);

/* The least common denominator of n; 0: past `limit`. */
int64_t frac_common(const Frac *f, int n, int64_t limit);

bool frac_fits(Frac a);			/* the numerator has no more than 63 bits: it can be in a file */
Frac frac_whole_above(Frac a);		/* the least whole number that is no less; a >= 0 */
int frac_cmp(Frac a, Frac b);		/* below, at or above 0, exactly */
int64_t frac_floor_mul(Frac a, int64_t n);	/* floor(a * n) for 0 <= a <= 1, n >= 0 */
int64_t frac_floor_div(Frac a, Frac b);	/* floor(a / b) for a >= 0, b > 0 of 63 bits each, as rates */
double frac_double(Frac a);

/* Compare a/b with c/d: a, c >= 0, b, d > 0, in any terms. */
int ratio_cmp(Wide a, Wide b, Wide c, Wide d);

/* Decimal text of num/den, the same on every machine: `digits` significant digits (1 to 17), rounded half up, without
 * trailing zeros: 25, 85.714285714286, 0.00125. 0 <= num < 2^FRAC_BITS, 0 < den < 2^96. */
void decimal_text(Wide num, Wide den, int digits, char text[48]);

/* Read "p/q" in lowest terms. */
bool frac_parse(const char *text, Frac *out);

/* Read a plain or exponent decimal (25, 12.5, 1e-3) as value * scale, rounded to the nearest integer.
 * False: not a number, or the result is outside 0 .. INT64_MAX. Knows no locale. */
bool decimal_parse(const char *text, size_t length, int64_t scale, int64_t *out);

#endif
