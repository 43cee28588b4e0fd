/* What pairs are searched for, and the weights that they may have. */
#ifndef BLINK_PLAN_PACK_FEW_PAIR_WEIGHTS_H
#define BLINK_PLAN_PACK_FEW_PAIR_WEIGHTS_H

#include "plan/pack/few/pair_halves.h"

/* What pairs are searched for. */
struct pair_goal {
	Frac target, top;	/* the least rate, and what none exceeds */
	bool above;		/* a rate above the target */
	int max_depth;
	int from, to;		/* numbers of pairs */
	int64_t steps;		/* of the search for each of these */
	/* From this number of pairs on, if it is not 0, no deeper ones, in LIMIT_EVEN_STEPS: */
	int flat_from, flat_depth;
};

/* All weights of k pairs that may be needed for such a rate, those with the fewest choices first.
 * False in *all: there are others, too many or too fine. */
Status pairs_weigh(struct pairs *p, const struct pair_goal *goal, struct weights **out, int *n, bool *all);

#endif
