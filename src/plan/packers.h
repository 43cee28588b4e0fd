/* The packers of trees of any kind, a table: which jobs each serves, and what it has to know of those that ran before.
 * portfolio.c runs them. */
#ifndef BLINK_PLAN_PACKERS_H
#define BLINK_PLAN_PACKERS_H

#include "plan/plan.h"

/* What is known when a packer's turn comes. */
struct portfolio {
	const Planning *in;
	Packing *best;		/* NULL: none yet */
	double rate;		/* the highest of all that were found: that of the best, or hardly more */
	const struct packer *by;	/* that made it */
	Bound proof;		/* the bound, or a lower one that a linear program proves */
	bool optimal;		/* best is */
	bool over_servers;	/* trees over servers were found */
	bool whole;		/* of those, that no others have fewer edges */
	bool close;		/* best is hardly below the bound, and not deep */
	bool planned;		/* by a packer after which a linear program is of no use */
	int n_ran;
	int *work;
};

/* Traits. */
enum {
	OPTIMAL = 1,		/* no trees have a higher rate than its */
	REFINES = 2,		/* it may have better trees at the rate of the bound, too */
	OVER_SERVERS = 4,	/* its trees are trees over servers */
	ENDS = 8		/* with its trees a linear program is of no use: portfolio's planned */
};

struct packer {
	const char *name, *source;
	bool (*serves)(const struct portfolio *p);
	double (*work)(const Planning *in);	/* estimated, s */
	int traits;		/* of those above */
	Status (*pack)(Ctx *ctx, struct portfolio *p, Packing **out);
};

/* Row i of the table, in the order in which they run; NULL: there are no more. */
const struct packer *packer_row(size_t i);

/* Is the highest rate so far this part of the lowest bound that is proven? */
bool portfolio_is_at(const struct portfolio *p, double part);

/* Are there trees over servers, and at a fair rate? */
bool portfolio_over_servers(const struct portfolio *p);

/* pack: found by a packer; or NULL. */
void portfolio_note_rate(struct portfolio *p, const Packing *pack);

/* Trees exchange edges, whoever packed them, unless others have a higher rate. *pack: or NULL. */
Status portfolio_make_shallower(Ctx *ctx, const struct portfolio *p, Packing **pack);

#endif
