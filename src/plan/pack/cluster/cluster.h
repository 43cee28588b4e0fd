/* Trees over clusters of servers, each of which has a switch of its own. */
#ifndef BLINK_PLAN_PACK_CLUSTER_CLUSTER_H
#define BLINK_PLAN_PACK_CLUSTER_CLUSTER_H

#include "model/model.h"

/* Allreduce, allgather or reducescatter over a cluster whose servers differ in size, in the rate of their GPUs, or in
 * the networks that they reach, each with a switch of its own: few trees of one hop between servers, or of as many as
 * their switches leave to the network (unequal.c).
 * bound: of the same request. *out: at the bound, but for rounding, or, where a schedule of these would be too large,
 * of fewer trees a little below it; NULL where the machine is another one, where its servers are equal, where some link
 * is too slow for such trees, and where weights need more than 60 bits. Demands are in order. *lower: where *out is
 * NULL, such trees of a lower rate, or NULL.
 * Fails: NO_MEMORY. Cost: that of writing its edges down, and of a linear program with a row for each uplink of each
 * type of servers. */
Status pack_unequal(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out,
    Packing **lower);

/* The ways down of an allreduce over such a cluster, which is at the bound where they have twice its rate: those of an
 * allgather whose blocks are as long as this takes. bound: of the allreduce. max_ratio: of the rates of two trees. 1:
 * all trees have one rate; N > 1: they have two at most, the higher up to N times the lower; 0: no limit. With a limit
 * the plan is slightly below the bound, by at most two trees for each rank. *out: NULL where there are none. */
Status pack_unequal_turned(Ctx *ctx, const Topology *topo, const Bound *bound, int max_ratio, Packing **out);

/* Allreduce over such a cluster on several networks, as rails, which some servers lack: with lengths of hubs that leave
 * their uplinks as much for further entries (unequal_even.c). bound: of the allreduce. *out: NULL where there are
 * none. */
Status pack_unequal_even(Ctx *ctx, const Topology *topo, const Bound *bound, Packing **out);

/* The same with whole trees alone: an allgather or reducescatter has one for each rank. Their rate may be below the
 * bound. *out: NULL where there are none. */
Status pack_unequal_whole(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out);

/* Allgather or reducescatter over servers whose switches limit it, equal ones, too, where trees at the bound would be
 * too many for a schedule: hardly more than one for each rank, at the highest rate at which these are not divided among
 * uplinks. *out: NULL where there are none. */
Status pack_unequal_whole_copies(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out);

/* Allgather or reducescatter over a cluster, each server of which has a switch of its own: a compact packing, with
 * trees of representatives under a group (images.c). sym: a cyclic group that permutes isomorphic servers. bound: of
 * the same request. *out: has a symmetry; a little below the bound, or at it; NULL where the machine is another one,
 * or where a schedule would be too large. Random: none. Fails: NO_MEMORY. Cost: for each tree a look at the GPUs of
 * its server for each rank. */
Status pack_images(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound,
    Packing **out);
/* *serves: whether the machine is such a one, and some of its servers stay in their places. */
Status pack_images_serves(Ctx *ctx, const Topology *topo, const Symmetry *sym, bool *serves);

/* Broadcast, reduce, allgather, reducescatter or allreduce over servers that a tree of switches joins, as leaf switches
 * and a spine, each with a switch of its own or one GPU: trees that enter each server once (enter_once.c).
 * root: of a broadcast or reduce. rate: of each rank, bytes/s; of an allreduce, broadcast or reduce of all. late: other
 * choices of senders and of units than those that make the better trees. listed: all trees in a list, else those of
 * each rank (Packing.in_tree), of an allgather or reducescatter.
 * *out: at this rate, but for rounding up to 1e-9 of it; an allgather's trees mostly have 3 to 10
 * hops, an allreduce's 10 to 60; NULL where the machine is another one, or where the greedy choice finds no room.
 * Demands are in order. Random: none. Cost: for each tree and each switch a look at all ranks below it, some times. */
Status pack_enter_once(Ctx *ctx, const Topology *topo, Collective coll, int root, Frac rate, bool late, bool listed,
    Packing **out);
/* Trees of an allgather for an allreduce that uses them in both directions. In each server, and below each switch,
 * there are enough roots that all trees with other roots have room to enter. rate: of all together. *out: mostly of 3
 * to 10 hops; NULL: as above. */
Status pack_enter_once_shared(Ctx *ctx, const Topology *topo, Frac rate, Packing **out);
/* *rate: of all ranks, the most at which the switches of servers have room for such trees; 0: it is another machine, or
 * no server has two ranks. */
Status pack_enter_once_inside(Ctx *ctx, const Topology *topo, Collective coll, Frac *rate);
/* *has: the machine is such a one, and has a switch below another one. */
Status pack_enter_once_levels(Ctx *ctx, const Topology *topo, Collective coll, bool *has);

/* Allgather or reducescatter where GPUs have a link each to a switch, or links to others and to switches: trees that
 * enter what is at a switch once (by_homes.c). rate: of each rank, bytes/s. listed: as above.
 * *out: at this rate; NULL: there are too many routes, or moves find no room. Demands are in order. Random: none.
 * Cost: for each root a look at all routes from switch to switch, and at trees that have too many, some times. */
Status pack_by_homes(Ctx *ctx, const Topology *topo, Collective coll, Frac rate, bool listed, Packing **out);

/* A few trees of equal rate over such networks, of one root, or with -1 of any, that are `rate` together. into: data
 * flow to the roots. *out: as above. */
Status pack_by_homes_few(Ctx *ctx, const Topology *topo, bool into, int root, Frac rate, int n_trees, Packing **out);

/* Allreduce over a cluster, each server of which has a switch of its own, with at most ask->max_trees trees (0: any
 * number), or trees of ask->max_depth: the highest rate of those of one or two rates with few hubs (few_trees.c).
 * *out: NULL where the machine is another one, or none are found; depth may be larger than ask->max_depth.
 * Fails: NO_MEMORY; INTERNAL. Cost: a second at most, and that of writing its edges down. */
Status pack_cluster_few(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out);

/* Broadcast, reduce, scatter or gather over a cluster of servers with a switch each, for the last two equal ones,
 * without a table of all pairs of ranks (rooted.c). bound: of the same request. *out: at a rate near the bound, if it
 * is not at the bound; NULL where the machine is another one, or none are found. Random: none. Cost: that of writing
 * its edges down, and of flows of the hops between servers, seconds at most. */
Status pack_rooted(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Packing **out);
/* *serves: whether the machine is such a one, for a collective of these. */
Status pack_rooted_serves(Ctx *ctx, const Topology *topo, Collective coll, bool *serves);
/* The same hardly below the bound, where trees at it would be many (slots.c). bound: proven by a cut, or equal prices.
 * rate: that is known. *out: of few trees, and a higher rate; NULL where there are none. */
Status pack_rooted_below(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Frac rate,
    Packing **out);

/* Broadcast or reduce at the bound by a few trees of equal rate, by a greedy choice, for many servers.
 * bound: a cut, of the same request. known: others at the bound, or NULL. *out: at the bound, and known if the sum of
 * their depth and number is less; else the best that it finds; NULL where it finds no tree.
 * Cost: the square of the ranks for each tree. */
Status pack_greedy(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing *known, Packing **out);

#endif
