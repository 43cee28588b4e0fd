/* Built-in schedules in the making. */
#ifndef BLINK_CHOOSE_BUILT_IN_TREES_H
#define BLINK_CHOOSE_BUILT_IN_TREES_H

#include "choose/choose.h"

struct tree {
	int first;			/* the server at the top of its heap */
	int which;			/* of the leaders that a server can have */
	int root;			/* of the collective or block, at the top; -1: none, any leader is */
	int top;
};

/* n counts, added up over ranges: sum[i] is that of the counts from i without its lowest bit to i - 1. */
struct sums {
	int n, *sum;			/* sum[1] to sum[n] */
};

struct maker {
	Ctx *ctx;
	const struct job *job;
	RankProgram *prog;
	int n, n_servers, me;
	int near, far;			/* arities */
	bool root_leads;		/* its server; else another rank does, below it */
	bool up, down;			/* which ways trees go */
	int *member, *first;		/* ranks of server q, ascending: member[first[q] .. first[q + 1] - 1] */
	int *server, *index;		/* of a rank: its server, and which of its ranks it is */
	int largest;			/* ranks of a server */
	int n_trees;			/* so far; of these: */
	int *n_top;			/* at the top of which each rank is */
	int *n_first, *n_which;		/* that begin at each server; that have each number of leader */
	struct sums sum_first, sum_which;
	int *lanes_out, *lanes_in;	/* of each rank: from and to this one, so far */
	int *pair;			/* of each ordered pair of ranks: lanes so far; NULL: not counted */
	int *child;			/* of this rank, in its server and then in others */
	RankLane *from, *to;		/* of a task that is made */
};

static inline int
size_of(const struct maker *m, int q)
{
	return m->first[q + 1] - m->first[q];
}

/* The i-th rank of a server, counted from its leader on. */
static inline int
member_at(const struct maker *m, int leader, int i)
{
	int q = m->server[leader], at = m->index[leader] + i, n = size_of(m, q);
	return m->member[m->first[q] + (at < n ? at : at % n)];
}

/* ---- built_in_rings.c ---- */

Status rings_new(struct maker *m);

/* One more tree is made. */
void rings_count(struct maker *m, const struct tree *t);

/* Rings that the rank has published in so far; in a tree the one up comes before the one down. */
int rings_of(const struct maker *m, int rank);

#endif
