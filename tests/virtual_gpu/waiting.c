/* How threads of blocks wait for memory. There may be a thousand on a machine of two processors, and nearly all of them
 * wait: a thread that looks every 200 us would leave nothing for those that work. So a thread that has looked for a
 * while sleeps until somebody stores to a line of memory that it looks at; a line has a place in a table, with the
 * number of those who watch it and of what was stored while they did. It waits until it stores to memory of a device:
 * fences, and what it reports to the host, end no wait.
 *
 * A line has the bytes of a flag and hardly more. Of those with one place, which are many, only watched ones count:
 * data go by all the time, and would wake up whoever waits for a flag.
 *
 * Stores of other processes and of the host are not seen, nor those by another address of the same memory: a thread
 * looks by itself now and then, more often if it was so that its last wait ended.
 *
 * A place that a thread has not looked at for some turns, and that changes, is none that it waits for: a flag of the
 * same chunk that was there before, mostly. It would end each sleep at once, and so is not watched any more. Where a
 * thread looks at more places than it can watch, those that it looked at last count. */
#include "grid.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	PLACES = 1 << 18,		/* many more than are watched */
	LINE_SHIFT = 4,
	YIELDS_OF_ALL = 100, YIELDS_LEAST = 2, YIELDS_MOST = 50,
	TURNS_UNSEEN = 16,
	SHORT_NS = 200000, LONG_NS = 10000000, LONGEST_NS = 100000000, THREAD_NS = 100000,
	FUTEX_WAITV = 449,		/* since Linux 5.16; headers of the C library may be older */
	WORD_OF_32_BITS = 2
};

struct wait_on {
	uint64_t value, address;
	uint32_t flags, unused;
};

static struct place {
	_Atomic uint64_t watched;	/* a line, 0: several; and by how many */
	_Atomic uint32_t stores;	/* while it was watched */
} places[PLACES];

#define WATCHERS(watched) ((watched) & UINT16_MAX)
#define WATCHED_LINE(watched) ((watched) >> 16)

/* Lines in a row have places in a row: who stores much goes through the table as through its memory. */
static struct place *
place_of_line(uintptr_t line)
{
	return &places[(line + (line / PLACES) * UINT64_C(0x9e3779b97f4a7c15)) % PLACES];
}

static _Atomic unsigned threads;

void
watch_begin(void)
{
	atomic_fetch_add(&threads, 1);
}

void
watch_leave(struct watch *w)
{
	watch_end(w);
	atomic_fetch_sub(&threads, 1);
}

static void
begin_watch(struct place *place, uint64_t line)
{
	uint64_t was = atomic_load(&place->watched), next;
	do {
		next = WATCHERS(was) == 0 || WATCHED_LINE(was) == line ? line : 0;
	} while (!atomic_compare_exchange_weak(&place->watched, &was, next << 16 | (WATCHERS(was) + 1)));
}

static void
drop(struct watch *w, int i)
{
	atomic_fetch_sub(&w->on[i].place->watched, 1);
	w->on[i] = w->on[--w->n];
}

/* Which of the places was looked at longest ago? */
static int
oldest(const struct watch *w)
{
	int old = 0;
	for (int i = 1; i < w->n; i++)
		if (w->on[i].turn < w->on[old].turn)
			old = i;
	return old;
}

void
watch_load(struct watch *w, const void *at)
{
	if (w->turns == 0 || w->turns + 1 < w->yields)
		return;
	uintptr_t line = (uintptr_t)at >> LINE_SHIFT;
	int i = 0;
	while (i < w->n && w->on[i].line != line)
		i++;
	if (i == WATCHED_MOST) {
		drop(w, oldest(w));
		i = w->n;
	}
	if (i == w->n) {
		w->on[w->n].line = line;
		w->on[w->n++].place = place_of_line(line);
		begin_watch(w->on[i].place, line);
	}
	w->on[i].stores = atomic_load(&w->on[i].place->stores);
	w->on[i].turn = w->turns;
}

bool
watches(const struct watch *w, const void *at)
{
	for (int i = 0; i < w->n; i++)
		if (w->on[i].line == (uintptr_t)at >> LINE_SHIFT)
			return true;
	return false;
}

void
watch_end(struct watch *w)
{
	if (w->turns == 0)
		return;
	while (w->n > 0)
		drop(w, w->n - 1);
	w->turns = 0;
	w->ended_by_store = w->woken;
}

/* Until it looks by itself: at first soon, later as seldom as that all threads together take little of the machine. */
static int64_t
patience(const struct watch *w)
{
	int64_t most = (int64_t)THREAD_NS * atomic_load(&threads), ns = SHORT_NS;
	most = most < LONGEST_NS ? most : LONGEST_NS;
	if (w->ended_by_store)
		return most < LONG_NS ? LONG_NS : most;
	for (unsigned i = w->yields; i < w->turns && ns < most; i++)
		ns *= 2;
	return ns;
}

static void
drop_unseen(struct watch *w)
{
	for (int i = w->n - 1; i >= 0; i--)
		if (w->turns - w->on[i].turn > TURNS_UNSEEN && atomic_load(&w->on[i].place->stores) != w->on[i].stores)
			drop(w, i);
}

/* Until a store to any of the places, or for so long. Does a store end it? */
static bool
sleep_watching(struct watch *w, int64_t ns)
{
	struct wait_on wait[WATCHED_MOST];
	int64_t end = clock_ns() + ns;
	struct timespec until = { end / 1000000000, end % 1000000000 };
	for (int i = 0; i < w->n; i++)
		wait[i] = (struct wait_on){ w->on[i].stores, (uintptr_t)&w->on[i].place->stores,
			WORD_OF_32_BITS | FUTEX_PRIVATE_FLAG, 0 };
	if (syscall(FUTEX_WAITV, wait, w->n, 0, &until, CLOCK_MONOTONIC) >= 0 || errno == EAGAIN)
		return true;
	if (errno == ENOSYS)
		nanosleep(&(struct timespec){ .tv_nsec = SHORT_NS }, NULL);
	return false;
}

void
watch_pause(struct watch *w)
{
	if (w->turns == 0) {
		unsigned yields = YIELDS_OF_ALL / atomic_load(&threads);
		w->yields = yields < YIELDS_LEAST ? YIELDS_LEAST : yields > YIELDS_MOST ? YIELDS_MOST : yields;
	}
	unsigned turns = w->turns++;
	w->woken = false;
	drop_unseen(w);
	if (turns < w->yields)
		sched_yield();
	else if (w->n == 0)
		nanosleep(&(struct timespec){ .tv_nsec = patience(w) }, NULL);
	else
		w->woken = sleep_watching(w, patience(w));
}

void
memory_stored(const void *at, size_t bytes)
{
	uintptr_t first = (uintptr_t)at >> LINE_SHIFT, last = ((uintptr_t)at + bytes - 1) >> LINE_SHIFT;
	for (uintptr_t line = first; line <= last; line++) {
		struct place *place = place_of_line(line);
		/* No mere load, which could come before the store: who begins to watch then would see neither. */
		uint64_t watched = atomic_fetch_add(&place->watched, 0);
		if (WATCHERS(watched) == 0 || (WATCHED_LINE(watched) != 0 && WATCHED_LINE(watched) != line))
			continue;
		atomic_fetch_add(&place->stores, 1);
		syscall(SYS_futex, &place->stores, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
}
