/* The schedule to run: a file, or the entry of an index for a job. */
#ifndef BLINK_PERF_FIND_H
#define BLINK_PERF_FIND_H

#include "options.h"

/* path: of the schedule's file; freed by the caller. 0, or the exit code of a failure, which is reported. */
int find_schedule(const struct options *opt, blinkSchedule_t *sched, char **path);

#endif
