/* Orbits of trees under permutations of the ranks. */
#ifndef BLINK_PLAN_PACK_FEW_ORBITS_H
#define BLINK_PLAN_PACK_FEW_ORBITS_H

#include "plan/pack/few/enumerate.h"

/* After trees_enumerate: t->orbit, and for an allreduce t->rooted. */
Status trees_orbits(struct trees *t);

#endif
