/* Paths for an alltoall. */
#ifndef BLINK_PLAN_PACK_ALLTOALL_ALLTOALL_H
#define BLINK_PLAN_PACK_ALLTOALL_ALLTOALL_H

#include "model/model.h"

/* Alltoall where few pairs of ranks are symmetric: key paths and detours (alltoall.c).
 * sym: a group; NULL: all paths are listed. No pair has a route of its own then (Topology.route).
 * *out: at the optimum but for the rounding of doubles, 1e-9 at most; a lower rate where time is over, or GLPK fails.
 *   With a group NULL where its images are too many.
 * *proof: a bound that is known; stays, or lengths that prove a lower one.
 * soon: where the linear program is long, no plan.
 * Fails: NO_MEMORY; LIMIT more edges than a schedule may have, or, soon, over more than 362 ranks, more than 20000
 * steps of the simplex method.
 * Cost: a linear program of a row for each link, and 100 searches from each rank: 256 GPUs of 4 links in 12 s; 10 to 20
 * searches where whole paths, or few divided demands, are at the bound that is known (paths_shift.c). */
Status pack_paths(Ctx *ctx, const Topology *topo, const Symmetry *sym, bool soon, Packing **out, Bound *proof);

/* The same where each pair of ranks has bytes of its own, bytes[i * n_ranks + j] from rank i to rank j, above 0 in all:
 * the least time until all have arrived. Pairs without bytes have a path, too. *out: for blocks of any size, each
 * divided among its paths. *length: of each link, at least 0: a proof (schedule/matrix.h). */
Status pack_matrix(Ctx *ctx, const Topology *topo, const int64_t *bytes, Packing **out, int64_t **length);

/* Paths of representatives for an alltoall over machines too large for a list of all pairs (path_templates.c): at the
 * optimum but for rounding of 1e-6, or below it where time is over. *proof: the bound; lower where a cut or lengths
 * prove it.
 * *out: has a symmetry; NULL: there are no such paths, as where the group leaves some rank in its place, or too many.
 * Fails: LIMIT a route of more than LIMIT_ROUTE_LINKS links. Random: none.
 * Cost: searches from each representative over all links, dozens of times at most, and a linear program of a row for
 * each orbit of links: a torus of 16 x 16 x 16 in 0.1 s. */
Status pack_path_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Packing **out, Bound *proof);

/* Trees into each rank for an alltoall over a machine without symmetries (in_trees_packing.c): mostly within 1e-4 of
 * the bound, or as near as a limited number of rounds comes. *proof: the bound that is known; stays, or lengths that
 * prove a lower one.
 * *out: has in_tree; NULL: none, as where pairs of ranks have routes of their own, or a tree for each rank more than
 * LIMIT_IN_LINKS links of vertices with a choice. Random: none.
 * Cost: 1e-8 s times links, ranks, trees into each and rounds, 8.5e9 of these at most: 4095 GPUs in a minute or so.
 * Memory: 8 bytes for each rank, vertex and tree. */
Status pack_in_trees(Ctx *ctx, const Topology *topo, Packing **out, Bound *proof);

#endif
