/* What one input may cost: CPU time and memory, by its size. A target that does more than reading sets other
 * floors before it includes the driver. Sanitizers take several times as long. */
#ifndef BLINK_FUZZ_COST_H
#define BLINK_FUZZ_COST_H

#include <malloc.h>
#include <stdatomic.h>

#ifndef COST_FLOOR_MS
#define COST_FLOOR_MS 300
#endif
#ifndef COST_FLOOR_BYTES
#define COST_FLOOR_BYTES (32 << 20)
#endif
enum { COST_NS_PER_BYTE = 50, COST_BYTES_PER_BYTE = 50, COST_SANITIZED = 20 };

static atomic_long cost_live, cost_most;	/* bytes that are allocated; the most at once */
static struct timespec cost_start;

/* Bytes of input that a short one stands for, as a file of a server and a number of these: set by the target. */
static size_t cost_stands_for;

static void
cost_add(long bytes)
{
	long now = atomic_fetch_add(&cost_live, bytes) + bytes;
	if (now > atomic_load(&cost_most))
		atomic_store(&cost_most, now);
}

/* There only with a sanitizer. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
    void (*free_hook)(const volatile void *)) __attribute__((weak));
extern size_t __sanitizer_get_allocated_size(const volatile void *p) __attribute__((weak));

static void
cost_malloc(const volatile void *p, size_t size)
{
	(void)p;
	cost_add((long)size);
}

static void
cost_free(const volatile void *p)
{
	if (p)
		cost_add(-(long)__sanitizer_get_allocated_size(p));
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ && !defined __clang__
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static void *
cost_counted(void *p)
{
	cost_add(p ? (long)malloc_usable_size(p) : 0);
	return p;
}

void *
malloc(size_t size)
{
	return cost_counted(__libc_malloc(size));
}

void *
calloc(size_t n, size_t size)
{
	return cost_counted(__libc_calloc(n, size));
}

void *
realloc(void *p, size_t size)
{
	long before = p ? (long)malloc_usable_size(p) : 0;
	void *grown = __libc_realloc(p, size);
	if (grown)
		cost_add((long)malloc_usable_size(grown) - before);
	return grown;
}

void
free(void *p)
{
	if (p)
		cost_add(-(long)malloc_usable_size(p));
	__libc_free(p);
}
#endif

static void
cost_begin(void)
{
	static bool hooked;
	if (!hooked && __sanitizer_install_malloc_and_free_hooks)
		__sanitizer_install_malloc_and_free_hooks(cost_malloc, cost_free);
	hooked = true;
	atomic_store(&cost_live, 0);
	atomic_store(&cost_most, 0);
	cost_stands_for = 0;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cost_start);
}

static void
cost_end(size_t size)
{
	struct timespec end;
	size += cost_stands_for;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	int64_t ns = (end.tv_sec - cost_start.tv_sec) * INT64_C(1000000000) + (end.tv_nsec - cost_start.tv_nsec);
	int64_t most = COST_FLOOR_MS * INT64_C(1000000) + COST_NS_PER_BYTE * (int64_t)size;
	if (__sanitizer_install_malloc_and_free_hooks)
		most *= COST_SANITIZED;
	REQUIRE(ns <= most, "%zu bytes of input take %lld ns of CPU time", size, (long long)ns);
	long bytes = atomic_load(&cost_most), room = COST_FLOOR_BYTES + COST_BYTES_PER_BYTE * (long)size;
	REQUIRE(bytes <= room, "%zu bytes of input take %ld bytes of memory", size, bytes);
}

#endif
