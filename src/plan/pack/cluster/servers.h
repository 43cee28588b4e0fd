/* What planners of clusters see of one: servers, each with a switch that all of its GPUs are on, and their uplinks to
 * the networks that join the servers. */
#ifndef BLINK_PLAN_PACK_CLUSTER_SERVERS_H
#define BLINK_PLAN_PACK_CLUSTER_SERVERS_H

#include "model/model.h"

typedef enum { UPLINK_OUT, UPLINK_IN } Side;

/* From a rank to a network, or back: links in the order of the data. The uplinks of a server together fit its links. */
struct uplink {
	int rank, network;
	int end;		/* in Cluster.network: the switch of that network that it leads to, or comes from */
	int64_t capacity;	/* in units */
	int n, *link;
};

struct cluster_server {
	int first, n;		/* in Cluster.rank */
	int type;		/* servers of one type have equal uplinks */
	int first_uplink[2], n_uplinks[2];
	int64_t capacity[2];	/* of its uplinks, in units */
};

typedef struct {
	Ctx *ctx;
	const Topology *topo;
	int n_servers, n_types, n_networks;
	struct cluster_server *server;
	int *rank;		/* by server */
	int *of;		/* server of a rank */
	int *home;		/* server of a vertex; -1: none */
	bool has_single;		/* some leaf switch of one server has less on than this */
	int *up, *down;		/* links of a rank to the switch of its server, and from it; -1: it is alone */
	int n_ends, *network;	/* vertices: switches of no server that servers are joined to; each is a network, until
				 * cluster_merge_networks */
	int *network_of;	/* of a vertex: its number in these; -1: it is none */
	int n_uplinks[2], room[2];
	struct uplink *uplink[2];	/* by server */
	int64_t unit;		/* bytes/s: all capacities of uplinks are multiples */
	/* Between switches a and b of networks [a * n_ends + b], over those of no server: links in order; n -1:
	 * none. */
	struct uplink *between;
} Cluster;

/* In the scratch arena. *good: several servers, each with GPUs and a switch of its own that all of these are on,
 * and with an uplink to some network in both directions. Cost: a few small flows for each server. */
Status cluster_read(Ctx *ctx, const Topology *topo, Cluster *out, bool *good);

/* Likewise, but a leaf switch of one server that has less on than this is a network, too: uplinks lead there. */
Status cluster_read_leaves(Ctx *ctx, const Topology *topo, Cluster *out, bool *good);

/* The types of servers, by the networks that their uplinks have now. */
Status cluster_find_types(Cluster *c);

/* Uplinks again, each of a whole number of slots of this rate, bytes/s, and of links likewise, so that ranks share a
 * NIC by slots. Types stay as they were. *good: each server has some in both directions. */
Status cluster_round_uplinks(Cluster *c, Frac slot, bool *good);

/* Networks become one where the links between them have room for all that uplinks bring, as leaf switches below a spine
 * that is as wide. */
Status cluster_merge_networks(Cluster *c);

/* *room: at the most, of all links that lead on from networks to others, in units. *hops: at the least, of a tree of
 * one hop from a server to each other one, that pass these. */
Status cluster_room_between(const Cluster *c, double *room, int *hops);

/* From one switch of a network to another, by their numbers in Cluster.network. */
static inline const struct uplink *
cluster_between_ends(const Cluster *c, int from, int to)
{
	return &c->between[(size_t)from * (size_t)c->n_ends + (size_t)to];
}

/* From one uplink's switch to the other's. */
static inline const struct uplink *
cluster_between(const Cluster *c, const struct uplink *from, const struct uplink *to)
{
	return cluster_between_ends(c, from->end, to->end);
}

/* Over the switch of their server. */
Status cluster_near_edge(const Cluster *c, int src, int dst, Edge *out);

/* Over uplinks of two servers, by their numbers in uplink[UPLINK_OUT] and uplink[UPLINK_IN]. */
Status cluster_far_edge(const Cluster *c, int out_uplink, int in_uplink, Edge *out);

/* Are uplink[UPLINK_OUT] and uplink[UPLINK_IN] the same, of a rank, to a network, with a capacity? An allreduce uses
 * each in both directions, for the same data. */
bool cluster_sides_agree(const Cluster *c);

/* Uplinks of a server that share a link to a network have equal parts of it, those that take fewest links, and others
 * none: where other links have room for that. Types of servers are as before. */
Status cluster_near_uplinks(Cluster *c);

/* Have two uplinks, by their numbers in uplink[UPLINK_OUT], the same link to a network? */
bool cluster_share_link(const Cluster *c, int a, int b);

/* plane: of each switch in Cluster.network; those that are joined are one. False: some lead to others that do not lead
 * back, or not to all that these lead to. */
bool cluster_find_planes(const Cluster *c, int *plane, int *n_planes);

#endif
