/* Arrays that grow, in an arena. */
#ifndef BLINK_ARRAY_H
#define BLINK_ARRAY_H

#include "base/status.h"

/* The array, which has room for *capacity elements of `size` bytes, with room for more than n: itself, or a larger
 * copy, whose elements from n on are zero. NULL: no memory, or more than INT_MAX elements. */
void *array_grow(Arena *arena, void *array, int n, int *capacity, size_t size);

/* Status of room for element n in the array p of the run arena: TRY(GROW(ctx, p, n, capacity)). */
#define GROW(ctx, p, n, capacity) array_status(ctx, (p) = array_grow(&(ctx)->run, (p), (n), &(capacity), sizeof *(p)))

/* The same in the scratch arena. */
#define GROW_TEMP(ctx, p, n, capacity) \
	array_status(ctx, (p) = array_grow(&(ctx)->scratch, (p), (n), &(capacity), sizeof *(p)))

static inline Status
array_status(Ctx *ctx, const void *grown)
{
	return grown ? OK : fail_memory(ctx);
}

#endif
