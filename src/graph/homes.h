/* Ranks that trees had best enter together. */
#ifndef BLINK_GRAPH_HOMES_H
#define BLINK_GRAPH_HOMES_H

#include "model/model.h"

/* Of each rank the number of its home, below *n: its server; a rank of no server has one of its own. Where each server
 * has one rank, and not all are at one switch, ranks whose links all lead to the same switch have one together. home:
 * n_ranks. */
Status topo_homes(Ctx *ctx, const Topology *topo, int *home, int *n);

#endif
