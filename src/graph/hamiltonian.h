/* Hamiltonian cycles, as many at once as the capacities of links allow. */
#ifndef BLINK_GRAPH_HAMILTONIAN_H
#define BLINK_GRAPH_HAMILTONIAN_H

#include "graph/cycle.h"

/* At most `most` cycles that fit the capacities together; none where none is found. The searches have limits in steps
 * (LIMIT_RINGS, LIMIT_RING_STEPS, LIMIT_RING_WALK), so that results depend on no clock. Run arena. */
Status cycles_pack(Ctx *ctx, const Topology *topo, int most, CyclePacking *out);

#endif
