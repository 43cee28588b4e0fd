/* A Topology from the description of another tool: readers of foreign formats put their nodes, vertices and links in
 * any order, and the builder makes what topo_check and the writers want: valid and unique ids, GPUs first, the others
 * by node and kind, limits held before memory is spent.
 *
 * After a failure the builder no longer changes, and builder_finish returns the failure: readers check once, at the
 * end, or where a loop could be long. */
#ifndef BLINK_FORMAT_BUILDER_H
#define BLINK_FORMAT_BUILDER_H

#include "format/gpu_models.h"
#include "format/link_rates.h"

typedef struct TopologyBuilder TopologyBuilder;

/* label: what messages call the file. name, source: as of the Topology; any text, which is made one line; source may
 * be NULL. Memory: run arena. Fails: NO_MEMORY. */
Status builder_new(Ctx *ctx, const char *label, const char *name, const char *source, TopologyBuilder **out);

/* A server. id: any text; made valid and unique. Returns its handle, 0 for the first. */
int builder_node(TopologyBuilder *b, const char *id);

/* node: a handle, or -1 for a switch between servers. id: as above. GPUs become ranks in the order of their nodes, and
 * in a node in the order of these calls. Returns a handle for links. */
int builder_vertex(TopologyBuilder *b, VertexKind kind, int node, const char *id);

/* Of a NIC's port in each direction, bytes/s; clamped to what a topology may have. */
void builder_port(TopologyBuilder *b, int vertex, int64_t capacity);

/* The model of all GPUs; NULL: not known. */
void builder_gpus(TopologyBuilder *b, const GpuModel *model);

/* Defaults of a class: capacity of one physical link in bytes/s (0: that which most of its links have), latency in ns.
 * A class that has a link but was not given gets the latency that link_class_latency has. source may be NULL. */
void builder_class(TopologyBuilder *b, LinkClass class, int64_t capacity, int64_t latency, const char *source);

/* `count` physical links, each of `capacity` bytes/s in each direction; simplex: only from -> to. Latency: that of the
 * class. source: of the capacity; NULL: as its class. Links of capacity 0 or below, with a count below 1 or from a
 * vertex to itself are a defect of the reader. */
typedef enum { DUPLEX, SIMPLEX } Duplex;
void builder_link(TopologyBuilder *b, int from, int to, LinkClass class, int count, int64_t capacity, Duplex duplex,
    const char *source);

/* Capacities of the links of the last builder_link are guesses. */
void builder_link_assumed(TopologyBuilder *b);

/* The class of the links between GPUs of a model, with its rate. switched: they lead to a switch. */
void builder_gpu_links(TopologyBuilder *b, const GpuModel *model, bool switched);

/* The class of the links between n CPUs, and a line about them. */
#define SOCKET_NOTE "link between "
void builder_sockets(TopologyBuilder *b, int n, const SocketLink *link);

/* Links between all pairs of CPUs, with their class and a line. cpu: n vertices. */
void builder_join_cpus(TopologyBuilder *b, const int *cpu, int n, const SocketLink *link);

/* A line for people: what was assumed, left out or not understood. Equal lines are kept once. */
void builder_assume(TopologyBuilder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The id that a vertex got. */
const char *builder_id(const TopologyBuilder *b, int vertex);

/* OK, or what failed so far. */
Status builder_status(const TopologyBuilder *b);

/* *out: passes topo_check; has a digest. Cost: O(n log n). Fails: BAD_INPUT no GPU; LIMIT, NO_MEMORY. */
Status builder_finish(TopologyBuilder *b, Topology **out);

#endif
