/* What trees need of links, and what of that goes together. */
#ifndef BLINK_GRAPH_SUPPLY_H
#define BLINK_GRAPH_SUPPLY_H

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

#endif
