/* How much each of some trees is used, where all of their images are (templates.c, images.c): a linear program of a
 * row for each orbit of links. */
#ifndef BLINK_PLAN_PACK_LP_WEIGHTS_H
#define BLINK_PLAN_PACK_LP_WEIGHTS_H

#include "base/status.h"

enum { WEIGHT_ROWS = 2048 };	/* orbits and demands: with more nothing is solved */

struct template_pool {
	int n_orbits, n_demands;
	const int64_t *capacity;	/* n_orbits: of all links of one, above 0 */
	int n;				/* trees */
	const int *demand;		/* n: which of the demands, from 0 */
	const int64_t *load;		/* n * n_orbits: hops of all images over links of an orbit */
	int most_steps;			/* of the simplex method: beyond them nothing is solved */
	int coarser;			/* bits by which weights that are rounded have fewer */
};

/* Whole weights, 0 or more, of which those of each demand have the same sum, so that this sum, where no orbit has more
 * than its capacity, is as large as it can be. price: n_orbits: what a hop over each costs: a tree that is cheaper than
 * those of its demand that are used would raise the sum. Unchanged where none were found.
 * *sum: 0: none were found. In the scratch arena. Fails: NO_MEMORY. */
Status template_weights(Ctx *ctx, const struct template_pool *pool, int64_t *weight, int64_t *sum, double *price);

#endif
