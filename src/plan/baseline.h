/* What other methods would give for a job: the baselines that a rate is held against. */
#ifndef BLINK_PLAN_BASELINE_H
#define BLINK_PLAN_BASELINE_H

#include "model/model.h"
#include "plan/pack/rings/rings.h"

/* A job, and the machine that has links which it does not use. */
typedef struct {
	const Topology *machine;
	const int *gpu;		/* gpu[i] of n is rank i */
	int n;
	const Topology *topo;	/* of the job over links of `classes`; NULL: not at hand */
	unsigned classes;
	bool pairs;		/* hops keep to the route of their pair */
} BaselineJob;

/* The baselines of a collective, in the order of the table in baseline.c. What is not proven is left out: on large
 * machines rings may be faster than those that were found. None where collective_has_rings is false, and over more than
 * BASELINE_RANKS GPUs.
 * Random: none. Clock: none. Fails: LIMIT. */
Status baselines_find(Ctx *ctx, const BaselineJob *job, Collective coll, Baseline **out, int *n);

/* The rings of a row of the table, and the links that they have, to plan and simulate with; out->n is 0 where there are
 * none. out->rate may be less than the highest where it is not proven. Fails: LIMIT. */
Status baseline_rings(Ctx *ctx, const BaselineJob *job, int row, RingPacking *out);

/* NULL: the table has no such row. */
const char *baseline_name(int row);

enum { BASELINE_RANKS = 1024 };

#endif
