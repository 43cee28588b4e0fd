/* Collectives: a rank's tasks, chunk by chunk, in whatever order their peers allow.
 *
 * Every task goes through its chunks in order, and waits for the flags of its sources and for a free slot of its ring.
 * Tasks do not wait for each other. The lowest chunk of all ranks that is not done always has a task that can go on,
 * since edges of a tree form no circle and a slot waits for an earlier chunk only; so nothing blocks for ever unless a
 * peer stops. */
#include "engine/engine.h"

#include <string.h>

enum { OWN_COPY = 256 << 10 };		/* of its own block, in one gap */

/* ---- flags ---- */

void
publish(struct engine *e, const struct plan_lane *to, int64_t chunks, uint64_t where, const void *data,
    size_t bytes)
{
	uint64_t value = FLAG(e->collective, chunks);
	if (to->ready) {
		if (chunks == 1) {
			struct first *first = &to->ready->first[e->collective % CALLS];
			atomic_store_explicit(&first->signature, e->signature, memory_order_relaxed);
			atomic_store_explicit(&first->where, where, memory_order_relaxed);
		}
		atomic_store_explicit(&to->ready->value, value, memory_order_release);
		bell_ring(e->peer[to->peer].bell, flag_number(e->self->rank, to->lane));
	} else {
		struct net_message m = { (uint32_t)to->lane, 0, value, e->signature, bytes };
		rank_send(e->self, to->peer, &m, data);
	}
}

void
release(struct engine *e, const struct plan_lane *from, int64_t chunks)
{
	uint64_t value = FLAG(e->collective, chunks);
	if (from->done) {
		atomic_store_explicit(from->done, value, memory_order_release);
		bell_ring(e->peer[from->peer].bell, flag_number(e->self->rank, FLAG_DONE + from->lane));
	} else {
		struct net_message m = { (uint32_t)from->lane | NET_DONE, 0, value, e->signature, 0 };
		rank_send(e->self, from->peer, &m, NULL);
	}
}

/* The signature has the number of the call in it, and was written before the flag: a publisher that is ahead without
 * having made this call has left another one here. */
static bool
signature_differs(const struct engine *e, const struct plan_lane *from)
{
	const _Atomic uint64_t *signature = &from->ready->first[e->collective % CALLS].signature;
	return atomic_load_explicit(signature, memory_order_relaxed) != e->signature;
}

/* ---- tasks ---- */

/* The first flag that keeps a task from its next chunk, or, after the last one, from its end; NULL: it can go on. */
static const struct plan_lane *
awaited(const struct engine *e, const struct plan_task *t, bool *for_done)
{
	bool ended = t->chunk == t->n_chunks;
	uint64_t ready = FLAG(e->collective, t->chunk + 1), done = FLAG(e->collective, t->chunk + 1 - e->slots);
	*for_done = false;
	for (int i = 0; i < t->task->n_from && !ended; i++)
		if (!flag_reached(&t->from[i].ready->value, ready))
			return &t->from[i];
	*for_done = true;
	if (ended)
		done = FLAG(e->collective, t->chunk);
	else if (t->chunk < e->slots)
		return NULL;
	/* Who reads in place needs no slot; a reader on another server has a ring that the net fills. */
	for (int i = 0; i < t->task->n_to; i++)
		if ((ended || !t->direct || !t->to[i].ready) && !flag_reached(t->to[i].done, done))
			return &t->to[i];
	return NULL;
}

/* All chunks are done; and if readers take them from the caller's memory, they have. */
static bool
ended(const struct engine *e, const struct plan_task *t)
{
	bool for_done;
	return t->chunk == t->n_chunks && (!t->direct || !awaited(e, t, &for_done));
}

static const char *
slot_of(const struct engine *e, const struct plan_task *t, const struct plan_lane *from)
{
	int64_t chunk = t->chunk;
	size_t slot = (size_t)e->slot_bytes, slots = (size_t)e->slots * slot, at = (size_t)(chunk % e->slots) * slot;
	if (from->mirror >= 0)
		return e->mirror + (size_t)from->mirror * slots + at;
	if (from->direct)
		return from->direct + (size_t)(chunk * t->each) * e->size;
	return e->peer[from->peer].arena + (e->rings - e->arena) + (size_t)from->ring * slots + at;
}

/* At the first chunk: where a publisher's chunks of this call lie. */
static void
find_source(const struct engine *e, struct plan_lane *from)
{
	uint64_t where = atomic_load_explicit(&from->ready->first[e->collective % CALLS].where, memory_order_relaxed);
	int number = WHERE_WINDOW(where);
	const struct window *window = number <= WINDOWS ? atomic_load(&e->window[number]) : NULL;
	from->direct = window && from->mirror < 0 ? window->peer[from->peer] + WHERE_OFFSET(where) : NULL;
}

static void
move_chunk(struct engine *e, const struct call *call, struct plan_task *t)
{
	const RankTask *task = t->task;
	const Extent *x = &call->plan->prog->extent[task->extent];
	int64_t at = t->first + t->chunk * t->each, left = t->n - t->chunk * t->each;
	size_t n = (size_t)(left < t->each ? left : t->each), bytes = n * e->size;
	const void **operand = e->lanes->operand;
	char *slot = NULL, *output = NULL;
	if (task->ring >= 0 && !t->direct)
		slot = e->rings + (size_t)(task->ring * e->slots + t->chunk % e->slots) * (size_t)e->slot_bytes;
	if (task->output)
		output = e->output + (size_t)(call_recv_at(call, x->recv_block) + at) * e->size;
	for (int i = 0; i < task->n_from; i++)
		operand[i] = slot_of(e, t, &t->from[i]);
	const void *own = operand[0];
	if (task->own)
		own = e->input + (size_t)(call_send_at(call, x->send_block) + at) * e->size;
	const void *const *others = task->own ? operand : operand + 1;
	int n_others = task->own ? task->n_from : task->n_from - 1;
	if (!output && !slot) {
		/* What it publishes is there already. */
	} else if (collective_reduces(call->coll) && (task->own || n_others > 0)) {
		struct reduction r = call->reduction;
		r.scales = r.scales && task->own;
		reduction_run(&r, output ? output : slot, output ? slot : NULL, own, others, n_others, n,
		    task->complete, e->streaming && output);
	} else {
		reduction_copy(output ? output : slot, output ? slot : NULL, own, bytes, e->streaming && output);
	}
	const char *published = t->direct ? t->direct + (size_t)(t->chunk * t->each) * e->size : slot;
	t->chunk++;
	for (int i = 0; i < task->n_from; i++)
		release(e, &t->from[i], t->chunk);
	for (int i = 0; i < task->n_to; i++)
		publish(e, &t->to[i], t->chunk, t->where, published, bytes);
}

static bool
advance(struct engine *e, const struct call *call, struct plan_task *t)
{
	bool for_done;
	if (awaited(e, t, &for_done))
		return false;
	for (int i = 0; i < t->task->n_from && t->chunk == 0; i++) {
		if (signature_differs(e, &t->from[i])) {
			e->suspects = true;
			return false;
		}
		find_source(e, &t->from[i]);
	}
	move_chunk(e, call, t);
	return true;
}

static bool
copy_own(struct engine *e)
{
	size_t n = e->own_left < OWN_COPY ? e->own_left : OWN_COPY;
	if (n == 0)
		return false;
	reduction_copy(e->own_to, NULL, e->own_from, n, e->streaming);
	e->own_from += n;
	e->own_to += n;
	e->own_left -= n;
	return true;
}

bool
collective_progress(struct engine *e, struct call *call)
{
	bool moved = false;
	if (e->is_flat)
		return flat_progress(e, call);
	if (!place_is_free(e))
		return copy_own(e);
	if (!e->announced)
		place_announce(e);
	for (int i = 0; i < e->n_left;) {
		struct plan_task *t = &e->lanes->task[e->left[i]];
		while (t->chunk < t->n_chunks && advance(e, call, t))
			moved = true;
		if (ended(e, t))
			memmove(&e->left[i], &e->left[i + 1], (size_t)(--e->n_left - i) * sizeof e->left[0]);
		else
			i++;
	}
	return moved || copy_own(e);
}

bool
collective_done(const struct engine *e)
{
	return e->n_left == 0 && e->own_left == 0;
}

int
collective_end(struct engine *e, struct blink_error *err)
{
	return e->is_flat ? blinkSuccess : place_remember(e, e->first->plan->prog, err);
}

/* Nobody waits for what is left of the call, not even for a slot: its flags may come in any order, and it does to sleep
 * for one of them after the other. */
static bool
only_takes(const struct engine *e)
{
	for (int i = 0; i < e->n_left; i++) {
		const struct plan_task *t = &e->lanes->task[e->left[i]];
		if (t->chunk < t->n_chunks && (t->task->n_to > 0 || t->n_chunks > e->slots))
			return false;
	}
	return true;
}

bool
collective_awaits(struct engine *e, int *peer, uint32_t *flag)
{
	bool for_done = true;
	if (place_awaits(e, peer, flag))
		return true;
	*peer = -1;
	if (e->n_left == 0)
		return false;
	if (e->is_flat) {
		*peer = flat_awaits(e);
		*flag = flag_number(*peer, FLAG_SLOT);
		return true;
	}
	const struct plan_task *last = &e->lanes->task[e->left[e->n_left - 1]];
	const struct plan_lane *lane = awaited(e, last, &for_done);
	if (!lane)
		return false;
	*peer = lane->peer;
	*flag = flag_number(lane->peer, (for_done ? FLAG_DONE : 0) + lane->lane);
	return e->n_left == 1 || only_takes(e);
}

bool
collective_forwards(struct engine *e)
{
	int peer;
	uint32_t flag;
	for (int i = 0; i < e->n_left && !e->is_flat; i++)
		if (e->lanes->task[e->left[i]].task->n_to > 0)
			return true;
	return place_awaits(e, &peer, &flag);
}
