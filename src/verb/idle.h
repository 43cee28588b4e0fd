/* What the machine has between the GPUs of a job that its schedule does not use. */
#ifndef BLINK_IDLE_H
#define BLINK_IDLE_H

#include "compile.h"
#include "view/view.h"

/* What is idle, and what it would add: --hybrid and --routes pair planned for these GPUs where the links were chosen
 * and are those of one server with few GPUs; else the bound over all links, of few GPUs. Nothing of a hybrid schedule,
 * and where it is not found out, for want of memory. ask, made: what was asked, and what came of it. Cost: that of two
 * plans without a search for fewer trees. */
void idle_find(const Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, const Compiled *made,
    Idle *out);

#endif
