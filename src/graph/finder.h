/* A search for Hamiltonian cycles: its state, and the rings that it has found. */
#ifndef BLINK_GRAPH_FINDER_H
#define BLINK_GRAPH_FINDER_H

#include "graph/cycle.h"
#include "graph/search.h"

struct finder {
	Ctx *ctx;
	const Topology *topo;
	Search search;
	int64_t unit;		/* bytes/s; of capacities and widths */
	int64_t *left;		/* of each link, units */
	Cycle *ring;
	int n_rings, most_rings;
	int64_t units;		/* of all rings */
	bool proven;		/* no other rings have more */
};

/* Each ring leaves each rank once, and enters it once: units that ranks have for them. */
int64_t units_of_ranks(const struct finder *p);

/* Capacities in parts of the slowest physical link. */
void set_units(struct finder *p, int parts);

/* hop: of each rank, in order. */
Status add_ring(struct finder *p, const int *hop, int64_t width);

#endif
