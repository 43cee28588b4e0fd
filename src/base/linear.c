/* Modulo the prime 2^61 - 1, where nothing grows, and then read back. */
#include "base/linear.h"

#define PRIME ((INT64_C(1) << 61) - 1)

static int64_t
times(int64_t a, int64_t b)
{
	/* 2^61 is 1 modulo 2^61 - 1. */
	Wide product = (Wide)a * b;
	int64_t sum = (int64_t)(product & PRIME) + (int64_t)(product >> 61);
	return sum >= PRIME ? sum - PRIME : sum;
}

static int64_t
inverse(int64_t a)
{
	int64_t power = 1;
	for (int64_t e = PRIME - 2; e; e >>= 1) {
		if (e & 1)
			power = times(power, a);
		a = times(a, a);
	}
	return power;
}

/* Gauss and Jordan: the last column becomes the solution. False: singular. */
static bool
eliminate(int64_t *m, int n)
{
	size_t width = (size_t)n + 1;
	for (int k = 0; k < n; k++) {
		int pivot = k;
		while (pivot < n && m[(size_t)pivot * width + (size_t)k] == 0)
			pivot++;
		if (pivot == n)
			return false;
		for (size_t j = 0; j < width; j++) {
			int64_t t = m[(size_t)pivot * width + j];
			m[(size_t)pivot * width + j] = m[(size_t)k * width + j];
			m[(size_t)k * width + j] = t;
		}
		int64_t scale = inverse(m[(size_t)k * width + (size_t)k]);
		for (size_t j = (size_t)k; j < width; j++)
			m[(size_t)k * width + j] = times(m[(size_t)k * width + j], scale);
		for (int i = 0; i < n; i++) {
			int64_t by = m[(size_t)i * width + (size_t)k];
			if (i == k || by == 0)
				continue;
			for (size_t j = (size_t)k; j < width; j++) {
				int64_t d = m[(size_t)i * width + j] - times(by, m[(size_t)k * width + j]);
				m[(size_t)i * width + j] = d < 0 ? d + PRIME : d;
			}
		}
	}
	return true;
}

/* The fraction p/q = a modulo PRIME with 0 <= p < 2^42 and 0 < q < 2^18, if there is one: Euclid's algorithm on PRIME and
 * a, stopped half way. */
static bool
read_back(int64_t a, Frac *out)
{
	int64_t r0 = PRIME, r1 = a, t0 = 0, t1 = 1;
	while (r1 >> 42) {
		int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
		r0 = r1;
		r1 = r;
		t0 = t1;
		t1 = t;
	}
	return t1 > 0 && t1 < 1 << 18 && frac_make(r1, t1, out);
}

bool
linear_solve(int64_t *m, int n, Frac *x)
{
	size_t width = (size_t)n + 1;
	for (size_t i = 0; i < (size_t)n * width; i++)
		m[i] = m[i] < 0 ? m[i] + PRIME : m[i];
	if (!eliminate(m, n))
		return false;
	for (size_t i = 0; i < (size_t)n; i++)
		if (!read_back(m[i * width + (size_t)n], &x[i]))
			return false;
	return true;
}
