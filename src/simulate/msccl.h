/* How long an algorithm of MSCCL takes, on the links of a machine: what sim_run is for schedules. msccl.c has the
 * model. */
#ifndef BLINK_SIMULATE_MSCCL_H
#define BLINK_SIMULATE_MSCCL_H

#include "model/msccl.h"
#include "simulate/simulate.h"

/* The way of what a threadblock sends; of one that sends nothing: no links. */
typedef struct {
	int n_links;
	const int *link;	/* from its GPU to the one that it sends to */
} MscclRoute;

typedef struct MscclPlace MscclPlace;

/* An algorithm with a way for each connection. Threadblocks are counted over all GPUs. */
typedef struct {
	const Msccl *algo;
	/* A hop for each threadblock, and no values: what it sends. segment: its own number; edge: its channel. */
	SimPlan plan;
	int slots;		/* messages that a connection holds */
	MscclPlace *place;	/* of each threadblock */
} SimMsccl;

/* algo: passes msccl_check. sched: its topology, collective, root, name and bound; it has no segments. route: of each
 * threadblock, GPU by GPU. *out: in the run arena; keeps all of these. */
Status sim_msccl_prepare(Ctx *ctx, const Msccl *algo, const Schedule *sched, const MscclRoute *route, int slots,
    SimMsccl *out);

/* Bytes of a message that executors make at most with this protocol, and cut chunks into. */
int64_t sim_msccl_slice(const Msccl *algo);

/* The parameters of an executor with the protocol of the file, which says whether messages go by packets. */
SimParameters sim_msccl_parameters(const Msccl *algo, const SimParameters *p);

/* ask: p as sim_msccl_parameters has it; chunk: bytes of a message, at most. out->n_chunks: messages that a chunk of
 * the algorithm is cut into. Fails: as sim_run does. Cost: about a us for a message. */
Status sim_msccl_run(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out);

/* As sim_msccl_run, with the power of two, from 4 KiB to what the protocol allows, that takes least time. */
Status sim_msccl_run_best(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out);

#endif
