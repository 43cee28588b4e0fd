/* Weights of trees that fall by halves: a few for a large sum, so that the lightest fill what the others left. */
#ifndef BLINK_PLAN_PACK_FLOW_HALVES_H
#define BLINK_PLAN_PACK_FLOW_HALVES_H

#include "model/model.h"

/* Of this sum: 1, twice as often as the others; 2, 4 and so on; the last ones up to twice that; the heaviest first.
 * *n: how many; 0: an allreduce over n_ranks would have too many edges. */
Status halves_choose(Ctx *ctx, int n_ranks, int64_t units, int64_t **weight, int *n);

#endif
