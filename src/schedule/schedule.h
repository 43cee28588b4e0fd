/* What a schedule means: build, check, loads, split, certificate, verify, relabel, lower. */
#ifndef BLINK_SCHEDULE_SCHEDULE_H
#define BLINK_SCHEDULE_SCHEDULE_H

#include "base/text.h"
#include "model/model.h"
#include "model/rank_program.h"

/* Rates to exact segments, one per tree, in order; compact where the packing has a symmetry; achieved rate, and
 * those of parts, recomputed from them.
 * algorithm: its name. Fails: LIMIT out of FRAC_BITS. */
Status sched_build(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, const char *algorithm,
    const Packing *pack, Schedule **out);

/* What was asked, with defaults filled in, so that the file can be made again: the options of the schedule.
 * classes: of the links in use. */
Status sched_record(Ctx *ctx, const Ask *ask, unsigned classes, Schedule *sched);

/* Which links the schedule may use, read back from its options: out->links, out->routes, out->hybrid, out->without and
 * out->relays.
 * Fails: BAD_INPUT, with the option in error.asked. */
Status sched_recorded_links(Ctx *ctx, const Schedule *sched, Ask *out);

/* Structure: ranges, edges parent-first and leaf-first, links that lead from src to dst, segments inside the buffer
 * and, in block collectives, inside one block. Fails: BAD_INPUT, naming the place. */
Status sched_check(Ctx *ctx, const char *label, const Schedule *sched);

/* Of a compact schedule, which sched_check calls it for: the group is one of automorphisms of the links, and images of
 * segments lie inside the buffer. Cost: the number of links times that of maps, squared. Fails: BAD_INPUT, LIMIT. */
Status sched_check_symmetry(Ctx *ctx, const char *label, const Schedule *sched);

/* A compact schedule with all trees listed (schedule/images.h). in: passes sched_check. *out: as verified as `in` is.
 * Fails: LIMIT more trees or edges than a list may have, or segments that need more than 64 bits. */
Status sched_expand(Ctx *ctx, const char *label, const Schedule *in, Schedule **out);

/* The other way: representatives, whose images under this group are all trees of the schedule, in their order.
 * in: passes sched_check. *out: shares topo, sym and what else it can; NULL: the group does not make them.
 * Cost: that of sched_expand. */
Status sched_fold(Ctx *ctx, const Schedule *in, const Symmetry *sym, Schedule **out);

/* Does every edge keep to the route of its pair (RouteKind), as its links have it? For schedules with ROUTES_PAIR.
 * Fails: BAD_INPUT, naming the first edge that does not. */
Status sched_check_routes(Ctx *ctx, const char *label, const Schedule *sched);

/* 1 / max over links of load / capacity, bytes/s. FRAC_ZERO where nothing moves. Fails: LIMIT out of FRAC_BITS. */
Status sched_achieved(Ctx *ctx, const char *label, const Schedule *sched, Frac *out);

/* Of each link: the sum, over trees, of length times edges that use it, as a part of M. load: n_links. Fails: LIMIT
 * out of FRAC_BITS. */
Status sched_loads(Ctx *ctx, const char *label, const Schedule *sched, Frac *load);

/* matrix.c. Of an alltoall: what each link carries of these bytes, n_ranks * n_ranks of them, in bytes; what its links
 * take for them, us; what lengths prove that any takes at least, us. sched_add_matrix: the matrix of a schedule that
 * was planned for it. sched_check_matrix: that of a file, if it has one. Fails: LIMIT out of FRAC_BITS; UNVERIFIED a
 * time or a bound is not as stated. */
Status sched_matrix_loads(Ctx *ctx, const char *label, const Schedule *sched, const int64_t *bytes, Frac *load);
Status sched_matrix_time(Ctx *ctx, const char *label, const Schedule *sched, const int64_t *bytes, double *us);
Status sched_matrix_bound(Ctx *ctx, const char *label, const Topology *topo, const ByteMatrix *matrix, double *us);
Status sched_add_matrix(Ctx *ctx, const int64_t *bytes, const int64_t *length, Schedule *sched);
Status sched_check_matrix(Ctx *ctx, const char *label, const Schedule *sched);

/* begin, end and rate of each part, from the segments: part[n_parts], of which the rest stays. Fails: LIMIT out of
 * 64 bits. */
Status sched_parts(Ctx *ctx, const char *label, const Schedule *sched, Part *part);

/* Where a segment lies in its block: 0 <= begin < end <= 1. */
void sched_block_extent(const Schedule *sched, const Segment *segment, Frac *begin, Frac *end);

/* begin and end of each part: it ends where the last of its segments does, in whichever block, and begins where the one
 * before it ends. part: n_parts, of which the rest stays. */
void sched_part_spans(const Schedule *sched, Part *part);

/* Where a segment lies in its part of its block, or in the block where there are no parts: 0 <= begin < end <= 1.
 * False: that needs more than 64 bits. */
bool sched_extent(const Schedule *sched, const Segment *segment, Frac *begin, Frac *end);

/* The block that a segment lies in; 0 in a collective without blocks. */
int64_t sched_segment_block(const Schedule *sched, const Segment *segment);

/* The same place in the buffers of the ranks that hold or need it. Fails: LIMIT more than 64 bits. */
Status sched_segment_extent(Ctx *ctx, const Schedule *sched, const Segment *segment, Extent *out);

/* May a tree write where another still reads, if buffers are sent and received in place? Memory: scratch. */
Status sched_overlaps(Ctx *ctx, const Schedule *sched, bool *out);

/* Longest chain of hops of any tree, up and down together. */
Status sched_depth(Ctx *ctx, const Schedule *sched, int *out);

/* How messages are divided between parts, by their rates and setups (Blink 3.4, eq. 8).
 * sched: its parts have begin and end, and it has its achieved rate.
 * *out: n_parts stages, for larger and larger messages, each with the end of every part but the last; the last stage
 * that begins at or below M holds.
 * Fails: LIMIT out of FRAC_BITS. */
Status sched_split(Ctx *ctx, const char *label, const Schedule *sched, PartEnd **out);

/* The ends of all parts in bytes of a message of M bytes: end[n_parts]. split: n_parts stages. */
void split_message(const PartEnd *split, int n_parts, int64_t m, int64_t *end);

/* Seconds that the bytes of a message of m take, of a schedule with parts or without. For people: in double
 * precision. */
double split_seconds(const Schedule *sched, int64_t m);

/* Of each part, or latency[0] where there are none: ns along the longest path of its trees, up and down, over the links
 * of each hop. */
Status sched_latency(Ctx *ctx, const Schedule *sched, int64_t *latency);

/* Link classes with links that have no latency, a bit set. */
unsigned sched_without_latency(const Schedule *sched);

/* Seconds that a message of m bytes takes: its bytes, and the latency of the parts that carry some. It is a lower
 * estimate: as if data moved on in chunks without a size. split: as sched_split makes it; NULL: no parts. */
double sched_seconds(const Schedule *sched, const PartEnd *split, const int64_t *latency, int64_t m);

/* The same, if the first part carried all of it. sched: has parts. */
double sched_seconds_alone(const Schedule *sched, const int64_t *latency, int64_t m);

/* What tables hold of it: add = high * 2^62 + low, 0 <= low < 2^62. */
void part_end_add(const PartEnd *end, int64_t *high, int64_t *low);

/* Of a cut or a partition: does what enters the side or the parts count, or what leaves them? */
bool bound_enters(const Topology *topo, Collective coll, const Bound *bound);

/* Does a link count in the certificate? enters: bound_enters, of a cut or a partition. */
bool bound_counts(const Topology *topo, const Bound *bound, bool enters, int link);

/* Links of assumed capacity that count in the certificate. */
Assumed bound_assumed(const Topology *topo, Collective coll, const Bound *bound);

/* Recompute from the certificate alone what it proves: of prices and lengths only once certificate_check has searched
 * for the cheapest trees, which is what takes long. Fails: UNVERIFIED where it proves nothing. */
Status bound_from_certificate(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root,
    const Bound *bound, Frac *out);
Status certificate_check(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root,
    const Symmetry *sym, const Bound *bound);

/* Replay the data movement exactly, as multisets of contributions per rank and segment, and hold the result, the
 * rate, the bound and its certificate against what the file states (schedule-format.md, "What must hold").
 * What takes little comes first, and prices last. Sets sched->achieved and sched->bound.rate.
 * Fails: UNVERIFIED, naming the first tree, rank or link that is wrong; LIMIT past LIMIT_VERIFY_STEPS.
 * Cost: the number of links of all edges and of ranks in all `to`, and a sort of the trees; what the certificate
 * takes. */
Status sched_verify(Ctx *ctx, const char *label, Schedule *sched);

/* The same of a schedule that passes sched_check, and whose rate is known, as readers leave it. */
Status sched_verify_read(Ctx *ctx, const char *label, Schedule *sched);

/* The same of a schedule whose trees come one by one, and need not stay: after verify_begin its segments are appended,
 * and verify_tree sees number t before the next; when it has returned, the edges may be forgotten. All other members
 * are there from the start, but achieved, which verify_end sets with bound.rate. sched: neither compact nor in parts.
 * Fails: as sched_check and sched_verify, but with what is wrong in the first tree, where more are. Then scratch memory
 * is the caller's to release. */
typedef struct Verification Verification;
Status verify_begin(Ctx *ctx, const char *label, Schedule *sched, Verification **out);
Status verify_tree(Verification *v, int t);
Status verify_end(Verification *v);

/* The schedule in the ranks of another job: rank i of that job takes the place of rank rank[i]; rank is a permutation.
 * in: passes sched_check; may be compact, as *out is then. *out: is to its job what `in` is to its own, tree by
 * tree. Fails: LIMIT, NO_MEMORY. */
Status sched_relabel(Ctx *ctx, const Schedule *in, const int *rank, Schedule **out);

/* Is a schedule for the machine of the index? Has the index the GPUs of this machine, by the same numbers?
 * sched: as sched_read made it. label: what messages call the index. Fails: BAD_INPUT. */
Status index_check_machine(Ctx *ctx, const char *label, const Index *index, const Schedule *sched);
Status index_check_gpus(Ctx *ctx, const char *label, const Index *index, const Topology *machine);

/* Entries whose files may serve an isomorphic job: of this collective, number of GPUs and form (topo_invariant), one
 * for each file, in the order of their files. Entries without a form may, too. */
Status index_candidates(Ctx *ctx, const Index *index, Collective coll, int n, uint64_t form, const IndexEntry ***out,
    int *n_out);

/* Is the job of this topology and root that of the schedule? rank: n_ranks, the rank of the schedule that each one is.
 * Steps are counted. Fails: LIMIT (label) too many. */
Status index_match(Ctx *ctx, const char *label, const Topology *job, int root, const Schedule *sched, int *rank,
    bool *found);

/* The ranks of a job in the file of another entry for the same job. rank: those in the file of `entry`; changed. */
Status index_rank_again(Ctx *ctx, const IndexEntry *entry, const IndexEntry *other, int *rank);

/* What an index states of a file, by the file itself. */
typedef struct {
	Collective coll;
	int n_ranks, root;	/* root: a rank of the file; -1: none */
	double rate, bound;	/* GB/s, as the file states them */
	int trees, depth;
	int n_baselines;
	Baseline baseline[LIMIT_BASELINES];
} IndexedFile;

Status index_describe(Ctx *ctx, const Schedule *sched, IndexedFile *out);

/* Is a file for the job of an entry: the same collective, number of ranks and root? */
bool index_same_job(const IndexEntry *entry, const Schedule *sched);

/* Members of an entry that its file determines: name in the index */
#define ENTRY_MEMBER_LIST(X)                                                   \
	X(ENTRY_EQUAL, NULL)                                                   \
	X(ENTRY_COLLECTIVE, "collective")                                      \
	X(ENTRY_GPUS, "gpus")                                                  \
	X(ENTRY_ROOT, "root")                                                  \
	X(ENTRY_RATE, "rate")                                                  \
	X(ENTRY_BOUND, "bound")                                                \
	X(ENTRY_TREES, "trees")                                                \
	X(ENTRY_DEPTH, "depth")                                                \
	X(ENTRY_BASELINES, "baselines")

typedef enum { ENTRY_MEMBER_LIST(ROW_NAME) } EntryMember;

const char *entry_member_name(EntryMember member);

/* The first member in which an entry differs from its file; rates are compared in the 15 digits that files have. */
EntryMember index_compare(const IndexEntry *entry, const IndexedFile *file);

/* Likewise, with both values in a message. label: what messages call the entry. Fails: BAD_INPUT. */
Status index_check_entry(Ctx *ctx, const char *label, const IndexEntry *entry, const IndexedFile *file);

/* What each rank does for every chunk. sched: verified. */
Status sched_lower(Ctx *ctx, const Schedule *sched, Program **out);

/* What rank `rank` does, of a schedule that may be compact. Memory of *out: in proportion to its own tasks and peers.
 * in: passes sched_check.
 * Cost: one pass over all edges; of a compact schedule over those of representatives and, for each image, over the
 * ranks that this one ever receives from. Memory: of a compact schedule in proportion to its representatives and
 * images. Fails: LIMIT a segment needs more than 64 bits; NO_MEMORY. */
Status sched_project(Ctx *ctx, const Schedule *in, int rank, RankProgram **out);

/* The same of a schedule whose trees come one by one, as for verify_begin: project_segment takes number s, and then its
 * edges may be forgotten. All fail as sched_project; then memory in ctx is the caller's to release. */
struct projection;
Status project_begin(Ctx *ctx, const Schedule *sched, int rank, struct projection **out);
Status project_segment(struct projection *p, int s);
Status project_end(struct projection *p, RankProgram **out);

/* A number of what the rank does: its tasks with their extents and lanes, in order. Kernels compiled from a program
 * carry it (format/cu_kernel.c). */
uint64_t rank_program_fingerprint(const RankProgram *prog);

/* peer, n_peers and lanes_max of a program, whose other members are there, from the lanes to and from each rank. */
Status sched_list_peers(Ctx *ctx, const int *lanes_out, const int *lanes_in, RankProgram *prog);

#endif
