/* blinkc job: the groups of a job, planned together. */
#ifndef BLINK_VERB_JOB_JOB_H
#define BLINK_VERB_JOB_JOB_H

#include "verb/options.h"
#include "workload/workload.h"

/* ---- request.c ---- */

typedef struct {
	const char *label;		/* the job's file */
	const Options *opt;
	const char *topology;		/* of the command line; NULL: not given */
	Workload *workload;
	Topology *whole, *machine;	/* before losses; what is left */
	int n_gpus;			/* that the job may have, at least one for each rank: */
	int *whole_gpu, *gpu;		/* their numbers in both */
	Ask ask;
} JobRequest;

/* topology: a file, or a machine that comes along; NULL: the job names it. *out: in the run arena. */
Status job_request(Ctx *ctx, const Options *opt, const char *label, const char *topology, JobRequest *out);

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

/* Seconds as people read them. */
void job_put_seconds(Text *out, double seconds);
void job_text(const JobPlans *plans, Text *out);
void job_json(const JobPlans *plans, const char *file, Text *out);

#endif
