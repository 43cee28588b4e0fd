/* Sizes: by which protocol, in how many strips and in which chunks a call goes. */
#ifndef BLINK_CUDA_SIZES_H
#define BLINK_CUDA_SIZES_H

#include "blink_program.h"
#include "cuda/device.h"
#include "model/rank_program.h"

#include <stdbool.h>
#include <stddef.h>

/* What moving data by chunks costs, the same on all ranks (measure.c). */
struct gpu_cost {
	int64_t chunk_ns;		/* of a chunk, besides its bytes: to wait for threads and memory */
	int64_t fence_ns;
	int64_t rate;			/* of a block alone, bytes/us */
};

/* What all ranks of a call have in common: nothing else may decide, since both ranks of a pair must choose the same. */
struct gpu_asked {
	int64_t message;		/* bytes, as blink-schedule(5) counts them */
	int64_t longest;		/* elements of the longest segment, or more */
	int64_t size;			/* bytes of an element */
	int64_t chunk_bytes;		/* BLINK_CHUNK; 0: chosen */
	int rings, depth, segments;	/* RankProgram.pair_lanes_max, .depth, .segments_max */
	int stages;			/* tasks of a rank for a segment, at most */
	int64_t moved;			/* elements of all segments of a rank, at most */
	const int64_t *segment;		/* elements of each, where every rank has all of them */
	int n_segments;			/* 0: not known */
	int n_ranks;
	int blocks;			/* that every rank may have resident */
	size_t ring_bytes, packet_bytes, line_bytes;	/* gpu_layout; line_bytes 0: not all lanes of the schedule may
						 * have lines */
	enum gpu_protocol protocol;
	int64_t rate;			/* of the schedule: bytes/us of a message; 0: not known */
	struct gpu_cost cost;
};

/* As in struct gpu_call. */
struct gpu_sizes {
	int width;
	int slots;			/* 0: packets or lines */
	int64_t strip;
	int64_t chunk, slot_bytes;	/* 0 with packets and lines */
	int64_t ring_share, packet_share;
	int64_t lines;			/* where lines are; 0: it is not they */
};

/* Of a call by copies: a lane's window of so many slots. */
struct gpu_copy_sizes {
	int slots;
	int64_t chunk, slot_bytes;	/* elements, and their bytes */
	int64_t share;			/* bytes of a lane in its pair's window */
};

/* Of a message between two ranks, in bytes: strips, one for each channel of the pair that it takes, and chunks. */
struct gpu_message_sizes {
	int64_t strip, chunk;		/* multiples of 16 */
	int channels;
};

/* Elements of a segment. */
int64_t gpu_length(const Extent *x, const int64_t *part_end);

/* Which deal of GPU_DEALS a task belongs to. */
int gpu_deal_of(const RankTask *task);

/* The strips of each task of a call whose width and strip are chosen. order: of the tasks, by deals; NULL: none. */
void gpu_count_strips(const RankProgram *prog, const uint16_t *order, struct gpu_call *call);

/* Elements of the longest segment of any part. */
int64_t gpu_longest(const RankProgram *prog, const int64_t *part_end);

/* Fails: blinkLimit where the schedule has more rings than a pair has flags, or segments are of too many chunks. */
int gpu_sizes_choose(const struct gpu_asked *asked, struct gpu_sizes *out, struct blink_error *err);

/* False: segments are too long for the chunks that windows have room for, or there are too many lanes. */
bool gpu_copy_sizes_choose(const struct gpu_asked *asked, struct gpu_copy_sizes *out);

/* The place in a kernel's table (device.h) of queue `number` of `queues`, so that each of `blocks` blocks serves
 * queues whose numbers follow each other. */
int gpu_queue_place(int number, int queues, int blocks);

/* Of a message of `bytes`, above 0, to a pair of that many channels, with slots of slot_bytes. */
void gpu_message_sizes_choose(int64_t bytes, int channels, int64_t slot_bytes, struct gpu_message_sizes *out);

#endif
