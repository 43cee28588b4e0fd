/* blinkc simulate of programs, which name GPUs and no links: algorithms of MSCCL and plans of MSCCL++. */
#ifndef BLINK_VERB_SIMULATE_PROGRAM_H
#define BLINK_VERB_SIMULATE_PROGRAM_H

#include "base/text.h"
#include "simulate/msccl.h"
#include "simulate/mscclpp.h"
#include "verb/options.h"

/* One of the two; NULL: the other. */
typedef struct {
	const SimMsccl *msccl;
	const SimMscclpp *mscclpp;
} SimProgram;

const SimPlan *program_plan(const SimProgram *program);

/* The file of this label, an algorithm of MSCCL or a plan of MSCCL++, with ways_find. Fails as that does, and as the
 * readers, checks and bound_compute do. Run arena. */
Status program_read(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **whole,
    SimProgram *out);

#endif
