/* Machines with switches as arcs between ranks alone. */
#ifndef BLINK_GRAPH_SPLIT_OFF_H
#define BLINK_GRAPH_SPLIT_OFF_H

#include "model/model.h"

/* Units that go from one vertex to another, over a route of links through switches. */
typedef struct {
	int from, to;
	int64_t units;
	int n_links;
	const int *link;	/* in the order of the arc */
} Arc;

/* Trees that have to fit: from each rank owed[r] units to all ranks, `total` together. into: the other way, so that
 * arcs lead along links backwards. opposite: of each link, where trees lead up as they lead down; else NULL. capacity:
 * units of each link. */
typedef struct {
	const Topology *topo;
	bool into;
	const int *opposite;
	const int64_t *capacity, *owed;
	int64_t total;
} Supply;

/* The vertex where a link begins for the trees, and where it ends. */
static inline int
supply_tail(const Supply *supply, int l)
{
	return supply->into ? supply->topo->link[l].to : supply->topo->link[l].from;
}

static inline int
supply_head(const Supply *supply, int l)
{
	return supply->into ? supply->topo->link[l].from : supply->topo->link[l].to;
}

/* The collective of trees from this root. */
static inline Collective
supply_collective(const Supply *supply)
{
	return supply->opposite ? ALLREDUCE : supply->into ? REDUCE : BROADCAST;
}

/* A hop of a tree: a rank, the switches between, a rank; and the links. */
typedef struct {
	int64_t units;
	int n, *vertex;
	int n_links;
	const int *link;
} Hop;

/* An edge of a tree over these links, which are in the order of the arc or hop; up: over the opposite links. Its own
 * links are in the order of the data. */
Status supply_edge(Ctx *ctx, const Supply *supply, int from, int to, int n_links, const int *link, bool up, Edge *out);

/* Every vertex that is no rank is split off: pairs of an arc into it and one out of it become one arc, so that the
 * trees still fit; wanted ones first. Neither multicast nor reduction by switches is used.
 * want: hops whose switches are split so, where that is safe; used up.
 * *out: arcs between ranks, in the scratch arena; NULL where no such arcs were found, as where capacities into and out
 * of a switch differ too much, or where time is over.
 * From: Frank 1988, Mader 1982 and Bang-Jensen, Frank, Jackson 1995 (there are such pairs); Zhao et al., ForestColl (by
 * maximum flows). Cost: a maximum flow for each rank and pair; but these are short (split_off.c). */
Status split_off(Ctx *ctx, const Supply *supply, Hop *want, int n_want, Arc **out, int *n);

#endif
