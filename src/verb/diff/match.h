/* Trees of two schedules, matched: match.c finds the pairs, trees.c compares them. */
#ifndef BLINK_DIFF_MATCH_H
#define BLINK_DIFF_MATCH_H

#include "verb/diff/diff.h"

struct side {
	const Schedule *sched;
	const int *number;	/* common number of each link */
	uint64_t *edges_hash;	/* of each tree: of its edges and root */
	int *mate;		/* of each tree: its match in the other schedule; -1: none yet */
	int *n_to;		/* of each tree: ranks in `to`; 0 if these are all that need the block */
};

struct match {
	Ctx *ctx;
	struct side old, new;
	const Edge **edge_of;	/* work space: n_ranks, the old edge into or out of each rank */
	Differences *list;
};

/* Find mates. m: sched and number of both sides are set. Memory: scratch arena, which the caller releases. Fails:
 * NO_MEMORY. */
Status match_trees(struct match *m);

/* Equal ends, over equal links. */
bool match_equal_edge(const struct match *m, const Edge *was, const Edge *is);

/* Have old tree o and new tree n equal roots and edges, in any order? Do they serve equal ranks? */
bool match_same_tree(struct match *m, int o, int n);
bool match_same_ranks(const struct match *m, int o, int n);

/* The edges of a phase of a tree, and how many; the rank that an edge of the phase belongs to, since it has no
 * other. */
int match_phase(const Tree *tree, bool up, const Edge **edge);
int match_rank(const Edge *edge, bool up);

/* edge_of[rank] = the edge of that rank, or NULL. */
void match_by_rank(struct match *m, const Edge *edge, int n, bool up);

#endif
