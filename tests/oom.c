/* Preloaded into a program: its allocation number OOM_AT, and every one after it if OOM_ON is set, fails. At exit, two
 * numbers go to the file OOM_COUNT: allocations tried, and blocks that are not freed. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long calls, live;
static long at = -1;
static int on;

__attribute__((constructor)) static void
setup(void)
{
	const char *text = getenv("OOM_AT");
	on = getenv("OOM_ON") != NULL;
	atomic_store(&calls, 0);
	at = text ? strtol(text, NULL, 10) : -1;
}

__attribute__((destructor)) static void
report(void)
{
	const char *path = getenv("OOM_COUNT");
	long n = atomic_load(&calls), left = atomic_load(&live);
	at = -1;
	FILE *file = path ? fopen(path, "w") : NULL;
	if (file) {
		fprintf(file, "%ld %ld\n", n, left);
		fclose(file);
	}
}

static int
fails(void)
{
	long n = atomic_fetch_add(&calls, 1);
	return at >= 0 && (n == at || (on && n > at));
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);

static void *
counted(void *p)
{
	if (p)
		atomic_fetch_add(&live, 1);
	return p;
}

void *
malloc(size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return counted(__libc_malloc(size));
}

void *
calloc(size_t n, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return counted(__libc_calloc(n, size));
}

void *
realloc(void *p, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return p ? __libc_realloc(p, size) : counted(__libc_realloc(p, size));
}

void
free(void *p)
{
	if (p)
		atomic_fetch_sub(&live, 1);
	__libc_free(p);
}
