/* Trees of ranks from trees over homes (by_homes.c): which rank of a home is entered, and which one sends. */
#ifndef BLINK_PLAN_PACK_CLUSTER_BY_HOMES_RANKS_H
#define BLINK_PLAN_PACK_CLUSTER_BY_HOMES_RANKS_H

#include "plan/pack/cluster/by_homes_moves.h"

/* A list of all trees, with the unit `rate` / m; or trees of each rank (Packing.in_tree). *out: NULL: there are too
 * many edges. */
Status by_homes_list(struct by_homes *s, Frac rate, Packing **out);
Status by_homes_number(struct by_homes *s, Packing **out);

#endif
