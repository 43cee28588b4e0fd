/* Sleep until a flag changes, and wake who sleeps: one system call where somebody does, none else. */
#ifndef BLINK_BELL_H
#define BLINK_BELL_H

#include "engine/region.h"
#include "support/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BELL_AWAKE = 0, BELL_ANY = 1, BELL_FLAG = 2 };

/* A store before it is seen before a load after it is made: of a flag and a bell, in either order. ThreadSanitizer does
 * not model fences, and gcc warns of that; it sees the atomics, which is what it needs here. */
static inline void
full_fence(void)
{
#if defined __SANITIZE_THREAD__ && !defined __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
	atomic_thread_fence(memory_order_seq_cst);
#if defined __SANITIZE_THREAD__ && !defined __clang__
#pragma GCC diagnostic pop
#endif
}

static inline bool
bell_is_awake(struct bell *bell)
{
	return atomic_load_explicit(&bell->state, memory_order_relaxed) == BELL_AWAKE;
}

/* The flags are in shared memory or in this process; the bell always knows by which number its owner calls them. */
static inline void
bell_ring(struct bell *bell, uint32_t flag)
{
	full_fence();
	uint32_t state = atomic_load_explicit(&bell->state, memory_order_relaxed);
	if (state != BELL_AWAKE && (state == BELL_ANY || state == BELL_FLAG + flag || flag == UINT32_MAX)
	    && atomic_exchange(&bell->state, BELL_AWAKE) != BELL_AWAKE)
		syscall(SYS_futex, &bell->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* For what is no flag: a failure. */
static inline void
bell_ring_always(struct bell *bell)
{
	bell_ring(bell, UINT32_MAX);
}

/* Announce the sleep; the caller looks at its flags once more, and sleeps or calls bell_wake_up. */
static inline void
bell_lie_down(struct bell *bell, uint32_t state)
{
	atomic_store_explicit(&bell->state, state, memory_order_relaxed);
	full_fence();
}

static inline void
bell_wake_up(struct bell *bell)
{
	atomic_store_explicit(&bell->state, BELL_AWAKE, memory_order_relaxed);
}

/* At most `ns`. */
static inline void
bell_sleep(struct bell *bell, uint32_t state, int64_t ns)
{
	struct timespec most = { ns / 1000000000, ns % 1000000000 };
	syscall(SYS_futex, &bell->state, FUTEX_WAIT, state, &most, NULL, 0);
	bell_wake_up(bell);
}

#endif
