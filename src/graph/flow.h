/* Maximum flows and minimum cuts of a topology, in integers of 128 bits. */
#ifndef BLINK_GRAPH_FLOW_H
#define BLINK_GRAPH_FLOW_H

#include "model/model.h"

#define FLOW_INFINITE ((Wide)1 << 120)

struct arc {
	int to;
	Wide capacity;		/* residual; arc a ^ 1 is the reverse arc */
};

/* About the ns of one maximum flow, for out_of_time. */
#define FLOW_WORK(topo) (1000 * (int64_t)((topo)->n_links + (topo)->n_vertices))

/* The links of a topology, and for each vertex an arc from the source to it and an arc from it to the sink. */
typedef struct {
	Ctx *ctx;
	const Topology *topo;
	int n, source, sink;
	struct arc *arc;	/* 2l and 2l + 1 are link l; then those of the source, then those of the sink */
	int *first, *list;	/* arcs by vertex */
	int *level, *next, *queue;
	bool sided;		/* level: of the vertices on the source's side, and of no other */
} Flow;

Status flow_new(Ctx *ctx, const Topology *topo, Flow *out);	/* in the scratch arena */

/* Links have their capacities times `scale`, the arcs of source and sink none. reversed: every link is reversed. */
void flow_reset(Flow *f, int64_t scale, bool reversed);

/* The capacity of the arc from the source to v, and from v to the sink. */
void flow_from_source(Flow *f, int v, Wide capacity);
void flow_to_sink(Flow *f, int v, Wide capacity);

/* The maximum flow from source to sink, from no flow or the last one. From: Dinic 1970. Cost: O(n^2 m); few phases in
 * practice. */
Wide flow_max(Flow *f);

/* After flow_max: is v on the source's side of the minimum cut, the smallest such side? */
bool flow_side(Flow *f, int v);

/* The maximum flow, from a reset, from all ranks of a set to rank r that is not in it; into: from r to them. For the
 * least cut between one rank and any other, the set is that rank and those whose cuts are known: a lower one has them
 * all on one side. */
int64_t flow_past(Flow *f, const bool *in_set, int r, bool into);

#endif
