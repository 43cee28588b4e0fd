/* Flights: launches that may not have ended, their order, and what is given back when they have. */
#include "cuda/calls.h"
#include "cuda/relay.h"
#include "support/error.h"

#include <stdlib.h>

/* ---- tables of messages ---- */

enum { TABLES = 16 };

struct gpu_pool {
	void *memory;
	struct gpu_pool *next;
};

int
gpu_messages_grow(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_pool *pool = calloc(1, sizeof *pool);
	size_t table = sizeof(struct gpu_messages);
	int n = TABLES;
	for (struct gpu_pool *p = l->pool; p; p = p->next)
		n += TABLES;
	struct gpu_messages **grown = realloc(l->table_free, (size_t)n * sizeof *grown);
	l->table_free = grown ? grown : l->table_free;
	if (!pool || !grown) {
		free(pool);
		return set_error_memory(err);
	}
	if (driver_check(g->d, g->d->host_alloc(&pool->memory, TABLES * table, CU_MEMHOSTALLOC_PORTABLE |
	    CU_MEMHOSTALLOC_DEVICEMAP), err, "allocate %zu bytes of the host", TABLES * table) != blinkSuccess) {
		free(pool);
		return err->code;
	}
	pool->next = l->pool;
	l->pool = pool;
	for (int i = 0; i < TABLES; i++)
		l->table_free[l->n_table_free++] = &((struct gpu_messages *)pool->memory)[i];
	return blinkSuccess;
}

void
gpu_table_return(struct gpu *g, struct gpu_messages *messages)
{
	struct gpu_launches *l = g->launches;
	l->table_free[l->n_table_free++] = messages;
}

/* ---- flights ---- */

enum { FLIGHTS = 32 };			/* that may not have ended, before a call asks for them */

/* There is work for the threads that watch and relay: the lock is held. */
static void
gpu_watch_wake(struct gpu *g)
{
	if (g->launches->idle)
		pthread_cond_signal(&g->launches->wake);
	g->launches->idle = false;
	gpu_relay_wake(g);
}

/* Also in the same stream: a handle may be that of a new stream. */
int
gpu_order(struct gpu *g, const struct gpu_target *to, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	CUevent before = NULL;
	if (to->capturing && l->captured && to->capture != 0 && l->capture == to->capture)
		before = l->captured;
	pthread_mutex_lock(&l->lock);
	if (!to->capturing && l->last)
		before = l->last->event;
	CUresult r = before ? g->d->stream_wait_event(to->stream, before, 0) : CUDA_SUCCESS;
	pthread_mutex_unlock(&l->lock);
	return driver_check(g->d, r, err, "wait for the call before");
}

/* The first flight has ended. */
static void
land(struct gpu *g)
{
	struct gpu_launches *l = g->launches;
	struct gpu_flight *f = l->first;
	if (f->messages)
		gpu_table_return(g, f->messages);
	l->first = f->next;
	if (!l->first)
		l->last = NULL;
	l->n_flights--;
	f->next = l->unused;
	l->unused = f;
}

/* The first n flights, if the last of them has ended: each waits for the one before. To ask takes a driver half as long
 * as to launch. */
static CUresult
reap_some(struct gpu *g, int n)
{
	struct gpu_flight *until = g->launches->first;
	for (int i = 1; i < n; i++)
		until = until->next;
	CUresult r = g->d->event_query(until->event);
	for (int i = 0; i < n && r == CUDA_SUCCESS; i++)
		land(g);
	return r;
}

CUresult
gpu_reap(struct gpu *g)
{
	struct gpu_launches *l = g->launches;
	CUresult r = l->n_flights > 0 ? reap_some(g, l->n_flights) : CUDA_SUCCESS;
	if (r == CUDA_ERROR_NOT_READY && l->n_flights > 3 && reap_some(g, l->n_flights / 2) == CUDA_SUCCESS)
		return r;
	if (r == CUDA_ERROR_NOT_READY && l->n_flights > 1)
		reap_some(g, 1);
	return r;
}

/* A flight with an event; the lock is held. */
static struct gpu_flight *
take_flight(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	if (l->n_flights >= FLIGHTS && l->n_flights % (FLIGHTS / 2) == 0)
		reap_some(g, FLIGHTS / 2);
	struct gpu_flight *f = l->unused;
	if (f) {
		l->unused = f->next;
		return f;
	}
	if (!(f = calloc(1, sizeof *f))) {
		set_error_memory(err);
	} else if (driver_check(g->d, g->d->event_create(&f->event, CU_EVENT_DISABLE_TIMING), err, "create an event")
	    != blinkSuccess) {
		free(f);
		f = NULL;
	}
	return f;
}

static int
captured(struct gpu *g, const struct gpu_target *to, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	if (!l->captured && driver_check(g->d, g->d->event_create(&l->captured, CU_EVENT_DISABLE_TIMING), err,
	    "create an event") != blinkSuccess)
		return err->code;
	if (driver_check(g->d, g->d->event_record(l->captured, to->stream), err, "record an event") != blinkSuccess)
		return err->code;
	l->capture = to->capture;
	pthread_mutex_lock(&l->lock);
	l->has_captured = true;
	gpu_watch_wake(g);
	pthread_mutex_unlock(&l->lock);
	return blinkSuccess;
}

int
gpu_launched(struct gpu *g, const struct gpu_target *to, uint64_t number, int n_messages, struct gpu_messages *messages,
    struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	if (to->capturing)
		return captured(g, to, err);
	pthread_mutex_lock(&l->lock);
	struct gpu_flight *f = take_flight(g, err);
	if (f) {
		CUevent event = f->event;
		*f = (struct gpu_flight){ .number = number, .event = event, .n_messages = n_messages,
		    .messages = messages };
		if (driver_check(g->d, g->d->event_record(event, to->stream), err, "record an event") == blinkSuccess) {
			*(l->last ? &l->last->next : &l->first) = f;
			l->last = f;
			l->n_flights++;
			gpu_watch_wake(g);
		} else {
			f->messages = NULL;
			f->next = l->unused;
			l->unused = f;
		}
	}
	pthread_mutex_unlock(&l->lock);
	return err->code;
}

uint64_t
gpu_last_call(void *of)
{
	struct gpu *g = of;
	struct gpu_launches *l = g->launches;
	pthread_mutex_lock(&l->lock);
	uint64_t n = l->n_made;
	pthread_mutex_unlock(&l->lock);
	return n;
}

static void
free_flights(struct gpu *g, struct gpu_flight *f, bool forked)
{
	while (f) {
		struct gpu_flight *next = f->next;
		if (!forked)
			g->d->event_destroy(f->event);
		free(f);
		f = next;
	}
}

void
gpu_flights_close(struct gpu *g, bool forked)
{
	struct gpu_launches *l = g->launches;
	free_flights(g, l->first, forked);
	free_flights(g, l->unused, forked);
	while (l->pool) {
		struct gpu_pool *next = l->pool->next;
		if (!forked)
			g->d->host_free(l->pool->memory);
		free(l->pool);
		l->pool = next;
	}
	free(l->table_free);
}
