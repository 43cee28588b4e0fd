/* Gauss elimination modulo primes, where numbers do not grow; then fractions are reconstructed: modulo one prime if
 * they are small, else modulo the product of two. */
#include "base/linear.h"

#include <string.h>

/* 2^61 - less is prime. */
enum { BITS = 61, N_PRIMES = 2, PARTS = 7 };	/* of the work space, of n numbers each */
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

/* Euclid's algorithm. */
static int64_t
inverse(const struct modulus *mod, int64_t a)
{
	int64_t r0 = mod->prime, r1 = a, t0 = 0, t1 = 1;
	while (r1 > 1) {
		int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
		r0 = r1;
		r1 = r;
		t0 = t1;
		t1 = t;
	}
	return t1 < 0 ? t1 + mod->prime : t1;
}

/* a - by * b */
static int64_t
less_product(const struct modulus *mod, int64_t a, int64_t by, int64_t b)
{
	int64_t d = a - times(mod, by, b);
	return d < 0 ? d + mod->prime : d;
}

/* ---- elimination ---- */

/* n equations, as rows of n coefficients and a right side, modulo a prime. Most coefficients are 0: the pivot of each
 * step is in the row with the fewest that are not, and of its columns in that with the fewest (after Markowitz 1957),
 * so that few more come in. */
struct equations {
	const struct modulus *mod;
	int64_t *m;
	size_t n, width;
	int64_t *in_row, *in_column;	/* how many are not 0, in rows that are left; of a row that is not: LEAVES */
	int64_t *row, *column;		/* of the pivot of each step */
	int64_t *list;			/* of columns, of the pivot's row */
	int64_t *solution;
};

enum { LEAVES = -1 };

static void
count_entries(struct equations *e)
{
	memset(e->in_row, 0, e->n * sizeof *e->in_row);
	memset(e->in_column, 0, e->n * sizeof *e->in_column);
	for (size_t i = 0; i < e->n; i++) {
		int64_t *row = &e->m[i * e->width];
		for (size_t j = 0; j <= e->n; j++)
			row[j] += row[j] < 0 ? e->mod->prime : 0;
		for (size_t j = 0; j < e->n; j++) {
			e->in_row[i] += row[j] != 0;
			e->in_column[j] += row[j] != 0;
		}
	}
}

/* False: singular. */
static bool
choose_pivot(struct equations *e, size_t step)
{
	size_t r = e->n, c = e->n;
	for (size_t i = 0; i < e->n; i++)
		if (e->in_row[i] != LEAVES && (r == e->n || e->in_row[i] < e->in_row[r]))
			r = i;
	const int64_t *row = &e->m[r * e->width];
	for (size_t j = 0; j < e->n; j++)
		if (row[j] != 0 && (c == e->n || e->in_column[j] < e->in_column[c]))
			c = j;
	e->row[step] = (int64_t)r;
	e->column[step] = (int64_t)c;
	return c < e->n;
}

/* Row i less `by` times the pivot's row. */
static void
subtract_row(struct equations *e, size_t i, const int64_t *pivot, int64_t by, size_t n_list)
{
	int64_t *row = &e->m[i * e->width];
	for (size_t k = 0; k < n_list; k++) {
		size_t j = (size_t)e->list[k];
		int64_t was = row[j], now = less_product(e->mod, was, by, pivot[j]);
		int change = (now != 0) - (was != 0);
		e->in_row[i] += change;
		e->in_column[j] += change;
		row[j] = now;
	}
	row[e->n] = less_product(e->mod, row[e->n], by, pivot[e->n]);
}

/* No row that is left has the pivot's column any more. */
static void
clear_column(struct equations *e, size_t step)
{
	size_t r = (size_t)e->row[step], c = (size_t)e->column[step], n_list = 0;
	const int64_t *pivot = &e->m[r * e->width];
	e->in_row[r] = LEAVES;
	for (size_t j = 0; j < e->n; j++) {
		if (pivot[j] == 0)
			continue;
		e->in_column[j]--;
		if (j != c)
			e->list[n_list++] = (int64_t)j;
	}
	if (e->in_column[c] == 0)
		return;
	int64_t scale = inverse(e->mod, pivot[c]);
	for (size_t i = 0; i < e->n; i++) {
		int64_t *at = &e->m[i * e->width + c];
		if (e->in_row[i] == LEAVES || *at == 0)
			continue;
		subtract_row(e, i, pivot, times(e->mod, *at, scale), n_list);
		*at = 0;
		e->in_row[i]--;
	}
}

/* Gauss: the last pivot's row has one unknown, and each before it one more that is not known yet. False: singular. */
static bool
eliminate(struct equations *e)
{
	count_entries(e);
	for (size_t step = 0; step < e->n; step++) {
		if (!choose_pivot(e, step))
			return false;
		clear_column(e, step);
	}
	for (size_t step = e->n; step-- > 0;) {
		const int64_t *row = &e->m[(size_t)e->row[step] * e->width];
		size_t c = (size_t)e->column[step];
		int64_t value = row[e->n];
		for (size_t j = 0; j < e->n; j++)
			if (row[j] != 0 && j != c)
				value = less_product(e->mod, value, row[j], e->solution[j]);
		e->solution[c] = times(e->mod, value, inverse(e->mod, row[c]));
	}
	return true;
}

/* ---- fractions ---- */

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

/* Does x solve the equations modulo another prime? Fractions that were reconstructed by chance do not. value: work
 * space. */
static bool
solves(const struct modulus *mod, const int64_t *m, int n, const Frac *x, int64_t *value)
{
	size_t width = (size_t)n + 1;
	for (size_t j = 0; j < (size_t)n; j++)
		value[j] = times(mod, residue(mod, (int64_t)x[j].num), inverse(mod, residue(mod, x[j].den)));
	for (size_t i = 0; i < (size_t)n; i++) {
		const int64_t *row = &m[i * width];
		int64_t rest = residue(mod, row[n]);
		for (size_t j = 0; j < (size_t)n; j++)
			if (row[j] != 0 && value[j] != 0)
				rest = less_product(mod, rest, residue(mod, row[j]), value[j]);
		if (rest != 0)
			return false;
	}
	return true;
}

size_t
linear_spare(int n)
{
	return (size_t)n * ((size_t)n + 1 + PARTS);
}

bool
linear_solve(int64_t *m, int64_t *spare, int n, Frac *x)
{
	size_t size = (size_t)n, width = size + 1;
	int64_t *work = spare + size * width, *first = work, *second = work + size;
	struct equations e = { .n = size, .width = width, .in_row = work + 2 * size, .in_column = work + 3 * size,
		.row = work + 4 * size, .column = work + 5 * size, .list = work + 6 * size };
	struct modulus mod[N_PRIMES];
	bool small = true;
	for (int i = 0; i < N_PRIMES; i++)
		mod[i] = (struct modulus){ (INT64_C(1) << BITS) - less[i], less[i] };
	memcpy(spare, m, size * width * sizeof *m);
	e.mod = &mod[0];
	e.m = m;
	e.solution = first;
	if (!eliminate(&e))
		return false;
	for (size_t i = 0; i < size && small; i++)
		small = reconstruct(mod[0].prime, first[i], 42, 18, &x[i]);
	if (small && solves(&mod[1], spare, n, x, second))
		return true;
	e.mod = &mod[1];
	e.m = spare;
	e.solution = second;
	if (!eliminate(&e))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!reconstruct((Wide)mod[0].prime * mod[1].prime, combine(mod, first[i], second[i]), 62, 59, &x[i]))
			return false;
	return true;
}
