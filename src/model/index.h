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
 * number of GPUs, the GPUs as a list, the collective, the root. No two are for the same. */
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

/* Below, at or above 0: the order of entries in an index. */
int index_order(const IndexEntry *a, const IndexEntry *b);

#endif
