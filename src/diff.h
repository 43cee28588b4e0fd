/* What changed in meaning between two schedules, or between two indexes of schedules (blinkc(1), Differences). */
#ifndef BLINK_DIFF_H
#define BLINK_DIFF_H

#include "base/text.h"
#include "model.h"

/* name in options and output; 1: a higher number is better, -1: a lower one, 0: neither; what it is */
#define DIFFERENCE_LIST(X)                                                                                     \
	X(DIFF_WRONG, "wrong", 0, "a file that cannot be read, or is not right")                               \
	X(DIFF_MISSING, "missing", 0, "a file, or a job of an index, that only OLD has")                       \
	X(DIFF_NEW, "new", 0, "a file, or a job of an index, that only NEW has")                               \
	X(DIFF_TOPOLOGY, "topology", 0, "the machine, the GPUs of the job, or the links that it may use")      \
	X(DIFF_COLLECTIVE, "collective", 0, "another collective")                                              \
	X(DIFF_ROOT, "root", 0, "another root of the collective")                                              \
	X(DIFF_ALGORITHM, "algorithm", 0, "another algorithm")                                                 \
	X(DIFF_OPTIONS, "options", 0, "made by other options")                                                 \
	X(DIFF_RATE, "rate", 1, "the rate achieved")                                                           \
	X(DIFF_BOUND, "bound", 0, "the bound on the rate")                                                     \
	X(DIFF_TREES, "trees", -1, "the number of trees")                                                      \
	X(DIFF_DEPTH, "depth", -1, "the depth")                                                                \
	X(DIFF_PARTS, "parts", 0, "the parts of a hybrid schedule")                                            \
	X(DIFF_SEGMENTS, "segments", 0, "a tree carries another part of the buffer, or serves other ranks")    \
	X(DIFF_EDGES, "edges", 0, "a tree has other edges, links or root, or is gone or new")                  \
	X(DIFF_ORDER, "order", 0, "the same trees or edges are issued in another order")                       \
	X(DIFF_FILE, "file", 0, "a job of an index has its schedule in another file, or its GPUs other ranks there")

typedef enum {
#define X(name, text, sign, what) name,
	DIFFERENCE_LIST(X)
#undef X
	N_DIFFERENCE_KINDS
} DifferenceKind;

const char *difference_name(DifferenceKind kind);
bool difference_parse(const char *text, DifferenceKind *out);

#define DIFF_ANY (1u << N_DIFFERENCE_KINDS)

/* "rate,trees": the kinds, as bits; "any": DIFF_ANY. Fails: USAGE. */
Status difference_kinds(Ctx *ctx, const char *list, unsigned *out);

typedef struct {
	DifferenceKind kind;
	int sign;			/* 1: better, -1: worse, 0: neither */
	int old_tree, new_tree;		/* which tree it is of; -1: none */
	const char *job;		/* of an index: which job, as a JSON object; NULL: of a schedule */
	const char *old, *new;		/* what there was and is, as JSON; NULL: nothing */
	const char *text;		/* for people: one line, the kind left out */
} Difference;

/* In order of their kinds. */
typedef struct {
	int n, room;
	Difference *difference;
	int n_notes, room_notes;
	const char **note;		/* what changed, but not in meaning */
} Differences;

/* Does it fail where these kinds do? What is wrong always does, what is better only with DIFF_ANY. */
bool difference_fails(const Difference *difference, unsigned kinds);

/* What changed from `old` to `new`, which are verified. Links are alike if they lead from the same vertex to the same, in the same
 * class; how they are numbered makes no difference. Trees are matched where both are of the same collective, of the same root, over
 * as many ranks: first those with the same edges, then those with the same segment, then those that have most edges in common.
 * *list: grows. Cost: a sort of links and of trees; edges of each tree a few times.
 * Fails: LIMIT, NO_MEMORY. */
Status diff_schedules(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list);

/* Likewise of two indexes, job by job: a job is a collective over some GPUs in the order of their ranks. */
Status diff_indexes(Ctx *ctx, const Index *old, const Index *new, Differences *list);

/* ---- for those who compare ---- */

/* Add one. text, old, new: put together by the caller, freed here; old and new may be NULL. */
Status difference_put(Ctx *ctx, Differences *list, Difference difference, Text *text, Text *old, Text *new);

/* By number: nothing where they are the same. place: what it is of, with ": " behind it, or "". */
Status difference_count(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place, int old, int new);

/* Rates in GB/s; order: below, at or above 0 as the old one is, exactly. */
Status difference_rate(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place, int order, double old, double new);

/* Behind the last: kinds in order; of one kind they stay as they came. Fails: NO_MEMORY. */
Status differences_sort(Ctx *ctx, Differences *list);

/* -0.028: "-2.8 %"; what rounds to nothing with one digit behind the point keeps one of its own. */
void text_per_cent(Text *text, double change);

/* At most so many bytes of it, and "..." where that is not all. */
void text_short(Text *text, const char *string, size_t most);

/* The common number of each link: the same for a link of old and for one of new if they are alike. Numbers are below
 * old->n_links + new->n_links, in order of their ends. */
Status diff_links(Ctx *ctx, const Topology *old, const Topology *new, int *old_number, int *new_number);

/* topology. */
Status diff_topologies(Ctx *ctx, const Topology *old, const Topology *new, const int *old_number, const int *new_number, Differences *list);

/* segments, edges, order, and parts of trees. old_number, new_number: as diff_links makes them. */
Status diff_trees(Ctx *ctx, const Schedule *old, const Schedule *new, const int *old_number, const int *new_number, Differences *list);

/* How people call a vertex. */
void put_vertex_name(Text *text, const Topology *topo, int v);

/* ---- what becomes of files ---- */

/* name */
#define DIFF_STATE_LIST(X)                                                     \
	X(STATE_SAME, "same")                                                  \
	X(STATE_CHANGED, "changed")                                            \
	X(STATE_MISSING, "missing")                                            \
	X(STATE_NEW, "new")                                                    \
	X(STATE_WRONG, "wrong")

typedef enum {
#define X(name, text) name,
	DIFF_STATE_LIST(X)
#undef X
	N_DIFF_STATES
} DiffState;

const char *diff_state_name(DiffState state);

typedef struct {
	const char *file;		/* relative to both directories; NULL: two files were named */
	DiffState state;
	const Schedule *old, *new;	/* NULL: not there, not right, or not a schedule */
	int old_depth, new_depth;
	Differences list;
	bool fails;
} Comparison;

typedef struct {
	const char *old, *new;		/* as they were named */
	bool directories;
	int count[N_DIFF_STATES], failing;
	int n_rates, lower, higher;	/* of schedules that both have */
	double mean, worst;		/* of new rate / old rate: geometric mean; the least */
	const char *worst_file;
} DiffSummary;

/* ---- emit/diff_text.c, emit/diff_json.c: bytes depend on nothing but these ---- */

/* all: every difference, and what is none; else a few of each kind. */
void emit_diff_text(const Comparison *comparison, bool all, Text *out);
void emit_diff_text_summary(const DiffSummary *summary, Text *out);

/* For reports, of a comparison with differences: the first that fails where these kinds do, or else the first, in one line; and where
 * there are more, lines with a few of each kind. Returns its kind. */
DifferenceKind emit_diff_finding(const Comparison *comparison, unsigned fail_on, Text *message, Text *detail);
void emit_diff_line(const DiffSummary *summary, Text *out);

/* An entry of "files"; what comes before the first, and behind the last. */
void emit_diff_json(const Comparison *comparison, Text *out);
void emit_diff_json_begin(const DiffSummary *summary, Text *out);
void emit_diff_json_end(const DiffSummary *summary, Text *out);

#endif
