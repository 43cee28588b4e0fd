/* What the host side of a rank and its kernels share: tables in the GPU's memory, flags, rings and packets. C11 of gcc,
 * C++17 of nvcc, clang and g++; pointers are 64 bits wide, and mean the same on host and device. */
#ifndef BLINK_CUDA_DEVICE_H
#define BLINK_CUDA_DEVICE_H

#include <stdint.h>

/* One kernel for each call interprets the rank's program (src/model/rank_program.h). A publisher pushes: data go into
 * memory of the reader, and so does the flag that says so, so that everyone waits on memory of its own GPU.
 *
 *	lane	from one rank to another: a value of a segment (RankLane)
 *	strip	a task's part of a segment, a `width`-th of it, moved by one block of the kernel. Strips of a
 *		segment have nothing to do with each other: each has flags, a ring and packets of its own on every
 *		lane
 *	pair	two ranks in order: publisher, reader. The reader's memory has for each publisher: `ready` flags,
 *		packets and rings, and for what it publishes itself: `done` flags, that its readers set
 *
 * Strip s of lane k has number k * width + s in its pair: by it flags and shares of packets and rings are found.
 *
 * Three protocols. Both ranks of a pair choose the same, since they know the same: sizes, and the program's `longest`
 * and `pair_lanes_max`.
 *
 *	packets	for short messages. 16 bytes: twice 4 bytes of data and a flag, 8 bytes that are written at once, so
 *		that no fence is needed. A packet is written once in a call: there are no chunks, and nobody waits for
 *		room. Packet 0 of a strip carries the signature of the call, packet i + 1 bytes 8 i to 8 i + 7 of
 *		the strip. At its end the reader sets `done` to GPU_FLAG(call, 1)
 *	lines	for longer ones, between GPUs of capability 7.0 and later that NVLink connects: the same in units of 128
 *		bytes, 120 of data and the number of the call, which a warp writes at once (kernels/lines.h). They
 *		have memory of their own, so that no data lie where a number is looked for
 *	flags	for long ones. A strip goes chunk by chunk through a ring of `slots` slots. Publisher: wait until
 *		the reader has done chunk c - slots, write chunk c, set `ready` to GPU_FLAG(call, c + 1). Reader: wait
 *		for that, read, set `done` to the same. Who waits for `ready` acquires, who sets it releases
 *		(kernels/flags.h)
 *
 * A pair on two servers has flags and rings in memory of its hosts, between which a thread relays (relay.c). Such a job
 * has neither packets nor lines.
 *
 * Calls are numbered from 1 on the GPU (gpu_state.call), so that a captured graph may be replayed: nothing that differs
 * from one replay to the next is in the parameters. Flags are never cleared, and grow.
 *
 * Packets and rings have two halves, that calls take in turn, by the parity of their number. A call may write into its
 * half when the readers of the call before the last have done with it: the kernel leaves a list of whom to wait for
 * (gpu_state.pending), and the kernel after the next waits for all of it before its first write. Lengths and layout may
 * be others then. Calls take three lists in turn: one is written while another is read, and a third is kept.
 *
 * Copy engines. A call that only moves may be a number of copies instead (copies.c), between two kernels of one block,
 * which give it its place among the calls. A lane has the two halves of its pair's rings as one window, which it shares
 * with the pair's other lanes; flags are of 32 bits, of chunks of the call: `ready` and `done` as above, but 0 between
 * calls. For that the first kernel waits for all readers of the calls before, and until all partners, with whom it has
 * lanes, are in the same call (gpu_meeting.met); the last one clears the flags of its own GPU. So what a graph repeats
 * is the same each time, and nobody sets a flag of the next call before it has been cleared. */

#define GPU_FLAG(call, chunks) ((uint64_t)(call) << 24 | (uint64_t)(chunks))

enum {
	GPU_FLAGS = 4096,		/* strips of a pair */
	GPU_CHUNKS_MAX = (1 << 24) - 1,
	GPU_SLOTS_LEAST = 2,
	GPU_SLOTS_MOST = 64,
	GPU_PENDING = 16384,		/* strips that a rank publishes in a call */
	GPU_LISTS = 3,			/* of them */
	GPU_BLOCKS_MOST = 2000,		/* of a kernel: two at once are counted in 12 bits */
	GPU_COPY_LANES = 512,		/* of a pair: those that copy engines serve */
	GPU_COPY_CHUNKS = 64,		/* of a segment */
	GPU_LANES = 512,		/* of a task: n_from + n_to */
	GPU_TASKS_OF_BLOCK = 256,	/* that a block takes turns with, where there are more tasks than blocks */
	GPU_PARTS = 8,			/* BLINK_PARTS_MAX */
	GPU_COUNTED = 127,		/* tasks of a rank whose strips are counted, at most */
	GPU_DEALS = 3,			/* of tasks: with several readers, with one, with none */
	GPU_THREADS = 512,		/* of a block, at most; of these its last */
	GPU_SETTERS = 32,		/* set flags (kernels/flags.h) */
	GPU_LINE = 128, GPU_LINE_DATA = 120,	/* bytes */
	GPU_CHUNK_SHORT = 16 * (GPU_THREADS - GPU_SETTERS),	/* bytes: a vector of each thread that moves data */
	GPU_MESSAGES = 96,		/* of one launch */
	GPU_DIFFERS_MESSAGE = 1 << 30
};

/* By which protocol collectives go, where it can serve them: BLINK_PROTOCOL. */
enum gpu_protocol {
	GPU_CHOSEN,			/* by the length of the message */
	GPU_PACKETS,
	GPU_LINES,
	GPU_FLAGS_ALONE
};

/* Set by the publisher. signature: of the call, at its parity; written before the value of its first chunk. */
struct gpu_flag {
	uint64_t value;
	uint64_t signature[2];
	uint64_t unused;
};

struct gpu_packet {
	uint32_t data0, flag0, data1, flag1;	/* flags: the low 32 bits of the call's number */
};

/* What the relay has to know of a strip that goes to another server (cuda/relay.c). Written by the publisher before the
 * flag of its first chunk. Sizes in bytes. */
struct gpu_letter {
	uint64_t call;
	uint64_t at;			/* of its ring, in the half */
	uint64_t bytes, chunk_bytes;
	uint64_t slot_bytes, slots;
};

/* A pair as its two ranks use it. Pointers are into the reader's memory, `done` into the publisher's; of a pair on two
 * servers, all are into memory of the own server's host. */
struct gpu_pair {
	struct gpu_flag *ready;		/* [GPU_FLAGS] */
	uint64_t *done;			/* [GPU_FLAGS] */
	char *packets[2], *ring[2];	/* of each half; behind the packets, lines */
	struct gpu_letter *letter;	/* [2 * GPU_FLAGS]: of each strip, of each half; NULL: both on one server */
};

struct gpu_lane {
	int32_t peer, lane;
	struct gpu_pair pair;		/* of a lane to read: peer, this rank; of one to publish: this rank, peer */
};

/* RankTask, with its Extent. Of the n elements that its part has of a block: floor(begin n / begin_of) up to, not
 * including, floor(end n / end_of); products are of 128 bits. */
struct gpu_task {
	int64_t send_block, recv_block;
	int64_t begin, begin_of, end, end_of;
	int32_t part;
	int32_t n_from, n_to;
	int32_t from, to;		/* its first lane in gpu_program.lane; all it publishes are numbered from
					 * `publishes` on among those of the program */
	int32_t publishes;
	uint8_t own, output, complete;
	uint8_t shape;			/* of generated code (kernels/generated.h); 0 in tables */
	uint8_t unused[4];
};

/* The same for all calls of a plan; tasks and lanes are in memory of the GPU. */
struct gpu_program {
	int32_t n_tasks;
	int32_t n_publishes;		/* lanes to publish, of all tasks */
	const struct gpu_task *task;
	const struct gpu_lane *lane;
};

/* What a call has left for a reader to do: *done >= value, in this rank's memory. */
struct gpu_pending {
	const uint64_t *done;
	uint64_t value;			/* 0: nothing */
	int32_t peer, unused;
};

/* A rank's own, in memory of its GPU; zeroed at first. Kernels of a rank must not overlap: a block counts itself in by
 * the access that tells it the number of its call, and the last one counts all of them out when it counts the call, so
 * that a block of another kernel in between is noticed: as one too many, by who comes in last or by who goes last. */
struct gpu_state {
	uint64_t calls;			/* GPU_CALLS: done; a kernel is number that + 1. GPU_BEGUN, GPU_ENDED: its
					 * blocks, 0 between kernels */
	uint32_t stopped;		/* not 0: a kernel has been stopped; those after it do nothing, and at once */
	uint32_t n_pending[GPU_LISTS];
	uint32_t unused[2];		/* so that what comes is aligned to 16 bytes */
	struct gpu_pending pending[GPU_LISTS][GPU_PENDING];	/* of call k: k % GPU_LISTS */
	uint64_t *sent, *received;	/* of each rank: chunks of each of its GPU_CHANNELS so far (gpu_message) */
};

#define GPU_CALLS(calls) ((calls) >> 24)
#define GPU_ENDED(calls) ((uint32_t)((calls) >> 12) & 0xfff)
#define GPU_BEGUN(calls) ((uint32_t)(calls) & 0xfff)
#define GPU_COUNT(calls, ended, begun) ((uint64_t)(calls) << 24 | (uint64_t)(ended) << 12 | (uint64_t)(begun))

/* In host memory that the GPU reads and writes; a rank's own. */
struct gpu_status {
	uint32_t stop;			/* not 0: kernels end as soon as they see it, with whatever is done. Set by the
					 * host, and by a kernel that has failed */
	uint32_t differs;		/* 1 + a rank whose signature is not that of the call; 0: none. Of a message
					 * GPU_DIFFERS_MESSAGE more. `stop` is set, too */
	int32_t awaits;			/* a rank that a block has waited for since about a ms; -1: none */
	uint32_t overlaps;		/* not 0: two kernels of this rank were at work at once. `stop` is set, too */
	uint64_t begun, done;		/* numbers of calls */
	uint64_t signature[2];		/* of those calls, at their parity */
	uint64_t progress;		/* grows while the call does */
	uint64_t fences;		/* ns of GPU_MEASURED_FENCES (struct gpu_measure); of GPU_MEASURED_CHUNKS: */
	uint64_t chunks, twice_as_many, twice_as_long;
};

/* Parameters of blink_measure: a flag and memory of a peer that nobody uses, and own memory, both of four chunks. */
struct gpu_measure {
	struct gpu_status *status;
	uint64_t *flag;
	char *to, *own;
};

enum {
	GPU_MEASURED_FENCES = 4,
	GPU_MEASURED_CHUNKS = 2,
	GPU_MEASURED_BYTES = 4 * GPU_CHUNK_SHORT	/* of a chunk */
};

/* What a rank has in its memory for each other, where copy engines are used. */
struct gpu_meeting {
	uint64_t met;			/* by the other: number of the call that it is in */
	uint64_t signature[2];		/* its signature, at its parity; written before */
	uint64_t unused;
	uint32_t ready[GPU_COPY_LANES];	/* of what the other publishes */
	uint32_t done[GPU_COPY_LANES];	/* of what this rank publishes */
};

/* With whom a rank has lanes: n_lanes at most, in either direction. */
struct gpu_partner {
	struct gpu_meeting *own, *theirs;	/* in this rank's memory, and in the partner's */
	int32_t peer, n_lanes;
};

/* Parameters of a kernel, by value: at most 4 KiB. A kernel has a block for each strip, of one task after the other,
 * and blocks without a strip help to copy the own block; or, where `turns` is set, each block b has the strips b,
 * b + blocks, b + 2 blocks ... and takes turns with them. With `order`, strips are dealt out otherwise: see
 * kernels/strips.h. Short segments have fewer strips than `width`: where tasks are few enough, those that are empty
 * are none. */
struct gpu_call {
	struct gpu_program program;
	struct gpu_state *state;
	struct gpu_status *status;
	const char *send;
	char *recv;
	int64_t count;			/* elements of a block */
	int64_t part_end[GPU_PARTS];	/* elements of a block at which each part ends */
	uint64_t signature;		/* of what all ranks must have in common, not 0 */
	int32_t size;			/* bytes of an element */
	int32_t n_parts;
	int32_t width;			/* strips of the longest segment; of others the last ones may be empty */
	int32_t slots;			/* flags: of a ring; 0: packets or lines */
	int32_t turns;
	int32_t rank, n_ranks;
	int32_t relays;			/* not 0: a thread of the host relays to other servers (cuda/relay.c) */
	int64_t strip;			/* elements: strip s of a segment begins at its element s * strip */
	int64_t chunk;			/* flags: elements; of a multiple of 16 bytes, unless it is the whole strip */
	int64_t ring_share, packet_share;	/* bytes of a strip in a half of its pair, the latter of packets or
						 * lines; multiples of 16, of lines of 128 */
	int64_t lines;			/* where they are: bytes behind a pair's packets; 0: none */
	int64_t slot_bytes;		/* flags: of a slot, a multiple of 16 */
	/* Of a reduction, as `struct reduction` (runtime/reduce/reduce.h) has them. */
	uint64_t scale;			/* bits of the factor of each rank's own value, as its type computes: double,
					 * float or integer */
	const void *scalar;		/* an element, which is the factor then; NULL: `scale` has it */
	int64_t divide;			/* of a complete value; 0: no division */
	int32_t scales;
	int32_t n_partners;
	const struct gpu_partner *partner;	/* of the kernels between which copy engines work */
	/* The own block, which no task carries: copied by all blocks. With one rank alone it is reduced, too. */
	const char *own_from;
	char *own_to;
	int64_t own_bytes;
	const struct gpu_blocks *blocks;	/* of an alltoall whose blocks differ; NULL: they have one length */
	int32_t counted;		/* not 0: `first` has all tasks; 0: each has `width` strips */
	int32_t dealt[GPU_DEALS - 1];	/* with `order`: strips up to the end of each deal but the last */
	int32_t unused;
	const uint16_t *order;		/* of counted tasks, in memory of the GPU; NULL: that of their numbers */
	uint64_t first[(GPU_COUNTED + 1) / 4];	/* of each task, in their order: its first strip, in 16 bits; then how
						 * many */
};

/* The first strip of the task at a place in the order; of their number: how many there are. */
#define GPU_FIRST(call, place) ((int32_t)((call)->first[(place) / 4] >> 16 * ((place) % 4) & 0xffff))

/* Messages to and from single ranks (blinkSend, blinkRecv), all of one group in one kernel. A message is cut into
 * strips; strip s goes chunk by chunk through channel s of its pair, which has flags of its own and GPU_CHANNEL_SLOTS
 * slots. Lengths of strips and chunks follow from that of the message (cuda/sizes.h), so that both ranks have the same.
 * Chunks are counted over all messages of a channel (gpu_state.sent, received), by which the value of a flag is
 * compared. With the first chunk of a strip goes the signature of the message.
 *
 * A queue has what goes through a channel in one direction, strip after strip. Queue q belongs to block q % blocks,
 * which takes turns with its queues: so a rank has as many blocks as it likes, whatever its peers have. */
enum {
	GPU_CHANNELS = 16,		/* of a pair, at most */
	GPU_CHANNEL_SLOTS = 2,
	GPU_QUEUES = GPU_MESSAGES * GPU_CHANNELS,	/* of one launch */
	GPU_QUEUES_OF_BLOCK = 64
};

/* In the reader's memory; but for `done`, in the publisher's, of what it sends to the peer. */
struct gpu_channel {
	struct gpu_flag ready;		/* signatures: of slots */
	uint64_t done;
	uint64_t bytes[GPU_CHANNEL_SLOTS];	/* of the chunk in a slot, for the relay */
	uint64_t unused;
};

/* Channels of a pair; pointers are to the first one's. */
struct gpu_channels {
	struct gpu_channel *in;		/* in the reader's memory */
	uint64_t *done;			/* in the publisher's memory, sizeof(struct gpu_channel) apart */
	char *slots;			/* in the reader's memory */
};

struct gpu_message {
	char *data;
	uint64_t bytes, strip, chunk;
	uint64_t signature;		/* of type and length */
	struct gpu_channels channels;
	int32_t peer;
	int32_t sends;
};

/* The messages of a pair and direction lie one after the other. */
struct gpu_queue {
	uint16_t first, end;		/* messages */
	uint16_t channel;
	uint16_t unused;
};

/* Blocks of an alltoall that differ in length, of each rank, in elements. A rank knows what it sends and receives, not
 * what it passes on. So the length of a block goes with the first chunk of each strip: its signature is that of the
 * call, of which the low GPU_COUNT_BITS are exclusive-ored with the length. Every rank cuts the block into `width`
 * strips of a length that follows from it, and these into chunks; a strip has one chunk at least, which may be empty.
 */
enum { GPU_BLOCKS_RANKS = 256, GPU_COUNT_BITS = 40 };

struct gpu_blocks {
	int64_t sent[GPU_BLOCKS_RANKS], send_at[GPU_BLOCKS_RANKS];
	int64_t received[GPU_BLOCKS_RANKS], recv_at[GPU_BLOCKS_RANKS];
};

/* In memory that the GPU reads: of one launch, messages or blocks. */
struct gpu_messages {
	struct gpu_message message[GPU_MESSAGES];
	struct gpu_queue queue[GPU_QUEUES];
	struct gpu_blocks blocks;
};

struct gpu_exchange {
	struct gpu_state *state;
	struct gpu_status *status;
	const struct gpu_messages *messages;
	uint64_t slot_bytes;
	int32_t n_queues;
	int32_t unused;
};

/* Entries of the modules: one module for each type, of entries blink_TYPE_OP for the operations sum, prod, max and min
 * ("blink_float32_sum", names of types as of blink_device.h); and a module "move" of blink_move, for collectives that
 * do not reduce, of blink_copies_begin and blink_copies_end, of blink_messages, and of blink_measure. The parameter is
 * a struct gpu_call, of blink_messages a struct gpu_exchange, of blink_measure a struct gpu_measure. */

#endif
