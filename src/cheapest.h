/* The cheapest tree of a collective under prices of links: what MWU and the exact planner ask for again and again. */
#ifndef BLINK_CHEAPEST_H
#define BLINK_CHEAPEST_H

#include "passes.h"
#include "search.h"

typedef struct {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	int root;		/* of the collective; of the tree at hand, if paired */
	bool paired;		/* allreduce: up and down are two arborescences, not one tree both ways */
	Search search;
	int *there, *back;	/* hops of the tree at hand; back for allreduce only; -1: none */
	int *into, *out_of;	/* work space of cheapest_pair */
	int n_used, *used;	/* links in use by the tree at hand, in order of discovery, */
	int *uses;		/* and how often it uses each link of the topology */
} Cheapest;

/* In the scratch arena. Allreduce starts paired where some link has no equal in the other direction. */
Status cheapest_new(Ctx *ctx, const Topology *topo, Collective coll, int root, Cheapest *out);

/* Find it. price: one per link, 0 <= price < 2^SEARCH_PRICE_BITS. *cost: of the tree, each link as often as it is used.
 * Fails: LIMIT a route has more than LIMIT_ROUTE_LINKS links. */
Status cheapest_find(Cheapest *c, const int64_t *price, int64_t *cost);

/* The tree at hand, in the run arena. */
Status cheapest_tree(Cheapest *c, Tree *out);

#endif
