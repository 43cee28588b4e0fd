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
 * a link, or several where one way alone leads through what is between, as a NIC. */
typedef struct {
	const Topology *topo;
	int n_servers, *server;	/* of each rank: its server, which is itself where no switch of a server has it */
	int *first, *member;	/* ranks of server s: member[first[s]] to member[first[s + 1] - 1] */
	int *to_switch, *from_switch;	/* of each rank: links to the switch of its server, and from there; -1 */
	int *same, *side;	/* of each vertex: itself, or the one that it is a side of; its own other side, -1 */
	int *next;		/* of each link: that of the same arc behind it; -1: the arc ends there */
	int *above, *level;	/* of each vertex: the next one on the way up, -1: none; how many there are */
	int *rise, *fall;	/* of each vertex: arcs of that way, up and down, by their first links */
	int n_tops, *top;	/* vertices without one above that have several servers below */
	int *at, *n_below, *rank;	/* ranks below vertex v: rank[at[v]] to rank[at[v] + n_below[v] - 1] */
	int *place;		/* of each rank in these */
	Group *group;		/* at vertex v: group[first_group[v]] to group[first_group[v + 1] - 1] */
	int *first_group;
} TreeNetwork;

/* into: data pass links the other way. *is_one: the machine is such a one; else nothing is in *out.
 * In the scratch arena. Cost: links times links of a vertex. */
Status tree_network(Ctx *ctx, const Topology *topo, bool into, TreeNetwork *out, bool *is_one);

#endif
