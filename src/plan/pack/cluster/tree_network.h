/* The ways of a cluster whose servers a tree of switches joins, as leaf switches and a spine. */
#ifndef BLINK_PLAN_PACK_CLUSTER_TREE_NETWORK_H
#define BLINK_PLAN_PACK_CLUSTER_TREE_NETWORK_H

#include "model/model.h"

/* What a tree enters once, below some switch: what is below one of its children, or the GPUs of one server. */
typedef struct {
	int child;		/* -1: of the server */
	int server;
} Group;

/* Without the switches inside of servers, and CPUs, vertices have one way to each other, or none: over arcs, which are
 * a link, or several where one way alone leads through what is between, as a NIC. A rank is its own way up; further
 * ones, by CPUs to a NIC that no rank has for itself, as that of a lost GPU, have numbers from topo->n_vertices on, and
 * stand beside ranks in all that follows. */
typedef struct {
	const Topology *topo;
	int n_ways;		/* vertices and further ways of ranks */
	int *rank_of;		/* of a way: its rank; of a vertex: itself */
	int *more;		/* of a rank or way: the next way of the same rank; -1 */
	int n_servers, *server;	/* of each way: its server, which is its rank where no switch of a server has that */
	int *first, *member;	/* ways of server s: member[first[s]] to member[first[s + 1] - 1] */
	int *end;		/* of each server: that of its ranks, which come first */
	int *to_switch, *from_switch;	/* of each rank: links to the switch of its server, and from there; -1 */
	int *same, *side;	/* of each vertex: itself, or the one that it is a side of; its own other side, -1 */
	int *link;		/* of each step of an arc: its link; of steps below topo->n_links: themselves */
	int *next;		/* of each step: that of the same arc behind it; -1: the arc ends there */
	int *above, *level;	/* of each vertex: the next one on the way up, -1: none; how many there are */
	int *rise, *fall;	/* of each vertex: arcs of that way, up and down, by their first steps */
	int n_tops, *top;	/* vertices without one above that have several servers below */
	int *at, *n_below, *way;	/* ways below vertex v: way[at[v]] to way[at[v] + n_below[v] - 1] */
	int *place;		/* of each way in these */
	Group *group;		/* at vertex v: group[first_group[v]] to group[first_group[v + 1] - 1] */
	int *first_group;
} TreeNetwork;

/* into: data pass links the other way. *is_one: the machine is such a one; else nothing is in *out.
 * In the scratch arena. Cost: links times links of a vertex. */
Status tree_network(Ctx *ctx, const Topology *topo, bool into, TreeNetwork *out, bool *is_one);

#endif
