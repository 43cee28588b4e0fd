/* Schedules for many sets of GPUs of one machine. Isomorphic sets, the same machine up to names and numbers, are one
 * class, which is planned once. */
#ifndef BLINK_VERB_BATCH_BATCH_H
#define BLINK_VERB_BATCH_BATCH_H

#include "base/file.h"
#include "base/json_write.h"
#include "choice/choice.h"
#include "topology/topology.h"
#include "verb/request.h"

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

/* Those of a list, a line for each job, as schedulers give them (blinkc-batch(1), --gpus); of these sizes only, in
 * order, each once.
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

typedef enum { ROOTS_LIST(ROW_NAME) } RootsKind;

/* What is planned: a collective over the first set of a class. */
typedef struct {
	Collective coll;
	int set, root;		/* set: on its machine; root: rank of the set; -1: none */
	const char *file;	/* below the directory */
} BatchPlan;

/* What came of it; in shared memory. */
typedef struct {
	Frac rate, bound;	/* bytes/s */
	Assumed assumed;	/* what the bound depends on */
	double stated_rate, stated_bound;	/* GB/s, as the file has them */
	int trees, depth;
	uint64_t form;		/* topo_invariant of the job, where the index has the machine */
	int n_baselines;
	Baseline baseline[LIMIT_BASELINES];
	int n_ranges;		/* of a tuned plan, whose file is one for each algorithm of them */
	bool kept;		/* an earlier file is what would be written */
	char note[256];		/* why an earlier file was planned anew; else "" */
} BatchResult;

/* ---- tune.c ---- */

/* Of `blinkc tune`: for which sizes, and what executes the schedules. */
typedef struct {
	Sizes sizes;		/* ascending */
	Executor executor;
	Parameters given;	/* --parameters */
	SimParameters p;	/* of the machine: tuning_for */
	bool plans, in_place;	/* what is written are plans of MSCCL++ */
	bool rules;		/* or rules for Open MPI */
} Tuning;

enum { TUNED_RANGES = 256 };	/* of a plan, at most: SIZES_MAX sizes, and what is found between them */

/* Which algorithm messages of from to `to` bytes have; in shared memory. */
typedef struct {
	int64_t from, to;
	int64_t multiple;	/* of plans of MSCCL++: a message is one of this number of bytes */
	int64_t time, least;	/* ps: at `from`, or for the first range at the first size; ChoicePoint */
	char way[CANDIDATE_NAME];
	double stated_rate, stated_bound;
	int trees, depth;
} TunedRange;

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
	unsigned char *disconnected;	/* of each set: whether no links connect it, or a GPU is lost */
	int *representative;		/* of each variant: the first of its form */
	int *number;			/* of each representative, among those with a root or those without; else -1 */
} SetClasses;

/* The machine, or what is left of it. */
typedef struct {
	const Topology *topo;
	const char *without;	/* what is lost (topo_losses_name); NULL: nothing */
	const int *gpu;		/* of each GPU of the whole machine its number here; -1: lost; NULL: all are here */
	Routes routes;		/* of its jobs: as asked for, or what is better for it */
} Machine;

typedef struct {
	const Topology *machine;	/* the whole one, whose numbers GPUs have */
	Machine base;			/* what the batch is for: the whole machine, or what --without leaves of it */
	int n_machines;
	const Machine *of;		/* the first is the base */
	Ask ask;			/* of each plan, but for its collective and root */
	const char *directory;		/* NULL: nothing is written */
	int n_workers;
	unsigned colls;			/* bit set */
	RootsKind roots;
	bool by_form;			/* the index has the machine: jobs that it does not list are found by theirs */
	bool failures;			/* also schedules for each single loss */
	bool distinct;			/* of isomorphic jobs only the first */
	int shard, n_shards;		/* of the plans those numbered shard, shard + n_shards ...; 0, 1: all */
	int n_jobs;			/* sets as they were asked for, each with ranks of its own */
	GpuSet *job;
	int *set_of;			/* of each job */
	int n_sets;
	GpuSet *set;			/* in ascending order, each once; on machine m it is m * n_sets + s */
	SetClasses *classes;
	int n_plans, first_plan[N_COLLECTIVES];
	BatchPlan *plan;		/* by collective, then by the number of the representative */
	BatchResult *result;		/* of each plan, by shared_array */
	const Tuning *tuning;		/* NULL: one schedule for all sizes */
	TunedRange *range;		/* TUNED_RANGES of each plan, by shared_array; NULL: not tuned */
	int64_t index_bytes;		/* of all indexes that were written */
} Batch;

/* ---- machines.c: sets on the machine and on what is left of it ---- */

/* A machine for each loss, after the base; together: one that has all of them. Those with fewer than 2 GPUs are left
 * out. Fails: LIMIT too many sets on them. */
Status batch_machines(Ctx *ctx, Batch *b, const Loss *loss, int n, bool together);

int batch_all_sets(const Batch *b);			/* on all machines */
const GpuSet *batch_set(const Batch *b, int s);		/* by its number on its machine */
const Machine *batch_machine(const Batch *b, int s);

bool machine_lost(const Machine *machine, const GpuSet *set);	/* one of its GPUs */

/* The job of a set on its machine. Fails: as job_induce does; INFEASIBLE a GPU is lost. */
Status batch_induce(Ctx *ctx, const Batch *b, int s, const Ask *ask, Job *out);

/* ---- batch.c ---- */

/* From the options to the machine and the sets of GPUs of jobs. directory: there has to be one. */
Status batch_jobs(Ctx *ctx, const Options *opt, Tuning *tuning, bool directory, Batch *b);

/* A batch, or with `tuning` a tuned one: all that its verb does. */
Status batch_run(Ctx *ctx, const Options *opt, Tuning *tuning);

/* Parameters and sizes, now that the machine is known. */
void tuning_for(const Topology *machine, Tuning *tuning);

void batch_free(Batch *b);

/* From the options to rates of jobs, whatever the number of trees; lost: as for batch_read. machines: calls
 * batch_machines, NULL: for the machine alone. */
Status batch_rates(Ctx *ctx, const Options *opt, bool lost, Status (*machines)(Ctx *, const Options *, Batch *),
    Batch *b);

Collective batch_collective(const Batch *b);		/* the first */

/* The machine as a member of a JSON object. named: whose name and digest it has. */
void batch_put_machine(const Batch *b, const Topology *named, JsonWriter *w);

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

/* ---- paths.c ---- */

/* Where a file of this name is. Fails: LIMIT too long. */
Status batch_path(Ctx *ctx, const Batch *b, const char *file, char path[FILE_PATH_ROOM]);

/* The file of a range, below the directory. */
Status tuned_file(Ctx *ctx, const BatchPlan *plan, const TunedRange *range, const char **out);

/* ---- plans.c: which schedules, and their planning ---- */

/* A plan for each class and collective. */
Status plans_list(Ctx *ctx, Batch *b);

/* Plan all that is not there yet, and write it. Fails: as the first plan that does; INFEASIBLE ones are left out. */
Status plans_run(Ctx *ctx, Batch *b);

/* "index.json", or of a machine that has lost something "index.without-gpu3-gpu5.json". */
void batch_index_name(const char *without, Text *out);

/* ---- earlier.c ---- */

/* If the file is what the job would write: result, with `kept`; else a note, if there is a file. */
void earlier_keep(const Job *job, const char *path, BatchResult *result);

Status result_take(Ctx *ctx, const Schedule *sched, BatchResult *result);

/* ---- tune.c ---- */

/* b->range and b->result of plan p, and its files. Fails: as choice_prepare and choice_of_size. */
Status tune_plan(Ctx *ctx, const Batch *b, const Job *job, int p);

/* tune_mscclpp.c: the same for plans of MSCCL++: b->range, b->result and a file for each range. */
Status tune_mscclpp_plan(Ctx *ctx, const Batch *b, const Job *job, int p);

/* Are the collectives, sizes and GPUs of the batch what plans can be for? Fails: USAGE. */
Status tune_mscclpp_check(Ctx *ctx, const Options *opt, Batch *b);

/* register.py, by which MSCCL++ takes the plans. */
Status tune_mscclpp_register(Ctx *ctx, const Batch *b);

/* What is chosen for each size. */
typedef struct Sweep Sweep;
struct Sweep {
	Status (*at)(Ctx *ctx, const Sweep *s, int64_t m, ChoicePoint *out);	/* the best of the ways for this size */
	void *of;
	TunedRange *range;	/* of one plan, TUNED_RANGES */
	int *way;		/* of each range */
	int n;
};

/* Of these sizes, and of what is between them. */
Status tune_sweep(Ctx *ctx, Sweep *s, const Sizes *sizes);

/* A line for each range of each plan; of many plans only if verbose. */
void tune_print(FILE *to, const Batch *b, bool verbose);

/* ---- rules.c ---- */

/* Instead of schedules, rules for Open MPI: all that tune --format ompi-rules does. */
Status rules_run(Ctx *ctx, const Options *opt, Tuning *tuning);

/* ---- index.c ---- */

/* The plan of set s on its machine, of its best root where there is one, which goes to *root: a rank of the set, or -1.
 * -1: it has none. */
int batch_best(const Batch *b, Collective coll, int s, int *root);

/* What there is for each job on machine m. Fails: LIMIT more entries than an index may have. */
Status batch_index(Ctx *ctx, const Batch *b, int m, Index **out);

/* ---- summary.c: for people ---- */

/* What a batch found, planned and kept. verbose: a line for each plan. index: NULL where it was not written. */
void batch_print(FILE *to, const Batch *b, bool verbose, const Index *index);

#endif
