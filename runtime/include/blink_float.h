/* Floating-point types below 32 bits, as their bits: to and from float, on the host and in kernels. To the
 * type, a value is rounded to the nearest, ties to even; NaN stays NaN; above the largest value float16 and bfloat16
 * become infinite, and those of 8 bits the largest. C11 and C++17. Not for other callers: blink.h is the interface. */
#ifndef BLINK_FLOAT_H
#define BLINK_FLOAT_H

#include <stdint.h>

#if defined(__CUDACC__)
#define BLINK_FLOAT static inline __host__ __device__ __attribute__((unused))
#elif defined(__CUDA__)	/* clang without CUDA's headers */
#define BLINK_FLOAT static inline __attribute__((host, device, unused))
#else
#define BLINK_FLOAT static inline __attribute__((unused))
#endif

/* A type: bits of the mantissa, the bias of the exponent; the magnitude from which on a value is infinite or NaN, the
 * largest that is not NaN and that rounding gives, and that of a NaN. */
#define BLINK_FLOAT16(X, value) X(value, 16, 10, 15, 0x7c00, 0x7c00, 0x7e00)
#define BLINK_FLOAT8E4M3(X, value) X(value, 8, 3, 7, 0x7f, 0x7e, 0x7f)
#define BLINK_FLOAT8E5M2(X, value) X(value, 8, 2, 15, 0x7c, 0x7b, 0x7f)

BLINK_FLOAT float
blink_float_of_bits(uint32_t bits)
{
	float f;
	__builtin_memcpy(&f, &bits, sizeof f);
	return f;
}

BLINK_FLOAT uint32_t
blink_bits_of_float(float f)
{
	uint32_t bits;
	__builtin_memcpy(&bits, &f, sizeof bits);
	return bits;
}

BLINK_FLOAT float
blink_decode(uint32_t x, int bits, int mantissa, int bias, uint32_t special, uint32_t top, uint32_t nan)
{
	uint32_t magnitude = x & ((1u << (bits - 1)) - 1), sign = (x ^ magnitude) << (32 - bits);
	uint32_t fraction = magnitude << (23 - mantissa), v;
	(void)top;
	(void)nan;
	if (magnitude >= special)
		v = fraction | 0x7f800000;
	else if (magnitude >> mantissa != 0)
		v = fraction + ((uint32_t)(127 - bias) << 23);
	else	/* subnormal: a multiple of 2^(1 - bias - mantissa) */
		v = blink_bits_of_float((float)magnitude *
		    blink_float_of_bits((uint32_t)(128 - bias - mantissa) << 23));
	return blink_float_of_bits(v | sign);
}

BLINK_FLOAT uint32_t
blink_encode(float f, int bits, int mantissa, int bias, uint32_t special, uint32_t top, uint32_t nan)
{
	uint32_t x = blink_bits_of_float(f), magnitude = x & 0x7fffffff, sign = (x ^ magnitude) >> (32 - bits), v;
	int drop = 23 - mantissa;
	(void)special;
	if (magnitude > 0x7f800000)
		return sign | nan;
	if (magnitude >= (uint32_t)(128 - bias) << 23) {
		v = magnitude - ((uint32_t)(127 - bias) << 23) + ((1u << (drop - 1)) - 1) + ((magnitude >> drop) & 1);
		v >>= drop;
	} else {	/* subnormal: the last bit of 2^(24 - bias - mantissa) is one of the type: adding that rounds */
		uint32_t one = (uint32_t)(151 - bias - mantissa) << 23;
		v = blink_bits_of_float(blink_float_of_bits(magnitude) + blink_float_of_bits(one)) - one;
	}
	return sign | (v > top ? top : v);
}

BLINK_FLOAT float
blink_float_of_float16(uint16_t v)
{
	return BLINK_FLOAT16(blink_decode, v);
}

BLINK_FLOAT uint16_t
blink_float16_of_float(float f)
{
	return (uint16_t)BLINK_FLOAT16(blink_encode, f);
}

BLINK_FLOAT float
blink_float_of_bfloat16(uint16_t v)
{
	return blink_float_of_bits((uint32_t)v << 16);
}

BLINK_FLOAT uint16_t
blink_bfloat16_of_float(float f)
{
	uint32_t x = blink_bits_of_float(f);
	return (uint16_t)((x & 0x7fffffff) > 0x7f800000 ? x >> 16 | 0x40 : (x + 0x7fff + (x >> 16 & 1)) >> 16);
}

BLINK_FLOAT float
blink_float_of_e4m3(uint8_t v)
{
	return BLINK_FLOAT8E4M3(blink_decode, v);
}

BLINK_FLOAT uint8_t
blink_e4m3_of_float(float f)
{
	return (uint8_t)BLINK_FLOAT8E4M3(blink_encode, f);
}

BLINK_FLOAT float
blink_float_of_e5m2(uint8_t v)
{
	return BLINK_FLOAT8E5M2(blink_decode, v);
}

BLINK_FLOAT uint8_t
blink_e5m2_of_float(float f)
{
	return (uint8_t)BLINK_FLOAT8E5M2(blink_encode, f);
}

#endif
