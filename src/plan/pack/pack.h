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
 * most_trees: that are of use.  *cells: what is left of LIMIT_ILP_CELLS; less when they return.
 * *possible: some number of whole links is within tolerance of the optimum.
 * *out: within ask->tolerance of the optimum, with the fewest trees that branch and bound finds in LIMIT_ILP_NODES;
 * NULL where it finds none, and where no cells are left. Fails: NO_MEMORY if GLPK does. */
Status pack_select(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int most_trees,
    int64_t *cells, bool *possible, Packing **out);
Status pack_minimise(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Ask *ask, int most_trees,
    int64_t *cells, Packing **out);

/* No smaller number of trees of any kind has this rate, of a collective with one demand: as none is wider than the
 * widest way from rank to rank. rate: bytes/s. *out: at least 1. Cost: log(n_links) searches. */
Status pack_least_trees(Ctx *ctx, const Topology *topo, const Ask *ask, Frac rate, int *out);

/* Fewer trees of a pool at a rate, by branch and bound over which of them are used, with exact weights (sparsest.c).
 * target: bytes/s. fewer_than: trees, of a collective with one demand.
 * *out: at the target or above, the shallowest that it finds; NULL: none. *searched: false where the pool is so large
 * that limits leave much of it out.
 * Fails: NO_MEMORY. Cost: LIMIT_WIDEN_CELLS and LIMIT_SPARSEST_CELLS at most. */
Status pack_sparsest(Ctx *ctx, const Topology *topo, Frac target, const Packing *pool, int fewer_than, bool *searched,
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

/* What a linear program knew of trees at its end: one that follows may start from them. In the run arena. */
typedef struct {
	const struct column *column;
	int n;
} KnownTrees;

/* As pack_exact, starting from the trees of `known` that are no deeper than ask->max_depth: those of a program over the
 * same topology, symmetries and collective. Afterwards `known` has this program's. */
Status pack_exact_from(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, KnownTrees *known,
    const Ask *ask, Packing **out, Bound *proof);

/* Are few trees looked for by a tableau (tableau.c), next to a basis of the least depth? Of an allgather or
 * reducescatter over few ranks with direct links, but not where the program is so small that GLPK solves dozens
 * soon. */
bool pack_has_tableau(const Topology *topo, const Ask *ask);

/* As pack_exact, over the trees of a family; NULL: over all trees.
 * *proof: stays; family NULL: as pack_exact. *optimum: of these trees, bytes/s; FRAC_ZERO where it is not proven.
 * Fails: INFEASIBLE there are no such trees. */
Status pack_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Family *family,
    const Ask *ask, Packing **out, Bound *proof, Frac *optimum);

/* proof->reached, if these trees have that rate, of whatever kind they are. pack: may be NULL. */
void pack_note_reached(const Packing *pack, Collective coll, int n_ranks, Bound *proof);

/* Broadcast or reduce at the bound by a few trees of equal rate, by a greedy choice, for many servers.
 * bound: a cut, of the same request. known: others at the bound, or NULL. *out: at the bound, and known if the sum of
 * their depth and number is less; else the best that it finds; NULL where it finds no tree.
 * Cost: the square of the ranks for each tree. */
Status pack_greedy(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing *known, Packing **out);

/* Broadcast, reduce, allgather or reducescatter at the bound, by maximum flows; an allreduce, too: where links are full
 * duplex by orient.c, else with a linear program that divides them (directions.c). Switches only forward: shallow trees
 * through them are tried first (shallow.c), and then they are split off (split_off.c).
 * bound: a cut of the same request: the optimum of such trees over direct links (Edmonds 1973), and where no switch has
 * less capacity out of it than into it, or the other way.
 * *out: at the bound, exactly, or within 1e-9 of it where links are divided in fractions; NULL for other collectives,
 * with switches that multicast or reduce, where hops keep to routes, where rates in units need more than 64 bits, where
 * time is over, and where switches keep trees below the bound. Demands are in order, each as few trees as the search
 * finds; behind switches less deep ones are preferred.
 * From: Edmonds 1973; Lovasz 1976; Berczi and Frank 2010 (branchings.c). Cost: for each root one maximum flow for each
 * arc at most, and one for each rank and tree, mostly far fewer; a flow over 256 ranks of 4 links takes about 20 us. */
Status pack_branchings(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out);
/* The same at this rate, bytes/s, of each demand. shares: of an allgather or reducescatter, the demand of rank r is
 * shares[r] times that, shares[r] > 0; NULL: once. bound: read where the directions of an allreduce differ. */
Status pack_branchings_of(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Frac rate,
    const int64_t *shares, Packing **out);

/* Broadcast, reduce, allreduce, allgather or reducescatter over a cluster, each server of which has a switch of its
 * own: trees over servers by flows, and over the GPUs inside of each (two_level.c). bound: of the same request.
 * *out: at the bound where that is of whole servers and their switches have room, else below it; NULL where the machine
 * is another one, where flows find no trees, and where a schedule of them would be too large. Demands are in order.
 * Fails: NO_MEMORY. Cost: flows over as many ranks as there are servers, and that of writing its edges down. */
Status pack_two_level(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Packing **out);

/* Allreduce, allgather or reducescatter over a cluster whose servers differ in size, in the rate of their GPUs, or in
 * the networks that they reach, each with a switch of its own: few trees of one hop between servers (unequal.c).
 * bound: of the same request. *out: at the bound, but for rounding, or, where a schedule of these would be too large,
 * of fewer trees a little below it; NULL where the machine is another one, where its servers are equal, where some link
 * is too slow for such trees, and where weights need more than 60 bits. Demands are in order. *lower: where *out is
 * NULL, such trees of a lower rate, or NULL.
 * Fails: NO_MEMORY. Cost: that of writing its edges down, and of a linear program with a row for each way of each type
 * of servers. */
Status pack_unequal(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out,
    Packing **lower);

/* The same with whole trees alone: an allgather or reducescatter has one for each rank. Their rate may be below the
 * bound. *out: NULL where there are none. */
Status pack_unequal_whole(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out);

/* Allreduce over a cluster, each server of which has a switch of its own, with at most ask->max_trees trees (0: any
 * number), or trees of ask->max_depth: the highest rate of those of one or two rates with few hubs (few_trees.c).
 * *out: NULL where the machine is another one, or none are found; depth may be larger than asked.
 * Fails: NO_MEMORY; INTERNAL. Cost: a second at most, and that of writing its edges down. */
Status pack_cluster_few(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out);

/* Allreduce over full-duplex links between GPUs: spanning trees at the rate that the partition of `bound` proves, or
 * at one within ask->tolerance of it that fewer trees have.
 * *out: NULL where there are switches, where links are not the same in both directions, or numbers are too large; where
 * time is over, trees of a lower rate. Cost: for each tree a search among the exchanges of all, ranks * trees.
 * From: Edmonds 1965, Minimum partition of a matroid into independent subsets; weights are ours. */
Status pack_spanning(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out);

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

/* Trees of representatives for machines too large for a table of all pairs of ranks (templates.c): of an allreduce,
 * allgather or reducescatter, at a rate near the bound, if it is not at the bound.
 * *out: has a symmetry; NULL: there are no such trees, or routes from switches are too many. Fails: LIMIT a route of
 * more than LIMIT_ROUTE_LINKS links. Random: none.
 * Cost: a search from each switch next to GPUs, and one for each representative, a dozen times. */
Status pack_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound,
    Packing **out);
/* Whether it would look for trees: false: there are none. */
bool pack_templates_serves(const Topology *topo, const Symmetry *sym, Collective coll);

/* A path of n_links >= 1 links from rank to rank as a tree, which begins at the first and reaches those on the path in
 * their order. Links are copied. */
Status pack_path_tree(Ctx *ctx, const Topology *topo, const int *path, int n_links, Tree *out);

/* Paths of representatives for an alltoall over machines too large for a list of all pairs (path_templates.c), at a
 * rate near the bound, if it is not at the bound. proof: the bound; lower where a cut proves it.
 * *out: has a symmetry; NULL: there are no such paths, as where the group leaves some rank in its place, or too many.
 * Fails: LIMIT a route of more than LIMIT_ROUTE_LINKS links. Random: none.
 * Cost: a search from each representative over all links, dozens of times at most. */
Status pack_path_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Packing **out, Bound *proof);

/* Broadcast, reduce, scatter or gather over a cluster of equal servers, each with a switch of its own, without a table
 * of all pairs of ranks (rooted.c). bound: of the same request. *out: at a rate near the bound, if it is not at the
 * bound; NULL where the machine is another one. Random: none. Cost: that of writing its edges down, and of an edge
 * colouring of the hops between servers. */
Status pack_rooted(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Packing **out);
/* *serves: whether the machine is such a one, for a collective of these. */
Status pack_rooted_serves(Ctx *ctx, const Topology *topo, Collective coll, bool *serves);

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

/* Alltoall where few pairs of ranks are symmetric: key paths and detours (alltoall.c).
 * *out: at the optimum but for the rounding of doubles, 1e-9 at most; a lower rate where time is over, or GLPK fails.
 * *proof: stays, or lengths that prove a lower bound. Fails: NO_MEMORY; LIMIT more edges than a schedule may have.
 * Cost: a linear program of a row for each link, and 100 searches from each rank: 256 GPUs of 4 links in 12 s. */
Status pack_paths(Ctx *ctx, const Topology *topo, Packing **out, Bound *proof);

#endif
