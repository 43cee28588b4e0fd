/* Hamiltonian cycles. */
#ifndef BLINK_GRAPH_CYCLE_H
#define BLINK_GRAPH_CYCLE_H

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

#endif
