/* Readers and writers of files. Types of foreign parsers do not leave this folder. What is written depends on the noun
 * alone.
 *
 * Functions are called noun_read and noun_write, followed by the format where a noun has several. formats.c has a
 * table of the formats of topologies and of schedules: a new format is a file with its functions, and a row. */
#ifndef BLINK_FORMAT_FORMAT_H
#define BLINK_FORMAT_FORMAT_H

#include "base/digest.h"
#include "base/text.h"
#include "model/model.h"
#include "model/rank_program.h"
#include "topology/lint.h"

/* Bytes from each of n ranks to each, n * n: n lines of n numbers, or JSON. Fails: BAD_INPUT, LIMIT. */
Status matrix_read(Ctx *ctx, const char *label, const char *data, size_t size, int n, const int64_t **out);

/* ---- topologies: blink-topology(5) ---- */

/* What a caller knows about a topology file besides its content. */
typedef struct {
	const char *const *dirs;	/* searched for files that are not beside the one that names them, ended by
					 * NULL; NULL: it may name none */
	const char *from;		/* the name of its format; NULL: by content */
	bool from_files;		/* `from` is that of the files that it names, not its own */
	const char *gpu_model;		/* for formats that do not state it (gpu_models.h); NULL: not known */
	const char *cpu;		/* what links between CPUs follow from (link_rates.h), whatever the file says;
					 * NULL: as it says */
	bool cpu_ranks;			/* ranks are CPUs, not GPUs: of hwloc's XML alone */
	int n_cpu_ranks;		/* how many; 0: one for each NUMA node */
	int64_t cpu_link;		/* their capacity itself, bytes/s; 0: not given */
} TopologyHints;

/* The files that a topology file may name, while it is read. */
typedef struct TopologyFiles {
	TopologyHints hints;
	const char *const *dirs;	/* hints.dirs */
	Status (*read)(Ctx *ctx, const char *label, struct TopologyFiles *files, const char *data, size_t size,
	    Topology **out);
	int depth;			/* of files within files */
	struct topology_file {
		const char *path;
		const Topology *topo;
		struct topology_file *next;
	} *first;			/* read already */
} TopologyFiles;

/* A file of any format in the table.
 * label: what messages call the file, and its path. data: `size` bytes, any content. dirs: as above.
 * *out: passes topo_check; has a digest. Fails: BAD_INPUT, LIMIT, NO_MEMORY; IO a file by reference cannot be read. */
Status topo_read(Ctx *ctx, const char *label, const char *const *dirs, const char *data, size_t size, Topology **out);

/* As topo_read, with what else is known. hints->from: a format that is read (topology_readers). */
Status topo_read_as(Ctx *ctx, const char *label, const TopologyHints *hints, const char *data, size_t size,
    Topology **out);

/* A file of parameters of executors alone (schemas/simulate-parameters.schema.json). *out: in the run arena.
 * Fails: BAD_INPUT, LIMIT. */
Status parameters_read(Ctx *ctx, const char *label, const char *data, size_t size, Parameters *out);

/* As topo_read, of one format. */
Status topo_read_json(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out);
Status topo_read_xml(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out);

Status topo_read_hwloc(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size,
    Topology **out);
Status topo_read_nccl(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out);
Status topo_read_nvidia_smi(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size,
    Topology **out);
Status topo_read_rocm_smi(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size,
    Topology **out);

/* Could this be a file of the format? By its first bytes. */
bool topo_is_json(const char *data, size_t size);
bool topo_is_xml(const char *data, size_t size);
bool topo_is_hwloc(const char *data, size_t size);
bool topo_is_nccl(const char *data, size_t size);
bool topo_is_nvidia_smi(const char *data, size_t size);
bool topo_is_rocm_smi(const char *data, size_t size);

void topo_write_json(const Topology *topo, Text *out);
void topo_write_xml(const Topology *topo, Text *out);

/* A format of topologies. One that is only read, or only written, has NULL for the rest. */
typedef struct {
	const char *name, *suffix;	/* for --from and --format, and of files, without the dot; NULL: no suffix */
	const char *what;		/* for people: what writes such files */
	bool (*sniff)(const char *data, size_t size);
	Status (*read)(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size,
	    Topology **out);
	void (*write)(const Topology *topo, Text *out);
} TopologyFormat;

extern const TopologyFormat topology_formats[];		/* ended by a row without a name */
const TopologyFormat *topology_format(const char *name);	/* NULL: no format has this name */

/* A topology file, as text, of the machine that a line describes: "server:4 gpu:8 switch:300 net:25"
 * (blinkc-topology(1)). Appended to *out. Fails: USAGE, naming the item; LIMIT. */
Status synthetic_write(Ctx *ctx, const char *line, Text *out);

/* The machine that this runs on, as XML of hwloc, for topo_read. Appended to *out. libhwloc reads variables HWLOC_* of
 * the environment, which may put another machine in its place: programs clear them before.
 * measure: also rates of its memory, which takes some seconds (hwloc/measure.c). Fails: IO, NO_MEMORY. */
Status live_write(Ctx *ctx, bool measure, Text *out);

/* What was asked of the machine that this runs on: its GPUs (format/nvml/gpus.h), what live_write gave, and "/sys". */
typedef struct {
	const struct SeenGpus *gpus;
	const Text *hwloc;
	const char *sysfs;
} MachineSeen;

/* The topology of that machine: GPUs and NVLinks as the driver has them, PCIe, CPUs and NICs as hwloc has them, rates
 * of NICs' ports as the kernel has them. label: what messages call it. gpu_model: NULL: as the driver names them.
 * *out: as of topo_read; ids of GPUs are "gpu" and their number. Fails: BAD_INPUT, LIMIT, NO_MEMORY; USAGE gpu_model.
 */
Status topo_of_machine(Ctx *ctx, const char *label, const MachineSeen *seen, const char *gpu_model, Topology **out);

/* Servers of a cluster: `count` as in a file, which is beside the cluster's own, or in a folder beside it. */
typedef struct {
	const char *file;
	int count;
} ClusterServers;

typedef struct {
	const char *name;
	int n_files;
	const ClusterServers *servers;	/* of each file */
	int64_t nic_rate;		/* bytes/s of each NIC's port; 0: that of the server's file */
	bool rails;
	int leaf;			/* servers of a leaf switch; 0: all */
	int64_t oversubscription;	/* times 1e9; 0: none given */
} ClusterRequest;

/* A topology file that names those of its servers. */
void cluster_write(const ClusterRequest *ask, Text *out);

/* What is implausible for the model of the GPUs, or if that is not known for any: of links of these classes (bits), and
 * of a known one whether there are any such links at all. As topo_lint, with rule LINT_MODEL. */
Status topo_lint_model(Ctx *ctx, const Topology *topo, unsigned classes, LintFinding **out, int *n);

/* ---- jobs: blink-job(5) ---- */

/* A job file; trusts nothing in it. *out: in the run arena; kinds are those that calls name, and ranks are below
 * n_ranks, which the file alone decides. Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status workload_read(Ctx *ctx, const char *label, const char *data, size_t size, Workload **out);

/* What was planned of it; likewise. What its numbers say is not checked: check does (workload/workload.h). */
Status phases_read(Ctx *ctx, const char *label, const char *data, size_t size, Phases **out);
void phases_write(const Phases *phases, Text *out);

/* ---- schedules: blink-schedule(5) ---- */

/* A schedule file; trusts nothing in it. One that is compact is read with all trees listed.
 * *out: passes sched_check: well formed, not yet verified; achieved is recomputed, and sched_verify does so for the
 * bound.
 * Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status sched_read(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out);

/* The same, but a compact schedule stays compact. */
Status sched_read_compact(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out);

/* Likewise, and verified, which is faster than to do one after the other. Fails: also as sched_verify. */
Status sched_read_verified(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out);

/* What a rank needs of a schedule. */
typedef struct {
	Schedule *sched;	/* of sched_read_part without trees */
	RankProgram *prog;	/* of sched_read_part */
	char digest[DIGEST_ROOM];	/* of the file */
} SchedulePart;

/* As sched_read_verified from an open file, which is read from its beginning, with its text never in memory as a whole.
 * *done: false where the file is compact, in parts, laid out as blinkc does not, or wrong; nothing is read then, and
 * sched_read_verified says what is wrong. Fails: NO_MEMORY. */
Status sched_read_file(Ctx *ctx, const char *label, int fd, SchedulePart *out, bool *done);

/* Likewise what rank `rank` does (sched_project), with no more than one tree in memory. *done: also false where the
 * schedule is not over n_ranks ranks. part: the program is in its run arena. */
Status sched_read_part(Ctx *ctx, Ctx *part, const char *label, int fd, int n_ranks, int rank, SchedulePart *out,
    bool *done);

/* Compact or not, as it is. */
void sched_write_json(const Schedule *sched, Text *out);

/* What formats may need besides the schedule. */
typedef struct {
	const Text *json;	/* its file */
	const char *server;	/* the id of the server whose ranks read the output; NULL: all */
	int rank;		/* of formats with a file for each rank */
	int64_t bytes;		/* of formats for one size of message: M */
	int chunks;		/* and into how many each segment is cut, at least 1 */
	bool in_place;		/* of MSCCL++: input and output are one buffer */
} FormatInput;

/* Source code (libblink(3)), which carries the digest of in->json. */
Status sched_write_cu(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
Status program_write_cu(Ctx *ctx, const Program *prog, const char *digest, Text *out);

/* Kernels for libblink's CUDA backend, with the same digest. Fails: LIMIT as sched_project. */
Status sched_write_cu_kernel(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);

/* What NCCL reads from NCCL_GRAPH_FILE: rings. Fails: INFEASIBLE its trees are not parts of rings, or of rings that
 * NCCL has no way to say; LIMIT; USAGE no such server. Memory: both arenas. */
Status sched_write_nccl_graph(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
Status sched_note_nccl_graph(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);

/* An algorithm for MSCCL (msccl/msccl.h), as RCCL up to 2.27.7 loads it; it passes msccl_check.
 * Fails: INFEASIBLE the schedule has parts; LIMIT, naming what RCCL or the format has no room for. Memory: scratch. */
Status sched_write_msccl(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
Status sched_note_msccl(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);

/* A plan for the executor of MSCCL++ (mscclpp/mscclpp.h), out of place or in->in_place. Fails: as
 * mscclpp_from_schedule. Memory: scratch. */
Status sched_write_mscclpp(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
Status sched_note_mscclpp(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);

/* Likewise in packets, for small messages. Fails: also INFEASIBLE several servers, other collectives than allreduce,
 * allgather and alltoall. */
Status sched_write_mscclpp_packets(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
Status sched_note_mscclpp_packets(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);

/* Chakra execution traces: the file of one rank, for a message of in->bytes.
 * Fails: INFEASIBLE the schedule has parts; LIMIT too many messages. */
Status sched_write_chakra(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);

/* A format of schedules. */
typedef struct {
	const char *name, *suffix;
	/* NULL: this is the format of its file, with all trees listed or compact. */
	Status (*write)(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
	/* A line of a summary: what the file does not hold of the schedule; fails as `write`. NULL: it holds all. */
	Status (*note)(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out);
	bool of_a_server;	/* it can be for the ranks of one server */
	const char *of_ranks;	/* of a file for each rank: its suffix; NULL: one file for all */
} ScheduleFormat;

#define SCHEDULE_COMPACT "compact"
#define SCHEDULE_MSCCL "msccl"
#define SCHEDULE_MSCCLPP "mscclpp"
#define SCHEDULE_MSCCLPP_PACKETS "mscclpp-packets"

extern const ScheduleFormat schedule_formats[];
const ScheduleFormat *schedule_format(const char *name);

/* ---- indexes: blink-index(5) ---- */

/* An index of schedules. Files that it names are not read. *out: sorted, whatever the order of the file.
 * Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status index_read(Ctx *ctx, const char *label, const char *data, size_t size, Index **out);
void index_write(const Index *index, Text *out);

/* ---- lookup files of indexes: blink-index(5) ---- */

/* The lookup file of an index, whose text in JSON is `json`. Deterministic. Fails: NO_MEMORY; LIMIT a path that no
 * reader takes. */
Status lookup_write(Ctx *ctx, const Index *index, const char *json, size_t size, Text *out);

/* "DIR/index.lookup" of "DIR/index.json"; NULL: that is no name of an index. Memory: run arena. */
Status lookup_path(Ctx *ctx, const char *index_path, const char **out);

/* A lookup file. Its entries stay where they are and are read as they are asked for, not mapped: if the file is cut
 * short meanwhile, a read says so, where a page that is gone would end the process. So it stays open, and takes as much
 * memory as its groups, at most 64 KiB. Threads may share it. */
typedef struct Lookup Lookup;

/* *out: NULL if there is none at `path` that was made from `json`, an open file: of another version or another size,
 * damaged at first sight, or neither younger than `json` nor with its digest. Memory: run arena; the file is open until
 * lookup_close. *head: the index without its entries. Fails: NO_MEMORY. */
Status lookup_open(Ctx *ctx, const char *path, int json, Lookup **out, Index **head);
void lookup_close(Lookup *lookup);
int lookup_entries(const Lookup *lookup);

/* As index_job and index_candidates (schedule.h) of the index that it was made from; baselines are not there. Memory:
 * run arena. Fails: BAD_INPUT where the file is damaged, IO. */
Status lookup_job(Ctx *ctx, const Lookup *lookup, const IndexEntry *want, const IndexEntry **out, int *n);
Status lookup_candidates(Ctx *ctx, const Lookup *lookup, Collective coll, int n, uint64_t form, const IndexEntry ***out,
    int *n_out);

#endif
