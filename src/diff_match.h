/* Trees of two schedules, matched. Only diff_match.c and diff_trees.c see this. */
#ifndef BLINK_DIFF_MATCH_H
#define BLINK_DIFF_MATCH_H

#include "diff.h"

struct side {
	const Schedule *sched;
	const int *number;	/* common number of each link */
	uint64_t *body;		/* hash of each tree's edges and root */
	int *mate;		/* of each tree in the other side; -1: none yet */
	int *n_to;		/* of each tree; 0 also where `to` names all that the collective serves */
};

struct match {
	Ctx *ctx;
	struct side old, new;
	const Edge **at;	/* work: n_ranks, the old edge into or out of a rank */
	Differences *list;
};

/* Find mates. m: sched and number of both sides are set. Work is in the scratch arena, and stays. Fails: NO_MEMORY. */
Status match_trees(struct match *m);

/* From rank to rank over the same links. */
bool match_same_edge(const struct match *m, const Edge *was, const Edge *is);

/* Old tree o and new tree n: the same root and edges, in whatever order; the same ranks that they serve. */
bool match_same_body(struct match *m, int o, int n);
bool match_same_ranks(const struct match *m, int o, int n);

/* The edges of a phase of a tree, and the rank that has no other edge of the phase. */
int match_phase(const Tree *tree, bool up, const Edge **edge);
int match_key(const Edge *edge, bool up);

/* at[rank] = the edge of that rank; NULL for others. */
void match_spread(struct match *m, const Edge *edge, int n, bool up);

#endif
