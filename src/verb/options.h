/* The command line of blinkc: one list of options, from which the parser and the help come. */
#ifndef BLINK_OPTIONS_H
#define BLINK_OPTIONS_H

#include "base/names.h"
#include "base/status.h"
#include "base/text.h"
#include "verb/diff/diff.h"
#include "verb/verb_bits.h"
#include "model/model.h"

/* Of lists. */
#define DIFFERENCE_HELP(name, text, sign, what) text ", "

/* name, letter, argument or NULL, in brackets if it may be left out, verbs it belongs to, help; NULL: option_help
 * makes it */
#define OPTION_LIST(X) \
	X(OPT_OUTPUT, "output", 'o', "FILE", EVERY & ~(CHECK | COMPLETION | HELP | LINT), \
	    "write FILE; - is standard output (default)") \
	X(OPT_FORMAT, "format", 0, "NAME", COMPILE | CONVERT | TOPOLOGY | PROBE | DIFF | SHOW | LIST | ADVISE \
	    | WHATIF | SIMULATE | HIERARCHY | TUNE, NULL) \
	X(OPT_COLLECTIVE, "collective", 'c', "NAME", COMPILE | SHOW | ADVISE | WHATIF, \
	    "broadcast, reduce, allreduce (default), gather, scatter, allgather, reducescatter or alltoall") \
	X(OPT_ROOT, "root", 'r', "RANK", COMPILE | SHOW, \
	    "root of broadcast, reduce, gather or scatter: a rank (default 0) or the id of a GPU") \
	X(OPT_SIZES, "sizes", 'n', "LIST", BATCH | TUNE | ADVISE | WHATIF, \
	    "numbers of GPUs, as 2-8 or 3,5-7 (default: 2 to all)") \
	X(OPT_DISTINCT, "distinct", 0, NULL, BATCH | TUNE, \
	    "one set of each isomorphism class only, also in the index: every shape of a job on a large cluster") \
	X(OPT_COLLECTIVES, "collectives", 0, "LIST", BATCH | TUNE, \
	    "collectives, comma separated, or all (default allreduce)") \
	X(OPT_ROOTS, "roots", 0, "KIND", BATCH | TUNE, \
	    "roots of broadcast, reduce, gather and scatter: all (default); best: the fastest of each set; " \
	    "canonical: one of each orbit") \
	X(OPT_JOBS, "jobs", 'j', "N", BATCH | TUNE | CHECK | DIFF | REPORT | ADVISE | WHATIF, \
	    "processes at once (default: one for each CPU); the output does not depend on it") \
	X(OPT_SHARD, "shard", 0, "I/N", BATCH, \
	    "only part I of N of the schedules, and no index, as for job arrays; without it the rest and the " \
	    "index") \
	X(OPT_GPUS, "gpus", 'g', "LIST", COMPILE | BATCH | TUNE | PROBE | SHOW | ADVISE | WHATIF | SIMULATE \
	    | HIERARCHY, \
	    "GPUs of the job, by index or id, or ranges as 0-3 and s0:0-2, comma separated; GPU i of the list is " \
	    "rank i; default: all") \
	X(OPT_LINKS, "links", 'l', "LIST", COMPILE | BATCH | TUNE | SHOW | ADVISE | WHATIF | HIERARCHY | JOB, \
	    "link classes to use, comma separated, or all; default: the fastest class, if it connects the GPUs, " \
	    "alone or with net; else all, with --routes pair where NVLink or xGMI joins some of the GPUs, or where " \
	    "that gains much over all GPUs of a server") \
	X(OPT_ROUTES, "routes", 0, "KIND", COMPILE | BATCH | TUNE | ADVISE | WHATIF | HIERARCHY | JOB, \
	    "what a hop between two GPUs may take; pair: the one route that joins them: NVLink or xGMI, else " \
	    "PCIe, else the network; any: any of the links in use (default with --links)") \
	X(OPT_WITHOUT, "without", 0, "LIST", COMPILE | BATCH | TUNE | SHOW | ADVISE | WHATIF | JOB, \
	    "what the machine has lost: ID-ID, all links between two parts; ID-ID:1, one of them; ID or nic:ID, a " \
	    "GPU, NIC or switch; s5:0-3, GPUs of a server, as a tray; comma separated, or given several times") \
	X(OPT_FAILURES, "failures", 0, "N", BATCH, \
	    "with 1, also schedules for each single link, GPU, NIC or switch lost, and an index for each loss") \
	X(OPT_RELAY, "relay", 0, "LIST", COMPILE | BATCH | TUNE, \
	    "GPUs that are not ranks and forward data of the job; rest: all that the job has not") \
	X(OPT_ALGORITHM, "algorithm", 'a', "NAME", COMPILE | BATCH | ADVISE | WHATIF, \
	    "the trees to choose from (default trees)") \
	X(OPT_RADIX, "radix", 0, "K", COMPILE | BATCH | ADVISE | WHATIF, \
	    "of knomial, bruck and host-staged-knomial: K - 1 messages in a step (default 2, binomial trees)") \
	X(OPT_HIERARCHY, "hierarchy", 0, "LIST", COMPILE | BATCH | ADVISE | WHATIF, \
	    "of hierarchical-ring: GPUs in the rings of each layer, the innermost first, as 4x8x4; default: those of " \
	    "a server, and the servers") \
	X(OPT_HYBRID, "hybrid", 0, "[KIND]", COMPILE | BATCH, \
	    "divide each message between the default class and PCIe; peer: by switching peer access (default), " \
	    "host: through the host's memory") \
	X(OPT_PACKING, "packing", 'p', "KIND", COMPILE | BATCH, \
	    "exact: the optimal rate (default); mwu: Blink's method, a rate near it, for broadcast, reduce and " \
	    "allreduce") \
	X(OPT_EPSILON, "epsilon", 0, "X", COMPILE | BATCH, \
	    "MWU stops within X of the optimum, 0.001 to 0.49 (default 0.05)") \
	X(OPT_TOLERANCE, "tolerance", 0, "X", COMPILE | BATCH, \
	    "fewest trees within X of the optimum, 0 to 0.99 (default 0; 0.05 with --packing mwu)") \
	X(OPT_MATRIX, "matrix", 0, "FILE", COMPILE | SIMULATE, \
	    "of an alltoall: plan for the bytes from each rank to each that FILE has, a line for each rank that " \
	    "sends; the schedule serves any other, too") \
	X(OPT_MAX_DEPTH, "max-depth", 0, "N", COMPILE | BATCH, \
	    "no tree deeper than N hops, up and down together; the rate may be lower") \
	X(OPT_MAX_TREES, "max-trees", 0, "N", COMPILE | BATCH, "at most N trees; the rate may be lower") \
	X(OPT_PARETO, "pareto", 0, NULL, COMPILE, \
	    "print the best rate for each number of trees and depth; with --size the algorithms that none betters in " \
	    "both latency and rate, with their times; write no schedule") \
	X(OPT_NO_MINIMISE, "no-minimise", 0, NULL, COMPILE | BATCH, \
	    "keep all trees of the planner; do not look for fewer") \
	X(OPT_BUDGET, "budget", 0, "TIME", COMPILE | SIMULATE, \
	    "write the best schedule found within TIME, as 10s or 500ms, default: 60m; if that cuts the plan " \
	    "short, its bytes depend on the machine") \
	X(OPT_FROM, "from", 0, "KIND", READS_TOPOLOGY, NULL) \
	X(OPT_GPU_MODEL, "gpu-model", 0, "NAME", READS_TOPOLOGY | PROBE, \
	    "the model of the GPUs, as V100-SXM2 or H100-SXM, where the file does not state it: rates of links \
follow from it") \
	X(OPT_CPU, "cpu", 0, "MODEL", READS_TOPOLOGY, \
	    "the CPUs, as sapphire-rapids or epyc: the rate of links between them follows from it, whatever the file " \
	    "says") \
	X(OPT_CPU_LINK, "cpu-link", 0, "X", READS_TOPOLOGY, \
	    "GB/s of each link between two CPUs, in each direction; default: by their model, which is a guess where " \
	    "the file does not state it") \
	X(OPT_SYNTHETIC, "synthetic", 0, "LINE", COMPILE | CONVERT | TOPOLOGY | BATCH | TUNE | SHOW | LINT | ADVISE \
	    | WHATIF | HIERARCHY, \
	    "instead of a topology file: what LINE describes, as \"server:4 gpu:8 switch:300 net:25\"") \
	X(OPT_LIVE, "live", 0, NULL, TOPOLOGY, "instead of a file: the machine that this runs on, by hwloc") \
	X(OPT_CPU_RANKS, "cpu-ranks", 0, "[N]", TOPOLOGY | CONVERT, \
	    "of --live, or of XML of hwloc: ranks are CPUs, not GPUs: N sets of cores, a multiple of the NUMA nodes; " \
	    "default: one for each") \
	X(OPT_MEASURE, "measure", 0, NULL, TOPOLOGY, \
	    "with --live --cpu-ranks: measure what cores copy within NUMA nodes and between them") \
	X(OPT_SERVERS, "servers", 0, "LIST", TOPOLOGY, \
	    "number of servers, each as in the file; of several files one number for all (default 1) or one for " \
	    "each, as 4,2") \
	X(OPT_SERVER, "server", 0, "ID", COMPILE | CONVERT, \
	    "nccl-graph: the file for the ranks of this server, where rings go other ways through others") \
	X(OPT_NIC_RATE, "nic-rate", 0, "X", TOPOLOGY, \
	    "GB/s of each NIC's port, in each direction; default: as in the server's file") \
	X(OPT_RAILS, "rails", 0, NULL, TOPOLOGY, \
	    "the first NICs of all servers go to one leaf switch, the second to another, and so on") \
	X(OPT_LEAF, "leaf", 0, "N", TOPOLOGY, \
	    "N servers to a leaf switch, or with --rails to one for each rail; a spine joins them") \
	X(OPT_OVERSUBSCRIPTION, "oversubscription", 0, "X", TOPOLOGY, \
	    "a leaf's NICs have X times the capacity of its link to the spine (default 1)") \
	X(OPT_SIZE, "size", 0, "LIST", COMPILE | CHECK | CONVERT | SIMULATE | REPORT | TUNE | HIERARCHY, \
	    "one size, as 64K, without --algorithm and --hybrid: the algorithm, with its options, that takes " \
	    "messages of this size the least time; else the time and rate of messages of these sizes, comma " \
	    "separated, as 1024, 1K, 64M or 2G, or 1K-1G, each twice the one before; of a hybrid schedule how it " \
	    "divides them; chakra: the size of the message, the first (default 64M)") \
	X(OPT_CHUNKS, "chunks", 0, "N", COMPILE | CONVERT, \
	    "chakra: cut each segment into N chunks (default 16)") \
	X(OPT_IN_PLACE, "in-place", 0, NULL, COMPILE | CONVERT | TUNE, \
	    "mscclpp and mscclpp-packets: a plan for calls whose input and output are one buffer") \
	X(OPT_EXECUTOR, "executor", 0, "NAME", COMPILE | SIMULATE | TUNE | HIERARCHY | FIT, \
	    "of simulated times: what executes the steps: kernel (default), copy or host") \
	X(OPT_CHUNK, "chunk", 0, "SIZE", SIMULATE | HIERARCHY, \
	    "bytes of a chunk, as 64K; auto (default): the power of two that takes least time") \
	X(OPT_PARAMETERS, "parameters", 0, "FILE", COMPILE | SIMULATE | TUNE | HIERARCHY | FIT, \
	    "start-up times, rates and limits of executors, as JSON, in place of the defaults") \
	X(OPT_TRACE, "trace", 0, "FILE", SIMULATE, \
	    "write each chunk on each link to FILE, as Perfetto and Chrome read it; with one --size") \
	X(OPT_TOP, "top", 0, "N", HIERARCHY, "the N best hierarchies (default 5)") \
	X(OPT_COST, "cost", 0, "LIST", HIERARCHY, \
	    "parameters of the cost, comma separated, as alpha=4.8,layer=0: alpha, layer (us), steps, server, " \
	    "network") \
	X(OPT_MEASUREMENTS, "measurements", 0, "FILE", HIERARCHY, \
	    "fit the parameters to times in FILE, a line hierarchy,bytes,us for each") \
	X(OPT_EXHAUSTIVE, "exhaustive", 0, NULL, HIERARCHY, \
	    "look at every hierarchy, not at the best ones of divisors alone; the answer is the same") \
	X(OPT_NO_SIMULATE, "no-simulate", 0, NULL, HIERARCHY, "the cost alone: simulate nothing") \
	X(OPT_SUMMARY, "summary", 0, "KIND", COMPILE | CHECK | JOB, \
	    "text (default), or json: one line for each schedule, for programs") \
	X(OPT_JUNIT, "junit", 0, "FILE", CHECK | DIFF | LINT, \
	    "write what is valid and invalid, or what differs, to FILE as JUnit XML") \
	X(OPT_GITHUB, "github", 0, NULL, CHECK | DIFF | LINT, "print annotations of GitHub Actions, and nothing else") \
	X(OPT_SCHEMA, "schema", 0, NULL, LINT, "topologies in XML must be valid by blinkc's XML Schema, too") \
	X(OPT_SCHEDULES, "schedules", 0, "KIND", JOB, "whose schedules are planned and written: together (default); " \
	    "alone: of each group the best as if it were alone; or rings") \
	X(OPT_PHASE, "phase", 0, "NAME", SIMULATE, "of the phases of a job: this one alone") \
	X(OPT_OFFSET, "offset", 0, "LIST", SIMULATE, "of a phase: when each of its calls begins, in their order, as " \
	    "0,5ms; default: all at once") \
	X(OPT_JOB, "job", 0, "FILE", ADVISE, "a job, as blinkc job reads it: which GPU each of its ranks should have") \
	X(OPT_TOPOLOGY, "topology", 0, "FILE", CHECK | SHOW | SIMULATE | REPORT | JOB, \
	    "schedules must be for this machine, and ranks of an index fit its links") \
	X(OPT_FAIL_ON, "fail-on", 0, "LIST", DIFF, \
	    "differences that make the exit status 9, comma separated (default any): " \
	    DIFFERENCE_LIST(DIFFERENCE_HELP) "any") \
	X(OPT_SVG, "svg", 0, NULL, SHOW, "as --format svg") \
	X(OPT_TREE, "tree", 't', "LIST", SHOW, \
	    "draw these trees, by number, comma separated, and every rank of them; default: the first, as many " \
	    "as fit") \
	X(OPT_LAYOUT, "layout", 0, "NAME", SHOW, \
	    "layout of GPUs and switches in an SVG: own (default), or dot or neato of Graphviz, if installed") \
	X(OPT_QUIET, "quiet", 'q', NULL, COMPILE | CHECK | BATCH | DIFF | REPORT | CONVERT | TOPOLOGY \
	    | PROBE | SHOW | LINT | ADVISE | WHATIF | SIMULATE | TUNE | HIERARCHY | FIT | JOB, \
	    "no summary and no notes") \
	X(OPT_VERBOSE, "verbose", 'v', NULL, COMPILE | BATCH | TUNE | DIFF | ADVISE | WHATIF | JOB, \
	    "report what each phase finds") \
	X(OPT_HELP, "help", 'h', NULL, EVERY, "print this help") \
	X(OPT_VERSION, "version", 'V', NULL, EVERY, "print the version")

enum {
	OPTION_LIST(ROW_NAME)
	N_OPTIONS
};

/* Where an option means something else to a verb: option, bit of the verb, its name, argument or NULL, help for it
 * alone. */
#define OPTION_OF_VERB_LIST(X) \
	X(OPT_OUTPUT, BATCH, "batch", "DIR", "the directory, created if missing") \
	X(OPT_OUTPUT, JOB, "job", "DIR", "a directory for the schedules of groups, created if missing") \
	X(OPT_TOPOLOGY, JOB, "job", "FILE", "the machine, in place of the one that the job names") \
	X(OPT_GPUS, BATCH, "batch", "FILE", "a file with a list in each line, - is standard input") \
	X(OPT_OUTPUT, TUNE, "tune", "PATH", "the directory, created if missing; of ompi-rules: the file, - is " \
	    "standard output (default)") \
	X(OPT_SIZES, TUNE, "tune", "LIST", "numbers of GPUs, as 2-8 or 3,5-7 (default: all)") \
	X(OPT_COLLECTIVES, TUNE, "tune", "LIST", "collectives, comma separated, or all (default)") \
	X(OPT_GPUS, TUNE, "tune", "FILE", "a file with a list in each line, - is standard input") \
	X(OPT_SIZE, TUNE, "tune", "LIST", "sizes of messages that are looked at, ascending, as 64K,1M or 1K-1G, each " \
	    "twice the one before (default 1K-1G); where two of them differ, also between") \
	X(OPT_GPUS, ADVISE, "advise", "FILE", "a file with a list in each line, - is standard input") \
	X(OPT_GPUS, WHATIF, "what-if", "FILE", "a file with a list in each line, - is standard input") \
	X(OPT_GPUS, PROBE, "probe", "LIST", "these GPUs alone, by number or id; default: all that the driver shows") \
	X(OPT_GPU_MODEL, PROBE, "probe", "NAME", "the model of the GPUs, if not as the driver names them") \
	X(OPT_SIZE, SIMULATE, "simulate", "LIST", "sizes of messages, comma separated, as 1024, 1K, 64M or 2G, or " \
	    "1K-1G, each twice the one before; default: 1K to 1G, each four times the one before") \
	X(OPT_CHUNK, SIMULATE, "simulate", "SIZE", "bytes of a chunk, as 64K; auto (default): the power of two that " \
	    "takes least time; of an algorithm of MSCCL: bytes of a message, by default as its protocol has them; " \
	    "not of a plan of MSCCL++, which has its own") \
	X(OPT_MATRIX, SIMULATE, "simulate", "FILE", "of an alltoall: the bytes from each rank to each that FILE " \
	    "has, a line for each rank that sends, in place of --size") \
	X(OPT_BUDGET, SIMULATE, "simulate", "TIME", "end with exit status 4 and the number of steps when that takes " \
	    "longer than TIME, as 10s or 500ms, default: 60m; the result does not depend on it") \
	X(OPT_EXECUTOR, FIT, "fit", "NAME", "whose parameters: kernel, copy or host (default)") \
	X(OPT_PARAMETERS, FIT, "fit", "FILE", "where the search begins, as JSON; by_memory 1: of ranks that share " \
	    "the memory of one server") \
	X(OPT_SIZE, HIERARCHY, "hierarchy", "SIZE", "bytes of the message, as 65536, 64K or 1G (default 128M)") \
	X(OPT_TOPOLOGY, SIMULATE, "simulate", "FILE", "the schedule must be for this machine; of an algorithm of " \
	    "MSCCL or a plan of MSCCL++: the machine whose links it takes") \
	X(OPT_GPUS, SIMULATE, "simulate", "LIST", "of an algorithm of MSCCL or a plan of MSCCL++: the GPUs of " \
	    "--topology that its GPUs 0, 1 and so on are, by index or id; default: all, in order") \
	X(OPT_SIZE, REPORT, "report", "LIST", "with --topology: sizes of messages, comma separated, as 1024, 1K, 64M " \
	    "or 2G, or 1K-1G; default: 1K to 1G, each four times the one before") \
	X(OPT_TOPOLOGY, REPORT, "report", "FILE", "the machine: also charts of time and bandwidth over the size of " \
	    "messages, beside rings and what NCCL would choose") \
	X(OPT_TOPOLOGY, SHOW, "show", "FILE", "the machine of a directory: finds jobs that its index does not list") \
	X(OPT_WITHOUT, SHOW, "show", "LIST", "the job on what is left of the machine, as its batch planned it") \
	X(OPT_GPUS, SHOW, "show", "LIST", "of a directory of schedules or a machine: these GPUs, by index or id, " \
	    "comma separated") \
	X(OPT_LINKS, SHOW, "show", "LIST", "a line for each link of these classes") \
	X(OPT_QUIET, DIFF, "diff", NULL, "print nothing") \
	X(OPT_VERBOSE, ADVISE, "advise", NULL, "every class and every set") \
	X(OPT_VERBOSE, WHATIF, "what-if", NULL, "every line of the table") \
	X(OPT_VERBOSE, DIFF, "diff", NULL, "every difference, and changes without effect")

typedef struct {
	const char *value[N_OPTIONS];	/* NULL: not given; "": without argument */
	int n_files;
	char **file;
} Options;

/* verb, bit: what messages call it, and whose options these are. verbs_text: the names of others, by their bits.
 * Fails: USAGE. */
Status options_parse(Ctx *ctx, int argc, char **argv, const char *verb, int bit, NamesText (*verbs_text)(int bits),
    Options *out);

/* The help of an option: of one verb, or of several. */
void option_help(int option, int verbs, Text *out);

/* A line or more for each option of these verbs, on standard output. */
void options_print(int verbs);

/* A text behind what is in the line already, in columns `first` to 79; and a newline. */
void print_wrapped(int first, const char *text);

#endif
