/* A flow network of which capacities change a little from one flow to the next. */
#ifndef BLINK_GRAPH_NETWORK_H
#define BLINK_GRAPH_NETWORK_H

#include "base/status.h"

#define NETWORK_INFINITE INT64_MAX	/* no flow lowers it */

struct network_arc {
	int to, back;		/* vertex; the opposite arc */
	int64_t room;
};

typedef struct {
	int n, n_arcs;
	int *first;		/* arcs of a vertex: arc[first[v] .. first[v + 1] - 1] */
	struct network_arc *arc;
	int *level, *next, *queue;	/* work space of each vertex */
	int n_changed, *changed;	/* arcs that the current flow has changed */
	int64_t *was;		/* of each arc: its room before the flow, below 0: no flow has changed it */
	int *index;		/* of each arc: which of those that the network was built of; below 0: opposite */
	int64_t *excess;	/* of each vertex: work space, 0 between flows */
} Network;

/* What some arcs carried in a flow, by their index. */
struct network_kept {
	int n, room;		/* arcs; there is room for */
	struct network_load {
		int index;
		int64_t units;
	} *load;
};

/* Room for these numbers of vertices and arcs, in the scratch arena. */
Status network_new(Ctx *ctx, int vertices, int arcs, Network *out);

/* n vertices and n_arcs arcs, of no capacity yet. at[i]: where the arc of tail[i] and head[i] is, to set its `room`;
 * tail[i] < 0: there is none, and at[i] is -1. */
void network_build(Network *net, int n, int n_arcs, const int *tail, const int *head, int *at);

/* The maximum flow, or `enough` if that is less. Capacities stay. From: Dinic 1970. */
int64_t network_flow(Network *net, int from, int to, int64_t enough);

/* The same, which begins with what an earlier flow from there carried over arcs, as far as it still fits, and keeps
 * what this one carries over the first n arcs; perhaps more than `enough`. A vertex after `to` has one arc out of it,
 * to that: of its arcs the first. */
int64_t network_flow_again(Network *net, int from, int to, int64_t enough, const int *at, int n,
    struct network_kept *kept);

/* The same once, for a network that no other flow follows in: what it sends over an arc is missing in its room. */
int64_t network_send(Network *net, int from, int to, int64_t enough);

/* After a flow of less than `enough`: is v on the side of `from` of the minimum cut, the smallest such side? */
static inline bool
network_side(const Network *net, int v)
{
	return net->level[v] >= 0;
}

#endif
