/* Mscclpp: an execution plan of MSCCL++ in memory: what each threadblock of each GPU does, operation by operation.
 * Plans have this form in JSON: format/mscclpp/ reads and writes it, src/mscclpp/ checks it. */
#ifndef BLINK_MODEL_MSCCLPP_H
#define BLINK_MODEL_MSCCLPP_H

#include "model/collective.h"

#include <stdbool.h>

/* What an operation has in src_buff and dst_buff: L ranges of this GPU; R of others, by memory channels; P of others,
 * by memory or port channels; W the same ranges of all GPUs of a switch channel. `many`: the last letter may repeat. */
#define MSCCLPP_OP_LIST(X)                                                     \
	X(MSCCLPP_NOP, "nop", "", "")                                          \
	X(MSCCLPP_BARRIER, "barrier", "", "")                                  \
	X(MSCCLPP_SIGNAL, "signal", "", "")                                    \
	X(MSCCLPP_WAIT, "wait", "", "")                                        \
	X(MSCCLPP_RELAXED_SIGNAL, "rlxsignal", "", "")                         \
	X(MSCCLPP_RELAXED_WAIT, "rlxwait", "", "")                             \
	X(MSCCLPP_FLUSH, "flush", "", "")                                      \
	X(MSCCLPP_ACQUIRE, "sem_acquire", "", "")                              \
	X(MSCCLPP_RELEASE, "sem_release", "", "")                              \
	X(MSCCLPP_PIPELINE, "pipeline", "", "")                                \
	X(MSCCLPP_PUT, "put", "L*", "P*")                                      \
	X(MSCCLPP_PUT_SIGNAL, "pws", "L*", "P*")                               \
	X(MSCCLPP_PUT_SIGNAL_FLUSH, "pwsf", "L*", "P*")                        \
	X(MSCCLPP_GET, "get", "R*", "L*")                                      \
	X(MSCCLPP_COPY, "copy", "L", "L")                                      \
	X(MSCCLPP_REDUCE, "re", "LL*", "L")                                    \
	X(MSCCLPP_REDUCE_SEND, "res", "LL*", "LR*")                            \
	X(MSCCLPP_READ_REDUCE, "rre", "LR*", "L")                              \
	X(MSCCLPP_READ_REDUCE_SEND, "rres", "LR*", "LR*")                      \
	X(MSCCLPP_PUT_PACKETS, "ppkt", "L*", "P*")                             \
	X(MSCCLPP_READ_PUT_PACKETS, "rppkt", "L", "P*")                        \
	X(MSCCLPP_COPY_PACKETS, "cpkt", "L", "L")                              \
	X(MSCCLPP_UNPACK_PACKETS, "upkt", "L", "L")                            \
	X(MSCCLPP_REDUCE_PACKETS, "repkt", "LL*", "L")                         \
	X(MSCCLPP_REDUCE_COPY_PACKETS, "recpkt", "LL*", "LL")                  \
	X(MSCCLPP_REDUCE_SEND_PACKETS, "respkt", "LL*", "LR*")                 \
	X(MSCCLPP_REDUCE_COPY_SEND_PACKETS, "recspkt", "LL*", "LLR*")          \
	X(MSCCLPP_LOAD_REDUCE_STORE, "glres", "W", "W")                        \
	X(MSCCLPP_STORE, "gstore", "L", "W")                                   \
	X(MSCCLPP_STORE_PACKETS, "gstorepkt", "L", "W")

typedef enum { MSCCLPP_OP_LIST(ROW_NAME) N_MSCCLPP_OPS } MscclppKind;

typedef struct {
	const char *name, *src, *dst;
} MscclppOpKind;

extern const MscclppOpKind mscclpp_ops[N_MSCCLPP_OPS];

typedef enum { MSCCLPP_INPUT, MSCCLPP_OUTPUT, MSCCLPP_SCRATCH, N_MSCCLPP_BUFFERS } MscclppBuffer;
extern const char *const mscclpp_buffers[N_MSCCLPP_BUFFERS];	/* "i" */

typedef enum { MSCCLPP_MEMORY, MSCCLPP_PORT, MSCCLPP_SWITCH, N_MSCCLPP_CHANNELS } MscclppChannel;
extern const char *const mscclpp_channels[N_MSCCLPP_CHANNELS];	/* "memory" */

/* `size` chunks from `index` on: of a buffer of this GPU, or of another GPU's (id: among the remote buffers of the
 * threadblock for this type of channel), or of all GPUs of a switch channel (id: among those of the threadblock). */
typedef struct {
	enum { MSCCLPP_LOCAL, MSCCLPP_REMOTE, MSCCLPP_MULTICAST } where;
	MscclppBuffer buffer;	/* LOCAL */
	int id, index, size;
} MscclppRange;

/* ids of channels are among those of the threadblock for this type. Those of a pipeline are the n_inner that follow. */
typedef struct {
	MscclppKind kind;
	int type;		/* MscclppChannel; -1: none */
	int n_channels, n_src, n_dst, n_semaphores;
	int *channel, *semaphore;
	MscclppRange *src, *dst;
	int barrier, n_blocks;	/* -1: none */
	int share, n_shares;	/* which part of the ranges it does, of how many equal ones: 0 of 1, all */
	int n_inner, n_chunks;	/* of a pipeline: operations, and chunks that it goes through in units of */
	int64_t unit;		/* bytes */
} MscclppOp;

typedef struct {
	int id;
	int n_channels[N_MSCCLPP_CHANNELS], *channel[N_MSCCLPP_CHANNELS];	/* among those of the GPU */
	int n_remotes[MSCCLPP_PORT + 1], *remote[MSCCLPP_PORT + 1];	/* likewise; of memory and port channels */
	int n_ops;
	MscclppOp *op;
} MscclppBlock;

typedef struct {
	int rank;
	MscclppBuffer buffer;
	unsigned types;		/* a bit for each MscclppChannel that may access it */
} MscclppRemote;

typedef struct {
	MscclppBuffer buffer;
	bool old_name;		/* the file calls its member "buff", as until 0.8 */
	int n_ranks, *rank;
} MscclppSwitch;

/* Channels to other GPUs: the k-th memory channel of a to b is one with the k-th of b to a; likewise port channels. */
typedef struct {
	int id;
	int chunks[N_MSCCLPP_BUFFERS];
	int n_channels[MSCCLPP_PORT + 1], *peer[MSCCLPP_PORT + 1];
	int n_switches, n_remotes, n_semaphores, n_blocks;
	MscclppSwitch *multicast;
	MscclppRemote *remote;
	int *semaphore;		/* value at the start */
	MscclppBlock *block;
} MscclppGpu;

typedef struct {
	const char *name, *coll_name, *protocol;
	Collective coll;
	bool in_place, reuse_scratch, double_scratch;
	int n_threads, alignment;
	int64_t min_bytes;
	uint64_t max_bytes;
	int n_gpus;
	MscclppGpu *gpu;
} Mscclpp;

/* "LL": packets, each with a flag that its reader waits for. */
bool mscclpp_has_packets(const Mscclpp *plan);

/* Does the buffer have the blocks of all ranks? */
bool mscclpp_has_every_block(Collective coll, MscclppBuffer buffer);

/* Chunks of one block of the collective: as input and output of the first GPU have them. 0: there is no such. */
int mscclpp_block_chunks(const Mscclpp *plan);
int mscclpp_expected_chunks(const Mscclpp *plan, MscclppBuffer buffer);

/* The channel at the other end of channel k of GPU g; -1: there is none. */
int mscclpp_other_end(const Mscclpp *plan, int g, int type, int k);

/* Is the k-th range (of src, or dst) of this operation read, or written, as packets? */
bool mscclpp_is_packets(const MscclppOp *op, bool src, int k);

#endif
