/* The bound of an allreduce. */
#ifndef BLINK_PLAN_PARTITION_H
#define BLINK_PLAN_PARTITION_H

#include "model/model.h"

/* bound->part: n_vertices, in the run arena. Exact. n_ranks >= 2. Cost: one maximum flow for each rank and step of
 * Newton's method; few flows where one rank represents all; none for others of more than LIMIT_PAIR_RANKS. */
Status partition_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Bound *bound);

#endif
