/* blinkc job: the groups of a job, planned together. */
#ifndef BLINK_VERB_JOB_JOB_H
#define BLINK_VERB_JOB_JOB_H

#include "verb/options.h"
#include "workload/workload.h"

typedef struct {
	const JoinedWorkload *in;
	const Topology *whole;	/* the machine before losses, by whose numbers indexes name GPUs, */
	const int *gpu;		/* and the GPU of each rank there */
	PhasePlan *plan;	/* of each phase */
	Phases phases;		/* as the file has them */
} JobPlans;

/* ---- bundle.c ---- */

/* Names of the files of all groups, and what phases.json says. */
Status bundle_phases(Ctx *ctx, JobPlans *plans);

/* The schedules, phases.json and index.json, below a directory, which is created if missing. */
Status bundle_write(Ctx *ctx, const JobPlans *plans, const char *directory);

/* ---- text.c ---- */

void job_text(const JobPlans *plans, Text *out);
void job_json(const JobPlans *plans, const char *file, Text *out);

#endif
