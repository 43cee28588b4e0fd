/* Packing trees: the optimal rate, and few trees for it. */
#ifndef BLINK_PLAN_PACK_PACK_H
#define BLINK_PLAN_PACK_PACK_H

#include "graph/graph.h"
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

/* Fewer trees for (nearly) the same rate, by integer programs over the trees of `pack` (Blink 3.2.1). pack_select
 * takes each tree once or not at all, at the rate of one physical link; pack_minimise takes finer units of rate.
 * optimum: of packing such trees, bytes/s; no less than it.
 * *cells: what is left of LIMIT_ILP_CELLS; less when they return.
 * *possible: some number of whole links is within tolerance of the optimum.
 * *out: within ask->tolerance of the optimum, with the fewest trees that branch and bound finds in LIMIT_ILP_NODES;
 * NULL where it finds none, and where no cells are left. Fails: NO_MEMORY if GLPK does. */
Status pack_select(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int64_t *cells,
    bool *possible, Packing **out);
Status pack_minimise(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int64_t *cells,
    Packing **out);

/* The optimal rate over all trees, exactly, and what proves it. All collectives.
 * pool: more trees to start from, of a collective with one demand; may be NULL.
 * *out: the optimum; rounded, with a rate a little below it, where its fractions need too many digits; NULL if GLPK
 * fails.
 * *proof: `bound`; or, where that is not tight, prices or lengths that prove the optimum, or one a little above it
 * where *out is rounded. Its `reached` is set if the optimum is at *proof, however many trees *out keeps of it.
 * Fails: NO_MEMORY. Cost: a linear program of n_links + n_demands rows for each round of new trees. */
Status pack_exact(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Packing *pool,
    const Ask *ask, Packing **out, Bound *proof);

/* As pack_exact, over the trees of a family; NULL: over all trees.
 * *proof: stays; family NULL: as pack_exact. *optimum: of these trees, bytes/s; FRAC_ZERO where it is not proven.
 * Fails: INFEASIBLE there are no such trees. */
Status pack_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Family *family,
    const Ask *ask, Packing **out, Bound *proof, Frac *optimum);

/* proof->reached, if these trees have that rate, of whatever kind they are. pack: may be NULL. */
void pack_note_reached(const Packing *pack, Collective coll, int n_ranks, Bound *proof);

/* Broadcast or reduce at the bound by a few trees of equal rate, by a greedy choice, for many servers.
 * bound: a cut, of the same request. *out: at the bound, else the best that it finds; NULL where it finds no tree.
 * Cost: the square of the ranks for each tree. */
Status pack_greedy(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out);

/* Every tree is replaced by its images under the group, each with its weight; equal images are merged, and weights
 * divided by their greatest common divisor.
 * pack: trees of the first demand of each orbit, with the rate of each of their images.
 * *out: ordered by demand; NULL where weights are out of range. Fails: LIMIT more trees or edges than a schedule may
 * have. */
Status pack_unfold(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out);

/* Fewer images for the same loads, of a collective with one demand: each server is turned in itself, so that the
 * images of a tree under the coarse maps of the group alone load the links of an orbit equally (turn.c).
 * pack: as for pack_unfold.
 * *out: NULL where it finds no fewer than the whole group has. */
Status pack_turn(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out);

/* The fewest trees within ask->tolerance of the optimum, none deeper than ask->max_depth, for a collective with one
 * demand: by trying all of them, where there are at most LIMIT_FEW_TREES, no switches, and for allreduce equal
 * capacities in both directions. Trees of an allreduce go down as they came up, or another way if fewer do. With
 * ask->max_trees: the highest rate of at most that number of trees; (*out)->highest: it is proven. -v says so.
 * optimum: bytes/s; no less than the best rate of trees of that depth that go down as they came up. top: of any trees.
 * *out: NULL where a condition is not met, where no trees have that rate, or after LIMIT_FEW_NODES. */
Status pack_fewest(Ctx *ctx, const Topology *topo, Frac optimum, Frac top, const Ask *ask, Packing **out);

/* The one tree with the highest rate, none deeper than ask->max_depth, for a collective with one demand, over direct
 * links. *out: stays where these conditions are not met. *proven: no other tree has a higher rate; always so for
 * broadcast and reduce, and for an allreduce where capacities are equal in both directions.
 * Cost: a breadth-first search from each root for each bit of the number of links. */
Status pack_widest(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out, bool *proven);

/* All trees that pack_fewest tries, with weights of 1: a pool. NULL where a condition is not met. */
Status pack_every(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out);

/* The trees of both, each once; weights of 1: a pool to choose from, which need not fit the capacities. */
Status pack_pool(Ctx *ctx, const Packing *a, const Packing *b, Packing **out);

#endif
