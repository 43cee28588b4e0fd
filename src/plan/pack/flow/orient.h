/* Full-duplex links of a machine with switches, divided between their two directions, for the trees of an allreduce. */
#ifndef BLINK_PLAN_PACK_FLOW_ORIENT_H
#define BLINK_PLAN_PACK_FLOW_ORIENT_H

#include "graph/split_off.h"

/* *out: of each link the opposite one, of equal capacity; NULL where some link has none. */
Status orient_opposite(Ctx *ctx, const Topology *topo, const int **out);

/* What each link may carry down the trees, so that it and the opposite link have the capacity of one together, and
 * trees of supply->total units from *root to all ranks fit.
 * supply: its capacities are even; owed is not read. *fits: false where there is no such division, or time is over.
 * Cost: a maximum flow for each rank. */
Status orient_links(Ctx *ctx, const Supply *supply, int64_t *down, int *root, bool *fits);

/* The root of all trees: of the ranks with the least hops to the farthest the one with most capacity out of it. */
Status orient_root(Ctx *ctx, const Supply *supply, int *root);

#endif
