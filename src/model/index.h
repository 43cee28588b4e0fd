/* Index: which schedule serves which set of GPUs. */
#ifndef BLINK_MODEL_INDEX_H
#define BLINK_MODEL_INDEX_H

#include "model/baseline.h"
#include "model/collective.h"

/* A job for which there is a schedule: GPU gpu[i] of the machine is rank i of the job, and plays rank[i] in the
 * file. */
typedef struct {
	int n;			/* GPUs */
	const int *gpu, *rank;
	Collective coll;
	int root;		/* rank of the job; -1: none */
	const char *file;	/* relative to the index; no part of it is ".." */
	double rate, bound;	/* GB/s, as the file states them */
	int trees, depth;
	int n_baselines;	/* 0: none are known */
	const IndexBaseline *baseline;
} IndexEntry;

/* What `blinkc batch` made for a machine, which a runtime looks up (blink-index(5)). Entries are in order: by the
 * number of GPUs, the GPUs as a list, the collective, the root. No two are for the same. */
typedef struct {
	const char *name, *digest;	/* of the machine */
	int n_gpus;
	const char **gpu;		/* ids, by their index in the machine */
	const char **by_id;		/* the same, ascending; NULL: not sorted */
	int n_entries;
	IndexEntry *entry;
} Index;

/* Below, at or above 0: the order of entries in an index. */
int index_order(const IndexEntry *a, const IndexEntry *b);

#endif
