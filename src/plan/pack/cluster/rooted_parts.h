/* Trees of a root over a cluster, as hops between servers: for rooted.c, which has the idea, and its parts. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ROOTED_PARTS_H
#define BLINK_PLAN_PACK_CLUSTER_ROOTED_PARTS_H

#include "base/limits.h"
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
	bool *alone;		/* of each server: no other is on its leaf, over which it may enter itself again */
	int64_t *leaf_capacity;	/* [plane * leaves + leaf], bytes/s: of its links to others, or from these */
	bool overload;		/* trees may have more hops over these than fit */
	int n_trees;
	/* 1: switches may be overloaded, as trees enter each server once; 2: uplinks, too. */
	int loose;
	int64_t work;		/* looks at pairs of servers that are left */
	int turn;		/* at which server those begin that send */
	int *slots, *need;	/* of each uplink: trees that it has room for each way; that have to enter there */
	int64_t *room;		/* of each rank: hops that it may send over its switch */
	int *n_entries, *n_sends;	/* of each server, in all trees: hops that enter it; that it has room for */
	int *entries, *sends;	/* [tree * servers + server]: likewise, in this tree */
	int *ins, *outs;	/* [tree * leaves + leaf]: hops from other leaves; to these */
	int n_direct;
	bool *direct;		/* of each tree: it leaves the root over its uplinks alone */
	int n_hops;
	struct hop *hop;	/* by tree */
	unsigned char *part;	/* [rank * n_trees + tree] */
};

/* How many trees of rate bound / n_trees fit that capacity, bytes/s. */
static inline int64_t
rooted_fitting(const struct rooted *p, int64_t capacity)
{
	Wide most = (Wide)capacity * p->n_trees / p->bound.num;
	return most > LIMIT_TREES ? LIMIT_TREES
	    : (int64_t)((Wide)capacity * p->n_trees * p->bound.den / p->bound.num);
}

static inline int *
rooted_at(const struct rooted *p, int *table, int tree, int server)
{
	return &table[(size_t)tree * (size_t)p->c.n_servers + (size_t)server];
}

/* ins or outs */
static inline int *
rooted_of_leaf(const struct rooted *p, int *table, int tree, int leaf)
{
	return &table[(size_t)tree * (size_t)p->n_leaves + (size_t)leaf];
}

static inline unsigned char *
rooted_part(const struct rooted *p, int rank, int tree)
{
	return &p->part[(size_t)rank * (size_t)p->n_trees + (size_t)tree];
}

/* p->leaf, and p->plane as cluster_find_planes has it. apart: false: all are on one leaf; true: joined rails are planes
 * of their own. */
Status rooted_find_leaves(struct rooted *p, bool apart);

/* p->ins and p->outs. order: of all servers but the root's. guess: p->entries are not known yet. *good: false: leaves
 * have no room for them. */
Status rooted_cross_leaves(struct rooted *p, const int *order, bool guess, bool *good);

/* Hops that the root's server sends in this tree, unless fewer are left: the same number in all but direct ones, and
 * all to the only other server. */
int rooted_root_sends(const struct rooted *p, int tree);

/* Hops of p->n_trees trees, all of which have room. *good: false: there are none. */
Status rooted_list_hops(struct rooted *p, bool *good);

/* Uplinks of all hops, and p->part. *good: false: none were found with room, with p->work looks. */
Status rooted_choose_uplinks(struct rooted *p, bool *good);

/* The trees of all hops. */
Status rooted_make_trees(struct rooted *p, Packing *pack);

#endif
