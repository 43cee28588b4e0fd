/* Sorting, and orders of what is sorted often. */
#ifndef BLINK_SORT_H
#define BLINK_SORT_H

#include <stdlib.h>
#include <string.h>

/* As qsort, which takes no NULL: n may be 0, whatever the array is then. */
static inline void
sort_array(void *array, int n, size_t size, int (*order)(const void *, const void *))
{
	if (n > 0)
		qsort(array, (size_t)n, size, order);
}

static inline int
order_of_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static inline int
order_of_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

#endif
