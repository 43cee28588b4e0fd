/* blinkc what-if: which jobs get slower when a machine loses something. */
#ifndef BLINK_VERB_WHATIF_H
#define BLINK_VERB_WHATIF_H

#include "verb/batch/batch.h"

typedef enum {
	JOB_SAME,
	JOB_SLOWER,
	JOB_FASTER,		/* the default links are others */
	JOB_DISCONNECTED,	/* by the links that are left */
	JOB_LOST		/* one of its GPUs is lost */
} JobState;

/* A set before and after the loss. */
typedef struct {
	int set;		/* number of the set on the whole machine */
	JobState state;
	Frac before, after;	/* bytes/s, from the best root where there is one; after: 0: there is no schedule */
	double loss;		/* 1 - after / before */
	Assumed guessed[2];	/* what the bounds before and after depend on */
} JobChange;

typedef struct {
	const Machine *machine;
	int n_jobs;		/* that had a schedule before */
	int count[JOB_LOST + 1];	/* by state */
	double mean;		/* loss of all jobs */
	JobChange *job;		/* n_jobs; the largest loss first */
} LossCost;

typedef struct {
	const Batch *b;
	Collective coll;
	bool ranked;		/* single losses, the most expensive first; else one loss that was asked for */
	int n;
	LossCost *cost;
} WhatIf;

/* all: every line of a table. */
void whatif_text(const WhatIf *w, bool all, Text *out);
void whatif_json(const WhatIf *w, Text *out);

#endif
