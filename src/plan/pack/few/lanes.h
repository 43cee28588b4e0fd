/* Vectors of eight or sixteen small numbers: of cuts between the ranks. And two words of a set of
 * bits. */
#ifndef BLINK_PLAN_PACK_FEW_LANES_H
#define BLINK_PLAN_PACK_FEW_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 8, BYTES = 16 };

typedef int16_t Lanes __attribute__((vector_size(2 * LANES)));
typedef uint8_t Bytes __attribute__((vector_size(BYTES)));
typedef uint8_t Narrow __attribute__((vector_size(LANES)));
typedef uint64_t Words __attribute__((vector_size(16)));

/* NAME_get and NAME_put: one of these from and to any address. */
#define ACCESS(Type, name, number)                                             \
	static inline Type                                                     \
	name##_get(const number *from)                                         \
	{                                                                      \
		Type value;                                                    \
		memcpy(&value, from, sizeof value);                            \
		return value;                                                  \
	}                                                                      \
	static inline void                                                     \
	name##_put(number *to, Type value)                                     \
	{                                                                      \
		memcpy(to, &value, sizeof value);                              \
	}
ACCESS(Lanes, lanes, int16_t)
ACCESS(Bytes, bytes, uint8_t)
ACCESS(Words, words, uint64_t)
#undef ACCESS

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

static inline Lanes
lanes_all(int16_t each)
{
	return (Lanes){ 0 } + each;
}

/* Is a lane not 0? Comparisons of lanes give -1 or 0 in each. */
static inline bool
lanes_any(Lanes lanes)
{
	return words_any((Words)lanes);
}

/* The low bytes of each. */
static inline void
lanes_put_bytes(uint8_t *to, Lanes lanes)
{
	Narrow narrow = __builtin_convertvector(lanes, Narrow);
	memcpy(to, &narrow, sizeof narrow);
}

static inline bool
bytes_any(Bytes bytes)
{
	return words_any((Words)bytes);
}

static inline Bytes
bytes_min(Bytes a, Bytes b)
{
	Bytes less = (Bytes)(a < b);
	return (a & less) | (b & ~less);
}

#endif
