/* The files that search placements of ranks: placement.c has the order of things, search.c and exact.c a step each. */
#ifndef BLINK_WORKLOAD_SEARCH_H
#define BLINK_WORKLOAD_SEARCH_H

#include "workload/prices.h"

struct seen;

struct search {
	Ctx *ctx;
	const Workload *w;
	const Topology *machine;
	const Ask *ask;
	int n, n_gpus;		/* ranks; GPUs that they may have, */
	const int *gpu;		/* by their numbers in the machine */
	int64_t *member;	/* of all groups, kind by kind: equal numbers where two members may change places */
	int64_t work;		/* that is left */
	struct seen *seen;	/* a table by hash, less than half full */
	int n_seen, room, n_looked;
	int *best;		/* of each rank the place of its GPU in `gpu` */
	double least, most;
	double floor;		/* no placement takes less */
	struct priced *priced;	/* NULL: prices are not kept */
};

/* s: with all that is known of the job. *s: its members and, as the best so far, ranks in order. */
Status search_open(struct search *s);

/* Seconds of a placement of all ranks, which may become the best: at[] is of each rank the place of its GPU in s->gpu.
 * Infinite where no links connect a group. */
Status look(struct search *s, const int *at, double *seconds);

/* The prices of the best placement come in. */
Status price_best(struct search *s);

/* ---- exact.c ---- */

/* All placements that may be faster than the best. *all: s->work was enough, so that none is; of more GPUs than
 * PRICED_GPUS nothing is tried. Fails: as look and prices_add. Cost: what is tried depends on how many groups have to
 * share links; of 16 GPUs 2 to 3 s. */
Status exact_placements(struct search *s, bool *all);

#endif
