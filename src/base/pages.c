#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A hint, without which all works the same. */
static void
prefer_large(void *data, size_t size)
{
#ifdef MADV_HUGEPAGE
	madvise(data, size, MADV_HUGEPAGE);
#else
	(void)data;
	(void)size;
#endif
}

/* Whole large pages: Linux aligns such a mapping, from 6.7 on, and earlier it mostly lies next to the one before. */
void *
pages_new(size_t *size, bool sparse)
{
	if (*size > SIZE_MAX / 2)
		return NULL;
	size_t whole = (*size + PAGES_LEAST - 1) / PAGES_LEAST * PAGES_LEAST;
	void *data = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return NULL;
	if (!sparse)
		prefer_large(data, whole);
	*size = whole;
	return data;
}

void
pages_free(void *data, size_t size)
{
	munmap(data, size);
}

/* The first and the last page may hold what belongs to others, which a hint does no harm. */
void
pages_large(void *data, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)data % page;
	if (size >= PAGES_LEAST)
		prefer_large((char *)data - before, before + size);
}
