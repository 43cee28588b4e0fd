#include "base/frac.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t
gcd64(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

Wide
gcd_wide(Wide a, Wide b)
{
	while (b) {
		Wide t = a % b;
		a = b;
		b = t;
	}
	return a;
}

static Wide
absolute(Wide a)
{
	return a < 0 ? -a : a;
}

bool
frac_make(Wide num, Wide den, Frac *out)
{
	if (den == 0)
		return false;
	if (den < 0) {
		num = -num;
		den = -den;
	}
	Wide g = gcd_wide(absolute(num), den);
	num /= g;
	den /= g;
	if (absolute(num) >> FRAC_BITS || den > INT64_MAX)
		return false;
	*out = (Frac){ num, (int64_t)den };
	return true;
}

bool
frac_add(Frac a, Frac b, Frac *out)
{
	/* Over the least common denominator. */
	int64_t g = gcd64(a.den, b.den);
	Wide left, right, sum;
	if (__builtin_mul_overflow(a.num, (Wide)(b.den / g), &left)
	    || __builtin_mul_overflow(b.num, (Wide)(a.den / g), &right) || __builtin_add_overflow(left, right, &sum))
		return false;
	return frac_make(sum, (Wide)a.den * (b.den / g), out);
}

bool
frac_sub(Frac a, Frac b, Frac *out)
{
	b.num = -b.num;
	return frac_add(a, b, out);
}

bool
frac_mul(Frac a, Frac b, Frac *out)
{
	Wide num, g = gcd_wide(absolute(a.num), b.den), h = gcd_wide(absolute(b.num), a.den);
	return !__builtin_mul_overflow(a.num / g, b.num / h, &num)
	    && frac_make(num, (Wide)(a.den / (int64_t)h) * (b.den / (int64_t)g), out);
}

bool
frac_div(Frac a, Frac b, Frac *out)
{
	if (b.num == 0)
		return false;
	/* Divided by what they have in common first, so that the quotient of two large numerators may be small. */
	Wide g = gcd_wide(absolute(a.num), absolute(b.num)), num, den;
	int64_t h = gcd64(a.den, b.den);
	g = g ? g : 1;
	return !__builtin_mul_overflow(a.num / g, (Wide)(b.den / h), &num)
	    && !__builtin_mul_overflow(b.num / g, (Wide)(a.den / h), &den) && frac_make(num, den, out);
}

int64_t
frac_common(const Frac *f, int n, int64_t limit)
{
	int64_t den = 1;
	for (int i = 0; i < n; i++) {
		Wide next = (Wide)den / gcd64(den, f[i].den) * f[i].den;
		if (next > limit)
			return 0;
		den = (int64_t)next;
	}
	return den;
}

bool
frac_fits(Frac a)
{
	return absolute(a.num) <= INT64_MAX;
}

/* Without products: Euclid's algorithm on both at once. */
int
ratio_cmp(Wide a, Wide b, Wide c, Wide d)
{
	for (int sign = 1;; sign = -sign) {
		if (a / b != c / d)
			return a / b < c / d ? -sign : sign;
		a %= b;
		c %= d;
		if (a == 0 || c == 0)
			return a == 0 && c == 0 ? 0 : a == 0 ? -sign : sign;
		/* a/b < c/d where b/a > d/c. */
		Wide t = a;
		a = b;
		b = t;
		t = c;
		c = d;
		d = t;
	}
}

Frac
frac_whole_above(Frac a)
{
	return (Frac){ a.num / a.den + (a.num % a.den != 0), 1 };
}

int
frac_cmp(Frac a, Frac b)
{
	if (frac_fits(a) && frac_fits(b)) {
		Wide l = a.num * b.den, r = b.num * a.den;
		return (l > r) - (l < r);
	}
	if ((a.num < 0) != (b.num < 0))
		return a.num < 0 ? -1 : 1;
	return a.num < 0 ? ratio_cmp(-b.num, b.den, -a.num, a.den) : ratio_cmp(a.num, a.den, b.num, b.den);
}

int64_t
frac_floor_mul(Frac a, int64_t n)
{
	return (int64_t)((Wide)a.num * n / a.den);
}

int64_t
frac_floor_div(Frac a, Frac b)
{
	return (int64_t)((Wide)a.num * b.den / ((Wide)a.den * b.num));
}

double
frac_double(Frac a)
{
	return (double)a.num / (double)a.den;
}

void
decimal_text(Wide num, Wide den, int digits, char text[48])
{
	/* Digits of num/den by long division, scaled so that the first one is not 0: value = 0.d1d2d3... * 10^point. */
	char d[24] = "";
	int point = 0, n = 0;
	if (num == 0) {
		strcpy(text, "0");
		return;
	}
	while (num >= den) {
		den *= 10;
		point++;
	}
	while (num * 10 < den) {
		num *= 10;
		point--;
	}
	while (n < digits) {
		num *= 10;
		d[n++] = (char)('0' + (int)(num / den));
		num %= den;
	}
	if (num * 2 >= den) {
		int i = n - 1;
		while (i >= 0 && d[i] == '9')
			d[i--] = '0';
		if (i >= 0) {
			d[i]++;
		} else {
			d[0] = '1';
			point++;
		}
	}
	while (n > 1 && d[n - 1] == '0')
		d[--n] = 0;
	char *t = text;
	if (point <= 0) {
		*t++ = '0';
		*t++ = '.';
		for (int i = point; i < 0; i++)
			*t++ = '0';
	}
	for (int i = 0; i < n || i < point; i++) {
		if (i == point && i > 0)
			*t++ = '.';
		*t++ = i < n ? d[i] : '0';
	}
	*t = 0;
}

static bool
parse_digits(const char **text, int64_t *out)
{
	const char *t = *text;
	Wide value = 0;
	if (*t < '0' || *t > '9' || (*t == '0' && t[1] >= '0' && t[1] <= '9'))
		return false;
	for (; *t >= '0' && *t <= '9'; t++) {
		value = value * 10 + (*t - '0');
		if (value > INT64_MAX)
			return false;
	}
	*text = t;
	*out = (int64_t)value;
	return true;
}

bool
frac_parse(const char *text, Frac *out)
{
	int64_t num, den;
	if (!parse_digits(&text, &num) || *text++ != '/' || !parse_digits(&text, &den) || *text)
		return false;
	if (den == 0 || gcd64(num, den) != 1)
		return false;
	*out = (Frac){ num, den };
	return true;
}

bool
decimal_parse(const char *text, size_t length, int64_t scale, int64_t *out)
{
	enum { KEPT_DIGITS = 30 };
	const char *t = text, *end = text + length;
	Wide value = 0;
	int kept = 0, exponent = 0;
	bool any = false;
	for (int after_point = 0; t < end; t++) {
		if (*t == '.' && !after_point) {
			after_point = 1;
			continue;
		}
		if (*t < '0' || *t > '9')
			break;
		any = true;
		if (kept < KEPT_DIGITS) {
			value = value * 10 + (*t - '0');
			kept += value != 0;
			exponent -= after_point;
		} else {
			exponent += !after_point;
		}
	}
	if (!any || t[-1] == '.' || text[0] == '.')
		return false;
	if (t < end && (*t == 'e' || *t == 'E')) {
		int sign = 1, e = 0;
		t++;
		if (t < end && (*t == '+' || *t == '-'))
			sign = *t++ == '-' ? -1 : 1;
		if (t == end)
			return false;
		for (; t < end && *t >= '0' && *t <= '9'; t++)
			e = e > 9999 ? e : e * 10 + (*t - '0');
		exponent += sign * e;
	}
	if (t != end)
		return false;
	/* value * 10^exponent * scale, rounded half up; a scale is a power of ten of at most 10^9. */
	for (int64_t s = scale; s > 1; s /= 10)
		exponent++;
	if (value == 0) {
		*out = 0;
		return true;
	}
	for (; exponent > 0; exponent--) {
		value *= 10;
		if (value > INT64_MAX)
			return false;
	}
	for (; exponent < -1 && value; exponent++)
		value /= 10;
	if (exponent == -1)
		value = value / 10 + (value % 10 >= 5);
	if (value > INT64_MAX)
		return false;
	*out = (int64_t)value;
	return true;
}
