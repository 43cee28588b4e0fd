/* Weights of a few trees of a pool, exactly. */
#ifndef BLINK_PLAN_PACK_POOL_WEIGHTS_H
#define BLINK_PLAN_PACK_POOL_WEIGHTS_H

#include "plan/pack/pool/rows.h"

/* The highest rate of trees tree[0] < tree[1] < ... tree[n - 1] of the pool.
 * *out: with no more than these; NULL where that rate is below the target (bytes/s), or needs too large numbers. */
Status pool_weights(Ctx *ctx, const Topology *topo, const Packing *pool, const struct pool_rows *rows, const int *tree,
    int n, Frac target, Packing **out);

#endif
