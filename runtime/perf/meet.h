/* What the ranks of a job share, and how they meet. */
#ifndef BLINK_PERF_MEET_H
#define BLINK_PERF_MEET_H

#include "perf/perf.h"

#include <stdatomic.h>

enum { NAP = 20 };	/* ms between two looks */

struct member {
	double time;
	int64_t n_wrong;
	int code;
	char text[COMPLAINT];
};

struct job {
	const struct options *opt;
	char **gpus;		/* of the ranks; NULL: not given */
	int n, root;
	blinkUniqueId_t id;
	atomic_uint arrived, round, ended;
	atomic_int failed;
	struct member rank[];
};

/* Sleep while it has that value, for NAP at most; and wake who does. */
void wait_while(atomic_uint *word, unsigned value);
void wake_all(atomic_uint *word);

/* Wait until all ranks are here. 0; or one of them has failed, which it reports itself. */
int job_meet(struct perf *p);

/* The longest time of all ranks, and the sum of their wrong elements where they count them (n_wrong >= 0). As
 * job_meet. */
int job_share(struct perf *p, double *time, int64_t *n_wrong);

#endif
