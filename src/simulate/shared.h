/* Ranks of one server that share its memory: shared.c. */
#ifndef BLINK_SIMULATE_SHARED_H
#define BLINK_SIMULATE_SHARED_H

#include "simulate/simulate.h"

/* As sim_run, of ask->p.cores processors; ask->chunk: 0: as libblink chooses it. */
Status sim_shared(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out);

#endif
