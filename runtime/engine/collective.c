/* Collectives: a rank's tasks, chunk by chunk, in whatever order their peers allow.
 *
 * Every task goes through its chunks in order, and waits for the flags of its sources and for a free slot of its ring.
 * Tasks do not wait for each other. The lowest chunk of all ranks that is not done always has a task that can go on,
 * since edges of a tree form no circle and a slot waits for an earlier chunk only; so nothing blocks for ever unless a
 * peer stops.
 *
 * Chunks are the same on all ranks of a call: an eighth of the longest segment, within limits that keep slots in the
 * caches, and such that the rings of the rank that has the most of them fit into half an arena. A ring has as many
 * slots as caches hold, so that who publishes seldom waits for readers. */
#include "engine/engine.h"
#include "support/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	CHUNKS_WANTED = 8,
	CHUNK_LEAST = 16 << 10,
	CHUNK_MOST = 256 << 10,
	RINGS_BYTES = 4 << 20,		/* of all rings of a rank, unless they have SLOTS_LEAST slots each */
	OWN_COPY = 256 << 10,		/* of its own block, in one gap */
	PAGE = 4096
};

/* Buffers that are larger do not stay in caches: what is written there is not read again soon. */
#define STREAMING_BYTES ((size_t)4 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* ---- begin ---- */

static int64_t
floor_mul(Frac f, int64_t n)
{
	return (int64_t)((Wide)f.num * n / f.den);
}

static int64_t
round_up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

/* part_end: elements of a block at which each part ends. */
static int
choose_chunk(struct engine *e, const struct call *call, const int64_t *part_end, struct blink_error *err)
{
	const RankProgram *prog = call->plan->prog;
	int64_t longest = 0, size = (int64_t)e->size, rings = prog->rings_max ? prog->rings_max : 1;
	int64_t most = (int64_t)HALF_BYTES / rings / SLOTS_LEAST / LINE * LINE;
	for (int i = 0; i < prog->n_parts; i++) {
		int64_t n = part_end[i] - (i > 0 ? part_end[i - 1] : 0);
		int64_t segment = floor_mul(prog->longest[i], n) + 1;
		longest = segment > longest ? segment : longest;
	}
	int64_t bytes = e->self->chunk_bytes;
	if (bytes == 0) {
		bytes = longest * size / CHUNKS_WANTED;
		bytes = bytes < CHUNK_LEAST ? CHUNK_LEAST : bytes > CHUNK_MOST ? CHUNK_MOST : bytes;
	}
	bytes = round_up(bytes < longest * size ? bytes : longest * size, LINE);
	bytes = bytes < most ? bytes : most;
	if (bytes < size || longest / (bytes / size) >= CHUNKS_MAX)
		return set_error(err, blinkLimit, "%s: %lld elements through %d rings of this schedule: too many",
		    collective_name(call->coll), (long long)call->count, prog->rings_max);
	e->slot_bytes = bytes;
	e->chunk = bytes / size;
	int64_t slots = RINGS_BYTES / rings / bytes, chunks = (longest + e->chunk - 1) / e->chunk;
	slots = slots < SLOTS_LEAST ? SLOTS_LEAST : slots > SLOTS_MOST ? SLOTS_MOST : slots;
	e->slots = (int)(slots < chunks ? slots : chunks);
	e->small = (size_t)(rings * e->slots * bytes) <= SMALL_BYTES;
	return blinkSuccess;
}

/* The window that has these bytes of this rank: its number; 0: none. */
static int
window_of(const struct engine *e, const char *at, size_t bytes)
{
	for (int w = 1; w <= WINDOWS; w++) {
		const struct window *window = atomic_load_explicit(&e->window[w], memory_order_acquire);
		if (window && at >= window->own && at + bytes <= window->own + window->bytes)
			return w;
	}
	return 0;
}

/* May readers take what a task publishes from the caller's buffers? Its own input as it is, or the value once it has
 * come to the output: where the net carries it, or where every reader has the memory mapped, of segments of several
 * chunks. Of one chunk a copy costs less than what follows: the call ends only when all have read. Nothing writes there
 * until they have: in a reduction in place, what overwrites an input descends from it. */
static void
place_direct(const struct engine *e, const struct call *call, struct plan_task *t)
{
	const RankTask *task = t->task;
	const Extent *x = &call->plan->prog->extent[task->extent];
	bool as_it_is = task->own && task->n_from == 0 && !call->reduction.scales
	    && !(call->reduction.divide && task->complete);
	bool local = false;
	int window = 0;
	const char *at = NULL;
	t->direct = NULL;
	t->where = 0;
	if (as_it_is)
		at = e->input + (size_t)(x->send_block * call->count + t->first) * e->size;
	else if (task->output)
		at = e->output + (size_t)(x->recv_block * call->count + t->first) * e->size;
	for (int i = 0; i < task->n_to; i++)
		local = local || t->to[i].ready;
	if (local && at && t->n_chunks > 1)
		window = window_of(e, at, (size_t)t->n * e->size);
	if (task->n_to == 0 || !at || (local && !window))
		return;
	t->direct = at;
	if (window)
		t->where = WHERE(window, at - atomic_load(&e->window[window])->own);
}

static void
place_task(const struct engine *e, const struct call *call, struct plan_task *t, const int64_t *part_end)
{
	const struct plan *plan = call->plan;
	const Extent *x = &plan->prog->extent[t->task->extent];
	int64_t part = x->part > 0 ? part_end[x->part - 1] : 0, n = part_end[x->part] - part;
	t->first = part + floor_mul(x->begin, n);
	t->n = part + floor_mul(x->end, n) - t->first;
	t->chunk = 0;
	t->n_chunks = (t->n + e->chunk - 1) / e->chunk;
	place_direct(e, call, t);
}

/* Pages of the arena get their memory here, where there is an error to return, and not by a write, where there is a
 * signal. A kernel that cannot do so gives memory when it is written. */
static int
populate(char *memory, size_t *populated, size_t bytes, struct blink_error *err)
{
	size_t from = *populated, to = (bytes + PAGE - 1) / PAGE * PAGE;
	if (to <= from)
		return blinkSuccess;
	if (madvise(memory + from, to - from, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		return set_error(err, blinkOutOfMemory, "%zu bytes of shared memory: %s", to, strerror(errno));
	*populated = to;
	return blinkSuccess;
}

/* The place of the call's rings: the same on all ranks, since all make the same calls. */
static int
take_place(struct engine *e, const RankProgram *prog, struct blink_error *err)
{
	int place = e->small ? (int)(e->collective % CALLS) : CALLS + (int)(e->n_large++ % 2);
	e->rings = e->arena + (e->small ? (size_t)place * SMALL_BYTES
	    : CALLS * SMALL_BYTES + (size_t)(place - CALLS) * HALF_BYTES);
	size_t bytes = (size_t)(prog->n_rings * e->slots) * (size_t)e->slot_bytes;
	return populate(e->rings, &e->populated[place], bytes, err);
}

/* It at least doubles, so that those that it has outgrown are together no larger than it is. With the lock. */
static bool
grow_mirror(struct engine *e, size_t need)
{
	struct outgrown *old = e->mirror ? malloc(sizeof *old) : NULL;
	size_t bytes = need > 2 * e->mirror_bytes ? need : 2 * e->mirror_bytes;
	char *mirror = old || !e->mirror ? aligned_alloc(LINE, bytes) : NULL;
	if (!mirror) {
		free(old);
		return false;
	}
	if (old) {
		*old = (struct outgrown){ e->outgrown, e->mirror };
		e->outgrown = old;
	}
	e->mirror = mirror;
	e->mirror_bytes = bytes;
	return true;
}

/* Where the net puts chunks of this call. Of the call before nothing is under way that an orderly peer has sent. */
static int
open_mirror(struct engine *e, const RankProgram *prog, struct blink_error *err)
{
	size_t need = (size_t)(e->lanes->n_mirrors * e->slots) * (size_t)e->slot_bytes;
	pthread_mutex_lock(&e->net_lock);
	bool failed = need > e->mirror_bytes && !grow_mirror(e, need);
	e->net_lanes = failed ? NULL : e->lanes;
	e->net_collective = e->collective;
	e->net_slots = e->slots;
	e->net_slot_bytes = e->slot_bytes;
	pthread_mutex_unlock(&e->net_lock);
	if (failed)
		return set_error(err, blinkOutOfMemory, "no memory for %zu bytes from other servers", need);
	for (int i = 0; i < prog->n_peers; i++)
		if (!e->peer[prog->peer[i]].theirs)
			e->self->net->resume(e->self->net_handle, prog->peer[i]);
	return blinkSuccess;
}

/* A copy of the input where trees would overwrite it; else the rank's own block, which no tree carries, waits to be
 * copied. */
static int
take_buffers(struct engine *e, const struct call *call, struct blink_error *err)
{
	struct blink_layout l = blink_layout_at((int)call->coll, call->root, e->self->n_ranks, e->self->rank);
	size_t block = (size_t)call->count * e->size;
	e->input = l.send ? call->send : NULL;
	e->output = l.recv ? call->recv : NULL;
	e->own_left = 0;
	if (!e->input || !e->output || block == 0)
		return blinkSuccess;
	const char *from = e->input + (size_t)l.own_send * block;
	char *to = e->output + (size_t)l.own_recv * block;
	if (from != to) {
		if (!collective_reduces(call->coll)) {
			e->own_from = from;
			e->own_to = to;
			e->own_left = block;
		}
	} else if (call->plan->prog->keep_input) {
		size_t bytes = (size_t)l.send * block;
		if (bytes > e->kept_bytes) {
			free(e->kept);
			e->kept = malloc(bytes);
			e->kept_bytes = e->kept ? bytes : 0;
		}
		if (!e->kept)
			return set_error(err, blinkOutOfMemory, "no memory for a copy of %zu bytes sent in place",
			    bytes);
		memcpy(e->kept, e->input, bytes);
		e->input = e->kept;
	}
	/* One rank alone: no tree, and a reduction of one value. */
	if (e->self->n_ranks == 1 && collective_reduces(call->coll))
		reduction_run(&call->reduction, to, NULL, from, NULL, 0, (size_t)call->count, true, false);
	return blinkSuccess;
}

int
collective_begin(struct engine *e, struct call *call, struct blink_error *err)
{
	int64_t part_end[BLINK_PARTS_MAX];
	const struct plan *plan = call->plan;
	const RankProgram *prog = plan->prog;
	e->lanes = plan->lanes;
	e->collective++;
	e->size = call->reduction.size;
	reduction_read_scalar(&call->reduction);
	blink_part_ends(&plan->parts, call->count, (int64_t)e->size, part_end);
	if (choose_chunk(e, call, part_end, err) != blinkSuccess || take_buffers(e, call, err) != blinkSuccess
	    || take_place(e, prog, err) != blinkSuccess)
		return err->code;
	if (prog->n_tasks > e->left_capacity) {
		int *left = realloc(e->left, (size_t)prog->n_tasks * sizeof *left);
		if (!left)
			return set_error_memory(err);
		e->left = left;
		e->left_capacity = prog->n_tasks;
	}
	e->n_left = 0;
	for (int t = 0; t < prog->n_tasks; t++) {
		place_task(e, call, &e->lanes->task[t], part_end);
		if (e->lanes->task[t].n_chunks > 0)
			e->left[e->n_left++] = t;
	}
	e->streaming = (size_t)call->count * e->size > STREAMING_BYTES;
	e->signature_before = e->signature;
	e->signature = call_signature(call, e->self->chunk_bytes, e->collective);
	return e->self->net ? open_mirror(e, prog, err) : blinkSuccess;
}

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

/* A peer in another call than this one: the hub finds out which rank differs, and the engine fails when it says so. */
static void
suspect(struct engine *e)
{
	if (!e->suspects)
		e->self->events.stuck(e->self->events.context, now_ns(), 0);
	e->suspects = true;
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
slot_of(const struct engine *e, const struct plan_lane *from, int64_t chunk)
{
	size_t slot = (size_t)e->slot_bytes, slots = (size_t)e->slots * slot, at = (size_t)(chunk % e->slots) * slot;
	if (from->mirror >= 0)
		return e->mirror + (size_t)from->mirror * slots + at;
	if (from->direct)
		return from->direct + (size_t)(chunk * e->chunk) * e->size;
	return e->peer[from->peer].arena + (e->rings - e->arena) + (size_t)from->ring * slots + at;
}

/* At the first chunk: where a publisher's chunks of this call lie. */
static void
find_source(const struct engine *e, struct plan_lane *from)
{
	uint64_t where = atomic_load_explicit(&from->ready->first[e->collective % CALLS].where, memory_order_relaxed);
	int number = WHERE_WINDOW(where);
	const struct window *window = number > 0 && number <= WINDOWS ? atomic_load(&e->window[number]) : NULL;
	from->direct = window && from->mirror < 0 ? window->peer[from->peer] + WHERE_OFFSET(where) : NULL;
}

static void
move_chunk(struct engine *e, const struct call *call, struct plan_task *t)
{
	const RankTask *task = t->task;
	const Extent *x = &call->plan->prog->extent[task->extent];
	int64_t at = t->first + t->chunk * e->chunk, left = t->n - t->chunk * e->chunk;
	size_t n = (size_t)(left < e->chunk ? left : e->chunk), bytes = n * e->size;
	const void **operand = e->lanes->operand;
	char *slot = NULL, *output = NULL;
	if (task->ring >= 0 && !t->direct)
		slot = e->rings + (size_t)(task->ring * e->slots + t->chunk % e->slots) * (size_t)e->slot_bytes;
	if (task->output)
		output = e->output + (size_t)(x->recv_block * call->count + at) * e->size;
	for (int i = 0; i < task->n_from; i++)
		operand[i] = slot_of(e, &t->from[i], t->chunk);
	const void *own = task->own ? e->input + (size_t)(x->send_block * call->count + at) * e->size : operand[0];
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
	const char *published = t->direct ? t->direct + (size_t)(t->chunk * e->chunk) * e->size : slot;
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
			suspect(e);
			return false;
		}
		find_source(e, &t->from[i]);
	}
	move_chunk(e, call, t);
	return true;
}

/* What readers have still to do before the call may publish: of the call that had its small place before; for a large
 * call of all but the one before, which has the other half. NULL: nothing that is remembered, or nothing is
 * published. */
static const struct pending *
pending_of(const struct engine *e)
{
	uint64_t k = e->collective;
	if (e->lanes->n_to == 0)
		return NULL;
	for (uint64_t ago = CALLS; ago > (e->small ? CALLS - 1 : 1); ago--) {
		int n = e->n_pending[(k - ago) % CALLS];
		if (n > 0)
			return &e->pending[(k - ago) % CALLS][n - 1];
	}
	return NULL;
}

static bool
place_is_free(struct engine *e)
{
	const struct pending *p;
	while ((p = pending_of(e))) {
		if (!flag_reached(p->done, p->value))
			return false;
		e->n_pending[(p->value >> 24) % CALLS]--;
	}
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
	if (!place_is_free(e))
		return copy_own(e);
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

/* Remember what readers have still to do before its place is written again. */
int
collective_end(struct engine *e, struct blink_error *err)
{
	int at = (int)(e->collective % CALLS), n = e->n_pending[at] + e->lanes->n_to;
	if (n > e->pending_capacity[at]) {
		struct pending *pending = realloc(e->pending[at], (size_t)n * sizeof *pending);
		if (!pending)
			return set_error_memory(err);
		e->pending[at] = pending;
		e->pending_capacity[at] = n;
	}
	for (int t = 0; t < e->first->plan->prog->n_tasks; t++) {
		const struct plan_task *task = &e->lanes->task[t];
		for (int i = 0; i < task->task->n_to && task->n_chunks > 0; i++)
			e->pending[at][e->n_pending[at]++] = (struct pending){ task->to[i].done,
			    FLAG(e->collective, task->n_chunks), task->to[i].peer, task->to[i].lane };
	}
	return blinkSuccess;
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
collective_awaits(const struct engine *e, int *peer, uint32_t *flag)
{
	bool for_done = true;
	const struct pending *p = pending_of(e);
	if (p) {
		*peer = p->peer;
		*flag = flag_number(p->peer, FLAG_DONE + p->lane);
		return true;
	}
	*peer = -1;
	if (e->n_left == 0)
		return false;
	const struct plan_task *last = &e->lanes->task[e->left[e->n_left - 1]];
	const struct plan_lane *lane = awaited(e, last, &for_done);
	if (!lane)
		return false;
	*peer = lane->peer;
	*flag = flag_number(lane->peer, (for_done ? FLAG_DONE : 0) + lane->lane);
	return e->n_left == 1 || only_takes(e);
}

bool
collective_forwards(const struct engine *e)
{
	for (int i = 0; i < e->n_left; i++)
		if (e->lanes->task[e->left[i]].task->n_to > 0)
			return true;
	return pending_of(e);
}
