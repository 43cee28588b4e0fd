/* How long an algorithm of MSCCL takes, on the links of a machine: what sim_run is for schedules. msccl.c has the
 * model. */
#ifndef BLINK_SIMULATE_MSCCL_H
#define BLINK_SIMULATE_MSCCL_H

#include "simulate/msccl_prepare.h"

/* ask: p as sim_msccl_parameters has it; chunk: bytes of a message, at most. out->n_chunks: messages that a chunk of
 * the algorithm is cut into. Fails: as sim_run does. Cost: about a us for a message. */
Status sim_msccl_run(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out);

/* As sim_msccl_run, with the power of two, from 4 KiB to what the protocol allows, that takes least time. */
Status sim_msccl_run_best(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out);

#endif
