/* The nouns of blinkc, their units and invariants. Read this first, then passes.h.
 *
 *   read    ->  Topology       XML or JSON, with the files of servers that it names
 *   induce  ->  Topology       only the GPUs and link classes that the job was given, and its way to the network
 *   alike   ->  Symmetry       servers and ranks that need to be planned only once
 *   bound   ->  Bound          what no schedule can beat, and the cut or partition that proves it
 *   plan    ->  Packing        weighted trees: the linear program, the fewest; or mwu, then minimise; or of one family,
 *                              one-hop or three-phase
 *   hybrid                     from induce to build for NVLink and for PCIe, joined as parts of one schedule
 *   build   ->  Schedule  -+-> verify            exact: is every rank's result right?
 *                          +-> split             which part moves how much of a message
 *                          +-> emit              json
 *                          +-> explain           trees, loads and proof, for people: text, svg, dot, and the page of a report
 *                          +-> diff              what changed in meaning
 *                          +-> lower -> Program -> emit cu, or the runtime's executor
 *   batch   ->  Index          the same for many sets of GPUs, those of one form once: which schedule is whose
 *
 * Units. Capacities and rates are exact, in bytes/s: an int64_t, or a Frac where they are quotients; files and
 * messages show them in GB/s = 1e9 bytes/s. Latencies are in ns; files show us. Positions in the user's buffer
 * are exact fractions of it. There are no byte counts before a schedule is run. */
#ifndef BLINK_MODEL_H
#define BLINK_MODEL_H

#include "base/frac.h"
#include "base/limits.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTES_PER_GB INT64_C(1000000000)
#define NS_PER_US INT64_C(1000)

/* ---- Topology ---------------------------------------------------------------------------------------- */

/* name in files, plural in JSON */
#define VERTEX_LIST(X)                                                         \
	X(VERTEX_GPU, "gpu", "gpus")                                           \
	X(VERTEX_CPU, "cpu", "cpus")                                           \
	X(VERTEX_SWITCH, "switch", "switches")                                 \
	X(VERTEX_NIC, "nic", "nics")

typedef enum {
#define X(name, one, many) name,
	VERTEX_LIST(X)
#undef X
	N_VERTEX_KINDS
} VertexKind;

/* name in files, what it is */
#define LINK_CLASS_LIST(X)                                                     \
	X(LINK_NVLINK, "nvlink", "NVLink between GPUs, or from a GPU to an NVSwitch or a POWER CPU") \
	X(LINK_XGMI, "xgmi", "AMD Infinity Fabric between GPUs")               \
	X(LINK_C2C, "c2c", "NVLink-C2C between a GPU and its CPU")             \
	X(LINK_PCIE, "pcie", "PCI Express")                                    \
	X(LINK_QPI, "qpi", "between CPU sockets: QPI, UPI, X-Bus, xGMI of EPYC") \
	X(LINK_NET, "net", "network: InfiniBand, Ethernet")

typedef enum {
#define X(name, text, what) name,
	LINK_CLASS_LIST(X)
#undef X
	N_LINK_CLASSES
} LinkClass;

const char *vertex_kind_name(VertexKind kind);	/* "gpu" */
const char *link_class_name(LinkClass class);	/* "nvlink" */
bool link_class_parse(const char *text, LinkClass *out);

typedef struct {
	const char *id;		/* [A-Za-z0-9_.:@/+-], 1 to LIMIT_ID_BYTES bytes; unique, in schedules within its server */
	VertexKind kind;
	int node;		/* index of its server; -1: in none, as a switch between servers */
	bool multicast, reduce;	/* a switch that copies to several links, or combines what comes over several */
	int64_t port;		/* bytes/s of a NIC's network port, each way, for a fabric that joins it; 0: not said */
} Vertex;

/* One direction. Parallel physical links between two vertices that the hardware stripes over are one Link. */
typedef struct {
	int from, to;		/* vertices, different */
	LinkClass class;
	int count;		/* physical links in it, >= 1 */
	int64_t capacity;	/* bytes/s in this direction of all `count` together; a multiple of count */
	int64_t latency;	/* ns */
	const char *source;	/* where its numbers come from; NULL: as its class says */
} Link;

/* What a file says of a link class: defaults for its links, and where they come from. */
typedef struct {
	bool given;
	int64_t capacity;	/* bytes/s of one physical link in each direction; 0: no default */
	int64_t latency;	/* ns; 0 where nothing is said */
	const char *source;	/* or NULL */
} ClassDefault;

/* What it takes to switch peer access between NVLink and PCIe for a job of so many GPUs (Blink 3.4). */
typedef struct {
	int gpus;
	int64_t time;		/* ns */
	const char *source;	/* or NULL */
} PeerAccess;

/* Vertices 0 .. n_ranks-1 are the GPUs, in rank order; the others follow. So `v < n_ranks` asks whether a vertex
 * is a rank. `out` lists the links that leave a vertex, ascending: out[first_out[v] .. first_out[v + 1] - 1]; `in`
 * likewise those that enter it. */
typedef struct {
	const char *name;	/* any text of one line */
	const char *source;	/* or NULL */
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
	int *first_out, *out, *first_in, *in;
} Topology;

/* ---- Symmetry --------------------------------------------------------------------------------------- */

/* What maps are looked for: none, all that there are, or those that take servers to servers. */
typedef enum { SYMMETRY_NONE, SYMMETRY_ANY, SYMMETRY_SERVERS } SymmetryKind;

enum { SYMMETRY_MAPS = 16 };	/* more than levels of a machine: GPUs of a server, servers of a rack, racks */

typedef struct {
	int order;		/* applied so often it is the identity; >= 2 */
	const int *vertex, *link;	/* images: ranks go to ranks, links to links of the same class and capacity */
	const int *near_vertex, *near_link;	/* images where it moves the ranks of the first lead's block, and no others; NULL:
						 * that is no automorphism, or there is one block */
} SymmetryMap;

/* A commutative group of automorphisms of a topology: the direct product of the cyclic groups of its maps. A rank is moved
 * by every element but the identity, or by none. Links in one orbit have one number. */
typedef struct {
	int n_maps;
	SymmetryMap *map;
	int size;		/* elements of the group: the product of the orders; 1: nothing is known to be alike */
	int n_orbits;		/* of links, numbered by their first link */
	int *link_orbit, *orbit_size;
	int n_leads, *lead;	/* one rank of each orbit of ranks, its first, ascending */
} Symmetry;

/* The element at hand, as images of vertices and links; the identity at first. */
typedef struct {
	const Topology *topo;
	const Symmetry *sym;
	int count[SYMMETRY_MAPS];
	int *vertex, *link;
} SymmetryWalk;

/* ---- Collectives ------------------------------------------------------------------------------------- */

/* name, has a root, reduces, blocks of the buffer: 0 = none, 1 = n blocks, 2 = n * n */
#define COLLECTIVE_LIST(X)                                                     \
	X(BROADCAST, "broadcast", true, false, 0)                              \
	X(REDUCE, "reduce", true, true, 0)                                     \
	X(ALLREDUCE, "allreduce", false, true, 0)                              \
	X(GATHER, "gather", true, false, 1)                                    \
	X(SCATTER, "scatter", true, false, 1)                                  \
	X(ALLGATHER, "allgather", false, false, 1)                             \
	X(REDUCESCATTER, "reducescatter", false, true, 1)                      \
	X(ALLTOALL, "alltoall", false, false, 2)

typedef enum {
#define X(name, text, rooted, reduces, blocks) name,
	COLLECTIVE_LIST(X)
#undef X
	N_COLLECTIVES
} Collective;

enum { EVERY_RANK = -1 };

const char *collective_name(Collective coll);
bool collective_parse(const char *text, Collective *out);
bool collective_rooted(Collective coll);
bool collective_reduces(Collective coll);
bool collective_has_blocks(Collective coll);
int64_t collective_blocks(Collective coll, int n_ranks);	/* blocks in the buffer: 1, n or n * n */

/* Who holds block b before, and who needs it after: one rank, or EVERY_RANK (schedule-format, "What must hold").
 * A reducing collective starts with every rank's own contribution. */
int collective_holder(Collective coll, int n_ranks, int root, int64_t block);
int collective_needer(Collective coll, int n_ranks, int root, int64_t block);

/* What a collective asks of trees: blocks of the buffer, alike in size, each along trees of its own kind. */
typedef enum {
	DEMAND_SPREAD,		/* out of `from`, to every rank */
	DEMAND_COLLECT,		/* from every rank into `to` */
	DEMAND_BOTH,		/* into any one rank and out of it again */
	DEMAND_CARRY		/* from `from` to `to`, along a path */
} DemandKind;

typedef struct {
	DemandKind kind;
	int from, to;		/* ranks; -1: any, or every one */
	int64_t block;		/* which block of the buffer */
} Demand;

/* Number of demands, which are ordered by block; blocks that stay where they are ask nothing. Demand d of them. */
int collective_demands(Collective coll, int n_ranks);
Demand collective_demand(Collective coll, int n_ranks, int root, int d);

/* The other way: the number of the demand with these ends. */
int collective_demand_of(Collective coll, int n_ranks, int root, int from, int to);

/* M by the size of one demand: the algorithm bandwidth is so many times the rate of a demand. */
int collective_shares(Collective coll, int n_ranks);

/* ---- Algorithms -------------------------------------------------------------------------------------- */

/* name in options and files, its trees, what it is */
#define ALGORITHM_LIST(X)                                                      \
	X(ALGORITHM_TREES, "trees", "trees", "all")                              \
	X(ALGORITHM_ONEHOP, "onehop", "one-hop trees", "one hop to or from the root, for GPUs that all have one to each other") \
	X(ALGORITHM_THREEPHASE, "threephase", "three-phase trees", "each server over its own links, and one hop between servers")

typedef enum {
#define X(name, text, trees, what) name,
	ALGORITHM_LIST(X)
#undef X
	N_ALGORITHMS
} AlgorithmKind;

const char *algorithm_name(AlgorithmKind algorithm);	/* "onehop" */
const char *algorithm_trees(AlgorithmKind algorithm);	/* "one-hop trees" */
bool algorithm_parse(const char *text, AlgorithmKind *out);

/* ---- Trees, packings --------------------------------------------------------------------------------- */

/* A hop of a tree: data goes from rank src to rank dst over these links in order, through no third rank. An edge
 * down may begin at a switch with multicast, which copies what the last edge before it through that switch brought from the
 * same src; an edge up of a reducing collective may end at a switch with reduce, which adds it to what the last edge before it
 * through that switch takes to the same dst. */
typedef struct {
	int src, dst;
	int n_links;
	const int *link;
} Edge;

/* `down` is an arborescence out of root, parent-first; `up` one into it, leaf-first. A tree may have either or both. */
typedef struct {
	int root;
	int n_down, n_up;
	Edge *down, *up;
} Tree;

/* Edge i of all, down before up. */
static inline const Edge *
tree_edge(const Tree *tree, int i)
{
	return i < tree->n_down ? &tree->down[i] : &tree->up[i - tree->n_down];
}

enum { PACKING_BITS = 50 };	/* of all weights together: 4096 ranks use no link so often that loads overflow */

/* Trees with rates, which are whole multiples of one unit: tree t carries weight[t] * unit bytes/s. The sum over
 * trees of rate * (edges that use link l) is at most capacity(l), for every l. */
typedef struct {
	int n_trees;
	Tree *tree;
	int *demand;		/* of each tree, ascending; NULL: the collective has one demand */
	int64_t *weight;	/* of each tree, >= 1; the same sum for each demand; together at most 2^PACKING_BITS */
	Frac unit;		/* bytes/s, above 0 */
} Packing;

/* ---- Bound ------------------------------------------------------------------------------------------- */

/* name in files */
#define CERTIFICATE_LIST(X)                                                    \
	X(CERTIFICATE_CUT, "cut")                                              \
	X(CERTIFICATE_PARTITION, "partition")                                  \
	X(CERTIFICATE_PRICES, "prices")                                        \
	X(CERTIFICATE_LENGTHS, "lengths")

typedef enum {
#define X(name, text) name,
	CERTIFICATE_LIST(X)
#undef X
	N_CERTIFICATES
} CertificateKind;

const char *certificate_name(CertificateKind kind);	/* "cut" */
bool certificate_parse(const char *text, CertificateKind *out);

/* No algorithm's algorithm bandwidth exceeds `rate`. The certificate proves it:
 *   cut         part[v] is 1 for the vertices on the side, else 0
 *   partition   part[v] is the part of vertex v, 0 .. n_parts-1, or -1 outside (switches only)
 *   prices      price[l] >= 0, rate is the sum of capacity * price: every tree of the collective costs at least 1
 *   lengths     price[l] >= 0, likewise, for collectives of blocks: the cheapest trees of all demands together cost at
 *               least M by the size of a demand (the dual of a maximum concurrent flow) */
typedef struct {
	Frac rate;		/* bytes/s; FRAC_ZERO with n_ranks = 1, where nothing moves */
	CertificateKind kind;
	int n_parts;
	int *part;		/* n_vertices, for cut and partition */
	Frac *price;		/* n_links, for prices and lengths */
} Bound;

/* ---- Schedule ---------------------------------------------------------------------------------------- */

typedef struct {
	Frac offset, length;	/* of the whole buffer; 0 <= offset, 0 < length, offset + length <= 1 */
	int part;		/* 0 in a schedule without parts */
	Tree tree;
	int n_to;		/* 0: serves every rank that the collective serves */
	int *to;		/* ascending */
} Segment;

/* A part of a hybrid schedule: trees over link classes of their own, which carry a share of every block. The segments are those
 * of large messages, where shares are in proportion to rates; split.c says what they are at other sizes. */
typedef struct {
	unsigned classes;	/* bit set, not empty; no class is in two parts */
	int64_t setup;		/* ns until its trees can start */
	Frac begin, end;	/* its share of each block: from the end of the part before to that of its own last segment */
	Frac rate;		/* bytes/s of algorithm bandwidth of its trees, had they links and buffer for themselves; exact */
	double stated_rate;	/* GB/s, as a file says; 0 in a schedule that no file said */
} Part;

typedef struct {
	const char *key, *value;	/* value is JSON text, already escaped: "0.05", "[0,3]", "\"nvlink\"" */
} Option;

/* The schedule file in memory (blink-schedule(5)). */
typedef struct {
	const char *generator, *version;	/* the program that made it */
	int n_options;
	Option *option;		/* what was asked */
	const Topology *topo;	/* ranks in order, and exactly the links that the planner was allowed to use */
	Collective coll;
	int root;		/* -1: none */
	const char *algorithm;
	Frac achieved;		/* bytes/s of algorithm bandwidth: 1 / max over links of load / capacity; exact */
	Bound bound;		/* its rate is what the certificate proves; exact */
	double stated_achieved, stated_bound;	/* GB/s, as a file says; 0 in a schedule that no file said */
	int n_parts;		/* 0: none */
	Part *part;
	int n_segments;
	Segment *segment;	/* "trees" in the file: each a segment and its tree */
} Schedule;

/* Where a part ends in a message of M bytes, from a size on: at byte floor((num * M + add) / den) of it. */
typedef struct {
	int64_t from;		/* least M for which this holds */
	int64_t num, den;
	Wide add;		/* |add| < 2^124 */
} PartEnd;

/* ---- Index ------------------------------------------------------------------------------------------- */

/* A job for which there is a schedule: GPU gpu[i] of the machine is rank i of the job, and plays rank[i] in the file. */
typedef struct {
	int n;			/* GPUs */
	const int *gpu, *rank;
	Collective coll;
	int root;		/* rank of the job; -1: none */
	const char *file;	/* relative to the index; no part of it is ".." */
	double rate, bound;	/* GB/s, as the file states them */
	int trees, depth;
} IndexEntry;

/* What `blinkc batch` made for a machine, which a runtime looks up (blink-index(5)). Entries are in order: by the number of GPUs, the
 * GPUs as a list, the collective, the root. No two are for the same. */
typedef struct {
	const char *name, *digest;	/* of the machine */
	int n_gpus;
	const char **gpu;		/* ids, by their index in the machine */
	int n_entries;
	IndexEntry *entry;
} Index;

/* ---- Program ----------------------------------------------------------------------------------------- */

/* What is executed, for every chunk of every segment. A stream executes its steps in order; steps of different
 * streams run at once unless one waits for the other. Only lower.c, emit/cu.c and the runtime's executor see it. */

typedef enum { PLACE_INPUT, PLACE_OUTPUT, PLACE_SCRATCH } PlaceKind;

typedef struct {
	PlaceKind kind;		/* the rank's send buffer, its receive buffer, or a ring of scratch chunks */
	int rank;		/* whose memory */
	int ring;		/* PLACE_SCRATCH: which ring; chunk c lies in slot c % PROGRAM_RING of it */
} Place;

typedef enum { STEP_COPY, STEP_REDUCE } StepOp;

/* COPY: to = from, over `edge`.  REDUCE: to = from op with, all on one rank; `with` came over `edge`. */
typedef struct {
	StepOp op;
	bool up;		/* which phase it belongs to */
	const Edge *edge;
	Place to, from, with;
	int stream;
	int after;		/* step of another stream that makes what it reads of the same chunk; -1: none */
	int n_before;
	int *before;		/* steps of other streams that still read chunk c - PROGRAM_RING in the slot that it fills */
	int event;		/* what others wait for; -1: none waits for this step */
} Step;

typedef struct {
	int rank;		/* whose GPU the stream belongs to: the sender of a copy */
	int segment;
	bool up;
	const Edge *edge;	/* the edge that it copies over; NULL: it reduces */
} Stream;

/* Each ring has one edge that fills it: what arrives for a reduction, a sum (edge NULL), or what a rank passes on. */
typedef enum { RING_ARRIVAL, RING_SUM, RING_RELAY } RingUse;

typedef struct {
	int rank;		/* whose memory it lies in */
	int segment;
	RingUse use;
	const Edge *edge;
} Ring;

/* Where a segment lies in the buffers of the ranks that hold or need it. They are cut into blocks of `count`
 * elements, and a block into parts, of `n` elements each; the segment is element floor(begin * n) up to, not including,
 * floor(end * n) of its part. Without parts a block is one. */
typedef struct {
	int64_t send_block, recv_block;
	int part;
	Frac begin, end;
} Extent;

enum { PROGRAM_RING = 2 };	/* chunks that a scratch ring holds: one arriving while one is read */

typedef struct {
	const Schedule *sched;
	bool keep_input;	/* a tree may write where another still reads, if sent and received in place */
	Extent *extent;		/* of each segment */
	int n_parts;		/* at least 1 */
	PartEnd *part_end;	/* n_parts stages of n_parts - 1 each: see sched_split */
	int n_streams, n_rings, n_events, n_steps;
	Stream *stream;
	Ring *ring;
	Step *step;		/* of segment s: first_step[s] .. first_step[s + 1] - 1, in order of issue */
	int *first_step;
} Program;

#endif
