/* All trees of branchings.c. */
#ifndef BLINK_PLAN_PACK_FLOW_BRANCHINGS_GROW_H
#define BLINK_PLAN_PACK_FLOW_BRANCHINGS_GROW_H

#include "plan/pack/flow/branchings_hops.h"

/* All trees of all roots, into b->pack. *done: false where time is over, or more groups wait than there is room for. */
Status branchings_grow(struct branchings *b, bool *done);

#endif
