/* Paths of an alltoall as trees into each rank: in_trees_packing.c has the packing, in_trees_parts.c its trees,
 * in_trees_rounds.c the order of rounds, in_trees_moves.c what a round does, in_trees_prices.c prices and what they
 * prove, in_trees_kinds.c the best prices of a few kinds of links. */
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

/* Where paths end: a rank, or a switch with all ranks that hang on it by one link each way. */
struct in_root {
	int vertex, n, *rank;
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
	int n_roots;
	struct in_root *root;		/* the sources, or destinations, of shortest-path searches */

	double work;			/* links that rounds and searches looked at, for each tree */
};

static inline int *
in_tree_at(const struct in_trees *s, int *trees, int root, int t)
{
	return trees + ((size_t)root * (size_t)s->most_trees + (size_t)t) * (size_t)s->n_vertices;
}

/* In blocks of the mean capacity. */
static inline double
in_trees_use(const struct in_trees *s, int l)
{
	return s->link[l].load * s->link[l].per_load;
}

/* ---- in_trees_parts.c ---- */

enum { FINEST = 4096 };		/* parts of a block */

/* A tree into each rank: shortest paths; of equal ones, those over links that the trees before have used less. False:
 * there is no path. */
bool in_trees_first(struct in_trees *s);

/* Each tree twice, of half the parts. */
void in_trees_split(struct in_trees *s);

/* A part of the last tree becomes one of its own: half, or less, so that parts are the finest when trees are most. */
void in_trees_cut_last(struct in_trees *s);

/* These trees are the best, if they use the fullest link least. */
void in_trees_keep_best(struct in_trees *s);

/* ---- in_trees_rounds.c ---- */

/* Until trees are near the bound, or get no nearer. Fails: NO_MEMORY. */
Status in_trees_rounds(struct in_trees *s);

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

/* The same by costs, which become mean prices. Where links are stiff only the fullest cost, as those of a cut. */
void in_trees_bound_by_costs(struct in_trees *s);

/* s->root. */
Status in_trees_find_roots(struct in_trees *s);

/* ms that checks take: choose_proof (compile.c) wants them left. */
static inline int
in_trees_proof_time(const struct in_trees *s)
{
	return 2 * (int)((int64_t)s->n * s->n_links / 10000);
}

/* *proof: lengths, if they prove a lower rate. */
Status in_trees_prove(struct in_trees *s, Bound *proof);

/* ---- in_trees_kinds.c ---- */

/* Raises s->bound and keeps s->best_price, if the best prices that links of a kind have in common prove a higher bound:
 * kinds are those of about the same mean price. Nothing happens where it might take more than most_work (s->work).
 * Fails: NO_MEMORY. */
Status in_trees_kinds(struct in_trees *s, double most_work);

#endif
