/* Events. An event is the moment of the item that recorded it last; who waits holds that moment, so that a later record
 * changes nothing for it. Recorded by a stream that captures, it is nodes of the graph instead. */
#include "streams.h"

#include <stdlib.h>

enum { EVENT_INTERPROCESS = 4, EVENT_FLAGS = 7 };

struct event {
	void *handle;
	struct context *c;
	unsigned flags;
	struct moment *moment;		/* NULL: never recorded */
	struct captured captured;
};

/* Under the lock. */
static CUresult
event_find(CUevent handle, struct event **out)
{
	*out = handle_find(EVENT, handle);
	return *out ? __atomic_load_n(&(*out)->c->error, __ATOMIC_ACQUIRE) : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult
cuEventCreate(CUevent *event, unsigned flags)
{
	ENTER_CONTEXT(cuEventCreate, c);
	if (!event || flags & ~(unsigned)EVENT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & EVENT_INTERPROCESS)
		return flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	struct event *e = new_bytes(sizeof *e);
	e->c = c;
	e->flags = flags;
	state_lock();
	*event = e->handle = handle_new(EVENT, e);
	return state_unlock(CUDA_SUCCESS);
}

static void
event_free(struct event *e)
{
	handle_end(e->handle);
	moment_drop(e->moment);
	captured_drop(&e->captured);
	free(e);
}

EXPORT CUresult
cuEventDestroy_v2(CUevent event)
{
	ENTER(cuEventDestroy_v2);
	state_lock();
	struct event *e = handle_find(EVENT, event);
	if (e)
		event_free(e);
	return state_unlock(e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

static void
forget(void *event, void *context)
{
	if (((struct event *)event)->c == context)
		event_free(event);
}

void
events_forget(struct context *c)
{
	handle_each(EVENT, forget, c);
}

static CUresult
record(struct event *e, struct stream *s)
{
	if (e->c != s->c)
		return CUDA_ERROR_INVALID_HANDLE;
	struct captured captured = { 0 };
	if (s->capture) {
		CUresult r = capture_record(s, &captured);
		if (r != CUDA_SUCCESS)
			return r;
	}
	captured_drop(&e->captured);
	e->captured = captured;
	if (s->capture)
		return CUDA_SUCCESS;
	moment_drop(e->moment);
	e->moment = moment_hold(stream_queue(s, NULL, NULL, 0));
	return CUDA_SUCCESS;
}

EXPORT CUresult
cuEventRecord(CUevent event, CUstream stream)
{
	ENTER_CONTEXT(cuEventRecord, c);
	struct event *e;
	struct stream *s;
	state_lock();
	CUresult r = event_find(event, &e);
	if (r == CUDA_SUCCESS)
		r = stream_find(stream, c, &s);
	return state_unlock(r == CUDA_SUCCESS ? record(e, s) : r);
}

static CUresult
wait_event(struct stream *s, const struct event *e)
{
	if (s->capture || e->captured.capture)
		return e->captured.capture || e->moment ? capture_wait(s, &e->captured) : CUDA_SUCCESS;
	if (e->moment)
		stream_queue(s, NULL, &e->moment, 1);
	return CUDA_SUCCESS;
}

EXPORT CUresult
cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	ENTER_CONTEXT(cuStreamWaitEvent, c);
	struct event *e;
	struct stream *s;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	CUresult r = event_find(event, &e);
	if (r == CUDA_SUCCESS)
		r = stream_find(stream, c, &s);
	return state_unlock(r == CUDA_SUCCESS ? wait_event(s, e) : r);
}

/* The event's moment, held: NULL where it was never recorded. A captured event has none, and the capture is void. */
static CUresult
moment_of(CUevent event, struct context **c, struct moment **out)
{
	struct event *e;
	state_lock();
	CUresult r = event_find(event, &e);
	if (r == CUDA_SUCCESS && e->captured.capture) {
		capture_invalidate(e->captured.capture);
		r = CUDA_ERROR_CAPTURED_EVENT;
	}
	if (r != CUDA_SUCCESS)
		return state_unlock(r);
	*c = e->c;
	*out = moment_hold(e->moment);
	return state_unlock(CUDA_SUCCESS);
}

EXPORT CUresult
cuEventQuery(CUevent event)
{
	ENTER(cuEventQuery);
	struct context *c;
	struct moment *m;
	CUresult r = moment_of(event, &c, &m);
	if (r != CUDA_SUCCESS)
		return r;
	r = capture_forbids();
	if (r == CUDA_SUCCESS)
		r = moment_reached(m) ? __atomic_load_n(&c->error, __ATOMIC_ACQUIRE) : CUDA_ERROR_NOT_READY;
	moment_drop(m);
	return r;
}

EXPORT CUresult
cuEventSynchronize(CUevent event)
{
	ENTER(cuEventSynchronize);
	struct context *c;
	struct moment *m;
	CUresult r = moment_of(event, &c, &m);
	if (r != CUDA_SUCCESS)
		return r;
	r = capture_forbids();
	if (r == CUDA_SUCCESS) {
		moment_wait(m, NULL);
		r = __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
	}
	moment_drop(m);
	return r;
}

static CUresult
elapsed(float *ms, const struct event *from, const struct event *to)
{
	if (from->captured.capture || to->captured.capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (from->c != to->c || !from->moment || !to->moment ||
	    (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!moment_reached(from->moment) || !moment_reached(to->moment))
		return CUDA_ERROR_NOT_READY;
	*ms = (float)(to->moment->ns - from->moment->ns) / 1e6f;
	return CUDA_SUCCESS;
}

EXPORT CUresult
cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	ENTER(cuEventElapsedTime);
	struct event *a, *b;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	CUresult r = event_find(from, &a);
	if (r == CUDA_SUCCESS)
		r = event_find(to, &b);
	return state_unlock(r == CUDA_SUCCESS ? elapsed(ms, a, b) : r);
}

EXPORT CUresult
cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime(ms, from, to);
}
