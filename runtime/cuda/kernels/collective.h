/* A collective on one GPU: a rank's program, interpreted by the blocks of one kernel. cuda/device.h has the protocols.
 *
 * A strip of a task belongs to one block. Its value is made in one pass (pass.h): every thread loads vectors of its own
 * input and of each source's ring, combines them in registers, and stores the result to the output and into the ring of
 * each reader. Chunks in rings go by flags (flags.h), short messages in packets (packets.h).
 *
 * Ends. Whoever waits for long reads status->stop, and says in status->awaits for whom. A rank that finds another
 * signature than its own sets `stop` itself. Whether the kernel stops is asked at a barrier, so that the threads of a
 * block leave together. It leaves word for those behind it in the stream, which may be many: they end at once. */
#ifndef BLINK_KERNELS_COLLECTIVE_H
#define BLINK_KERNELS_COLLECTIVE_H

#include "kernels/flags.h"
#include "kernels/lines.h"

/* Strips of tasks, and a share of the own block, which comes last. Whatever the number of the call. */
FN void
make_list(struct block *b)
{
	int n = (strips_of(b) - (int)this_block() + (int)all_blocks() - 1) / (int)all_blocks();
	n = n > 0 ? n : 0;
	for (int i = (int)this_thread_from_last(); i < n; i += (int)all_threads())
		take_strip(b, strip_of_block(b, i), &b->strip[i]);
	if (this_thread() == 0) {
		if (b->call.own_bytes > 0)
			make_share(b, &b->strip[n]);
		b->n_tasks = n;
		b->n_strips = n + (b->call.own_bytes > 0);
		b->told = 0;
	}
}

/* By the threads that hold the lanes. */
FN void
place_first(struct block *b)
{
	const struct strip *s = &b->strip[0];
	int lanes = s->n_chunks > 0 && s->n_from + s->n_to <= HELD ? s->n_from + s->n_to : 0;
	for (int l = (int)this_thread_from_last(); l < lanes; l += (int)all_threads())
		place_lane(b, s, l, &b->held[l]);
}

/* Before the first write: readers of earlier calls, where they were late. */
FN bool
open_strips(struct block *b, bool late, struct waiting *w)
{
	int n = b->n_tasks;
	if (late && !wait_for_list(b, list_of_half(b), w))
		return false;
	hold_lanes(b, n);
	if (n > 0 && b->call.slots == 0)
		place_first(b);
	for (int i = (int)this_thread_from_last(); i < n; i += (int)all_threads())
		leave_empty(b, &b->strip[i]);
	barrier();
	return true;
}

/* Every strip of the list, one after the other. */
FN bool
run_strips(struct block *b, enum operation op, bool lines, struct waiting *w)
{
	for (int i = 0; i < b->n_tasks; i++) {
		struct strip *s = &b->strip[i];
		if (s->n_chunks == 0)
			continue;
		if (i > 0 || s->held < 0) {
			place_packets(b, s);
			barrier();
		}
		if (!(lines ? move_lines(b, s, op, w) : move_packets(b, s, op, w)))
			return false;
	}
	return true;
}

/* The compiler knows by which protocol. */
FN bool
run_packets(struct block *b, enum operation op, struct waiting *w)
{
	return b->call.lines ? run_strips(b, op, true, w) : run_strips(b, op, false, w);
}

/* Of the list nothing is left but the share of the own block. */
FN void
leave_share(struct block *b)
{
	barrier();
	for (int i = (int)this_thread(); i < b->n_tasks; i += (int)all_threads())
		b->strip[i].n_chunks = 0;
	barrier();
}

/* The share of the own block, where the list has nothing else and it is short: rounds of the list take longer. */
FN bool
share_is_moved(const struct block *b)
{
	const struct strip *s = &b->strip[b->n_tasks];
	if (b->n_strips == b->n_tasks)
		return true;
	unsigned unit = unit_of(s->own, s->output, s->bytes) == VECTOR ? VECTOR : 4, step = unit * all_threads();
	if (s->bytes > SHARE_ROUNDS * (int64_t)step || unit_of(s->own, s->output, s->bytes) < unit || s->scales
	    || s->divides)
		return false;
	NOT_UNROLLED
	for (int64_t at = unit * this_thread(); at < s->bytes; at += step) {
		if (unit == VECTOR)
			store16(s->output + at, load16(s->own + at));
		else
			store4(s->output + at, load4(s->own + at));
	}
	return true;
}

/* A kernel is at work already. All end. */
FN void
kernels_overlap(const struct gpu_call *call)
{
	store4_fresh(&call->state->stopped, 1);
	store4_fresh(&call->status->overlaps, 1);
	fence();
	store4_fresh(&call->status->stop, 1);
}

/* What calls before have left. */
struct past {
	uint64_t calls;
	uint32_t stopped, n_pending[GPU_LISTS];
};

/* counts: the block counts itself in. */
FN struct past
look_at_past(struct gpu_state *state, bool counts)
{
	struct past p;
	p.stopped = load4_fresh(&state->stopped);
	UNROLLED
	for (int i = 0; i < GPU_LISTS; i++)
		p.n_pending[i] = load4_fresh(&state->n_pending[i]);
	p.calls = counts ? add8_relaxed(&state->calls, GPU_COUNT(0, 0, 1)) : load8_fresh(&state->calls);
	return p;
}

FN void
take_past(struct block *b, const struct past *p, bool counts)
{
	b->number = GPU_CALLS(p->calls) + 1;
	b->stopped = p->stopped;
	UNROLLED
	for (int i = 0; i < GPU_LISTS; i++)
		b->n_pending[i] = p->n_pending[i];
	if (counts && !p->stopped && GPU_BEGUN(p->calls) >= all_blocks()) {
		kernels_overlap(&b->call);
		b->stopped = 1;
	}
}

/* A thread of each warp takes some words of the parameters, whose memory is far at first. */
FN void
take_parameters(struct gpu_call *to, const struct gpu_call *from)
{
	enum { WORDS = sizeof(struct gpu_call) / 8, WARPS = GPU_THREADS / 32, EACH = (WORDS + WARPS - 1) / WARPS };
	UNROLLED
	for (int warp = 0; warp < WARPS; warp++) {
		if (this_thread() != (all_threads() < GPU_THREADS ? 0 : 32u * warp))
			continue;
		UNROLLED
		for (int i = warp * EACH; i < (warp + 1) * EACH && i < WORDS; i++)
			__builtin_memcpy((char *)to + 8 * i, (const char *)from + 8 * i, 8);
	}
}

/* The first thread asks how far the calls before have come, while all take the parameters. */
FN struct past
enter_call(struct block *b, const struct gpu_call *call, bool counts)
{
	struct past p = { 0, 0, { 0, 0, 0 } };
	if (this_thread() == 0)
		p = look_at_past(call->state, counts);
	take_parameters(&b->call, call);
	return p;
}

/* While the answer is under way, the last threads make the list of strips, if `lists`; then the first half of the
 * threads ask whether readers of calls before are late. */
FN bool
take_call(struct block *b, const struct past *p, bool counts, bool lists)
{
	struct waiting w = { 0, false };
	unsigned first = all_threads() < GPU_THREADS ? all_threads() : GPU_THREADS / 2;
	bool late = false;
	barrier();
	if (lists)
		make_list(b);
	if (this_thread() == 0) {
		take_past(b, p, counts);
		if (!MOVES && b->call.scalar)
			b->call.scale = factor_at(b->call.scalar);
	}
	if (lists && this_thread() < first) {
		barrier_of(WORKERS, first);
		late = !b->stopped && list_is_late(b, list_of_half(b), first, &w);
	}
	return barrier_any(late);
}

/* Are readers late? */
FN bool
begin_call(struct block *b, const struct past *p, bool lists)
{
	bool late = take_call(b, p, true, lists);
	if (this_thread() == 0 && this_block() == 0) {
		store8_fresh(&b->call.status->signature[b->number & 1], b->call.signature);
		store8_fresh(&b->call.status->begun, b->number);
	}
	return late;
}

/* The last block counts the call. One that is alone knows that it is. */
FN void
end_call(const struct block *b)
{
	struct gpu_state *state = b->call.state;
	uint32_t blocks = all_blocks(), ended = blocks > 1 ? blocks : 0;
	barrier();
	if (this_thread() != 0)
		return;
	if (blocks > 1 && GPU_ENDED(add8(&state->calls, GPU_COUNT(0, 1, 0))) != blocks - 1)
		return;
	store4_fresh(&state->n_pending[b->number % GPU_LISTS],
	    (uint32_t)(b->call.program.n_publishes * b->call.width));
	if (b->call.relays)
		fence();	/* the relay rests when it sees `done`: letters and flags come before */
	bool stopped = load4_fresh(&state->stopped) != 0;
	uint64_t was = add8_relaxed(&state->calls, GPU_COUNT(1, 0, 0) - GPU_COUNT(0, ended, blocks));
	if (GPU_ENDED(was) != ended || GPU_BEGUN(was) != blocks)
		kernels_overlap(&b->call);
	else if (!stopped)
		store8_fresh(&b->call.status->done, b->number);
}

#if ON_GPU
SHARED_OF(block);
#endif

/* For all operations of a type: most of it is the same. On GPUs it takes the block's memory by name: of a pointer that
 * is a parameter, a compiler does not know that it is to shared memory; and a struct would be in memory, too. */
CALLED void
run_call(struct block *memory, enum operation op, uint64_t calls, uint32_t stopped, uint32_t n0, uint32_t n1,
    uint32_t n2)
{
	const struct past p = { calls, stopped, { n0, n1, n2 } };
#if ON_GPU
	struct block *b = &block_memory;
	(void)memory;
#else
	struct block *b = memory;
#endif
	struct waiting w = { 0, false };
	bool late = begin_call(b, &p, true), packets = b->call.slots == 0;
	if (b->stopped)
		return;
	bool good = open_strips(b, late, &w) && (!packets || run_packets(b, op, &w));
	if (good && packets && !share_is_moved(b)) {
		leave_share(b);
		packets = false;
	}
	if (good && !packets)
		good = run_list(b, op, &w);
	if (!good && this_thread() == 0)
		store4_fresh(&b->call.state->stopped, 1);
	end_call(b);
}

FN void
run_collective(struct block *b, const struct gpu_call *call, enum operation op)
{
	struct past p = enter_call(b, call, true);
	run_call(b, op, p.calls, p.stopped, p.n_pending[0], p.n_pending[1], p.n_pending[2]);
}

#endif
