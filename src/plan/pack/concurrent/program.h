/* The restricted linear program of concurrent trees: program.c has its rows, columns and solution in doubles, settle.c
 * what follows from its basis, concurrent.c the rounds. Of level k, where level j < k is done after the time T(j), at
 * the rate r that all groups have, of x / r bytes by each tree:
 *
 *     maximise    r
 *     such that   sum over trees t of levels 0 to k of copies(t) alike(t) uses(row, t) x(t) <= capacity(row)
 *                 likewise over levels 0 to j < k                                         <= capacity(row) T(j) r
 *                 sum over trees t of bundle d of x(t) >= size(d) r
 */
#ifndef BLINK_PLAN_PACK_CONCURRENT_PROGRAM_H
#define BLINK_PLAN_PACK_CONCURRENT_PROGRAM_H

#include "graph/graph.h"
#include "plan/pack/concurrent/concurrent.h"
#include "plan/pack/lp/glpk.h"

struct use {
	int row;
	int64_t uses;		/* by the tree, its images and copies of the group, over the divisor of the row */
};

/* Trees of a bundle, one for each of its demands. */
struct concurrent_column {
	int bundle;		/* its row of bundles */
	int before;		/* the column of that row before it; -1: none */
	Tree *tree;
	int n, *link;		/* links of the group that are used, ascending, */
	int64_t *times;		/* and how often, by weights of demands */
	int n_rows;
	struct use *use;
};

struct bundle_row {
	int group, at;		/* bundle `at` of that group */
	int64_t size;		/* of one demand, or of a weight of 1, in units that all share */
	double scale;		/* in GLPK's program x of its trees is multiplied by it */
	int last;		/* its last column; -1: none */
};

/* T(j) of a level that is planned, num / den, for r = 1: exactly, or a little more. */
struct level_time {
	int64_t num, den;
};

enum { CONCURRENT_RATE = -1 };	/* the column of r; trees are numbered from 0 */

struct program {
	Ctx *ctx;
	const Concurrent *group;
	int n_groups;
	const SharedLinks *links;
	Cheapest *cheapest;	/* of each group */
	int64_t **price;	/* of the links of each group */
	int n_links;		/* rows of links, for each level up to the current one; those of bundles follow */
	int64_t unit, *capacity, *divisor;	/* of rows of links: bytes/s; in units, over the divisor */
	int n_bundles, *first;	/* of each group, its first row of bundles */
	struct bundle_row *bundle;
	double rate_unit;	/* messages/s of r = 1 */
	double rate_scale;	/* in GLPK's program r is multiplied by it */
	int n_levels, level;	/* all; the current one */
	struct level_time *time;	/* of the levels before it, by 1 / r = 1 */

	int n_columns, room, x_room;
	struct concurrent_column *column;
	int64_t *sum;		/* n_links: work space */
	int *sum_row;
	Tree *found;		/* the trees that program_find found, */
	int *used, n_used;	/* their links, */
	int64_t *times;		/* and how often they use each */

	glp_prob *lp;
	int loaded;
	double scale;
	bool perturbed, solved;
	double *dual, *x, r;	/* of rows, x of trees, and the rate */
	double bound, *best;	/* rate that prices of rows of links prove none to exceed: the least so far */

	/* The basis: tight rows and basic columns, equally many. */
	int n_basis, *tight, *basic, *tight_at;
};

/* The first row of bundles, which those of links of all levels so far come before. */
static inline int
program_bundles(const struct program *p)
{
	return (p->level + 1) * p->n_links;
}

Status program_new(Ctx *ctx, const Concurrent *group, int n_groups, const SharedLinks *links, struct program *p);
Status program_close(struct program *p);

/* The program of the next level, p->level, with all columns so far. */
Status program_open(struct program *p);

/* The cheapest trees of a bundle, by the prices that its group's search has: *cost, together. With `trees` they stay
 * until the next call, and become a column unless they are one. */
Status program_find(struct program *p, int group, int at, bool trees, Wide *cost);
Status program_add_found(struct program *p, int group, int at, bool *added);

/* Trees of a bundle: n demands from the first. */
int program_demands(const Concurrent *group, int at, int *first);

/* A tree of a bundle of one demand. */
Status program_add_tree(struct program *p, int group, int at, const Tree *tree, bool *added);

/* From the current basis, with all columns. p->solved: there is an optimum. */
Status program_solve(struct program *p);

/* ---- settle.c ---- */

/* The prices of a link of each row, for each level up to the current one, in whole numbers: the exact ones of the
 * basis, where these are small enough for searches. False in *known: they are not. price: (level + 1) * n_links. */
Status settle_prices(struct program *p, int64_t *price, bool *known);

/* Likewise GLPK's, on a grid. */
void settle_grid(const struct program *p, int64_t *price);

/* What each tree carries, amount / *den: exactly what the basis has, which is checked; else what GLPK has, a little
 * less, so that it fits. amount: n_columns. */
Status settle_amounts(struct program *p, int64_t *amount, int64_t *den, bool *exact);

/* The time of the current level: 1 over the r that these amounts give to all groups up to it. */
Status settle_time(struct program *p, const int64_t *amount, int64_t den, struct level_time *out);

#endif
