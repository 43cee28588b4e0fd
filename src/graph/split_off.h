/* Machines with switches as arcs between ranks alone. */
#ifndef BLINK_GRAPH_SPLIT_OFF_H
#define BLINK_GRAPH_SPLIT_OFF_H

#include "graph/supply.h"

/* An edge of a tree over these links, which are in the order of the arc or hop; up: over the opposite links. Its own
 * links are in the order of the data. */
Status supply_edge(Ctx *ctx, const Supply *supply, int from, int to, int n_links, const int *link, bool up, Edge *out);

/* Every vertex that is no rank is split off: pairs of an arc into it and one out of it become one arc, so that the
 * trees still fit; wanted ones first. Neither multicast nor reduction by switches is used.
 * want: hops whose switches are split so, where that is safe; used up.
 * *out: arcs between ranks, in the scratch arena; NULL where no such arcs were found, as where capacities into and out
 * of a switch differ too much, or where time is over.
 * From: Frank 1988, Mader 1982 and Bang-Jensen, Frank, Jackson 1995 (there are such pairs); Zhao et al., ForestColl (by
 * maximum flows). Cost: a maximum flow for each rank and pair; but these are short (split_off.c). */
Status split_off(Ctx *ctx, const Supply *supply, Hop *want, int n_want, Arc **out, int *n);

#endif
