/* Index: which schedule serves which set of GPUs. */
#ifndef BLINK_MODEL_INDEX_H
#define BLINK_MODEL_INDEX_H

#include "model/ask.h"
#include "model/baseline.h"
#include "model/collective.h"
#include "model/topology.h"

/* A job for which there is a schedule: GPU gpu[i] of the machine is rank i of the job, and plays rank[i] in the
 * file. */
typedef struct {
	int n;			/* GPUs */
	const int *gpu, *rank;
	Collective coll;
	int root;		/* rank of the job; -1: none */
	bool sized;		/* for messages of from <= M <= to, as blink-schedule(5) counts M; else of any size */
	int64_t from, to;
	const char *file;	/* relative to the index; no part of it is ".." */
	double rate, bound;	/* GB/s, as the file states them */
	int trees, depth;
	uint64_t form;		/* of the job, with its root (topo_invariant); 0: not given */
	int n_baselines;	/* 0: none are known */
	const IndexBaseline *baseline;
} IndexEntry;

/* What is left of the machine of an index after a loss, and the index of schedules for it. */
typedef struct {
	const char *without;	/* what is lost, as "gpu3-gpu5" or "mlx5_2", comma separated */
	const char *digest;	/* of what is left */
	const char *file;	/* relative to the index, beside it; the index itself, if the loss changes no entry */
} IndexChange;

/* What `blinkc batch` made for a machine, which a runtime looks up (blink-index(5)). Entries are in order: by the
 * number of GPUs, the GPUs as a list, the collective, the root; of one job the entry for any size comes first, then
 * those for sizes. No two are for the same job and size, but the one for any size stands in where no other is for a
 * size. */
typedef struct {
	const char *name, *digest;	/* of the machine */
	const char *without;		/* what it has lost; NULL: nothing. GPUs keep their numbers and ids */
	int n_others;
	const char **other;		/* digests of other machines that files are for; ascending */
	int n_changes;
	IndexChange *change;
	const Topology *machine;	/* by which isomorphic jobs are found; NULL: only those that it lists */
	unsigned links;			/* classes that its jobs use, a bit set; 0: those that fit */
	Routes routes;			/* likewise what their hops may take */
	int n_gpus;
	const char **gpu;		/* ids, by their index in the machine */
	const char **by_id;		/* the same, ascending; NULL: not sorted */
	int n_entries;
	IndexEntry *entry;
} Index;

/* Is a file of this digest for the machine of the index, or one that it names? */
bool index_has_digest(const Index *index, const char *digest);

/* The change by what is lost, whose links may be written from either end, or by the digest of what is left; NULL:
 * none. */
const IndexChange *index_change(const Index *index, const char *without);

/* Have both the same entries, whatever their machines? Both in order. */
bool index_same_entries(const Index *a, const Index *b);

/* Is it the name of an index: index.json, or index.NAME.json? path: directories before it are ignored. */
bool index_file_name(const char *path);

/* Below, at or above 0: the order of entries in an index, and of their jobs alone. */
int index_order(const IndexEntry *a, const IndexEntry *b);
int index_job_order(const IndexEntry *a, const IndexEntry *b);

/* The entries for a job: *n of them, in order, or NULL. want: n, gpu, coll and root. */
const IndexEntry *index_job(const Index *index, const IndexEntry *want, int *n);

/* Of the entries for a job, the one whose range holds the size; else that for any size; NULL: none. size < 0: not
 * known: the one for any size, else the one for the largest. */
const IndexEntry *index_of_size(const IndexEntry *first, int n, int64_t size);

#endif
