/* What pairs that are not yet placed can still use of the links. */
#ifndef BLINK_PLAN_PACK_FEW_PAIR_SLACK_H
#define BLINK_PLAN_PACK_FEW_PAIR_SLACK_H

#include "plan/pack/few/pair_halves.h"

/* By the weights of pairs j .. k - 1: p->waste[j]; and, from that, p->extra[j]. */
void pairs_measure_waste(struct pairs *p, int j);
void pairs_measure_uses(struct pairs *p, int j);

/* After pairs 0 .. j - 1 are placed, the others having `remaining` units of weight together: how often each of them may
 * use each link, and the spanning trees that are left to it, in p->level[j]. False: one of them has no place. */
bool pairs_look_ahead(struct pairs *p, int j, int remaining);

#endif
