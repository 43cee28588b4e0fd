/* How long a plan of MSCCL++ takes, on the links of a machine: what sim_run is for schedules. mscclpp.c has the
 * model. */
#ifndef BLINK_SIMULATE_MSCCLPP_H
#define BLINK_SIMULATE_MSCCLPP_H

#include "simulate/mscclpp_prepare.h"

/* ask: p as sim_mscclpp_parameters has it; chunk: is not looked at. out->chunk: bytes of the longest message;
 * out->n_chunks: units of the longest pipeline, 1 without any. Fails: as sim_run does. Cost: a us for a message. */
Status sim_mscclpp_run(Ctx *ctx, const SimMscclpp *plan, const SimAsk *ask, SimResult *out);

#endif
