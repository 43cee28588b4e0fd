/* blinkc hierarchy: what it has found, and what it writes. */
#ifndef BLINK_VERB_HIERARCHIES_H
#define BLINK_VERB_HIERARCHIES_H

#include "base/text.h"
#include "hierarchy/hierarchy.h"
#include "simulate/simulate.h"

/* Jobs of more GPUs are not simulated: the schedule of 512 has 262144 edges. */
enum { HIERARCHY_SIMULATED = 512 };

/* Times of one algorithm, ps; -1: it has none. */
typedef struct {
	Hierarchy layers;	/* n = 0: another algorithm */
	int64_t cost, simulated;
} HierarchyRow;

typedef struct {
	const Topology *machine;
	HierarchyModel model;
	HierarchyFit fit;	/* n = 0: no measurements */
	bool exhaustive;
	int64_t tried;		/* of hierarchy_search */
	bool simulate;
	Executor executor;
	SimParameters p;
	int64_t chunk;		/* 0: the best one for each */
	int n_rows;
	HierarchyRow *row;	/* the best first */
	HierarchyRow ring, trees;	/* a flat ring; what blinkc plans by itself */
	int64_t least;		/* sim_least_time, or -1 */
} Hierarchies;

void hierarchies_text(const Hierarchies *h, Text *out);
void hierarchies_json(const Hierarchies *h, Text *out);

#endif
