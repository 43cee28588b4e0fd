/* The kernels' interface to reduce.c. Their source is kernels.c.h, built once for each instruction set. */
#ifndef BLINK_REDUCE_KERNELS_H
#define BLINK_REDUCE_KERNELS_H

#include "reduce/reduce.h"

/* What is left of an array after its whole lines is computed in a line of its own. A line holds whole vectors of every
 * kernel. */
enum { REDUCTION_LINE = 64, REDUCTION_TYPES = blinkFloat8e5m2 + 1, REDUCTION_OPS = blinkMin + 1 };

/* Bytes `begin` to `end` of all arrays, a multiple of a line. streaming: to + begin is aligned to a line. */
struct reduction_job {
	const struct reduction *r;
	bool scales, streaming;
	char *to, *also;
	const char *own;
	const char *const *from;
	int n_from;
	size_t begin, end;
};

struct reduction_kernels {
	const char *name;
	void (*reduce[REDUCTION_TYPES][REDUCTION_OPS])(const struct reduction_job *job);
	void (*divide[REDUCTION_TYPES])(char *data, size_t bytes, int64_t by);	/* by > 0; of integers */
	void (*copy)(const struct reduction_job *job);	/* own to `to` and also, whatever the type */
	void (*fence)(void);	/* stores that bypassed the caches are seen before all later ones */
};

/* NULL after the last: those that this CPU has, the fastest first. The last runs on every CPU of the architecture. */
const struct reduction_kernels *const *reduction_versions(void);

/* reduction_run and reduction_copy by these kernels. */
void reduction_run_by(const struct reduction_kernels *k, const struct reduction *r, void *to, void *also,
    const void *own, const void *const *from, int n_from, size_t n, bool last, bool streaming);
void reduction_copy_by(const struct reduction_kernels *k, void *to, void *also, const void *from, size_t bytes,
    bool streaming);

extern const struct reduction_kernels reduction_base;
#ifdef __x86_64__
extern const struct reduction_kernels reduction_avx2, reduction_avx512;
#endif

#endif
