/* What a call of libblink consists of, each a kernel of its own, with the loads, stores and fences of its kernels. */
#include "kernels/entry.h"
#include "../tests/check_gpu/parts.h"

struct nothing {
	int unused;
};

FN void
run_nothing(const struct part *p)
{
	(void)p;
}

FN void
run_barriers(const struct part *p)
{
	for (uint64_t i = 0; i < p->n; i++)
		barrier();
}

/* A thread that stores a flag and waits for all to see it: what a chunk costs at least. */
FN void
run_fences(const struct part *p)
{
	for (uint64_t i = 0; i < p->n && this_thread() == 0; i++) {
		store8_fresh(p->mine, i);
		fence();
	}
}

FN void
run_stores(const struct part *p)
{
	for (uint64_t i = 0; i < p->n && this_thread() == 0; i++)
		store_flag(p->mine, i);
}

FN void
run_token(const struct part *p)
{
	for (uint64_t i = p->me; i <= p->n && this_thread() == 0; i += 2) {
		while (load_flag(p->mine) < i)
			pause_thread();
		acquired();
		store_flag(p->theirs, i + 1);
	}
}

/* Four vectors of each thread at once. */
FN void
run_copy(const struct part *p)
{
	uint64_t step = (uint64_t)all_threads() * all_blocks() * 16;
	for (uint64_t at = ((uint64_t)this_block() * all_threads() + this_thread()) * 16; at < p->n; at += 4 * step) {
		struct vector v[4];
		UNROLLED
		for (int i = 0; i < 4; i++)
			if (at + (uint64_t)i * step < p->n)
				v[i] = load16(p->from + at + (uint64_t)i * step);
		UNROLLED
		for (int i = 0; i < 4; i++)
			if (at + (uint64_t)i * step < p->n)
				store16(p->to + at + (uint64_t)i * step, v[i]);
	}
}

/* None shares memory. */
#if ON_GPU
#define PART_KERNEL(name) KERNEL(part_##name, part, nothing, run_##name(&given))
#else
#define PART_KERNEL(name) KERNEL(part_##name, part, nothing, (void)memory_at; run_##name(&given))
#endif
PART_LIST(PART_KERNEL)

#if !ON_GPU
#define PART_ROW(name) { "part_" #name, sizeof(struct part), GPU_THREADS, part_##name },
const struct virtual_kernel virtual_gpu_kernels[] = {
	PART_LIST(PART_ROW)
	{ NULL, 0, 0, NULL },
};
#endif
