#include "base/array.h"

#include <limits.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

void *
array_grow(Arena *arena, void *array, int n, int *capacity, size_t size)
{
	if (n < *capacity)
		return array;
	if (n > INT_MAX / 2)
		return NULL;
	int larger = n < FIRST_CAPACITY / 2 ? FIRST_CAPACITY : 2 * n;
	void *grown = arena_array(arena, (size_t)larger, size);
	if (!grown)
		return NULL;
	if (n)
		memcpy(grown, array, (size_t)n * size);
	*capacity = larger;
	return grown;
}
