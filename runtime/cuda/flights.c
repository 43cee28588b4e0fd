/* Flights: launches that may not have ended, their order, and what is given back when they have. */
#include "cuda/calls.h"
#include "cuda/relay.h"
#include "support/error.h"

#include <stdlib.h>

/* ---- sheets ---- */

/* The first ones are in memory of the host, which kernels read there: nothing is uploaded. Where so many are under way,
 * in captures, whose sheets never come back, and where the process has more communicators than the store has room for,
 * they are in memory of the GPU. */
enum { SHEETS = 16 };

static struct gpu_sheet *
new_sheet(struct gpu_launches *l, struct gpu_messages *host, const void *gpu, struct blink_error *err)
{
	struct gpu_sheet *sheet = calloc(1, sizeof *sheet);
	if (!sheet) {
		set_error_memory(err);
		return NULL;
	}
	*sheet = (struct gpu_sheet){ .host = host, .gpu = gpu, .made = l->sheets };
	l->sheets = sheet;
	return sheet;
}

static struct gpu_sheet *
sheet_of_gpu(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	CUdeviceptr memory;
	if (!l->staged && !(l->staged = calloc(1, sizeof *l->staged)))
		set_error_memory(err);
	else if (gpu_keep(g, sizeof *l->staged, &memory, err) == blinkSuccess)
		return new_sheet(l, l->staged, host_pointer(memory), err);
	return NULL;
}

/* The lock is held. */
static void
put_back(struct gpu_launches *l, struct gpu_sheet *sheet)
{
	sheet->next = l->sheet;
	l->sheet = sheet;
}

struct gpu_sheet *
gpu_sheet_take(struct gpu *g, bool capturing, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	if (capturing)
		return sheet_of_gpu(g, err);
	pthread_mutex_lock(&l->lock);
	if (!l->sheet)
		gpu_reap(g);
	struct gpu_sheet *out = l->sheet;
	if (out)
		l->sheet = out->next;
	pthread_mutex_unlock(&l->lock);
	return out ? out : sheet_of_gpu(g, err);
}

int
gpu_sheet_put(struct gpu *g, const struct gpu_sheet *sheet, struct blink_error *err)
{
	return sheet->gpu == sheet->host ? blinkSuccess
	    : gpu_upload(g, device_pointer(sheet->gpu), sheet->host, sizeof *sheet->host, err);
}

void
gpu_sheet_return(struct gpu *g, struct gpu_sheet *sheet)
{
	pthread_mutex_lock(&g->launches->lock);
	put_back(g->launches, sheet);
	pthread_mutex_unlock(&g->launches->lock);
}

int
gpu_flights_open(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	l->owed_end = &l->owed;
	if (gpu_take_host(g, SHEETS * sizeof(struct gpu_messages), false, &l->first_sheets, err) != blinkSuccess)
		return err->code;
	struct gpu_messages *first = l->first_sheets;
	for (int i = 0; first && i < SHEETS; i++) {
		struct gpu_sheet *sheet = new_sheet(l, &first[i], &first[i], err);
		if (!sheet)
			return err->code;
		put_back(l, sheet);
	}
	return blinkSuccess;
}

static void
free_sheets(struct gpu *g, bool forked)
{
	struct gpu_launches *l = g->launches;
	while (l->sheets) {
		struct gpu_sheet *before = l->sheets->made;
		free(l->sheets);
		l->sheets = before;
	}
	if (l->first_sheets && !forked)
		gpu_give_host(g, l->first_sheets);
	free(l->staged);
}

/* ---- memory that is owed: the lock is held ---- */

static void
pay_first(struct gpu *g, bool forked)
{
	struct gpu_launches *l = g->launches;
	struct gpu_owed *owed = l->owed;
	struct blink_error ignored = { 0 };
	if (!forked)
		gpu_give(g, owed->memory, &ignored);
	l->owed = owed->next;
	if (!l->owed)
		l->owed_end = &l->owed;
	free(owed);
}

/* What calls may have used that have ended. */
static void
pay(struct gpu *g)
{
	struct gpu_launches *l = g->launches;
	while (l->owed && (!l->first || l->first->number > l->owed->number))
		pay_first(g, false);
}

int
gpu_give_later(struct gpu *g, CUdeviceptr memory, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_owed *owed = calloc(1, sizeof *owed);
	if (!owed)
		return set_error_memory(err);
	pthread_mutex_lock(&l->lock);
	*owed = (struct gpu_owed){ .memory = memory, .number = l->n_made };
	*l->owed_end = owed;
	l->owed_end = &owed->next;
	gpu_reap(g);
	pay(g);
	pthread_mutex_unlock(&l->lock);
	return blinkSuccess;
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
	if (f->sheet)
		put_back(l, f->sheet);
	l->first = f->next;
	if (!l->first)
		l->last = NULL;
	pay(g);
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
gpu_launched(struct gpu *g, const struct gpu_target *to, uint64_t number, int n_messages, struct gpu_sheet *sheet,
    struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	if (to->capturing)
		return captured(g, to, err);
	pthread_mutex_lock(&l->lock);
	struct gpu_flight *f = take_flight(g, err);
	if (f) {
		CUevent event = f->event;
		*f = (struct gpu_flight){ .number = number, .event = event, .n_messages = n_messages, .sheet = sheet };
		if (driver_check(g->d, g->d->event_record(event, to->stream), err, "record an event") == blinkSuccess) {
			*(l->last ? &l->last->next : &l->first) = f;
			l->last = f;
			l->n_flights++;
			gpu_watch_wake(g);
		} else {
			f->sheet = NULL;
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
	while (l->owed)
		pay_first(g, forked);
	free_sheets(g, forked);
}
