/* Packings of the trees of enter_once.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_EDGES_H
#define BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_EDGES_H

#include "plan/pack/cluster/enter_once_grow.h"

/* All trees in a list, in order of their roots. unit: of their weights, bytes/s. */
Status entering_list(struct grower *g, Frac unit, Packing **out);

/* The packing as numbered edges, where a list is too long. units: those of a block. *out: NULL: there are too many
 * edges. */
Status entering_number(struct grower *g, int units, Packing **out);

#endif
