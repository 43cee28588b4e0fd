/* Trees of a root over a cluster, as hops between servers: for rooted.c, which has the idea, and its parts. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ROOTED_HOPS_H
#define BLINK_PLAN_PACK_CLUSTER_ROOTED_HOPS_H

#include "plan/pack/cluster/servers.h"

/* A tree leaves a server, and enters another, at the ranks of these uplinks; -1: not known yet. */
struct hop {
	int tree, from, to, out, in;
	bool first;		/* it is the first to enter `to`, which sends in this tree */
	/* `to` sends in this tree, or is the root's server: the rank that sends there has the data from the first
	 * entry of its own server, so that no rank has them from itself. */
	bool early;
};

/* What a rank is in a tree. */
enum { FIRST_ENTRY = 1, ENTRY = 2, EARLY_SOURCE = 4 };

struct rooted {
	Ctx *ctx;
	const Topology *topo;
	Frac bound;
	Collective coll;
	int root, home;		/* its server */
	bool into;		/* towards the root */
	Cluster c;
	int n_planes, *plane;	/* of networks: those that are joined are one */
	int n_leaves, *leaf;	/* of each server: its network, of those that are joined, as leaf switches */
	int64_t *of_leaf;	/* of each: hops that its servers have room for, but that of the root */
	int *out_of_leaf;	/* of each: hops from its servers to those of others */
	int n_trees;
	/* 1: switches may be overloaded, as trees enter each server once; 2: uplinks, too. */
	int loose;
	int64_t work;		/* looks at pairs of servers that are left */
	int turn;		/* at which server those begin that send */
	int *slots, *need;	/* of each uplink: trees that it has room for each way; that have to enter there */
	int64_t *room;		/* of each rank: hops that it may send over its switch */
	int *n_entries, *n_sends;	/* of each server, in all trees: hops that enter it; that it has room for */
	int *entries, *sends;	/* [tree * servers + server]: likewise, in this tree */
	bool *direct;		/* of each tree: it leaves the root over its uplinks alone */
	int n_hops;
	struct hop *hop;	/* by tree */
	unsigned char *part;	/* [rank * n_trees + tree] */
};

static inline int *
rooted_at(const struct rooted *p, int *table, int tree, int server)
{
	return &table[(size_t)tree * (size_t)p->c.n_servers + (size_t)server];
}

static inline unsigned char *
rooted_part(const struct rooted *p, int rank, int tree)
{
	return &p->part[(size_t)rank * (size_t)p->n_trees + (size_t)tree];
}

/* How many trees of rate bound / n_trees fit that capacity, bytes/s. */
int64_t rooted_fitting(const struct rooted *p, int64_t capacity);

/* p->leaf, and p->plane as cluster_find_planes has it. apart: false: all are on one leaf; true: joined rails are planes
 * of their own. */
Status rooted_find_leaves(struct rooted *p, bool apart);

/* Hops of p->n_trees trees, all of which have room. *good: false: there are none. */
Status rooted_list_hops(struct rooted *p, bool *good);

/* Uplinks of all hops, and p->part. *good: false: none were found with room, with p->work looks. */
Status rooted_choose_uplinks(struct rooted *p, bool *good);

/* The trees of all hops. */
Status rooted_make_trees(struct rooted *p, Packing *pack);

#endif
