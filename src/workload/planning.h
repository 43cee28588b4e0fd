/* The files that plan a phase together: phase.c has the order of things, the others a step each. */
#ifndef BLINK_WORKLOAD_PLANNING_H
#define BLINK_WORKLOAD_PLANNING_H

#include "plan/pack/concurrent/concurrent.h"
#include "workload/workload.h"

/* A call of a group that is the first of its orbit; the others are its images. */
struct planned {
	int call, kind, group;
	const JoinedGroup *joined;
	Ask ask;
	Plan alone;
	Packing *rings;		/* NULL: there are none */
	Packing *pack;		/* what is sent */
	const int64_t *matrix;	/* of its call, of that group; NULL: blocks are equal */
	int *part;		/* n_links: the orbit of each of its links under symmetries that keep the group */
	int *part_size;		/* of such an orbit, how many links it has */
	double *sent, *alone_sent, *ring_sent;	/* n_links: bytes over each; of rings NULL: there are none */
};

struct planning {
	Ctx *ctx;
	const JoinedWorkload *in;
	const Phase *phase;
	int n;
	struct planned *of;
	Concurrent *concurrent;
	SharedLinks links;	/* a row for each orbit */
	PhasePlan *out;
};

/* ---- alone.c ---- */

/* Bytes that trees send over each link in all calls; in the run arena. */
Status count_bytes(const struct planning *p, const struct planned *of, const Packing *pack, double **out);

/* The best schedule of a group alone, and its rings. Fails: as job_plan; LIMIT it has no list of all trees. */
Status plan_alone(struct planning *p, struct planned *of);

/* A plan that has no list of all trees is of no use here. */
Status fail_long(Ctx *ctx, Collective coll, int n_ranks);

/* ---- orbits.c ---- */

/* Where each rank of a group goes in the group that is its image. */
void image_ranks(const struct planning *p, const struct planned *of, const SymmetryWalk *walk, int *rank);

/* Links and bundles of a group that symmetries take to each other, while they keep the group. */
Status find_orbits(struct planning *p, struct planned *of, Concurrent *concurrent);

/* ---- shares.c ---- */

/* Groups one after the other: its own best schedule where that fits, else one within its shares. */
Status plan_groups(struct planning *p, const ConcurrentPlan *plan);

/* ---- images.c ---- */

/* All groups, as images of those that are planned; and what others would take. */
Status build_all(struct planning *p);

/* ---- ports.c ---- */

/* Seconds that a step takes at least, wherever ranks are on these GPUs: all that ranks send, over what their links
 * carry, where all pairs of GPUs are joined by links of one class; else 0. Fails: as job_induce. */
Status ports_least(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask,
    double *out);

/* Bytes of all calls, one after the other. */
static inline int64_t
bytes_of(const GroupCall *call)
{
	return call->bytes * call->times;
}

#endif
