/* Seconds of CPU that packers take, from counts of the topology, before they run (work.c). */
#ifndef BLINK_PLAN_WORK_H
#define BLINK_PLAN_WORK_H

#include "plan/plan.h"

enum {
	WORK_SOON_PIVOTS = 5000	/* of linear programs that are to end soon */
};

double work_edges(const Planning *in);		/* trees of some ranks, edge by edge */
double work_unequal(const Planning *in);	/* trees over unequal servers */
double work_rooted(const Planning *in);		/* a few trees of a root, from lists of uplinks */
double work_rooted_below(const Planning *in);	/* the same some times */
double work_searches(const Planning *in);	/* a search of each rank */
double work_pairs(const Planning *in);		/* pairs of cheapest trees of each rank, through switches */
double work_balanced(const Planning *in);	/* trees of shortest paths */
double work_paths(const Planning *in);		/* paths of an alltoall */
double work_flows(const Planning *in);		/* trees by flows */
double work_parents(const Planning *in);	/* ranks that move to other parents */
double work_program(const Planning *in);	/* linear programs over all trees */
double work_programs(const Planning *in);	/* with the searches of their trees */
double work_steps(const Planning *in);		/* the same, of WORK_SOON_PIVOTS at most */
double work_homes(const Planning *in);		/* trees that enter each switch of GPUs once */
double work_entries(const Planning *in);		/* trees that enter each server once */

/* More than a packer takes before all others had their turn. */
bool work_is_long(double seconds);

/* Before a linear program over trees of one kind. Fails: LIMIT it is to end soon, and is long. */
Status work_check_soon(Ctx *ctx, const Planning *in);

/* What this process has taken so far, s. */
double work_seconds(void);

/* -v, over more ranks than integer programs are made for: a line has the CPU time since the line before, so that all
 * of them together have that of the run. work_lap: since its last call, s. work_tell: of a way to plan; pack: NULL: it
 * has no trees. work_done: of any other step. */
double work_lap(Ctx *ctx);
void work_tell(Ctx *ctx, const Topology *topo, const Packing *pack, const char *way);
void work_done(Ctx *ctx, const Topology *topo, const char *step);

#endif
