/* A plan of MSCCL++ while it is simulated: mscclpp.c has what threadblocks do, mscclpp_ports.c what proxies and ports
 * do for them, mscclpp_start.c the state at the beginning. */
#ifndef BLINK_SIMULATE_MSCCLPP_RUN_H
#define BLINK_SIMULATE_MSCCLPP_RUN_H

#include "simulate/blocks.h"
#include "simulate/mscclpp_prepare.h"

typedef enum { BLOCK_WAITING, BLOCK_ADDING, BLOCK_STARTING, BLOCK_MOVING, BLOCK_ADDING_LAST } BlockState;

struct block {
	BlockState state;
	int op, loop;		/* the current operation; the pipeline that it is in, -1: none */
	int64_t unit, n_units;	/* of that pipeline */
	int left;		/* transfers whose bytes move, or are not here */
	int64_t bytes;		/* of each range */
	int cause;		/* the message that let it go on last; -1: the call */
	int round;		/* of the barrier that it has arrived at, + 1; 0: at none */
	bool told;		/* its ports, of a put that it waits for the end of */
};

/* A put, or a signal (hop -1), or both. */
struct request {
	int hop, end, message, cause;
	bool signals;
	int64_t bytes, unit;
	struct request *next;
};

struct requests {
	struct request *first, *last;
};

/* Of an end of a channel: signals that are here; of a port, what it is to do. */
struct channel_end {
	int64_t n;
	int waiter;		/* a threadblock; -1: none waits */
	int unsent;		/* requests that have not left */
	int flusher;		/* a threadblock that waits for that; -1: none */
	struct request *moves;
	struct requests requests;
};

struct semaphore {
	int64_t n;
	int waiter;
};

struct barrier {
	int arrived, round;
};

struct gpu {
	int first_block, end_block;
	struct semaphore *semaphore;
	struct barrier *barrier;
	struct requests requests;	/* of its proxy */
	bool busy;
};

struct plan_run {
	struct blocks all;
	const SimMscclpp *of;
	struct block *block;
	struct channel_end *end;
	struct gpu *gpu;
	int *message;			/* of each transfer: the one under way */
	int *n_packets;			/* of each operation: transfers that it waits for */
	int64_t *add;			/* of each operation: bytes/s by the slowest link of a summand; 0: any */
	int64_t *latency, *relaxed;	/* of each pair: ps; of packets and relaxed signals */
	int64_t chunk;			/* bytes */
	struct request *unused;
};

enum { NOBODY = -1 };

/* Events: a transfer arrives; a threadblock goes on; a signal arrives at an end; a proxy has done a start-up. */
static inline int
id_of_block(const struct plan_run *p, int t)
{
	return p->of->plan.n_hops + t;
}

static inline int
id_of_end(const struct plan_run *p, int e)
{
	return p->of->plan.n_hops + p->of->n_blocks + e;
}

static inline int
id_of_proxy(const struct plan_run *p, int g)
{
	return p->of->plan.n_hops + p->of->n_blocks + p->of->n_ends + g;
}

/* A threadblock that waits, or -1, looks again whether it can go on. cause: the message that lets it. */
static inline void
mscclpp_wake(struct plan_run *p, int t, int cause)
{
	if (t < 0 || p->block[t].state != BLOCK_WAITING)
		return;
	p->block[t].cause = cause;
	blocks_wake(&p->all, t);
}

/* ---- mscclpp_ports.c ---- */

/* Threadblock t tells the proxy of its GPU; a signal arrives at the other end of a channel after its latency, ps. */
Status mscclpp_ask_proxy(struct plan_run *p, int t, struct request of);
Status mscclpp_send_signal(struct plan_run *p, int end, int64_t latency, int cause);

/* The proxy of a GPU has done a start-up; the bytes of a port's put have left. */
Status mscclpp_go_on_proxy(struct plan_run *p, int g);
Status mscclpp_end_put(struct plan_run *p, int e);

/* ---- mscclpp_start.c ---- */

/* Bytes of a range; of the current unit in a pipeline. */
int64_t mscclpp_range_bytes(const struct plan_run *p, const struct block *b, const MscclppOp *loop,
    const MscclppOp *op);
int64_t mscclpp_units(const struct plan_run *p, const MscclppOp *loop);

/* The message in chunks, and all that the plan begins with. Fails: as blocks_room. */
Status mscclpp_start(struct plan_run *p);

#endif
