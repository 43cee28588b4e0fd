/* Trees of each rank, one after the other: those of an alltoall, which are lists of links (in_trees.h), and those of an
 * allgather or reducescatter, which are lists of edges: of numbers in a table that all trees share, in place of links,
 * since many trees use the same edges. Of 4095 ranks a list of all trees would have 16.8 million edges; here these are
 * numbers of some 5 digits.
 *
 * The schedule that trees of edges stand for: for each root, each of its trees by offset, as a segment of the block of
 * the root. Edges down (allgather) are parent-first: for each rank in order, those on the way from the root to it
 * that are not there yet. Edges up (reducescatter) are in the opposite order of that.
 *
 *   of rank 0, an allgather over a ring 0-1-2-3: 0>1 3>2 0>3 for a half, then 1>2 in place of 3>2 for the other
 *   down: 0>1 0>3 3>2, then 0>1 1>2 0>3 */
#ifndef BLINK_SCHEDULE_ROOT_TREES_H
#define BLINK_SCHEDULE_ROOT_TREES_H

#include "schedule/schedule.h"

/* Tree after tree. */
typedef struct {
	const Schedule *sched;
	int t;			/* number of the current tree; -1: before the first */
	int *only;		/* of each vertex: the link that leaves it, where no other does; -1 */
	int *next;		/* of each vertex: the number of its link or edge in this tree; -1: none */
	int n, *order;		/* vertices of the tree, each behind the one that is next to it on the way to the
				 * root; the root first */
	int *state, *stack;
} InTreeWalk;

/* The vertex that a tree has link or edge number i for; the next one on the way to the root. */
static inline int
in_tree_vertex(const Schedule *sched, int i)
{
	if (!sched->n_edges)
		return sched->topo->link[i].from;
	return sched->coll == ALLGATHER ? sched->edge[i].dst : sched->edge[i].src;
}

static inline int
in_tree_nearer(const Schedule *sched, int i)
{
	if (!sched->n_edges)
		return sched->topo->link[i].to;
	return sched->coll == ALLGATHER ? sched->edge[i].src : sched->edge[i].dst;
}

/* In the scratch arena, before the first tree. */
Status in_tree_walk(Ctx *ctx, const Schedule *sched, InTreeWalk *out);

/* The next tree, with its order; false: there is none. sched: passes sched_check. */
bool in_tree_next(InTreeWalk *w);

/* The two steps of that: links or edges of tree t, which follows the current one, whose numbers and vertices are in
 * range; their order. in_tree_place: -1, or a rank from where they do not lead to the root. */
void in_tree_take(InTreeWalk *w, int t);
int in_tree_place(InTreeWalk *w);

/* What sched_check asks of the numbers of tree t, and that its edges join all ranks: once it is placed, with what
 * in_tree_place returned. Fails: BAD_INPUT; UNVERIFIED. */
Status root_tree_check(Ctx *ctx, const char *label, const Schedule *sched, int t);
Status root_tree_check_joined(Ctx *ctx, const char *label, const Schedule *sched, int t, int stuck);

/* Each tree of edges, in its order, as a segment whose edges are forgotten when `visit` returns; their links stay.
 * Fails: as `visit`; LIMIT a segment needs more than 64 bits. */
Status root_trees_each(Ctx *ctx, const Schedule *sched, Status (*visit)(void *with, const Segment *tree), void *with);

#endif
