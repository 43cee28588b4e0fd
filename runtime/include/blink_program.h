/* What libblink and a program written by `blinkc compile --format cu` know of each other: one table, exported as `blink_program`.
 * Not for other callers: blink.h is the interface. */
#ifndef BLINK_PROGRAM_H
#define BLINK_PROGRAM_H

#include "blink.h"

/* Raised when anything below changes; a program with another number is refused. `abi` stays the first member. */
#define BLINK_PROGRAM_ABI 1

/* Chunks that a scratch ring holds: one arriving while one is read. */
#define BLINK_RING 2

struct blink_error {
	int code;			/* blinkResult_t */
	char text[512];
};

/* A tree moves element floor(begin * count) up to, not including, floor(end * count) of one block of `count`. */
struct blink_tree {
	int64_t send_block, recv_block;	/* which block of a rank's send and receive buffer that is */
	int64_t begin, begin_of;	/* numerator and denominator */
	int64_t end, end_of;
};

struct blink_ring {
	int rank, tree;			/* whose memory it lies in, which tree's chunks it holds */
};

struct blink_call {
	const void *const *send;
	void *const *recv;
	int64_t count;
	int type, op;			/* blinkDataType_t, blinkRedOp_t */
	int64_t chunk_bytes;		/* 0: choose */
};

struct blink_program {
	uint32_t abi;
	const char *backend;
	const char *digest;		/* of the schedule */
	const char *topology, *algorithm;
	int collective, root, n_ranks;
	int keep_input;			/* trees may write where others read, if a call sends and receives in place */
	int n_trees, n_streams, n_rings, n_events;
	const struct blink_tree *tree;
	const int *stream_rank;		/* whose device each stream belongs to */
	const struct blink_ring *ring;
	const void *plan;		/* for `run`, if it needs more */

	/* All return a blinkResult_t, and say in *err why it is not blinkSuccess. device: from `open`. */
	int (*open)(const struct blink_program *self, int threads, void **device, struct blink_error *err);
	void (*close)(void *device);
	int (*memory_new)(void *device, int rank, size_t bytes, void **memory, struct blink_error *err);
	int (*memory_free)(void *device, int rank, void *memory, struct blink_error *err);
	int (*memory_copy)(void *device, int rank, void *to, const void *from, size_t bytes, struct blink_error *err);
	int (*run)(void *device, const struct blink_call *call, struct blink_error *err);
};

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((visibility("default"))) extern const struct blink_program blink_program;
#ifdef __cplusplus
}
#endif

#endif
