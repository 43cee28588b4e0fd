/* Generated: kernels that blinkc has written for schedules (--format cuda-kernel), and somebody has compiled. */
#ifndef BLINK_CUDA_GENERATED_H
#define BLINK_CUDA_GENERATED_H

#include "cuda/gpu.h"

/* The modules that BLINK_KERNELS names, read and loaded when a communicator opens. *out: NULL where it names none.
 * Fails: blinkSystemError a file cannot be read; blinkInvalidArgument it is no module of blinkc, or of other sources
 * than this library, or its registers are too many for a block; also blinkLimit, out of memory, and as the driver
 * does. */
struct gpu_generated;
int gpu_generated_open(struct gpu *g, struct gpu_generated **out, struct blink_error *err);
void gpu_generated_close(struct gpu *g, struct gpu_generated *all, bool forked);

/* The kernel for a plan; *out: NULL where the plan is to be interpreted: it is built in, or no module is of its
 * collective, or of the schedule and this type and operation. module, op: as of gpu_function. Fails:
 * blinkInvalidArgument all modules of the collective are of other schedules; out of memory. */
int gpu_generated_function(struct gpu *g, const struct plan *plan, const char *module, int op, CUfunction *out,
    struct blink_error *err);

#endif
