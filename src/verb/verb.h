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
	X(ADVISE, advise, "[options] TOPOLOGY", "which GPUs to ask for: the rate of every set, isomorphic sets once") \
	X(WHATIF, what_if, "[options] TOPOLOGY", \
	    "which jobs get slower without a link, GPU, NIC or switch; what every single loss costs") \
	X(CHECK, check, "[options] SCHEDULE|DIR...", "replay schedules exactly; recompute rate and bound") \
	X(DIFF, diff, "[options] OLD NEW", "what changed in meaning between two schedules, or directories of them") \
	X(SHOW, show, "[options] SCHEDULE|DIR", \
	    "draw the trees, what each link carries, and what proves its bound") \
	X(REPORT, report, "[options] DIR...", "write an HTML page about the schedules of blinkc batch") \
	X(CONVERT, convert, "[options] FILE", "write a topology in its other syntax, or a schedule as source code") \
	X(TOPOLOGY, topology, "[options] SERVER", \
	    "write the topology of a cluster of servers, or that of --synthetic") \
	X(COMPLETION, completion, "bash|zsh|fish", "print a completion script for this shell")

/* A verb as it is typed: an identifier has no "-". */
#define VERB_TEXT(bit, name) ((bit) == WHATIF ? "what-if" : #name)

#define X(bit, name, arguments, summary) Status verb_##name(Ctx *ctx, const Options *opt);
VERB_LIST(X)
#undef X

/* Where the topologies of blinkc are: beside the program, as installed or as built. Ended by NULL. */
const char *const *topology_dirs(void);

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
Status output_topology(Ctx *ctx, const char *format, const char *label, const Text *in, const char *path);

#endif
