/* Pairs of given weights. */
#ifndef BLINK_PLAN_PACK_FEW_PAIR_SEARCH_H
#define BLINK_PLAN_PACK_FEW_PAIR_SEARCH_H

#include "plan/pack/few/pair_halves.h"

/* False: no pairs have these weights, at a glance. Else p->w.choices is counted. */
bool pairs_begin(struct pairs *p, const struct weights *w);
/* After pairs_begin: p->found, or there are none, or p->steps are used up. */
void pairs_place(struct pairs *p);

#endif
