/* The algorithms of the literature as forests, one file for each. To add one, write its file, declare it here, and give
 * it a row in plan/algorithm.c.
 *
 * An algorithm is a rule that makes arborescences over positions 0 .. n-1, whatever the machine is. order.c chooses
 * which rank stands at which position, hops.c which links a hop takes, and classic.c makes a packing of both:
 *
 *     broadcast, scatter        the trees out of position 0, which the root of the collective has
 *     reduce, gather            the same, with all edges reversed
 *     allreduce                 each tree into its root and out of it again
 *     allgather, reducescatter  tree p out of position p, or into it, for the block of the rank there
 *     alltoall                  tree p, of which each block takes a path
 *
 * A gather, scatter or alltoall has the paths of a tree, one for each block.
 *
 * What a forest says, and what it does not. Its trees have equal parts of the data, so the load of a link and with it
 * the rate are exact, whatever the chunks are. Its depth is that of a chunk that never waits. The papers count steps:
 * in each step a rank sends one message, or `ports` of them, and all ranks end it together. So steps are at least the
 * depth, and more where a rank sends the same data several times, or where two phases are not to overlap. */
#ifndef BLINK_PLAN_CLASSIC_H
#define BLINK_PLAN_CLASSIC_H

#include "model/model.h"

/* A job of an algorithm, without the machine. */
typedef struct {
	Collective coll;
	int n;				/* ranks, >= 2 */
	int radix;			/* of k-nomial trees, >= 2 */
	Hierarchy layers;		/* rings in rings, the innermost first: their sizes have the product n */
	RankOrder order;
} Shape;

/* The closed formula: T = steps * alpha + load * M * beta + added * M * gamma, with messages in chunks so small that
 * they are pipelined, on a machine where each rank has one port, each way, of 1 / beta bytes/s. */
typedef struct {
	int steps;	/* start-ups, one after the other, as the paper counts them */
	int ports;	/* messages that a rank sends at once in such a step */
	int depth;	/* hops of the deepest tree, up and down together: at most `steps` */
	Frac load;	/* bytes through the busiest port, in or out, as a part of M */
	Frac added;	/* bytes that the rank that adds most adds, as a part of M */
} Cost;

typedef struct {
	/* Number of trees: n where collectives have blocks, except that all of a gather or scatter are paths of one. */
	int (*trees)(const Shape *shape);
	/* parent[p] of every position p in tree t, out of its root; -1 at the root. */
	void (*parents)(const Shape *shape, int t, int *parent);
	void (*cost)(const Shape *shape, Cost *out);
	bool alone;	/* each tree serves its root alone, with all data: there is no way down */
	bool staged;	/* hops lead through the memory of a host */
} Classic;

extern const Classic bine_classic, bruck_classic, chain_classic, direct_classic, double_binary_tree_classic,
    halving_doubling_classic, hierarchical_ring_classic, host_staged_knomial_classic, knomial_classic,
    recursive_doubling_classic, scatter_allgather_classic;

/* Of an Ask on this topology, with what it does not give filled in: radix 2, and a layer for the ranks of each server
 * and one for the servers, or a single one where servers have different numbers of ranks.
 * Fails: USAGE the layers do not multiply to the number of ranks. */
Status classic_shape(Ctx *ctx, const Topology *topo, const Ask *ask, Shape *out);

/* A packing: of the orders of ranks that are tried the one with the highest rate, the first of them, which keeps the
 * ranks of a server together. name: for messages, "k-nomial trees". *best: no order has a higher rate.
 * Random: none. Clock: none. Cost: CLASSIC_HOPS, and those of one order.
 * Fails: INFEASIBLE there is no hop between two ranks that need one; LIMIT too many trees or edges. Run arena. */
Status classic_pack(Ctx *ctx, const Topology *topo, const Classic *classic, const Shape *shape, int root,
    const char *name, Packing **out, bool *best);

enum { CLASSIC_HOPS = 1 << 17 };	/* that the search for an order looks at */

/* ---- shape.c: what several algorithms share ---- */

Frac shape_part(int64_t of, int64_t all);	/* of / all */
bool shape_rooted(const Shape *shape);		/* broadcast, reduce, gather, scatter */
int shape_phases(const Shape *shape);		/* 2 for an allreduce: up and down; else 1 */
int digits_of(int n, int radix);		/* the least d with radix^d >= n */
int digits_most(int n, int radix);		/* digits that are not 0 in a number below n, at most */
int power_of_two(int n);			/* the exponent of the largest that is at most n */
int one_tree(const Shape *shape);		/* Classic.trees */
int tree_of_each(const Shape *shape);		/* likewise: n */

/* ---- for classic.c ---- */

/* Hops between positions: what trees send from one to another, in units of weight. */
typedef struct {
	int n_arcs;
	struct traffic_arc {
		int src, dst;
		int64_t weight;
	} *arc;		/* ascending by src, then dst */
} Traffic;

/* hops.c: which links a hop takes. */
typedef struct Hops Hops;
/* In the scratch arena. Fails: INFEASIBLE staged hops, where each pair has its one route; LIMIT. */
Status hops_new(Ctx *ctx, const Topology *topo, bool staged, Hops **out);
int hops_route(Hops *hops, int src, int dst, int link[LIMIT_ROUTE_LINKS]);	/* links; 0: there is no hop */
const char *hops_kind(const Hops *hops);	/* "hop", for messages */
/* Links in use for as much as `load` of their capacity cost more from now on. */
void hops_reprice(Hops *hops, const int64_t *load);

/* order.c: order[p] is the rank at position p. first: that at position 0; -1: any. *best: no order has a lower load,
 * by any routes. Fails: INFEASIBLE. */
Status order_choose(Ctx *ctx, const Topology *topo, Hops *hops, const Traffic *traffic, int first, const char *name,
    int *order, bool *best);

/* Likewise by the numbers of ranks, kind: but ORDER_CHOSEN. Fails: INFEASIBLE there is no such hop. */
Status order_of_ranks(Ctx *ctx, const Topology *topo, Hops *hops, const Traffic *traffic, RankOrder kind, int first,
    const char *name, int *order);

#endif
