/* The verbs of blinkc, a function each, and what several of them share. Results go to standard output, and the error,
 * if any, into ctx->error, for main.c to print. */
#ifndef BLINK_VERB_H
#define BLINK_VERB_H

#include "model/model.h"
#include "verb/findings.h"
#include "verb/options.h"

/* bit in options.h, name, arguments, what it does: compile comes first, as it is what a command line without a verb
 * means */
#define VERB_LIST(X) \
	X(COMPILE, compile, "[options] TOPOLOGY", "plan a schedule for a topology file (the verb may be left out)") \
	X(BATCH, batch, "[options] TOPOLOGY", \
	    "plan schedules for all sets of GPUs, isomorphic sets once; write an index") \
	X(CHECK, check, "[options] SCHEDULE|DIR...", "replay schedules exactly; recompute rate and bound") \
	X(DIFF, diff, "[options] OLD NEW", "what changed in meaning between two schedules, or directories of them") \
	X(SHOW, show, "[options] SCHEDULE|DIR", \
	    "draw the trees, what each link carries, and what proves its bound") \
	X(REPORT, report, "[options] DIR...", "write an HTML page about the schedules of blinkc batch") \
	X(CONVERT, convert, "[options] FILE", "write a topology in its other syntax, or a schedule as source code") \
	X(TOPOLOGY, topology, "[options] SERVER...", \
	    "write the topology of a cluster of servers, of --synthetic, or of this machine (--live)") \
	X(COMPLETION, completion, "bash|zsh|fish", "print a completion script for this shell")

#define X(bit, name, arguments, summary) Status verb_##name(Ctx *ctx, const Options *opt);
VERB_LIST(X)
#undef X

/* Where the topologies of blinkc are: beside the program, as installed or as built. Ended by NULL. */
const char *const *topology_dirs(void);

/* A topology file of any format, by --from and --gpu-model. What was assumed is printed on standard error, if not
 * --quiet. label: as messages call it. Fails: as topo_read_as; USAGE. */
Status read_topology(Ctx *ctx, const Options *opt, const char *label, const Text *in, Topology **out);

/* The topology that a verb is given, as text: a file, or the machine of a line. label: what messages call it. */
Status input_topology(Ctx *ctx, const Options *opt, const char **label, Text *out);

/* -o, or standard output. */
const char *output_path(const Options *opt);

/* A schedule, whose file is `json`, in a format (format.h). */
Status output_schedule(Ctx *ctx, const char *format, const Schedule *sched, const Text *json, const char *path);

/* Write what --github and --junit ask for. title: what reports call the findings; summary: one line. */
Status output_findings(Ctx *ctx, const Options *opt, const char *title, const Finding *finding, int n,
    const char *summary);

/* A topology file in a format (format.h); cluster: `in` itself, once it is known to be valid. */
Status output_topology(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in,
    const char *path);

#endif
