/* Sets of bits. */
#ifndef BLINK_BASE_BITS_H
#define BLINK_BASE_BITS_H

#include <stdint.h>

/* How many bits are set. Where the target may lack an instruction for it, __builtin_popcountll calls a function. */
static inline int
bits_count(uint64_t set)
{
	const uint64_t ones = UINT64_MAX;
	set -= set >> 1 & ones / 3;
	set = (set & ones / 5) + (set >> 2 & ones / 5);
	set = (set + (set >> 4)) & ones / 17;
	return (int)(set * (ones / 255) >> 56);
}

#endif
