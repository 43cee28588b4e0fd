/* Schedule: the schedule file in memory. Exact segments, a tree for each. */
#ifndef BLINK_MODEL_SCHEDULE_H
#define BLINK_MODEL_SCHEDULE_H

#include "model/baseline.h"
#include "model/bound.h"
#include "model/packing.h"
#include "model/symmetry.h"

typedef struct {
	Frac offset, length;	/* of the whole buffer; 0 <= offset, 0 < length, offset + length <= 1 */
	int part;		/* 0 in a schedule without parts */
	Tree tree;
	int n_to;		/* 0: serves every rank that the collective serves */
	int *to;		/* ascending */
} Segment;

typedef struct {
	const char *key, *value;	/* value is JSON text, already escaped: "0.05", "[0,3]", "\"nvlink\"" */
} Option;

/* Bytes that each rank of an alltoall is expected to send to each, for which it was planned; it serves any. What its
 * links take for these, and what proves that nothing that forwards blocks takes less (schedule/matrix.c). */
typedef struct {
	const int64_t *bytes;	/* n_ranks * n_ranks: from rank i to rank j at i * n_ranks + j */
	const int64_t *length;	/* of each link, 0 to LIMIT_MATRIX_LENGTH */
	double time, bound;	/* us */
} ByteMatrix;

/* Relative: of a time that was added up in another order. */
#define MATRIX_ROUNDING 1e-12

/* The schedule file in memory (blink-schedule(5)). */
typedef struct {
	const char *generator, *version;	/* the program that made it */
	int n_options;
	Option *option;		/* what was asked */
	const Topology *topo;	/* ranks in order, and exactly the links that the planner was allowed to use */
	Collective coll;
	int root;		/* -1: none */
	const char *algorithm;
	Frac achieved;		/* bytes/s of algorithm bandwidth: 1 / max over links of load / capacity; exact */
	Bound bound;		/* its rate is what the certificate proves; exact */
	double stated_achieved, stated_bound;	/* GB/s, as a file says; 0 in a schedule that no file said */
	int n_baselines;	/* 0: none are known */
	Baseline *baseline;	/* to hold achieved against; of a file: as it says */
	const ByteMatrix *matrix;	/* of an alltoall; NULL: planned for blocks of one length */
	int n_parts;		/* 0: none */
	Part *part;
	int n_segments;
	Segment *segment;	/* "trees" in the file: each a segment and its tree */
	/* Compact: the segments are those of representatives, and their images under this group are the schedule
	 * (schedule/images.h). NULL: every tree is listed. What takes a schedule wants one whose trees are listed,
	 * unless its contract says otherwise. */
	const Symmetry *symmetry;
	/* The other compact form: trees of each rank. Of an alltoall their paths are the schedule; of an allgather or
	 * reducescatter they are its trees, of edges in a table. Then there are no segments. */
	int n_in_trees;		/* 0: none */
	const InTree *in_tree;	/* by roots, ascending; of one root by offset */
	int n_edges;		/* 0: of an alltoall */
	const Edge *edge;
} Schedule;

/* Trees, with all images of representatives; or those into each rank. */
static inline int64_t
sched_trees(const Schedule *sched)
{
	return sched->n_in_trees ? sched->n_in_trees
	    : (int64_t)sched->n_segments * (sched->symmetry ? sched->symmetry->size : 1);
}

static inline bool
sched_is_list(const Schedule *sched)
{
	return !sched->symmetry && !sched->n_in_trees;
}

/* Where a part ends in a message of M bytes, from a size on: at byte floor((num * M + add) / den) of it. */
typedef struct {
	int64_t from;		/* least M for which this holds */
	int64_t num, den;
	Wide add;		/* |add| < 2^124 */
} PartEnd;

#endif
