/* What prices of links in one placement prove of all others. */
#ifndef BLINK_WORKLOAD_PRICES_H
#define BLINK_WORKLOAD_PRICES_H

#include "workload/planning.h"

/* A set of GPUs has a bit for each of those that ranks may have. */
enum { PRICED_GPUS = 16, PRICED_IMAGES = 16, PRICED_CUTS = 64 };

/* What proves the time of a phase: of each link of the machine its price; the sum of those times capacities, per
 * second. The bytes of all groups times the cost of their cheapest trees are no more than `room` times the time. */
typedef struct {
	int64_t *price;
	double room;
} LinkPrices;

/* Groups of a kind that have as many ranks. */
struct priced_size {
	int kind, n;
};

struct priced {
	Ctx *ctx;
	const Workload *w;
	const Topology *machine;
	const Ask *ask;
	const int *gpu;		/* n_gpus of the machine's */
	int n_gpus;
	size_t n_sets;
	int n_sizes, n_images, n_cuts, room;
	struct priced_size *size;
	int **size_of;		/* of each kind and group; -1: of one rank */
	uint16_t *image[PRICED_IMAGES];		/* of each set, under a symmetry of the machine; the first is none */
	double **cut;		/* of each cut: for each size and set the seconds that a group on that set costs at
				 * least; for a set of 0 GPUs the least of any */
	bool *out;		/* of each size and set: no placement that is fast enough has such a group */
};

/* n_gpus: at most PRICED_GPUS. *out: in the run arena. */
Status prices_open(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask,
    struct priced **out);

/* Those of a placement, for each phase, are a cut; after PRICED_CUTS nothing more comes in. Placements that take `most`
 * seconds or more are of no interest. *work: less one for each set of GPUs that is looked at. Fails: as job_induce,
 * demands_cost and bound_compute. */
Status prices_add(struct priced *p, const LinkPrices *prices, double most, int64_t *work);

#endif
