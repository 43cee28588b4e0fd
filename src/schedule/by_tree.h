/* Passes over the trees of a schedule, one tree after another: check.c, loads.c, verify.c and project.c take a whole
 * schedule through them, and a reader of a long file each tree as it comes, which then may be forgotten. */
#ifndef BLINK_SCHEDULE_BY_TREE_H
#define BLINK_SCHEDULE_BY_TREE_H

#include "schedule/schedule.h"

/* ---- check.c ---- */

struct passing;

struct checking {
	Ctx *ctx;
	const char *label;
	const Schedule *sched;
	int *reached;
	struct ends { int from, to; } *ends;	/* of each link: as its members, without the others */
	bool shares;		/* some switch multicasts or reduces: `last` is needed */
	struct passing *last;
};

/* All but trees and parts; then segment number t; both as sched_check does. Memory: scratch, until its caller releases
 * it. */
Status check_begin(struct checking *c, Ctx *ctx, const char *label, const Schedule *sched);
Status check_tree(struct checking *c, int t);

/* ---- loads.c ---- */

struct loading {
	Ctx *ctx;
	const char *label;
	const Schedule *sched;
	struct load *load;
	const int64_t *bytes;	/* of an alltoall: of each block, in place of M; NULL: blocks are equal */
	bool counts;		/* all trees so far have one length, which is */
	Frac counted;		/* this one; 0: no tree yet */
	int32_t *count;		/* of each link or orbit: uses by them */
};

/* Loads of no tree; those of segment number t, added; all of them; the rate that follows. As sched_achieved. */
Status loads_begin(struct loading *l, Ctx *ctx, const char *label, const Schedule *sched);
Status loads_tree(struct loading *l, int t);
Status loads_end(struct loading *l, Frac *out);
Status loads_achieved(struct loading *l, Frac *out);

#endif
