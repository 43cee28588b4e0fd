/* Pairs: trees of an allreduce whose edges down may differ from those up, each an arborescence into a rank and
 * one out of it. Their halves, and what a search for them needs. */
#ifndef BLINK_PLAN_PACK_FEW_PAIR_HALVES_H
#define BLINK_PLAN_PACK_FEW_PAIR_HALVES_H

#include "plan/pack/few/enumerate.h"
#include "plan/pack/few/lanes.h"

enum {
	PAIRS_MOST = 6,		/* that are searched for */
	PAIRS_UNITS = 255,	/* units of 1 / den link that a link has */
	PAIRS_LINKS = 64,	/* bits of a half */
	PAIRS_CUTS = 1 << TREES_RANKS,
	PAIRS_WORD = 64,	/* of sets of halves */
	PAIRS_SEEN_BITS = 10
};

/* Weights that k pairs may have: weight[j] / den links, descending. */
struct weights {
	int den, units, weight[PAIRS_MOST];	/* units: all together */
	int choices;		/* spanning trees that the pairs may have, counted for each pair */
};

/* Links by what is left of them. */
struct residuals {
	int n, units[PAIRS_LINKS];
	uint64_t links[PAIRS_LINKS];
};

/* Of each side, in bytes: how many parts, each less one, a half may have. */
struct part_limits {
	uint8_t most[PAIRS_CUTS];
	int n, block[PAIRS_CUTS / BYTES];	/* blocks of sides where some tree has more: the first of each */
};

/* The same of both halves of a pair together: by the links out of a side, and within it. */
struct pair_limits {
	uint8_t out[PAIRS_CUTS], within[PAIRS_CUTS];
};

/* Links that a pair uses, and the node of the search that it was tried at. */
struct usage {
	uint64_t once, twice;
	int64_t node;
};

/* One pair after another of a search, see pair_search.c. */
struct pair_level {
	int residual[PAIRS_LINKS];	/* units that are left of a link */
	struct residuals left_of;	/* the same, the links of each number of units */
	int skip;			/* units that stay unused if this pair uses no link, */
	int more[2][PAIRS_LINKS];	/* and how many more if it uses a link once, twice */
	/* By side: units of the links out of it, and within it, that pairs need not use, or that others have to. */
	int16_t out[PAIRS_CUTS], within[PAIRS_CUTS];
	struct pair_limits limits;	/* of this pair */
	uint64_t can[3];		/* links that it can use 0, 1, 2 times */
	int n_left[PAIRS_MOST];		/* spanning trees that are left for this and later pairs */
	/* Of the first of these and later pairs with a weight: */
	uint64_t usable[PAIRS_MOST], twice[PAIRS_MOST];	/* links that it may use, has to use twice */
	uint64_t *left[PAIRS_MOST];	/* its spanning trees: bit sets */
	int n_up_trees, n_down_trees, *up_tree, *down_tree;	/* those that this pair may take, from some root */
	int n_up, n_down, *up, *down;	/* from one root */
	uint64_t *with[PAIRS_LINKS];	/* by link: which of `down` use it, a bit set */
	uint64_t *fit;			/* work space: a set of `down` */
	int64_t node;			/* this one: counted over all searches */
	struct usage seen[1 << PAIRS_SEEN_BITS];
};

struct pairs {
	Ctx *ctx;
	const struct trees *all;
	int n, n_links, max_depth, capacity[PAIRS_LINKS];	/* in physical links */
	uint64_t every;			/* all links */
	unsigned char from[PAIRS_LINKS], to[PAIRS_LINKS];	/* ranks of a link */
	uint64_t into[TREES_RANKS], out_of[TREES_RANKS];	/* links of a rank */
	uint64_t rows_of[TREES_RANKS];	/* rows of its links */
	uint64_t *up, *down;		/* the links of a spanning tree towards a root, and away from it: [place_of] */
	/* Sides: sets of ranks without the last one, and from `half` on their complements, in the same order. */
	int half;
	uint8_t *parts, most_parts[PAIRS_CUTS];	/* parts of a spanning tree within each side, less one; of all trees */
	unsigned char *height;		/* hops from the root to the farthest rank: [place_of] */
	/* Of one search: */
	int k, slack, top;		/* top: units of the widest link */
	struct weights w;
	int waste[PAIRS_MOST + 1][PAIRS_UNITS + 1];	/* what pairs j .. k - 1 cannot use of a residual capacity */
	int extra[PAIRS_MOST][PAIRS_MOST][3][PAIRS_UNITS + 1];	/* [j][i][u]: and what else if i uses it u times */
	struct pair_level level[PAIRS_MOST + 1];
	int64_t steps;			/* that are left */
	int64_t nodes;
	bool found;
	struct pick { int root, up, down; } pick[PAIRS_MOST];
};

/* A spanning tree with a root, in arrays by both. */
static inline int
pair_place(const struct pairs *p, int root, int tree)
{
	return root * p->all->n + tree;
}

/* Before any search. */
Status pairs_new(Ctx *ctx, const struct trees *all, struct pairs **out);

#endif
