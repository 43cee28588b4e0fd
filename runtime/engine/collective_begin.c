/* A collective begins: where its chunks, its rings and its buffers are.
 *
 * Chunks are the same on all ranks of a call (model/host_chunks.h): on one server an eighth of the longest segment,
 * within limits, such that the rings of the rank that has the most of them fit into half an arena. Over a network both
 * are other sizes (pace.c). */
#include "engine/engine.h"
#include "support/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	CHUNKS_SHARED = 16,		/* of fewer, each costs more than equal numbers of them bring */
	COPY_MOST = 512 << 10,		/* bytes of a segment that are copied sooner than a network answers */
	PAGE = 4096
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* part_end: elements of a block at which each part ends. */
static int
choose_chunk(struct engine *e, const struct call *call, const int64_t *part_end, struct blink_error *err)
{
	const RankProgram *prog = call->plan->prog;
	int64_t longest = 0, size = (int64_t)e->size, rings = prog->rings_max ? prog->rings_max : 1;
	for (int i = 0; i < prog->n_parts; i++) {
		int64_t n = part_end[i] - (i > 0 ? part_end[i - 1] : 0);
		int64_t segment = frac_floor_mul(prog->longest[i], n) + 1;
		longest = segment > longest ? segment : longest;
	}
	int64_t asked = e->self->chunk_bytes;
	if (asked == 0 && e->self->net)
		asked = pace_chunk(e, prog, longest * size);
	int64_t bytes = host_chunk_bytes(longest * size, rings, asked);
	if (bytes < size || longest / (bytes / size) >= CHUNKS_MAX)
		return set_error(err, blinkLimit, "%s: %lld elements through %d rings of this schedule: too many",
		    collective_name(call->coll), (long long)call->count, prog->rings_max);
	e->slot_bytes = bytes;
	e->chunk = bytes / size;
	int64_t slots = host_ring_slots(rings, bytes), chunks = (longest + e->chunk - 1) / e->chunk;
	if (e->self->net)
		slots = pace_slots(e, longest * size, bytes, slots);
	e->slots = (int)(slots < chunks ? slots : chunks);
	e->chunks = e->self->net && chunks >= CHUNKS_SHARED ? chunks : 0;
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
 * chunks. Of one chunk, or of a few over a network, a copy costs less than what follows: the call ends only when all
 * have read. Nothing writes there until they have: in a reduction in place, what overwrites an input descends from
 * it. */
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
		at = e->input + (size_t)(call_send_at(call, x->send_block) + t->first) * e->size;
	else if (task->output)
		at = e->output + (size_t)(call_recv_at(call, x->recv_block) + t->first) * e->size;
	for (int i = 0; i < task->n_to; i++)
		local = local || t->to[i].ready;
	if (local && at && t->n_chunks > 1)
		window = window_of(e, at, (size_t)t->n * e->size);
	bool copied = t->n_chunks <= e->slots && t->n * (int64_t)e->size <= COPY_MOST;
	if (task->n_to == 0 || !at || (!window && (local || copied)))
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
	int64_t uneven_end[BLINK_PARTS_MAX];
	if (call->uneven) {
		blink_part_ends(&plan->parts, call_block(call, plan->prog, x), (int64_t)e->size, uneven_end);
		part_end = uneven_end;
	}
	int64_t part = x->part > 0 ? part_end[x->part - 1] : 0, n = part_end[x->part] - part;
	t->first = part + frac_floor_mul(x->begin, n);
	t->n = part + frac_floor_mul(x->end, n) - t->first;
	t->chunk = 0;
	t->each = e->chunks ? pace_share(e, t->n, call->uneven) : e->chunk;
	t->n_chunks = (t->n + t->each - 1) / t->each;
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
take_place(struct engine *e, size_t bytes, struct blink_error *err)
{
	int place = e->small ? (int)(e->collective % CALLS) : CALLS + (int)(e->n_large++ % 2);
	e->rings = e->arena + (e->small ? (size_t)place * SMALL_BYTES
	    : CALLS * SMALL_BYTES + (size_t)(place - CALLS) * HALF_BYTES);
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
	const Extent own = { .send_block = l.own_send, .recv_block = l.own_recv };
	size_t block = (size_t)call_block(call, call->plan->prog, &own) * e->size;
	e->input = l.send ? call->send : NULL;
	e->output = l.recv ? call->recv : NULL;
	e->own_left = 0;
	if (!e->input || !e->output || block == 0)
		return blinkSuccess;
	const char *from = e->input + (size_t)call_send_at(call, l.own_send) * e->size;
	char *to = e->output + (size_t)call_recv_at(call, l.own_recv) * e->size;
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

static int
begin_flat(struct engine *e, const struct call *call, struct blink_error *err)
{
	e->small = true;
	e->flat.bytes = call->uneven ? (size_t)call->uneven->most_sent * e->size
	    : flat_bytes(call->coll, e->self->n_ranks, (size_t)call->count * e->size);
	if (take_buffers(e, call, err) == blinkSuccess
	    && take_place(e, e->flat.bytes > FLAT_SHORT ? e->flat.bytes : 0, err) == blinkSuccess)
		flat_begin(e, call);
	return err->code;
}

static int
begin_tasks(struct engine *e, const struct call *call, struct blink_error *err)
{
	int64_t part_end[BLINK_PARTS_MAX];
	const struct plan *plan = call->plan;
	const RankProgram *prog = plan->prog;
	e->message_bytes = call_message_bytes(call, e->self->n_ranks);
	e->began = now_ns();
	blink_part_ends(&plan->parts, call->count, (int64_t)e->size, part_end);
	if (choose_chunk(e, call, part_end, err) != blinkSuccess || take_buffers(e, call, err) != blinkSuccess
	    || take_place(e, (size_t)(prog->n_rings * e->slots) * (size_t)e->slot_bytes, err) != blinkSuccess)
		return err->code;
	if (prog->n_tasks > e->left_capacity) {
		int *left = realloc(e->left, (size_t)prog->n_tasks * sizeof *left);
		if (!left)
			return set_error_memory(err);
		e->left = left;
		e->left_capacity = prog->n_tasks;
	}
	e->n_left = 0;
	for (int i = 0; i < prog->n_tasks; i++) {
		int t = e->self->net ? e->lanes->order[i] : i;
		place_task(e, call, &e->lanes->task[t], part_end);
		if (e->lanes->task[t].n_chunks > 0)
			e->left[e->n_left++] = t;
	}
	e->streaming = (size_t)call->count * e->size > HOST_STREAMING_BYTES;
	return e->self->net ? open_mirror(e, prog, err) : blinkSuccess;
}

int
collective_begin(struct engine *e, struct call *call, struct blink_error *err)
{
	e->lanes = call->plan->lanes;
	e->is_flat = call->plan->flat;
	e->announced = false;
	e->collective++;
	e->size = call->reduction.size;
	reduction_read_scalar(&call->reduction);
	e->signature_before = e->signature;
	e->signature = call_signature(call, e->self->chunk_bytes, e->collective);
	return e->is_flat ? begin_flat(e, call, err) : begin_tasks(e, call, err);
}
