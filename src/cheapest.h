/* The cheapest tree of a collective under prices of links: what MWU and the exact planner ask for again and again. */
#ifndef BLINK_CHEAPEST_H
#define BLINK_CHEAPEST_H

#include "passes.h"
#include "search.h"

/* A part of the topology that is searched by itself, for a family of trees. Its hops are numbered behind those of the whole. */
struct piece {
	Topology topo;
	const int *rank, *link;	/* of the whole */
	Search search;
	int first_hop;
};

typedef struct Cheapest Cheapest;

struct Cheapest {
	Ctx *ctx;
	const Topology *topo;
	bool paired;		/* DEMAND_BOTH: up and down are two arborescences, not one tree both ways */
	int max_depth;		/* hops of a tree, up and down; 0: any. With a limit, trees are cheap, not cheapest */
	int n_roots;		/* ranks that may be the root of such a pair: all, or one of each orbit */
	const int *roots;	/* NULL: all */
	Search search;
	Demand demand;		/* of the tree at hand */
	int root;		/* of the tree at hand, if paired */
	int *there, *back;	/* hops of the tree at hand; back for DEMAND_BOTH only; -1: none */
	int *into, *out_of;	/* work space of cheapest_pair */
	int path_from;		/* source of the shortest paths at hand; -1: none */
	int64_t *distance;	/* of each rank from it */
	int *path_hop;		/* that enters each rank on its path from it */
	int n_used, *used;	/* links in use by the tree at hand, in order of discovery, */
	int *uses;		/* and how often it uses each link of the topology */
	/* Of a family of trees (family.h); else NULL. find: the cheapest of them, into there, back and root; -1: there is none. */
	void *family;
	void (*family_price)(Cheapest *c, const int64_t *price);
	Status (*family_find)(Cheapest *c, int64_t *cost);
	int n_pieces;
	const struct piece *piece;	/* by first_hop */
};

/* In the scratch arena. DEMAND_BOTH starts paired where some link has no equal in the other direction.
 * sym: what all prices will be symmetric under, or NULL. */
Status cheapest_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, Cheapest *out);

/* Prices from now on: one per link, 0 <= price < 2^SEARCH_PRICE_BITS. */
void cheapest_price(Cheapest *c, const int64_t *price);

/* Find the cheapest tree of a demand. *cost: each link as often as the tree uses it; -1: the ranks have none.
 * Fails: LIMIT a route has more than LIMIT_ROUTE_LINKS links. */
Status cheapest_find(Cheapest *c, Demand demand, int64_t *cost);

/* The tree at hand, in the run arena. rooted_at_end: a path is rooted where it ends, and goes up. */
Status cheapest_tree(Cheapest *c, bool rooted_at_end, Tree *out);

#endif
