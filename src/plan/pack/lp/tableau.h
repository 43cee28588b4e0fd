/* The simplex method in doubles, for linear programs of some dozens of rows whose columns come in rounds and whose
 * objective changes often:
 *
 *     max sum cost x    A x <= limit, x >= floor    limit >= 0; floor is 0 but of column 0, and reachable
 *
 * The inverse of the basis is kept in full, and the gain of every column. A step changes both, in rows times rows and
 * in entries of A operations: at this size a small part of what GLPK takes, which factorises the basis.
 * From: Dantzig 1963, chapter 9; Harris 1973 (weights of columns, and the ratio test); Bland 1977. */
#ifndef BLINK_PLAN_PACK_LP_TABLEAU_H
#define BLINK_PLAN_PACK_LP_TABLEAU_H

#include "base/status.h"

/* Variables: slacks of rows are numbered from 0, columns from `m`. */
typedef struct {
	Ctx *ctx;
	int m, n, room;		/* rows; variables, and what there is room for */
	int width;		/* of a row of the inverse, no less than m */
	double *inverse;	/* m * width */
	double *value;		/* m: of the variable that is basic in a row */
	int *basic;		/* m: that variable */
	int *row_of;		/* room: of a variable: the row in which it is basic; -1: it is at its floor */
	double *cost;		/* room */
	double *gain;		/* room: of the objective for one of a variable; of a basic one 0 */
	double *weight;		/* room: what its gain is measured by: about the square of the length of its column */
	double *limit;		/* m */
	double floor;		/* of column 0 */
	double *entering;	/* m: how much of what is basic in a row goes for one of what enters */
	double *price;		/* width: work space */
	int *left;		/* room: of tableau_thin: when a variable left the basis last */
	/* Entries of columns, one after the other: of variable v from first[v] to first[v + 1]. */
	int *first, *row, n_entries, entry_room, row_room;
	double *entry;
} Tableau;

/* Rows without columns. limit: m of them. In the scratch arena. */
Status tableau_new(Ctx *ctx, const double *limit, int m, Tableau *out);

/* A column of n entries, whose cost is 0. */
Status tableau_add(Tableau *t, const int *row, const double *entry, int n);

/* The cost of a column, from the next tableau_solve on. */
void tableau_cost(Tableau *t, int column, double cost);

/* Column 0 stays at `floor` or above from now on. False: the current basis has less. */
bool tableau_raise(Tableau *t, double floor);

/* From the current basis to an optimal one. *steps: of the simplex method; it counts them down.
 * False: there is no optimum, it would take more steps, or doubles are not accurate enough. */
bool tableau_solve(Tableau *t, int *steps);

/* From an optimal basis to another vertex, of any cost, where fewer columns besides column 0 are above their floor:
 * along edges of the polyhedron, to neighbours with fewer, or, a few times, with as many.
 * False: doubles are not accurate enough. */
bool tableau_thin(Tableau *t);

/* To another vertex, by a few steps along edges that `seed` chooses. */
void tableau_stir(Tableau *t, uint64_t seed);

/* Of the current basis. Prices: of the last tableau_solve. */
bool tableau_is_basic(const Tableau *t, int variable);
double tableau_value(const Tableau *t, int column);
double tableau_price(const Tableau *t, int row);

#endif
