/* Pairs of files to compare, and the results that workers leave in shared memory. */
#ifndef BLINK_DIFF_PAIR_H
#define BLINK_DIFF_PAIR_H

#include "verb/diff/comparison.h"
#include "verb/diff/spool.h"

struct pair {
	const char *old, *new;	/* paths; NULL: only the other directory has it */
	const char *file;	/* relative path; NULL: two files were named */
};

struct result {
	DiffState state;
	bool fails;
	bool has_rates;		/* both are schedules of the same collective */
	int order;		/* of the old rate and the new: below, at or above 0, exactly */
	double ratio;		/* new rate / old rate */
	Status invalid;		/* of the first file that is invalid; else OK */
	char reason[512];
	Span text;		/* as it is written */
	Span message, detail;	/* for CI, where there are differences */
	DifferenceKind kind;	/* of message */
};

struct diff {
	bool json, all;
	bool findings;		/* --github or --junit: messages and details are wanted */
	unsigned fail_on;
	int n;
	struct pair *pair;
	struct result *result;	/* shared */
	Spool spool;
};

/* Compare pair i. of: a struct diff. Fails: NO_MEMORY, INTERNAL; IO and whatever a reader fails with where two files
 * were named. */
Status compare_pair(Ctx *ctx, void *of, int i);

#endif
