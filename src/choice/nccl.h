/* NCCL beside a choice: for messages of a size what each version would take (nccl_model.h), and how long that is in
 * the simulator, over the links of the job.
 *
 * The rings are those of plan/baseline.c, which are at least as fast as those that NCCL's search finds, or over servers
 * NCCL's own (nccl_servers.h), whichever are faster; a tree in one server is a chain, as it is for NCCL: such a ring
 * without one hop, up and down. LL is simulated as packets, LL128
 * with 120 of 128 bytes of data, without fences and with the latency that NCCL counts for it; chunks are as long as
 * takes the least time. So times are at most what NCCL's own rings, channels and chunks would take in the simulator. */
#ifndef BLINK_CHOICE_NCCL_H
#define BLINK_CHOICE_NCCL_H

#include "choice/nccl_model.h"
#include "choice/nccl_servers.h"
#include "compile.h"
#include "plan/baseline.h"
#include "simulate/simulate.h"

/* Rings, and NCCL's trees, planned and prepared: simulations by a protocol begin when they are asked for. */
typedef struct {
	RingPacking rings;
	RingPacking inner;	/* of several servers: rings of the first one alone; n is 0 with one GPU */
	const Topology *all;	/* of several servers: all links of the job; NULL */
	const Schedule *sched[N_NCCL_ALGORITHMS];	/* NULL: there are none */
	SimPlan *plan[N_NCCL_ALGORITHMS], *ll128[N_NCCL_ALGORITHMS];
	/* What was simulated last: messages of m bytes; ps, 0: not yet. */
	int64_t m, time[N_NCCL_ALGORITHMS][N_NCCL_PROTOCOLS];
} NcclRings;

enum { NCCL_RING_ROWS = LIMIT_BASELINES };

typedef struct {
	SimParameters p;
	Collective coll;
	int n_rings;		/* rows of plan/baseline.c */
	NcclRings *rings[NCCL_RING_ROWS];	/* rows that have the same rings share them */
	const char *why_not;	/* the versions are left out, and why: a line for people; NULL: they are not */
	NcclServers servers;
	NcclCards cards;	/* of each of several servers */
	bool far;		/* as NcclGraph has it */
	const char *left_out;	/* what of NCCL is not in the model, though this machine has it; or NULL */
	int row[N_NCCL_VERSIONS];	/* whose rings a version has */
	NcclJob job[N_NCCL_VERSIONS];
} NcclBeside;

/* job: from job_induce; outlives *out. *out: in the run arena; without rings where NCCL has none for the collective.
 * Fails: LIMIT. Cost: that of baselines_find. */
Status nccl_prepare(Ctx *ctx, const Job *job, const SimParameters *p, NcclBeside **out);

/* ps of the rings of a row, executed as our schedules are; -1: there are none, or they are too large. */
Status nccl_ring_time(Ctx *ctx, NcclBeside *beside, int row, int64_t m, int64_t *time);

/* What a version takes, and ps of that in the simulator; -1: there are no rings, or they are too large. Only where
 * !why_not. */
Status nccl_time(Ctx *ctx, NcclBeside *beside, int version, int64_t m, NcclChoice *choice, int64_t *time);

#endif
