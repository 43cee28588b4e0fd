/* Hamiltonian cycles, as many at once as the capacities of links allow. */
#ifndef BLINK_GRAPH_HAMILTONIAN_H
#define BLINK_GRAPH_HAMILTONIAN_H

#include "model/model.h"

typedef struct {
	Edge *edge;		/* n_ranks, in order: each leads to the rank that the next one leaves */
	int64_t width;		/* capacity that it takes of its links, units */
} Cycle;

typedef struct {
	int n;
	Cycle *ring;
	int64_t unit;		/* bytes/s: the slowest physical link, or a part of it */
	int64_t units;		/* widths of all rings together */
	bool proven;		/* no other rings have more units together, of whole physical links */
} CyclePacking;

/* At most `most` cycles that fit the capacities together; none where none is found. The searches have limits in steps
 * (LIMIT_RINGS, LIMIT_RING_STEPS, LIMIT_RING_WALK), so that results depend on no clock. Run arena. */
Status cycles_pack(Ctx *ctx, const Topology *topo, int most, CyclePacking *out);

#endif
