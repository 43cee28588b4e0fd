/* How threads of virtual GPUs wait for memory: a store wakes up who waits for it, and no other store keeps a thread
 * awake. */
#include "tap.h"
#include "virtual_gpu/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS_MOST = 120, LINE = 64, WAIT_MS = 200, LATE_MS = 50, TRIALS = 400, PLACES_MANY = 40, THREADS = 200,
	PASSING_BYTES = 64 << 20 };

static _Alignas(LINE) char memory[(PLACES_MANY + 2) * LINE];

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
 * the thread, one of many, looks by itself every 10 ms or so, or because it had no processor when the store came. */
static bool
is_woken_of_many(void)
{
	struct watch w = { 0 };
	pthread_t thread;
	for (int i = 0; i < THREADS; i++)
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
	for (int i = 0; i < THREADS; i++)
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

/* A turn of who waits for a line while something else is stored: does it wake up at once? */
static bool
wakes(const void *stored, size_t bytes)
{
	struct watch w = { 0 };
	watch_begin();
	do {
		watch_load(&w, memory);
		watch_pause(&w);
	} while (w.turns <= w.yields);
	watch_load(&w, memory);
	memory_stored(stored, bytes);
	watch_pause(&w);
	bool woken = w.woken;
	watch_leave(&w);
	return woken;
}

/* More than the table of places has room for, so that some of it has the place of the line. */
static void
test_passing(void)
{
	ok(!wakes(memory + LINE, PASSING_BYTES), "data that go by wake up nobody who waits for something else");
	ok(wakes(memory, LINE), "but a store to the line does");
}

static bool
wakes_watch(struct watch *w, const void *line)
{
	watch_load(w, line);
	memory_stored(line, 1);
	watch_pause(w);
	return w->woken;
}

/* Two lines that are watched, and have one place. The second is far away: nobody loads what is there. */
static void
test_same_place(void)
{
	struct watch a = { .turns = 1 }, b = { .turns = 1 };
	uintptr_t far = (uintptr_t)memory, end = far + PASSING_BYTES;
	watch_begin();
	watch_begin();
	watch_load(&a, memory);
	do {
		watch_end(&b);
		b.turns = 1;
		watch_load(&b, (const void *)(far += LINE));
	} while (b.on[0].place != a.on[0].place && far < end);
	ok(far < end && wakes_watch(&a, memory) && wakes_watch(&b, (const void *)far),
	    "of two lines of one place each wakes up who waits for it");
	watch_leave(&a);
	watch_leave(&b);
}

int
main(void)
{
	alarm(SECONDS_MOST);
	test_seen();
	test_many();
	test_passing();
	test_same_place();
	return end_tests();
}
