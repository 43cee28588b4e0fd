/* Paths for an alltoall: a maximum concurrent flow. alltoall.c has its columns and rounds, paths_start.c a
 * path for each demand, and prices, paths_master.c the linear program in GLPK, paths_search.c shortest paths.
 *
 * Under a group all images of a path have one rate. So demands are those that stand for their orbits, and what loads,
 * capacities, prices and rows are counted by is an orbit of links, a "row"; without a group each link is one. A demand
 * weighs as many pairs as it stands for, a row has the capacity of all of its links, both divided by the size of the
 * group: where demand and links are moved these are numbers of one pair and of one link. */
#ifndef BLINK_PLAN_PACK_ALLTOALL_PATHS_H
#define BLINK_PLAN_PACK_ALLTOALL_PATHS_H

#include "graph/graph.h"
#include "plan/pack/lp/glpk.h"

struct path {
	int n;
	const int *link;	/* in order */
};

/* A path besides the key path of its demand: a column. */
struct detour {
	int demand;
	int idle;		/* rounds since it was last in the basis */
	double x;		/* its part of the demand, as last solved for */
	struct path path;
};

struct paths {
	Ctx *ctx;
	const Topology *topo;
	Search search;
	const Symmetry *sym;	/* NULL: none */
	bool by_hops;		/* pairs have routes of their own (Topology.route); else paths may take any links */
	int n_ranks, n_rows, n_demands;
	int n_sources, *source;	/* ranks whose pairs are demands, ascending: of orbits the first, and those that stay */
	bool *stays;		/* under a group, of each rank */
	int *row;		/* of each link */
	double mean;		/* capacity of a link */
	double *capacity;	/* of rows, relative to that */
	const int64_t *bytes;	/* of each demand; NULL: all are equal */
	double *weight;		/* of each demand, relative to their mean: loads count it, x does not */

	/* Paths. */
	struct path *key;	/* of each demand: what its detours leave of it */
	double *load;		/* of rows: key paths over each, by weight */
	struct detour *detour;
	int n_detours, room;

	/* Prices of a link of each row, all times capacity together n_rows. */
	double *y;		/* current */
	double *best_y;		/* those that prove the best bound so far, */
	double bound;		/* of the load of the fullest link, relative to its capacity; */
	double known;		/* the same by the bound that was known before, */
	bool reached;		/* and key paths alone are at that */
	int64_t *price;		/* of each link, as the searches have them, */
	int price_bits;		/* of the highest */
	int64_t *distance;	/* of ranks from the source of the last search */
	int *enter;		/* the link that enters each vertex on its path, or the hop that enters each rank */

	/* GLPK. */
	glp_prob *lp;
	int loaded;		/* detours that it has */
	int first;		/* column of the first */
	int lp_rows;		/* rows, then demands whose detours want more than the demand */
	int *row_of;		/* of a demand; 0: none */
	double *sum;		/* of a demand: its detours */
	int work_room;
	int *index;		/* work space of a column or row */
	double *entry;
	double trifle;		/* less is no gain */
	double limit;		/* of prices above the best known, where that is all that holds them */
	double perturbation;	/* of the loads of links at most, in paths */
	double tolerance;	/* of reduced costs and values */
	bool dual;		/* rows have changed since it was solved, and no columns have come in */
	int most_steps;		/* of the simplex method, all together; 0: any */
	bool solved, timed_out, too_long;
	double value;		/* of the program, as `bound` is; below it by what prices near the best give back */
	double excess;		/* paths by which loads miss what they should be, where a price is at its limit */
};

/* ---- paths_search.c ------------------------------------------------------------------------------------------ */

/* y as integers: of what the searches use from now on. */
void paths_price(struct paths *p, const double *y);

void paths_use_prices(struct paths *p);	/* p->price has changed */

void paths_from(struct paths *p, int from);	/* shortest paths from a source to all ranks */

/* The shortest path from a source to a rank; the source is that of the last search. In the scratch arena. */
Status paths_take(struct paths *p, int from, int to, struct path *out);

/* Its price under y in doubles. */
double paths_cost(const struct paths *p, int from, int to);

/* What no fullest link has less load than, by these prices: sum of distances / sum of capacity * price. */
double paths_bound(struct paths *p, const double *y);
double paths_price_sum(const struct paths *p);	/* of p->price: capacity * price */

void paths_add_load(struct paths *p, const struct path *path, double x);

/* The demand of a source, number i of them, to another rank; the ends of a demand. */
int paths_demand(const struct paths *p, int source, int to);
int paths_from_rank(const struct paths *p, int demand);
int paths_to_rank(const struct paths *p, int demand);

/* Has it paths? Not where, under a group, another demand stands for it, and it has no weight. */
static inline bool
paths_has(const struct paths *p, int demand)
{
	return !p->sym || p->weight[demand] > 0;
}

/* ---- paths_start.c ------------------------------------------------------------------------------------------- */

/* A key path for each demand, so that the loads of links are near each other where prices want it, a few detours that
 * cost about as much, and p->best_y; or key paths alone, and p->reached. */
Status paths_start(struct paths *p);

/* ---- paths_shift.c -------------------------------------------------------------------------------------------- */

/* Key paths and detours at the bound that is known, from key paths near it. p->reached: there are; else all stay. */
Status paths_shift(struct paths *p);

/* ---- paths_master.c ------------------------------------------------------------------------------------------ */

Status paths_open(struct paths *p);

/* Prices stay within `width` of best_y, relative; 0: they only have a limit above. `limit`: above that, too. */
void paths_box(struct paths *p, double width, double limit);

/* Loads of key paths, and the perturbation, have changed. */
void paths_sides(struct paths *p);

/* Solve the program over all detours: y, value, and x of detours. p->solved: GLPK found an optimum. */
Status paths_solve(struct paths *p);

/* Rows for demands whose detours take more than the demand. *added: how many are new. */
Status paths_limit_demands(struct paths *p, int *added);

/* Detours that have all of their demand become key paths, and those that were of no use for long, or are dear, go. */
Status paths_tidy(struct paths *p);

Status paths_close(struct paths *p);

#endif
