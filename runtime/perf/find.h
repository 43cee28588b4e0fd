/* The schedule that is run: of a file, or the one that an index has for a job. */
#ifndef BLINK_PERF_FIND_H
#define BLINK_PERF_FIND_H

#include "options.h"

/* path: of the schedule's file; the caller's to free. 0, or the exit code of what went wrong and has been said. */
int find_schedule(const struct options *opt, blinkSchedule_t *sched, char **path);

#endif
