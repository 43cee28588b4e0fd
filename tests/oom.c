/* Preloaded into a program: its allocation number OOM_AT, and every one after it if OOM_ON is set, fails. At exit, the
 * number of allocations goes to the file OOM_COUNT. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long calls;
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
	long n = atomic_load(&calls);
	at = -1;
	FILE *file = path ? fopen(path, "w") : NULL;
	if (file) {
		fprintf(file, "%ld\n", n);
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

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

void *
malloc(size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(p, size);
}
