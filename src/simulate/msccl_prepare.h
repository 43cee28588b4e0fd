/* An algorithm of MSCCL as it is simulated. */
#ifndef BLINK_SIMULATE_MSCCL_PREPARE_H
#define BLINK_SIMULATE_MSCCL_PREPARE_H

#include "model/msccl.h"
#include "simulate/simulate.h"

/* A threadblock, with what does not change from run to run. */
typedef struct {
	const MscclBlock *block;
	int gpu, first;		/* first: the first threadblock of its GPU */
	int in;			/* the threadblock that sends to it; -1: none */
	int to;			/* that it sends to; -1: none */
	bool *adds;		/* of each step: what receives its messages reduces them */
} MscclPlace;

/* An algorithm with a way for each connection. Threadblocks are counted over all GPUs. */
typedef struct {
	const Msccl *algo;
	/* A hop for each threadblock, and no values: what it sends. segment: its own number; edge: its channel. */
	SimPlan plan;
	int slots;		/* messages that a connection holds */
	MscclPlace *place;	/* of each threadblock */
} SimMsccl;

/* algo: passes msccl_check. sched: its topology, collective, root, name and bound; it has no segments. route: of each
 * threadblock, GPU by GPU; of one that sends nothing: no links. *out: in the run arena; keeps all of these. */
Status sim_msccl_prepare(Ctx *ctx, const Msccl *algo, const Schedule *sched, const SimRoute *route, int slots,
    SimMsccl *out);

/* Chunks of the message, as blink-schedule(5) counts its bytes. */
int64_t sim_msccl_chunks(const Msccl *algo);

/* Bytes of a message that executors make at most with this protocol, and cut chunks into. */
int64_t sim_msccl_slice(const Msccl *algo);

/* The parameters of an executor with the protocol of the file, which says whether messages go by packets. */
SimParameters sim_msccl_parameters(const Msccl *algo, const SimParameters *p);

#endif
