/* The fewest pairs, and what is proven of them. */
#ifndef BLINK_PLAN_PACK_FEW_PAIRS_H
#define BLINK_PLAN_PACK_FEW_PAIRS_H

#include "plan/pack/few/pair_weights.h"

/* The fewest pairs that meet the goal. *out: stays where none are found. *least: no smaller number meets it;
 * more than goal->to if none does. Nothing is found where a topology has more than PAIRS_LINKS links. */
Status pairs_fewest(Ctx *ctx, const struct trees *all, const struct pair_goal *goal, Packing **out, int *least);

#endif
