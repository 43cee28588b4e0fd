/* From a machine to the topology of a job: GPUs, link classes, the links in use, symmetry, digest. */
#ifndef BLINK_TOPOLOGY_TOPOLOGY_H
#define BLINK_TOPOLOGY_TOPOLOGY_H

#include "base/text.h"
#include "model/model.h"

/* Links that a job may use. */
typedef struct {
	unsigned classes;	/* a bit set */
	const Topology *topo;	/* that has them: the machine, or what topo_nic_paths makes of it */
	bool pairs;		/* chosen for topo_induce_pairs; topo is NULL */
	bool hosts;		/* data turns back in the CPUs of servers that have GPUs: they lead somewhere */
} JobLinks;

/* Links of these classes; with net (the network) also those that lead to its NICs. Where the classes themselves do not
 * lead there, out->topo has directed copies of CPUs, switches and NICs, "plx0:out" and "plx0:in", on shortest paths to
 * the nearest NICs and from them; GPUs keep their numbers. of_node: NULL, or the classes of links within each server.
 * Fails: BAD_INPUT, LIMIT for ids of copies. */
Status topo_nic_paths(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes,
    const unsigned *of_node, JobLinks *out);

/* The same for classes that fit these GPUs: the fastest class that connects them by itself; else the fastest that
 * connects those of each server, and all together with the network and what leads to it; else the fastest of each
 * server, and net, if they connect all; else all. But where NVLink or xGMI joins some of the GPUs, and is faster than
 * other classes that were chosen so: out->pairs, and all classes.
 * routes: ROUTES_ANY: never pairs; ROUTES_PAIR: pairs, whatever connects them. */
Status topo_choose_links(Ctx *ctx, const Topology *machine, const int *gpu, int n, Routes routes, JobLinks *out);

/* The class, but for net, whose links out of all GPUs have the most capacity together, and the capacity of those out of
 * the GPU that has the least of them, bytes/s; 0: GPUs have no links. */
typedef struct {
	LinkClass class;
	int64_t capacity;
} FastestLinks;

FastestLinks topo_fastest_links(const Topology *topo);

/* The topology of a job: `gpu[0 .. n-1]` become ranks 0 .. n-1; other GPUs and their links are dropped, and so are
 * CPUs, switches and NICs that lead nowhere. links: for these GPUs. Keeps name and digest.
 * Fails: INFEASIBLE some rank cannot reach some other, naming both. */
Status topo_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const JobLinks *links, Topology **out);

/* The same over links of these classes, where the hop between two GPUs keeps to the one route that joins them
 * (RouteKind): (*out)->route. Links that are on no route are dropped, and PCIe of servers where no pair needs it leads
 * to NICs alone. Fails: as both of the above. */
Status topo_induce_pairs(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Topology **out);

/* Choice of links and topology together. classes: 0: those that fit. hosts: JobLinks, unless by pairs. *links: what was
 * chosen. */
Status topo_of_job(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Routes routes,
    bool hosts, JobLinks *links, Topology **out);

/* The topology of a job of an index that has its machine. gpu: by their numbers in the index. Fails: INFEASIBLE also
 * where a GPU is lost. */
Status topo_of_index_job(Ctx *ctx, const Index *index, const Topology *machine, const int *gpu, int n, Topology **out);

/* The two parts of a job of these GPUs: over what the default classes would be without pcie and qpi, and over these
 * two.
 * Fails: INFEASIBLE there are no others, or GPUs of several servers; BAD_INPUT nothing is known of peer access. */
Status hybrid_parts(Ctx *ctx, const Topology *machine, const int *gpu, int n, HybridKind kind, Part part[2]);

/* *job: as topo_induce makes it of all these classes. *planning_topology: what is planned on; it has the same links, by
 * the same numbers; with HYBRID_HOST its PCIe switches are split in two, so that data can turn back towards GPUs only
 * in a CPU. Fails: INFEASIBLE; BAD_INPUT some PCIe switch is not below a CPU. */
Status hybrid_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Part part[2], HybridKind kind,
    Topology **planning_topology, Topology **job);

/* ---- change.c: parts that are lost, and GPUs that forward ---- */

/* A vertex with all its links, or links between two vertices in both directions. */
typedef struct {
	int a, b;	/* vertices, a < b; b -1: the vertex a */
	int count;	/* of the links, how many physical ones in each direction; 0: all */
} Loss;

/* Comma separated: "gpu3-gpu5", all links between the two; "gpu3-gpu5:1", one of them in each direction; "mlx5_2" or
 * "nic:mlx5_2", a vertex with its links; "gpu:3", a GPU by its index; "s5:0-3", GPUs of a server, by their places in
 * it. A text that is an id is that vertex.
 * Fails: BAD_INPUT (without) the machine has no such part. */
Status topo_losses(Ctx *ctx, const Topology *machine, const char *text, Loss **out, int *n);

/* As topo_losses reads it: the one name that files have. */
Status topo_losses_name(Ctx *ctx, const Topology *machine, const Loss *loss, int n, const char **out);

/* Each single loss: between two vertices one physical link, and where there are more all of them; each GPU, NIC and
 * switch. Links come first, in their order. */
Status topo_single_losses(Ctx *ctx, const Topology *machine, Loss **out, int *n);

/* The machine without these parts, all at once. Its digest is that of the machine's file with them taken out; its name
 * says what is lost. gpu: of each GPU of the machine its number in *out; -1: it is lost. There may be no GPU left. */
Status topo_without(Ctx *ctx, const Topology *machine, const Loss *loss, int n, Topology **out, const int **gpu);

/* The machine whose GPUs with relay[g] are switches that forward, as far as its jobs go; name and digest stay. gpu: of
 * each vertex of the machine its number in *out. */
Status topo_relays(Ctx *ctx, const Topology *machine, const bool *relay, Topology **out, const int **gpu);

/* ---- what a machine is, for people ---- */

/* These GPUs, in this order, with all else of their servers and the switches of no server, and the links between them.
 * Keeps name and digest. Unlike topo_induce it keeps what leads nowhere. */
Status topo_restrict(Ctx *ctx, const Topology *machine, const int *gpu, int n, Topology **out);

/* All links of a class between two vertices a < b; [0] from a to b, [1] back. */
typedef struct {
	int a, b;
	LinkClass class;
	int links[2];		/* entries of the topology */
	int first[2];		/* the first of them; -1: none */
	int count[2];		/* physical links */
	int64_t capacity[2];	/* bytes/s, of all */
} LinkPair;

/* In the order of their first links. Cost: a sort of the links. */
Status topo_link_pairs(Ctx *ctx, const Topology *topo, LinkPair **out, int *n);

/* How two devices are joined: name, as nvidia-smi and rocm-smi have it, what it says; each is worse than the one before
 * it */
#define JOIN_LIST(X) \
	X(JOIN_SELF, "X", "itself") \
	X(JOIN_NVLINK, "NV#", "# NVLinks, direct or through NVSwitches") \
	X(JOIN_XGMI, "XGMI#", "# links of Infinity Fabric; rocm-smi prints XGMI, without #, also where GPUs are " \
	    "joined by way of others") \
	X(JOIN_PIX, "PIX", "PCIe, over one switch at most") \
	X(JOIN_PXB, "PXB", "PCIe, over several switches, and no CPU") \
	X(JOIN_PHB, "PHB", "PCIe, over one CPU; nvidia-smi has NODE where it has several host bridges") \
	X(JOIN_NODE, "NODE", "PCIe, over several CPUs that PCIe joins") \
	X(JOIN_SYS, "SYS", "PCIe, over links between CPU sockets") \
	X(JOIN_NONE, "-", "no way within the server")

typedef enum { JOIN_LIST(ROW_NAME) N_JOINS } JoinKind;

const char *join_name(JoinKind kind);
const char *join_what(JoinKind kind);

typedef struct {
	JoinKind kind;
	int count;		/* the # of its name */
} Joined;

/* Entry i * n + j: from device i to device j. cpu: the one next to a device; -1: none. */
typedef struct {
	Joined *entry;
	int *cpu;
} Matrix;

/* device: n vertices, GPUs or NICs. Cost: their square, and the links of their servers for each. */
Status topo_matrix(Ctx *ctx, const Topology *topo, const int *device, int n, Matrix *out);

enum { CANONICAL_FORM_BYTES = 32 };

/* The canonical form of a topology whose ranks are coloured by marks: equal for two topologies if and only if they are
 * isomorphic, marks, servers and that pairs have routes included; names, digests and sources do not count.
 * mark: n_ranks, any numbers; NULL: all equal.
 * place: n_vertices, the canonical number of each vertex, ranks 0 .. n_ranks-1. Vertices of two topologies of one form
 * that have the same place are each other's images in an isomorphism.
 * orbit: n_ranks, the first rank of the orbit of each under automorphisms that keep marks. Both may be NULL.
 * After NO_MEMORY in nauty each further call fails so, too; in a few places nauty ends the process.
 * From: McKay and Piperno 2014. */
Status topo_canonical_form(Ctx *ctx, const Topology *topo, const int *mark, unsigned char form[CANONICAL_FORM_BYTES],
    int *place, int *orbit);

/* A group of automorphisms that moves as many ranks as it can: none of the root's server (root -1: no root), and of the
 * others those whose servers have the most common size. SYMMETRY_NONE gives the group of one. SYMMETRY_WHOLE_SERVERS
 * moves servers as a whole, those that most GPUs are in of such as colour refinement does not tell apart: their links,
 * NICs and switches are the same, too.
 * Cost: a sort of the links for each divisor of the number of ranks. Random: none. */
Status topo_symmetry(Ctx *ctx, const Topology *topo, int root, SymmetryKind wanted, Symmetry **out);

/* Does a map keep what it should? vertex, link: images. */
typedef struct {
	bool (*test)(const void *with, const int *vertex, const int *link);
	const void *with;
} SymmetryTest;

/* The same, of any maps without a root, by maps that each pass the test; their powers and products have to, too. */
Status topo_symmetry_keeping(Ctx *ctx, const Topology *topo, const SymmetryTest *keeps, Symmetry **out);

/* "sha256:" and 64 hex digits of the canonical text, which emit_topo_canonical writes. */
Status topo_digest(Ctx *ctx, const Topology *topo, const char **out);

/* The canonical text, which the digest is of. */
void topo_canonical_text(const Topology *topo, Text *out);

#endif
