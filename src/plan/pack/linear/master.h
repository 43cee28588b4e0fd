/* The restricted master problem of column generation: the linear program over the trees known so far.
 * master.c has its rows and columns, master_solver.c its solution in doubles, basis.c its solutions in fractions,
 * column_generation.c pricing, until the rate is optimal, sparsify.c fewer trees at a rate; exact.c is the driver. */
#ifndef BLINK_PLAN_PACK_LINEAR_MASTER_H
#define BLINK_PLAN_PACK_LINEAR_MASTER_H

#include "graph/graph.h"
#include "plan/pack/lp/glpk.h"
#include "plan/pack/lp/tableau.h"

struct column {
	Tree tree;
	int orbit;		/* of its demand */
	int depth;		/* hops, up and down */
	uint64_t hash;		/* of its edges */
	int n;			/* rows of links in use */
	int *row;
	int64_t *uses;
};

#define NEAR 2e-10		/* relative: a rate that is as near to what is proven has only been rounded */

enum {
	FINE_DUAL_BITS = 80,
	RATE_COLUMN = -1,	/* r; trees are numbered from 0 */
	FEW_RANKS = 64		/* up to here sparsify.c finds fewer trees, beyond it turn.c */
};

struct master {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	Collective coll;
	int root;
	bool turns;		/* fewer images than the group has elements are looked for */
	bool shares;		/* trees may share links at switches: pricing finds cheap trees, not the cheapest */
	Cheapest cheapest;	/* the pricing problem */
	int64_t unit;		/* one physical link, bytes/s */

	/* Rows: orbits of links, then orbits of demands, then one: r >= target. */
	int n_link_rows, n_demand_rows, n_rows;
	int64_t *capacity;	/* of a row of links: of all links of the orbit, in units, over divisor */
	int64_t *divisor;	/* of a row of links: divides all of its coefficients */
	int *representative, *orbit_size;	/* of an orbit of demands: its first, and their number */
	Frac target;		/* in units; what a second program, for fewer trees, has to reach */

	/* Columns. */
	struct column *column;
	int n_columns, room;
	int *sum_row;		/* work space: rows that a tree uses, and how often */
	int64_t *sum;
	int64_t *price;		/* of links, then of orbits of demands */
	int *work;		/* work space of tree_depth and tree_share */

	/* The solver: a tableau as long as the program is small, then GLPK. */
	Tableau *tableau;	/* NULL: GLPK */
	glp_prob *lp;
	int loaded;		/* trees that the LP has; its first column is r */
	int *index;		/* work space of a column */
	double *entry;
	double scale;		/* capacities are divided by it */
	bool perturbed;		/* capacities are perturbed, since the simplex method stalled */
	const double *cost;	/* of trees, once r is held at its target, where their sum is minimised; NULL: as 0 */
	bool held;
	bool solved;
	bool timed_out;		/* GLPK used up its time */
	bool moved;		/* it left the basis that it began with */
	double *dual, *value;	/* y and z of rows and x of trees, in doubles */

	/* The basis: tight rows and basic columns, equally many. */
	int n_basis, *tight, *basic, *tight_at;	/* tight_at[row]: its place in tight; -1: the row has slack */
	Frac *x, *y;		/* of basic columns, in units; of tight rows */

	/* By refine: y with more digits than a double has, in units of 2^-FINE_DUAL_BITS. */
	Wide *fine_dual;
	bool refined;

	/* What is known at the end. */
	bool proven;		/* `optimum` is the best algorithm bandwidth, bytes/s, by y exactly or by the bound */
	bool at_bound;
	bool near_bound;	/* the rate is that of the bound but for NEAR */
	bool cut_short;		/* time ran out */
	bool enough;		/* trees of limited depth are, though there may be better ones */
	Frac optimum;
};

/* x of every tree, and r, in units of 2^-bits of m->unit; in the scratch arena. */
struct fine {
	int bits;
	const Wide *x;
	Wide rate;
};

/* ---- master.c ------------------------------------------------------------------------------------------------ */

/* Rows without columns, in the scratch arena. Fails: as cheapest_limit does. */
Status master_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Family *family, const Ask *ask,
    struct master *m);

/* The solver is made, and deleted. */
Status master_open(struct master *m, const Ask *ask);
Status master_close(struct master *m);

/* A tree becomes a column, unless it is one already. */
Status master_add_tree(struct master *m, int orbit, const Tree *tree, bool *added);

/* Likewise the tree that m->cheapest found last; and that tree itself. */
Status master_add_cheapest(struct master *m, int orbit, bool *added);
Status master_current_tree(struct master *m, Tree *out);

/* Solve the program from its current basis, with all columns; m->solved: there is an optimum. */
Status master_solve(struct master *m);

/* From now on r is at m->target or above, and the sum of costs is minimised, which are 0 at first. cost: m->n_columns,
 * which stay where they are. */
Status master_hold_rate(struct master *m);
Status master_set_costs(struct master *m, const double *cost);

/* With a tableau, after master_solve with costs: to a basis of fewer trees near it, of any cost; from round 1 on after
 * steps away from it. m->solved: it is one. */
Status master_thin(struct master *m, int round);

/* From now on GLPK solves the program, as far as it does not do so yet. */
Status master_use_glpk(struct master *m);

/* In the current basis: tree c, or r. */
bool master_is_basic(const struct master *m, int c);

/* The price of a link by duals in doubles; and the highest, no less than 1e-9. */
double master_link_price(const struct master *m, int l);
double master_top_price(const struct master *m);

/* ---- basis.c ------------------------------------------------------------------------------------------------- */

/* Solve for x, or transposed for y, in the basis. False in *done: singular, or no small fractions. */
Status basis_solve(struct master *m, bool transposed, Frac *out, bool *done);

/* The exact y and z in integers, in m->price; false: out of range. */
bool basis_prices(struct master *m);

/* The trees of the basis, exactly; NULL where their numbers are too large, or they do not fit. */
Status basis_trees(struct master *m, Packing **out);

/* Have they surely no fewer trees than `pack`, nor as many that are less deep? By doubles, without symmetry. */
bool basis_no_better(const struct master *m, const Packing *pack);

/* x of refine, rounded down to whole multiples of a very small fraction of the rate. *out stays where its numbers are
 * too large. */
Status basis_fine(struct master *m, const struct fine *fine, Packing **out);

/* GLPK's x, scaled to fit the capacities and rounded down to whole multiples of a small fraction of the rate. *out
 * stays where nothing is left. */
Status basis_rounded(struct master *m, Packing **out);

/* r as GLPK has it, in units. */
double basis_value(const struct master *m);

/* The rate that the exact y proves; false: no small fraction. */
bool basis_rate(struct master *m, Frac *out);

/* The certificate of the collective where it is tight, else y, times M by the size of a demand. */
Status basis_bound(struct master *m, const Bound *known, Bound *out);

/* ---- refine.c ------------------------------------------------------------------------------------------------ */

/* Solve the program once more, from the basis of m->lp, with 13 digits and more: *out, and m->fine_dual.
 * m->refined: it is solved; else they are of no use. */
Status refine(struct master *m, struct fine *out);

/* ---- column_generation.c ------------------------------------------------------------------------------------- */

/* The first columns: a tree of each demand, and then perhaps more. */
Status columns_start(struct master *m);

/* Solve to the end over the kind of trees that m->cheapest finds. *pack: NULL only if GLPK has no solution. */
Status columns_generate(struct master *m, const Bound *bound, Packing **pack);

/* A bound near the optimum from GLPK's prices, where exact ones need too many digits. *out stays where it is no
 * lower. */
Status columns_bound(struct master *m, Bound *out);

/* ---- sparsify.c ---------------------------------------------------------------------------------------------- */

/* At a rate of at least m->target, fewer trees than *pack has, and shallower ones. *pack stays where none are found. */
Status sparsify(struct master *m, Packing **pack);

/* At most max_trees trees, no fewer than demands, at the highest rate that is found. *pack stays where none are
 * found. */
Status sparsify_to(struct master *m, int max_trees, Packing **pack);

#endif
