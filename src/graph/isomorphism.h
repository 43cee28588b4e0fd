/* Are two topologies the same up to the numbers of their vertices? For schedules that serve isomorphic jobs: ids,
 * servers and the number of physical links in a link do not count. */
#ifndef BLINK_GRAPH_ISOMORPHISM_H
#define BLINK_GRAPH_ISOMORPHISM_H

#include "model/topology.h"

/* A number that isomorphic topologies share, root included; most others have others. root: a rank, -1: none. By colour
 * refinement; in O(m log m) for each round, as many as vertices at most, of few in most topologies. */
Status topo_invariant(Ctx *ctx, const Topology *topo, int root, uint64_t *out);

/* map: of each vertex of a, its image in b under an isomorphism that takes ranks to ranks, and root_a to root_b.
 * *found: is there one? By colour refinement and individualisation, the first vertex of the smallest colour with each
 * that may be its image (McKay and Piperno 2014, section 2); each map is held against all links. Steps are counted
 * (count_steps). Fails: LIMIT (label: where) too many. */
Status topo_isomorphism(Ctx *ctx, const char *label, const Topology *a, int root_a, const Topology *b, int root_b,
    int *map, bool *found);

#endif
