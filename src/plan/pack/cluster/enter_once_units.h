/* Units of the rate of the trees of enter_once.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_UNITS_H
#define BLINK_PLAN_PACK_CLUSTER_ENTER_ONCE_UNITS_H

#include "plan/pack/cluster/enter_once_grow.h"

/* The fewest units, of `from` to `to`, by which arcs lose nothing, or else the least; 0: too many arcs differ. Links of
 * `most` times the rate or more do not count. */
void entering_units(const struct grower *g, Frac rate, int from, int to, double most, int *out);

#endif
