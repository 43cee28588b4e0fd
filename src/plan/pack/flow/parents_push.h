/* How ranks choose other parents until no link has too much (parents.c). */
#ifndef BLINK_PLAN_PACK_FLOW_PARENTS_PUSH_H
#define BLINK_PLAN_PACK_FLOW_PARENTS_PUSH_H

#include "plan/pack/flow/parents_grow.h"

/* Edges that have too much push ranks of trees to other hops, none of them above level p->most. Trees may be left
 * out, as far as p->spare has it. Returns whether no edge has too much then. */
bool parents_push(struct parents *p);

#endif
