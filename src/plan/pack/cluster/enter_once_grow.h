/* One tree of the packing of enter_once.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_GROW_H
#define BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_GROW_H

#include "plan/pack/cluster/tree_network.h"

struct hop {
	int src, dst;		/* ways */
	bool inside;		/* by the switch of their server */
};

struct turn {
	int64_t key;
	int group;
};

struct grower {
	Ctx *ctx;
	TreeNetwork net;
	bool into;		/* links are passed the other way */
	bool both;		/* an allreduce: each way is passed both ways */
	bool shared;		/* an allgather's trees for one: roots have as many as their links leave to them */
	bool listed;		/* all trees in a list; else those of each rank by numbers of edges */
	int deep;		/* DEEP, or 0 */
	bool fair;		/* of several networks, as rails: ways into a server fill evenly */
	bool relayed;		/* ranks may pass data on in their server */
	int sole_root;		/* of a broadcast or reduce: the root of all trees; -1 */
	int n;			/* ranks */
	int tried;		/* all that the last packing was made by, in bits: units, deep, fair, relayed */
	int64_t *left;		/* units of each link */
	int64_t *pool;		/* of each server: units left of all its uplinks, less what its ranks need, or but of an
				 * allreduce less one for each of their units */
	int64_t *own;		/* of each rank: units of its trees */
	int64_t *needs;		/* of each rank, and each vertex of a server: units of the arc up that trees with their
				 * roots below will take */
	int *times;		/* of each rank: how often a tree of its own leaves it */
	int64_t ahead;		/* units of the trees that come after the current one */
	/* The current tree: */
	int root;
	int64_t weight;
	bool relaxed;		/* also ways that have less left than others of their server, and ranks that have others
				 * pass data on in it */
	bool *entered;		/* servers */
	bool *holds;		/* ranks */
	int *depth;		/* of each rank that holds it: hops from the root */
	int *holder, n_holders;	/* these, in order */
	int *held;		/* of each of them: its place there */
	struct hop *hop;
	int n_hops;
	struct turn *turn;	/* work space: of each group */
	/* All of them: */
	int *of_root;
	int64_t *weights;
	struct hop **hops;
	int n_trees, most;
};

/* Units left of the links of a way up to a vertex above it, or down from there: the least. arcs: rise or fall. */
int64_t entering_left(const struct grower *g, const int *arcs, int way, int top);

/* All of them are used, as they would be by data. */
void entering_use(struct grower *g, const int *arcs, int way, int top, int64_t units);

/* Reserves units on the links from a root to the edge of its server, for trees of that root that are still to come;
 * units < 0: releases them. */
void entering_need(struct grower *g, int root, int64_t units);

/* The nearest vertex above two ways; -1: they are in different networks. */
int entering_meet(const struct grower *g, int a, int b);

bool entering_is_below(const struct grower *g, int way, int v);

/* A tree of this root and weight, in g->hop. False: some server is not entered, and nothing is used. */
bool entering_grow(struct grower *g, int root, int64_t weight);

#endif
