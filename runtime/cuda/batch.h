/* Batch: copies for streams, given to the driver together where it can take them so (CUDA 12.8 and later). */
#ifndef BLINK_CUDA_BATCH_H
#define BLINK_CUDA_BATCH_H

#include "driver/driver.h"

#include <stdbool.h>

enum { GPU_BATCH_COPIES = 64 };

struct gpu_batched {
	CUstream stream;
	CUdeviceptr to, from;
	size_t bytes;
};

struct gpu_batch {
	int n;
	struct gpu_batched copy[GPU_BATCH_COPIES];
	CUdeviceptr to[GPU_BATCH_COPIES], from[GPU_BATCH_COPIES];	/* of one stream */
	size_t bytes[GPU_BATCH_COPIES];
};

struct blink_error;

/* Has the driver batches? */
bool gpu_batch_works(const struct driver *d);

/* Add a copy: it is in its stream after gpu_batch_put, or sooner. What is added between two of these has no order, so
 * none may need another; no stream is a default one, or captures. */
int gpu_batch_add(struct gpu_batch *b, const struct driver *d, const struct gpu_batched *copy, struct blink_error *err);

/* Put all into their streams: those of a stream by one call. */
int gpu_batch_put(struct gpu_batch *b, const struct driver *d, struct blink_error *err);

#endif
