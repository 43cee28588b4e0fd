/* Columns of the linear program for an alltoall over a machine with symmetries: path_columns.c finds them,
 * path_templates.c has the packing. */
#ifndef BLINK_PLAN_PACK_ALLTOALL_PATH_COLUMNS_H
#define BLINK_PLAN_PACK_ALLTOALL_PATH_COLUMNS_H

#include "graph/shortest.h"
#include "plan/pack/lp/tableau.h"

enum { MOST_COLUMNS = 4000 };

/* A path of a demand: links[first] to links[first + n - 1]. */
struct known {
	int first, n, next;	/* another one of this demand; -1: none */
	int64_t weight;		/* parts of the columns that have it */
};

/* A path for each demand of a representative. */
struct path_column {
	int from;		/* the representative */
	int *found;		/* n_ranks - 1: number of the known path */
	int64_t *uses;		/* of the links of each orbit, by paths of representatives */
	int64_t parts;		/* of the packing */
};

struct path_columns {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	int n_demands;		/* pairs that begin at a representative */
	int64_t *capacity;	/* of each orbit: of all of its links */

	/* The search. */
	Paths paths;
	int64_t *price, *distance;	/* of links; of vertices from the source */
	int *by;			/* the link that enters each vertex */
	Wide distances;			/* from representatives to all ranks */
	struct path_column *next;	/* of each representative */

	/* What it found. */
	int *head;		/* of each demand: its known paths, in the order in which they were found */
	int n_known, known_room, n_links, links_room;
	struct known *known;
	int *link;
	int n_columns;
	struct path_column *column;
	int *most;			/* of each representative: its column of the most parts, */
	int64_t *left;			/* and what others leave of all parts */
	Wide *load;			/* of the links of each orbit, in parts */

	/* The program. */
	Tableau tableau;
	double *limit, *entry;		/* of each orbit: its row; of a column */
	int *row;
	double *y, *best_y, *between;	/* duals, which cost all limits 1: of the basis; of the best bound; of both */
	double cost;			/* of all limits under the duals of the basis */
	int64_t *orbit_price, *bound_price;	/* of links of each orbit: current; of the best bound */
	Frac bound;			/* of the rate of a demand, by lengths */
};

Status path_columns_new(struct path_columns *s);	/* ctx, topo, sym and n_demands are set */

/* Columns until none gains, or until the rate of a demand, in *rate, is at `top`. FRAC_ZERO: some rank is not
 * reached. Each has its parts, which are few where few have this rate. */
Status path_columns_find(struct path_columns *s, Frac top, Frac *rate);

/* The solution as `all` parts of each representative; what rounding leaves is for its largest column. *rate: of a
 * demand; false: there is none. */
bool path_columns_parts(struct path_columns *s, int all, Frac *rate);

/* What lengths prove; *proof stays where it is as low. */
Status path_columns_bound(struct path_columns *s, Bound *proof);

/* Duals as whole prices of links up to `most`. row: of each link, whose dual y[row] is, of n; NULL: it has its own.
 * Small ones prove what doubles miss by a little, where there are such. */
void path_whole_prices(const double *y, int n, const int *row, int n_links, double most, int64_t *price);

enum { N_SMALL_PRICES = 8 };

extern const int path_small_price[N_SMALL_PRICES];

#endif
