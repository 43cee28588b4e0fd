/* Roots of the trees of enter_once.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_ROOTS_H
#define BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_ROOTS_H

#include "plan/pack/cluster/enter_once_grow.h"

/* Sets own, times, needs and pool of all ranks and servers, and ahead, from the units left of all links.
 * units: of each rank; of an allreduce, of a root alone, and of an allgather for an allreduce: of all trees together.
 * *good: false: some links have too little room for trees of other roots. */
Status entering_share(struct grower *g, int64_t units, bool *good);

#endif
