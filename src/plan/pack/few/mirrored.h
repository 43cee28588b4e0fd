/* The search of mirrored.c: trees out of a root or into it, and those of an allreduce that go down as they came up. */
#ifndef BLINK_PLAN_PACK_FEW_MIRRORED_H
#define BLINK_PLAN_PACK_FEW_MIRRORED_H

#include "plan/pack/few/enumerate.h"
#include "plan/pack/few/lanes.h"
#include "plan/pack/few/vertex.h"

enum {
	MIRRORED_PICKS = VERTEX_TREES,	/* trees that are searched for */
	MIRRORED_UNITS = VERTEX_UNITS,	/* units of 1 / den link that a link has */
	MIRRORED_CUTS = 1 << (TREES_RANKS - 1)	/* all of them */
};

/* Of a residual capacity, in units: what stays unused of it if the next tree does without it, and how much more if it
 * uses it. */
struct choice {
	int16_t skip, more;
};

struct mirrored {
	Ctx *ctx;
	struct trees all;
	int n_cuts;
	uint64_t crossing[MIRRORED_CUTS];	/* rows of each cut that every tree crosses */
	Lanes crosses[TREES_ROWS][MIRRORED_CUTS / LANES];	/* the same by row: 1 or 0 of each cut */
	/* Of one search: */
	int max_depth, k, weight[MIRRORED_PICKS], pick[MIRRORED_PICKS];	/* the first j trees are placed */
	struct vertex vertex;
	uint64_t *shallow;	/* trees of at most max_depth */
	int top;		/* units of the widest row */
	uint8_t residual[MIRRORED_PICKS + 1][TREES_ROWS];	/* capacity that is left of a row */
	struct choice choice[MIRRORED_PICKS][MIRRORED_UNITS + 1];	/* of tree j, by residual capacity */
	int slack, units;
	Lanes cut[MIRRORED_PICKS + 1][MIRRORED_CUTS / LANES];	/* residual capacity of a cut */
	int64_t nodes, nodes_each;	/* left in all; allowed for each choice of weights in this pass */
	int64_t nodes_here;
	bool found, halted, given_up, exhausted;	/* halted: nodes_here are used up; given_up: some were halted */
	bool skipped;		/* to be sure weights finer than MIRRORED_UNITS would have been needed */
};

/* What is proven of the trees that are found: */
struct proof {
	bool mirrored;		/* of trees that go down as they came up none are fewer (have a higher rate) */
	int least;		/* no smaller number of trees of any kind has that rate (a higher one) */
	bool paired;		/* their edges down differ from those up */
};

/* After trees_enumerate. max_depth: of the trees that are searched for. */
Status mirrored_begin(struct mirrored *f, int max_depth);

/* The fewest trees with the target rate, then the shallowest. *out: stays where none are found. */
Status mirrored_fewest(struct mirrored *f, Frac target, Frac optimum, Packing **out, struct proof *proof);

/* The highest rate of up to max_trees trees. */
Status mirrored_rates(struct mirrored *f, Frac optimum, int max_trees, Packing **out, struct proof *proof);

#endif
