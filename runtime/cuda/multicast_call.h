/* What the host side of a call by multicast objects and its kernel (kernels/multicast.h) share. C11 and C++17. */
#ifndef BLINK_CUDA_MULTICAST_CALL_H
#define BLINK_CUDA_MULTICAST_CALL_H

#include "cuda/device.h"

/* The instructions by which a switch reduces what all ranks have at an address: name; registers of 16 bytes; how, as
 * multimem.ld_reduce has it (PTX ISA 8.2). Sums of integers wrap, whatever the sign; those of 16-bit values are made in
 * float. What is not here has no instruction: products, types of 8 bits, and min and max of floating-point types with a
 * NaN as the result, as other kernels have them. */
#define MULTICAST_SUM_LIST(X)                                                  \
	X(SUM_INT32, WORDS, "add.u32")                                         \
	X(SUM_INT64, PAIRS, "add.u64")                                         \
	X(SUM_FLOAT16, VECTOR, "add.acc::f32", "f16x2")                        \
	X(SUM_BFLOAT16, VECTOR, "add.acc::f32", "bf16x2")                      \
	X(SUM_FLOAT32, VECTOR, "add", "f32")                                   \
	X(SUM_FLOAT64, PAIRS, "add.f64")                                       \
	X(MAX_INT32, WORDS, "max.s32")                                         \
	X(MAX_UINT32, WORDS, "max.u32")                                        \
	X(MAX_INT64, PAIRS, "max.s64")                                         \
	X(MAX_UINT64, PAIRS, "max.u64")                                        \
	X(MIN_INT32, WORDS, "min.s32")                                         \
	X(MIN_UINT32, WORDS, "min.u32")                                        \
	X(MIN_INT64, PAIRS, "min.s64")                                         \
	X(MIN_UINT64, PAIRS, "min.u64")

enum multicast_sum {
	MULTICAST_NONE,			/* a call that does not reduce */
#define MULTICAST_SUM(name, registers, ...) MULTICAST_##name,
	MULTICAST_SUM_LIST(MULTICAST_SUM)
#undef MULTICAST_SUM
};

/* The parameter of blink_multicast. */
struct gpu_multicast_call {
	struct gpu_call call;
	int64_t to_all;			/* bytes from this rank's part of the memory to the address of all */
	int32_t sum;			/* enum multicast_sum */
	int32_t unused;
};

#endif
