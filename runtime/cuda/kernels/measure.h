/* What chunks cost on this GPU, towards a peer: fences after a flag; then chunks that are read and published, moved as
 * in a call (flags.h), some, twice as many, and as many of twice the length. One block. */
#ifndef BLINK_KERNELS_MEASURE_H
#define BLINK_KERNELS_MEASURE_H

#include "kernels/flags.h"

/* Until all that the block has stored is there: ns since *from, and on; the least of all times. */
FN void
note_time(uint64_t *to, uint64_t *from)
{
	barrier();
	if (this_thread() != 0)
		return;
	fence();
	uint64_t now = time_of_device(), least_of = load8_fresh(to);
	if (least_of == 0 || now - *from < least_of)
		store8_fresh(to, now - *from);
	*from = now;
}

/* In own memory, and zero again in the end: lanes, from this rank and to the peer; a flag that is there; data. */
enum { MEASURED_FLAG = 512, MEASURED_DATA = 1024 };

FN void
make_lanes(const struct gpu_measure *m)
{
	struct gpu_lane *lane = (struct gpu_lane *)m->own;
	uint64_t *there = (uint64_t *)(m->own + MEASURED_FLAG);
	store8(there, ~(uint64_t)0);
	NOT_UNROLLED
	for (int i = 0; i < 2; i++) {
		store4(&lane[i].peer, 0);
		store4(&lane[i].lane, 0);
		store8(&lane[i].pair.ready, (uint64_t)(i == 0 ? there : m->flag));
		store8(&lane[i].pair.done, (uint64_t)(i == 0 ? m->flag : there));
		store8(&lane[i].pair.ring[0], (uint64_t)(i == 0 ? m->own + MEASURED_DATA : m->to));
	}
}

/* A strip of n chunks of `bytes`. Its first is said to be done, so that no list of readers is left. */
FN void
make_measured(struct block *b, const struct gpu_measure *m, int32_t n, int64_t bytes)
{
	struct strip *s = &b->strip[0];
	b->call.status = m->status;
	b->call.width = 1;
	b->call.slots = 2;
	b->call.slot_bytes = GPU_MEASURED_BYTES * 2;
	b->call.program.lane = (const struct gpu_lane *)m->own;
	b->number = 0;
	b->n_strips = 1;
	b->told = 0;
	s->own = NULL;
	s->output = NULL;
	s->bytes = (n + 1) * bytes;
	s->chunk_bytes = bytes;
	s->from = s->number = s->publishes = 0;
	s->to = s->n_from = s->n_to = 1;
	s->chunk = s->done = s->set = s->next = 1;
	s->n_chunks = n + 1;
	s->scales = s->divides = 0;
	s->shape = 0;
	s->held = -1;
}

FN void
move_measured(struct block *b, const struct gpu_measure *m, int32_t n, int64_t bytes)
{
	struct waiting w = { 0, false };
	if (this_thread() == 0)
		make_measured(b, m, n, bytes);
	barrier();
	hold_lanes(b, 1);
	barrier();
	run_list(b, SUM, &w);
}

FN void
run_measure(struct block *b, const struct gpu_measure *m)
{
	struct gpu_status *status = m->status;
	uint64_t since;
	if (this_thread() == 0)
		make_lanes(m);
	barrier();
	NOT_UNROLLED
	for (int turn = 0; turn < 2; turn++) {	/* the first one also loads the code */
		since = time_of_device();
		NOT_UNROLLED
		for (uint64_t i = 1; i <= GPU_MEASURED_FENCES; i++) {
			if (this_thread() == 0)
				store_flag(m->flag, i);
			barrier();
		}
		note_time(&status->fences, &since);
		NOT_UNROLLED
		for (int kind = 0; kind < 3; kind++) {	/* in one place of the code, which is long */
			move_measured(b, m, kind == 1 ? 2 * GPU_MEASURED_CHUNKS : GPU_MEASURED_CHUNKS,
			    kind == 2 ? 2 * GPU_MEASURED_BYTES : GPU_MEASURED_BYTES);
			note_time(kind == 0 ? &status->chunks : kind == 1 ? &status->twice_as_many
			    : &status->twice_as_long, &since);
		}
	}
	for (unsigned at = 8 * this_thread(); at < MEASURED_DATA; at += 8 * all_threads())
		store8(m->own + at, 0);
}

#endif
