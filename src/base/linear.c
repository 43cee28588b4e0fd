/* Gauss elimination modulo primes, where numbers do not grow; then fractions are reconstructed: modulo one prime if
 * they are small, else modulo the product of two. */
#include "base/linear.h"

#include <string.h>

/* 2^61 - less is prime. */
enum { BITS = 61, N_PRIMES = 2 };
static const int64_t less[N_PRIMES] = { 1, 31 };

#define MASK ((INT64_C(1) << BITS) - 1)

struct modulus {
	int64_t prime, less;
};

static int64_t
times(const struct modulus *mod, int64_t a, int64_t b)
{
	/* 2^61 is `less` modulo the prime. */
	Wide product = (Wide)a * b;
	product = (product & MASK) + (product >> BITS) * mod->less;
	int64_t sum = (int64_t)(product & MASK) + (int64_t)(product >> BITS) * mod->less;
	return sum >= mod->prime ? sum - mod->prime : sum;
}

static int64_t
inverse(const struct modulus *mod, int64_t a)
{
	int64_t power = 1;
	for (int64_t e = mod->prime - 2; e; e >>= 1) {
		if (e & 1)
			power = times(mod, power, a);
		a = times(mod, a, a);
	}
	return power;
}

/* Gauss and Jordan: the last column becomes the solution. False: singular. */
static bool
eliminate(const struct modulus *mod, int64_t *m, int n)
{
	size_t width = (size_t)n + 1;
	for (size_t i = 0; i < (size_t)n * width; i++)
		m[i] = m[i] < 0 ? m[i] + mod->prime : m[i];
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
		int64_t scale = inverse(mod, m[(size_t)k * width + (size_t)k]);
		for (size_t j = (size_t)k; j < width; j++)
			m[(size_t)k * width + j] = times(mod, m[(size_t)k * width + j], scale);
		for (int i = 0; i < n; i++) {
			int64_t by = m[(size_t)i * width + (size_t)k];
			if (i == k || by == 0)
				continue;
			for (size_t j = (size_t)k; j < width; j++) {
				int64_t d = m[(size_t)i * width + j] - times(mod, by, m[(size_t)k * width + j]);
				m[(size_t)i * width + j] = d < 0 ? d + mod->prime : d;
			}
		}
	}
	return true;
}

/* The fraction p/q = a modulo `modulus` with 0 <= p < 2^p_bits and 0 < q < 2^q_bits, if there is one: Euclid's
 * algorithm on the two, stopped in the middle. */
static bool
reconstruct(Wide modulus, Wide a, int p_bits, int q_bits, Frac *out)
{
	Wide r0 = modulus, r1 = a, t0 = 0, t1 = 1;
	while (r1 >> p_bits) {
		Wide q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
		r0 = r1;
		r1 = r;
		t0 = t1;
		t1 = t;
	}
	return t1 > 0 && t1 >> q_bits == 0 && frac_make(r1, t1, out);
}

/* Chinese remainder theorem: the number that is a modulo the first prime and b modulo the second. */
static Wide
combine(const struct modulus mod[N_PRIMES], int64_t a, int64_t b)
{
	int64_t p = mod[0].prime % mod[1].prime, d = (b - a % mod[1].prime) % mod[1].prime;
	d = d < 0 ? d + mod[1].prime : d;
	return a + (Wide)mod[0].prime * times(&mod[1], d, inverse(&mod[1], p));
}

static int64_t
residue(const struct modulus *mod, int64_t a)
{
	a %= mod->prime;
	return a < 0 ? a + mod->prime : a;
}

/* Does x solve the equations modulo another prime? Fractions that were reconstructed by chance do not. */
static bool
solves(const struct modulus *mod, const int64_t *m, int n, const Frac *x)
{
	size_t width = (size_t)n + 1;
	for (size_t i = 0; i < (size_t)n; i++) {
		int64_t sum = residue(mod, -m[i * width + (size_t)n]);
		for (size_t j = 0; j < (size_t)n; j++) {
			if (m[i * width + j] == 0 || x[j].num == 0)
				continue;
			int64_t value = times(mod, residue(mod, (int64_t)x[j].num),
			    inverse(mod, residue(mod, x[j].den)));
			sum += times(mod, residue(mod, m[i * width + j]), value);
			sum -= sum >= mod->prime ? mod->prime : 0;
		}
		if (sum != 0)
			return false;
	}
	return true;
}

bool
linear_solve(int64_t *m, int64_t *spare, int n, Frac *x)
{
	size_t width = (size_t)n + 1, size = (size_t)n * width * sizeof *m;
	struct modulus mod[N_PRIMES];
	bool small = true;
	for (int i = 0; i < N_PRIMES; i++)
		mod[i] = (struct modulus){ (INT64_C(1) << BITS) - less[i], less[i] };
	memcpy(spare, m, size);
	if (!eliminate(&mod[0], m, n))
		return false;
	for (size_t i = 0; i < (size_t)n && small; i++)
		small = reconstruct(mod[0].prime, m[i * width + (size_t)n], 42, 18, &x[i]);
	if (small && solves(&mod[1], spare, n, x))
		return true;
	if (!eliminate(&mod[1], spare, n))
		return false;
	for (size_t i = 0; i < (size_t)n; i++)
		if (!reconstruct((Wide)mod[0].prime * mod[1].prime, combine(mod, m[i * width + (size_t)n],
		    spare[i * width + (size_t)n]), 62, 59, &x[i]))
			return false;
	return true;
}
