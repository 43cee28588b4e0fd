/* The links of an allreduce whose two directions differ, divided between edges up and edges down. */
#ifndef BLINK_PLAN_PACK_FLOW_DIRECTIONS_H
#define BLINK_PLAN_PACK_FLOW_DIRECTIONS_H

#include "graph/split_off.h"
#include "model/model.h"

/* supply: capacities and the rate, `total`, in units. root: of all trees. bound: of the same allreduce.
 * down: of each link what trees from the root take, in parts of a unit, *parts of them each; the rest of the link is
 * for trees into the root. *total: their rate in parts of a unit, at most what the supply asks for; 0: none was found.
 * Fails: NO_MEMORY. Cost: a linear program of a column for each link, once for each round of cuts, and two maximum
 * flows for each rank and round. */
Status divide_directions(Ctx *ctx, const Supply *supply, int root, const Bound *bound, int64_t *down, int64_t *parts,
    int64_t *total);

#endif
