/* The state of one simulation, for the files of this folder. */
#ifndef BLINK_SIMULATE_RUN_H
#define BLINK_SIMULATE_RUN_H

#include "simulate/queue.h"
#include "simulate/simulate.h"

enum { WEIGHT_ONE = 1 << 20, RATE_BITS = 20 };

typedef enum { HOP_IDLE, HOP_WAITING, HOP_STARTING, HOP_MOVING, HOP_ADDING } HopState;

/* At most one chunk of a hop is on its way to begin, moving or being added by the sender: they follow one another. */
struct hop_run {
	HopState state;
	int64_t begun, moved, arrived;	/* chunks that have begun, whose bytes have begun to move, that have arrived */
	int64_t latency;		/* ps, of its path */
	int64_t weight;			/* of its share of a link */
	Wide left, rate;		/* work left at `since`, and done in each ps: bytes * PS_PER_S << RATE_BITS */
	int64_t since, ready;		/* ready: when it began to wait */
	int step, cause;		/* the current step; what let it be ready */
	int first_place;		/* of its places in the lists of its links */
};

struct value_run {
	int64_t there;		/* chunks that are complete */
	int have;		/* hops that have brought the next one */
	bool serial;		/* hops are added one after the other, beside the next step */
	bool adding;
	int next;		/* serial: of its hops, the one that is added next */
};

struct link_run {
	int n;			/* steps that move on it */
	int first;		/* of their list */
	int64_t rate;		/* bytes/s */
	int64_t weights;
	Wide unit;		/* for each of `weights`: (bytes/s << 2 * RATE_BITS) / weights */
	bool changed;
	int64_t since;
};

struct gpu_run {
	int sending;
	int freed_by;		/* the step that ended last */
	bool touched;
	Keys waiting;		/* chunk << HOP_BITS | hop */
};

enum { HOP_BITS = 23 };

struct run {
	Ctx *ctx;
	const SimPlan *plan;
	const SimAsk *ask;
	SimResult *out;
	int64_t now;
	int64_t *bytes, *chunks;	/* of each segment; and their number */
	struct hop_run *hop;
	struct value_run *value;
	struct link_run *link;
	struct gpu_run *gpu;
	int *moving, *place;		/* lists of links; of each hop and link of it: where it is there */
	int *changed, n_changed;	/* links */
	int *touched, n_touched;	/* GPUs */
	Clocks clocks;			/* of hops: when they go on to their next state */
	Events events;			/* ids: hops, whose chunks arrive; n_hops + a value, which has added or
					 * is input */
	int64_t *first_step;		/* steps are kept: of each hop, of its places in step_at */
	int *step_at;			/* the step of each chunk of each hop */
};

/* links.c */
Status links_new(struct run *run);
void links_enter(struct run *run, int h);	/* its bytes begin to move, or end */
void links_leave(struct run *run, int h);
Status links_share(struct run *run);		/* new rates and ends of what moves on links that changed */

static inline int64_t
chunk_bytes(const struct run *run, int segment, int64_t chunk)
{
	int64_t all = run->bytes[segment], size = run->ask->chunk, left = all - chunk * size;
	return left < size ? left : size;
}

static inline bool
by_packets(const SimAsk *ask)
{
	return ask->m <= ask->p.packet_most;
}

#endif
