/* The outcome of a comparison of two files, and of all of them, and how they are written. */
#ifndef BLINK_DIFF_COMPARISON_H
#define BLINK_DIFF_COMPARISON_H

#include "base/json_write.h"
#include "verb/diff/diff.h"

/* name */
#define DIFF_STATE_LIST(X)                                                     \
	X(STATE_SAME, "same")                                                  \
	X(STATE_CHANGED, "changed")                                            \
	X(STATE_MISSING, "missing")                                            \
	X(STATE_NEW, "new")                                                    \
	X(STATE_INVALID, "wrong")

typedef enum { DIFF_STATE_LIST(ROW_NAME) N_DIFF_STATES } DiffState;

const char *diff_state_name(DiffState state);

typedef struct {
	const char *file;		/* relative to both directories; NULL: two files were named */
	DiffState state;
	const Schedule *old, *new;	/* NULL: missing, invalid, or not a schedule */
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

/* ---- text.c, json.c: bytes depend on these arguments alone ---- */

/* all: every difference, and files without any; else a few of each kind. */
void emit_diff_text(const Comparison *comparison, bool all, Text *out);
void emit_diff_text_summary(const DiffSummary *summary, Text *out);

/* For CI, of a comparison with differences. message: the first that fails with --fail-on of these kinds, or else the
 * first, in one line. detail: where there are more, lines with a few of each kind. Returns the kind of the first. */
DifferenceKind emit_diff_finding(const Comparison *comparison, unsigned fail_on, Text *message, Text *detail);
void emit_diff_line(const DiffSummary *summary, Text *out);

/* An entry of the array "files"; what comes before the entries, and after them. */
void emit_diff_json(const Comparison *comparison, Text *out);
void emit_diff_json_begin(const DiffSummary *summary, JsonWriter *w);
void emit_diff_json_end(const DiffSummary *summary, JsonWriter *w);

#endif
