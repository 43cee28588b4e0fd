/* The command line of blink-perf. */
#ifndef BLINK_PERF_OPTIONS_H
#define BLINK_PERF_OPTIONS_H

#include "perf/names.h"

#include <stdint.h>

struct options {
	int64_t min, max, step, factor, iters, warmup, check, chunk, threads;
	int64_t ranks, graph;		/* 0: not given */
	const char *type, *op;		/* a name, or "all" */
	const char *path;		/* of a job: NULL: not given */
	const char *gpus;		/* NULL: not given */
	const char *without;		/* NULL: not given */
	const char *root;		/* NULL: not given */
	const char *backend;		/* NULL: not given, and not in BLINK_BACKEND */
	int collective;			/* -1: not given */
	int format;			/* of format_names */
	bool data_only, miad, threads_as_ranks;
};

enum { MORE = -1, USAGE = blinkInvalidArgument };

/* MORE, or the exit code. */
int take_options(struct options *opt, int argc, char **argv);

/* Where the lines of this thread go instead: COMPLAINT bytes, of which the first line stays; NULL: standard error. */
enum { COMPLAINT = 2048 };
extern _Thread_local char *complaint;

/* One line on standard error; returns the code. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
