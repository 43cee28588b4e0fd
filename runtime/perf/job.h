/* A job: its ranks, as processes or threads. */
#ifndef BLINK_PERF_JOB_H
#define BLINK_PERF_JOB_H

#include "perf/options.h"

/* Start the ranks, wait for them, report the failure that explains the others. Exit code. */
int job_perf(const struct options *opt);

#endif
