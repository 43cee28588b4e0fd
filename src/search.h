/* Cheapest routes (routes.c) and trees (search.c, limited.c) under integer prices of links: the inner step of MWU, and the check of a price
 * certificate. Integers, so that every machine breaks ties alike. */
#ifndef BLINK_SEARCH_H
#define BLINK_SEARCH_H

#include "model.h"

enum { SEARCH_PRICE_BITS = 44 };	/* prices are below 2^44: a route of 64 links, times 4096 edges, fits an int64_t */

struct hop {
	int src, dst;		/* ranks */
	int64_t cost;		/* of the cheapest route; below 0: there is none */
	int link;		/* the first link of that route */
};

/* The hops that a tree may be made of. Without switches they are the links; with them, all pairs of ranks. */
typedef struct {
	const Topology *topo;
	int n_hops;
	struct hop *hop;
	bool switched;
	/* Only if switched. */
	int *hub;		/* of each switch: itself, or the first vertex behind it that more than one link leaves, or a rank */
	int n_rows, *row_of;	/* of each hub behind a link of a rank: its row in what follows; of others -1 */
	int64_t *distance;	/* n_rows * n_vertices: cost of the cheapest route from it to each vertex */
	int *last;		/* n_rows * n_vertices: last link of that route, -1: none */
	int *heap, *place;	/* n_vertices: work space */
	int64_t *row;		/* n_ranks * n_ranks: entering hops of each rank, or of the ranks contracted with it */
	/* Of the tree searches. */
	struct cone *cone;	/* n_hops */
	struct arbor *arbor;	/* n_ranks */
	struct rung *rung;	/* n_ranks */
	struct level *level;	/* 2 * n_ranks */
	int *pair, *node, *part, *queue;
	int64_t *reach;
} Search;

Status search_new(Ctx *ctx, const Topology *topo, Search *out);	/* in the scratch arena */

/* routes.c: hubs and rows, of a search that has its topology. */
Status search_hubs(Ctx *ctx, Search *search);

/* Reprice: price[l] >= 0, one per link. */
void search_price(Search *search, const int64_t *price);

/* Links of hop h in order; at most LIMIT_ROUTE_LINKS. Returns how many, -1 if more. */
int search_route(const Search *search, int hop, int link[LIMIT_ROUTE_LINKS]);

/* The i-th hop that leaves (enters) a rank, in order of the other end if there are switches; -1: no more. */
int search_hop_at(const Search *search, int rank, int i, bool entering);

/* Cheapest hop from src to dst, -1: none. Without switches a pair may have none or several. */
int search_cheapest_hop(const Search *search, int src, int dst);

/* Shortest paths of hops from a rank: distance of each rank, -1: none, and the hop that enters it, -1. Dijkstra. */
void search_paths(Search *search, int from, int64_t *distance, int *hop);

/* Cheapest arborescence out of (into) root: hop[v] is the hop that enters (leaves) rank v, -1 at the root. Returns
 * its cost, or -1 where a rank has none. Chu and Liu 1965, Edmonds 1967; Tarjan's mergeable heaps, O(m log n). Of those
 * that cost the same it takes a shallow one. */
int64_t search_arborescence(Search *search, int root, bool into, int *hop);

/* A cheap arborescence of at most `limit` hops from (to) the root, as search_arborescence says; with `back`, one whose hops
 * are paid both ways, back[v] being the way back. Prim's and breadth-first trees, the cheaper: no optimum is claimed. -1:
 * none was found. */
int64_t search_limited(Search *search, int root, bool into, int limit, int *hop, int *back);

/* Cheapest path of at most `limit` hops: hop[v] enters v, for v on the path. layer: work space of (limit + 1) * n_ranks.
 * Returns its cost, or -1. Bellman and Ford. */
int64_t search_limited_path(Search *search, int from, int to, int limit, int64_t *layer, int *hop);

/* Hops from each rank to `root` (into), or from it: -1: none lead there. Returns the most, or -1 where any has none. */
int search_hops(Search *search, int root, bool into, int *hops);

/* Cheapest spanning tree where an edge costs its hops both ways: there[i], back[i] for its n_ranks - 1 edges.
 * Returns its cost, or -1. Prim; of those that cost the same a shallow one. */
int64_t search_spanning_tree(Search *search, int *there, int *back);

#endif
