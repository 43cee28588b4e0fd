/* blinkc simulate of programs that name GPUs, and no links: the ways between their GPUs on a machine. */
#ifndef BLINK_VERB_SIMULATE_WAYS_H
#define BLINK_VERB_SIMULATE_WAYS_H

#include "model/model.h"
#include "simulate/simulate.h"
#include "verb/options.h"

/* Each pair takes the links that a hop of a schedule between its two GPUs takes: over the links that are chosen for a
 * job of the n GPUs of --gpus of --topology; where these do not join all pairs, over the one route of each pair
 * (RouteKind). Several ways of one cost, as by several NICs, are taken in turn. what: of the file of this label, for
 * messages. *topo: of the job. route: of each pair. Fails: USAGE no --topology; BAD_INPUT not so many GPUs; INFEASIBLE
 * no links join two of them. Run arena. */
Status ways_find(Ctx *ctx, const Options *opt, const char *label, const char *what, int n, const SimPair *pair,
    int n_pairs, const Topology **whole, Topology **topo, SimRoute *route);

/* The same over these links, alone. *found: false: they do not join all pairs. */
Status ways_over(Ctx *ctx, const Topology *topo, const SimPair *pair, int n_pairs, SimRoute *route, bool *found);

#endif
