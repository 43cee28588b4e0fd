/* Between the files that execute work: pool.c, stream.c, event.c, transfer.c, graph.c, kernel.c, twin.c.
 *
 * All that calls change - handles, queues of streams, captures, graphs - is under one lock, held for short: nothing
 * waits with it. Work is executed without it. Who waits for work waits for a moment: a point in the order of work. */
#ifndef VIRTUAL_GPU_STREAMS_H
#define VIRTUAL_GPU_STREAMS_H

#include "more.h"
#include "virtual_gpu.h"

#include <stdatomic.h>

enum {
	CUDA_ERROR_ILLEGAL_STATE = 401,
	MOMENT_PENDING = 0, MOMENT_AWAITED, MOMENT_REACHED
};

/* ---- pool.c ---- */

void state_lock(void);
CUresult state_unlock(CUresult r);		/* returns r */

/* Memory; the program ends where there is none. */
void *new_bytes(size_t bytes);			/* zeroed */
void *grown(void *p, size_t bytes);

int64_t clock_ns(void);

/* Call run(arg) in a thread that does nothing else meanwhile. */
void pool_start(void (*run)(void *arg), void *arg);

/* In turn number `turns` of a loop that waits: yields, later sleeps. */
void back_off(unsigned turns);

struct moment {
	_Atomic int holders;
	_Atomic uint32_t state;
	int64_t ns;			/* when it was reached */
};

struct moment *moment_new(void);
struct moment *moment_hold(struct moment *m);	/* NULL stays NULL */
void moment_drop(struct moment *m);
void moment_reach(struct moment *m);
bool moment_reached(const struct moment *m);	/* of NULL, too */
void moment_wait(struct moment *m, const _Atomic bool *gone);	/* or until *gone, where that is not NULL */

/* A handle is a number that is never used again. */
enum kind { STREAM = 1, EVENT, MODULE, FUNCTION, GRAPH, EXEC, POOL };

void *handle_new(enum kind kind, void *object);
void *handle_find(enum kind kind, const void *handle);	/* NULL: there is none */
void handle_end(const void *handle);
void handle_each(enum kind kind, void (*see)(void *object, void *arg), void *arg);

/* ---- stream.c ---- */

/* Work in the order of a stream, executed by its thread or, in a capture, whenever the graph is launched. `operation`
 * is copied with `bytes`. Blocking waits belong into `ready`: it is asked until it says so (NULL: at once). */
struct operation {
	void (*run)(struct operation *self, struct context *c);
	bool (*ready)(const struct operation *self);
	void (*drop)(struct operation *self);	/* frees what it owns; NULL: nothing */
	size_t bytes;				/* of the struct that begins with this one */
};

/* Numbers of nodes. */
struct set {
	int *node;
	int n;
};

struct item {
	struct item *next;
	struct moment *begun, *done;
	struct moment **after;
	int n_after;
	struct operation *operation;	/* NULL: of order alone */
};

struct stream {
	void *handle;
	struct context *c;
	struct stream *next;		/* of all */
	bool legacy;			/* the default stream of its context */
	bool blocking;			/* in order with the legacy stream */
	int connection;			/* of its device; -1: none */
	pthread_t thread;		/* whose default stream it is */
	bool of_thread;
	bool destroyed, running;
	_Atomic bool gone;		/* its context is */
	struct item *head, **tail;
	struct moment *last;		/* of the newest item; NULL: there was none */
	struct capture *capture;
	struct set before;		/* in a capture: what its next node waits for */
};

extern struct stream *all_streams;

/* The stream of a handle, under the lock. current: for the default streams. Fails: INVALID_HANDLE, the error of its
 * context, or IMPLICIT. */
CUresult stream_find(CUstream handle, struct context *current, struct stream **out);

/* Work for a stream that captures, or not; under the lock. */
CUresult stream_put(struct stream *s, const struct operation *operation);

/* An item of a stream that does not capture, behind `after` too (NULL ones do not count). Returns its moment, which the
 * stream holds. */
struct moment *stream_queue(struct stream *s, const struct operation *operation, struct moment *const *after, int n);

/* In each context of `devices` (a bit each), its work is done when `m` is. */
void stream_mark(unsigned devices, struct moment *m);

/* What the calling thread executes. */
struct work {
	struct context *c;
	const _Atomic bool *gone;
	bool host_function;
};
extern _Thread_local struct work work_now;

/* Execute: late by a random time, and when it is ready; then `begun` is reached, unless it is NULL. Nothing, where the
 * context has failed or *gone. */
void operation_run(struct operation *operation, struct context *c, const _Atomic bool *gone, struct moment *begun);
bool work_lost(const struct context *c, const _Atomic bool *gone);
struct operation *operation_copy(const struct operation *operation);
void operation_free(struct operation *operation);

/* ---- event.c ---- */

void events_forget(struct context *c);

/* ---- graph.c ---- */

/* A call that uses the legacy stream, where a blocking stream of its context captures: IMPLICIT. */
CUresult capture_forbids_legacy(struct context *c);

/* A call that waits for this stream, or asks for its state: UNSUPPORTED where it captures. */
CUresult capture_forbids_wait(struct stream *s);

CUresult capture_add(struct stream *s, const struct operation *operation);

/* An event of a stream: what it holds of a capture, and what a stream that waits for it takes of that. */
struct captured {
	struct capture *capture;
	struct set before;
};
CUresult capture_record(struct stream *s, struct captured *out);
CUresult capture_wait(struct stream *s, const struct captured *event);
void captured_drop(struct captured *event);
void capture_invalidate(struct capture *capture);
void graphs_forget(struct context *c);

/* ---- waiting.c ---- */

/* Bytes were stored that a thread of a block may wait for: where they are, not by what pointer. */
void memory_stored(const void *at, size_t bytes);

/* ---- kernel.c ---- */

void modules_forget(struct context *c);

#endif
