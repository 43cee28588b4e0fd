/* An allreduce by the trees of an allgather. */
#ifndef BLINK_PLAN_TURNED_H
#define BLINK_PLAN_TURNED_H

#include "model/model.h"

/* Each tree with a way up, which is its way down turned back. *out: NULL where not each link has one back that is as
 * fast. Fails: LIMIT too many edges. */
Status plan_turn(Ctx *ctx, const Topology *topo, const Packing *gather, Packing **out);

#endif
