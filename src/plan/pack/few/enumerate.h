/* All trees of a collective over few ranks, one by one: for pack_every and pack_fewest only. */
#ifndef BLINK_PLAN_PACK_FEW_ENUMERATE_H
#define BLINK_PLAN_PACK_FEW_ENUMERATE_H

#include "model/model.h"

enum {
	TREES_ROWS = 64,	/* bits of a tree */
	TREES_RANKS = 9,	/* whose permutations are searched for symmetries */
	TREES_CAPACITY = 255,	/* physical links in a row */
	TREES_WORDS = 8,	/* of a block of a set of trees */
	TREES_BLOCK = 64 * TREES_WORDS	/* trees of a block */
};

/* A row is a link, or for allreduce the two directions of a connection; a tree is a set of rows. */
struct trees {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	int root;
	int n_rows;
	int row_of[LIMIT_FEW_LINKS];	/* of a link */
	int there[TREES_ROWS], back[TREES_ROWS];	/* links of a row; back: -1 but for allreduce */
	int64_t capacity[TREES_ROWS];	/* in physical links */
	/* Links in the direction that a tree is walked from its root, of reduce against their own: */
	unsigned char near[LIMIT_FEW_LINKS], far[LIMIT_FEW_LINKS];
	uint64_t rows_from[TREES_RANKS];	/* of the links from a rank */
	int ends[TREES_ROWS];		/* of a row: both of its ranks, one ^ the other */
	int n, room;
	uint64_t *rows;			/* of each tree; ascending */
	/* Sets of trees: tree t is bit t % 64 of word t / 64, and words fill whole blocks. */
	int n_blocks;
	uint64_t *every;
	uint64_t *with[TREES_ROWS];	/* of a row: the trees that have it */
	int *depth;			/* hops from the root, allreduce: up and down from the centre */
	/* By orbits.c: */
	int *orbit;			/* first tree of its orbit under permutations of the ranks */
	int *rooted;			/* of an allreduce: likewise, for each root and tree: [root * n + tree] */
};

/* False in *all: there are more than LIMIT_FEW_TREES trees, or switches, or more ranks or links than the limits above
 * allow, or, for allreduce, links without an equal in the other direction. */
Status trees_enumerate(Ctx *ctx, const Topology *topo, const Ask *ask, struct trees *out, bool *all);

/* A block of a set, `of`: those of its trees that have all required rows, and none that is closed. False: there are
 * none. */
bool trees_fitting(const struct trees *t, int block, const uint64_t *of, uint64_t required, uint64_t closed,
    uint64_t *fit);

/* A tree in the run arena. */
Status trees_make(const struct trees *t, uint64_t rows, Tree *out);

/* Of an allreduce: links of an arborescence into the root, and of one out of it. */
Status trees_make_pair(const struct trees *t, int root, uint64_t up, uint64_t down, Tree *out);

#endif
