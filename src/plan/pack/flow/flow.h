/* Packings at the bound without a linear program over trees: by maximum flows; and exchanges of edges. */
#ifndef BLINK_PLAN_PACK_FLOW_FLOW_H
#define BLINK_PLAN_PACK_FLOW_FLOW_H

#include "model/model.h"

/* Broadcast, reduce, allgather or reducescatter at the bound, by maximum flows; an allreduce, too: where links are full
 * duplex by orient.c, else with a linear program that divides them (directions.c). Switches only forward: shallow trees
 * through them are tried first (shallow.c), and then they are split off (split_off.c).
 * bound: a cut of the same request: the optimum of such trees over direct links (Edmonds 1973), and where no switch has
 * less capacity out of it than into it, or more.
 * With a tolerance they have the simplest rate, in units of links, within it: of fewer trees.
 * *out: at the bound, exactly, or within 1e-9 of it where links are divided in fractions; NULL for other collectives,
 * with switches that multicast or reduce, where hops keep to routes, where rates in units need more than 64 bits, where
 * time is over, and where switches keep trees below the bound. Demands are in order, each as few trees as the search
 * finds; behind switches less deep ones are preferred.
 * From: Edmonds 1973; Lovasz 1976; Berczi and Frank 2010 (branchings.c). Cost: for each root one maximum flow for each
 * arc at most, and one for each rank and tree, mostly far fewer; a flow over 256 ranks of 4 links takes about 20 us. */
Status pack_branchings(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out);
/* The rate of each demand that it is for; false where that needs too many bits. */
bool branchings_rate(const Topology *topo, const Bound *bound, const Ask *ask, Frac *rate);

/* Allgather or reducescatter over links between GPUs alone, at the bound, each tree as shallow as any from its root
 * (balanced.c). sym: of topo.
 * listed: no trees of each rank (Packing.in_tree), which are made where a list would be too long.
 * *out: with a symmetry where sym has one, of its representatives; NULL: other collectives, other machines, a group
 * that leaves some rank where it is, or shortest paths alone do not reach the bound. Random: none.
 * Cost: each root and link are looked at for each path by which parts move; at most some seconds. */
Status pack_balanced(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound,
    bool listed, Packing **out);
/* False: it has none, from counts alone. */
bool pack_balanced_serves(const Topology *topo, const Symmetry *sym, Collective coll);

/* An allreduce of this rate, bytes/s, over links between ranks, or to switches that have links to ranks alone, each
 * with an opposite one of equal capacity; trees have the least depth, or a few levels more (parents.c).
 * rate: the bound or less, mostly of a partition into single ranks, as of a torus without some ranks.
 * less: the part of it that trees may lack, where pushes end with some edges that have a little too much.
 * *out: NULL: other machines, more than LIMIT_PAIR_RANKS ranks, a rate of too many units, trees of too many edges, time
 * is over, or pushes found no such trees, though there may be some. Random: none.
 * Cost: a search from each rank, and some dozen looks at each hop of each rank in each tree, some times that where
 * nothing is found: 1 to 4 s for 4096 ranks.
 * From: Goldberg and Tarjan 1988, preflows; we push ranks of trees instead of flow, heuristically. */
Status pack_parents(Ctx *ctx, const Topology *topo, Frac rate, Frac less, Packing **out);

/* An allreduce at the bound, or within the tolerance of it as above, over full-duplex links, where each rank has one,
 * to a switch, and these links limit the rate (children.c): trees enter the ranks at a switch once, and have a unit of
 * the rate each.
 * bound: a partition of the ranks into single ones.
 * *out: NULL: other machines, more than half of the ranks at one of several switches, a rate of so many units that
 * trees have too many edges, or the switches between have too little. Random: none. Cost: each edge of each tree, and
 * of each tree a search through the switches for each one at which ranks have children elsewhere: 1 s for 4096 ranks.
 * From: the degrees of trees (Senior 1951); the trees are ours. */
Status pack_children(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out);

/* Of a packing of any packer: trees exchange edges until none is deeper than it has to be, or no exchange is of use.
 * The rate, the number of trees, their roots and weights stay; no link carries more than its capacity.
 * *out: less deep; NULL: no such trees are found, or these are paths, a symmetry's, too many or too deep, or share
 * links at switches. Random: none. Cost: at most 2^27 looks at an edge, mostly a few ms. */
Status pack_shallower(Ctx *ctx, const Topology *topo, const Packing *pack, Packing **out);

#endif
