/* Families of trees that the linear program may be limited to, one for each algorithm that has its own kind of tree. */
#ifndef BLINK_PLAN_FAMILY_H
#define BLINK_PLAN_FAMILY_H

#include "graph/graph.h"
#include "plan/plan.h"

#define ONEHOP_TREES "one-hop trees"
#define THREEPHASE_TREES "three-phase trees"

extern const Family onehop_family;	/* onehop.c */
extern const Family threephase_family;	/* threephase.c; its symmetries take servers to servers */

/* The bound need not be what trees of any kind, by any routes, reach: for few ranks the linear program over all of
 * them finds the optimum. *proof: stays, or a lower one. *others: the optimum, bytes/s; FRAC_ZERO: not known. */
Status plan_prove(Ctx *ctx, const Planning *in, Bound *proof, Frac *others);

/* How far an algorithm that reaches `rate` bytes/s is from what trees of any kind reach, for -v. plan: its best; the
 * proof becomes a lower one where those trees prove it. */
Status plan_compare(Ctx *ctx, const Planning *in, Frac rate, Plan *plan);

/* The linear program over a family, and how far its optimum is from what trees of any kind reach, for -v.
 * out->best: the optimum of the family. Fails: INFEASIBLE there are no such trees; LIMIT too large for the linear
 * program. */
Status plan_family(Ctx *ctx, const Planning *in, const Family *family, Plan *out);

#endif
