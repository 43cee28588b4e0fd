/* blinkc: options, verbs, and the whole pipeline in one screen (compile_file). The only file that prints errors and
 * exits. */
#include "base/digest.h"
#include "base/file.h"
#include "passes.h"
#include "report.h"
#include "request.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct verb {
	const char *name;
	int bit;
	const char *arguments, *summary;
	Status (*run)(Ctx *ctx, const Options *opt);
};

/* ---- time ---- */

static struct {
	int64_t start, limit;	/* ms; limit 0: none */
	bool terminal;		/* somebody looks on */
	int64_t shown;		/* when a line was last shown; 0: none is there */
} watch;

static int64_t
now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
hide_progress(void)
{
	if (watch.shown)
		fprintf(stderr, "\r\033[K");
	watch.shown = 0;
}

/* What work is at, ten times a second, once it takes long; what is left of the budget. */
static int
on_progress(void *of, const char *line)
{
	(void)of;
	int64_t now = now_ms(), left = watch.limit ? watch.start + watch.limit - now : INT_MAX;
	if (watch.terminal && now - watch.start > 500 && now - watch.shown > 100) {
		fprintf(stderr, "\r\033[K%.70s, %.1f s", line, (double)(now - watch.start) / 1000);
		watch.shown = now;
	}
	return (int)left;
}

/* ---- files by reference ---- */

/* Where the topologies of blinkc are: beside the program, as installed or as built. */
static const char *const *
topology_dirs(void)
{
	static char installed[4200], built[4200], checked[4200];
	static const char *const dirs[] = { installed, built, checked, NULL };
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n > 0 ? n : 0] = 0;
	char *slash = strrchr(program, '/');
	*(slash ? slash : program) = 0;
	snprintf(installed, sizeof installed, "%s/../share/blinkc/topologies", program);
	snprintf(built, sizeof built, "%s/../topologies", program);
	snprintf(checked, sizeof checked, "%s/../../topologies", program);	/* a build with sanitizers lies in build/asan */
	return dirs;
}

/* The topology that a verb is given, as text: a file, or what a line describes. */
static Status
input_topology(Ctx *ctx, const Options *opt, const char **label, Text *out)
{
	bool synthetic = opt->value[OPT_SYNTHETIC];
	if (opt->n_files != !synthetic)
		return fail(ctx, USAGE, "%d topology files: want %s; blinkc --help tells more", opt->n_files,
		    synthetic ? "none with --synthetic" : "one");
	*label = synthetic ? "--synthetic" : opt->file[0];
	return synthetic ? synthetic_text(ctx, opt->value[OPT_SYNTHETIC], out) : file_read(ctx, *label, out);
}

/* ---- compile ---- */

static Status
emit_as(Ctx *ctx, const char *format, const Schedule *sched, const Text *json, const char *path)
{
	Program *prog;
	Text cu = { 0 };
	char digest[DIGEST_ROOM];
	if (strcmp(format, "json") == 0)
		return file_write(ctx, path, json);
	digest_of(json->data, json->size, digest);
	TRY(lower(ctx, sched, &prog));
	Status status = emit_cu(ctx, prog, digest, &cu);
	if (status == OK)
		status = file_write(ctx, path, &cu);
	text_free(&cu);
	return status;
}

static Status
print_pareto(Ctx *ctx, const Topology *job, const Symmetry *sym, const Bound *bound, const Request *ask)
{
	ParetoPoint *point;
	int n;
	TRY(plan_pareto(ctx, job, sym, bound, ask, &point, &n));
	hide_progress();
	report_pareto(bound, point, n);
	return OK;
}

/* From induce to build, all links as one topology. *out: NULL where a table was asked for instead. */
static Status
plan_whole(Ctx *ctx, const Options *opt, const Topology *machine, const int *gpu, int n, Request *ask, unsigned *classes,
    Frac *best, Schedule **out)
{
	Topology *job;
	Symmetry *sym;
	Bound bound, proof;
	Packing *pack;
	if (opt->value[OPT_LINKS])
		TRY(request_links(ctx, opt->value[OPT_LINKS], classes));
	else
		TRY(topo_default_classes(ctx, machine, gpu, n, classes));
	TRY(topo_induce(ctx, machine, gpu, n, *classes, &job));
	TRY(request_root(ctx, job, ask->coll, opt->value[OPT_ROOT], &ask->root));
	TRY(topo_symmetry(ctx, job, ask->root, plan_by_symmetry(job, ask), &sym));
	TRY(bound_compute(ctx, job, sym, ask->coll, ask->root, &bound));
	*out = NULL;
	if (opt->value[OPT_PARETO])
		return print_pareto(ctx, job, sym, &bound, ask);
	TRY(plan_algorithm(ctx, job, sym, &bound, ask, &pack, &proof, best));
	return sched_build(ctx, job, &proof, ask, algorithm_name(ask->algorithm), pack, out);
}

/* As plan_whole, but pcie and qpi are planned by themselves, and the other links too. */
static Status
plan_parts(Ctx *ctx, const Options *opt, const Topology *machine, const int *gpu, int n, HybridKind kind, Request *ask,
    unsigned *classes, Schedule **out)
{
	Topology *plane, *job;
	Part part[2];
	TRY(hybrid_parts(ctx, machine, gpu, n, kind, part));
	*classes = part[0].classes | part[1].classes;
	TRY(hybrid_induce(ctx, machine, gpu, n, part, kind, &plane, &job));
	TRY(request_root(ctx, job, ask->coll, opt->value[OPT_ROOT], &ask->root));
	return plan_hybrid(ctx, plane, job, part, 2, ask, out);
}

/* The arrow of model.h. What is written is what was read back and verified, not what we meant. */
static Status
compile_text(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in, Text value[4],
    Text *json)
{
	Request ask;
	HybridKind hybrid = HYBRID_PEER;
	Topology *machine;
	Schedule *sched, *again;
	Frac best = FRAC_ZERO;
	Sizes sizes;
	unsigned classes;
	int *gpu, n;
	TRY(request_parse(ctx, opt, &ask));
	if (opt->value[OPT_HYBRID])
		TRY(request_hybrid(ctx, opt, &hybrid));
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], &sizes));
	if (opt->value[OPT_BUDGET])
		TRY(request_budget(ctx, opt->value[OPT_BUDGET], &watch.limit));
	ctx->step = on_progress;
	TRY(topo_read(ctx, label, topology_dirs(), in->data, in->size, &machine));
	TRY(NEW(ctx, gpu, machine->n_ranks));
	TRY(topo_select(ctx, machine, opt->value[OPT_GPUS], gpu, &n));
	if (n < 2)
		return fail(ctx, BAD_INPUT, "%s: 1 GPU: want at least 2 for a collective", opt->value[OPT_GPUS] ? "--gpus" : label);
	if (opt->value[OPT_HYBRID])
		TRY(plan_parts(ctx, opt, machine, gpu, n, hybrid, &ask, &classes, &sched));
	else
		TRY(plan_whole(ctx, opt, machine, gpu, n, &ask, &classes, &best, &sched));
	if (!sched)
		return OK;
	progress(ctx, "writing and verifying %d trees", sched->n_segments);
	TRY(request_record(ctx, opt, &ask, classes, hybrid, value, sched));
	emit_sched_json(sched, json);
	if (json->failed)
		return fail_memory(ctx);
	TRY(sched_read(ctx, "the compiled schedule", json->data, json->size, &again));
	TRY(sched_verify(ctx, "the compiled schedule", again));
	TRY(emit_as(ctx, format, again, json, opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-"));
	hide_progress();
	if (opt->value[OPT_QUIET])
		return OK;
	TRY(report_summary(ctx, stderr, &sizes, again));
	if (!opt->value[OPT_HYBRID])
		report_best(&ask, best);
	return OK;
}

static Status
compile_file(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "json", "cu", NULL };
	const char *format, *label;
	Text in = { 0 }, json = { 0 }, value[4] = { { 0 } };
	TRY(request_format(ctx, opt, formats, "json", &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = compile_text(ctx, opt, format, label, &in, value, &json);
	text_free(&in);
	text_free(&json);
	for (int i = 0; i < 4; i++)
		text_free(&value[i]);
	return status;
}

/* ---- check, convert ---- */

static Status
check_text(Ctx *ctx, const Options *opt, const Sizes *sizes, const char *label, const Text *in)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	if (opt->value[OPT_QUIET])
		return OK;
	printf("%s: right\n", label);
	return report_summary(ctx, stdout, sizes, sched);
}

static Status
check_one(Ctx *ctx, const Options *opt, const Sizes *sizes, const char *path)
{
	Text in = { 0 };
	TRY(file_read(ctx, path, &in));
	Status status = check_text(ctx, opt, sizes, path, &in);
	text_free(&in);
	return status;
}

/* Every file, whatever is wrong with others; the status of the first that is wrong. */
static Status
check_file(Ctx *ctx, const Options *opt)
{
	Status first = OK;
	Sizes sizes;
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], &sizes));
	if (opt->n_files < 1)
		return fail(ctx, USAGE, "no schedule file: want at least one");
	for (int i = 0; i < opt->n_files; i++) {
		Ctx own;
		ctx_init(&own);
		Status status = check_one(&own, opt, &sizes, opt->file[i]);
		ctx_free(&own);
		if (status == OK)
			continue;
		if (first != OK)
			fprintf(stderr, "blinkc: %s\n", ctx->error.text);
		first = first == OK ? status : first;
		ctx->error = own.error;
		ctx->error.status = first;
	}
	return first;
}

static Status
convert_topology(Ctx *ctx, const char *format, const char *label, const Text *in, const char *path)
{
	Text out = { 0 };
	Topology *topo;
	TRY(topo_read(ctx, label, topology_dirs(), in->data, in->size, &topo));
	if (strcmp(format, "json") == 0)
		emit_topo_json(topo, &out);
	else if (strcmp(format, "xml") == 0)
		emit_topo_xml(topo, &out);
	else if (strcmp(format, "canonical") == 0)
		emit_topo_canonical(topo, &out);
	else
		text_add(&out, in->data, in->size);
	Status status = file_write(ctx, path, &out);
	text_free(&out);
	return status;
}

/* A schedule, whoever made it, as source code: only once it is verified. */
static Status
convert_schedule(Ctx *ctx, const char *format, const char *label, const Text *in, const char *path)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	return emit_as(ctx, format, sched, in, path);
}

static Status
convert_file(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "json", "xml", "canonical", "cu", NULL };
	const char *format, *label, *path = opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-";
	Text in = { 0 };
	TRY(request_format(ctx, opt, formats, "json", &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = strcmp(format, "cu") == 0 ? convert_schedule(ctx, format, label, &in, path)
		    : convert_topology(ctx, format, label, &in, path);
	text_free(&in);
	return status;
}

/* ---- topology ---- */

/* The line of --synthetic has words for these. */
static Status
check_no_cluster(Ctx *ctx, const Options *opt)
{
	static const int cluster[] = { OPT_SERVERS, OPT_NIC_RATE, OPT_RAILS, OPT_LEAF, OPT_OVERSUBSCRIPTION };
	for (size_t i = 0; i < sizeof cluster / sizeof *cluster; i++)
		if (opt->value[cluster[i]])
			return fail(ctx, USAGE, "--synthetic: want none of --servers, --nic-rate, --rails, --leaf and --oversubscription with it");
	return OK;
}

/* A cluster file beside the server's own, which is then read like any other. */
static Status
topology_file(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "json", "xml", "canonical", "cluster", NULL };
	const char *format, *path = opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-", *label;
	ClusterRequest ask;
	Text text = { 0 };
	Status status = OK;
	TRY(request_format(ctx, opt, formats, "json", &format));
	if (opt->value[OPT_SYNTHETIC]) {
		TRY(check_no_cluster(ctx, opt));
		status = input_topology(ctx, opt, &label, &text);
	} else {
		TRY(request_cluster(ctx, opt, &ask));
		label = opt->file[0];
		emit_cluster(&ask, &text);
	}
	if (status == OK)
		status = convert_topology(ctx, format, label, &text, path);
	text_free(&text);
	return status;
}

/* ---- verbs ---- */

static const struct verb verbs[] = {
	{ "compile", COMPILE, "[options] TOPOLOGY", "plan a schedule for a topology file (the verb may be left out)", compile_file },
	{ "check", CHECK, "[options] SCHEDULE...", "replay schedules exactly; recompute rate and bound", check_file },
	{ "convert", CONVERT, "[options] FILE", "write a topology in its other spelling, or a schedule as source code", convert_file },
	{ "topology", TOPOLOGY, "[options] SERVER", "write the topology of a cluster of servers, or of what --synthetic says", topology_file },
};

enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void
print_help(const struct verb *only)
{
	printf("Usage: blinkc [VERB] [options] FILE\n\n");
	for (int i = 0; i < N_VERBS; i++)
		if (!only || only == &verbs[i])
			printf("  blinkc %-8s %-23s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].summary);
	printf("\nOptions:\n");
	options_print(only ? only->bit : ~0);
	printf("\nFILE - is standard input. Exit status:\n");
#define X(name, code, text) printf("  %d  %s\n", code, text);
	STATUS_LIST(X)
#undef X
}

static void
say(void *to, const char *line)
{
	fprintf(to, "%s\n", line);
}

static int
exit_code(Status status)
{
	switch (status) {
#define X(name, code, text)                                                                                            \
	case name:                                                                                                     \
		return code;
		STATUS_LIST(X)
#undef X
	}
	return 1;
}

int
main(int argc, char **argv)
{
	const struct verb *verb = NULL;
	Options opt;
	Ctx ctx;
	ctx_init(&ctx);
	/* A write that cannot be done is an error like any other, after which the temporary goes. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < N_VERBS && argc > 1; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			verb = &verbs[i];
	bool named = verb != NULL;
	verb = named ? verb : &verbs[0];
	Status status = options_parse(&ctx, argc - named, argv + named, verb->name, verb->bit, &opt);
	if (status == OK && opt.value[OPT_HELP]) {
		print_help(named ? verb : NULL);
	} else if (status == OK && opt.value[OPT_VERSION]) {
		printf("blinkc %s\n", BLINK_VERSION);
	} else if (status == OK) {
		watch.start = now_ms();
		watch.terminal = isatty(STDERR_FILENO) && !opt.value[OPT_QUIET] && !opt.value[OPT_VERBOSE];
		if (opt.value[OPT_VERBOSE]) {
			ctx.talk = say;
			ctx.talk_to = stderr;
		}
		status = verb->run(&ctx, &opt);
	}
	hide_progress();
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == OK)
		status = fail(&ctx, IO, "standard output: cannot be written");
	if (status != OK)
		fprintf(stderr, "blinkc: %s\n", ctx.error.text);
	ctx_free(&ctx);
	return exit_code(status);
}
