/* Trees over homes of ranks (by_homes.c), and moves of those whose routes have too many. */
#ifndef BLINK_PLAN_PACK_CLUSTER_BY_HOMES_MOVES_H
#define BLINK_PLAN_PACK_CLUSTER_BY_HOMES_MOVES_H

#include "plan/pack/cluster/home_network.h"

enum {
	BY_HOMES_HOP_NS = 50	/* about what a look at a hop, or at a route, takes */
};

/* A tree over homes, of a root. */
struct home_tree {
	int root;		/* rank */
	int weight;		/* parts of its block */
	int *enter;		/* of each home: the route by which it is entered; -1: the root's */
};

/* A move of a home to another route, from what `from` has. */
struct home_step {
	int mark;		/* of the search that found it */
	int from;		/* link, or home after all links; -1 */
	int tree, home, now, route;
};

struct by_homes {
	Ctx *ctx;
	HomeNetwork net;
	int m;			/* parts of a block */
	int n_blocks;		/* that each rank receives: of all ranks, or one, of which each tree has a part */
	int64_t *room, *all;	/* of each link between homes: parts left, below 0: too many; of all */
	int64_t *sends, *all_sends;	/* likewise, of each home: what its ranks can send to other homes */
	int64_t *left;		/* of each rank at a switch: parts that it can send */
	struct home_tree *tree;
	int n_trees, most;	/* by roots */
	/* Of the tree at work, of each home: */
	int *hops;		/* from the root's home */
	int *depth;		/* likewise, in the tree; -1: it is not there yet */
	int *queue;
	int *child, *sibling;	/* its first child, and the next one of its parent's; -1 */
	int farthest;		/* most hops of a shortest way */
	/* Homes that routes lead to: to[first_to[h]] to to[first_to[h + 1] - 1] */
	int *first_to, *to;
	/* Chains of moves, of each link and home: routes that use it; the move by which it is reached; those reached */
	int *first_user, *user, *into;
	struct home_step *step, last;
	int *line, mark, turn;
	int64_t looks, most_looks;	/* at routes, for these */
};

/* Adds this many parts to the loads of a route: of its links, and of what its home sends. */
void by_homes_use(struct by_homes *s, int route, int64_t parts);

/* Parts left on the route and at its home: the least. */
int64_t by_homes_left(const struct by_homes *s, int route);

/* Of its links, as a part of all that there is; and of its home. */
double by_homes_ease_of_links(const struct by_homes *s, int route);
double by_homes_ease(const struct by_homes *s, int route);

/* What the next one needs. */
Status by_homes_users(struct by_homes *s);

/* Single moves, then chains of trees of this weight. Returns whether nothing has too many. */
bool by_homes_move(struct by_homes *s, int weight);

/* Trees of which few homes send to many, other homes in each (by_homes_split.c). After by_homes_users.
 * *good: all homes are reached in time; routes may have too many. */
Status by_homes_split(struct by_homes *s, bool *good);

/* The most homes in a row, from a root. */
int by_homes_depth(struct by_homes *s);

/* Homes deeper than `most` are entered from higher ones, as far as these have room. Returns whether any was. */
bool by_homes_lift(struct by_homes *s, int most);

#endif
