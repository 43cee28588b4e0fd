/* What changed in meaning between two schedules, or between two indexes of schedules (blinkc-diff(1)). */
#ifndef BLINK_VERB_DIFF_DIFF_H
#define BLINK_VERB_DIFF_DIFF_H

#include "base/text.h"
#include "model/model.h"

/* name in options and output; 1: a higher number is better, -1: a lower one, 0: neither; what it is */
#define DIFFERENCE_LIST(X)                                                                                     \
	X(DIFF_INVALID, "wrong", 0, "a file that cannot be read, or is not valid")                             \
	X(DIFF_MISSING, "missing", 0, "a file, or a job of an index, that only OLD has")                       \
	X(DIFF_NEW, "new", 0, "a file, or a job of an index, that only NEW has")                               \
	X(DIFF_TOPOLOGY, "topology", 0, "the machine, the GPUs of the job, or the links that it may use")      \
	X(DIFF_COLLECTIVE, "collective", 0, "a different collective")                                          \
	X(DIFF_ROOT, "root", 0, "a different root of the collective")                                          \
	X(DIFF_ALGORITHM, "algorithm", 0, "a different algorithm")                                             \
	X(DIFF_OPTIONS, "options", 0, "different options of the generator")                                    \
	X(DIFF_RATE, "rate", 1, "the rate achieved")                                                           \
	X(DIFF_BOUND, "bound", 0, "the bound on the rate")                                                     \
	X(DIFF_TREES, "trees", -1, "the number of trees")                                                      \
	X(DIFF_DEPTH, "depth", -1, "the depth")                                                                \
	X(DIFF_PARTS, "parts", 0, "the parts of a hybrid schedule")                                            \
	X(DIFF_SEGMENTS, "segments", 0, "a tree carries a different segment, or serves different ranks")       \
	X(DIFF_EDGES, "edges", 0, "a tree has different edges, links or root, or was added or removed")        \
	X(DIFF_ORDER, "order", 0, "the same trees or edges are issued in a different order")                   \
	X(DIFF_FILE, "file", 0, "a job of an index has a different file, or different ranks in it")

typedef enum { DIFFERENCE_LIST(ROW_NAME) N_DIFFERENCE_KINDS } DifferenceKind;

const char *difference_name(DifferenceKind kind);
#define DIFF_ANY (1u << N_DIFFERENCE_KINDS)

/* "rate,trees": the kinds, as bits; "any": DIFF_ANY. Fails: USAGE. */
Status difference_kinds(Ctx *ctx, const char *list, unsigned *out);

typedef struct {
	DifferenceKind kind;
	int sign;			/* 1: better, -1: worse, 0: neither */
	int old_tree, new_tree;		/* which tree it is of; -1: none */
	const char *job;		/* of an index: which job, as a JSON object; NULL: of a schedule */
	const char *old, *new;		/* values, as JSON; NULL: none */
	const char *text;		/* for people: one line, without the kind */
} Difference;

/* Ordered by kind. */
typedef struct {
	int n, capacity;
	Difference *difference;
	int n_notes, notes_capacity;
	const char **note;		/* what changed, but not in meaning */
} Differences;

/* Does it fail with --fail-on of these kinds? An invalid file always does, a better value only with DIFF_ANY. */
bool difference_fails(const Difference *difference, unsigned kinds);

/* What changed from `old` to `new`, both verified. Links are equal if both ends and the class are, whatever their
 * numbers. Trees are matched if collective, root and number of ranks are the same: first those with the same edges,
 * then those with the same segment, then those with most edges in common.
 * *list: grows. Cost: a sort of links and of trees; a few passes over the edges of all trees.
 * Fails: LIMIT, NO_MEMORY. */
Status diff_schedules(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list);

/* Likewise of two indexes, job by job: a job is a collective over some GPUs in the order of their ranks. */
Status diff_indexes(Ctx *ctx, const Index *old, const Index *new, Differences *list);

/* ---- for the comparisons ---- */

/* Add one. text, old, new: written by the caller, freed here; old and new may be NULL. */
Status difference_put(Ctx *ctx, Differences *list, Difference difference, Text *text, Text *old, Text *new);

/* Of two counts, if they differ. place: which job or tree, followed by ": "; or "". */
Status difference_count(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place,
    int old, int new);

/* Rates in GB/s; order: below, at or above 0 as the old one is, exactly. */
Status difference_rate(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place, int order,
    double old, double new);

/* After the last: sort by kind, stable. Fails: NO_MEMORY. */
Status differences_sort(Ctx *ctx, Differences *list);

/* -0.028: "-2.8 %"; a change that one decimal would show as zero has one significant digit. */
void text_per_cent(Text *text, double change);

/* At most `most` bytes of it, then "..." if there are more. */
void text_short(Text *text, const char *string, size_t most);

/* Common numbers of links: the same for a link of old and one of new if they are equal. They are below
 * old->n_links + new->n_links, ordered by the ends of links. */
Status diff_links(Ctx *ctx, const Topology *old, const Topology *new, int *old_number, int *new_number);

/* topology. */
Status diff_topologies(Ctx *ctx, const Topology *old, const Topology *new, const int *old_number, const int *new_number,
    Differences *list);

/* segments, edges, order, and parts of trees. old_number, new_number: as diff_links makes them. */
Status diff_trees(Ctx *ctx, const Schedule *old, const Schedule *new, const int *old_number, const int *new_number,
    Differences *list);

/* Its id, after its server where ids repeat. */
void put_vertex_name(Text *text, const Topology *topo, int v);

#endif
