/* Small numbers that are computed at once, eight or sixteen: of cuts between the ranks. And two words of a set of
 * bits. */
#ifndef BLINK_PLAN_PACK_LANES_H
#define BLINK_PLAN_PACK_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 8, BYTES = 16 };

typedef int16_t Lanes __attribute__((vector_size(2 * LANES)));
typedef uint8_t Bytes __attribute__((vector_size(BYTES)));

typedef uint8_t Narrow __attribute__((vector_size(LANES)));
typedef uint64_t Words __attribute__((vector_size(16)));

static inline Lanes
lanes_get(const int16_t *from)
{
	Lanes lanes;
	memcpy(&lanes, from, sizeof lanes);
	return lanes;
}

static inline void
lanes_put(int16_t *to, Lanes lanes)
{
	memcpy(to, &lanes, sizeof lanes);
}

/* Is a lane not 0? Comparisons of lanes give -1 or 0 in each. */
static inline bool
lanes_any(Lanes lanes)
{
	uint64_t half[2];
	memcpy(half, &lanes, sizeof lanes);
	return half[0] | half[1];
}

static inline Lanes
lanes_all(int16_t each)
{
	return (Lanes){ 0 } + each;
}

/* The low bytes of each. */
static inline void
lanes_put_bytes(uint8_t *to, Lanes lanes)
{
	Narrow narrow = __builtin_convertvector(lanes, Narrow);
	memcpy(to, &narrow, sizeof narrow);
}

static inline Bytes
bytes_get(const uint8_t *from)
{
	Bytes bytes;
	memcpy(&bytes, from, sizeof bytes);
	return bytes;
}

static inline void
bytes_put(uint8_t *to, Bytes bytes)
{
	memcpy(to, &bytes, sizeof bytes);
}

static inline Bytes
bytes_min(Bytes a, Bytes b)
{
	Bytes less = (Bytes)(a < b);
	return (a & less) | (b & ~less);
}

static inline bool
bytes_any(Bytes bytes)
{
	uint64_t half[2];
	memcpy(half, &bytes, sizeof bytes);
	return half[0] | half[1];
}

static inline Words
words_get(const uint64_t *from)
{
	Words words;
	memcpy(&words, from, sizeof words);
	return words;
}

static inline void
words_put(uint64_t *to, Words words)
{
	memcpy(to, &words, sizeof words);
}

static inline Words
words_all(uint64_t each)
{
	return (Words){ each, each };
}

static inline bool
words_any(Words words)
{
	return words[0] | words[1];
}

#endif
