/* Names that the command line of blink-perf has: of types, operations, options and what they may be. */
#ifndef BLINK_PERF_NAMES_H
#define BLINK_PERF_NAMES_H

#include "blink.h"

#include <stdbool.h>

/* Of a floating-point type: sums of whole numbers up to 2^whole are exact, and products from 2^-power to 2^power. */
struct type {
	const char *name, *also;
	blinkDataType_t code;
	int bits;
	bool is_signed, is_float;
	int whole, power;
};

struct op {
	const char *name;
	blinkRedOp_t code;
};

enum { N_TYPES = 12, N_OPS = 5 };

extern const struct type types[N_TYPES];
extern const struct op ops[N_OPS];

/* Options without a letter. */
enum { OPT_COLLECTIVE = 256, OPT_COMPLETION, OPT_DATA_ONLY, OPT_MIAD, OPT_WITHOUT, OPT_RANKS, OPT_THREADS_AS_RANKS,
	OPT_BACKEND, OPT_GRAPH, OPT_FORMAT };

/* Where an option has a meaning: everywhere; where this process drives all ranks of one schedule; in a job. */
enum scope { ANY, ONE, JOB };

/* letter or 0, name, argument or "", where, help */
#define OPTION_LIST(X)                                                                                     \
	X('b', "minbytes", "BYTES", ANY, "smallest size, as 1024, 1K, 64M or 2G (default 32M)")           \
	X('e', "maxbytes", "BYTES", ANY, "largest size (default 32M, or the smallest size if that is larger)") \
	X('i', "stepbytes", "BYTES", ANY, "increment from size to size (default 1M)")                      \
	X('f', "stepfactor", "N", ANY, "factor from size to size instead, 2 to 1024")                      \
	X('n', "iters", "N", ANY, "runs to time, 1 or more (default 20)")                                  \
	X('w', "warmup_iters", "N", ANY, "warm-up runs before them (default 5)")                           \
	X('c', "check", "0|1", ANY, "check every element of the result (default 1)")                       \
	X('d', "datatype", "NAME", ANY, "int8, uint8, int32, uint32, int64, uint64, half, float (default), " \
	    "double, bfloat16, fp8_e4m3, fp8_e5m2 or all")                                                 \
	X('o', "op", "NAME", ANY, "sum (default), prod, max, min, avg or all")                             \
	X('C', "chunk", "BYTES", ANY, "bytes that a tree moves at a time (default 0: by the size)")        \
	X(OPT_MIAD, "miad", "", ANY, "search the chunk of each size: doubled while that is faster, then lowered; " \
	    "prints each try")                                                                             \
	X('t', "threads", "N", ONE, "threads of the host backend, 0 to 256 (default 0: one for each CPU)") \
	X('g', "gpus", "LIST", ANY, "from an index: GPUs of the job, by index or id, or ranges as 0-3, comma " \
	    "separated; GPU i of the list is rank i; default: all")                                                   \
	X('r', "root", "RANK", ANY, "from an index, or of a job: root of broadcast, reduce, gather or scatter: a " \
	    "rank (default 0) or, of an index, the id of a GPU")                                                \
	X(OPT_COLLECTIVE, "collective", "NAME", ANY, "from an index, or of a job: broadcast, reduce, allreduce " \
	    "(default), gather, scatter, allgather, reducescatter or alltoall")                            \
	X(OPT_WITHOUT, "without", "LIST", ONE, "from an index: the machine has lost this, as gpu3-gpu5; blinkc batch " \
	    "--failures makes it")                                                                         \
	X(OPT_DATA_ONLY, "data-only", "", ONE, "load schedule files only: refuse a shared object, which is code") \
	X(OPT_RANKS, "ranks", "N", ANY, "run a job of N ranks, each a process of its own, 1 to 1024")      \
	X(OPT_THREADS_AS_RANKS, "threads-as-ranks", "", JOB, "each rank is a thread")                      \
	X(OPT_BACKEND, "backend", "NAME", JOB, "where buffers are: host or cuda (default: BLINK_BACKEND, else host)") \
	X(OPT_GRAPH, "graph", "N", JOB, "on cuda: capture N calls into a CUDA graph, and time its replays") \
	X(OPT_FORMAT, "format", "NAME", ANY, "text (default), csv or json")                                \
	X(OPT_COMPLETION, "completion", "SHELL", ANY, "print a completion script for bash, zsh or fish")   \
	X('h', "help", "", ANY, "print this help")                                                         \
	X('V', "version", "", ANY, "print the version")

/* Names of formats and of backends; the last is NULL. */
enum { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, N_FORMATS };
extern const char *const format_names[], *const backend_names[];

/* Names of collectives, by blinkCollective_t. */
extern const char *const collectives[];

#endif
