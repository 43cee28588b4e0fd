/* Numbers that look random but are always the same: splitmix64 (Steele, Lea and Flood 2014). For hashes and for fixed
 * sequences of pseudorandom numbers. */
#ifndef BLINK_HASH_H
#define BLINK_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t
hash64(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Of bytes. */
static inline uint64_t
hash_bytes(const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	uint64_t hash = size;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	return hash64(hash);
}

/* Of [0, 1), from two small numbers. */
static inline double
hash_unit(uint64_t a, uint64_t b)
{
	return (double)(hash64((a << 32 | b) * 0x9e3779b97f4a7c15u) >> 11) / 9007199254740992.0;
}

#endif
