/* How threads of virtual GPUs wait for memory: a store wakes up who waits for it, and no other store keeps a thread
 * awake. */
#include "virtual_gpu/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS_MOST = 60, LINE = 64, WAIT_MS = 200, LATE_MS = 50, TRIALS = 40, PLACES_MANY = 40,
	THREADS = 200 };

static int n_tests, n_failed;
static _Alignas(LINE) char memory[(PLACES_MANY + 2) * LINE];

static void
ok(bool good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_tests, name);
	n_failed += !good;
}

static int
line_is_set(int line)
{
	return __atomic_load_n(&memory[line * LINE], __ATOMIC_SEQ_CST);
}

static void
set_line(int line)
{
	__atomic_store_n(&memory[line * LINE], 1, __ATOMIC_SEQ_CST);
	memory_stored(&memory[line * LINE], 1);
}

static void
pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

/* Stores to line 0 for a while, again and again, and then to line 1. */
static void *
store_lines(void *unused)
{
	(void)unused;
	for (int ms = 0; ms < WAIT_MS; ms++) {
		pause_ms(1);
		set_line(0);
	}
	set_line(1);
	return NULL;
}

/* Who has seen line 0 and waits for line 1, as one of many threads, which sleep for up to 10 ms: turns. */
static void
test_seen(void)
{
	struct watch w = { 0 };
	pthread_t thread;
	int turns;
	for (int i = 0; i < THREADS; i++)
		watch_begin();
	set_line(0);
	if (pthread_create(&thread, NULL, store_lines, NULL) != 0)
		exit(1);
	while (w.turns < 4) {
		watch_load(&w, &memory[0]);
		watch_pause(&w);
	}
	for (turns = 0; !line_is_set(1); turns++) {
		watch_load(&w, &memory[LINE]);
		if (!line_is_set(1))
			watch_pause(&w);
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < THREADS; i++)
		watch_leave(&w);
	printf("# %d turns\n", turns);
	ok(turns < WAIT_MS / 2, "a store to what was seen before keeps nobody awake");
}

static void *
store_late(void *unused)
{
	(void)unused;
	pause_ms(LATE_MS);
	set_line(PLACES_MANY);
	return NULL;
}

/* Whether a store to the last of more places than a thread can watch ends its wait. Without that the wait ends, too, as
 * the thread looks by itself now and then, or because it had no processor when the store came. */
static bool
is_woken_of_many(void)
{
	struct watch w = { 0 };
	pthread_t thread;
	watch_begin();
	memset(memory, 0, sizeof memory);
	if (pthread_create(&thread, NULL, store_late, NULL) != 0)
		exit(1);
	while (!line_is_set(PLACES_MANY)) {
		for (int line = 2; line <= PLACES_MANY; line++)
			watch_load(&w, &memory[line * LINE]);
		if (!line_is_set(PLACES_MANY))
			watch_pause(&w);
	}
	bool woken = w.woken;
	pthread_join(thread, NULL);
	watch_leave(&w);
	return woken;
}

static void
test_many(void)
{
	bool woken = false;
	for (int i = 0; i < TRIALS && !woken; i++)
		woken = is_woken_of_many();
	ok(woken, "of many places those that were looked at last end a wait");
}

int
main(void)
{
	alarm(SECONDS_MOST);
	test_seen();
	test_many();
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
