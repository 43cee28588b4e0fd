/* The state of a block, and how its threads wait: what all protocols of kernels share. */
#ifndef BLINK_KERNELS_BLOCK_H
#define BLINK_KERNELS_BLOCK_H

#ifdef KERNEL_TYPE
#include "kernels/element.h"
enum { MOVES = 0, ELEMENT_BYTES = sizeof(element) };
#else
#include "kernels/portable.h"
enum operation { SUM };
enum { MOVES = 1, ELEMENT_BYTES = 16 };
#define combine(op, a, b, words) ((void)(op), (void)(b), (void)(words), a)
#define combine_any combine
#define scale(a, factor) (a)
#define factor_at(scalar) 0
#define divide(a, by) (a)
#endif

/* Blocks that differ in length: only what moves, and is not generated for a schedule. */
#if !defined KERNEL_TYPE && !defined GENERATED
#define TAKES_BLOCKS
#endif

/* Loops over lanes: where their number is known, the compiler sees whether to unroll them. The one over the sources of
 * AT_ONCE vectors it never unrolls: it would take more registers than a block of GPU_THREADS has. */
#ifdef GENERATED
#define LANES
#else
#define LANES NOT_UNROLLED
#endif

enum {
	VECTOR = 16,
	/* Vectors of each operand that a thread has under way. Types whose arithmetic is long are bound by that. */
	AT_ONCE = ELEMENT_BYTES == 1 ? 2 : 4,
	SUMMANDS = 2,			/* sources whose vectors are under way at once, as far as registers go */
	SOURCES_AT_ONCE = 4,		/* packets */
	/* Of a flag, before `stop` is looked at. A pause of a twin may be a sleep of 10 ms. */
	POLLS = ON_GPU ? 1 << 10 : 1 << 5,
	LOOKS = 4,			/* at a flag, before others of the list */
	ROUNDS = ON_GPU ? 64 : 1,	/* of the list without effect, before `stop` is: it is in memory of the host */
	N_SETTERS = ON_GPU ? GPU_SETTERS : 1,	/* threads */
	SHARE_ROUNDS = 4,		/* of an access of each thread */
	HELD = ON_GPU ? 256 : 8,	/* lanes of a block whose addresses it keeps; twins have more */
	WORKERS = 1, SETTERS = 2,	/* barriers */
	END = 1 << 30,
	NS_LONG = 1000000
};

/* A strip of a task, or the block's share of the own block. Sizes in bytes. */
struct strip {
	const char *own;		/* NULL: none */
	char *output;			/* NULL: none */
	int64_t bytes, chunk_bytes;
	int32_t from, to;		/* lanes of the program */
	int32_t n_from, n_to;
	int32_t number;			/* which strip of the segment */
	int32_t publishes;
	int32_t chunk, n_chunks;	/* done or at work, and in all */
	uint32_t done;			/* by the workers; of these, */
	uint32_t set, next;		/* those whose flags are set, and those whose flags are being set */
	uint32_t missed;		/* the last round of the list in which a lane was not there */
	bool scales, divides;
	uint8_t shape;			/* of the task; 0: any */
	int32_t held;			/* its first lane in block.held; -1: they are not there */
	int32_t empty, empty_end;	/* empty strips of its segment: it leaves word that nobody reads them */
#ifdef TAKES_BLOCKS
	int32_t task;
	int64_t count;			/* elements of its block, where blocks differ; -1: not known yet */
#endif
};

/* A lane of a strip, as the call needs it. */
struct lane {
	uint64_t *ready, *done;
	char *data;			/* its ring, or packets */
	int32_t peer;
};

/* Shared by the threads of a block. */
struct block {
#if !ON_GPU
	struct answers answers;
#endif
	struct gpu_call call;
	uint64_t number;		/* of the call */
	uint32_t stopped;		/* a kernel before */
	uint32_t n_pending[GPU_LISTS];
	int32_t n_tasks, n_strips;	/* of tasks; and with the share of the own block */
	struct strip strip[GPU_TASKS_OF_BLOCK + 1];
	char *place[GPU_LANES];		/* of each lane of the strip at work: its slot, or its packets */
	struct lane held[HELD];		/* of the first strips: to acquire a flag, GPUs forget what else they loaded */
	uint32_t told;			/* by the workers: how often a chunk was done, and the end */
	bool sets;			/* flags of some strip are being set; else there are no more */
};

/* A thread's own. */
struct waiting {
	uint64_t since;			/* ns; 0: not */
	bool said;			/* in status->awaits */
};

FN int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The last threads of a block set the flags of long messages, while the others go on with the next chunk (flags.h). */
FN unsigned
workers(void)
{
	return all_threads() > N_SETTERS ? all_threads() - N_SETTERS : all_threads();
}

/* Of all threads, from the last one on: for what goes on beside the work of the first ones. */
FN unsigned
this_thread_from_last(void)
{
	return all_threads() - 1 - this_thread();
}

/* ---- waits ---- */

FN bool
poll_flag(const uint64_t *at, uint64_t value, int polls)
{
	NOT_UNROLLED
	for (int i = 0; i < polls; i++) {
		if (load_flag(at) >= value)
			return true;
		pause_thread();
	}
	return false;
}

/* Of several flags, by who pauses when it has looked at all of them. */
FN bool
look_at_flag(const uint64_t *at, uint64_t value)
{
	NOT_UNROLLED
	for (int i = 0; i < LOOKS; i++)
		if (load_flag(at) >= value)
			return true;
	return false;
}

/* A round of waiting is over, without effect. Every ms it is said again, since others say that they wait no more. */
FN void
still_waits(struct gpu_status *status, struct waiting *w, int32_t peer)
{
	uint64_t now = time_now();
	if (w->since == 0) {
		w->since = now;
	} else if (now - w->since > NS_LONG) {
		store4_fresh(&status->awaits, (uint32_t)peer);
		w->since = now;
		w->said = true;
	}
}

FN void
waits_no_more(struct gpu_status *status, struct waiting *w)
{
	if (w->said)
		store4_fresh(&status->awaits, (uint32_t)-1);
	w->since = 0;
	w->said = false;
}

/* For all threads of the block, after rounds without effect; or for its workers. */
FN bool
all_stop(struct gpu_status *status)
{
	return barrier_any(this_thread() == 0 && load4_fresh(&status->stop) != 0);
}

FN bool
workers_stop(struct gpu_status *status)
{
	return barrier_any_of(WORKERS, workers(), this_thread() == 0 && load4_fresh(&status->stop) != 0);
}

FN void
peer_differs(struct gpu_status *status, int32_t peer)
{
	store4_fresh(&status->differs, (uint32_t)peer + 1);
	fence();
	store4_fresh(&status->stop, 1);
}

/* Is there a reader of a call that has this list who is late? Asked by the first `threads`; a barrier comes after. */
FN bool
list_is_late(struct block *b, unsigned list, unsigned threads, struct waiting *w)
{
	const struct gpu_state *state = b->call.state;
	unsigned n = b->n_pending[list];
	bool late = false;
	for (unsigned i = this_thread(); i < n && !late; i += threads) {
		const struct gpu_pending *p = &state->pending[list][i];
		uint64_t value = load8(&p->value), done = load8(&p->done);
		if (value != 0 && !poll_flag((const uint64_t *)done, value, POLLS)) {
			still_waits(b->call.status, w, (int32_t)load4(&p->peer));
			late = true;
		}
	}
	if (!late) {
		waits_no_more(b->call.status, w);
		if (this_thread() < n)
			acquired();
	}
	return late;
}

FN bool
wait_for_list(struct block *b, unsigned list, struct waiting *w)
{
	while (barrier_any(list_is_late(b, list, all_threads(), w)))
		if (all_stop(b->call.status))
			return false;
	return true;
}

/* Of the call before the last: when its readers are done, nothing of its half is needed any more. */
FN unsigned
list_of_half(const struct block *b)
{
	return (unsigned)((b->number + 1) % GPU_LISTS);
}

/* The host sees that the call goes on. */
FN void
say_progress(struct gpu_status *status, uint64_t *last)
{
	uint64_t now = this_thread() == 0 ? time_now() : 0;
	if (now > *last + NS_LONG) {
		store8_fresh(&status->progress, now);
		*last = now;
	}
}

#endif
