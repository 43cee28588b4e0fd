/* Schedules for many sets of GPUs of one machine. Isomorphic sets, the same machine up to names and numbers, are one
 * class, which is planned once. */
#ifndef BLINK_VERB_BATCH_BATCH_H
#define BLINK_VERB_BATCH_BATCH_H

#include "compile.h"
#include "topology/topology.h"

#include <stdatomic.h>
#include <stdio.h>

/* ---- sets.c: which GPUs ---- */

/* GPUs of a job, in the order of its ranks. */
typedef struct {
	int n;
	const int *gpu;
} GpuSet;

/* Every set of 2 to n GPUs whose size k has sizes[k]: small ones first, then by their GPUs. sizes: n + 1 entries.
 * Fails: LIMIT more than LIMIT_SETS. */
Status sets_all(Ctx *ctx, int n, const bool *sizes, GpuSet **out, int *n_sets);

/* One set of each orbit under the automorphisms of the machine, of these sizes, which are small: what sets_all gives,
 * with equivalent sets counted once. Fails: LIMIT more than LIMIT_SETS. */
Status sets_distinct(Ctx *ctx, const Topology *machine, const bool *sizes, int n_workers, GpuSet **out, int *n_sets);

/* Those of a list, a line for each job, as schedulers give them (blinkc(1), --gpus); of these sizes only, in order,
 * each once.
 * Fails: BAD_INPUT, naming the line; LIMIT. */
Status sets_read(Ctx *ctx, const char *label, const Text *text, const Topology *machine, const bool *sizes,
    GpuSet **out, int *n_sets);

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
	X(ROOTS_CANONICAL, "canonical", "one of each orbit")

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
	int n_baselines;
	Baseline baseline[LIMIT_BASELINES];
	bool kept;		/* an earlier file is what would be written */
	char note[256];		/* why an earlier file was planned anew; else "" */
} BatchResult;

/* Variants of sets: a set without a root, or with one of its ranks as the root. Those of set s are first[s] and, if
 * there are collectives with a root, the next n. */
typedef struct {
	bool rooted;
	size_t n_variants, n_places;
	size_t *first, *first_place;	/* of each set; n_sets + 1 */
	int *set_of;			/* of each variant */
	unsigned char (*form)[CANONICAL_FORM_BYTES];	/* in shared memory, as are the next three */
	uint16_t *place;		/* of the ranks of each variant, in its canonical form */
	unsigned *links;		/* classes of the links that each set uses, as a bit set */
	unsigned char *disconnected;	/* of each set: whether no links connect it */
	int *representative;		/* of each variant: the first of its form */
	int *number;			/* of each representative, among those with a root or those without; else -1 */
} SetClasses;

typedef struct {
	const Topology *machine;
	Ask ask;			/* of each plan, but for its collective and root */
	const char *directory;
	int n_workers;
	unsigned colls;			/* bit set */
	RootsKind roots;
	bool distinct;			/* of isomorphic jobs only the first */
	int shard, n_shards;		/* of the plans those numbered shard, shard + n_shards ...; 0, 1: all */
	int n_jobs;			/* sets as they were asked for, each with ranks of its own */
	GpuSet *job;
	int *set_of;			/* of each job */
	int n_sets;
	GpuSet *set;			/* in ascending order, each once */
	SetClasses *classes;
	int n_plans, first_plan[N_COLLECTIVES];
	BatchPlan *plan;		/* by collective, then by the number of the representative */
	BatchResult *result;		/* of each plan, by shared_array */
} Batch;

/* ---- classes.c: isomorphism classes of sets ---- */

/* b->classes, and with `distinct` fewer jobs. Fails: LIMIT too many variants. */
Status classes_find(Ctx *ctx, Batch *b);
void classes_free(SetClasses *classes);

int variant_root(const SetClasses *classes, int v);		/* rank of the set; -1: none */
const uint16_t *variant_place(const Batch *b, int v);	/* of each rank: equal places are images in an isomorphism */

/* What a set turned out to be. */
typedef struct {
	bool disconnected;	/* then the rest means nothing */
	bool first;		/* of its class */
	unsigned links;		/* bit set of the link classes that it uses */
} SetClass;

SetClass batch_class(const Batch *b, int s);

/* ---- plans.c: which schedules, and their planning ---- */

/* A plan for each class and collective. */
Status plans_list(Ctx *ctx, Batch *b);

/* Plan all that is not there yet, and write it. Fails: as the first plan that does; INFEASIBLE ones are left out. */
Status plans_run(Ctx *ctx, Batch *b);

/* ---- earlier.c ---- */

/* If the file is what the job would write: result, with `kept`; else a note, if there is a file. */
void earlier_keep(const Job *job, const char *path, BatchResult *result);

Status result_take(Ctx *ctx, const Schedule *sched, BatchResult *result);

/* ---- index.c ---- */

/* What there is for each job. Fails: LIMIT more entries than an index may have. */
Status batch_index(Ctx *ctx, const Batch *b, Index **out);

/* ---- summary.c: for people ---- */

/* What a batch found, planned and kept. verbose: a line for each plan. index: NULL where it was not written. */
void batch_print(FILE *to, const Batch *b, bool verbose, const Index *index, int64_t index_bytes);

#endif
