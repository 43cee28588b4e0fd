/* What NCCL has beside a choice: rings and trees of a job, and what its versions count of the machine. */
#ifndef BLINK_CHOICE_NCCL_BESIDE_H
#define BLINK_CHOICE_NCCL_BESIDE_H

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
	int64_t m, time[N_NCCL_ALGORITHMS][N_NCCL_PROTOCOLS], ring_time;	/* ring_time: as of libblink's own */
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

/* Why versions are left out, NULL: they are not; what of NCCL is not in the model; jobs and rows of
 * versions, once there are rings. equal: servers have as many GPUs. */
const char *nccl_why_not(const Job *job, const NcclBeside *beside, bool equal);
const char *nccl_left_out(const Job *job, const NcclBeside *beside);
void nccl_set_versions(const Job *job, NcclBeside *out);

#endif
