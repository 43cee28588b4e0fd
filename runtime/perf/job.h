/* A job: its ranks, as processes or threads, and what they share. */
#ifndef BLINK_PERF_JOB_H
#define BLINK_PERF_JOB_H

#include "perf.h"

/* Start the ranks, wait for them, report the failure that explains the others. Exit code. */
int job_perf(const struct options *opt);

/* The rest is for a rank. */

/* The place for the id of the job. */
blinkUniqueId_t *job_id(struct job *job);

/* Wait until all ranks are here. 0; or one of them has failed, which it reports itself. */
int job_meet(struct perf *p);

/* The longest time of all ranks, and the sum of their wrong elements where they count them (n_wrong >= 0). As
 * job_meet. */
int job_share(struct perf *p, double *time, int64_t *n_wrong);

#endif
