/* The calls of a rank: who executes them, how it waits, and how it ends.
 *
 * One thread at a time drives the engine. A call is begun by the thread that makes it, as far as it goes without
 * waiting: a small message often needs no more, and nobody is woken. What is left is done by whoever waits for it, or
 * by the worker, which sleeps while others drive. So the thread that waits for a result is the one that peers wake.
 *
 * A thread that cannot go on looks at its flags a few times; where ranks share CPUs, it gives way to others in between.
 * Then it announces its sleep, looks once more, and sleeps on its bell: for the one flag that it needs if it is one, so
 * that other flags do not wake it in vain. It wakes up from time to time to see whether its patience is over. */
#include "debug.h"
#include "engine/engine.h"
#include "engine/pin.h"
#include "error.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKER_STACK = 256 << 10 };

/* How often a thread gives way before it sleeps, and how many waits go without after a turn that took long. */
enum { TURNS = 64, REST_LEAST = 16, REST_MOST = 1024 };

/* ns: a turn of others that is long. */
#define TURN_NS ((int64_t)500000)

/* ns: a sleep that no bell ends; what a peer may be gone before it counts; the longest patience before a deadline. */
#define SLEEP_NS ((int64_t)100000000)
#define GONE_NS ((int64_t)250000000)
#define PATIENCE_NS ((int64_t)2000000000)

void
call_free(struct call *call)
{
	while (call->message) {
		struct message *next = call->message->next;
		free(call->message);
		call->message = next;
	}
	free(call);
}

/* ---- errors ---- */

void
engine_fail(struct engine *e, int code, const char *text)
{
	pthread_mutex_lock(&e->lock);
	set_error(&e->error, code, "%s", text);
	atomic_store(&e->stop, 1);
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	bell_ring_always(e->bell);
}

/* Once the caller sees it, it may leave, and the others would take that for the reason. */
void
engine_fail_here(struct engine *e, const struct blink_error *err, int culprit)
{
	e->events.failed(e->events.context, err, culprit);
	engine_fail(e, err->code, err->text);
}

void
engine_peer_gone(struct engine *e, int rank, const char *reason)
{
	struct peer *peer = &e->peer[rank];
	pthread_mutex_lock(&e->lock);
	if (!peer->gone && (peer->gone = strdup(reason)))
		atomic_store(&peer->gone_at, now_ns());
	pthread_mutex_unlock(&e->lock);
	bell_ring_always(e->bell);
}

/* ---- drive ---- */

static void
describe(struct engine *e, const struct call *call)
{
	struct rank_status now = { .calls = e->collective, .signature = e->signature, .before = e->signature_before,
	    .in_call = 1, .awaits = -1 };
	if (call->n_messages > 0)
		snprintf(now.text, sizeof now.text, "%d sends and receives", (int)call->n_messages);
	else
		call_describe(call, now.text, sizeof now.text);
	pthread_mutex_lock(&e->lock);
	e->doing = now;
	pthread_mutex_unlock(&e->lock);
}

void
engine_status(struct engine *e, struct rank_status *out)
{
	pthread_mutex_lock(&e->lock);
	*out = e->doing;
	pthread_mutex_unlock(&e->lock);
	out->awaits = atomic_load(&e->awaits);
	out->shortage = atomic_load(&e->shortage);
}

/* A call of the library's own, to be executed before the first. */
static bool
is_preceded(struct engine *e, struct call *call, struct blink_error *err)
{
	struct call *before = NULL;
	if (call->n_messages > 0 || !e->events.begins
	    || e->events.begins(e->events.context, call, &before, err) != blinkSuccess || !before)
		return false;
	pthread_mutex_lock(&e->lock);
	before->number = call->number - 1;
	before->next = call;
	e->first = before;
	pthread_mutex_unlock(&e->lock);
	return true;
}

static int
begin(struct engine *e, struct call *call, struct blink_error *err)
{
	e->deadline = now_ns() + e->timeout;
	if (err->code != blinkSuccess)
		return err->code;
	if (call->n_messages > 0)
		messages_begin(e, call, err);
	else if (e->events.plan(e->events.context, call, &call->plan, err) == blinkSuccess)
		collective_begin(e, call, err);
	if (err->code == blinkSuccess)
		describe(e, call);
	e->begun = true;
	return err->code;
}

/* The first call is done. */
static void
end(struct engine *e, struct call *call, struct blink_error *err)
{
	if (call->n_messages == 0)
		collective_end(e, call, err);
	if (call->n_messages == 0 && e->events.ended)
		e->events.ended(e->events.context, call);
	e->begun = false;
	pthread_mutex_lock(&e->lock);
	e->doing.in_call = 0;
	e->first = call->next;
	if (!e->first)
		e->last = NULL;
	e->n_done = call->number;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
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
	if (done && err->code == blinkSuccess)
		end(e, call, err);
	if (err->code == blinkSuccess)
		return moved || done;
failed:
	/* Messages that do not fit together: the text names both ranks. */
	engine_fail_here(e, err, err->code == blinkMismatch ? messages_await(call) : -1);
	return false;
}

/* ---- wait ---- */

/* What the current call waits for: the bell's state, and the peer in e->awaits. */
static uint32_t
sleep_for(struct engine *e, const struct call *call)
{
	int peer = -1;
	uint32_t flag = 0, state = BELL_ANY;
	if (call->n_messages > 0)
		peer = messages_await(call);
	else if (collective_awaits(e, &peer, &flag) && e->peer[peer].theirs)
		state = BELL_FLAG + flag;
	atomic_store_explicit(&e->awaits, peer, memory_order_relaxed);
	return state;
}

/* How long to wait for a better reason when a peer has gone: most leave because the hub told them of a failure. Its
 * message is on its way to this rank, too, but a thread of this process needs a CPU to read it. */
static int64_t
grace(const struct engine *e)
{
	return e->timeout / 2 < GONE_NS ? e->timeout / 2 : GONE_NS;
}

/* The hub is asked before the deadline, so that all ranks hear whom to blame when it comes. */
static void
check_patience(struct engine *e, bool *asked)
{
	struct blink_error err = { 0 };
	int64_t now = now_ns(), patience = e->timeout / 4 < PATIENCE_NS ? e->timeout / 4 : PATIENCE_NS;
	int peer = atomic_load(&e->awaits);
	if (!*asked && now >= e->deadline - patience) {
		e->events.stuck(e->events.context, e->deadline, patience);
		*asked = true;
	}
	int64_t gone_at = peer >= 0 ? atomic_load(&e->peer[peer].gone_at) : 0;
	if (gone_at != 0 && now > gone_at + grace(e)) {
		set_error(&err, blinkRemoteError, "%s", e->peer[peer].gone);
		engine_fail_here(e, &err, peer);
	}
}

static int64_t
longest_sleep(const struct engine *e, bool asked)
{
	int64_t now = now_ns(), patience = e->timeout / 4 < PATIENCE_NS ? e->timeout / 4 : PATIENCE_NS;
	int64_t left = asked ? SLEEP_NS : e->deadline - patience - now;
	int peer = atomic_load(&e->awaits);
	if (peer >= 0 && atomic_load(&e->peer[peer].gone_at) != 0 && left > grace(e) / 8)
		left = grace(e) / 8;
	return left < 100000 ? 100000 : left < SLEEP_NS ? left : SLEEP_NS;
}

static bool
goes_on(struct engine *e, struct call *call)
{
	return progress_call(e, call) || atomic_load_explicit(&e->stop, memory_order_relaxed);
}

/* Looks at flags, without a sleep. Where ranks share CPUs, the peer that this one waits for may wait for its CPU: to
 * give way is cheaper for both than a sleep and a wake-up. But to a program that computes a turn is a whole slice of
 * time, where a sleeper would run soon after it is woken: then the next waits go without. */
static bool
look(struct engine *e, struct call *call)
{
	for (int i = 0; i < e->spins; i++)
		if (goes_on(e, call))
			return true;
	if (e->spins > 0 || (e->rest > 0 && e->rest-- > 0))
		return false;
	int64_t before = now_ns();
	for (int i = 0; i < TURNS; i++) {
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
		bool moved = progress_call(e, call);
		if (moved || atomic_load(&e->stop)) {
			bell_wake_up(e->bell);
			break;
		}
		bell_sleep(e->bell, state, longest_sleep(e, asked));
		if (progress_call(e, call) || atomic_load(&e->stop))
			break;
		check_patience(e, &asked);
	}
	atomic_store_explicit(&e->awaits, -1, memory_order_relaxed);
	if (asked)
		e->events.progress(e->events.context);
}

/* Execute calls up to that number; waits: else as far as it goes. The lock is held, and given up meanwhile. */
static void
drive(struct engine *e, uint64_t number, bool waits)
{
	bool moved = true;
	e->driven = true;
	while (e->first && e->n_done < number && e->error.code == blinkSuccess && (moved || waits)) {
		struct call *call = e->first;
		pthread_mutex_unlock(&e->lock);
		moved = progress_call(e, call);
		if (!moved && waits && !atomic_load(&e->stop))
			await(e, call);
		pthread_mutex_lock(&e->lock);
	}
	e->driven = false;
	pthread_cond_broadcast(&e->changed);
}

/* Work that peers depend on, or calls that nobody waits for, is the worker's. */
static void
kick_worker(struct engine *e)
{
	bool depends = e->first && e->error.code == blinkSuccess && !e->driven;
	if (depends && e->begun && e->first == e->last && e->first->n_messages == 0)
		depends = collective_forwards(e, e->first);
	if (depends && e->has_worker) {
		e->kicked = true;
		pthread_cond_signal(&e->work);
	}
}

/* The lock is held, and given up meanwhile. */
static void
pin_worker(struct engine *e)
{
	char text[96];
	e->pins = false;
	pthread_mutex_unlock(&e->lock);
	pin_thread(e->local_index, e->n_local, text, sizeof text);
	debug_say(DEBUG_INFO, e->rank, "worker: %s", text);
	pthread_mutex_lock(&e->lock);
}

void
engine_pin(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->pins = true;
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->lock);
}

static void *
work(void *engine)
{
	struct engine *e = engine;
	pthread_mutex_lock(&e->lock);
	while (!e->quit) {
		if (e->pins)
			pin_worker(e);
		if (e->kicked && e->first && !e->driven && e->error.code == blinkSuccess) {
			e->kicked = false;
			drive(e, UINT64_MAX, true);
		} else {
			pthread_cond_wait(&e->work, &e->lock);
		}
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

int
engine_submit(struct engine *e, struct call *call, struct blink_error *err)
{
	pthread_mutex_lock(&e->lock);
	if (e->error.code != blinkSuccess) {
		*err = e->error;
		pthread_mutex_unlock(&e->lock);
		call_free(call);
		return err->code;
	}
	call->number = ++e->n_made;
	call->next = NULL;
	if (e->last)
		e->last->next = call;
	else
		e->first = call;
	e->last = call;
	if (e->first == call && !e->driven)
		drive(e, e->n_made, false);
	kick_worker(e);
	pthread_mutex_unlock(&e->lock);
	return blinkSuccess;
}

int
engine_wait(struct engine *e, uint64_t number, bool waits, struct blink_error *err)
{
	pthread_mutex_lock(&e->lock);
	uint64_t until = number ? number : e->n_made;
	bool tried = false;
	while (e->n_done < until && e->error.code == blinkSuccess && (waits || !tried)) {
		tried = true;
		if (!e->driven)
			drive(e, until, waits);
		else if (waits)
			pthread_cond_wait(&e->changed, &e->lock);
	}
	/* After an error, too, the caller's buffers are its own again: nobody moves data any more, nor does the net. */
	while (e->error.code != blinkSuccess && e->driven && waits)
		pthread_cond_wait(&e->changed, &e->lock);
	kick_worker(e);
	int code = blinkSuccess;
	if (e->error.code != blinkSuccess && e->driven) {
		code = blinkInProgress;
	} else if (e->n_done < until || (number == 0 && e->error.code != blinkSuccess)) {
		*err = e->error;
		code = e->error.code != blinkSuccess ? e->error.code : blinkInProgress;
	}
	pthread_mutex_unlock(&e->lock);
	if (code != blinkSuccess && code != blinkInProgress && e->net)
		e->net->abandon(e->net_handle);
	return code;
}

uint64_t
engine_last_call(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	uint64_t n = e->n_made;
	pthread_mutex_unlock(&e->lock);
	return n;
}

void
engine_error(struct engine *e, struct blink_error *out)
{
	pthread_mutex_lock(&e->lock);
	*out = e->error;
	pthread_mutex_unlock(&e->lock);
}

/* ---- open and close ---- */

/* Signals are for the threads of the calling program. */
static int
start_worker(struct engine *e)
{
	pthread_attr_t small;
	sigset_t all, before;
	int failed = pthread_attr_init(&small);
	if (failed)
		return failed;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_attr_setstacksize(&small, WORKER_STACK);
	if (!failed)
		failed = pthread_create(&e->worker, &small, work, e);
	/* Thread-local data of the program that do not fit into it. */
	if (failed == EINVAL)
		failed = pthread_create(&e->worker, NULL, work, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&small);
	return failed;
}

int
engine_open(struct engine *e, bool worker, struct blink_error *err)
{
	e->sent = calloc((size_t)e->n_ranks, sizeof *e->sent);
	e->received = calloc((size_t)e->n_ranks, sizeof *e->received);
	atomic_store(&e->awaits, -1);
	e->doing.awaits = -1;
	snprintf(e->doing.text, sizeof e->doing.text, "no call yet");
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->net_lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	pthread_cond_init(&e->work, NULL);
	if (!e->sent || !e->received)
		return set_error_memory(err);
	int failed = worker ? start_worker(e) : 0;
	if (failed)
		return set_error(err, blinkSystemError, "a thread: %s", strerror(failed));
	e->has_worker = worker;
	return blinkSuccess;
}

static void
free_memory(struct engine *e)
{
	while (e->first) {
		struct call *next = e->first->next;
		call_free(e->first);
		e->first = next;
	}
	for (int r = 0; r < e->n_ranks && e->peer; r++)
		free(e->peer[r].gone);
	free(e->sent);
	free(e->received);
	free(e->kept);
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

void
engine_stop(struct engine *e)
{
	if (!e->has_worker)
		return;
	pthread_mutex_lock(&e->lock);
	e->quit = true;
	atomic_store(&e->stop, 1);
	pthread_cond_broadcast(&e->work);
	pthread_mutex_unlock(&e->lock);
	bell_ring_always(e->bell);
	pthread_join(e->worker, NULL);
	e->has_worker = false;
}

void
engine_close(struct engine *e, bool forked)
{
	if (!forked)
		engine_stop(e);
	free_memory(e);
}
