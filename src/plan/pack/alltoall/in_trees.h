/* Paths of an alltoall as trees into each rank: in_trees_rounds.c has the order of rounds and the packing,
 * in_trees_moves.c what a round does, in_trees_prices.c prices and what they prove. */
#ifndef BLINK_PLAN_PACK_ALLTOALL_IN_TREES_H
#define BLINK_PLAN_PACK_ALLTOALL_IN_TREES_H

#include "graph/shortest.h"

/* What moves look at, of each link. */
struct in_link {
	double price;		/* all capacities times prices are 1 together */
	double load;		/* blocks in parts, a whole number */
	double per_load;	/* 1 / (parts * capacity): load times that is what the link is used, in blocks */
	int to;
};

struct in_trees {
	Ctx *ctx;
	const Topology *topo;
	int n, n_vertices, n_links;
	double *capacity;		/* of links, relative to their mean */
	int parts;			/* of each block */
	int n_trees, most_trees;	/* into a rank, */
	int first;			/* the first tree whose vertices may take other links */
	int *weight, *best_weight;	/* and the parts that each has: at first all alike, later the last fewer */
	int *next, *best;		/* of each tree the link that leaves each vertex, or -1 (in_tree_at); those
					 * that use the fullest link least, */
	int best_parts, n_best;
	double best_use;		/* by this */

	/* What the use of a link costs: its price, and `stiffness` for each block above `use`. */
	struct in_link *link;
	double stiffness, use;
	int64_t moves;			/* in the last round: vertices that took another link */

	/* A tree at work: of each vertex */
	int n_placed, *placed;		/* those with a path to the root, each before the end of its link */
	int *inner;			/* links of the tree that end there */
	int *size;			/* blocks that pass it */
	double *cost;			/* of its path, as it is */
	int mark, *seen;		/* the last path that was marked and has it, */
	double *saved;			/* and what this costs up to there */

	/* Prices, and what they prove. */
	Paths paths;
	double *mean_price, *last_cost;	/* the mean of the last prices; what costs were when prices last changed */
	int64_t *price, *distance, *best_price;	/* those that prove the best bound; all 0: none does */
	double bound;			/* no paths use the fullest link less */
	bool held;			/* mean_price is best_price, in doubles */
};

static inline int *
in_tree_at(const struct in_trees *s, int *trees, int root, int t)
{
	return trees + ((size_t)root * (size_t)s->most_trees + (size_t)t) * (size_t)s->n_vertices;
}

/* ---- in_trees_moves.c ---- */

/* s->size and the order in s->placed. */
void in_tree_measure(struct in_trees *s, int root, const int *next);

/* Each vertex of each tree, one after the other, takes another link where that costs less. */
void in_trees_round(struct in_trees *s);

/* ---- in_trees_prices.c ---- */

/* s->use, so that costs times capacities are 1 together. */
void in_trees_settle(struct in_trees *s);

/* Costs become prices, or, with a momentum, go on by this part of their last change. They count in mean_price by
 * `part`. */
void in_trees_reprice(struct in_trees *s, double part, double momentum);

/* Raises s->bound and keeps s->best_price, if the mean prices prove a higher bound. They are rounded to integers in
 * nine ways; the bounds of the `roundings` ways that look best are computed. */
enum { LAST_ROUNDINGS = 3 };
void in_trees_bound(struct in_trees *s, int roundings);

/* *proof: lengths, if they prove a lower rate. */
Status in_trees_prove(struct in_trees *s, Bound *proof);

#endif
