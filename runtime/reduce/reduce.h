/* Reductions of host memory: every type and operation of blink.h. */
#ifndef BLINK_REDUCE_H
#define BLINK_REDUCE_H

#include "blink.h"

#include <stdbool.h>

/* What a call asks, resolved once. `scale` is the factor of each rank's own value: of blinkAvg over floating-point
 * types 1/n, of an operation of blinkRedOpCreatePreMulSum its scalar. `divide` is of blinkAvg over integers. */
struct reduction {
	int type;		/* blinkDataType_t */
	int op;			/* blinkSum, blinkProd, blinkMax or blinkMin */
	size_t size;		/* bytes of an element */
	bool scales;
	const void *scalar;	/* where the factor is, until it is read; NULL: it is in `scale` */
	union {
		double f64;
		float f32;	/* of all floating-point types below 64 bits */
		uint64_t bits;	/* of integers: the low ones are the scalar's */
	} scale;
	int64_t divide;		/* 0: no division */
};

/* op: a basic operation, or blinkAvg over n ranks. false: type or op is no number of blink.h. */
bool reduction_make(int type, int op, int n_ranks, struct reduction *out);
/* The sum of values multiplied by *scalar, an element of the type, which reduction_read_scalar reads: when a call
 * begins, or at once. That does nothing where it has been read, or is none. false: type is no number of blink.h. */
bool reduction_make_scaled(int type, const void *scalar, struct reduction *out);
void reduction_read_scalar(struct reduction *r);

/* to = own op from[0] op from[1] ..., from left to right, over n elements; own is first multiplied by the scale if
 * there is one, and the result divided if `last` and the reduction divides. also: a second destination for the same
 * result, or NULL. n_from may be 0: own is copied (scaled, divided). Destinations may be the same memory as an operand,
 * but not overlap otherwise. Each step rounds to the type, so that the bits do not depend on how many operands one call
 * has. streaming: the destination `to` is not read again soon; it may bypass the caches. Memory is aligned to
 * elements. Cost: one pass in blocks that stay in the first-level cache. Stack: 1536 bytes. */
void reduction_run(const struct reduction *r, void *to, void *also, const void *own, const void *const *from,
    int n_from, size_t n, bool last, bool streaming);

/* The same for a move: to and also (either may be NULL) = from, bytes. */
void reduction_copy(void *to, void *also, const void *from, size_t bytes, bool streaming);

/* What the kernels were built for and this CPU has: "avx512", "avx2", "sse2", "neon", "generic". */
const char *reduction_kernels(void);

#endif
