/* The schedule to run: a file, or the entry of an index for a job; the GPUs of a job. */
#ifndef BLINK_PERF_FIND_H
#define BLINK_PERF_FIND_H

#include "perf/options.h"

/* path: of the schedule's file; freed by the caller. 0, or the exit code of a failure, which is reported. */
int find_schedule(const struct options *opt, blinkSchedule_t *sched, char **path);

/* Of a job of opt->ranks ranks: the ids of their GPUs, which --gpus has, of the index at opt->path; NULL: not given.
 * As find_schedule. */
int find_job_gpus(const struct options *opt, char ***gpus);
void find_free_gpus(char **gpus, int n);

/* The rank that --root means. gpus: as above. */
int find_job_root(const struct options *opt, char *const *gpus, int *root);

#endif
