/* The entries of a topology file, whatever its spelling. */
#ifndef BLINK_FORMAT_WRITE_TOPOLOGY_H
#define BLINK_FORMAT_WRITE_TOPOLOGY_H

#include "model/model.h"

/* A link, without what follows from its class or from the format. */
typedef struct {
	const Link *link;
	bool full;		/* and the link after it, which is its exact reverse */
	bool capacity, latency;	/* differ from those of the class: write them */
} LinkEntry;

LinkEntry topo_link_entry(const Topology *topo, int l);

/* Of one executor, and one list by link class or none? */
bool parameters_together(const Parameter *a, const Parameter *b);

/* Vertices as a file lists them: of kind k in node i, vertex[first[i * N_VERTEX_KINDS + k]] up to the next first;
 * those in no node are in node n_nodes. False: no memory. */
typedef struct {
	int *first, *vertex;
} FileOrder;

bool file_order(const Topology *topo, FileOrder *order);
void file_order_free(FileOrder *order);

#endif
