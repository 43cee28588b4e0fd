/* The linear program over trees, as exact.c solves it for the rate, basis.c in fractions, and fewer.c for fewer trees at a
 * rate. Only these include this. */
#ifndef BLINK_EXACT_H
#define BLINK_EXACT_H

#include "cheapest.h"
#include "lp.h"

struct column {
	Tree tree;
	int orbit;		/* of its demand */
	int depth;		/* hops, up and down */
	uint64_t hash;		/* of its edges */
	int n;			/* rows of links in use */
	int *row;
	int64_t *uses;
};

struct exact {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	Collective coll;
	int root;
	int n_links, n_demands, n_rows;	/* rows: orbits of links, then orbits of demands, then one: r >= target */
	Frac target;		/* in units; what a second program, for fewer trees, has to reach */
	int64_t *room;		/* of a row of links: capacity of all links of the orbit, in units, over fold */
	int64_t *fold;		/* what divides the coefficients of a row of links */
	int *lead, *members;	/* of an orbit of demands: its first demand, and how many it has */
	Cheapest cheapest;
	int64_t unit;		/* one physical link, bytes/s */
	struct column *column;
	int n_columns, space;
	int *sum_row;		/* work space: rows that a tree uses, and how often */
	int64_t *sum;
	int64_t *price;		/* of links, then of orbits of demands */
	double *dual, *value;	/* y and z of rows and x of trees, as GLPK says */
	int *work;		/* work space of tree_depth and tree_share */
	int *index;		/* work space of a column for GLPK */
	double *entry;
	glp_prob *lp;
	int loaded;		/* trees that the LP has; its first column is r */
	bool solved;
	bool timed_out;		/* GLPK ended at its time */
	double scale;		/* what capacities are divided by for GLPK */
	bool stalled;		/* capacities are stirred a little, since the simplex method did not get on with many alike */
	bool proven;		/* `optimum` is the best algorithm bandwidth, bytes/s, as y proves exactly or the bound does */
	bool at_bound;
	bool ended;		/* time is over */
	bool twists;		/* fewer images than the group has are looked for */
	bool active;		/* trees may share links at switches: the cheapest tree is not known, only cheap ones */
	Frac optimum;
	/* The basis: rows that are tight and columns in use, equally many; column -1 is r. */
	int n_basis, *full, *basic, *place;	/* place[row]: in full, -1: it has slack */
	Frac *x, *y;		/* of basic columns, in units; of full rows */
};

enum {
	RATE_COLUMN = -1,
	EXACT_FEW_RANKS = 64	/* of so many, fewer trees are looked for by more programs; of more, by turning servers */
};

/* Solve the program at hand from the basis that it has; e->solved says whether GLPK could. */
Status exact_solve(struct exact *e);

/* The cheapest tree at hand comes in as a column, unless it is one already. */
Status exact_add_cheapest(struct exact *e, int orbit, bool *added);

/* The trees of the basis at hand, exactly; NULL where their numbers are too large, or they do not fit. */
Status exact_trees(struct exact *e, Packing **out);

/* basis.c. Solve for x, or transposed for y, in the basis. False in *done: singular, or no small fractions. */
Status basis_solve(struct exact *e, bool transposed, Frac *out, bool *done);

/* The exact y and z in integers, in e->price; false: out of range. */
bool basis_prices(struct exact *e);

/* The exact x as a packing; *out stays where its numbers are too large. */
Status basis_packing(struct exact *e, Packing **out);

/* x as GLPK says, scaled back into the capacities and rounded down to whole multiples of a small part of the rate. */
Status basis_rounded(struct exact *e, Packing **out);

/* The certificate of the collective where it is tight, else y, times M by the size of a demand. */
Status basis_bound(struct exact *e, const Bound *known, Bound *out);

/* fewer.c: at a rate of at least e->target, fewer trees than *pack has, and shallower ones, if they are found. */
Status exact_fewer(struct exact *e, Packing **pack);

/* fewer.c: at most max_trees trees, at the highest rate that is found; there are no more demands. *pack stays where it
 * finds none. */
Status exact_at_most(struct exact *e, int max_trees, Packing **pack);

#endif
