/* The state of one run of a plan of MSCCL++, for the files of this folder. run.c has the idea. */
#ifndef BLINK_MSCCLPP_STATE_H
#define BLINK_MSCCLPP_STATE_H

#include "msccl/cells.h"
#include "msccl/values.h"
#include "mscclpp/mscclpp.h"

/* What somebody knows: of each actor up to which of its times, of each GPU whether its kernel has begun (1). By
 * `visible`, what was written until then can be read; by `causal`, it has only happened. */
typedef struct {
	int *visible, *causal;
} Clock;

/* On the way between GPUs, or a count of a semaphore. */
struct signal {
	Clock clock;
	struct signal *next;
};

struct queue {
	struct signal *first, *last;
	int n_free;		/* counts of a semaphore that were there at the start */
};

/* A threadblock: the threads that wait and signal are its lanes, and know more than the others until the next nop. */
struct block {
	const MscclppBlock *block;
	int gpu, at, iteration, pipeline;	/* pipeline: the operation, -1: none */
	int serial;		/* of operations that were done */
	int *done;		/* which each of them was; times are numbers from 1 on */
	int done_room;
	Clock base, lane[MSCCLPP_MAX_CHANNELS];
	bool own[MSCCLPP_MAX_CHANNELS];	/* has this lane a clock of its own? */
	int arrived[MSCCLPP_MAX_BARRIERS];	/* the round that it waits for the end of; 0: none */
};

/* What a port channel does, in the order that it was told to; and who told it last: a threadblock, at which of its
 * times, and which lane, -1: several that do not wait for each other. */
struct proxy {
	Clock base;
	int serial;
	int block, time, lane;
};

struct barrier {
	int arrived, round;
	Clock clock[2];		/* of rounds, by turns */
};

struct run {
	Ctx *ctx;
	const char *label;
	const Mscclpp *plan;
	RuleFindings *list;
	int n_blocks, n_actors, n_known;	/* blocks come first among the actors; then the ports */
	int units, scratch_units, parts;	/* of a chunk; of a chunk of scratch; equal parts of a unit */
	bool found[N_MSCCLPP_RULES];		/* reported once each */
	struct block *block;
	int *first_block, *first_proxy;		/* of each GPU */
	struct proxy *proxy;
	struct queue **queue[MSCCLPP_PORT + 1];	/* of each GPU and channel: signals that came */
	struct queue **semaphore;
	struct barrier *barrier;		/* MSCCLPP_MAX_BARRIERS of each GPU */
	struct signal *unused;
	int64_t *base;				/* of each GPU and buffer: its first cell */
	Values values;
	Value *moved;				/* what an operation makes of a cell */
	Cells cells;
	int **packet_clock;			/* of each cell of packets: of who wrote it, causal; NULL: nobody */
	int *foreign[2];			/* of each actor and GPU: the last time that it read, or wrote there */
	bool *sent;				/* of each two GPUs: packets */
};

/* memory.c: the buffers. A unit of a run is one part of them, or several. */
Status mscclpp_lay_out(struct run *run, int64_t *n_cells);
Status mscclpp_fill(struct run *run, int64_t n_cells);

/* How often a pipeline repeats its operations. */
int mscclpp_iterations(const struct run *run, const MscclppOp *loop);

/* The first cell of a range at a GPU and buffer, for the current unit of a block; *n cells. */
int64_t mscclpp_cells(const struct run *run, const struct block *b, const MscclppOp *op, const MscclppRange *range,
    int gpu, MscclppBuffer buffer, bool packets, int *n);

/* clocks.c */
Status clock_make(struct run *run, Clock *clock);
void clock_join(const struct run *run, const Clock *to, const Clock *from);
void clock_copy(const struct run *run, const Clock *to, const Clock *from);
Status lane_get(struct run *run, struct block *b, int lane, Clock **out);	/* its own */
void block_synchronise(const struct run *run, struct block *b, int self);	/* a nop */
Status queue_put(struct run *run, struct queue *queue, const Clock *clock, bool relaxed);
void queue_take(struct run *run, struct queue *queue, const Clock *into, bool relaxed);

/* move.c: the operation that a block is at. */
Status move_data(struct run *run, struct block *b, int self, const MscclppOp *op);
bool packets_are_there(const struct run *run, const struct block *b, const MscclppOp *op);

/* Does a lane know that a port was told all that it was? */
bool proxy_is_known(const struct run *run, const struct block *b, int lane, const Clock *known,
    const struct proxy *proxy);
void proxy_tell(const struct run *run, struct block *b, int lane, const Clock *known, struct proxy *proxy);

/* Where a block is, for messages: "gpu 0, tb 1, op 3". */
const char *mscclpp_where(const struct run *run, int actor, int serial, char text[64]);

#endif
