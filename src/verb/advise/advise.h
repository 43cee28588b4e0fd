/* blinkc advise: which GPUs to ask for. */
#ifndef BLINK_VERB_ADVISE_H
#define BLINK_VERB_ADVISE_H

#include "verb/batch/batch.h"

/* Isomorphic sets. */
typedef struct {
	int n;			/* GPUs */
	int n_sets, *set;	/* by their numbers in the batch, ascending */
	int root;		/* the best, a rank of the first set; -1: none */
	bool planned;		/* else there are no trees as asked for, and the rest means nothing */
	Frac rate, bound;	/* bytes/s */
	Assumed assumed;	/* what the bound depends on */
	double share;		/* of the rate of the best class of as many GPUs */
	unsigned links;		/* bit set */
} AdvisedClass;

typedef struct {
	const Batch *b;
	Collective coll;
	int n_classes;
	AdvisedClass *class;	/* by their number of GPUs; the fastest first */
	int n_disconnected;	/* sets that no links connect */
} Advice;

/* all: of a table every line, of classes every set. */
void advise_text(const Advice *a, bool all, Text *out);
void advise_json(const Advice *a, Text *out);

/* Lines for gres.conf, and for a script of a job that has the whole node. */
Status advise_slurm(Ctx *ctx, const Advice *a, Text *out);

/* --job: which GPU each rank of a job should have (placement.c). */
Status advise_job(Ctx *ctx, const Options *opt, const char *format);

#endif
