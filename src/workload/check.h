/* Whether phases are what they say (blink-phases(5)). */
#ifndef BLINK_WORKLOAD_CHECK_H
#define BLINK_WORKLOAD_CHECK_H

#include "model/model.h"
#include "workload/workload.h"

/* Each schedule that they name is right, and for its group; all together take the time that is stated, and the prices
 * prove the bound. directory: where phases.json is, "" or with a slash at its end.
 * Fails: BAD_INPUT, UNVERIFIED, naming the file or phase; IO. */
Status phases_check(Ctx *ctx, const char *label, const char *directory, const Phases *phases);

/* The schedules of phase p, each with its links among those of the phases. *out: in the run arena. Fails: likewise. */
Status phases_load(Ctx *ctx, const char *directory, const Phases *phases, int p, PhaseGroups *out);

#endif
