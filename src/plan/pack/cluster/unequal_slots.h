/* Trees of one length for an allreduce over a cluster. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_SLOTS_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_SLOTS_H

#include "plan/pack/cluster/unequal_pieces.h"

/* Trees of an allreduce, turned, of one length, or a few of half of it (unequal_slots.c). *good: false: there are
 * none. */
Status unequal_slot_trees(struct plan *p, Packing *pack, bool *good);

#endif
