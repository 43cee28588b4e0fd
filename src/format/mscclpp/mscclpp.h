/* Execution plans of MSCCL++, in JSON, as its executor loads them: MSCCL++ 0.9.0, commit 1f5f065. */
#ifndef BLINK_FORMAT_MSCCLPP_H
#define BLINK_FORMAT_MSCCLPP_H

#include "base/text.h"
#include "model/mscclpp.h"
#include "model/schedule.h"

bool mscclpp_is(const char *data, size_t size);

/* A file. What numbers mean is not checked: mscclpp/mscclpp.h does that. label: what messages call it.
 * Fails: BAD_INPUT no JSON, a member is missing or of another kind, an unknown operation, buffer, channel or
 * collective; LIMIT; NO_MEMORY. Memory of *out: run. */
Status mscclpp_read(Ctx *ctx, const char *label, const char *data, size_t size, Mscclpp **out);

void mscclpp_write(const Mscclpp *plan, Text *out);

/* A schedule as a plan (from_schedule.c): in packets, for small messages; in place: for calls whose input and output
 * are one buffer. It passes mscclpp_check. Fails: INFEASIBLE the schedule has parts; packets or in place cannot be;
 * LIMIT, naming what MSCCL++ has no room for. Memory of *out: scratch. */
Status mscclpp_from_schedule(Ctx *ctx, const Schedule *sched, bool packets, bool in_place, Mscclpp **out);

#endif
