/* The search of mirrored.c: trees out of a root or into it, and those of an allreduce that go down as they came up. */
#ifndef BLINK_PLAN_PACK_MIRRORED_H
#define BLINK_PLAN_PACK_MIRRORED_H

#include "plan/pack/enumerate.h"

enum {
	MIRRORED_PICKS = 12,	/* trees that are searched for */
	MIRRORED_UNITS = 255,	/* units of 1 / den link that a link has */
	MIRRORED_CUTS = 1 << (TREES_RANKS - 1)	/* all of them */
};

struct mirrored {
	Ctx *ctx;
	struct trees all;
	int n_cuts;
	uint64_t crossing[MIRRORED_CUTS];	/* rows of each cut that every tree crosses */
	/* Of one search: */
	int max_depth, k, weight[MIRRORED_PICKS], pick[MIRRORED_PICKS];	/* the first j trees are placed */
	int residual[MIRRORED_PICKS + 1][TREES_ROWS];	/* capacity that is left of a row */
	int waste[MIRRORED_PICKS + 1][MIRRORED_UNITS + 1];	/* what trees j .. k - 1 cannot use */
	int slack, units;
	int cut[MIRRORED_PICKS + 1][MIRRORED_CUTS];	/* residual capacity of a cut */
	int64_t nodes, nodes_each;	/* left in all; allowed for each choice of weights in this pass */
	int64_t nodes_here;
	bool found, halted, given_up, exhausted;	/* halted: nodes_here are used up; given_up: some were halted */
	bool skipped;		/* to be sure weights finer than MIRRORED_UNITS would have been needed */
};

/* What is proven of the trees that are found: */
struct proof {
	bool mirrored;		/* of trees that go down as they came up none are fewer (have a higher rate) */
	int least;		/* no smaller number of trees of any kind has that rate (a higher one) */
	bool paired;		/* they go down another way than they came up */
};

/* After trees_enumerate. */
void mirrored_begin(struct mirrored *f);

/* The fewest trees with the target rate, then the shallowest. *out: stays where none are found. */
Status mirrored_fewest(struct mirrored *f, Frac target, Frac optimum, Packing **out, struct proof *proof);

/* The highest rate of up to max_trees trees. */
Status mirrored_rates(struct mirrored *f, Frac optimum, int max_trees, Packing **out, struct proof *proof);

#endif
