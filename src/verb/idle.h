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


/* Are routes of pairs, over PCIe where GPUs have no link of their own, a better default for this machine? */
typedef struct {
	bool taken;
	unsigned links;		/* the fastest classes, which are the default else */
	Frac fastest, pairs;	/* bytes/s of an allreduce over all GPUs: the bound of these; the rate by pairs */
} PairGain;

/* By the whole machine, so that all its jobs have one default: of one server with few GPUs whose fastest links join
 * them, if pairs gain more than 5 % in an allreduce and no link of theirs is a guess. Then the result is ROUTES_PAIR,
 * else ask->routes, as where links, routes or algorithms are asked for. Cost: a plan, not for fewer trees. */
Routes routes_default(const Ctx *ctx, const Topology *machine, const Ask *ask, PairGain *out);

#endif
