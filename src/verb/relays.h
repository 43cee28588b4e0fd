/* What GPUs that forward add to a job. */
#ifndef BLINK_RELAYS_H
#define BLINK_RELAYS_H

#include "compile.h"
#include "view/view.h"

/* The relays that carry data in a schedule for gpu[0 .. n-1], and the rate of the same job without any. Cost: that of
 * another plan. Fails: as compile does. */
Status relays_find(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, const Schedule *sched,
    RelayGain *out);

#endif
