/* Watching: a thread of each communicator on a GPU looks at what its kernels report.
 *
 * Kernels cannot ask the hub, and the hub cannot ask them; both read and write gpu_status, in memory of the host. The
 * thread looks there while calls are under way, every 10 ms: a call that takes less is not looked at. It sees whether
 * kernels get on, tells the hub when they have not for as long as the patience allows, and stops them when the
 * communicator has failed. It also asks the driver, whose errors come late: a kernel that fails does so long after its
 * launch. Where nothing is under way the thread sleeps; once graphs have been captured, which run without a call, it
 * looks now and then. */
#include "cuda/calls.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/thread.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define MS ((int64_t)1000000)

/* ns: between two looks while calls are under way, and while graphs may be; what a peer may be gone before it counts;
 * the longest patience before a deadline; how long kernels are waited for that have been told to stop. */
#define LOOK_NS (10 * MS)
#define IDLE_NS (100 * MS)
#define GONE_NS (250 * MS)
#define PATIENCE_NS (2000 * MS)
#define END_NS (5000 * MS)

/* ns: of a wait without sleep, and its longest sleep, also that of a long wait, which is late by a 256th at most. */
#define SPIN_NS (MS / 5)
#define NAP_NS (MS / 5)
#define LONG_NAP_NS (5 * MS)
enum { NAPS_OF_WAIT = 8, NAPS_OF_LONG_WAIT = 256 };

enum { STACK = 128 << 10 };

static uint32_t
load32(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static uint64_t
load64(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* ---- errors ---- */

static void
stop(struct gpu *g)
{
	__atomic_store_n(&g->status->stop, 1, __ATOMIC_RELEASE);
}

/* That a peer has gone is seen by the next look. */
void
gpu_wake(void *of)
{
	struct gpu *g = of;
	if (atomic_load(&g->open) && atomic_load(&g->self->stop))
		stop(g);
}

static void
fail_for(struct gpu *g, const struct blink_error *err, int culprit)
{
	if (atomic_exchange(&g->launches->stopping, 1) == 0)
		rank_fail_here(g->self, err, culprit);
	stop(g);
}

void
gpu_fail(struct gpu *g, const struct blink_error *err)
{
	fail_for(g, err, -1);
}

/* ---- what kernels report ---- */

struct report {
	uint64_t begun, done, progress;
	int awaits;
	bool exchange;			/* the first launch that has not ended is one */
};

static void
read_report(struct gpu *g, struct report *out)
{
	const struct gpu_status *s = g->status;
	out->done = load64(&s->done);
	out->begun = load64(&s->begun);
	out->progress = load64(&s->progress);
	out->awaits = (int)load32((const uint32_t *)&s->awaits);
}

void
gpu_status_of(void *of, struct rank_status *out)
{
	struct gpu *g = of;
	struct gpu_launches *l = g->launches;
	struct report r;
	if (!atomic_load(&g->open))
		return;
	read_report(g, &r);
	out->calls = r.begun;
	out->signature = r.begun > 0 ? load64(&g->status->signature[r.begun % 2]) : 0;
	out->before = r.begun > 1 ? load64(&g->status->signature[(r.begun - 1) % 2]) : 0;
	out->in_call = r.begun > r.done;
	out->awaits = r.awaits;
	pthread_mutex_lock(&l->lock);
	for (int i = 0; i < GPU_TEXTS; i++)
		if (out->signature && l->text[i].signature == out->signature)
			memcpy(out->text, l->text[i].text, sizeof out->text);
	if (!out->in_call && l->first && l->first->n_messages > 0) {
		out->in_call = 1;
		snprintf(out->text, sizeof out->text, "%d sends and receives", l->first->n_messages);
	}
	pthread_mutex_unlock(&l->lock);
}

/* ---- looks ---- */

struct watch {
	struct report last;
	int64_t deadline;
	bool asked, suspects;
};

static bool
same(const struct report *a, const struct report *b)
{
	return a->begun == b->begun && a->done == b->done && a->progress == b->progress && a->exchange == b->exchange;
}

/* A signature that is not that of this rank's call: the hub finds out which rank differs. Of messages both ends know
 * enough. */
static void
look_at_signature(struct gpu *g, struct watch *w)
{
	struct rank_state *self = g->self;
	struct blink_error err = { 0 };
	int differs = (int)load32(&g->status->differs), sender = differs - 1 - GPU_DIFFERS_MESSAGE;
	if (!differs || w->suspects)
		return;
	w->suspects = true;
	if (differs < GPU_DIFFERS_MESSAGE) {
		self->events.stuck(self->events.context, now_ns(), 0);
		return;
	}
	set_error(&err, blinkMismatch, "rank %d sends another number of bytes, or another type, than rank %d receives",
	    sender, self->rank);
	fail_for(g, &err, sender);
}

/* Between graphs and calls outside of them the caller sees to the order (launch.c). */
static void
look_at_overlap(struct gpu *g)
{
	struct blink_error err = { 0 };
	if (!load32(&g->status->overlaps))
		return;
	set_error(&err, blinkInvalidArgument, "rank %d: two calls at once on device %d: want graphs and calls of a "
	    "communicator in one stream, or each after an event of the one before", g->self->rank, (int)g->device);
	gpu_fail(g, &err);
}

/* As the engine of the host does it (check_patience). */
static void
look_at_progress(struct gpu *g, struct watch *w, const struct report *now)
{
	struct rank_state *self = g->self;
	int64_t time = now_ns(), patience = self->timeout / 4 < PATIENCE_NS ? self->timeout / 4 : PATIENCE_NS;
	bool runs = now->begun > now->done || (now->exchange && now->awaits >= 0);
	if (!runs || !same(now, &w->last)) {
		if (w->asked)
			self->events.progress(self->events.context);
		w->asked = false;
		w->deadline = time + self->timeout;
		w->last = *now;
	} else if (!w->asked && time >= w->deadline - patience) {
		self->events.stuck(self->events.context, w->deadline, patience);
		w->asked = true;
	}
}

/* Whom a kernel waits for has left. Most leave because the hub told them of a failure, which this rank is about to
 * hear. */
static void
look_at_peer(struct gpu *g, const struct report *now)
{
	struct rank_state *self = g->self;
	struct blink_error err = { 0 };
	int64_t grace = self->timeout / 2 < GONE_NS ? self->timeout / 2 : GONE_NS;
	atomic_store(&self->awaits, now->awaits);
	int64_t gone_at = now->awaits >= 0 ? atomic_load(&self->peer[now->awaits].gone_at) : 0;
	if (gone_at == 0 || now_ns() <= gone_at + grace)
		return;
	set_error(&err, blinkRemoteError, "%s", self->peer[now->awaits].gone);
	fail_for(g, &err, now->awaits);
}

/* Has a kernel failed? The lock is held. */
static int
look_at_driver(struct gpu *g, struct blink_error *err)
{
	const char *what = "a call";
	CUresult r = gpu_reap(g);
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY) {
		r = g->d->stream_query(g->stream);
		what = "a kernel";
	}
	return r == CUDA_ERROR_NOT_READY ? blinkSuccess : driver_check(g->d, r, err, "%s on device %d", what,
	    (int)g->device);
}

static void
look(struct gpu *g, struct watch *w)
{
	struct gpu_launches *l = g->launches;
	struct gpu_entry entry;
	struct report now = { .exchange = false };
	struct blink_error err = { 0 };
	if (gpu_enter(g, &entry, &err) == blinkSuccess) {
		pthread_mutex_lock(&l->lock);
		look_at_driver(g, &err);
		now.exchange = l->first && l->first->n_messages > 0;
		if (load32(&g->status->stop) && (l->first || l->has_captured))
			gpu_copies_release(g);
		pthread_mutex_unlock(&l->lock);
		gpu_leave(g, &entry);
	}
	if (err.code != blinkSuccess)
		gpu_fail(g, &err);
	rank_error(g->self, &err);
	if (err.code != blinkSuccess) {
		stop(g);
		return;
	}
	read_report(g, &now);
	look_at_overlap(g);
	look_at_signature(g, w);
	look_at_progress(g, w, &now);
	look_at_peer(g, &now);
}

/* ---- the thread ---- */

static void
nap(struct gpu_launches *l, int64_t ns)
{
	struct timespec until;
	int64_t at = now_ns() + ns;
	until = (struct timespec){ .tv_sec = at / (1000 * MS), .tv_nsec = at % (1000 * MS) };
	pthread_cond_timedwait(&l->wake, &l->lock, &until);
}

/* Something is in a stream, or a kernel is at work, or one has found that a rank differs. The lock is held. */
static bool
is_under_way(const struct gpu *g)
{
	const struct gpu_status *s = g->status;
	return g->launches->first || load64(&s->begun) != load64(&s->done) || load32(&s->differs)
	    || load32(&s->overlaps);
}

static void *
watch(void *gpu)
{
	struct gpu *g = gpu;
	struct gpu_launches *l = g->launches;
	struct watch w = { .deadline = now_ns() + g->self->timeout };
	pthread_mutex_lock(&l->lock);
	while (!l->quit) {
		if (!is_under_way(g) && !l->has_captured) {
			l->idle = true;
			pthread_cond_wait(&l->wake, &l->lock);
			l->idle = false;
			w.deadline = now_ns() + g->self->timeout;
			nap(l, LOOK_NS);
			continue;
		}
		pthread_mutex_unlock(&l->lock);
		look(g, &w);
		pthread_mutex_lock(&l->lock);
		if (!l->quit)
			nap(l, is_under_way(g) ? LOOK_NS : IDLE_NS);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

int
gpu_watch_open(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int failed = start_thread(&l->watcher, STACK, watch, g);
	if (failed)
		return set_error(err, blinkSystemError, "a thread: %s", strerror(failed));
	l->has_watcher = true;
	return blinkSuccess;
}

/* What is left of calls is waited for: their kernels use memory that is freed next. */
void
gpu_watch_close(struct gpu *g)
{
	struct gpu_launches *l = g->launches;
	struct blink_error err = { 0 };
	if (!l->has_watcher)
		return;
	gpu_wait(g, 0, true, &err);
	pthread_mutex_lock(&l->lock);
	l->quit = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->watcher, NULL);
	l->has_watcher = false;
}

/* ---- waiting ---- */

/* One look: is that call done, with all before it? */
static int
test(struct gpu *g, uint64_t number, bool *ended, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_entry entry;
	CUresult r = CUDA_SUCCESS;
	if (gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	pthread_mutex_lock(&l->lock);
	r = gpu_reap(g);
	*ended = !l->first || l->first->number > number;
	pthread_mutex_unlock(&l->lock);
	gpu_leave(g, &entry);
	return r == CUDA_ERROR_NOT_READY ? blinkSuccess : driver_check(g->d, r, err, "a call on device %d",
	    (int)g->device);
}

static int64_t
nap_of(int64_t waited)
{
	int64_t nap = waited / NAPS_OF_WAIT, of_long = waited / NAPS_OF_LONG_WAIT;
	if (of_long > NAP_NS)
		return of_long < LONG_NAP_NS ? of_long : LONG_NAP_NS;
	return nap < NAP_NS ? nap : NAP_NS;
}

static void
pause_for(int64_t waited)
{
	if (waited < SPIN_NS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = nap_of(waited) }, NULL);
}

/* After a failure, too, kernels end first: the caller's buffers are its own again then. But not for ever: a stream may
 * have more in it than they. */
int
gpu_wait(void *of, uint64_t number, bool wait, struct blink_error *err)
{
	struct gpu *g = of;
	struct rank_state *self = g->self;
	struct blink_error here = { 0 }, why = { 0 };
	int64_t began = now_ns(), failed_at = 0;
	uint64_t until = number ? number : gpu_last_call(g);
	for (;;) {
		bool ended = false, failed = test(g, until, &ended, &here) != blinkSuccess;
		if (failed)
			gpu_fail(g, &here);
		rank_error(self, &why);
		/* The watching thread may have found the same, and be about to tell the hub and the engine. */
		ended = failed ? why.code != blinkSuccess : ended;
		if (why.code != blinkSuccess) {
			stop(g);
			failed_at = failed_at ? failed_at : now_ns();
			ended = ended || now_ns() > failed_at + END_NS;
		}
		if (ended && why.code != blinkSuccess)
			return set_error(err, why.code, "%s", why.text);
		/* A kernel has found that a rank differs, which the hub is about to name; or the watching thread is
		 * about to say that kernels overlap. */
		ended = ended && !load32(&g->status->differs) && !load32(&g->status->overlaps);
		if (ended || !wait)
			return ended ? blinkSuccess : blinkInProgress;
		pause_for(now_ns() - began);
	}
}
