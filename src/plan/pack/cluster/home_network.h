/* Homes of ranks in a network of switches: the GPUs at one switch, or one GPU; and the routes from home to home. */
#ifndef BLINK_PLAN_PACK_CLUSTER_HOME_NETWORK_H
#define BLINK_PLAN_PACK_CLUSTER_HOME_NETWORK_H

#include "model/model.h"

/* Into a home, through switches. */
typedef struct {
	int from;		/* home */
	int n_links, first;	/* links[first] and so on, in the order of the tree: away from its root */
} HomeRoute;

typedef struct {
	const Topology *topo;
	bool into;		/* data pass links the other way */
	int n_homes;
	int *vertex;		/* of each home: the switch, or the rank */
	int *of;		/* of each rank: its home */
	int *first, *member;	/* ranks of home h: member[first[h]] to member[first[h + 1] - 1] */
	int *out, *in;		/* of each rank: its links to the switch that is its home, and back; -1: it is one */
	int n_routes, *first_route;	/* into home h: route[first_route[h]] to route[first_route[h + 1] - 1] */
	HomeRoute *route;	/* of those of one home from another such as have the fewest links */
	int *links;
} HomeNetwork;

/* A rank whose links lead to one switch alone, one there and one back, is at home there, together with all such ranks;
 * any other is a home itself. *is_one: there are several homes, each rank can be reached, and routes times n_trees are
 * within a limit; else nothing is in *out. In the scratch arena. Cost: links of the routes. */
Status home_network(Ctx *ctx, const Topology *topo, bool into, int n_trees, HomeNetwork *out, bool *is_one);

static inline int
home_tail(const HomeNetwork *net, int l)
{
	return net->into ? net->topo->link[l].to : net->topo->link[l].from;
}

static inline int
home_head(const HomeNetwork *net, int l)
{
	return net->into ? net->topo->link[l].from : net->topo->link[l].to;
}

#endif
