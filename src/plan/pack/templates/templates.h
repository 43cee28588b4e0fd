/* Trees of machines that are too large for a table of all pairs of ranks. */
#ifndef BLINK_PLAN_PACK_TEMPLATES_TEMPLATES_H
#define BLINK_PLAN_PACK_TEMPLATES_TEMPLATES_H

#include "model/model.h"

/* Trees of representatives for machines too large for a table of all pairs of ranks (templates.c): of an allreduce,
 * allgather or reducescatter, at a rate near the bound, if it is not at the bound.
 * *out: has a symmetry; NULL: there are no such trees, or routes from switches are too many. Fails: LIMIT a route of
 * more than LIMIT_ROUTE_LINKS links. Random: none.
 * Cost: a search from each switch next to GPUs, and one for each representative, a dozen times. */
Status pack_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound,
    Packing **out);
/* Whether it would look for trees: false: there are none. */
bool pack_templates_serves(const Topology *topo, const Symmetry *sym, Collective coll);

#endif
