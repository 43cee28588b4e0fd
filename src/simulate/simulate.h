/* Simulator: how long a schedule takes on the links that it names, by discrete events. simulate.c has the model.
 *
 * sim_prepare once for a schedule, sim_run for each size, chunk size and set of parameters: no I/O, no globals, memory
 * from the scratch arena, which is given back. All quantities are integers; the same input gives the same result
 * everywhere. Times are in ps. */
#ifndef BLINK_SIMULATE_SIMULATE_H
#define BLINK_SIMULATE_SIMULATE_H

#include "model/model.h"

#define PS_PER_NS INT64_C(1000)
#define PS_PER_S INT64_C(1000000000000)
#define PPM INT64_C(1000000)

/* No simulation goes on for longer, ps: 53 days. */
#define SIM_TIME_MOST ((INT64_C(1) << 62) - 1)

/* name, what executes the steps */
#define EXECUTOR_LIST(X)                                                       \
	X(EXECUTOR_KERNEL, "kernel", "one kernel on each GPU, whose blocks write into the memory of peers") \
	X(EXECUTOR_COPY, "copy", "copy engines, with an operation for each chunk; kernels only add") \
	X(EXECUTOR_HOST, "host", "threads of the hosts, one message after the other")

typedef enum { EXECUTOR_LIST(ROW_NAME) N_EXECUTORS } Executor;

extern const Names executor_names;

/* member, name in files, unit of files (a divisor of that in memory), least, most, kernel, copy, host, what it is,
 * where the values come from. Times are ns, rates bytes/s, in files us and GB/s. docs/simulator.md has the same table,
 * held to it by a test. */
#define SIM_PARAMETER_LIST(X) \
	X(call, "call", NS_PER_US, 0, LIMIT_LATENCY_NS, 3300, 13600, 0, \
	    "once for each call, before the first step (us)", \
	    "kernel: 1 KB between two GPUs takes 6.5 us, less a hop of 3.4, MSCCL++ tutorials; " \
	    "copy: 20.5 us there, less a step and a hop") \
	X(step, "step", NS_PER_US, 0, LIMIT_LATENCY_NS, KERNEL_STEP_NS, 3500, 4800, \
	    "of each chunk on each edge, before its bytes move (us)", \
	    "kernel: what 8 KiB take at 25 GB/s, the least chunk of libblink; copy: an operation of cudaMemcpyAsync; " \
	    "host: Ueno and Yokota, alpha on ABCI") \
	X(at_once, "at_once", 1, 0, LIMIT_TREE_EDGES, KERNEL_AT_ONCE, 6, 1, \
	    "steps that a GPU sends at once; 0: any number", \
	    "kernel: blocks, NCCL's 32 channels; copy: an assumption, one for each NVLink of a V100; " \
	    "host: one thread a GPU") \
	X(reduce, "reduce", BYTES_PER_GB, 0, LIMIT_CAPACITY_MAX, 0, 462000000000, 10000000000, \
	    "bytes that a GPU adds in a second (GB/s); 0: any number", \
	    "copy: Blink's chains, 22 GB/s that forward and 21 that reduce and forward; host: an assumption") \
	X(reduce_by_link, "reduce_by_link", 1, 0, 1000 * PPM, 22000000, 0, 0, \
	    "likewise, in millionths of the rate of the link that they came by: more links have more blocks; 0: any " \
	    "number", \
	    "kernel: Blink's chains, 22 and 21 GB/s over one NVLink; with twelve, NCCL's reduce is as fast as its " \
	    "broadcast within 1 %, logs of nccl-tests on A100 and V100") \
	X(reduce_step, "reduce_step", NS_PER_US, 0, LIMIT_LATENCY_NS, 0, 3300, 0, \
	    "of each chunk that is added, before it is (us)", \
	    "copy: a kernel, as `call` of kernels; others: part of the step") \
	X(fused, "fused", 1, 0, 1, 1, 0, 1, \
	    "1: adding is part of the step, which the sender waits for; 0: it goes on beside the next step", \
	    "how libblink's executors work") \
	X(by_length, "by_length", 1, 0, 1, 1, 0, 0, \
	    "1: steps share a link in proportion to the lengths of their segments; 0: equally", \
	    "kernel: libblink gives a segment blocks by its length; others: streams are equal") \
	X(packet_most, "packet_most", 1, 0, LIMIT_MESSAGE, 262144, 0, 0, \
	    "messages of up to this number of bytes go by packets, each half of flags; 0: none", \
	    "kernel: as libblink; NCCL's LL") \
	X(packet_hop, "packet_hop", 1, 0, PPM, 176000, 1000000, 1000000, \
	    "latency of links for packets, millionths of their own", \
	    "kernel: 0.6 us of LL by 3.4 us of Simple, a ring's hop over NVLink, NCCL 2.30.7") \
	X(packet_step, "packet_step", NS_PER_US, 0, LIMIT_LATENCY_NS, 0, 0, 0, \
	    "as step, for packets, which carry their own flags (us)", \
	    "kernel: no fence and no flag") \
	X(line_hop, "line_hop", 1, 0, PPM, 265000, 1000000, 1000000, \
	    "latency of links for lines, millionths of their own; they have the step of packets", \
	    "kernel: 0.9 us, 0.6 of packets and 0.3 more that lines took on an H100 that ranks shared") \
	X(line_above, "line_above", 1, 0, LIMIT_MESSAGE, 65536, 0, 0, \
	    "messages of more bytes, up to line_most, go by lines where all links are NVLinks of 23 GB/s or more", \
	    "kernel: as libblink") \
	X(line_most, "line_most", 1, 0, LIMIT_MESSAGE, 2097152, 0, 0, \
	    "messages of up to this number of bytes go by lines, of 120 bytes of data and 8 of flags; 0: none", \
	    "kernel: as libblink; NCCL's LL128") \
	X(cores, "cores", 1, 0, LIMIT_RANKS, 0, 0, 0, \
	    "processors that execute the start-ups of all ranks, and chunks as libblink takes them by itself; 0: as " \
	    "many as are wanted, and chunks that take least time", "of the machine") \
	X(burst, "burst", 1, 0, LIMIT_MESSAGE, 0, 0, 0, \
	    "bytes that a link lets pass at once after a rest, as a token bucket does", "of the network") \
	X(header, "header", 1, 0, LIMIT_MESSAGE, 0, 0, 0, \
	    "bytes that each step moves beside its data", "of the network") \
	X(in_order, "in_order", 1, 0, 1, 0, 0, 0, \
	    "1: of the steps of a GPU one has the first of its links, and the next begins to move once it leaves " \
	    "room there, as a queue in order; 0: they share it", "of the network") \
	X(by_memory, "by_memory", 1, 0, 1, 0, 0, 0, \
	    "1: ranks share the memory of one server, not links: call, reduce, reduce_step, cores and what follows " \
	    "count", \
	    "how ranks are joined") \
	X(task, "task", NS_PER_US, 0, LIMIT_LATENCY_NS, 0, 0, 100, \
	    "by_memory: of each chunk that a rank moves (us)", "host: fitted to two cores of an EPYC") \
	X(lane, "lane", NS_PER_US, 0, LIMIT_LATENCY_NS, 0, 0, 30, \
	    "by_memory: of each chunk, for each rank that it comes from or goes to (us)", "host: as task") \
	X(wake, "wake", NS_PER_US, 0, LIMIT_LATENCY_NS, 0, 0, 1350, \
	    "by_memory: of a processor to a rank that sleeps, or that shares it and makes its call (us)", \
	    "host: as task") \
	X(turn, "turn", NS_PER_US, 0, LIMIT_LATENCY_NS, 0, 0, 1200, \
	    "by_memory: of a processor from one rank to the next (us)", "host: as task") \
	X(cached, "cached", BYTES_PER_GB, 0, LIMIT_CAPACITY_MAX, 0, 0, INT64_C(126000000000), \
	    "by_memory: bytes that a processor reads or writes in a second where caches hold them (GB/s); 0: any " \
	    "number", \
	    "host: as task") \
	X(exchange, "exchange", BYTES_PER_GB, 0, LIMIT_CAPACITY_MAX, 0, 0, INT64_C(60000000000), \
	    "by_memory: the same of rings of small calls, which have many places in turn (GB/s); 0: any number", \
	    "host: as task") \
	X(memory, "memory", BYTES_PER_GB, 0, LIMIT_CAPACITY_MAX, 0, 0, INT64_C(27000000000), \
	    "by_memory: the same of what no cache holds, with all processors busy (GB/s); 0: any number", \
	    "host: as task") \
	X(memory_alone, "memory_alone", BYTES_PER_GB, 0, LIMIT_CAPACITY_MAX, 0, 0, INT64_C(38000000000), \
	    "by_memory: as memory, of a processor while no other reads there (GB/s); 0: any number", "host: as task") \
	X(stream, "stream", BYTES_PER_GB, 0, LIMIT_CAPACITY_MAX, 0, 0, INT64_C(47000000000), \
	    "by_memory: the same of results that are written past the caches (GB/s); 0: any number", "host: as task") \
	X(cache, "cache", 1, 0, LIMIT_MESSAGE, 0, 0, 22 << 20, \
	    "by_memory: bytes that come from memory until half of what caches held is gone; 0: any number", \
	    "host: as task")

/* Of each link class: efficiency of kernel, copy, host in millionths of the capacity; latency of a link where its
 * topology has none, ns; where the values come from. */
#define SIM_CLASS_LIST(X) \
	X(LINK_NVLINK, 840000, 900000, 744000, 3400, \
	    "kernel: between 22 of 25 GB/s, Blink's chains, and 350 of 450, MSCCL++ tutorials; copy: between 23.95 " \
	    "of 25, V100, Dell's p2pBandwidthLatencyTest, and 391 of 450, MSCCL++ tutorials; latency: NCCL 2.30.7, " \
	    "a ring's hop") \
	X(LINK_XGMI, 840000, 900000, 744000, 3400, "as NVLink") \
	X(LINK_C2C, 840000, 900000, 744000, 3400, "as NVLink") \
	X(LINK_PCIE, 1000000, 1000000, 1000000, 2850, \
	    "topologies have effective rates; latency: NCCL 2.30.7, half of a ring's hop") \
	X(LINK_QPI, 1000000, 1000000, 1000000, 0, "topologies have effective rates; no latency is published") \
	X(LINK_NET, 920000, 920000, 744000, 1300, \
	    "GPUs, whose NICs read their memory: logs of nccl-tests on four DGX A100, 98.6 of 103.2 GB/s, start-ups " \
	    "included; host: Ueno and Yokota, 9.3 of 12.5 GB/s on ABCI; latency: what NCCL 2.30.7 has for a hop, " \
	    "less that of PCIe")

/* How steps are executed. From sim_defaults, and changed at will within least and most. */
typedef struct {
#define X(member, ...) int64_t member;
	SIM_PARAMETER_LIST(X)
#undef X
	int64_t efficiency[N_LINK_CLASSES];	/* millionths of the capacity, 1 to PPM */
	int64_t latency[N_LINK_CLASSES];	/* ns, where the topology has none */
} SimParameters;

void sim_defaults(Executor executor, SimParameters *out);

/* The defaults, over them what a machine's topology file gives for the executor, and over that what `own` does; NULL:
 * none. */
void sim_parameters_for(Executor executor, const Parameters *machine, const Parameters *own, SimParameters *out);

/* How a message goes: in chunks, told of by flags; or by packets, or lines, which carry their own. */
typedef enum { SIM_CHUNKS, SIM_PACKETS, SIM_LINES } SimProtocol;

/* A row of the table, for readers of files and for help. */
typedef struct {
	const char *name;
	int64_t unit, least, most;
	size_t at;			/* offset in SimParameters */
	const char *what, *source;
} SimParameter;

extern const SimParameter sim_parameters[];	/* ended by a row without a name */

/* An edge of a tree, as it is simulated. */
typedef struct {
	int segment, src, dst;
	int edge;		/* of the segment's tree, as tree_edge counts */
	bool up;
	bool adds;		/* dst adds what arrives */
	int n_links;
	const int *link;	/* that it occupies */
	int n_path;
	const int *path;	/* from src to dst: with the links of the edge that it shares a switch with */
	int feeder;		/* the hop whose data a switch copies to this one; -1: src sends */
	int from, to;		/* values */
	int turn;		/* its place in the order in which src issues; feeder >= 0: 0 */
} SimHop;

/* What a schedule asks of links, whatever the size of the message. */
typedef struct {
	const Schedule *sched;
	const PartEnd *split;	/* NULL: no parts */
	const int64_t *bytes;	/* of each segment; NULL: by what it has of the message */
	const int64_t *begin;	/* of each segment: ns from the call until it may begin; NULL: at once */
	int64_t lines;		/* the longest message that may go by lines, which are for NVLinks of one server, of 23
				 * GB/s or more; 0: none */
	bool too_large;		/* no hops, as there are more than are simulated: times are what it takes at least */
	int n_hops;
	SimHop *hop;		/* in the order of the file: segment by segment, up before down */
	int n_values;		/* of segments on ranks, at most two of each: on the way up, on the way down */
	int *first_in, *in;	/* hops that a value waits for, in order: in[first_in[v] .. first_in[v + 1] - 1] */
	int *first_out, *out;	/* hops that send it */
	int *value_segment;
	int *first_issue, *issue;	/* hops that each rank issues, in order */
	int *first_follower, *follower;	/* of each hop: those that a switch copies its data to */
} SimPlan;

/* sched: passes sched_check; with parts or without. *out: in the run arena; keeps sched.
 * Of a compact one all trees are listed.
 * Fails: LIMIT more than LIMIT_TREE_EDGES edges, or what sched_split fails with. Cost: the links of all edges. */
Status sim_prepare(Ctx *ctx, const Schedule *sched, SimPlan **out);

/* The same; where there are more edges, of a schedule without parts, *out is too_large. */
Status sim_prepare_any(Ctx *ctx, const Schedule *sched, SimPlan **out);

/* The same of an alltoall whose blocks have these bytes, n_ranks * n_ranks as of a ByteMatrix. *m: the message that has
 * as many between ranks, by which rates are counted. The bound of (*out)->sched is one of these bytes: by the lengths
 * of the schedule's own matrix, else by lengths of 1. Fails: also INFEASIBLE parts. */
Status sim_prepare_matrix(Ctx *ctx, const Schedule *sched, const int64_t *bytes, SimPlan **out, int64_t *m);

/* A schedule beside others, on links that they share. */
typedef struct {
	const SimPlan *plan;
	const int *rank, *link;	/* of its ranks and links: those of the whole */
	int64_t m;		/* bytes of its message */
	int64_t begin;		/* ns: when it is called */
} SimPart;

/* Several schedules at once as one plan, whose segments are those of all parts, one after the other. topo: the ranks
 * and links of all. Steps of all parts count against `at_once` of a GPU, and share links by the bytes of their
 * segments. For sim_run, with executors without `cores` and `by_memory`; SimAsk's m: that of the largest part.
 * *out: in the run arena. Fails: LIMIT more than LIMIT_TREE_EDGES edges. */
Status sim_join(Ctx *ctx, const Topology *topo, const SimPart *part, int n, SimPlan **out);

/* Of programs that name no links: two GPUs that need a way, for a number of chunks of the program; and the way. */
typedef struct {
	int src, dst;
	int64_t chunks;
} SimPair;

typedef struct {
	int n_links;
	const int *link;	/* from src to dst */
} SimRoute;

typedef struct {
	SimParameters p;
	int64_t m;		/* bytes of the message, as blink-schedule(5) counts them, 1 to 2^60 */
	int64_t chunk;		/* bytes, at least 1 */
	bool steps;		/* keep all steps, for the critical path and traces */
	bool timed;		/* fail with LIMIT, asked "budget", when ctx has no time left */
} SimAsk;

/* A chunk on an edge. */
typedef struct {
	int hop, cause;		/* cause: the step whose end let it begin; -1: the call */
	int64_t chunk;
	int64_t begin, move, end;	/* it begins; its bytes begin to move; it ends at the sender. ps */
	int64_t arrive;		/* at dst, added where it is added */
} SimStep;

typedef struct {
	int64_t time;		/* ps, from the call to the last arrival */
	int64_t n_steps;
	int64_t chunk;		/* bytes, of the longest chunk; 0: the plan is too_large */
	int64_t n_chunks;	/* of the longest segment */
	bool limited;		/* sim_run_best tried no smaller chunks, which have too many steps */
	SimProtocol protocol;
	int64_t *moved;		/* of each link: bytes of data, in the run arena */
	int64_t *busy;		/* of each link: ps with at least one step on it */
	SimStep *step;		/* n_steps, in the order in which they begin, or NULL: in the run arena */
	int last;		/* the step that ends last; -1: none, or steps are not kept */
} SimResult;

/* Fails: LIMIT more than LIMIT_SIM_STEPS, or LIMIT_SIM_KEPT that are kept, or SIM_TIME_MOST, or 2^63 bytes on a link,
 * or no time left (ask->timed); NO_MEMORY.
 * Cost: about a us for a step. */
Status sim_run(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out);

/* As sim_run, with the chunk size, a power of two, that takes least time: ask->chunk is not looked at. chunk.c has the
 * search. */
Status sim_run_best(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out);

/* What a simulation of a plan does not go below (floor.h). */
typedef struct Floor Floor;

/* As sim_run_best, if that takes at most `most` ps; else *out has a time of INT64_MAX, and no more is known.
 * floor: of the plan and of ask->p; NULL: none is known. Chunk sizes whose floors are above the best time are not
 * simulated, nor any once all that are left have floors above `most`; and simulations end once it is certain that they
 * take longer than the best, or than `most`. */
Status sim_run_best_within(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, Floor *floor, int64_t most,
    SimResult *out);

/* The least chunk that it tries, bytes: a power of two. */
int64_t sim_least_chunk(SimProtocol protocol);

/* By which protocol a message of m bytes goes. */
SimProtocol sim_protocol(const SimPlan *plan, const SimParameters *p, int64_t m);

/* Bytes of each segment in a message of m bytes: bytes[n_segments]. */
void sim_segment_bytes(const SimPlan *plan, int64_t m, int64_t *bytes);

/* ps of a link as it is simulated. */
int64_t sim_link_latency(const SimParameters *p, SimProtocol protocol, const Link *link);

/* Bytes that a link carries in a second, as it is simulated. */
int64_t sim_link_rate(const SimParameters *p, const Link *link);

/* Bytes a second at which a GPU adds what comes over the links of a hop; 0: in no time. */
int64_t sim_add_rate(const SimParameters *p, const Topology *topo, const SimHop *hop);

/* Time that no algorithm goes below on these links, ps: what the bound allows for the bytes, and the latency of the
 * links between the ranks that have data and those that need it; with the call and one step of this executor.
 * Cost: a search of cheapest paths from each rank, at most 256. Fails: LIMIT no time left (ask->timed). Memory:
 * scratch. */
Status sim_least_time(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, int64_t *out);

/* Rates as nccl-tests has them, bytes/s. FRAC_ZERO: time is 0. */
Frac sim_algorithm_rate(int64_t m, int64_t time);
Frac sim_bus_rate(const Schedule *sched, Frac algorithm);

#endif
