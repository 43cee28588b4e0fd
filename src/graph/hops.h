/* What hops into ranks have together. */
#ifndef BLINK_GRAPH_HOPS_H
#define BLINK_GRAPH_HOPS_H

#include "model/model.h"

/* Links of which every route from a rank to one of a set A passes one, where routes pass no third rank: those with the
 * least capacity for each rank of A, if that is less than each, bytes/s. reversed: data pass links the other way. root:
 * not in A; -1: none. all: A is all others. cut: work space of n_links, and the result. *n: ranks of A; 0: there are no
 * such links, and all ranks but the root can receive as much at a time. Cost: a maximum flow for each step of Newton's
 * method, which are few. */
Status hops_cut(Ctx *ctx, const Topology *topo, bool reversed, int root, bool all, Frac each, bool *cut, int *n);

#endif
