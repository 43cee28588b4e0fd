/* The trees of an allreduce in which each rank chooses its parent (parents.c), and how they begin. */
#ifndef BLINK_PLAN_PACK_FLOW_PARENTS_GROW_H
#define BLINK_PLAN_PACK_FLOW_PARENTS_GROW_H

#include "model/model.h"

struct parents {
	Ctx *ctx;
	const Topology *topo;
	const int *opposite;		/* of each link */
	int n, n_edges, n_trees, most;	/* ranks; links without the opposite ones; trees; the highest level */
	int64_t *weight;		/* of each tree, none above the one before */
	int *far;			/* of each rank: hops to the farthest, over direct links */
	int *root, *link;		/* of each tree; of each edge its link in one direction */
	int *first_edge, *edge;		/* edges at vertex v: from first_edge[v] to first_edge[v + 1] - 1 */
	int *first, *other, n_hops;	/* hops from rank v: from first[v]; where they lead; how many of all ranks */
	int (*over)[2];			/* of each hop: its edges, the nearer one first; -1: it has one */
	int64_t *room;			/* of each edge: units; below 0: it has too many */
	int64_t excess, least;		/* what edges have too much: now, and when it last fell by a quarter */
	int64_t most_spare, spare;	/* weight of trees that may be left out, where pushes find no room: all, now */
	int *label;			/* of each edge */
	/* Of each place, which is tree * n + rank: the hop to the parent, -1: the root; its level; how many have it as
	 * their parent. */
	int *up;
	short *level, *children;
	int *next, *prev;		/* of each edge of a place's hop: neighbours in that edge's list, -1: none */
	int *head;			/* of each edge: the list of 2 * place, or 2 * place + 1 of the farther edge */
	int *queue;			/* work space: edges or ranks */
	int *active, n_active, at;	/* edges that have too many: a ring, and its first */
	bool *waits;			/* of each edge: it is among these */
	int64_t looks, at_least, most_looks;	/* at hops: all; when the excess was `least` */
};

/* The vertex at the other end of an edge. */
static inline int
parents_across(const struct parents *p, int v, int e)
{
	const Link *link = &p->topo->link[p->link[e]];
	return link->from == v ? link->to : link->from;
}

static inline void
parents_add_room(struct parents *p, int e, int64_t units)
{
	int64_t had = p->room[e];
	p->room[e] += units;
	p->excess += (had < 0 ? had : 0) - (p->room[e] < 0 ? p->room[e] : 0);
}

/* A place without a hop gets hop h of its rank. */
void parents_put(struct parents *p, int place, int h);

/* Hops from a rank to each, where each reaches that many through a switch; p->queue has them in that order. Returns the
 * most, -1: some rank is not reached. */
int parents_hops(struct parents *p, int root, int fan_out, short *hops);

/* The trees of all roots, each rank by the hop with most room of those to one of fewer hops from the root. fan_out: as
 * parents_hops has it. Returns the depth of the deepest. */
int parents_grow(struct parents *p, int fan_out);

#endif
