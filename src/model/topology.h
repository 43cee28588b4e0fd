/* Topology: GPUs, CPUs, switches and NICs, and the directed links between them. */
#ifndef BLINK_MODEL_TOPOLOGY_H
#define BLINK_MODEL_TOPOLOGY_H

#include "base/names.h"
#include "base/text.h"
#include "model/gpu_list.h"
#include "model/units.h"

/* name in files, plural in JSON */
#define VERTEX_LIST(X)                                                         \
	X(VERTEX_GPU, "gpu", "gpus")                                           \
	X(VERTEX_CPU, "cpu", "cpus")                                           \
	X(VERTEX_SWITCH, "switch", "switches")                                 \
	X(VERTEX_NIC, "nic", "nics")

typedef enum { VERTEX_LIST(ROW_NAME) N_VERTEX_KINDS } VertexKind;

/* name in files, what it is */
#define LINK_CLASS_LIST(X)                                                     \
	X(LINK_NVLINK, "nvlink", "NVLink between GPUs, or from a GPU to an NVSwitch or a POWER CPU") \
	X(LINK_XGMI, "xgmi", "AMD Infinity Fabric between GPUs")               \
	X(LINK_C2C, "c2c", "NVLink-C2C between a GPU and its CPU")             \
	X(LINK_PCIE, "pcie", "PCI Express")                                    \
	X(LINK_QPI, "qpi", "between CPU sockets: QPI, UPI, X-Bus, xGMI of EPYC") \
	X(LINK_NET, "net", "network: InfiniBand, Ethernet")

typedef enum { LINK_CLASS_LIST(ROW_NAME) N_LINK_CLASSES } LinkClass;

const char *vertex_kind_name(VertexKind kind);	/* "gpu" */
const char *vertex_kind_plural(VertexKind kind);	/* "gpus" */
const char *link_class_name(LinkClass class);	/* "nvlink" */
bool link_class_parse(const char *text, LinkClass *out);
extern const Names link_class_names;

/* A bit set of link classes, comma separated: "nvlink,net"; or "all". */
bool link_classes_parse(const char *text, unsigned *out);
NamesText link_classes_text(unsigned classes);	/* "nvlink,net" */

/* The one route that joins a pair of GPUs, from the first to the second, as peer access has it: over links of NVLink
 * alone, where these lead there through no other GPU; else of xGMI; else of any class but the network; else of any. */
typedef enum { ROUTE_NONE, ROUTE_NVLINK, ROUTE_XGMI, ROUTE_LOCAL, ROUTE_NET, N_ROUTE_KINDS } RouteKind;

/* Classes of the links of such a route, a bit set. */
unsigned route_classes(RouteKind kind);

typedef struct {
	const char *id;		/* see topo_id_valid; unique, in schedules within its server */
	VertexKind kind;
	int node;		/* index of its server; -1: in none, as a switch between servers */
	bool multicast, reduce;	/* a switch that copies to several links, or combines what comes over several */
	int64_t port;		/* bytes/s of a NIC's port, each way, for a fabric that joins it; 0: not given */
} Vertex;

/* One direction. Parallel physical links between two vertices that the hardware stripes over are one Link. */
typedef struct {
	int from, to;		/* vertices, different */
	LinkClass class;
	int count;		/* physical links in it, >= 1 */
	int64_t capacity;	/* bytes/s in this direction of all `count` together; a multiple of count */
	int64_t latency;	/* ns */
	const char *source;	/* where its numbers come from; NULL: that of its class */
	bool assumed;		/* its capacity is a guess, which neither its file nor an option states */
} Link;

/* A link class in a file: defaults for its links, and where they come from. */
typedef struct {
	bool given;
	int64_t capacity;	/* bytes/s of one physical link in each direction; 0: no default */
	int64_t latency;	/* ns; 0 if not given */
	const char *source;	/* or NULL */
} ClassDefault;

/* The time to switch peer access between NVLink and PCIe for a job of this number of GPUs (Blink 3.4). */
typedef struct {
	int gpus;
	int64_t time;		/* ns */
	const char *source;	/* or NULL */
} PeerAccess;

/* A parameter of an executor that a file gives, for the simulator (simulate/simulate.h has their names). */
typedef struct {
	const char *executor, *name;
	const char *class;	/* NULL: not of a link class */
	int64_t value, unit;	/* as the simulator has it; of the file: value / unit */
} Parameter;

typedef struct {
	int n, room;
	Parameter *of;		/* in the order of the simulator's tables, each once */
} Parameters;

/* Vertices 0 .. n_ranks-1 are the GPUs, in rank order; the others follow. So `v < n_ranks` asks whether a vertex
 * is a rank. `out` lists the links that leave a vertex, ascending: out[first_out[v] .. first_out[v + 1] - 1]; `in`
 * likewise those that enter it. */
typedef struct {
	const char *name;	/* any text of one line */
	const char *source;	/* or NULL */
	const char *gpu_model;	/* of all GPUs of a machine, as --gpu-model has it; NULL: not known, or a subset */
	int n_notes;		/* of a machine: a subset has none */
	const char **note;	/* lines for people: what its reader assumed or left out */
	const char *digest;	/* "sha256:..." of the canonical topology of the whole machine; a subset keeps it */
	int n_nodes;
	const char **node;	/* ids of the servers */
	int n_ranks, n_vertices;
	Vertex *vertex;
	int n_links;
	Link *link;
	ClassDefault class[N_LINK_CLASSES];
	int n_peer_accesses;
	PeerAccess *peer_access;	/* ascending by gpus, each once; of a machine: a subset has none */
	Parameters parameters;		/* of a machine: a subset has none */
	int *first_out, *out, *first_in, *in;
	/* Of a job: the RouteKind of each pair of ranks, from a to b at [a * n_ranks + b], which hops of trees keep to;
	 * NULL: hops may take any route. No file has it. */
	const unsigned char *route;
} Topology;

/* Its GPUs, for lists of them: in the scratch arena. Without servers those that ids name. */
Status topo_gpu_names(Ctx *ctx, const Topology *topo, GpuNames *out);

/* Fill first_out, out, first_in and in from the links. */
Status topo_index(Ctx *ctx, Topology *topo);

/* Other numbers for vertices: now[v], 0 to n - 1; -1: v is left out, with its links. Of several with one number the
 * first stays. vertex, link and the index of links are new; nodes and ranks stay as they are. */
Status topo_renumber(Ctx *ctx, const int *now, int n, Topology *topo);

/* 1 to LIMIT_ID_BYTES of A-Z a-z 0-9 _.:@/+- */
bool topo_id_valid(const char *id);

/* Every invariant of Topology in model.h. Fails: BAD_INPUT or LIMIT, saying which vertex or link. */
Status topo_check(Ctx *ctx, const char *label, const Topology *topo);

/* The largest rate, in bytes/s, of which every physical link's capacity is a multiple: "one link" where links have
 * equal capacities. */
int64_t topo_link_unit(const Topology *topo);

/* Classes of its links, a bit set. */
unsigned topo_classes(const Topology *topo);

/* Few enough ranks for a table of all their pairs? Fails: LIMIT. */
Status topo_check_pairs(Ctx *ctx, const Topology *topo);

/* Does a switch multicast or reduce? Then trees may share links, and of the bounds only cuts hold. */
bool topo_active(const Topology *topo);

/* Would schedule files be the same for both? Switches may have other numbers, but not other ids. */
bool topo_same_in_files(const Topology *a, const Topology *b);

/* kind[a * n_ranks + b]: of the route from rank a to rank b that these links have. Cost: a breadth-first search from
 * each rank for each kind. */
Status topo_pair_routes(Ctx *ctx, const Topology *topo, unsigned char *kind);

/* Time to switch peer access for a job of n GPUs, ns: the entry of n, else of the next larger, else of the largest.
 * False: the topology does not give one. */
bool topo_peer_access(const Topology *topo, int n, int64_t *time);

#endif
