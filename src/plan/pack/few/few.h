/* The fewest trees over few ranks with direct links, proven: by trying all trees. */
#ifndef BLINK_PLAN_PACK_FEW_FEW_H
#define BLINK_PLAN_PACK_FEW_FEW_H

#include "model/model.h"

/* The fewest trees within ask->tolerance of the optimum, none deeper than ask->max_depth, for a collective with one
 * demand: by trying all of them, where there are at most LIMIT_FEW_TREES, no switches, and for allreduce equal
 * capacities in both directions. Trees of an allreduce use the same edges up and down, or others if fewer trees do.
 * With ask->max_trees: the highest rate of at most that number of trees; (*out)->highest: it is proven. -v says so.
 * optimum: bytes/s; no less than the best rate of trees of that depth that go down as they came up. top: of any trees.
 * *out: NULL where a condition is not met, where no trees have that rate, or after LIMIT_FEW_NODES. */
Status pack_fewest(Ctx *ctx, const Topology *topo, Frac optimum, Frac top, const Ask *ask, Packing **out);

/* The one tree with the highest rate, none deeper than ask->max_depth, for a collective with one demand, over direct
 * links; with a least rate, bytes/s, one of that rate alone. *out: stays where these conditions are not met.
 * *proven: no other tree has a higher rate; always so for broadcast and reduce, and for an allreduce where capacities
 * are equal in both directions.
 * Cost: a breadth-first search from each root for each bit of the number of links; with a least rate one. */
Status pack_widest(Ctx *ctx, const Topology *topo, const Ask *ask, const Frac *least, Packing **out, bool *proven);

/* All trees that pack_fewest tries, with weights of 1: a pool. NULL where a condition is not met. */
Status pack_every(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out);

#endif
