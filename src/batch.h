/* Schedules for many sets of GPUs of one machine. Sets that are the same machine up to names and numbers are of one class, which is
 * planned once. */
#ifndef BLINK_BATCH_H
#define BLINK_BATCH_H

#include "job.h"

#include <stdatomic.h>

/* ---- sets.c: which GPUs ---- */

/* GPUs of a job, in the order of its ranks. */
typedef struct {
	int n;
	const int *gpu;
} GpuSet;

/* Every set of so many GPUs as `sizes` has bits, 2 to n: small ones first, then by their GPUs. sizes: n + 1 entries.
 * Fails: LIMIT more than LIMIT_SETS. */
Status sets_all(Ctx *ctx, int n, const bool *sizes, GpuSet **out, int *n_sets);

/* One set of each orbit that the automorphisms of the machine make of all sets of these sizes, which are small: what sets_all gives, if
 * sets that are alike in the machine count once. Fails: LIMIT more than LIMIT_SETS. */
Status sets_distinct(Ctx *ctx, const Topology *machine, const bool *sizes, int n_workers, GpuSet **out, int *n_sets);

/* Those of a list, a line for each job, as schedulers give them (blinkc(1), --gpus); of these sizes only, in order, each once.
 * Fails: BAD_INPUT, naming the line; LIMIT. */
Status sets_read(Ctx *ctx, const char *label, const Text *text, const Topology *machine, const bool *sizes, GpuSet **out, int *n_sets);

/* The sets of jobs whatever the order of their GPUs, ascending, each once, and which is whose. */
Status sets_of_jobs(Ctx *ctx, const GpuSet *job, int n_jobs, GpuSet **out, int *n_sets, int **set_of);

/* For qsort: by the number of GPUs, then by the GPUs. */
int set_order(const void *a, const void *b);

/* "0-2,5": GPUs in ascending order, shortened by a digest where it is long. */
void set_name(const GpuSet *set, Text *out);

/* ---- batch.c ---- */

/* name in options, what it is */
#define ROOTS_LIST(X)                                                          \
	X(ROOTS_ALL, "all", "every rank")                                      \
	X(ROOTS_BEST, "best", "the fastest of each set")                       \
	X(ROOTS_CANONICAL, "canonical", "one of those that are alike")

typedef enum {
#define X(name, text, what) name,
	ROOTS_LIST(X)
#undef X
} RootsKind;

/* What is planned: a collective over the first set of a class. */
typedef struct {
	Collective coll;
	int set, root;		/* root: rank of the set; -1: none */
	const char *file;	/* below the directory */
} BatchPlan;

/* What came of it; in shared memory. */
typedef struct {
	Frac rate, bound;	/* bytes/s */
	double stated_rate, stated_bound;	/* GB/s, as the file has them */
	int trees, depth;
	bool kept;		/* an earlier file is what would be written */
	char note[256];		/* why an earlier file was planned anew; else "" */
} BatchResult;

typedef struct {
	const Options *opt;
	const Topology *machine;
	const char *directory;
	int n_workers;
	unsigned colls;			/* bit set */
	RootsKind roots;
	bool distinct;			/* of jobs that are alike only the first */
	int shard, n_shards;		/* of the plans those numbered shard, shard + n_shards ...; 0, 1: all */
	int n_jobs;			/* sets as they were asked for, each with ranks of its own */
	GpuSet *job;
	int *set_of;			/* of each job */
	int n_sets;
	GpuSet *set;			/* in ascending order, each once */
	struct forms *forms;		/* of each set without a root, and with each of its ranks as the root */
	int n_plans;
	BatchPlan *plan;
	BatchResult *result;		/* of each plan, by shared_array */
} Batch;

/* From the machine, the jobs and what is asked to the list of plans: classes are found. */
Status batch_prepare(Ctx *ctx, Batch *b);

/* What a set turned out to be. */
typedef struct {
	bool apart;		/* no links connect it; then nothing else is said */
	bool first;		/* of its class */
	unsigned links;		/* bit set of the link classes that it uses */
} SetClass;

SetClass batch_class(const Batch *b, int s);

/* Plan all that is not there yet, and write it. Fails: as the first plan that does; INFEASIBLE ones are left out. */
Status batch_run(Ctx *ctx, Batch *b);

/* What there is for each job. */
Status batch_index(Ctx *ctx, const Batch *b, Index **out);

void batch_free(Batch *b);

#endif
