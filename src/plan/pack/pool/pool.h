/* Pools of trees: what multiplicative weights find, and the fewest trees of a pool for a rate. */
#ifndef BLINK_PLAN_PACK_POOL_POOL_H
#define BLINK_PLAN_PACK_POOL_POOL_H

#include "model/model.h"

/* Pack arborescences (broadcast, reduce) or spanning trees (allreduce) by multiplicative weights. Where capacities
 * differ in the two directions, a tree of an allreduce is a pair: an arborescence into a rank, and one out of it.
 * topo: checked, connected, n_ranks >= 2.  bound: of the same request.
 * *out: n_trees >= 1; their rate is at least (1 - epsilon) times the optimum of packing such trees, less what
 * rounding to weights of 20 bits takes (n_trees / 2^20 at most).
 * *optimum: bytes/s, no less than that optimum: the bound, or what MWU's weights prove if that is less. After
 * LIMIT_MWU_ROUNDS, and with PACKING_EXACT after LIMIT_ILP_TREES trees, it ends with the rate that it has.
 * Random: none; variants are fixed sequences.
 * From: Blink 3.2; Garg and Koenemann 2007, fig. 1; we stop as soon as the bound proves the gap. */
Status pack_mwu(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out, Frac *optimum);

/* The trees of both, each once; weights of 1: a pool to choose from, which need not fit the capacities. */
Status pack_pool(Ctx *ctx, const Packing *a, const Packing *b, Packing **out);

/* Fewer trees for (nearly) the same rate, by integer programs over the trees of `pack` (Blink 3.2.1). pack_select
 * takes each tree once or not at all, at the rate of one physical link; pack_minimise takes finer units of rate.
 * optimum: of packing such trees, bytes/s; no less than it.
 * most_trees: that are of use. *cells: what is left of LIMIT_ILP_CELLS; less when they return.
 * *possible: some number of whole links is within tolerance of the optimum.
 * *out: within ask->tolerance of the optimum, with the fewest trees that branch and bound finds in LIMIT_ILP_NODES;
 * NULL where it finds none, and where no cells are left. Fails: NO_MEMORY if GLPK does. */
Status pack_select(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int64_t *cells,
    bool *possible, Packing **out);
Status pack_minimise(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int most_trees,
    int64_t *cells, Packing **out);

/* Fewer trees of a pool at a rate, by branch and bound over which of them are used, with exact weights (sparsest.c).
 * target: bytes/s. fewer_than: trees, of a collective with one demand.
 * *out: at the target or above, the shallowest that it finds; NULL: none. *searched: false where the pool is so large
 * that limits leave much of it out.
 * Fails: NO_MEMORY. Cost: LIMIT_WIDEN_CELLS and LIMIT_SPARSEST_CELLS at most. */
Status pack_sparsest(Ctx *ctx, const Topology *topo, Frac target, const Packing *pool, int fewer_than, bool *searched,
    Packing **out);

#endif
