/* Msccl: an algorithm of MSCCL in memory: what each threadblock of each GPU does, step by step. Schedules of others
 * have this form (MSCCL XML): format/msccl/ reads and writes it, src/msccl/ checks it. */
#ifndef BLINK_MODEL_MSCCL_H
#define BLINK_MODEL_MSCCL_H

#include "model/collective.h"

#include <stdbool.h>

/* name in files, receives, sends, reads its source, writes its destination. A step with all four receives a chunk,
 * reduces it with its source, writes the sum to its destination and sends it. "re" reduces its source into its
 * destination; "nop" only waits. */
#define MSCCL_OP_LIST(X)                                                       \
	X(MSCCL_SEND, "s", false, true, true, false)                           \
	X(MSCCL_RECV, "r", true, false, false, true)                           \
	X(MSCCL_RECV_COPY_SEND, "rcs", true, true, false, true)                \
	X(MSCCL_RECV_REDUCE_COPY, "rrc", true, false, true, true)              \
	X(MSCCL_RECV_REDUCE_SEND, "rrs", true, true, true, false)              \
	X(MSCCL_RECV_REDUCE_COPY_SEND, "rrcs", true, true, true, true)         \
	X(MSCCL_COPY, "cpy", false, false, true, true)                         \
	X(MSCCL_REDUCE, "re", false, false, true, true)                        \
	X(MSCCL_NOP, "nop", false, false, false, false)

typedef enum { MSCCL_OP_LIST(ROW_NAME) N_MSCCL_OPS } MscclOp;

typedef struct {
	const char *name;
	bool receives, sends, reads, writes;
} MscclOpKind;

extern const MscclOpKind msccl_ops[N_MSCCL_OPS];

typedef enum { MSCCL_INPUT, MSCCL_OUTPUT, MSCCL_SCRATCH, N_MSCCL_BUFFERS } MscclBuffer;
extern const char *const msccl_buffers[N_MSCCL_BUFFERS];	/* "i" */

/* `count` chunks from each offset on. */
typedef struct {
	int line;		/* of the file; 0: none */
	const char *missing;	/* an attribute that it does not have; NULL: none */
	int number;		/* "s" */
	MscclOp op;
	MscclBuffer src, dst;
	int src_offset, dst_offset, count;
	int dep_block, dep_step;	/* begins when that step of this GPU has ended; -1: at once */
	bool has_dep;		/* others wait for it */
} MscclStep;

/* A threadblock: its steps follow each other. It sends to one GPU at most, and receives from one at most. */
typedef struct {
	int line;
	const char *missing;
	int id, send, recv;	/* GPUs; -1: none */
	int channel;
	int n_steps;
	MscclStep *step;
} MscclBlock;

typedef struct {
	int line;
	const char *missing;
	int id;
	int chunks[N_MSCCL_BUFFERS];
	int n_blocks;
	MscclBlock *block;
} MscclGpu;

/* Attributes that not every dialect has. */
enum { MSCCL_HAS_OUT_OF_PLACE = 1, MSCCL_HAS_MIN_BYTES = 2, MSCCL_HAS_MAX_BYTES = 4, MSCCL_HAS_IN_PLACE = 8 };

typedef struct {
	int line;
	const char *missing;
	const char *name, *protocol;
	const char *coll_name;	/* as the file spells it */
	Collective coll;
	int n_channels, n_gpus;
	int chunks;		/* "nchunksperloop": into how many chunks the message is cut */
	bool in_place, out_of_place;	/* which buffers it is for; in_place: they are one buffer */
	int64_t min_bytes, max_bytes;
	unsigned given;		/* MSCCL_HAS_... */
	int prolog_line, blank_line, long_line;	/* of a prolog; of a tab or line break inside a tag; of a value that
						 * is too long for the executors' parser; 0: none */
	int n_listed;		/* GPUs that the file lists: n_gpus, in a valid file */
	MscclGpu *gpu;
} Msccl;

/* Chunks of one block of the collective, and how many of them a rank has to have in its input and output: of gather and
 * scatter, what the root has. 0: chunks does not divide evenly. */
int msccl_block_chunks(const Msccl *algo);
int msccl_expected_chunks(const Msccl *algo, MscclBuffer buffer);

#endif
