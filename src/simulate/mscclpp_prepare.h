/* An execution plan of MSCCL++ as it is simulated. */
#ifndef BLINK_SIMULATE_MSCCLPP_PREPARE_H
#define BLINK_SIMULATE_MSCCLPP_PREPARE_H

#include "model/mscclpp.h"
#include "simulate/simulate.h"

/* What one operation moves from a GPU to another, or by a switch from or to all of them; packets also within a GPU. */
typedef struct {
	int block, op;		/* block: of all GPUs; op: of its operations */
	bool reads, packets;
	int channel;		/* of ports: of all GPUs, as SimMscclpp counts them; -1: none */
	int first_pair, n_pairs;
	int first_reader, n_readers;	/* of packets: in SimMscclpp's reader */
} MscclppTransfer;

/* An end of a memory or port channel. */
typedef struct {
	int other;		/* the other end; -1: none */
	int pair;		/* the way of signals from here to there */
} MscclppEnd;

typedef struct {
	const MscclppBlock *block;
	int gpu, first_op;	/* of all operations */
} MscclppPlace;

typedef struct {
	const Mscclpp *of;
	SimPlan plan;			/* a hop for each transfer, and no values. segment: its own number */
	MscclppTransfer *transfer;	/* in the order of operations */
	int *first_transfer;		/* of each operation of all threadblocks, and the end */
	int *reader, n_readers;		/* operations that read packets */
	int *n_packets;			/* of each operation: transfers of packets that it waits for */
	int *block_of;			/* likewise: its threadblock */
	int n_blocks, n_ops, n_ends, n_pairs;
	MscclppPlace *place;		/* of each threadblock, GPU by GPU */
	int *first_end[MSCCLPP_PORT + 1];	/* of each GPU */
	MscclppEnd *end;
	SimPair *pair;
	SimRoute *route;		/* of each pair */
} SimMscclpp;

/* plan: passes mscclpp_check. *out: without routes, in the run arena; keeps the plan. Pairs need ways. */
Status sim_mscclpp_list(Ctx *ctx, const Mscclpp *plan, SimMscclpp *out);

/* sched: its topology, collective, root, name and bound; it has no segments. route: of each pair; is kept.
 * Fails: INFEASIBLE a switch channel, and its GPUs have no switch that copies, or adds. */
Status sim_mscclpp_route(Ctx *ctx, const char *label, const Schedule *sched, SimRoute *route, SimMscclpp *m);

/* Chunks of the message, as blink-schedule(5) counts its bytes. */
int64_t sim_mscclpp_chunks(const Mscclpp *plan);

/* The parameters of an executor with the protocol of the plan, which says whether data go by packets. */
SimParameters sim_mscclpp_parameters(const Mscclpp *plan, const SimParameters *p);

#endif
