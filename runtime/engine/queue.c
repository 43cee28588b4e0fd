/* The calls of a rank: who executes them, how it waits, and how it ends.
 *
 * One thread at a time drives the engine. A call is begun by the thread that makes it, as far as it goes without
 * waiting: a small message often needs no more, and nobody is woken. What is left is done by whoever waits for it, or
 * by the worker, which sleeps while others drive. So the thread that waits for a result is the one that peers wake.
 *
 * A thread that cannot go on looks at its flags for some us where each rank has a CPU. Where there is none beside those
 * it then gives way to others between a few looks more. Then it announces its sleep, looks once more, and sleeps on its
 * bell: for the one flag that it needs if it is one, so that other flags do not wake it in vain. It wakes up from time
 * to time to see whether its patience is over. */
#include "support/debug.h"
#include "engine/engine.h"
#include "engine/pin.h"
#include "support/error.h"
#include "support/thread.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKER_STACK = 256 << 10 };

/* How often a thread gives way before it sleeps, and how many waits go without after a turn that took long. */
enum { TURNS = 64, REST_LEAST = 16, REST_MOST = 1024 };

/* What it takes to wake the worker, in ns, and in turns where ranks share CPUs. */
#define KICK_NS ((int64_t)2000)
enum { KICK_TURNS = 8 };

/* ns: who waits for the network looks no longer. */
#define NET_LOOK_NS ((int64_t)20000)

/* ns: a turn of others that is long. */
#define TURN_NS ((int64_t)500000)

/* ns: a sleep that no bell ends; what a peer may be gone before it counts; the longest patience before a deadline. */
#define SLEEP_NS ((int64_t)100000000)
#define GONE_NS ((int64_t)250000000)
#define PATIENCE_NS ((int64_t)2000000000)

void
engine_wake(void *of)
{
	struct engine *e = of;
	pthread_mutex_lock(&e->self->lock);
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->self->lock);
	bell_ring_always(e->bell);
}

/* ---- drive ---- */

/* The text is made when the hub asks. */
void
engine_status(void *of, struct rank_status *out)
{
	struct engine *e = of;
	pthread_mutex_lock(&e->self->lock);
	const struct call *now = atomic_load_explicit(&e->current, memory_order_acquire);
	struct call call = now ? *now : e->past;
	pthread_mutex_unlock(&e->self->lock);
	*out = (struct rank_status){ .calls = call.begun, .signature = call.signature, .before = call.signature_before,
	    .in_call = now != NULL, .awaits = atomic_load(&e->self->awaits) };
	if (call.n_messages > 0)
		snprintf(out->text, sizeof out->text, "%d sends and receives", (int)call.n_messages);
	else if (call.number > 0)
		call_describe(&call, out->text, sizeof out->text);
	else
		snprintf(out->text, sizeof out->text, "no call yet");
}

/* A call of the library's own, to be executed before the first. */
static bool
is_preceded(struct engine *e, struct call *call, struct blink_error *err)
{
	struct call *before = NULL;
	if (call->n_messages > 0)
		return false;
	/* What paces the call before knows it by its lanes, which the exchange of counts changes. */
	if (!e->self->events.begins)
		before = pace_before(e, call, err);
	if (!before && call->uneven && !call->uneven->known)
		before = uneven_exchange(e, call, err);
	else if (e->self->events.begins)
		e->self->events.begins(e->self->events.context, call, &before, err);
	if (!before)
		return false;
	pthread_mutex_lock(&e->self->lock);
	before->number = call->number - 1;
	before->next = call;
	e->first = before;
	pthread_mutex_unlock(&e->self->lock);
	return true;
}

static int
begin(struct engine *e, struct call *call, struct blink_error *err)
{
	e->deadline = last_tick_ns() + e->self->timeout;
	if (err->code != blinkSuccess)
		return err->code;
	if (call->n_messages > 0)
		messages_begin(e, call, err);
	else if ((!call->uneven || uneven_counts(e, call, err) == blinkSuccess)
	    && e->self->events.plan(e->self->events.context, call, &call->plan, err) == blinkSuccess
	    && (call->plan->flat || call->plan->lanes || plan_connect(e, call->plan, err) == blinkSuccess))
		collective_begin(e, call, err);
	if (err->code == blinkSuccess) {
		call->begun = e->collective;
		call->signature = e->signature;
		call->signature_before = e->signature_before;
		atomic_store_explicit(&e->current, call, memory_order_release);
	}
	e->begun = true;
	return err->code;
}

/* The first call is done. */
static void
end(struct engine *e, struct call *call, struct blink_error *err)
{
	if (call->n_messages == 0)
		collective_end(e, err);
	if (call->n_messages == 0 && e->self->net)
		pace_end(e, call);
	if (call->n_messages == 0 && e->self->events.ended)
		e->self->events.ended(e->self->events.context, call);
	e->done = true;
}

/* It leaves the queue. With the lock. */
static void
retire(struct engine *e)
{
	struct call *call = e->first;
	e->done = e->begun = false;
	e->past = *call;
	atomic_store_explicit(&e->current, NULL, memory_order_relaxed);
	e->first = call->next;
	if (!e->first)
		e->last = NULL;
	atomic_store_explicit(&e->n_done, call->number, memory_order_release);
	pthread_cond_broadcast(&e->changed);
	call_free(call);
}

/* As far as it goes without waiting. True: something was done, or the call is. */
static bool
progress_call(struct engine *e, struct call *call)
{
	struct blink_error *err = &e->wrong;
	bool moved = true, done = false;
	err->code = blinkSuccess;
	if (!e->begun && is_preceded(e, call, err))
		return true;
	if (!e->begun && begin(e, call, err) != blinkSuccess)
		goto failed;
	moved = call->n_messages > 0 ? messages_progress(e, call, err) : collective_progress(e, call);
	done = call->n_messages > 0 ? messages_done(call) : collective_done(e);
	/* The hub finds out which rank differs, and all fail when it says so. */
	if (e->suspects && !e->asked) {
		e->asked = true;
		e->self->events.stuck(e->self->events.context, now_ns(), 0);
	}
	if (done && err->code == blinkSuccess)
		end(e, call, err);
	if (err->code == blinkSuccess)
		return moved || done;
failed:
	/* Messages that do not fit together: the text names both ranks. */
	rank_fail_here(e->self, err, err->code == blinkMismatch ? messages_await(call) : -1);
	return false;
}

/* ---- wait ---- */

/* What the current call waits for: the bell's state, and the peer in e->self->awaits. */
static uint32_t
sleep_for(struct engine *e, const struct call *call)
{
	int peer = -1;
	uint32_t flag = 0, state = BELL_ANY;
	if (call->n_messages > 0)
		peer = messages_await(call);
	else if (collective_awaits(e, &peer, &flag) && e->peer[peer].theirs)
		state = BELL_FLAG + flag;
	atomic_store_explicit(&e->self->awaits, peer, memory_order_relaxed);
	return state;
}

/* How long to wait for a better reason when a peer has gone: most leave because the hub told them of a failure. Its
 * message is on its way to this rank, too, but a thread of this process needs a CPU to read it. */
static int64_t
grace(const struct engine *e)
{
	return e->self->timeout / 2 < GONE_NS ? e->self->timeout / 2 : GONE_NS;
}

/* The hub is asked before the deadline, so that all ranks hear whom to blame when it comes. */
static void
check_patience(struct engine *e, bool *asked)
{
	struct blink_error err = { 0 };
	int64_t now = now_ns(), patience = e->self->timeout / 4 < PATIENCE_NS ? e->self->timeout / 4 : PATIENCE_NS;
	int peer = atomic_load(&e->self->awaits);
	if (!*asked && now >= e->deadline - patience) {
		e->self->events.stuck(e->self->events.context, e->deadline, patience);
		*asked = true;
	}
	int64_t gone_at = peer >= 0 ? atomic_load(&e->self->peer[peer].gone_at) : 0;
	if (gone_at != 0 && now > gone_at + grace(e)) {
		set_error(&err, blinkRemoteError, "%s", e->self->peer[peer].gone);
		rank_fail_here(e->self, &err, peer);
	}
}

static int64_t
longest_sleep(const struct engine *e, bool asked)
{
	int64_t now = now_ns(), patience = e->self->timeout / 4 < PATIENCE_NS ? e->self->timeout / 4 : PATIENCE_NS;
	int64_t left = asked ? SLEEP_NS : e->deadline - patience - now;
	int peer = atomic_load(&e->self->awaits);
	if (peer >= 0 && atomic_load(&e->self->peer[peer].gone_at) != 0 && left > grace(e) / 8)
		left = grace(e) / 8;
	return left < 100000 ? 100000 : left < SLEEP_NS ? left : SLEEP_NS;
}

static bool
goes_on(struct engine *e, struct call *call)
{
	return progress_call(e, call) || atomic_load_explicit(&e->self->stop, memory_order_relaxed);
}

/* Where ranks share CPUs, the peer that this one waits for may wait for its CPU: to give way is cheaper for both than a
 * sleep and a wake-up. But to a program that computes a turn is a whole slice of time, where a sleeper would run soon
 * after it is woken: then the next waits go without. */
static bool
give_way(struct engine *e, struct call *call, int turns)
{
	if (!e->self->yields || (e->rest > 0 && e->rest-- > 0))
		return false;
	int64_t before = now_ns();
	for (int i = 0; i < turns; i++) {
		sched_yield();
		int64_t now = now_ns();
		if (now - before > TURN_NS) {
			e->next_rest = e->next_rest == 0 ? REST_LEAST : 2 * e->next_rest < REST_MOST ? 2 * e->next_rest
			    : REST_MOST;
			e->rest = e->next_rest;
			return goes_on(e, call);
		}
		before = now;
		if (goes_on(e, call)) {
			e->next_rest /= 2;
			return true;
		}
	}
	return false;
}

/* Looks at flags, without a sleep. */
static bool
look(struct engine *e, struct call *call)
{
	int64_t until = e->self->net ? now_ns() + NET_LOOK_NS : INT64_MAX;
	for (int i = 0; i < e->self->spins && (i % 32 != 31 || now_ns() < until); i++)
		if (goes_on(e, call))
			return true;
	return give_way(e, call, TURNS);
}

/* Do peers depend on what is left of the first call, and of the one whose counts are exchanged in it? */
static bool
forwards(struct engine *e, struct call *call)
{
	return collective_forwards(e) || (call->exchanges_counts && !uneven_all_along(e, call->next));
}

/* Peers depend on what is left of a call, which its caller may wait for at once, or not: for as long as it takes to
 * wake the worker it is not woken. */
static bool
look_shortly(struct engine *e, struct call *call)
{
	if (e->self->net || !e->has_worker || !e->begun || call->n_messages > 0 || !forwards(e, call))
		return false;
	if (e->self->spins == 0)
		return give_way(e, call, KICK_TURNS);
	int64_t until = now_ns() + KICK_NS;
	do {
		if (goes_on(e, call))
			return true;
	} while (now_ns() < until);
	return false;
}

/* Until the current call can go on. */
static void
await(struct engine *e, struct call *call)
{
	bool asked = false;
	if (look(e, call))
		return;
	for (;;) {
		uint32_t state = sleep_for(e, call);
		bell_lie_down(e->bell, state);
		int peer = call->n_messages == 0 ? atomic_load_explicit(&e->self->awaits, memory_order_relaxed) : -1;
		bool differs = peer >= 0 && place_differs(e, peer), moved = progress_call(e, call);
		if (!moved && differs) {
			e->suspects = true;
			moved = progress_call(e, call);
		}
		if (moved || atomic_load(&e->self->stop)) {
			bell_wake_up(e->bell);
			break;
		}
		bell_sleep(e->bell, state, longest_sleep(e, asked));
		if (progress_call(e, call) || atomic_load(&e->self->stop))
			break;
		check_patience(e, &asked);
	}
	atomic_store_explicit(&e->self->awaits, -1, memory_order_relaxed);
	if (asked)
		e->self->events.progress(e->self->events.context);
}

/* Execute calls up to that number; waits: else as far as it goes. The lock is held, and given up meanwhile. */
static void
drive(struct engine *e, uint64_t number, bool waits)
{
	bool moved = true;
	e->driven = true;
	while (e->first && e->n_done < number && e->self->error.code == blinkSuccess && (moved || waits)) {
		struct call *call = e->first;
		pthread_mutex_unlock(&e->self->lock);
		moved = progress_call(e, call);
		bool stopped = atomic_load(&e->self->stop);
		if (!moved && waits && !stopped)
			await(e, call);
		else if (!moved && !waits && !stopped)
			moved = look_shortly(e, call);
		pthread_mutex_lock(&e->self->lock);
		if (e->done)
			retire(e);
	}
	e->driven = false;
	pthread_cond_broadcast(&e->changed);
}

/* Work that peers depend on, or calls that nobody waits for, is the worker's. */
static void
kick_worker(struct engine *e)
{
	bool depends = e->first && e->self->error.code == blinkSuccess && !e->driven;
	bool one = depends && (e->first->exchanges_counts ? e->first->next : e->first) == e->last;
	if (one && e->begun && e->first->n_messages == 0)
		depends = forwards(e, e->first);
	if (depends && e->has_worker) {
		e->kicked = true;
		pthread_cond_signal(&e->work);
	}
}

static void *
work(void *engine)
{
	struct engine *e = engine;
	char text[96];
	if (e->self->pins) {
		pin_thread(e->self->local_index, e->self->n_local, text, sizeof text);
		debug_say(DEBUG_INFO, e->self->rank, "worker: %s", text);
	}
	pthread_mutex_lock(&e->self->lock);
	while (!e->quit) {
		if (e->kicked && e->first && !e->driven && e->self->error.code == blinkSuccess) {
			e->kicked = false;
			drive(e, UINT64_MAX, true);
		} else {
			pthread_cond_wait(&e->work, &e->self->lock);
		}
	}
	pthread_mutex_unlock(&e->self->lock);
	return NULL;
}

int
engine_submit(void *of, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	struct engine *e = of;
	(void)stream;
	pthread_mutex_lock(&e->self->lock);
	if (e->self->error.code != blinkSuccess) {
		*err = e->self->error;
		pthread_mutex_unlock(&e->self->lock);
		call_free(call);
		return err->code;
	}
	call->number = atomic_load_explicit(&e->n_made, memory_order_relaxed) + 1;
	atomic_store_explicit(&e->n_made, call->number, memory_order_relaxed);
	call->next = NULL;
	if (e->last)
		e->last->next = call;
	else
		e->first = call;
	e->last = call;
	if (e->first == call && !e->driven)
		drive(e, e->n_made, false);
	kick_worker(e);
	pthread_mutex_unlock(&e->self->lock);
	return blinkSuccess;
}

int
engine_wait(void *of, uint64_t number, bool waits, struct blink_error *err)
{
	struct engine *e = of;
	uint64_t until = number ? number : atomic_load(&e->n_made);
	bool tried = false;
	if (atomic_load_explicit(&e->n_done, memory_order_acquire) >= until && !atomic_load(&e->self->stop))
		return blinkSuccess;
	pthread_mutex_lock(&e->self->lock);
	while (e->n_done < until && e->self->error.code == blinkSuccess && (waits || !tried)) {
		tried = true;
		if (!e->driven)
			drive(e, until, waits);
		else if (waits)
			pthread_cond_wait(&e->changed, &e->self->lock);
	}
	/* After an error, too, the caller's buffers are its own again: nobody moves data any more, nor does the net. */
	while (e->self->error.code != blinkSuccess && e->driven && waits)
		pthread_cond_wait(&e->changed, &e->self->lock);
	kick_worker(e);
	int code = blinkSuccess;
	if (e->self->error.code != blinkSuccess && e->driven) {
		code = blinkInProgress;
	} else if (e->n_done < until || (number == 0 && e->self->error.code != blinkSuccess)) {
		*err = e->self->error;
		code = e->self->error.code != blinkSuccess ? e->self->error.code : blinkInProgress;
	}
	pthread_mutex_unlock(&e->self->lock);
	if (code != blinkSuccess && code != blinkInProgress && e->self->net)
		e->self->net->abandon(e->self->net_handle);
	return code;
}

uint64_t
engine_last_call(void *of)
{
	return atomic_load(&((struct engine *)of)->n_made);
}

/* ---- open and close ---- */

int
engine_open(struct engine *e, bool worker, struct blink_error *err)
{
	e->sent = calloc((size_t)e->self->n_ranks, sizeof *e->sent);
	e->received = calloc((size_t)e->self->n_ranks, sizeof *e->received);
	pthread_mutex_init(&e->net_lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	pthread_cond_init(&e->work, NULL);
	e->flat.operand = calloc((size_t)e->self->n_ranks, sizeof *e->flat.operand);
	if (!e->sent || !e->received || !e->flat.operand)
		return set_error_memory(err);
	int failed = worker ? start_thread(&e->worker, WORKER_STACK, work, e) : 0;
	if (failed)
		return set_error(err, blinkSystemError, "a thread: %s", strerror(failed));
	e->has_worker = worker;
	return blinkSuccess;
}

void
engine_stop(void *of)
{
	struct engine *e = of;
	if (!e->has_worker)
		return;
	pthread_mutex_lock(&e->self->lock);
	e->quit = true;
	atomic_store(&e->self->stop, 1);
	pthread_cond_broadcast(&e->work);
	pthread_mutex_unlock(&e->self->lock);
	bell_ring_always(e->bell);
	pthread_join(e->worker, NULL);
	e->has_worker = false;
}

void
engine_close(struct engine *e)
{
	while (e->first) {
		struct call *next = e->first->next;
		call_free(e->first);
		e->first = next;
	}
	for (int r = 0; r < e->self->n_ranks && e->peer; r++)
		if (e->peer[r].mine && !e->peer[r].theirs)
			peer_close(&e->peer[r]);
	free(e->peer);
	free(e->sent);
	free(e->received);
	free(e->flat.operand);
	free(e->kept);
	free(e->exchange_memory);
	free(e->mirror);
	for (struct outgrown *next; e->outgrown; e->outgrown = next) {
		next = e->outgrown->next;
		free(e->outgrown->mirror);
		free(e->outgrown);
	}
	free(e->left);
	for (int i = 0; i < CALLS; i++)
		free(e->pending[i]);
}
