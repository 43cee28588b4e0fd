/* Reductions of host memory (runtime/reduce) and the conversions of blink_float.h, against a plain reference: integers
 * as 128-bit numbers, floating-point numbers as doubles, which hold every sum and product of two floats, and rounding
 * by a search of the sorted values of the type. Every version of the kernels that this CPU has. */
#include "../../runtime/reduce/kernels.h"
#include "blink_device.h"
#include "quick.h"
#include "random.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 128, GUARD_BYTE = 0xa5, MOST = 5, SCALED = blinkOpNext };

/* mantissa: its bits; 0: an integer. top: the largest finite magnitude; infinite: whether above it a value is. */
static const struct type {
	const char *name;
	int bits, is_signed, mantissa, bias;
	uint64_t top;
	int infinite;
} types[REDUCTION_TYPES] = {
	[blinkInt8] = { "int8", 8, 1, 0, 0, 0, 0 },
	[blinkUint8] = { "uint8", 8, 0, 0, 0, 0, 0 },
	[blinkInt32] = { "int32", 32, 1, 0, 0, 0, 0 },
	[blinkUint32] = { "uint32", 32, 0, 0, 0, 0, 0 },
	[blinkInt64] = { "int64", 64, 1, 0, 0, 0, 0 },
	[blinkUint64] = { "uint64", 64, 0, 0, 0, 0, 0 },
	[blinkFloat16] = { "float16", 16, 1, 10, 15, 0x7bff, 1 },
	[blinkFloat32] = { "float32", 32, 1, 23, 127, 0x7f7fffff, 1 },
	[blinkFloat64] = { "float64", 64, 1, 52, 1023, 0x7fefffffffffffff, 1 },
	[blinkBfloat16] = { "bfloat16", 16, 1, 7, 127, 0x7f7f, 1 },
	[blinkFloat8e4m3] = { "float8e4m3", 8, 1, 3, 7, 0x7e, 0 },
	[blinkFloat8e5m2] = { "float8e5m2", 8, 1, 2, 15, 0x7b, 0 },
};
static const struct reduction_kernels *const *versions;
static const char *const ops[] = { "sum", "prod", "max", "min", "avg", "premulsum" };

/* ---- the reference ---- */

static uint64_t
mask_of(const struct type *t)
{
	return t->bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << t->bits) - 1;
}

static uint64_t
infinity_of(const struct type *t)
{
	return t == &types[blinkFloat8e5m2] ? 0x7c : t == &types[blinkFloat8e4m3] ? 0x7f : t->top + 1;
}

static bool
is_nan(const struct type *t, uint64_t bits)
{
	uint64_t magnitude = bits & (mask_of(t) >> 1);
	return t->mantissa && magnitude >= infinity_of(t) + (t != &types[blinkFloat8e4m3]);
}

static __int128
integer_of(const struct type *t, uint64_t bits)
{
	return t->is_signed && bits >> (t->bits - 1) ? (__int128)bits - ((__int128)1 << t->bits) : (__int128)bits;
}

/* Of a magnitude that is finite. */
static double
compute_finite(const struct type *t, uint64_t magnitude)
{
	int exponent = (int)(magnitude >> t->mantissa);
	double fraction = (double)(magnitude & ((UINT64_C(1) << t->mantissa) - 1));
	if (exponent > 0)
		fraction += (double)(UINT64_C(1) << t->mantissa);
	return ldexp(fraction, (exponent > 0 ? exponent : 1) - t->bias - t->mantissa);
}

static double
finite_of(const struct type *t, uint64_t magnitude)
{
	static double table[REDUCTION_TYPES][1 << 15];
	double *known = table[t - types];
	if (t->bits > 16)
		return compute_finite(t, magnitude);
	if (known[1] == 0)
		for (uint64_t i = 0; i <= t->top + 1; i++)
			known[i] = compute_finite(t, i);
	return known[magnitude];
}

static double
value_of(const struct type *t, uint64_t bits)
{
	uint64_t magnitude = bits & (mask_of(t) >> 1);
	double v = is_nan(t, bits) ? NAN : magnitude >= infinity_of(t) ? INFINITY : finite_of(t, magnitude);
	return bits >> (t->bits - 1) ? -v : v;
}

/* The bits nearest to v, a float; of two equally near the even. */
static uint64_t
nearest(const struct type *t, double v)
{
	uint64_t sign = signbit(v) ? UINT64_C(1) << (t->bits - 1) : 0, low = 0, high = t->top;
	double a = fabs(v), last = finite_of(t, t->top), step = last - finite_of(t, t->top - 1);
	if (isnan(v))
		return sign | (t->infinite ? infinity_of(t) + 1 : 0x7f);
	if (a >= last + step / 2 || (a > last && !t->infinite))
		return sign | (t->infinite ? infinity_of(t) : t->top);
	if (a >= last)
		return sign | t->top;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;
		*(finite_of(t, middle) <= a ? &low : &high) = middle;
	}
	double below_it = a - finite_of(t, low), above_it = finite_of(t, high) - a;
	return sign | (below_it < above_it || (below_it == above_it && low % 2 == 0) ? low : high);
}

static uint64_t
bits_of_float(const struct type *t, double v)
{
	uint64_t bits = 0;
	float f = (float)v;
	if (t->bits == 64)
		memcpy(&bits, &v, 8);
	else if (t->bits == 32)
		memcpy(&bits, &f, 4);
	else
		bits = nearest(t, f);
	return bits;
}

static uint64_t
combine(const struct type *t, int op, uint64_t a, uint64_t b)
{
	bool first;
	if (!t->mantissa) {
		__int128 x = integer_of(t, a), y = integer_of(t, b);
		first = op == blinkMax ? x > y : x < y;
		if (op == blinkSum)
			return (uint64_t)(x + y) & mask_of(t);
		if (op == blinkProd)
			return (uint64_t)((unsigned __int128)x * (unsigned __int128)y) & mask_of(t);
		return first ? a : b;
	}
	double x = value_of(t, a), y = value_of(t, b);
	if (op == blinkSum || op == blinkProd)
		return bits_of_float(t, op == blinkSum ? x + y : x * y);
	first = op == blinkMax ? x > y : x < y;
	return is_nan(t, a) || (first && !is_nan(t, b)) ? a : b;
}

static uint64_t
scaled(const struct type *t, const struct reduction *r, uint64_t a)
{
	if (!t->mantissa)
		return a * r->scale.bits & mask_of(t);
	return bits_of_float(t, value_of(t, a) * (t->bits == 64 ? r->scale.f64 : (double)r->scale.f32));
}

static uint64_t
divided(const struct type *t, const struct reduction *r, uint64_t a)
{
	return (uint64_t)(integer_of(t, a) / r->divide) & mask_of(t);
}

/* Bits of a NaN that was computed are not specified. */
static bool
same(const struct type *t, bool computed, uint64_t got, uint64_t want)
{
	return got == want || (computed && is_nan(t, got) && is_nan(t, want));
}

/* ---- elements ---- */

static uint64_t
any64(void)
{
	return (uint64_t)below(1 << 22) << 42 ^ (uint64_t)below(1 << 22) << 21 ^ (uint64_t)below(1 << 22);
}

/* Any bits; of floating-point types near 1. */
static uint64_t
near_one(const struct type *t)
{
	uint64_t bits = any64(), exponent = (uint64_t)(t->bias + below(9) - 4);
	if (!t->mantissa)
		return bits & mask_of(t);
	return (bits & 1) << (t->bits - 1) | exponent << t->mantissa | (bits >> 1 & ((UINT64_C(1) << t->mantissa) - 1));
}

/* Any bits; of floating-point types often near 1, zeros, subnormal, the largest, infinite and NaN. */
static uint64_t
any_bits(const struct type *t)
{
	uint64_t bits = any64(), sign = bits & 1 ? UINT64_C(1) << (t->bits - 1) : 0;
	if (t->mantissa) {
		uint64_t mantissa = (UINT64_C(1) << t->mantissa) - 1;
		switch (below(12)) {
		case 0:
			return sign;
		case 1:
			return sign | (bits >> 1 & mantissa);
		case 2:
			return sign | (t->top - (uint64_t)below(2));
		case 3:
			return sign | infinity_of(t);
		case 4:
			return sign | mask_of(t) >> 1;
		case 5: case 6: case 7: case 8:
			return near_one(t);
		}
	}
	return bits & mask_of(t);
}

static void
put(const struct type *t, void *array, size_t i, uint64_t bits)
{
	memcpy((char *)array + i * (size_t)t->bits / 8, &bits, (size_t)t->bits / 8);	/* little-endian */
}

static uint64_t
get(const struct type *t, const void *array, size_t i)
{
	uint64_t bits = 0;
	memcpy(&bits, (const char *)array + i * (size_t)t->bits / 8, (size_t)t->bits / 8);
	return bits;
}

/* ---- all conversions ---- */

static const struct type *const small[] = { &types[blinkFloat16], &types[blinkBfloat16], &types[blinkFloat8e4m3],
	&types[blinkFloat8e5m2] };

static double
decode(const struct type *t, uint64_t bits)
{
	return t == small[0] ? blink_float_of_float16((uint16_t)bits)
	    : t == small[1] ? blink_float_of_bfloat16((uint16_t)bits)
	    : t == small[2] ? blink_float_of_e4m3((uint8_t)bits) : blink_float_of_e5m2((uint8_t)bits);
}

static uint64_t
encode(const struct type *t, float f)
{
	return t == small[0] ? blink_float16_of_float(f) : t == small[1] ? blink_bfloat16_of_float(f)
	    : t == small[2] ? blink_e4m3_of_float(f) : blink_e5m2_of_float(f);
}

/* encode by the kernels: 1 scaled by f. */
static bool
kernels_encode(const struct type *t, float f, uint64_t want)
{
	uint64_t one = (uint64_t)t->bias << t->mantissa, got;
	struct reduction r = { .type = (int)(t - types), .op = blinkSum, .size = (size_t)t->bits / 8, .scales = true };
	r.scale.f32 = f;
	for (const struct reduction_kernels *const *k = versions; *k; k++) {
		got = 0;
		reduction_run_by(*k, &r, &got, NULL, &one, NULL, 0, 1, true, false);
		if (!same(t, true, got, want))
			return false;
	}
	return true;
}

/* Every value, in the quick check one of seven of 16 bits; its middles to its neighbours, and the floats next to
 * them. */
static int
test_conversions(void)
{
	int wrong = 0;
	for (int s = 0; s < 4; s++) {
		const struct type *t = small[s];
		uint64_t step = t->bits > 8 && quick_check() ? 7 : 1;
		for (uint64_t bits = 0; bits <= mask_of(t); bits += step) {
			double v = value_of(t, bits), to = finite_of(t, (bits & mask_of(t) >> 1) + 1);
			float middle = (float)((fabs(v) + to) / 2 * (signbit(v) ? -1 : 1));
			float around[] = { (float)v, middle, nextafterf(middle, 0), nextafterf(middle, INFINITY),
				nextafterf(middle, -INFINITY) };
			double got = decode(t, bits);
			wrong += isnan(v) ? !isnan(got) : got != v || !signbit(v) != !signbit(got);
			for (int i = 0; i < 5; i++) {
				uint64_t want = nearest(t, around[i]);
				wrong += !same(t, true, encode(t, around[i]), want);
				wrong += !kernels_encode(t, around[i], want);
			}
		}
	}
	return report(wrong, "conversions of values, and of those between two");
}

static int
n_different(const struct type *t, int op, const char *got, const char *want, size_t n)
{
	int different = 0;
	for (size_t i = 0; i < n; i++)
		different += !same(t, op <= blinkProd, get(t, got, i), get(t, want, i));
	return different;
}

/* Elements of a type of more than 16 bits, whose values are not all tried; of others n. */
static size_t
n_tried(const struct type *t, size_t n)
{
	return t->bits > 16 && quick_check() ? n / 8 : n;
}

/* Of a type of 8 bits every pair; of 16 bits every value with some others; of others any. Of the kernels, and of the
 * loops that compiled programs have. */
static int
test_pairs(void)
{
	enum { N = 1 << 16 };
	static char a[N * 8], b[N * 8], to[N * 8], want[N * 8];
	int wrong = 0;
	for (int type = 0; type < REDUCTION_TYPES; type++) {
		const struct type *t = &types[type];
		size_t n = n_tried(t, N);
		for (int op = blinkSum; op <= blinkMin; op++) {
			struct reduction r;
			wrong += !reduction_make(type, op, 1, &r);
			for (size_t i = 0; i < n; i++) {
				put(t, a, i, t->bits <= 16 ? i & mask_of(t) : any_bits(t));
				put(t, b, i, t->bits == 8 ? i >> 8 : any_bits(t));
				put(t, want, i, combine(t, op, get(t, a, i), get(t, b, i)));
			}
			blink_combine(type, op, to, a, b, n);
			wrong += n_different(t, op, to, want, n);
			for (const struct reduction_kernels *const *k = versions; *k; k++) {
				reduction_run_by(*k, &r, to, NULL, a, (const void *[]){ b }, 1, n, true, false);
				wrong += n_different(t, op, to, want, n);
			}
		}
	}
	return report(wrong, "every pair of the types of 8 bits, every value of those of 16");
}

static int
test_averages(void)
{
	enum { N = 1 << 16 };
	static const int n_ranks[] = { 2, 3, 7, 41, 127, 128, 129, 255, 256, 257, 1000, 65537, INT_MAX };
	static char a[N * 8], to[N * 8], want[N * 8];
	int wrong = 0;
	for (int type = 0; type < REDUCTION_TYPES; type++) {
		const struct type *t = &types[type];
		size_t n = n_tried(t, N);
		for (size_t m = 0; m < sizeof n_ranks / sizeof *n_ranks; m += quick_check() ? 3 : 1) {
			struct reduction r;
			wrong += !reduction_make(type, blinkAvg, n_ranks[m], &r);
			for (size_t i = 0; i < n; i++) {
				uint64_t v = t->bits <= 16 ? i & mask_of(t) : any_bits(t);
				put(t, a, i, v);
				put(t, want, i, r.divide ? divided(t, &r, v) : scaled(t, &r, v));
			}
			blink_average(type, n_ranks[m], to, a, n);
			wrong += n_different(t, blinkSum, to, want, n);
			for (const struct reduction_kernels *const *k = versions; *k; k++) {
				reduction_run_by(*k, &r, to, NULL, a, NULL, 0, n, true, false);
				wrong += n_different(t, blinkSum, to, want, n);
			}
		}
	}
	return report(wrong, "averages, over up to as many ranks as an int counts");
}

/* ---- lengths, alignments, operands ---- */

struct call {
	const struct type *t;
	struct reduction r;
	size_t n;
	int op, n_from;
	bool in_place, also, last, streaming;
	char *memory[3 + MOST];		/* to, also, own, from: each between guards */
	char *at[3 + MOST];
};

static void
make_call(struct call *c, size_t n)
{
	size_t size = (size_t)c->t->bits / 8;
	uint64_t scalar = any_bits(c->t);
	int type = (int)(c->t - types), n_ranks = 1 + below(below(4) ? 20 : 1 << 20);
	c->op = below(SCALED + 1);
	if (c->op == SCALED ? !reduction_make_scaled(type, &scalar, &c->r)
			    : !reduction_make(type, c->op, n_ranks, &c->r))
		abort();
	reduction_read_scalar(&c->r);
	c->n = n;
	c->n_from = below(MOST + 1);
	c->in_place = below(4) == 0;
	c->also = below(2);
	c->last = below(4) != 0;
	c->streaming = below(2);
	for (int i = 0; i < 3 + MOST; i++) {
		size_t bytes = 2 * GUARD + n * size;
		c->memory[i] = aligned_alloc(GUARD, (bytes + 2 * GUARD - 1) / GUARD * GUARD);
		if (!c->memory[i])
			abort();
		memset(c->memory[i], GUARD_BYTE, bytes + GUARD);
		c->at[i] = c->memory[i] + GUARD + size * (size_t)below(64 / (int)size);
		for (size_t e = 0; e < n; e++)
			put(c->t, c->at[i], e, any_bits(c->t));
	}
}

static bool
guarded(const struct call *c, int i)
{
	const unsigned char *m = (const unsigned char *)c->memory[i];
	size_t before = (size_t)(c->at[i] - c->memory[i]), bytes = c->n * (size_t)c->t->bits / 8;
	for (size_t at = 0; at < 2 * GUARD + bytes; at++)
		if ((at < before || at >= before + bytes) && m[at] != GUARD_BYTE)
			return false;
	return true;
}

static uint64_t
expected(const struct call *c, const char *own, size_t e)
{
	uint64_t v = get(c->t, own, e);
	if (c->r.scales)
		v = scaled(c->t, &c->r, v);
	for (int i = 0; i < c->n_from; i++)
		v = combine(c->t, c->r.op, v, get(c->t, c->at[3 + i], e));
	return c->last && c->r.divide ? divided(c->t, &c->r, v) : v;
}

static int
try_call(const struct type *t, size_t n, const struct reduction_kernels *k)
{
	struct call c = { .t = t };
	int wrong = 0;
	make_call(&c, n);
	char *own = malloc(n * (size_t)t->bits / 8 + 1), *to = c.in_place ? c.at[2] : c.at[0];
	if (!own)
		abort();
	memcpy(own, c.at[2], n * (size_t)t->bits / 8);
	reduction_run_by(k, &c.r, to, c.also ? c.at[1] : NULL, c.at[2], (const void *const *)&c.at[3], c.n_from, n,
	    c.last, c.streaming);
	for (size_t e = 0; e < n; e++) {
		uint64_t want = expected(&c, own, e);
		wrong += !same(t, c.r.op <= blinkProd, get(t, to, e), want);
		wrong += c.also && get(t, c.at[1], e) != get(t, to, e);
		wrong += !c.in_place && get(t, c.at[2], e) != get(t, own, e);
	}
	for (int i = 0; i < 3 + MOST; i++)
		wrong += !guarded(&c, i);
	if (wrong)
		printf("# %s %s %s n %zu operands %d in place %d also %d last %d streaming %d: %d wrong\n", k->name,
		    t->name, ops[c.op], n, c.n_from, c.in_place, c.also, c.last, c.streaming, wrong);
	for (int i = 0; i < 3 + MOST; i++)
		free(c.memory[i]);
	free(own);
	return wrong;
}

static int
test_calls(void)
{
	int wrong = 0;
	for (const struct reduction_kernels *const *k = versions; *k; k++) {
		for (int type = 0; type < REDUCTION_TYPES; type++) {
			for (int n = 0; n <= 100; n++)
				for (int i = 0; i < 6; i++)
					wrong += try_call(&types[type], (size_t)n, *k);
			for (int i = 0; i < 12; i++)
				wrong += try_call(&types[type], (size_t)below(6000), *k);
		}
	}
	return report(wrong, "calls of any length, alignment and number of operands");
}

/* The same bits, NaN aside, from every version: as many operands as a large node has, and a block at a time. */
static int
test_versions(void)
{
	enum { N = 1000, FROM = 63 };
	static char data[FROM + 1][N * 8], first[N * 8], one[N * 8], each[N * 8];
	const void *from[FROM];
	int wrong = 0;
	for (int type = 0; type < REDUCTION_TYPES; type++) {
		const struct type *t = &types[type];
		for (int op = blinkSum; op <= blinkAvg; op++) {
			struct reduction r, rest;
			wrong += !reduction_make(type, op, FROM + 1, &r);
			rest = r;
			rest.scales = false;
			for (int i = 0; i <= FROM; i++)
				for (size_t e = 0; e < N; e++)
					put(t, data[i], e, near_one(t));
			for (int i = 0; i < FROM; i++)
				from[i] = data[i + 1];
			reduction_run_by(&reduction_base, &r, first, NULL, data[0], from, FROM, N, true, false);
			for (const struct reduction_kernels *const *k = versions; *k; k++) {
				reduction_run_by(*k, &r, one, NULL, data[0], from, FROM, N, true, false);
				reduction_run_by(*k, &r, each, NULL, data[0], NULL, 0, N, false, false);
				for (int i = 0; i < FROM; i++)
					reduction_run_by(*k, &rest, each, NULL, each, &from[i], 1, N, i == FROM - 1,
					    false);
				wrong += n_different(t, r.op, one, first, N) + n_different(t, r.op, each, first, N);
			}
		}
	}
	return report(wrong, "every version gives the same bits, however operands are divided between calls");
}

static int
test_copies(void)
{
	static char from[4096], to[4096], also[4096], was[4096];
	int wrong = 0;
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (char)(i * 31 % 251);
	memset(was, GUARD_BYTE, sizeof was);
	for (const struct reduction_kernels *const *k = versions; *k; k++) {
		for (int i = 0; i < 3000; i++) {
			size_t a = (size_t)below(100), b = (size_t)below(100), c = (size_t)below(100);
			size_t n = (size_t)below(below(2) ? 200 : 3900);
			bool first = below(4), second = below(2);
			memset(to, GUARD_BYTE, sizeof to);
			memset(also, GUARD_BYTE, sizeof also);
			reduction_copy_by(*k, first ? to + a : NULL, second ? also + b : NULL, from + c, n, below(2));
			wrong += memcmp(to + a, first ? from + c : was, n) != 0;
			wrong += memcmp(also + b, second ? from + c : was, n) != 0;
			wrong += memcmp(to, was, a) != 0 || memcmp(to + a + n, was, sizeof to - a - n) != 0;
			wrong += memcmp(also, was, b) != 0 || memcmp(also + b + n, was, sizeof also - b - n) != 0;
		}
		reduction_copy_by(*k, from, to, from, sizeof from, true);
		wrong += memcmp(from, to, sizeof to) != 0;
	}
	return report(wrong, "copies to one and two destinations");
}

static int
test_make(void)
{
	struct reduction r;
	uint64_t scalar = 3;
	int wrong = reduction_make(-1, blinkSum, 2, &r) || reduction_make(REDUCTION_TYPES, blinkSum, 2, &r) ||
	    reduction_make(blinkInt8, -1, 2, &r) || reduction_make(blinkInt8, blinkOpNext, 2, &r) ||
	    reduction_make_scaled(REDUCTION_TYPES, &scalar, &r);
	wrong += !reduction_make(blinkBfloat16, blinkAvg, 3, &r) || !r.scales || r.scale.f32 != 1.0f / 3 ||
	    r.divide != 0;
	wrong += !reduction_make(blinkUint64, blinkAvg, 3, &r) || r.scales || r.divide != 3;
	wrong += reduction_kernels() != reduction_versions()[0]->name;
	return report(wrong, "what is no type or operation is refused");
}

int
main(void)
{
	int wrong = 0;
	versions = reduction_versions();
	alarm(600);
	for (const struct reduction_kernels *const *k = versions; *k; k++)
		printf("# kernels: %s\n", (*k)->name);
	wrong += test_make();
	wrong += test_conversions();
	wrong += test_pairs();
	wrong += test_averages();
	wrong += test_calls();
	wrong += test_versions();
	wrong += test_copies();
	return wrong != 0;
}
