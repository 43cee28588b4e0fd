/* Families of trees: what the linear program may be limited to, each with a search for its cheapest tree. Unlike trees of limited
 * depth these are the cheapest that there are, so the rate is the optimum of the family. */
#ifndef BLINK_FAMILY_H
#define BLINK_FAMILY_H

#include "cheapest.h"

/* From now on cheapest_find finds trees of the algorithm's family. sym: as cheapest_new has it; for three-phase trees, maps
 * take servers to servers. In the scratch arena.
 * Fails: INFEASIBLE where hops that the family is made of are missing; later cheapest_find does, where a demand has no tree. */
Status family_use(Cheapest *c, AlgorithmKind algorithm, const Symmetry *sym);

Status onehop_use(Cheapest *c);
Status threephase_use(Cheapest *c, const Symmetry *sym);

#endif
