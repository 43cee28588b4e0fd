/* The verbs, in pipeline order, each with its contract. Every pass takes `const` nouns and returns a new one in
 * the run arena; on failure *out is untouched and ctx->error says why. None prints, exits, or keeps state. */
#ifndef BLINK_PASSES_H
#define BLINK_PASSES_H

#include "base/text.h"
#include "model.h"

/* ---- read ----- read/ : foreign parser types stop here ------------------------------------------------- */

/* A topology file, XML or JSON, told apart by its first character (blink-topology(5)).
 * label: what messages call the file, and its path. data: `size` bytes, any content.
 * dirs: where files are looked for that it names and that are not beside it, ended by NULL; NULL: it may name none.
 * *out: passes topo_check; has a digest. Fails: BAD_INPUT, LIMIT, NO_MEMORY; IO a file by reference cannot be read. */
Status topo_read(Ctx *ctx, const char *label, const char *const *dirs, const char *data, size_t size, Topology **out);

/* A topology file, as text, of what a line asks for: "server:4 gpu:8 switch:300 net:25" (blinkc(1)). Appended to *out.
 * Fails: USAGE, naming the item; LIMIT. */
Status synthetic_text(Ctx *ctx, const char *line, Text *out);

/* A schedule file (blink-schedule(5)); trusts nothing in it.
 * *out: passes sched_check: well formed, not yet right (sched_verify); achieved and bound are recomputed.
 * Fails: BAD_INPUT, LIMIT, NO_MEMORY; UNVERIFIED where the certificate proves nothing. */
Status sched_read(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out);

/* Below, at or above 0: the order of entries in an index. */
int index_order(const IndexEntry *a, const IndexEntry *b);

/* An index of schedules (blink-index(5)). Files that it names are not read. *out: in order, whatever order the file has.
 * Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status index_read(Ctx *ctx, const char *label, const char *data, size_t size, Index **out);

/* A cluster of servers that are alike. */
typedef struct {
	const char *name, *file;	/* file: of one server, beside the cluster's own */
	int servers;
	int64_t nic_rate;		/* bytes/s of each NIC's port; 0: as the server's file says */
	bool rails;
	int leaf;			/* servers of a leaf switch; 0: all */
	int64_t oversubscription;	/* times 1e9; 0: not said */
} ClusterRequest;

/* ---- topo.c -------------------------------------------------------------------------------------------- */

/* Fill first_out, out, first_in and in from the links. */
Status topo_index(Ctx *ctx, Topology *topo);

/* 1 to LIMIT_ID_BYTES of A-Z a-z 0-9 _.:@/+- */
bool topo_id_valid(const char *id);

/* Every invariant of Topology in model.h. Fails: BAD_INPUT or LIMIT, saying which vertex or link. */
Status topo_check(Ctx *ctx, const char *label, const Topology *topo);

/* The largest rate, in bytes/s, of which every physical link's capacity is a multiple: "one link" where links are alike. */
int64_t topo_link_unit(const Topology *topo);

/* Is there as much capacity from a to b as from b to a, for all vertices? */
Status topo_mirrored(Ctx *ctx, const Topology *topo, bool *out);

/* Likewise, if switches change places with others, as those that only lead out of a server with those that only lead in. */
Status topo_twinned(Ctx *ctx, const Topology *topo, bool *out);

/* Has it a switch that does more than forward? Then trees may share links, and of the bounds only cuts hold. */
bool topo_active(const Topology *topo);

/* "sha256:" and 64 hex digits of the canonical text, which emit_topo_canonical writes. */
Status topo_digest(Ctx *ctx, const Topology *topo, const char **out);

/* GPUs by index or id, comma separated: "1,4,5,6", "gpu3,gpu0". An id wins over an index. NULL: all, in order.
 * gpu: n_ranks entries. Fails: BAD_INPUT unknown, duplicate or none. */
Status topo_select(Ctx *ctx, const Topology *topo, const char *gpus, int *gpu, int *n);

/* Do schedule files say the same of both? Switches may have other numbers, but not other ids. */
bool topo_same_in_files(const Topology *a, const Topology *b);

/* Time to switch peer access for a job of n GPUs, ns: the entry of n, else of the next larger, else of the largest. False: the
 * topology says nothing of it. */
bool topo_peer_access(const Topology *topo, int n, int64_t *time);

/* ---- access.c ------------------------------------------------------------------------------------------ */

/* A job of these GPUs that uses the network (net is in `classes`) but not all links that lead to its NICs: a topology of the links
 * in use, with directed copies of CPUs, switches and NICs, "plx0:out" and "plx0:in", on the way to the nearest NICs and from
 * them. GPUs keep their numbers. *out: topo itself where nothing is to be copied. Fails: BAD_INPUT, LIMIT for ids of copies. */
Status topo_access(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned classes, const Topology **out);

/* ---- induce.c ------------------------------------------------------------------------------------------ */

/* The topology of a job: `gpu[0 .. n-1]` become ranks 0 .. n-1, other GPUs and their links go; of the links those of
 * `classes` (bit set) stay, and with net those on the way to it (topo_access); CPUs, switches and NICs that lead nowhere go.
 * Keeps name and digest. Fails: INFEASIBLE some rank cannot reach some other, naming both. */
Status topo_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Topology **out);

/* Link classes to use for these GPUs, as a bit set: the fastest class that connects them by itself; else the fastest that
 * connects those of each server, and all together with the network and the way to it; else the fastest of each server, and net, if they
 * connect all; else all. */
Status topo_default_classes(Ctx *ctx, const Topology *topo, const int *gpu, int n, unsigned *out);

/* ---- canon.c ------------------------------------------------------------------------------------------- */

enum { TOPO_FORM_BYTES = 32 };

/* The canonical form of a topology, some of whose ranks are marked: equal where two are the same machine, marks included, up to names
 * and numbers; names, digests and sources do not count, servers do.
 * mark: n_ranks, any numbers; NULL: all alike.
 * place: n_vertices, where each vertex goes; ranks to 0 .. n_ranks-1. Vertices of two topologies of one form that have the same
 * place are each other's images in an isomorphism.
 * orbit: n_ranks, the first rank that an automorphism, which keeps marks, takes to each. Both may be NULL.
 * nauty ends the process where memory runs out. From: McKay and Piperno 2014. */
Status topo_form(Ctx *ctx, const Topology *topo, const int *mark, unsigned char form[TOPO_FORM_BYTES], int *place, int *orbit);

/* ---- symmetry.c ---------------------------------------------------------------------------------------- */

/* A group of automorphisms that moves as many ranks as it can: none of the root's server (root -1: no root), and of the
 * others those whose servers have the most common size. SYMMETRY_NONE gives the group of one.
 * Cost: a sort of the links for each divisor of the number of ranks. Random: none. */
Status topo_symmetry(Ctx *ctx, const Topology *topo, int root, SymmetryKind wanted, Symmetry **out);

/* All elements: a walk begins at the identity, in the scratch arena, and false ends it, there again. */
Status symmetry_walk(Ctx *ctx, const Topology *topo, const Symmetry *sym, SymmetryWalk *out);
bool symmetry_next(SymmetryWalk *walk);

/* ---- bound.c ------------------------------------------------------------------------------------------- */

/* What no algorithm can beat, with its proof. Exact.
 * broadcast, reduce: minimum cut over all other ranks (Edmonds 1973; Blink 3.1).
 * allreduce: the least of the partition bound (Nash-Williams, Tutte; schedule-format.md, "Rate, bound and certificate")
 * and of the directed minimum cuts. Cost: O(n^2) maximum flows. Fails: INTERNAL other collectives. */
Status bound_compute(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *out);

/* Recompute from the certificate alone what it proves. Fails: UNVERIFIED where it proves nothing. */
Status bound_from_certificate(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root,
    const Bound *bound, Frac *out);

/* ---- plan/ --------------------------------------------------------------------------------------------- */

/* name in options, what it is */
#define PACKING_LIST(X)                                                        \
	X(PACKING_MWU, "mwu", "multiplicative weights: a rate within epsilon of the optimum") \
	X(PACKING_EXACT, "exact", "column generation: the optimal rate itself")

typedef enum {
#define X(name, text, what) name,
	PACKING_LIST(X)
#undef X
} PackingKind;

typedef struct {
	AlgorithmKind algorithm;
	Collective coll;
	int root;		/* -1: none */
	Frac epsilon;		/* 0 < epsilon < 1/2: allowed gap of MWU to the optimum, relative */
	Frac tolerance;		/* 0 <= tolerance < 1: gap to the optimum, as far as it is known, that fewer trees may leave */
	PackingKind packing;
	bool minimise;		/* false: keep the trees and rates of MWU, or of the linear program */
	int max_depth;		/* hops of a tree, up and down together; 0: any */
	int max_trees;		/* 0: any */
	bool binding;		/* the plan without these limits is known not to obey them */
	bool too_few;		/* the best rate at this depth is known to need more than max_trees */
	int variant;		/* 0: MWU starts from weights of 1 / capacity; others lean to other trees at first */
} Request;

/* A tree of its edges: `there` in any order (allreduce: `back` leads the other way, edge by edge), n_ranks - 1 of each.
 * root: of the collective; allreduce takes the centre. The longest branch comes first, since it ends last. */
Status tree_arrange(Ctx *ctx, int n_ranks, Collective coll, int root, const Edge *there, const Edge *back, int n_edges,
    Tree *out);

/* Hops from the farthest rank to the root, and from there to the farthest. work: n_ranks. */
int tree_depth(const Tree *tree, int *work);

/* Edges that begin or end at switches with multicast or reduce where that saves links, as model.h allows it.
 * reduces: the collective adds on the way up. work: n_vertices. */
void tree_share(const Topology *topo, bool reduces, Tree *tree, int *work);

/* Of the edges, whatever their order and wherever the root is: an allreduce's tree and its way back have the same ones. */
uint64_t tree_hash(const Tree *tree);

/* Pack arborescences (broadcast, reduce) or spanning trees (allreduce) by multiplicative weights.
 * Where links are not alike in both directions, a tree of an allreduce is a pair: an arborescence into a rank, and one out
 * of it.
 * topo: checked, connected, n_ranks >= 2.  bound: of the same request.
 * *out: n_trees >= 1; their rate is at least (1 - epsilon) times the optimum of packing such trees, less what rounding to
 * weights of 20 bits takes (n_trees / 2^20 at most).
 * *optimum: bytes/s, no less than that optimum: the bound, or what MWU's weights prove if that is less.
 * After LIMIT_MWU_ROUNDS it ends with the rate that it has. Random: none; variants are fixed sequences.
 * From: Blink 3.2; Garg and Koenemann 2007, fig. 1; we stop as soon as the bound proves the gap. */
Status pack_mwu(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out, Frac *optimum);

/* Fewer trees for (nearly) the same rate, by integer programs over the trees of `pack` (Blink 3.2.1). pack_select takes
 * each tree once or not at all, at the rate of one physical link; pack_minimise takes finer units of rate.
 * optimum: of packing such trees, bytes/s; no less than it.
 * *cells: what is left of LIMIT_ILP_CELLS; less when they return.
 * *possible: whole links come within tolerance at all.
 * *out: within ask->tolerance of the optimum, with the fewest trees that branch and bound finds in LIMIT_ILP_NODES; NULL
 * where it finds none, and where no cells are left. Fails: NO_MEMORY if GLPK does. */
Status pack_select(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Request *ask, int64_t *cells,
    bool *possible, Packing **out);
Status pack_minimise(Ctx *ctx, const Topology *topo, Frac optimum, const Packing *pack, const Request *ask, int64_t *cells,
    Packing **out);

/* The optimal rate over all trees, exactly, and what proves it. All collectives.
 * pool: more trees to start from, of a collective with one demand; may be NULL.
 * *out: the optimum; rounded, with a rate a little below it, where its numbers do not stay small; NULL if GLPK fails.
 * *proof: `bound`; or, where that is not tight, prices or lengths that prove the optimum, or one a little above it where
 * *out is rounded.
 * Fails: NO_MEMORY. Cost: a linear program of n_links + n_demands rows for each round of trees that come in. */
Status pack_exact(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Packing *pool,
    const Request *ask, Packing **out, Bound *proof);

/* As pack_exact, over the trees of ask->algorithm (family.h).
 * *proof: stays, but with ALGORITHM_TREES. *optimum: of these trees, bytes/s, proven; FRAC_ZERO where it is not.
 * Fails: INFEASIBLE there are no such trees. */
Status pack_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask, Packing **out,
    Bound *proof, Frac *optimum);

/* Broadcast or reduce at the bound by a few trees of one rate each, by a greedy choice (grow.c): for many servers.
 * bound: a cut, of the same request. *out: at the bound, else the best that it came to; NULL where it finds no tree.
 * Cost: the square of the ranks for each tree. */
Status pack_grow(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, Packing **out);

/* Every tree becomes its images under the group, each as heavy as it; images that are one tree are merged, and weights
 * divided by what divides all of them.
 * pack: trees of the first demand of each orbit, whose rates times the number of elements are right.
 * *out: ordered by demand; NULL where weights are out of range. Fails: LIMIT more trees or edges than a schedule may have. */
Status pack_unfold(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out);

/* Fewer images for the same loads, of a collective with one demand: servers are turned in themselves, each in its own way, so
 * that a tree's images under the coarse maps of the group alone load links that are alike equally (twist.c).
 * pack: as for pack_unfold.
 * *out: NULL where it finds no fewer than the whole group has. */
Status pack_twist(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out);

/* No link carries more than its capacity. load: work space of n_links. */
bool pack_fits(const Topology *topo, const Packing *pack, int64_t *load);

/* The fewest trees within ask->tolerance of the optimum, none deeper than ask->max_depth, for a collective with one demand: by
 * trying all of them, where there are at most LIMIT_FEW_TREES, no switches, and for allreduce as much capacity each way. With
 * ask->max_trees the highest rate of so many.
 * optimum: bytes/s; no less than the best rate of trees of that depth.
 * *out: NULL where that is not so, where no trees have that rate, or after LIMIT_FEW_NODES. *proven: no packing of fewer
 * trees has that rate (of as many has a higher one). */
Status pack_fewest(Ctx *ctx, const Topology *topo, Frac optimum, const Request *ask, Packing **out, bool *proven);

/* All these trees, with weights of 1: a pool. NULL where there are too many. */
Status pack_every(Ctx *ctx, const Topology *topo, const Request *ask, Packing **out);

/* The trees of both, each once; weights of 1: a pool to choose from, which need not fit the capacities. */
Status pack_pool(Ctx *ctx, const Packing *a, const Packing *b, Packing **out);

/* The least max_depth and max_trees for which there are trees at all. */
Status plan_least(Ctx *ctx, const Topology *topo, const Request *ask, int *depth, int *trees);

/* Which symmetries is it worth while to look for? Where they are found they are used. */
SymmetryKind plan_by_symmetry(const Topology *topo, const Request *ask);

/* Blink's planner: MWU, with PACKING_EXACT the linear program over its trees, then the ILP.
 * *proof: `bound`, or a lower one that the linear program proves. */
Status plan_trees(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask,
    Packing **out, Bound *proof);

/* By ask->algorithm: plan_trees, or the linear program over a family of trees.
 * *proof: as plan_trees, of all algorithms. *best: the optimum of the family, bytes/s; FRAC_ZERO where it is not proven. */
Status plan_algorithm(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask,
    Packing **out, Bound *proof, Frac *best);

/* Fails: LIMIT there would be more trees or edges than a schedule may have. */
Status plan_check_size(Ctx *ctx, const Topology *topo, Collective coll);
/* ---- hybrid.c ------------------------------------------------------------------------------------------ */

/* name in options, what it is */
#define HYBRID_LIST(X)                                                         \
	X(HYBRID_PEER, "peer", "switches peer access from NVLink to PCIe, which takes time")   \
	X(HYBRID_HOST, "host", "sends over PCIe through the memory of the host")

typedef enum {
#define X(name, text, what) name,
	HYBRID_LIST(X)
#undef X
} HybridKind;

bool hybrid_parse(const char *text, HybridKind *out);

/* The two parts of a job of these GPUs: over what the default classes would be without pcie and qpi, and over these two.
 * Fails: INFEASIBLE there are no others, or GPUs of several servers; BAD_INPUT nothing is known of peer access. */
Status hybrid_parts(Ctx *ctx, const Topology *machine, const int *gpu, int n, HybridKind kind, Part part[2]);

/* *job: as topo_induce makes it of all these classes, with the CPUs that data turns round in. *plane: what is planned on; it has
 * the same links, by the same numbers; HYBRID_HOST cuts its PCIe switches in two, so that data turns round in CPUs only.
 * Fails: INFEASIBLE; BAD_INPUT some PCIe switch does not lie below a CPU. */
Status hybrid_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Part part[2], HybridKind kind, Topology **plane,
    Topology **job);

/* Each part planned by itself, as plan_trees does, all in one schedule over `job`, with shares in proportion to their rates.
 * Its bound is that of any algorithm that uses all links of the job at once. Fails: as plan_trees does; INFEASIBLE a part does
 * not connect the ranks; LIMIT rates without a common unit. */
Status plan_hybrid(Ctx *ctx, const Topology *plane, const Topology *job, const Part *part, int n, const Request *ask, Schedule **out);

typedef struct {
	int trees, depth;
	Frac rate;		/* bytes/s */
} ParetoPoint;

/* The frontier of rate, number of trees and depth, as far as the planner finds it, the highest rate first: it plans for every
 * depth, and for each of them with fewer and fewer trees. */
Status plan_pareto(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask,
    ParetoPoint **out, int *n);

/* A unit in which trees of `rate` bytes/s together have weights of 20 bits; of fewer where capacities are that large. */
Frac pack_unit(const Topology *topo, double rate, int n_demands);

/* Algorithm bandwidth, bytes/s: rate of a demand, times M by its size; false where that needs more than 64 bits. */
bool pack_rate(const Packing *pack, Collective coll, int n_ranks, Frac *out);

/* Every invariant of Packing in model.h. Fails: INTERNAL. */
Status pack_check(Ctx *ctx, const Topology *topo, const Packing *pack);

/* ---- index.c ------------------------------------------------------------------------------------------- */

/* Is a schedule for the machine of the index? Are its GPUs those of the machine, by the same numbers? What an entry says of a schedule: collective, ranks, root, rates to 15 digits, trees,
 * depth. sched: as sched_read made it. label: what messages call the entry. Fails: BAD_INPUT. */
Status index_check_machine(Ctx *ctx, const char *label, const Index *index, const Schedule *sched);
Status index_check_gpus(Ctx *ctx, const char *label, const Index *index, const Topology *machine);
Status index_check_entry(Ctx *ctx, const char *label, const IndexEntry *entry, const Schedule *sched);

/* ---- schedule.c ---------------------------------------------------------------------------------------- */

/* Rates to exact segments, one per tree, in order; achieved rate recomputed from them. */
Status sched_build(Ctx *ctx, const Topology *topo, const Bound *bound, const Request *ask, const char *algorithm,
    const Packing *pack, Schedule **out);

/* Structure: ranges, edges parent-first and leaf-first, links that lead from src to dst, segments inside the buffer
 * and, in block collectives, inside one block. Fails: BAD_INPUT, naming the place. */
Status sched_check(Ctx *ctx, const char *label, const Schedule *sched);

/* 1 / max over links of load / capacity, bytes/s. FRAC_ZERO where nothing moves. Fails: LIMIT out of 64 bits. */
Status sched_achieved(Ctx *ctx, const char *label, const Schedule *sched, Frac *out);

/* Of each link: the sum, over trees, of length times edges that use it, as a part of M. load: n_links. Fails: LIMIT out of 64 bits. */
Status sched_loads(Ctx *ctx, const char *label, const Schedule *sched, Frac *load);

/* begin, end and rate of each part, from the segments: part[n_parts], of which the rest stays. Fails: LIMIT out of 64 bits. */
Status sched_parts(Ctx *ctx, const char *label, const Schedule *sched, Part *part);

/* Where a segment lies in its part of its block, or in the block where there are no parts: 0 <= begin < end <= 1. False: that
 * needs more than 64 bits. */
bool sched_extent(const Schedule *sched, const Segment *segment, Frac *begin, Frac *end);

/* Longest chain of hops of any tree, up and down together. */
Status sched_depth(Ctx *ctx, const Schedule *sched, int *out);

/* ---- split.c ------------------------------------------------------------------------------------------- */

/* How messages are divided between parts, by their rates and setups (Blink 3.4, eq. 8).
 * sched: its parts have begin and end, and it has its achieved rate.
 * *out: n_parts stages, for larger and larger messages, each with the end of every part but the last; the last stage that begins
 * at or below M holds.
 * Fails: LIMIT out of 64 bits. */
Status sched_split(Ctx *ctx, const char *label, const Schedule *sched, PartEnd **out);

/* The ends of all parts in bytes of a message of M bytes: end[n_parts]. split: n_parts stages. */
void split_message(const PartEnd *split, int n_parts, int64_t m, int64_t *end);

/* What such a message takes, all parts together; of a schedule without parts, too. For people: in double precision. */
double split_seconds(const Schedule *sched, int64_t m);

/* What tables hold of it: add = high * 2^62 + low, 0 <= low < 2^62. */
void part_end_add(const PartEnd *end, int64_t *high, int64_t *low);

/* ---- verify.c ------------------------------------------------------------------------------------------ */

/* Replay the data movement exactly, as multisets of contributions per rank and segment, and hold the result, the
 * rate, the bound and its certificate against what the file says (schedule-format.md, "What must hold").
 * Fails: UNVERIFIED, naming the first tree, rank or link that is wrong.
 * Cost: the number of links of all edges and of ranks in all `to`, and a sort of the trees; what the certificate takes. */
Status sched_verify(Ctx *ctx, const char *label, const Schedule *sched);

/* ---- relabel.c ----------------------------------------------------------------------------------------- */

/* The schedule in the ranks of another job: rank[i], each of 0 .. n_ranks-1 once, is whose place rank i takes.
 * in: passes sched_check. *out: is to its job what `in` is to its own, tree by tree. Fails: LIMIT, NO_MEMORY. */
Status sched_relabel(Ctx *ctx, const Schedule *in, const int *rank, Schedule **out);

/* ---- lower.c ------------------------------------------------------------------------------------------- */

/* What each rank does for every chunk. sched: verified. */
Status lower(Ctx *ctx, const Schedule *sched, Program **out);

/* ---- emit/ : bytes depend on nothing but the noun ------------------------------------------------------ */

void emit_topo_json(const Topology *topo, Text *out);
void emit_topo_xml(const Topology *topo, Text *out);
void emit_topo_canonical(const Topology *topo, Text *out);	/* what the digest is of */
void emit_cluster(const ClusterRequest *ask, Text *out);
void emit_index(const Index *index, Text *out);
void emit_sched_json(const Schedule *sched, Text *out);
Status emit_cu(Ctx *ctx, const Program *prog, const char *digest, Text *out);	/* digest: of the schedule's JSON */

#endif
