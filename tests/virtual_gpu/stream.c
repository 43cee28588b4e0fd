/* Streams. A stream is a queue of items, and has a thread while it has any. An item waits for moments - of events, of
 * the legacy stream, of a graph's last launch - then executes its operation, and then its own moment is reached. All
 * order between streams is made of moments: an event is the moment of the item that recorded it.
 *
 * A device has few connections to the host (CUDA_DEVICE_MAX_CONNECTIONS). A stream, of whatever priority, takes one
 * that fewest others have. What streams of one connection do begins in the order in which it was asked for: a kernel
 * that is at work holds up nobody, but what waits behind it in its stream does. An H100 was seen to do so. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 8, CONNECTIONS_MOST = 32 };

/* Of each device. last: when the last item of a connection begins. */
static struct {
	unsigned streams[CONNECTIONS_MOST];
	struct moment *last[CONNECTIONS_MOST];
} connections[DEVICES_MOST];

struct stream *all_streams;
_Thread_local struct work work_now;

bool
in_host_function(void)
{
	return work_now.host_function;
}

/* ---- execution ---- */

bool
work_lost(const struct context *c, const _Atomic bool *gone)
{
	return __atomic_load_n(&c->error, __ATOMIC_ACQUIRE) != CUDA_SUCCESS || atomic_load(gone);
}

void
operation_run(struct operation *operation, struct context *c, const _Atomic bool *gone, struct moment *begun)
{
	if (work_lost(c, gone))
		return;
	random_delay();
	struct work before = work_now;
	work_now = (struct work){ c, gone, false };
	for (unsigned turns = 0; operation->ready && !work_lost(c, gone) && !operation->ready(operation); turns++)
		back_off(turns);
	if (begun)
		moment_reach(begun);
	if (!work_lost(c, gone))
		operation->run(operation, c);
	work_now = before;
}

struct operation *
operation_copy(const struct operation *operation)
{
	return operation ? memcpy(new_bytes(operation->bytes), operation, operation->bytes) : NULL;
}

void
operation_free(struct operation *operation)
{
	if (operation && operation->drop)
		operation->drop(operation);
	free(operation);
}

static void
item_free(struct item *item)
{
	for (int i = 0; i < item->n_after; i++)
		moment_drop(item->after[i]);
	free(item->after);
	moment_drop(item->begun);
	moment_drop(item->done);
	operation_free(item->operation);
	free(item);
}

static void
stream_free(struct stream *s)
{
	struct stream **at = &all_streams;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->connection >= 0)
		connections[s->c->device].streams[s->connection]--;
	moment_drop(s->last);
	free(s->before.node);
	free(s);
}

/* The oldest item; NULL where none is left: then the thread has nothing to do with the stream any more. */
static struct item *
oldest(struct stream *s)
{
	state_lock();
	struct item *item = s->head;
	if (!item) {
		s->running = false;
		if (s->destroyed)
			stream_free(s);
	}
	state_unlock(CUDA_SUCCESS);
	return item;
}

static void
take_off(struct stream *s)
{
	state_lock();
	s->head = s->head->next;
	if (!s->head)
		s->tail = &s->head;
	state_unlock(CUDA_SUCCESS);
}

static void
work(void *arg)
{
	struct stream *s = arg;
	struct item *item;
	while ((item = oldest(s))) {
		for (int i = 0; i < item->n_after; i++)
			moment_wait(item->after[i], &s->gone);
		if (item->operation)
			operation_run(item->operation, s->c, &s->gone, item->begun);
		take_off(s);
		if (!moment_reached(item->begun))
			moment_reach(item->begun);
		moment_reach(item->done);
		item_free(item);
	}
}

/* ---- work for streams ---- */

static void
wait_for(struct item *item, struct moment *m)
{
	if (moment_reached(m))
		return;
	item->after = grown(item->after, (item->n_after + 1) * sizeof *item->after);
	item->after[item->n_after++] = moment_hold(m);
}

/* The legacy stream and the blocking ones of its context are in order. */
static void
wait_for_legacy(struct item *item, const struct stream *s)
{
	for (const struct stream *t = all_streams; t; t = t->next)
		if (t != s && t->c == s->c && ((s->legacy && t->blocking) || (s->blocking && t->legacy)))
			wait_for(item, t->last);
}

static void
take_connection(struct item *item, const struct stream *s)
{
	if (s->connection < 0)
		return;
	struct moment **last = &connections[s->c->device].last[s->connection];
	wait_for(item, *last);
	moment_drop(*last);
	*last = moment_hold(item->begun);
}

struct moment *
stream_queue(struct stream *s, const struct operation *operation, struct moment *const *after, int n)
{
	struct item *item = new_bytes(sizeof *item);
	item->begun = moment_new();
	item->done = moment_new();
	item->operation = operation_copy(operation);
	for (int i = 0; i < n; i++)
		wait_for(item, after[i]);
	wait_for_legacy(item, s);
	take_connection(item, s);
	*s->tail = item;
	s->tail = &item->next;
	moment_drop(s->last);
	s->last = moment_hold(item->done);
	if (!s->running) {
		s->running = true;
		pool_start(work, s);
	}
	return s->last;
}

CUresult
stream_put(struct stream *s, const struct operation *operation)
{
	if (s->capture)
		return capture_add(s, operation);
	stream_queue(s, operation, NULL, 0);
	return CUDA_SUCCESS;
}

static int
take_of_fewest(const struct context *c)
{
	int64_t n = setting("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS);
	unsigned *streams = connections[c->device].streams;
	int fewest = 0;
	n = n < 1 || n > CONNECTIONS_MOST ? CONNECTIONS : n;
	for (int i = 1; i < n; i++)
		if (streams[i] < streams[fewest])
			fewest = i;
	streams[fewest]++;
	return fewest;
}

static struct stream *
stream_new(struct context *c, bool blocking, bool connected)
{
	struct stream *s = new_bytes(sizeof *s);
	s->c = c;
	s->blocking = blocking;
	s->connection = connected ? take_of_fewest(c) : -1;
	s->tail = &s->head;
	s->next = all_streams;
	all_streams = s;
	return s;
}

static struct stream *
legacy_stream(struct context *c)
{
	for (struct stream *s = all_streams; s; s = s->next)
		if (s->legacy && s->c == c && !s->destroyed)
			return s;
	struct stream *s = stream_new(c, false, true);
	s->legacy = true;
	return s;
}

static struct stream *
thread_stream(struct context *c)
{
	for (struct stream *s = all_streams; s; s = s->next)
		if (s->of_thread && s->c == c && !s->destroyed && pthread_equal(s->thread, pthread_self()))
			return s;
	struct stream *s = stream_new(c, true, true);
	s->of_thread = true;
	s->thread = pthread_self();
	return s;
}

/* Of graphs: not in order with anything, and without a handle. */
static struct stream *
marking_stream(struct context *c)
{
	for (struct stream *s = all_streams; s; s = s->next)
		if (!s->handle && !s->legacy && !s->of_thread && s->c == c && !s->destroyed)
			return s;
	return stream_new(c, false, false);
}

void
stream_mark(unsigned devices, struct moment *m)
{
	for (int device = 0; devices; device++, devices >>= 1)
		if (devices & 1)
			stream_queue(marking_stream(context_of(device)), NULL, &m, 1);
}

CUresult
stream_find(CUstream handle, struct context *current, struct stream **out)
{
	bool legacy = !handle || handle == CU_STREAM_LEGACY;
	struct stream *s = legacy ? legacy_stream(current) : handle == CU_STREAM_PER_THREAD ? thread_stream(current) :
	    handle_find(STREAM, handle);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = s;
	CUresult error = __atomic_load_n(&s->c->error, __ATOMIC_ACQUIRE);
	if (error == CUDA_SUCCESS && legacy)
		error = capture_forbids_legacy(s->c);
	return error;
}

/* ---- calls ---- */

static CUresult
create(struct context *c, CUstream *stream, unsigned flags)
{
	if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	struct stream *s = stream_new(c, flags == CU_STREAM_DEFAULT, true);
	*stream = s->handle = handle_new(STREAM, s);
	return state_unlock(CUDA_SUCCESS);
}

EXPORT CUresult
cuStreamCreate(CUstream *stream, unsigned flags)
{
	ENTER_CONTEXT(cuStreamCreate, c);
	return create(c, stream, flags);
}

EXPORT CUresult
cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	ENTER_CONTEXT(cuStreamCreateWithPriority, c);
	(void)priority;
	return create(c, stream, flags);
}

EXPORT CUresult
cuStreamDestroy_v2(CUstream stream)
{
	ENTER(cuStreamDestroy_v2);
	state_lock();
	struct stream *s = handle_find(STREAM, stream);
	CUresult r = s ? capture_forbids_wait(s) : CUDA_ERROR_INVALID_HANDLE;
	if (r != CUDA_SUCCESS)
		return state_unlock(r);
	handle_end(stream);
	s->destroyed = true;
	if (!s->running)
		stream_free(s);
	return state_unlock(CUDA_SUCCESS);
}

/* The stream's last moment, held; a stream that captures has none. */
static CUresult
last_of(CUstream stream, struct context *current, struct context **c, struct moment **last)
{
	struct stream *s;
	state_lock();
	CUresult r = stream_find(stream, current, &s);
	if (r == CUDA_SUCCESS)
		r = capture_forbids_wait(s);
	if (r != CUDA_SUCCESS)
		return state_unlock(r);
	*c = s->c;
	*last = moment_hold(s->last);
	return state_unlock(CUDA_SUCCESS);
}

EXPORT CUresult
cuStreamQuery(CUstream stream)
{
	ENTER_UNSAFE(cuStreamQuery, current);
	struct context *c;
	struct moment *last;
	CUresult r = last_of(stream, current, &c, &last);
	if (r != CUDA_SUCCESS)
		return r;
	r = moment_reached(last) ? __atomic_load_n(&c->error, __ATOMIC_ACQUIRE) : CUDA_ERROR_NOT_READY;
	moment_drop(last);
	return r;
}

EXPORT CUresult
cuStreamSynchronize(CUstream stream)
{
	ENTER_UNSAFE(cuStreamSynchronize, current);
	struct context *c;
	struct moment *last;
	CUresult r = last_of(stream, current, &c, &last);
	if (r != CUDA_SUCCESS)
		return r;
	moment_wait(last, NULL);
	moment_drop(last);
	return __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
}

EXPORT CUresult
cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	ENTER_CONTEXT(cuStreamGetCtx, current);
	struct stream *s;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	CUresult r = stream_find(stream, current, &s);
	if (r == CUDA_SUCCESS)
		*context = (CUcontext)s->c;
	return state_unlock(r);
}

/* ---- contexts ---- */

/* The moments by which all work of a context is done, held. */
static int
moments_of(const struct context *c, struct moment ***out)
{
	int n = 0;
	*out = NULL;
	state_lock();
	for (const struct stream *s = all_streams; s; s = s->next)
		if (s->c == c && !moment_reached(s->last)) {
			*out = grown(*out, (n + 1) * sizeof **out);
			(*out)[n++] = moment_hold(s->last);
		}
	state_unlock(CUDA_SUCCESS);
	return n;
}

CUresult
streams_finish(struct context *c)
{
	struct moment **last;
	int n = moments_of(c, &last);
	for (int i = 0; i < n; i++) {
		moment_wait(last[i], NULL);
		moment_drop(last[i]);
	}
	free(last);
	return __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
}

CUresult
streams_synchronize(struct context *c)
{
	CUresult r = CUDA_SUCCESS;
	state_lock();
	for (struct stream *s = all_streams; s && r == CUDA_SUCCESS; s = s->next)
		if (s->c == c)
			r = capture_forbids_wait(s);
	state_unlock(r);
	return r == CUDA_SUCCESS ? streams_finish(c) : r;
}

static void
end_streams(const struct context *c)
{
	for (struct stream *s = all_streams, *next; s; s = next) {
		next = s->next;
		if (s->c != c || s->destroyed)
			continue;
		if (s->handle)
			handle_end(s->handle);
		s->destroyed = true;
		if (!s->running)
			stream_free(s);
	}
}

void
streams_forget(struct context *c)
{
	state_lock();
	for (struct stream *s = all_streams; s; s = s->next)
		if (s->c == c) {
			if (s->capture)
				capture_invalidate(s->capture);
			atomic_store(&s->gone, true);
		}
	state_unlock(CUDA_SUCCESS);
	streams_finish(c);
	state_lock();
	graphs_forget(c);
	end_streams(c);
	events_forget(c);
	modules_forget(c);
	state_unlock(CUDA_SUCCESS);
}
