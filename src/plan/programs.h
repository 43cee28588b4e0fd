#ifndef BLINK_PLAN_PROGRAMS_H
#define BLINK_PLAN_PROGRAMS_H

#include "model/model.h"

/* Trees of a tree collective by the linear program, or by MWU where it has no answer.
 * bound: of the same request.  *proof: that, or what proves the optimum where it is lower, as pack_exact has it.
 * Fails: LIMIT too large for the linear program; as pack_exact does. Cost: that of pack_exact, a few times. */
Status plan_programs(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Ask *ask,
    Packing **out, Bound *proof);

#endif
