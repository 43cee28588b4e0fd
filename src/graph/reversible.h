/* Are links the same in both directions, so that every tree can be reversed? */
#ifndef BLINK_GRAPH_REVERSIBLE_H
#define BLINK_GRAPH_REVERSIBLE_H

#include "model/model.h"

/* Is the capacity from a to b equal to that from b to a, for all pairs of vertices? */
Status topo_mirrored(Ctx *ctx, const Topology *topo, bool *out);

/* Likewise, up to a permutation of the switches: a switch that only leads out of a server may correspond to one that
 * only leads in. */
Status topo_twinned(Ctx *ctx, const Topology *topo, bool *out);

/* The same, with the permutation: a link from v to w corresponds to one from twin[w] to twin[v]; ranks stay. twin:
 * n_vertices. */
Status topo_twins(Ctx *ctx, const Topology *topo, int *twin, bool *out);

#endif
