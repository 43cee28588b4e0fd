/* The host body of blink_device.h: ranks are regions of memory of this process, and streams are queues that a few
 * threads serve.
 *
 * A thread takes a stream, executes one copy or reduction, and takes the next stream. A stream whose next entry waits
 * for an event is parked at that event without blocking a thread, so that hundreds of streams run on two CPUs. An event
 * counts the chunks for which it was recorded. The thread of the caller executes entries, too, when queues are long and
 * at the end.
 *
 * One lock protects everything but the copies and reductions themselves. The caller takes it once for many entries: it
 * collects them, and puts them into their queues together. A thread that has nothing to do is woken only where nobody
 * else has been for the same stream. */
#ifndef BLINK_HOST_H
#define BLINK_HOST_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#define BLINK_BACKEND "host"

enum { BLINK_PAGE = 4096, BLINK_THREADS_MAX = 256, BLINK_WORKER_STACK = 256 << 10 };

/* Entries in all queues: past the first number the caller works until the second is reached. */
enum { BLINK_QUEUE_MANY = 1 << 15, BLINK_QUEUE_FEW = 1 << 14 };

/* Entries that the caller collects. */
enum { BLINK_COLLECTED = 64 };

enum blink_entry_kind { BLINK_COPY, BLINK_REDUCE, BLINK_AVERAGE, BLINK_WAIT, BLINK_RECORD };

struct blink_entry {
	enum blink_entry_kind kind;
	int event;			/* wait, record: for this chunk */
	int64_t chunk;
	char *to;
	const char *from, *with;
	size_t n;			/* copy: bytes; reduce, average: elements */
};

struct blink_collected {
	int stream;
	struct blink_entry entry;
};

struct blink_queue {
	struct blink_entry *entry;	/* a ring: `n` entries from `head`; `room` is a power of two */
	size_t head, n, room;
	int next;			/* the next stream in the same list, or -1 */
	bool idle;			/* empty, and no thread has it */
};

struct blink_backend {
	const struct blink_program *program;
	int n_collected;		/* of the caller alone, without the lock */
	struct blink_collected collected[BLINK_COLLECTED];
	pthread_mutex_t lock;
	pthread_cond_t ready, changed;	/* workers wait for a stream; the caller for that, too, and for the end */
	bool made_lock, made_ready, made_changed;
	bool caller_waits;
	int n_waiting, n_woken;		/* workers that wait; of these, how many were told */
	struct blink_queue *queue;	/* of each stream */
	int ready_first, ready_last;	/* streams that can continue */
	int64_t *recorded;		/* of each event: chunks */
	int *parked;			/* of each event: the first stream that waits for it, or -1 */
	size_t n_entries;		/* in all queues */
	int n_busy;			/* threads that have a stream */
	bool quit;
	pid_t owner;			/* a forked child has neither the threads nor a lock that it could take */
	struct blink_error err;		/* of this call; after one, entries are dropped instead of executed */
	int type, op;			/* of this call */
	int n_threads;
	pthread_t *thread;
};

/* ---- Reductions ---- */

/* A file that defines this has functions of its own with the same results. */
#ifndef BLINK_OWN_REDUCTIONS

/* Vector instructions, with -O2, too. The result lies where one of the operands does, or apart from both: no element
 * depends on another. */
#if defined(__GNUC__) && !defined(__clang__)
#define BLINK_VECTOR __attribute__((optimize("O3")))
#define BLINK_APART _Pragma("GCC ivdep")
#else
#define BLINK_VECTOR
#define BLINK_APART
#endif
#define BLINK_LOOP BLINK_APART for (size_t i = 0; i < n; i++)
#define BLINK_LOOPS(code, name, T, U, kind, read, write, with)                 \
	BLINK_FN BLINK_VECTOR void                                             \
	blink_combine_##name(int op, void *to, const void *from, const void *other, size_t n) \
	{                                                                      \
		T *z = (T *)to;                                                \
		const T *a = (const T *)from, *b = (const T *)other;           \
		if (op == blinkSum) {                                          \
			BLINK_LOOP                                             \
				z[i] = BLINK_SUM(T, U, kind, read, write, a[i], b[i]); \
		} else if (op == blinkProd) {                                  \
			BLINK_LOOP                                             \
				z[i] = BLINK_PROD(T, U, kind, read, write, a[i], b[i]); \
		} else if (op == blinkMax) {                                   \
			BLINK_LOOP                                             \
				z[i] = BLINK_MAX(T, U, kind, read, write, a[i], b[i]); \
		} else {                                                       \
			BLINK_LOOP                                             \
				z[i] = BLINK_MIN(T, U, kind, read, write, a[i], b[i]); \
		}                                                              \
	}                                                                      \
	BLINK_FN BLINK_VECTOR void                                             \
	blink_average_##name(int n_ranks, void *to, const void *from, size_t n) \
	{                                                                      \
		T *z = (T *)to;                                                \
		const T *a = (const T *)from;                                  \
		BLINK_LOOP                                                     \
			z[i] = BLINK_AVERAGE_##kind(T, U, read, write, a[i], n_ranks); \
	}
BLINK_TYPE_LIST(BLINK_LOOPS, 0)
#undef BLINK_LOOPS
#undef BLINK_LOOP

/* to = from op other, n elements. */
BLINK_FN void
blink_combine(int type, int op, void *to, const void *from, const void *other, size_t n)
{
	switch (type) {
#define BLINK_CASE(code, name, T, U, kind, read, write, with)                  \
	case code:                                                             \
		blink_combine_##name(op, to, from, other, n);                  \
		break;
		BLINK_TYPE_LIST(BLINK_CASE, 0)
#undef BLINK_CASE
	}
}

BLINK_FN void
blink_average(int type, int n_ranks, void *to, const void *from, size_t n)
{
	switch (type) {
#define BLINK_CASE(code, name, T, U, kind, read, write, with)                  \
	case code:                                                             \
		blink_average_##name(n_ranks, to, from, n);                    \
		break;
		BLINK_TYPE_LIST(BLINK_CASE, 0)
#undef BLINK_CASE
	}
}
#endif

/* ---- Streams; the lock is held ---- */

BLINK_FN void
blink_make_ready(struct blink_backend *b, int stream)
{
	b->queue[stream].next = -1;
	if (b->ready_first < 0)
		b->ready_first = stream;
	else
		b->queue[b->ready_last].next = stream;
	b->ready_last = stream;
}

/* Whom to tell that streams are ready, if some are that this thread does not take at once: one thread, which does the
 * same before it begins. NULL: nobody waits. The lock need not be held to tell it. */
BLINK_FN pthread_cond_t *
blink_waiting(struct blink_backend *b)
{
	if (b->ready_first < 0)
		return NULL;
	if (b->caller_waits) {
		b->caller_waits = false;
		return &b->changed;
	}
	if (b->n_woken == b->n_waiting)
		return NULL;
	b->n_woken++;
	return &b->ready;
}

BLINK_FN void
blink_wake(pthread_cond_t *waiting)
{
	if (waiting)
		pthread_cond_signal(waiting);
}

/* Execute what the first ready stream has, up to and with one copy or reduction. */
BLINK_FN void
blink_take_turn(struct blink_backend *b)
{
	int stream = b->ready_first;
	struct blink_queue *q = &b->queue[stream];
	bool moved = false, parked = false;
	b->ready_first = q->next;
	b->n_busy++;
	while (q->n > 0 && !parked) {
		struct blink_entry e = q->entry[q->head];
		bool moves = e.kind == BLINK_COPY || e.kind == BLINK_REDUCE || e.kind == BLINK_AVERAGE;
		if (moves && moved)
			break;
		if (moves && b->err.code == blinkSuccess) {
			pthread_cond_t *waiting = blink_waiting(b);
			pthread_mutex_unlock(&b->lock);
			blink_wake(waiting);
			if (e.kind == BLINK_COPY)
				memcpy(e.to, e.from, e.n);
			else if (e.kind == BLINK_REDUCE)
				blink_combine(b->type, b->op, e.to, e.from, e.with, e.n);
			else
				blink_average(b->type, b->program->n_ranks, e.to, e.from, e.n);
			pthread_mutex_lock(&b->lock);
			moved = true;
		} else if (e.kind == BLINK_WAIT && b->err.code == blinkSuccess && b->recorded[e.event] <= e.chunk) {
			q->next = b->parked[e.event];
			b->parked[e.event] = stream;
			parked = true;
			continue;
		} else if (e.kind == BLINK_RECORD) {
			b->recorded[e.event] = e.chunk + 1;
			/* Each stream checks again whether its event has been recorded. */
			int first = b->parked[e.event];
			b->parked[e.event] = -1;
			while (first >= 0) {
				int after = b->queue[first].next;
				blink_make_ready(b, first);
				first = after;
			}
		}
		q->head = (q->head + 1) & (q->room - 1);
		q->n--;
		b->n_entries--;
	}
	b->n_busy--;
	q->idle = q->n == 0;
	if (!q->idle && !parked)
		blink_make_ready(b, stream);
	if (b->caller_waits && (b->n_entries == 0 || (b->n_busy == 0 && b->ready_first < 0))) {
		b->caller_waits = false;
		pthread_cond_signal(&b->changed);
	}
}

/* Work until at most `few` entries are left. Every entry waits only for earlier ones, so as long as any is left some
 * stream is busy or ready. In a program where that does not hold, drop all entries rather than wait for ever. */
BLINK_FN void
blink_work(struct blink_backend *b, size_t few)
{
	while (b->n_entries > few) {
		if (b->ready_first >= 0) {
			blink_take_turn(b);
		} else if (b->n_busy > 0) {
			b->caller_waits = true;
			pthread_cond_wait(&b->changed, &b->lock);
			b->caller_waits = false;
		} else {
			blink_fail(&b->err, blinkInternalError, "%zu entries of the queues wait for each other",
			    b->n_entries);
			for (int e = 0; e < b->program->n_events; e++) {
				for (int s = b->parked[e], after; s >= 0; s = after) {
					after = b->queue[s].next;
					blink_make_ready(b, s);
				}
				b->parked[e] = -1;
			}
		}
	}
	blink_wake(blink_waiting(b));
}

BLINK_FN void *
blink_worker(void *backend)
{
	struct blink_backend *b = (struct blink_backend *)backend;
	pthread_mutex_lock(&b->lock);
	while (!b->quit) {
		if (b->ready_first >= 0) {
			blink_take_turn(b);
			continue;
		}
		b->n_waiting++;
		pthread_cond_wait(&b->ready, &b->lock);
		b->n_waiting--;
		b->n_woken -= b->n_woken > 0;
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* If there is no memory for an entry, the call fails, and the rest of the queue is dropped. */
BLINK_FN void
blink_append(struct blink_backend *b, int stream, struct blink_entry entry)
{
	struct blink_queue *q = &b->queue[stream];
	if (q->n == q->room && b->err.code == blinkSuccess) {
		size_t room = q->room ? 2 * q->room : 8;
		struct blink_entry *grown = (struct blink_entry *)blink_array(room, sizeof *grown);
		if (grown) {
			for (size_t i = 0; i < q->n; i++)
				grown[i] = q->entry[(q->head + i) & (q->room - 1)];
			/* In this order: a child forked meanwhile closes the device, too. */
			struct blink_entry *old = q->entry;
			q->entry = grown;
			q->head = 0;
			q->room = room;
			free(old);
		} else {
			blink_fail_memory(&b->err);
		}
	}
	if (b->err.code == blinkSuccess) {
		q->entry[(q->head + q->n++) & (q->room - 1)] = entry;
		b->n_entries++;
		if (q->idle) {
			q->idle = false;
			blink_make_ready(b, stream);
		}
		if (b->n_entries > BLINK_QUEUE_MANY)
			blink_work(b, BLINK_QUEUE_FEW);
	}
}

/* What was collected goes into its queues; the lock is held. */
BLINK_FN void
blink_append_collected(struct blink_backend *b)
{
	for (int i = 0; i < b->n_collected; i++)
		blink_append(b, b->collected[i].stream, b->collected[i].entry);
	b->n_collected = 0;
}

BLINK_FN void
blink_enqueue(struct blink_backend *b, int stream, struct blink_entry entry)
{
	struct blink_collected *c = &b->collected[b->n_collected++];
	c->stream = stream;
	c->entry = entry;
	if (b->n_collected < BLINK_COLLECTED)
		return;
	pthread_mutex_lock(&b->lock);
	blink_append_collected(b);
	pthread_cond_t *waiting = blink_waiting(b);
	pthread_mutex_unlock(&b->lock);
	blink_wake(waiting);
}

BLINK_FN void
blink_backend_copy(struct blink_backend *b, int stream, int to_rank, char *to, int from_rank, const char *from,
    size_t bytes)
{
	struct blink_entry entry = { BLINK_COPY, 0, 0, to, from, NULL, bytes };
	(void)to_rank;
	(void)from_rank;
	blink_enqueue(b, stream, entry);
}

BLINK_FN void
blink_backend_reduce(struct blink_backend *b, int stream, char *to, const char *from, const char *with, size_t n)
{
	struct blink_entry entry = { BLINK_REDUCE, 0, 0, to, from, with, n };
	blink_enqueue(b, stream, entry);
}

BLINK_FN void
blink_backend_average(struct blink_backend *b, int stream, char *to, const char *from, size_t n)
{
	struct blink_entry entry = { BLINK_AVERAGE, 0, 0, to, from, NULL, n };
	blink_enqueue(b, stream, entry);
}

BLINK_FN void
blink_backend_wait(struct blink_backend *b, int stream, int event, int64_t chunk)
{
	struct blink_entry entry = { BLINK_WAIT, event, chunk, NULL, NULL, NULL, 0 };
	blink_enqueue(b, stream, entry);
}

BLINK_FN void
blink_backend_record(struct blink_backend *b, int stream, int event, int64_t chunk)
{
	struct blink_entry entry = { BLINK_RECORD, event, chunk, NULL, NULL, NULL, 0 };
	blink_enqueue(b, stream, entry);
}

BLINK_FN int
blink_backend_begin(struct blink_backend *b, int type, int op, struct blink_error *err)
{
	pthread_mutex_lock(&b->lock);
	b->type = type;
	b->op = op;
	b->err.code = blinkSuccess;
	for (int e = 0; e < b->program->n_events; e++)
		b->recorded[e] = 0;
	pthread_mutex_unlock(&b->lock);
	return err->code;
}

BLINK_FN int
blink_backend_finish(struct blink_backend *b, struct blink_error *err)
{
	pthread_mutex_lock(&b->lock);
	blink_append_collected(b);
	blink_work(b, 0);
	if (b->err.code != blinkSuccess)
		blink_fail(err, b->err.code, "%s", b->err.text);
	pthread_mutex_unlock(&b->lock);
	return err->code;
}

/* ---- Memory ---- */

BLINK_FN int
blink_backend_alloc(struct blink_backend *b, int rank, size_t bytes, void **memory, struct blink_error *err)
{
	void *p = NULL;
	(void)b;
	(void)rank;
	if (bytes > SIZE_MAX / 2 || posix_memalign(&p, BLINK_PAGE, bytes ? bytes : 1) != 0)
		return blink_fail(err, blinkOutOfMemory, "rank %d: no memory for %zu bytes", rank, bytes);
	*memory = p;
	return blinkSuccess;
}

BLINK_FN int
blink_backend_free(struct blink_backend *b, int rank, void *memory, struct blink_error *err)
{
	(void)b;
	(void)rank;
	free(memory);
	return err->code;
}

BLINK_FN int
blink_backend_transfer(struct blink_backend *b, int rank, void *to, const void *from, size_t bytes,
    struct blink_error *err)
{
	(void)b;
	(void)rank;
	if (bytes)
		memcpy(to, from, bytes);
	return err->code;
}

/* ---- Threads ---- */

BLINK_FN void
blink_backend_close(struct blink_backend *b)
{
	bool forked = b->owner != getpid();
	if (b->made_changed && !forked) {
		pthread_mutex_lock(&b->lock);
		b->quit = true;
		pthread_cond_broadcast(&b->ready);
		pthread_mutex_unlock(&b->lock);
		for (int i = 0; i < b->n_threads; i++)
			pthread_join(b->thread[i], NULL);
		pthread_cond_destroy(&b->changed);
	}
	if (b->made_ready && !forked)
		pthread_cond_destroy(&b->ready);
	if (b->made_lock && !forked)
		pthread_mutex_destroy(&b->lock);
	if (b->queue)
		for (int s = 0; s < b->program->n_streams + b->program->n_ranks; s++)
			free(b->queue[s].entry);
	free(b->queue);
	free(b->recorded);
	free(b->parked);
	free(b->thread);
}

/* A worker has a stack of its own size, whatever the limit of the process: a fraction of it is used. A program whose
 * thread-local data do not fit into it gets the default. */
BLINK_FN int
blink_start_thread(struct blink_backend *b, pthread_t *thread)
{
	pthread_attr_t small;
	int failed = pthread_attr_init(&small);
	if (failed)
		return failed;
	failed = pthread_attr_setstacksize(&small, BLINK_WORKER_STACK);
	if (!failed)
		failed = pthread_create(thread, &small, blink_worker, b);
	pthread_attr_destroy(&small);
	return failed == EINVAL ? pthread_create(thread, NULL, blink_worker, b) : failed;
}

/* The caller of blink_run is a thread, too. Workers block signals, which are for the calling program. */
BLINK_FN void
blink_start_threads(struct blink_backend *b, int n, struct blink_error *err)
{
	sigset_t all, before;
	int failed = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (b->n_threads < n && !failed) {
		failed = blink_start_thread(b, &b->thread[b->n_threads]);
		b->n_threads += !failed;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		blink_fail(err, blinkSystemError, "thread %d of %d: %s", b->n_threads + 2, n + 1, strerror(failed));
}

BLINK_FN int
blink_backend_open(struct blink_backend *b, const struct blink_program *program, int threads, struct blink_error *err)
{
	int n_streams = program->n_streams + program->n_ranks;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (threads == 0)
		threads = cpus < 1 ? 1 : cpus > BLINK_THREADS_MAX ? BLINK_THREADS_MAX : (int)cpus;
	if (threads > n_streams)
		threads = n_streams;
	b->program = program;
	b->owner = getpid();
	b->ready_first = b->ready_last = -1;
	b->queue = (struct blink_queue *)blink_array((size_t)n_streams, sizeof *b->queue);
	b->recorded = (int64_t *)blink_array((size_t)program->n_events, sizeof *b->recorded);
	b->parked = (int *)blink_array((size_t)program->n_events, sizeof *b->parked);
	b->thread = (pthread_t *)blink_array((size_t)threads, sizeof *b->thread);
	if (!b->queue || !b->recorded || !b->parked || !b->thread)
		return blink_fail_memory(err);
	for (int s = 0; s < n_streams; s++)
		b->queue[s].idle = true;
	for (int e = 0; e < program->n_events; e++)
		b->parked[e] = -1;
	b->made_lock = pthread_mutex_init(&b->lock, NULL) == 0;
	b->made_ready = b->made_lock && pthread_cond_init(&b->ready, NULL) == 0;
	b->made_changed = b->made_ready && pthread_cond_init(&b->changed, NULL) == 0;
	if (!b->made_changed)
		return blink_fail(err, blinkSystemError, "a lock could not be made");
	blink_start_threads(b, threads - 1, err);
	return err->code;
}

#endif
