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
#include "kernels/packets.h"

/* Every strip of this block, one after the other. */
FN bool
run_packets(struct block *b, enum operation op, struct waiting *w)
{
	struct strip *s = &b->strip[0];
	for (int i = (int)this_block(); i < strips_of(b); i += (int)all_blocks()) {
		barrier();
		if (this_thread() == 0)
			take_strip(b, i, s);
		barrier();
		if (s->n_chunks > 0 && !move_packets(b, s, op, w))
			return false;
	}
	return true;
}

/* The list: strips of the protocol of flags, and a share of the own block. */
FN void
make_list(struct block *b)
{
	int n = b->call.slots == 0 ? 0 : (strips_of(b) - (int)this_block() + (int)all_blocks() - 1) / (int)all_blocks();
	n = n > 0 ? n : 0;
	barrier();
	for (int i = (int)this_thread(); i < n; i += (int)all_threads())
		take_strip(b, (int)this_block() + i * (int)all_blocks(), &b->strip[i]);
	if (this_thread() == 0) {
		if (b->call.own_bytes > 0)
			make_share(b, &b->strip[n]);
		b->n_strips = n + (b->call.own_bytes > 0);
		b->told = 0;
	}
	barrier();
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

/* counts: the block counts itself in. */
FN void
take_call(struct block *b, const struct gpu_call *call, bool counts)
{
	if (this_thread() == 0) {
		b->call = *call;
		if (!MOVES && call->scalar)
			b->call.scale = factor_at(call->scalar);
		b->program.n_tasks = (int32_t)load4(&call->program->n_tasks);
		b->program.n_publishes = (int32_t)load4(&call->program->n_publishes);
		b->program.task = (const struct gpu_task *)load8(&call->program->task);
		b->program.lane = (const struct gpu_lane *)load8(&call->program->lane);
		b->stopped = load4_fresh(&call->state->stopped);
		if (counts && !b->stopped && add4_first(&call->state->blocks_here, 1) >= all_blocks()) {
			kernels_overlap(call);
			b->stopped = 1;
		}
		b->number = load8_fresh(&call->state->call) + 1;
	}
	barrier();
}

FN void
begin_call(struct block *b, const struct gpu_call *call)
{
	take_call(b, call, true);
	if (this_thread() == 0 && this_block() == 0) {
		store8_fresh(&call->status->signature[b->number & 1], call->signature);
		store8_fresh(&call->status->begun, b->number);
	}
}

/* The last block counts the call. */
FN void
end_call(const struct block *b)
{
	struct gpu_state *state = b->call.state;
	barrier();
	if (this_thread() != 0)
		return;
	if (add4(&state->blocks_done, 1) != all_blocks() - 1)
		return;
	store4_fresh(&state->blocks_done, 0);
	store4_fresh(&state->n_pending[b->number % GPU_LISTS],
	    (uint32_t)(b->program.n_publishes * b->call.width));
	store8_fresh(&state->call, b->number);
	if (b->call.relays)
		fence();	/* the relay rests when it sees `done`: letters and flags come before */
	if (add4(&state->blocks_here, 0 - all_blocks()) != all_blocks())
		kernels_overlap(&b->call);
	if (load4_fresh(&state->stopped) == 0)
		store8_fresh(&b->call.status->done, b->number);
}

#if ON_GPU
SHARED_OF(block);
#endif

/* For all operations of a type: most of it is the same. On GPUs it takes the block's memory by name: of a pointer that
 * is a parameter, a compiler does not know that it is to shared memory. */
CALLED void
run_call(struct block *memory, enum operation op)
{
#if ON_GPU
	struct block *b = &block_memory;
	(void)memory;
#else
	struct block *b = memory;
#endif
	struct waiting w = { 0, false };
	bool good = wait_for_readers(b, &w) && (b->call.slots != 0 || run_packets(b, op, &w));
	if (good) {
		make_list(b);
		good = run_list(b, op, &w);
	}
	if (!good && this_thread() == 0)
		store4_fresh(&b->call.state->stopped, 1);
	end_call(b);
}

FN void
run_collective(struct block *b, const struct gpu_call *call, enum operation op)
{
	begin_call(b, call);
	if (!b->stopped)
		run_call(b, op);
}

#endif
