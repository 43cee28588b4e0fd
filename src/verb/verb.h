/* The verbs of blinkc, a function each, and what several of them share. Results go to standard output, and the error,
 * if any, into ctx->error, for main.c to print. */
#ifndef BLINK_VERB_H
#define BLINK_VERB_H

#include "model/model.h"
#include "verb/findings.h"
#include "verb/options.h"
#include "verb/shipped.h"

#include <stdio.h>

/* bit in verb_bits.h, name, group in the list of verbs, arguments, what it does (57 characters at most, so that the
 * list fits 80 columns), statuses with which it exits besides ON_EVERY_VERB, examples. Verbs of a group stand together.
 * compile comes first, as it is what a command line without a verb means.
 *
 * Examples: two or more, each a line with what it does, and a command on the next. A test runs them, from the first
 * verb to the last, in a directory where topologies/ and examples/ are; so they may use files that earlier ones
 * wrote. */
#define VERB_LIST(X) \
	X(COMPILE, compile, "plan", "[options] TOPOLOGY", \
	    "plan a schedule for a machine (this verb may be left out)", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE), \
	    "an allreduce over four GPUs of a DGX-1V\n" \
	    "blinkc dgx1v -g 1,4-6 -o job.json\n" \
	    "a broadcast over all of them, from GPU 4, as source code\n" \
	    "blinkc dgx1v -c broadcast -r gpu4 -o broadcast.cu\n") \
	X(BATCH, batch, "plan", "[options] TOPOLOGY", \
	    "plan all sets of GPUs that a job may get; write an index", \
	    ON(BAD_INPUT) | ON(LIMIT), \
	    "allreduce and broadcast for all jobs of 2 to 4 GPUs\n" \
	    "blinkc batch dgx1v --sizes 2-4 --collectives allreduce,broadcast -o schedules\n" \
	    "for the jobs of a list, a line for each\n" \
	    "echo 5,1,4 | blinkc batch dgx1v -g - -o jobs\n") \
	X(JOB, job, "plan", "[options] JOB", \
	    "plan all groups of a job at once: tensor, data parallel...", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE), \
	    "how long do the phases of a step take, together and alone?\n" \
	    "blinkc job examples/jobs/dgx1v.json\n" \
	    "a schedule for each group, and an index for the runtime\n" \
	    "blinkc job examples/jobs/dgx1v.json -o groups && blinkc check groups\n") \
	X(ADVISE, advise, "plan", "[options] TOPOLOGY | --job FILE", \
	    "which GPUs to ask for: the rate of every set", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE), \
	    "which four GPUs are fastest, and which are slowest?\n" \
	    "blinkc advise dgx1v -n 4\n" \
	    "the same for Slurm: gres.conf, and what a job script sets\n" \
	    "blinkc advise dgx1v -n 4 --format slurm\n" \
	    "which GPU should each rank of a job have, so that its groups are fastest?\n" \
	    "blinkc advise --job examples/jobs/dgx1v.json\n") \
	X(WHATIF, what_if, "plan", "[options] TOPOLOGY", \
	    "what the loss of a link, GPU, NIC or switch costs", \
	    ON(BAD_INPUT) | ON(LIMIT), \
	    "every single loss, the most expensive first\n" \
	    "blinkc what-if dgx1v\n" \
	    "which jobs get slower without these, and by how much?\n" \
	    "blinkc what-if dgx1v --without gpu0-gpu3:1 --without gpu1-gpu2\n") \
	X(PROBE, probe, "machine", "[options]", \
	    "write the topology of this machine, by NVIDIA's driver", \
	    ON(BAD_INPUT) | ON(LIMIT), \
	    "the machine that this runs on\n" \
	    "blinkc probe -o machine.xml\n" \
	    "four of its GPUs, for other programs\n" \
	    "blinkc probe -g 0-3 --format json -o four.json\n") \
	X(TOPOLOGY, topology, "machine", "[options] SERVER...", \
	    "write the topology of a cluster, or of this machine", \
	    ON(BAD_INPUT) | ON(LIMIT), \
	    "four servers, with a switch between their NICs\n" \
	    "blinkc topology dgx-a100 --servers 4 -o cluster.xml\n" \
	    "a machine that a line describes\n" \
	    "blinkc topology --synthetic \"server:2 gpu:8 switch:300 net:25\" -o two.xml\n") \
	X(CONVERT, convert, "machine", "[options] FILE", \
	    "convert a topology of any kind, or a schedule to code", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE) | ON(UNVERIFIED), \
	    "a topology in JSON\n" \
	    "blinkc convert dgx1v -o dgx1v.json\n" \
	    "a schedule as source code\n" \
	    "blinkc convert job.json -o job.cu\n") \
	X(LIST, list, "machine", "", \
	    "name the topologies that come along", \
	    0, \
	    "what there is, with sizes and links\n" \
	    "blinkc list\n" \
	    "the same for programs\n" \
	    "blinkc list --format json -o list.json\n") \
	X(SHOW, show, "look", "[options] SCHEDULE|DIR|TOPOLOGY", \
	    "draw a machine, or a schedule with its loads and proof", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(UNVERIFIED), \
	    "a machine, with the matrix of nvidia-smi topo -m\n" \
	    "blinkc show dgx1v\n" \
	    "a schedule as a picture\n" \
	    "blinkc show job.json -o job.svg\n" \
	    "the schedule of a job in a directory, as text\n" \
	    "blinkc show schedules -g 5,1,4 -c broadcast -r gpu5\n") \
	X(REPORT, report, "look", "[options] DIR...", \
	    "write an HTML page about the schedules of a batch", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(UNVERIFIED), \
	    "a page about all schedules of a batch\n" \
	    "blinkc report schedules -o report.html\n" \
	    "two batches of one machine, side by side\n" \
	    "blinkc report schedules jobs -o both.html\n") \
	X(CHECK, check, "check", "[options] SCHEDULE|DIR...", \
	    "replay schedules exactly; recompute rate and bound", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(UNVERIFIED), \
	    "is a schedule right, and as fast as it says?\n" \
	    "blinkc check job.json\n" \
	    "are all of a directory, and are they for this machine?\n" \
	    "blinkc check --topology dgx1v schedules\n") \
	X(DIFF, diff, "check", "[options] OLD NEW", \
	    "compare the meaning of two schedules, or directories", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(UNVERIFIED) | ON(DIFFERENT), \
	    "what differs between the schedule of a job and the one in a directory\n" \
	    "blinkc diff job.json schedules/allreduce/0-3.json\n" \
	    "did any schedule become slower? nothing else is an error\n" \
	    "blinkc diff --fail-on rate jobs schedules\n") \
	X(LINT, lint, "check", "[options] TOPOLOGY...", \
	    "find what is implausible in topologies", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(IMPLAUSIBLE), \
	    "is anything odd about a machine?\n" \
	    "blinkc lint dgx1v\n" \
	    "in a CI job, with annotations and a report\n" \
	    "blinkc lint --github --junit lint.xml dgx1v topologies/dgx2.xml\n") \
	X(SIMULATE, simulate, "time", "[options] SCHEDULE", \
	    "how long messages take, and which link is the bottleneck", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE) | ON(UNVERIFIED), \
	    "time and rate of a schedule at sizes from 1 KB to 1 GB\n" \
	    "blinkc simulate job.json\n" \
	    "at one size, what takes the time; and each chunk on each link, for Perfetto\n" \
	    "blinkc simulate job.json --size 1M --trace trace.json\n" \
	    "an algorithm of MSCCL, of any program, on GPUs of a machine\n" \
	    "blinkc dgx1v -g 0-3 --format msccl -o other.xml && blinkc simulate other.xml --topology dgx1v -g 0-3\n" \
	    "a plan of MSCCL++, likewise\n" \
	    "blinkc dgx1v --format mscclpp -o plan.json && blinkc simulate plan.json --topology dgx1v\n") \
	X(TUNE, tune, "time", "[options] TOPOLOGY", \
	    "plan the fastest algorithm for each size of messages", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE), \
	    "all collectives over all GPUs of a DGX-1V, for messages of 1 KiB to 1 GiB\n" \
	    "blinkc tune dgx1v -o bundle\n" \
	    "allreduces of all jobs of five GPUs, as copy engines execute them\n" \
	    "blinkc tune dgx1v --sizes 5 --distinct --collectives allreduce --executor copy -o five\n" \
	    "which of its algorithms Open MPI is to take, on eight servers\n" \
	    "blinkc tune --synthetic \"server:8 gpu:1 net:12.5\" --format ompi-rules -o rules\n") \
	X(HIERARCHY, hierarchy, "time", "[options] TOPOLOGY", \
	    "the best hierarchies of rings for an allreduce", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(INFEASIBLE), \
	    "the best five for 16 GPUs of ABCI\n" \
	    "blinkc hierarchy abci-rack -g 0-15\n" \
	    "the best one for messages of 1 MB, without start-ups of layers\n" \
	    "blinkc hierarchy abci-rack -g 0-15 --size 1M --top 1 --cost layer=0\n") \
	X(FIT, fit, "time", "[options] FILE", \
	    "parameters of simulated times, from measured ones", \
	    ON(BAD_INPUT) | ON(LIMIT) | ON(UNVERIFIED), \
	    "what executes this schedule took 52.4 us for 1 MiB, and 1036 us for 64 MiB\n" \
	    "printf 'job.json,1048576,52.4\\njob.json,67108864,1036\\n' >times.csv && " \
	    "blinkc fit times.csv --executor kernel -o fitted.json\n" \
	    "a message of another size with these parameters\n" \
	    "blinkc simulate job.json --size 16M --parameters fitted.json\n") \
	X(COMPLETION, completion, "shell", "bash|zsh|fish", \
	    "print a completion script for this shell", \
	    0, \
	    "for this shell alone, if it is bash\n" \
	    "source <(blinkc completion bash)\n" \
	    "for fish, from now on\n" \
	    "blinkc completion fish >blinkc.fish\n") \
	X(HELP, help, "shell", "[VERB]", \
	    "list the verbs, or the options of one", \
	    0, \
	    "what there is\n" \
	    "blinkc help\n" \
	    "a verb, with its options\n" \
	    "blinkc help batch\n")

/* A verb as it is typed: an identifier has no "-". */
#define VERB_TEXT(bit, name) ((bit) == WHATIF ? "what-if" : #name)

/* Statuses as a bit set. */
#define ON(status) (1u << (status))
#define ON_EVERY_VERB (ON(OK) | ON(INTERNAL) | ON(USAGE) | ON(NO_MEMORY) | ON(IO))

#define X(bit, name, ...) Status verb_##name(Ctx *ctx, const Options *opt);
VERB_LIST(X)
#undef X

/* A row of the list. */
typedef struct {
	const char *name, *group;
	int bit;
	const char *arguments, *summary;
	unsigned exits;			/* all, as a bit set */
	const char *examples;
	Status (*run)(Ctx *ctx, const Options *opt);
} Verb;

extern const Verb verb_rows[];		/* ended by a row without a name */
const Verb *verb_find(const char *name);	/* NULL: none */

/* The first word of a command line, which is no verb: may it be an operand? next: the word after it, or NULL.
 * Fails: USAGE a mistyped verb. */
Status verb_check_word(Ctx *ctx, const char *word, const char *next);

/* "compile, batch or show": those of a bit set, for messages. */
NamesText verbs_text(int bits);

/* On standard output. NULL: of all verbs. */
void help_print(const Verb *verb);

/* The default of --routes for this machine (idle.h), with a line about it, if not quiet. */
Routes choose_routes(const Ctx *ctx, const Options *opt, const Topology *machine, const Ask *ask);

/* A topology file of any format, by --from and --gpu-model. What was assumed is printed on standard error, if not
 * --quiet. label: as messages call it. Fails: as topo_read_as; USAGE. */
Status read_topology(Ctx *ctx, const Options *opt, const char *label, const Text *in, Topology **out);

/* The machine that a verb is given (input_topology), read; and that of --topology, which is given. label: what messages
 * call it. */
Status read_machine(Ctx *ctx, const Options *opt, const char **label, Topology **out);
Status read_machine_of(Ctx *ctx, const Options *opt, const char **label, Topology **out);

/* Its notes, on standard error, if not --quiet. */
void print_notes(const Options *opt, const Topology *topo);

/* The machine that this runs on, as XML of hwloc: live_write, whatever the environment has for hwloc. */
Status read_live(Ctx *ctx, bool measure, Text *out);

/* The topology that a verb is given, as text: a file, or the machine of a line. label: what messages call it. */
Status input_topology(Ctx *ctx, const Options *opt, const char **label, Text *out);

/* Has a directory the index of a batch? Fails: IO, saying what is there instead. */
Status check_batch_directory(Ctx *ctx, const char *path);

/* -o, or standard output. */
const char *output_path(const Options *opt);

/* The end of a verb: progress is hidden, and `out` is written to -o, unless `status` is an error, and freed. Returns
 * that error. Fails: NO_MEMORY the text has failed; as file_write does. */
Status output_text(Ctx *ctx, const Options *opt, Status status, Text *out);

/* A schedule, whose file is `json`, in a format (format.h), to -o. */
Status output_schedule(Ctx *ctx, const Options *opt, const char *format, const Schedule *sched, const Text *json);

/* A line, if there is something to say: what a file in this format does not hold of the schedule. Fails as its writer;
 * the caller frees *out, whatever is returned. */
Status format_note(Ctx *ctx, const Options *opt, const char *format, const Schedule *sched, Text *out);

/* Write what --github and --junit ask for. title: what reports call the findings; summary: one line. */
Status output_findings(Ctx *ctx, const Options *opt, const char *title, const Finding *finding, int n,
    const char *summary);

/* A topology file in a format (format.h); cluster: `in` itself, once it is known to be valid. */
Status output_topology(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in,
    const char *path);

#endif
