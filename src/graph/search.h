/* Searches under prices of links: cheapest routes, arborescences, spanning trees, paths. Prices are integers, so that
 * every machine breaks ties in the same order. */
#ifndef BLINK_GRAPH_SEARCH_H
#define BLINK_GRAPH_SEARCH_H

#include "model/model.h"

enum { SEARCH_PRICE_BITS = 44 };	/* below 2^44: a route of 64 links, times 4096 edges, fits an int64_t */

struct hop {
	int src, dst;		/* ranks */
	int64_t cost;		/* of the cheapest route; below 0: there is none */
	int link;		/* the first link of that route */
};

/* The hops that a tree may consist of. Without switches they are the links; with them, all pairs of ranks. */
typedef struct {
	const Topology *topo;
	int n_hops;
	struct hop *hop;
	bool switched;
	/* Routes, only if switched. Those of each kind that the topology has (Topology.route) are a layer of their own;
	 * else there is one of routes over any link. */
	int n_layers, layer_of[N_ROUTE_KINDS];	/* -1: none */
	unsigned layer_classes[N_ROUTE_KINDS];
	int *hub;		/* of each switch: itself, or the next vertex that is a rank or has several links out */
	int n_rows, *row_of;	/* of each hub behind a link of a rank: its row in what follows; of others -1 */
	int64_t *distance;	/* n_layers * n_rows * n_vertices: cost of the cheapest route to each vertex */
	int *last;		/* likewise: last link of that route, -1: none */
	int64_t *price;		/* n_links: of links, if they are the hops */
	int *room;		/* Paths.room */
	int64_t *row;		/* n_ranks * n_ranks: entering hops of each rank, or of the ranks contracted with it */
	/* Work space of the tree searches (laminar.h): */
	struct heap_hop *heap_hop;	/* n_hops */
	struct component *component;	/* n_ranks */
	struct tree_edge *tree_edge;	/* n_ranks */
	struct laminar_set *set;	/* 2 * n_ranks */
	int *triple;		/* 3 * n_ranks */
	int *set_of, *part, *queue;	/* n_ranks */
	int64_t *cost;		/* 2 * n_ranks */
} Search;

Status search_new(Ctx *ctx, const Topology *topo, Search *out);	/* in the scratch arena */

/* For searches that look at few hops: with switches, a hop has neither ends nor cost before search_price_hop, or
 * search_price_rank for all that leave a rank. These are as search_price has them after search_price_hubs with the
 * same prices. Only search_hop_at, search_hop_between and search_route may be used with it. Without switches, as
 * search_new: then search_price_hubs is search_price, and the other two do nothing. */
Status search_new_lazy(Ctx *ctx, const Topology *topo, Search *out);
void search_price_hubs(Search *search, const int64_t *price);
void search_price_rank(Search *search, int src, const int64_t *price);
void search_price_hop(Search *search, int src, int dst, const int64_t *price);

/* routes.c: hubs and rows, of a search that has its topology. */
Status search_hubs(Ctx *ctx, Search *search);

/* New prices: price[l] >= 0, one per link. */
void search_price(Search *search, const int64_t *price);

/* Links of hop h in order; at most LIMIT_ROUTE_LINKS. Returns their number, -1 if more. */
int search_route(const Search *search, int hop, int link[LIMIT_ROUTE_LINKS]);

/* The i-th hop that leaves (enters) a rank, in order of the other end if there are switches; -1: no more. */
int search_hop_at(const Search *search, int rank, int i, bool entering);

/* With switches, the hop from src to dst, whether or not there is a route. */
int search_hop_between(const Search *search, int src, int dst);

/* Cheapest hop from src to dst, -1: none. Without switches a pair may have none or several. */
int search_cheapest_hop(const Search *search, int src, int dst);

/* Shortest paths of hops from (into: to) a rank: distance of each rank, -1: none, and the hop that enters (leaves) it,
 * -1. Dijkstra. */
void search_shortest_paths(Search *search, int end, bool into, int64_t *distance, int *hop);

/* The same over links, through switches and other ranks: as far as hops lead where no pair has a route of its own
 * (Topology.route), in O(m log n) instead of O(n^2) and all hops. distance, link: of each vertex; the link that enters
 * it. price: one per link, >= 0. Needs no other prices; search_links_new: a search that has only this work space. */
Status search_links_new(Ctx *ctx, const Topology *topo, Search *out);
void search_link_paths(Search *search, const int64_t *price, int source, int64_t *distance, int *link);

/* Cheapest arborescence out of (into) root: hop[v] is the hop that enters (leaves) rank v, -1 at the root. Returns
 * its cost, or -1 where a rank has none. Chu and Liu 1965, Edmonds 1967; Tarjan's mergeable heaps, O(m log n). Of those
 * with the same cost it takes a shallow one. */
int64_t search_arborescence(Search *search, int root, bool into, int *hop);

/* The cost alone, and no tree. search_rows_new: a search that has only this work space; row[v * n_ranks + u] is the
 * cost of the hop from u to v, -1: none, which the caller fills in and search_rows_cost uses up, for an arborescence
 * out of the root. With the matrix transposed it is one into the root. search_links_cost: where hops are links. */
Status search_rows_new(Ctx *ctx, const Topology *topo, Search *out);
int64_t search_rows_cost(Search *search, int root);
int64_t search_links_cost(Search *search, int root, bool into);

/* Cheapest spanning tree where an edge costs the sum of its hops in both directions: there[i], back[i] for its
 * n_ranks - 1 edges. Returns its cost, or -1. Prim; of those with the same cost a shallow one. */
int64_t search_spanning_tree(Search *search, int *there, int *back);

/* A cheap arborescence of at most `limit` hops from (to) the root, as search_arborescence has it. back: NULL, or an
 * edge costs the sum of its hops in both directions, and back[v] is the hop opposite to hop[v]. Prim's and
 * breadth-first trees, the cheaper: no optimum is claimed. Returns the cost; -1: none was found. */
int64_t search_depth_limited(Search *search, int root, bool into, int limit, int *hop, int *back);

/* Cheapest path of at most `limit` hops: hop[v] enters v, for v on the path. layer: work space of (limit + 1) *
 * n_ranks. Returns its cost, or -1. Bellman and Ford. */
int64_t search_depth_limited_path(Search *search, int from, int to, int limit, int64_t *layer, int *hop);

/* An arborescence of the fewest hops out of (into) root, whatever they cost: hop[v] as search_arborescence has it.
 * Breadth first, in time that grows with the number of hops. False: a rank has none. */
bool search_quick_tree(Search *search, int root, bool into, int *hop);

/* Hops of each rank from `root` (into: to it), -1: no path. Returns the most, or -1 where any has none. hop: NULL, or
 * the first hop that enters (leaves) each on such a path, -1. */
int search_depths(Search *search, int root, bool into, int *depth, int *hop);

#endif
