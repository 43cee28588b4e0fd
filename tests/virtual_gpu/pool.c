/* Threads, the lock, moments and handles. Threads are taken from a pool, since a kernel has hundreds, and to start one
 * takes longer than to wake one. */
#include "streams.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 1 << 20, YIELDS = 50, SLEEP_LEAST_US = 20, SLEEP_MOST_US = 200 };

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;

void
state_lock(void)
{
	pthread_mutex_lock(&state);
}

CUresult
state_unlock(CUresult r)
{
	pthread_mutex_unlock(&state);
	return r;
}

void *
new_bytes(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);
	if (!p)
		abort();
	return p;
}

void *
grown(void *p, size_t bytes)
{
	p = realloc(p, bytes ? bytes : 1);
	if (!p)
		abort();
	return p;
}

int64_t
clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Sleep while *word is `value`; ns < 0: without an end. May return for nothing. */
static void
futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns < 0 ? NULL : &t, NULL, 0);
}

static void
futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- threads ---- */

struct worker {
	struct worker *next;
	void (*run)(void *);
	void *arg;
	_Atomic uint32_t awake;
};

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *idle;

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	for (;;) {
		w->run(w->arg);
		atomic_store(&w->awake, 0);
		pthread_mutex_lock(&idle_lock);
		w->next = idle;
		idle = w;
		pthread_mutex_unlock(&idle_lock);
		while (!atomic_load(&w->awake))
			futex_wait(&w->awake, 0, -1);
	}
	return NULL;
}

static void
worker_new(struct worker *w)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK);
	while (pthread_create(&thread, &attributes, worker_main, w) != 0)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	pthread_attr_destroy(&attributes);
}

void
pool_start(void (*run)(void *arg), void *arg)
{
	pthread_mutex_lock(&idle_lock);
	struct worker *w = idle;
	if (w)
		idle = w->next;
	pthread_mutex_unlock(&idle_lock);
	bool started = w;
	if (!w)
		w = new_bytes(sizeof *w);
	w->run = run;
	w->arg = arg;
	if (!started)
		return worker_new(w);
	atomic_store(&w->awake, 1);
	futex_wake(&w->awake);
}

void
back_off(unsigned turns)
{
	if (turns < YIELDS) {
		sched_yield();
		return;
	}
	unsigned us = SLEEP_LEAST_US + (turns - YIELDS);
	nanosleep(&(struct timespec){ .tv_nsec = 1000L * (us < SLEEP_MOST_US ? us : SLEEP_MOST_US) }, NULL);
}

/* ---- moments ---- */

struct moment *
moment_new(void)
{
	struct moment *m = new_bytes(sizeof *m);
	atomic_init(&m->holders, 1);
	return m;
}

struct moment *
moment_hold(struct moment *m)
{
	if (m)
		atomic_fetch_add(&m->holders, 1);
	return m;
}

void
moment_drop(struct moment *m)
{
	if (m && atomic_fetch_sub(&m->holders, 1) == 1)
		free(m);
}

void
moment_reach(struct moment *m)
{
	m->ns = clock_ns();
	if (atomic_exchange(&m->state, MOMENT_REACHED) == MOMENT_AWAITED)
		futex_wake(&m->state);
}

bool
moment_reached(const struct moment *m)
{
	return !m || atomic_load(&m->state) == MOMENT_REACHED;
}

void
moment_wait(struct moment *m, const _Atomic bool *gone)
{
	if (!m)
		return;
	uint32_t now = MOMENT_PENDING;
	atomic_compare_exchange_strong(&m->state, &now, MOMENT_AWAITED);
	while (!moment_reached(m) && !(gone && atomic_load(gone)))
		futex_wait(&m->state, MOMENT_AWAITED, 20000000);
}

/* ---- handles ---- */

/* None is one of the default streams, nor an address that anyone has; all are aligned as addresses are, which programs
 * rely on: PyTorch keeps notes of its own in the low bits. */
enum { HANDLE_SHIFT = 12, KIND_SHIFT = 4 };

static struct {
	struct { enum kind kind; void *object; } *slot;
	size_t n, room;
} handles;

void *
handle_new(enum kind kind, void *object)
{
	if (handles.n == handles.room) {
		handles.room = handles.room * 2 + 64;
		handles.slot = grown(handles.slot, handles.room * sizeof *handles.slot);
	}
	handles.slot[handles.n].kind = kind;
	handles.slot[handles.n].object = object;
	return (void *)(uintptr_t)(++handles.n << HANDLE_SHIFT | (unsigned)kind << KIND_SHIFT);
}

void *
handle_find(enum kind kind, const void *handle)
{
	uintptr_t number = (uintptr_t)handle;
	size_t i = (number >> HANDLE_SHIFT) - 1;
	if ((number & ((1 << HANDLE_SHIFT) - 1)) != (unsigned)kind << KIND_SHIFT || i >= handles.n)
		return NULL;
	return handles.slot[i].object;
}

void
handle_end(const void *handle)
{
	handles.slot[((uintptr_t)handle >> HANDLE_SHIFT) - 1].object = NULL;
}

void
handle_each(enum kind kind, void (*see)(void *object, void *arg), void *arg)
{
	for (size_t i = 0; i < handles.n; i++)
		if (handles.slot[i].object && handles.slot[i].kind == kind)
			see(handles.slot[i].object, arg);
}
