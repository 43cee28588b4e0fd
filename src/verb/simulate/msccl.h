/* blinkc simulate of an algorithm of MSCCL: its GPUs and connections on a machine. */
#ifndef BLINK_VERB_SIMULATE_MSCCL_H
#define BLINK_VERB_SIMULATE_MSCCL_H

#include "base/text.h"
#include "simulate/msccl.h"
#include "verb/options.h"

/* The file of this label, on the GPUs of --gpus of --topology. Each connection takes the links that a hop of a schedule
 * between its two GPUs takes: over the links that are chosen for a job of these GPUs; where these do not join all that
 * send to each other, over the one route of each pair (RouteKind). Several ways of one cost, as by several NICs, are
 * taken in turn. Fails: USAGE no --topology; BAD_INPUT not so many GPUs; INFEASIBLE no links join two of them; as
 * msccl_read, msccl_check and bound_compute do. Run arena. */
Status program_read(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **whole,
    SimMsccl **out);

#endif
