/* What chunks cost on this GPU, towards a peer: fences after a flag, then short chunks, then long ones, as the protocol
 * of flags moves them (flags.h). One block. */
#ifndef BLINK_KERNELS_MEASURE_H
#define BLINK_KERNELS_MEASURE_H

#include "kernels/pass.h"

/* Until all that the block has stored is there: ns since `from`, and on. */
FN void
note_time(uint64_t *to, uint64_t *from)
{
	barrier();
	if (this_thread() != 0)
		return;
	fence();
	uint64_t now = time_of_device();
	if (to)
		store8_fresh(to, now - *from);
	*from = now;
}

/* vectors of each thread. */
FN void
move_chunks(const struct gpu_measure *m, int vectors)
{
	struct vector v[AT_ONCE];
	int64_t bytes = (int64_t)GPU_MEASURED_SHORT * vectors, step = (int64_t)all_threads() * VECTOR;
	for (int turn = 0; turn < GPU_MEASURED_TURNS; turn++) {
		for (int64_t at = (int64_t)this_thread() * VECTOR; at < bytes; at += AT_ONCE * step) {
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				if (at + u * step < bytes)
					v[u] = load16_fresh(m->from + turn * bytes + at + u * step);
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				if (at + u * step < bytes)
					store16(m->to + turn * bytes + at + u * step, v[u]);
		}
		barrier();
		if (this_thread() == 0)
			acquired();	/* as who has seen a flag */
		barrier_any(false);
	}
}

FN void
run_measure(const struct gpu_measure *m)
{
	uint64_t since = 0;
	note_time(NULL, &since);
	for (uint64_t i = 1; i <= GPU_MEASURED_TURNS; i++) {
		if (this_thread() == 0)
			store_flag(m->flag, i);
		barrier();
	}
	note_time(&m->status->fences, &since);
	move_chunks(m, 1);
	note_time(&m->status->short_chunks, &since);
	move_chunks(m, GPU_MEASURED_LONG);
	note_time(&m->status->long_chunks, &since);
}

#endif
