/* The kernels, in vectors of WIDTH bytes of the compilers' vector extension. Included by base.c, avx2.c and avx512.c,
 * which name the table (KERNELS, NAME), the width and the instructions (F16C).
 *
 * A vector of a type has WIDTH bytes; of floating-point types below 32 bits, as many elements as one of float, so that
 * it widens to one; but of bfloat16 there are pairs, of which each half widens by itself. Small floats are computed as
 * float and rounded after each step: f16 by the CPU where it can, else by shifts and adds that give the same bits.
 * Their minimum and maximum need no arithmetic: sign and magnitude become an integer of the same order, in which -0 and
 * +0 are equal.
 *
 * A kernel makes one pass however many operands there are: four vectors at a time stay in registers while it goes
 * through the operands. */

#include "blink_float.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#define VECTOR(lane, bytes) lane __attribute__((vector_size(bytes)))
typedef VECTOR(uint8_t, WIDTH) u8v;
typedef VECTOR(int8_t, WIDTH) i8v;
typedef VECTOR(int16_t, WIDTH) i16v;
typedef VECTOR(uint32_t, WIDTH) u32v;
typedef VECTOR(int32_t, WIDTH) i32v;
typedef VECTOR(uint64_t, WIDTH) u64v;
typedef VECTOR(int64_t, WIDTH) i64v;
typedef VECTOR(float, WIDTH) f32v;
typedef VECTOR(double, WIDTH) f64v;
typedef VECTOR(uint16_t, WIDTH / 2) u16h;	/* as many lanes as f32v */
typedef VECTOR(uint8_t, WIDTH / 4) u8q;
typedef VECTOR(int8_t, WIDTH / 4) i8q;
typedef VECTOR(int32_t, WIDTH / 2) i32h;	/* as many lanes as f64v */
typedef VECTOR(uint32_t, WIDTH / 2) u32h;

/* Lanes of a where the mask's are all ones, of b where they are 0. */
#define SELECT(V, mask, a, b) ((V)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))

/* ---- memory, of any alignment ---- */

#define LOAD(V, p) (*(const V##_at *)(p))
#define UNALIGNED(V) typedef V V##_at __attribute__((aligned(1), may_alias));
UNALIGNED(u8v) UNALIGNED(i8v) UNALIGNED(i16v) UNALIGNED(u32v) UNALIGNED(i32v) UNALIGNED(u64v) UNALIGNED(i64v)
UNALIGNED(f32v) UNALIGNED(f64v) UNALIGNED(u16h) UNALIGNED(u8q) UNALIGNED(i8q) UNALIGNED(i32h) UNALIGNED(u32h)
#undef UNALIGNED

/* Past the caches. to is aligned to the size, which is a constant. */
INLINE void
stream(char *to, const void *v, size_t size)
{
#ifdef __x86_64__
#if WIDTH == 64
	if (size == 64)
		return _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(v));
#endif
#if WIDTH >= 32
	if (size == 32)
		return _mm256_stream_si256((__m256i *)to, _mm256_loadu_si256((const __m256i_u *)v));
#endif
	if (size == 16)
		return _mm_stream_si128((__m128i *)to, _mm_loadu_si128((const __m128i_u *)v));
	for (size_t i = 0; i < size; i += sizeof(int)) {
		int part;
		memcpy(&part, (const char *)v + i, sizeof part);
		_mm_stream_si32((int *)(to + i), part);
	}
#else
	memcpy(to, v, size);
#endif
}

#define STORE(V, job, at, v) do { \
	if ((job)->streaming) \
		stream((job)->to + (at), &(v), sizeof(V)); \
	else \
		*(V##_at *)((job)->to + (at)) = (v); \
	if ((job)->also) \
		*(V##_at *)((job)->also + (at)) = (v); \
} while (0)

/* ---- small floats ---- */

struct small {
	int bits, mantissa, bias;
	int32_t special, top, nan;	/* as of blink_float.h */
};
#define AS_SMALL(value, bits, mantissa, bias, special, top, nan) { bits, mantissa, bias, special, top, nan }
static const struct small half = BLINK_FLOAT16(AS_SMALL, );
static const struct small e4m3 = BLINK_FLOAT8E4M3(AS_SMALL, );
static const struct small e5m2 = BLINK_FLOAT8E5M2(AS_SMALL, );
#undef AS_SMALL

/* In every lane. */
INLINE i32v
each(int32_t value)
{
	return (i32v){ 0 } + value;
}

/* blink_decode and blink_encode, of vectors. */
INLINE f32v
decode(u32v x, struct small s)
{
	i32v magnitude = (i32v)(x & ((1u << (s.bits - 1)) - 1));
	u32v sign = (x ^ (u32v)magnitude) << (32 - s.bits);
	i32v fraction = magnitude << (23 - s.mantissa);
	f32v unit = (f32v)each((128 - s.bias - s.mantissa) << 23);
	f32v subnormal = __builtin_convertvector(magnitude, f32v) * unit;
	i32v finite = SELECT(i32v, magnitude < (1 << s.mantissa), subnormal, fraction + ((127 - s.bias) << 23));
	return (f32v)(SELECT(u32v, magnitude >= s.special, fraction | 0x7f800000, finite) | sign);
}

INLINE u32v
encode(f32v f, struct small s)
{
	i32v x = (i32v)f, magnitude = x & 0x7fffffff;
	u32v sign = (u32v)(x ^ magnitude) >> (32 - s.bits);
	int drop = 23 - s.mantissa;
	i32v up = ((magnitude >> drop) & 1) + ((1 << (drop - 1)) - 1);
	i32v normal = (magnitude - ((127 - s.bias) << 23) + up) >> drop;
	i32v one = each((151 - s.bias - s.mantissa) << 23);
	i32v subnormal = (i32v)((f32v)magnitude + (f32v)one) - one;
	i32v v = SELECT(i32v, magnitude < ((128 - s.bias) << 23), subnormal, normal);
	v = SELECT(i32v, v > s.top, each(s.top), v);
	return (u32v)SELECT(i32v, magnitude > 0x7f800000, each(s.nan), v) | sign;
}

INLINE f32v
decode_f16(u16h v)
{
#if defined(F16C) && WIDTH == 64
	return (f32v)_mm512_cvtph_ps((__m256i)v);
#elif defined(F16C)
	return (f32v)_mm256_cvtph_ps((__m128i)v);
#else
	return decode(__builtin_convertvector(v, u32v), half);
#endif
}

INLINE u16h
encode_f16(f32v f)
{
#if defined(F16C) && WIDTH == 64
	return (u16h)_mm512_cvtps_ph((__m512)f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(F16C)
	return (u16h)_mm256_cvtps_ph((__m256)f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
	return __builtin_convertvector(encode(f, half), u16h);
#endif
}

/* Pairs of bfloat16, which are halves of floats: of each pair the upper and the lower as float, and back. */
INLINE f32v
upper_bf16(u32v pair)
{
	return (f32v)(pair & 0xffff0000);
}

INLINE f32v
lower_bf16(u32v pair)
{
	return (f32v)(pair << 16);
}

INLINE u32v
round_bf16(f32v f)
{
	u32v x = (u32v)f;
	u32v rounded = x + ((x >> 16) & 1) + 0x7fff;
	return SELECT(u32v, f != f, x | 0x400000, rounded);
}

INLINE u32v
pair_bf16(f32v upper, f32v lower)
{
	return (round_bf16(upper) & 0xffff0000) | round_bf16(lower) >> 16;
}

/* In two steps: gcc has instructions for each, and none for both. */
INLINE u32v
widen(u8q v)
{
	return __builtin_convertvector(__builtin_convertvector(v, u16h), u32v);
}

INLINE u8q
narrow(u32v v)
{
	return __builtin_convertvector(__builtin_convertvector(v, u16h), u8q);
}

INLINE f32v
decode_e4m3(u8q v)
{
	return decode(widen(v), e4m3);
}

INLINE u8q
encode_e4m3(f32v f)
{
	return narrow(encode(f, e4m3));
}

INLINE f32v
decode_e5m2(u8q v)
{
	return decode(widen(v), e5m2);
}

INLINE u8q
encode_e5m2(f32v f)
{
	return narrow(encode(f, e5m2));
}

/* ---- operations on vectors ---- */

/* Unsigned: overflow wraps. */
#define INTEGER(name, V, lane) \
	INLINE V sum_##name(V a, V b) { return a + b; } \
	INLINE V prod_##name(V a, V b) { return a * b; } \
	INLINE V scale_##name(V a, const struct reduction *r) { return a * (lane)r->scale.bits; }
INTEGER(u8, u8v, uint8_t)
INTEGER(u32, u32v, uint32_t)
INTEGER(u64, u64v, uint64_t)
#undef INTEGER

#define ORDERED(name, V) \
	INLINE V max_##name(V a, V b) { return SELECT(V, a > b, a, b); } \
	INLINE V min_##name(V a, V b) { return SELECT(V, a < b, a, b); }
ORDERED(u8, u8v)
ORDERED(i8, i8v)
ORDERED(u32, u32v)
ORDERED(i32, i32v)
ORDERED(u64, u64v)
ORDERED(i64, i64v)
#undef ORDERED

#define FLOAT(name, V) \
	INLINE V sum_##name(V a, V b) { return a + b; } \
	INLINE V prod_##name(V a, V b) { return a * b; } \
	INLINE V max_##name(V a, V b) { return SELECT(V, (a > b) | (a != a), a, b); } \
	INLINE V min_##name(V a, V b) { return SELECT(V, (a < b) | (a != a), a, b); } \
	INLINE V scale_##name(V a, const struct reduction *r) { return a * r->scale.name; }
FLOAT(f32, f32v)
FLOAT(f64, f64v)
#undef FLOAT

#define SMALL(name, V) \
	INLINE V sum_##name(V a, V b) { return encode_##name(decode_##name(a) + decode_##name(b)); } \
	INLINE V prod_##name(V a, V b) { return encode_##name(decode_##name(a) * decode_##name(b)); } \
	INLINE V scale_##name(V a, const struct reduction *r) \
	{ \
		return encode_##name(decode_##name(a) * r->scale.f32); \
	}
SMALL(f16, u16h)
SMALL(e4m3, u8q)
SMALL(e5m2, u8q)
#undef SMALL

INLINE u32v
sum_bf16(u32v a, u32v b)
{
	return pair_bf16(upper_bf16(a) + upper_bf16(b), lower_bf16(a) + lower_bf16(b));
}

INLINE u32v
prod_bf16(u32v a, u32v b)
{
	return pair_bf16(upper_bf16(a) * upper_bf16(b), lower_bf16(a) * lower_bf16(b));
}

INLINE u32v
scale_bf16(u32v a, const struct reduction *r)
{
	return pair_bf16(upper_bf16(a) * r->scale.f32, lower_bf16(a) * r->scale.f32);
}

/* a where `high` is above `low` or a is NaN, but for where b is NaN and a is not. lane: the signed integer of that
 * size; infinite: magnitudes above it are NaN. */
#define SMALL_ORDERED(name, R, lane, infinite) \
	INLINE R first_##name(R a, R b, R high, R low) \
	{ \
		lane most = (lane)((1ull << (8 * sizeof(lane) - 1)) - 1); \
		R h = high >> (8 * (int)sizeof(lane) - 1), l = low >> (8 * (int)sizeof(lane) - 1); \
		R above = ((high & most) ^ h) - h > ((low & most) ^ l) - l; \
		R nan_a = (a & most) > (lane)(infinite), nan_b = (b & most) > (lane)(infinite); \
		return SELECT(R, nan_a | (above & ~nan_b), a, b); \
	} \
	INLINE R max_##name(R a, R b) { return first_##name(a, b, a, b); } \
	INLINE R min_##name(R a, R b) { return first_##name(a, b, b, a); }
SMALL_ORDERED(f16, i16v, int16_t, 0x7c00)
SMALL_ORDERED(bf16, i16v, int16_t, 0x7f80)
SMALL_ORDERED(e4m3, i8v, int8_t, 0x7e)
SMALL_ORDERED(e5m2, i8v, int8_t, 0x7c)
#undef SMALL_ORDERED

/* ---- kernels ---- */

#define SAME(a, r) (a)

#define KERNEL(name, V, scale) \
	static void \
	reduce_##name(const struct reduction_job *j) \
	{ \
		enum { S = sizeof(V) }; \
		size_t at = j->begin; \
		for (; at + 4 * S <= j->end; at += 4 * S) { \
			const char *own = j->own + at; \
			V a = LOAD(V, own), b = LOAD(V, own + S), c = LOAD(V, own + 2 * S), d = LOAD(V, own + 3 * S); \
			if (j->scales) { \
				a = scale(a, j->r), b = scale(b, j->r); \
				c = scale(c, j->r), d = scale(d, j->r); \
			} \
			for (int i = 0; i < j->n_from; i++) { \
				const char *from = j->from[i] + at; \
				a = name(a, LOAD(V, from)); \
				b = name(b, LOAD(V, from + S)); \
				c = name(c, LOAD(V, from + 2 * S)); \
				d = name(d, LOAD(V, from + 3 * S)); \
			} \
			STORE(V, j, at, a); \
			STORE(V, j, at + S, b); \
			STORE(V, j, at + 2 * S, c); \
			STORE(V, j, at + 3 * S, d); \
		} \
		for (; at < j->end; at += S) { \
			V a = LOAD(V, j->own + at); \
			if (j->scales) \
				a = scale(a, j->r); \
			for (int i = 0; i < j->n_from; i++) \
				a = name(a, LOAD(V, j->from[i] + at)); \
			STORE(V, j, at, a); \
		} \
	}
#define SUM_PROD(name, V) KERNEL(sum_##name, V, scale_##name) KERNEL(prod_##name, V, SAME)
#define MAX_MIN(name, V) KERNEL(max_##name, V, SAME) KERNEL(min_##name, V, SAME)
SUM_PROD(u8, u8v)
SUM_PROD(u32, u32v)
SUM_PROD(u64, u64v)
SUM_PROD(f32, f32v)
SUM_PROD(f64, f64v)
SUM_PROD(f16, u16h)
SUM_PROD(bf16, u32v)
SUM_PROD(e4m3, u8q)
SUM_PROD(e5m2, u8q)
MAX_MIN(u8, u8v)
MAX_MIN(i8, i8v)
MAX_MIN(u32, u32v)
MAX_MIN(i32, i32v)
MAX_MIN(u64, u64v)
MAX_MIN(i64, i64v)
MAX_MIN(f32, f32v)
MAX_MIN(f64, f64v)
MAX_MIN(f16, i16v)
MAX_MIN(bf16, i16v)
MAX_MIN(e4m3, i8v)
MAX_MIN(e5m2, i8v)
#define copy_any(a, b) (b)
KERNEL(copy_any, u8v, SAME)
#undef MAX_MIN
#undef SUM_PROD
#undef KERNEL

/* Towards zero, by floating-point numbers whose quotient is never rounded up to an integer: the next integer is at
 * least 1/by away, and the quotient's last bit is worth less. */
#define DIVIDE(name, V, WIDE) \
	static void \
	divide_##name(char *data, size_t bytes, int64_t by) \
	{ \
		WIDE n = { 0 }; \
		n += (__typeof__(n[0]))by; \
		for (size_t at = 0; at < bytes; at += sizeof(V)) { \
			WIDE v = __builtin_convertvector(LOAD(V, data + at), WIDE) / n; \
			*(V##_at *)(data + at) = __builtin_convertvector(v, V); \
		} \
	}
DIVIDE(u8, u8q, f32v)
DIVIDE(i8, i8q, f32v)
DIVIDE(u32, u32h, f64v)
DIVIDE(i32, i32h, f64v)
#undef DIVIDE

#define DIVIDE(name, lane) \
	static void \
	divide_##name(char *data, size_t bytes, int64_t by) \
	{ \
		for (size_t at = 0; at < bytes; at += sizeof(lane)) { \
			lane v; \
			memcpy(&v, data + at, sizeof v); \
			v /= (lane)by; \
			memcpy(data + at, &v, sizeof v); \
		} \
	}
DIVIDE(u64, uint64_t)
DIVIDE(i64, int64_t)
#undef DIVIDE

static void
fence(void)
{
#ifdef __x86_64__
	_mm_sfence();
#endif
}

const struct reduction_kernels KERNELS = {
	NAME,
	{
		[blinkInt8] = { reduce_sum_u8, reduce_prod_u8, reduce_max_i8, reduce_min_i8 },
		[blinkUint8] = { reduce_sum_u8, reduce_prod_u8, reduce_max_u8, reduce_min_u8 },
		[blinkInt32] = { reduce_sum_u32, reduce_prod_u32, reduce_max_i32, reduce_min_i32 },
		[blinkUint32] = { reduce_sum_u32, reduce_prod_u32, reduce_max_u32, reduce_min_u32 },
		[blinkInt64] = { reduce_sum_u64, reduce_prod_u64, reduce_max_i64, reduce_min_i64 },
		[blinkUint64] = { reduce_sum_u64, reduce_prod_u64, reduce_max_u64, reduce_min_u64 },
		[blinkFloat16] = { reduce_sum_f16, reduce_prod_f16, reduce_max_f16, reduce_min_f16 },
		[blinkFloat32] = { reduce_sum_f32, reduce_prod_f32, reduce_max_f32, reduce_min_f32 },
		[blinkFloat64] = { reduce_sum_f64, reduce_prod_f64, reduce_max_f64, reduce_min_f64 },
		[blinkBfloat16] = { reduce_sum_bf16, reduce_prod_bf16, reduce_max_bf16, reduce_min_bf16 },
		[blinkFloat8e4m3] = { reduce_sum_e4m3, reduce_prod_e4m3, reduce_max_e4m3, reduce_min_e4m3 },
		[blinkFloat8e5m2] = { reduce_sum_e5m2, reduce_prod_e5m2, reduce_max_e5m2, reduce_min_e5m2 },
	},
	{
		[blinkInt8] = divide_i8, [blinkUint8] = divide_u8,
		[blinkInt32] = divide_i32, [blinkUint32] = divide_u32,
		[blinkInt64] = divide_i64, [blinkUint64] = divide_u64,
	},
	reduce_copy_any,
	fence,
};
