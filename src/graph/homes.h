/* Ranks that trees had best enter together. */
#ifndef BLINK_GRAPH_HOMES_H
#define BLINK_GRAPH_HOMES_H

#include "model/model.h"

/* Of each vertex the number of its home, below *n: its server; a rank of no server has one of its own, other vertices
 * have none, -1. Where no ranks of a server are joined by links inside it, ranks whose links all lead to the same
 * switch have a home together, unless all do; other vertices have none then. home: n_vertices. */
Status topo_homes(Ctx *ctx, const Topology *topo, int *home, int *n);

#endif
