/* Trees of a cluster that use several networks each: for few_trees.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_RAILS_H
#define BLINK_PLAN_PACK_CLUSTER_RAILS_H

#include "plan/pack/cluster/servers.h"

struct rail_trees {
	Ctx *ctx;
	const Cluster *c;
	int n_planes;
	const int *plane;	/* of each network: those that are joined are one */
	int n_trees;
	const int *places;	/* [tree * n_servers + server]: ends of edges, 1 at least; of a tree 2 n_servers - 2 */
	int64_t *room;		/* of each uplink: places; those that are taken are subtracted, where *good */
	/* Of [tree * n_servers + server]: the server that it hangs on, -1: the root; and the uplinks of that edge, at
	 * that server and at this one, of the root one of those by which it leads to others. */
	int *parent, *from, *uplink;
	int64_t work;		/* added to: places that were tried */
};

/* Edges of all trees that leave and enter servers by uplinks of one plane each, with no more at an uplink than it has
 * places. *good: false: none were found. In the scratch arena. Fails: NO_MEMORY. Cost: a few looks at each place, as a
 * rule; at most LOOKS for each. */
Status cluster_over_rails(struct rail_trees *r, bool *good);

#endif
