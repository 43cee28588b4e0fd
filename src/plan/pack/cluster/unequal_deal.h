/* Which trees of one length take which hops between servers. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_DEAL_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_DEAL_H

#include "plan/pack/cluster/unequal_hops.h"

/* Pieces and copies of p->hub, by servers, each of one tree: one for each hop. *good: false: some tree does not enter
 * some server, or twice over uplinks of one rank. */
Status unequal_deal(struct plan *p, struct hops *hops, bool *good);

#endif
