/* One type's arithmetic, in vectors: KERNEL_TYPE names the type as BLINK_TYPE_LIST does. Each step rounds to the type,
 * by the expressions that the host's own reductions are held against, and no two steps are contracted into one: the
 * bits are those of the host, but for which NaN a NaN is. */
#ifndef BLINK_KERNELS_ELEMENT_H
#define BLINK_KERNELS_ELEMENT_H

#include "blink_types.h"
#include "kernels/portable.h"

enum operation { SUM, PROD, MAX, MIN };

/* float16 is a type of GPUs. */
#if ON_GPU
FN float
half_read(uint16_t x)
{
	float f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
	return f;
}

FN uint16_t
half_write(float f)
{
	uint16_t x;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x) : "f"(f));
	return x;
}
#define blink_float_of_float16 half_read
#define blink_float16_of_float half_write
#endif

/* The narrowest type that divides: 64 bits take GPUs many instructions. */
#define DIVIDE_INTEGER(T, a, n) (sizeof(T) == 8 ? (T)((a) / (T)(n)) : \
	(T)-1 < (T)1 ? (T)((int32_t)(a) / (int32_t)(n)) : (T)((uint32_t)(a) / (uint32_t)(n)))
#define DIVIDE_FLOAT(T, a, n) (a)

/* A product that no compiler contracts with a sum, with whatever options a user compiles generated code. Reductions
 * have no other product that a sum follows unrounded. */
#if ON_GPU
FN float
rounded_product(float a, float b)
{
	float c;
	asm("mul.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
	return c;
}

FN double
rounded_product(double a, double b)
{
	double c;
	asm("mul.rn.f64 %0, %1, %2;" : "=d"(c) : "d"(a), "d"(b));
	return c;
}
#define PRODUCT_FLOAT(a, b) rounded_product(a, b)
#else
#define PRODUCT_FLOAT(a, b) ((a) * (b))
#endif
#define PRODUCT_INTEGER(a, b) ((a) * (b))

#define FLOATS_INTEGER 0
#define FLOATS_FLOAT 1
#define ELEMENT(code, name, T, U, kind, read, write, with) \
	typedef T name##_element; \
	enum { name##_floats = FLOATS_##kind }; \
	FN T name##_combine(enum operation op, T a, T b) \
	{ \
		switch (op) { \
		case SUM: \
			return BLINK_SUM(T, U, kind, read, write, a, b); \
		case PROD: \
			return BLINK_PROD(T, U, kind, read, write, a, b); \
		case MAX: \
			return BLINK_MAX(T, U, kind, read, write, a, b); \
		default: \
			return BLINK_MIN(T, U, kind, read, write, a, b); \
		} \
	} \
	FN uint64_t name##_factor(T a) \
	{ \
		U factor = (U)read(a); \
		uint64_t bits = 0; \
		__builtin_memcpy(&bits, &factor, sizeof factor); \
		return bits; \
	} \
	FN T name##_scale(T a, uint64_t bits) \
	{ \
		U factor; \
		__builtin_memcpy(&factor, &bits, sizeof factor); \
		return (T)write(PRODUCT_##kind((U)read(a), factor)); \
	} \
	FN T name##_divide(T a, int64_t n) \
	{ \
		(void)n; \
		return DIVIDE_##kind(T, a, n); \
	}
BLINK_TYPE_LIST(ELEMENT, 0)
#undef ELEMENT

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_TYPE(what) JOIN(KERNEL_TYPE, what)
typedef OF_TYPE(element) element;

/* The factor that is in memory. Little-endian, as all GPUs and their hosts are. */
FN uint64_t
factor_at(const void *scalar)
{
	uint64_t bits = sizeof(element) == 8 ? load8(scalar) : sizeof(element) == 4 ? load4(scalar)
	    : sizeof(element) == 2 ? load2(scalar) : load1(scalar);
	element a;
	__builtin_memcpy(&a, &bits, sizeof a);
	return OF_TYPE(factor)(a);
}

/* Arithmetic of many instructions is there once, and called; so are scaling and dividing. */
enum { PAIR = sizeof(uint64_t) / sizeof(element), LONG = OF_TYPE(floats) && sizeof(element) == 1 };

/* Two words of a vector at a time, which have all types. expression: of element x of a and y of b. */
#define EACH_PAIR(pair, a, b, expression) do { \
	element each_a[PAIR], each_b[PAIR]; \
	__builtin_memcpy(each_a, &(a).w[2 * (pair)], sizeof each_a); \
	__builtin_memcpy(each_b, &(b).w[2 * (pair)], sizeof each_b); \
	UNROLLED \
	for (int i = 0; i < PAIR; i++) \
		each_a[i] = expression; \
	__builtin_memcpy(&(a).w[2 * (pair)], each_a, sizeof each_a); \
} while (0)
#define EACH(words, a, b, expression) \
	EACH_PAIR(0, a, b, expression); \
	if ((words) == 4) \
		EACH_PAIR(1, a, b, expression); \
	return a
#define x each_a[i]
#define y each_b[i]

FN struct vector
combine_here(enum operation op, struct vector a, struct vector b, int words)
{
	EACH(words, a, b, OF_TYPE(combine)(op, x, y));
}

/* Called functions take words, not vectors, so that clang keeps these in registers. */
#define WORDS(v) (v).w[0], (v).w[1], (v).w[2], (v).w[3]

CALLED struct vector
combine_there(enum operation op, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
    uint32_t b2, uint32_t b3)
{
	struct vector a = { { a0, a1, a2, a3 } }, b = { { b0, b1, b2, b3 } };
	switch (op) {
	case SUM:
		return combine_here(SUM, a, b, 4);
	case PROD:
		return combine_here(PROD, a, b, 4);
	case MAX:
		return combine_here(MAX, a, b, 4);
	default:
		return combine_here(MIN, a, b, 4);
	}
}

/* a op b, of all words or the first two. */
FN struct vector
combine(enum operation op, struct vector a, struct vector b, int words)
{
	return LONG ? combine_there(op, WORDS(a), WORDS(b)) : combine_here(op, a, b, words);
}

/* The same where the compiler does not know the operation. */
FN struct vector
combine_any(enum operation op, struct vector a, struct vector b, int words)
{
	switch (op) {
	case SUM:
		return combine(SUM, a, b, words);
	case PROD:
		return combine(PROD, a, b, words);
	case MAX:
		return combine(MAX, a, b, words);
	default:
		return combine(MIN, a, b, words);
	}
}

CALLED struct vector
scale_there(uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t factor)
{
	struct vector a = { { a0, a1, a2, a3 } };
	EACH(4, a, a, OF_TYPE(scale)(x, factor));
}

CALLED struct vector
divide_there(uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, int64_t by)
{
	struct vector a = { { a0, a1, a2, a3 } };
	EACH(4, a, a, OF_TYPE(divide)(x, by));
}
#define scale(a, factor) scale_there(WORDS(a), factor)
#define divide(a, by) divide_there(WORDS(a), by)
#undef EACH
#undef EACH_PAIR
#undef x
#undef y

#endif
