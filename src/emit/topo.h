/* What the writers of both spellings share. */
#ifndef BLINK_EMIT_TOPO_H
#define BLINK_EMIT_TOPO_H

#include "base/text.h"
#include "model.h"

/* What an entry of a file leaves out, since the class or the format says it. */
typedef struct {
	const Link *link;
	bool full;		/* and the link after it, which is its exact reverse */
	bool capacity, latency;	/* differ from those of the class: write them */
} LinkEntry;

LinkEntry topo_link_entry(const Topology *topo, int l);

/* Vertices as a file lists them: of kind k in node i, vertex[first[i * N_VERTEX_KINDS + k]] up to the next first;
 * those in no node are in node n_nodes. False: no memory. */
typedef struct {
	int *first, *vertex;
} FileOrder;

bool file_order(const Topology *topo, FileOrder *order);
void file_order_free(FileOrder *order);

/* Plural in JSON. */
const char *topo_plural(VertexKind kind);

/* Capacity of one physical link, GB/s. */
void topo_put_capacity(Text *text, int64_t capacity, int count);

#endif
