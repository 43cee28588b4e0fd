/* A job: GPUs of a machine, what is asked for them, and all that lies between that and a verified schedule. */
#ifndef BLINK_JOB_H
#define BLINK_JOB_H

#include "request.h"

typedef struct {
	const Options *opt;
	const Topology *machine;
	int n;
	const int *gpu;		/* rank i is GPU gpu[i] of the machine */
	Request ask;		/* its root: -1, until somebody sets it */
	bool hybrid;
	HybridKind kind;
	unsigned classes;	/* of links, that it uses; set by job_induce */
	Part part[2];		/* of a hybrid job */
	const Topology *topo;	/* of the job; set by job_induce */
	const Topology *plane;	/* of a hybrid job: what is planned on */
} Job;

/* What options ask of any job. Fails: USAGE. */
Status job_parse(Ctx *ctx, const Options *opt, Job *job);

/* The links that it uses, and the topology of its GPUs and these links. Fails: as hybrid_parts and topo_induce do. */
Status job_induce(Ctx *ctx, Job *job);

/* From its topology to a schedule. *best: of the trees of one kind that were asked for (plan_algorithm), or FRAC_ZERO.
 * *out: NULL where a table was asked for, and printed, instead. */
Status job_plan(Ctx *ctx, const Job *job, Frac *best, Schedule **out);

/* What was asked goes into the schedule, and it becomes text. *json: the caller's to free, whatever is returned.
 * *again: the schedule that was read from that text, and verified. */
Status job_write(Ctx *ctx, const Job *job, Schedule *sched, Text *json, Schedule **again);

#endif
