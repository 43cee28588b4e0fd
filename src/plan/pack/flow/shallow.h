#ifndef BLINK_PLAN_PACK_FLOW_SHALLOW_H
#define BLINK_PLAN_PACK_FLOW_SHALLOW_H

#include "graph/split_off.h"

/* Hops of shallow trees through switches, which fit the capacities together: of one tree after the other, each
 * n_ranks - 1 hops that begin with one of its root, a parent's before its children's. In the scratch arena.
 * parts: the trees of a root are at first of its units / parts; more trees are less deep.
 * near_first: ranks send to near ones first, whatever those can send themselves.
 * some: where trees of all units do not fit, some are still wanted, of split_off; else the hops are of no use then.
 * *whole: they are of all units.
 * Random: none. Cost: a search through the switches for each hop. */
Status shallow_hops(Ctx *ctx, const Supply *supply, int parts, bool near_first, bool some, Hop **out, int *n,
    bool *whole);

/* A packing of these hops, which are of all units; unit: of them, bytes/s. Fails: LIMIT more trees than a schedule may
 * have. */
Status shallow_packing(Ctx *ctx, const Supply *supply, const Hop *hop, int n, Frac unit, Packing **out);

#endif
