/* Hops of trees of a root by planes: for rooted_uplinks.c, which has the idea, and rooted_flow.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ROOTED_FLOW_H
#define BLINK_PLAN_PACK_CLUSTER_ROOTED_FLOW_H

#include "plan/pack/cluster/rooted_parts.h"

/* Where leaf switches limit trees, those between leaves come first on each plane, then those inside. */
typedef enum { ALL_HOPS, BETWEEN_LEAVES, INSIDE_LEAVES } HopKind;

/* A tree enters a server; by the ranks of a plane, as often as there are. */
struct entry {
	int to;
	int left;		/* hops without a plane */
	int degree, least, most;	/* hops on this plane */
};

/* All hops of a tree from one server to another. */
struct pair {
	int from, entry, first, n;	/* in `hop` */
	int left, used;			/* that have no plane yet; of these, on this one */
};

struct uplinks {
	struct rooted *p;
	int n_pairs, n_entries;
	struct pair *pair;
	struct entry *entry;		/* by server */
	int *hop;			/* by pair */
	int *entry_of;			/* [tree * servers + server] */
	int *first_pair[2], *list;	/* pairs of a server that sends; of an entry, in `list` */
	int *first_entry;		/* of a server */
	/* [plane * servers + server], of side 0, that sends, and 1, that is entered: free slots; entries that ranks
	 * need; ranks that may be entered */
	int *slots[2], *need, *ranks;
	int *left[2];			/* hops without a plane */
	int *degree[2], *least[2], *most[2];	/* hops on this plane */
	/* Of leaves [plane * leaves + leaf], of hops to others, side 0, and from these: room of their links; of each:
	 * likewise. */
	int *leaf_room[2];
	int *leaf_left[2], *leaf_degree[2], *leaf_least[2], *leaf_most[2];
	int *free[2], *needed;		/* of each uplink: slots to send and to be entered; entries needed there */
	bool *done, last;		/* of each plane; this is the last one */
	int *queue, *from, *by;		/* of nodes; the pair that leads there */
	int n_taken, *taken;		/* hops on this plane */
	int *taken_of[2];		/* of a server: those between leaves */
	struct hop **listed[3];		/* scratch: hops of a server on a plane */
};

/* table: of planes and servers. */
static inline int *
uplinks_at(const struct uplinks *q, int *table, int plane, int server)
{
	return &table[(size_t)plane * (size_t)q->p->c.n_servers + (size_t)server];
}

static inline int *
uplinks_leaf_room(const struct uplinks *q, int side, int plane, int leaf)
{
	return &q->leaf_room[side][(size_t)plane * (size_t)q->p->n_leaves + (size_t)leaf];
}

/* Hops of this kind that are left, and bounds of leaves, servers and entries on this plane. False: some have more left
 * than all planes have room for. */
bool uplinks_set_bounds(struct uplinks *q, int plane, HopKind kind);

/* Of each pair, as many hops as there are in bounds. False: some have less than they need on this plane. */
bool uplinks_find_flow(struct uplinks *q);

/* One hop less of this pair, and no more. */
bool uplinks_leave_out(struct uplinks *q, struct pair *pair);

#endif
