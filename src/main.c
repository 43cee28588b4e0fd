/* blinkc: options, verbs, and the whole pipeline in one screen (compile_file). The only file that prints errors and
 * exits. */
#include "base/digest.h"
#include "base/file.h"
#include "passes.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

/* name, letter, argument or NULL, verbs it belongs to, help */
#define OPTION_LIST(X)                                                                                                 \
	X(OPT_OUTPUT, "output", 'o', "FILE", COMPILE | CONVERT, "write FILE; - is standard output (default)")          \
	X(OPT_FORMAT, "format", 0, "NAME", COMPILE | CONVERT, "compile: json or cu; convert: json, xml or canonical of a topology, cu of a schedule; default: by the ending of FILE, json on standard output") \
	X(OPT_COLLECTIVE, "collective", 'c', "NAME", COMPILE, "broadcast, reduce, allreduce (default), gather, scatter, allgather, reducescatter or alltoall")              \
	X(OPT_ROOT, "root", 'r', "RANK", COMPILE, "root of broadcast, reduce, gather or scatter: a rank (default 0) or the id of a GPU")  \
	X(OPT_GPUS, "gpus", 'g', "LIST", COMPILE, "GPUs of the job, by index or id, comma separated; GPU i of the list is rank i; default: all") \
	X(OPT_LINKS, "links", 'l', "LIST", COMPILE, "link classes to use, comma separated, or all; default: the fastest class that connects the GPUs, alone or with net, else all") \
	X(OPT_PACKING, "packing", 'p', "KIND", COMPILE, "mwu: a rate near the optimum, default for broadcast, reduce and allreduce; exact: the optimum, the only kind for others")       \
	X(OPT_EPSILON, "epsilon", 0, "X", COMPILE, "MWU stops within X of the optimum, 0.001 to 0.49 (default 0.05)")   \
	X(OPT_TOLERANCE, "tolerance", 0, "X", COMPILE, "fewest trees within X of the optimum, 0 to 0.99 (default 0.05; 0 with --packing exact)") \
	X(OPT_NO_MINIMISE, "no-minimise", 0, NULL, COMPILE, "keep all trees that MWU finds")                           \
	X(OPT_QUIET, "quiet", 'q', NULL, COMPILE | CHECK, "no summary")                                                \
	X(OPT_VERBOSE, "verbose", 'v', NULL, COMPILE, "say what each phase finds")                                     \
	X(OPT_HELP, "help", 'h', NULL, COMPILE | CHECK | CONVERT, "print this help")                                   \
	X(OPT_VERSION, "version", 'V', NULL, COMPILE | CHECK | CONVERT, "print the version")

enum { COMPILE = 1, CHECK = 2, CONVERT = 4 };

enum {
	OPT_FIRST = 256,
#define X(name, text, letter, argument, verbs, help) name,
	OPTION_LIST(X)
#undef X
};

struct options {
	const char *output, *format, *collective, *root, *gpus, *links, *packing, *epsilon, *tolerance;
	bool no_minimise, quiet, verbose, help, version;
	int n_files;
	char **file;
};

struct verb {
	const char *name;
	int bit;
	const char *arguments, *summary;
	Status (*run)(Ctx *ctx, const struct options *opt);
};

/* ---- compile ---- */

static Status
parse_fraction(Ctx *ctx, const char *name, const char *text, Frac lo, Frac hi, Frac *out)
{
	int64_t billionths;
	Frac value;
	if (!decimal_parse(text, strlen(text), BYTES_PER_GB, &billionths)
	    || !frac_make(billionths, BYTES_PER_GB, &value) || frac_cmp(value, lo) < 0 || frac_cmp(value, hi) > 0)
		return fail(ctx, USAGE, "--%s: %.40s: want %g to %g", name, text, frac_double(lo), frac_double(hi));
	*out = value;
	return OK;
}

static Status
parse_links(Ctx *ctx, const char *text, unsigned *out)
{
	unsigned classes = 0;
	if (strcmp(text, "all") == 0) {
		*out = (1u << N_LINK_CLASSES) - 1;
		return OK;
	}
	for (const char *at = text;; at++) {
		char name[16];
		LinkClass class;
		size_t n = strcspn(at, ",");
		snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, at);
		if (!link_class_parse(name, &class))
			return fail(ctx, USAGE, "--links: %.40s: want all, or nvlink, xgmi, c2c, pcie, qpi, net, comma separated",
			    text);
		classes |= 1u << class;
		at += n;
		if (!*at)
			break;
	}
	*out = classes;
	return OK;
}

/* A rank, or the id of one of the job's GPUs. */
static Status
parse_root(Ctx *ctx, const Topology *job, Collective coll, const char *text, int *out)
{
	int64_t rank;
	*out = -1;
	if (!collective_rooted(coll))
		return text ? fail(ctx, USAGE, "--root: %s has no root", collective_name(coll)) : OK;
	if (!text)
		text = "0";
	for (int r = 0; r < job->n_ranks && *out < 0; r++)
		if (strcmp(job->vertex[r].id, text) == 0)
			*out = r;
	if (*out < 0 && strspn(text, "0123456789") == strlen(text)
	    && decimal_parse(text, strlen(text), 1, &rank) && rank < job->n_ranks)
		*out = (int)rank;
	return *out >= 0 ? OK : fail(ctx, BAD_INPUT, "--root: %.80s: want a rank, 0 to %d, or the id of a GPU of the job, as %s",
	    text, job->n_ranks - 1, job->vertex[0].id);
}

static Status
parse_request(Ctx *ctx, const struct options *opt, Request *ask)
{
	*ask = (Request){ .coll = ALLREDUCE, .root = -1, .epsilon = { 1, 20 }, .tolerance = { 1, 20 },
		.minimise = !opt->no_minimise };
	if (opt->collective && !collective_parse(opt->collective, &ask->coll))
		return fail(ctx, USAGE, "--collective: %.40s: want broadcast, reduce, allreduce, gather, scatter, allgather, reducescatter or alltoall", opt->collective);
	/* Several demands, as those of blocks, are planned by the linear program only. */
	bool blocks = collective_has_blocks(ask->coll), mwu = opt->packing && strcmp(opt->packing, "mwu") == 0;
	if (opt->packing && !mwu && strcmp(opt->packing, "exact") != 0)
		return fail(ctx, USAGE, "--packing: %.40s: want mwu or exact", opt->packing);
	if (mwu && blocks)
		return fail(ctx, USAGE, "--packing: mwu: want exact for %s", collective_name(ask->coll));
	if (blocks || (opt->packing && !mwu)) {
		ask->packing = PACKING_EXACT;
		ask->tolerance = FRAC_ZERO;
	}
	if (opt->epsilon)
		TRY(parse_fraction(ctx, "epsilon", opt->epsilon, (Frac){ 1, 1000 }, (Frac){ 49, 100 }, &ask->epsilon));
	if (opt->tolerance)
		TRY(parse_fraction(ctx, "tolerance", opt->tolerance, FRAC_ZERO, (Frac){ 99, 100 }, &ask->tolerance));
	return OK;
}

/* json or cu: by --format, else by the ending of the output. */
static Status
choose_format(Ctx *ctx, const struct options *opt, const char *const *formats, const char *otherwise, const char **out)
{
	const char *dot = opt->output ? strrchr(opt->output, '.') : NULL;
	const char *name = opt->format ? opt->format : dot && !strchr(dot, '/') ? dot + 1 : otherwise;
	for (; *formats; formats++) {
		if (strcmp(name, *formats) == 0) {
			*out = *formats;
			return OK;
		}
	}
	if (opt->format)
		return fail(ctx, USAGE, "--format: %.40s: not a format of this verb", name);
	return fail(ctx, USAGE, "-o: %.200s: no format ends in \".%.40s\": name one with --format", opt->output, name);
}

static void
put_option(Schedule *sched, const char *key, const Text *value)
{
	sched->option[sched->n_options++] = (Option){ key, value->data };
}

/* What was asked, with defaults filled in, so that the file can be made again. */
static Status
record_options(Ctx *ctx, const Request *ask, unsigned classes, Text value[4], Schedule *sched)
{
	const Topology *job = sched->topo;
	char digits[48];
	bool any = false;
	TRY(NEW(ctx, sched->option, 6));
	for (int r = 0; r < job->n_ranks; r++) {
		text_put(&value[0], r ? ", " : "[");
		text_json(&value[0], job->vertex[r].id);
	}
	text_put(&value[0], "]");
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(classes >> c & 1))
			continue;
		text_put(&value[1], any ? ", \"" : "[\"");
		text_put(&value[1], link_class_name((LinkClass)c));
		text_put(&value[1], "\"");
		any = true;
	}
	text_put(&value[1], "]");
	decimal_text(ask->epsilon.num, ask->epsilon.den, 9, digits);
	text_put(&value[2], digits);
	decimal_text(ask->tolerance.num, ask->tolerance.den, 9, digits);
	text_put(&value[3], digits);
	for (int i = 0; i < 4; i++)
		if (value[i].failed)
			return fail_memory(ctx);
	put_option(sched, "gpus", &value[0]);
	put_option(sched, "links", &value[1]);
	put_option(sched, "epsilon", &value[2]);
	put_option(sched, "tolerance", &value[3]);
	sched->option[sched->n_options++] = (Option){ "packing", ask->packing == PACKING_EXACT ? "\"exact\"" : "\"mwu\"" };
	sched->option[sched->n_options++] = (Option){ "minimise", ask->minimise ? "true" : "false" };
	return OK;
}

/* What people look at first. */
static Status
print_summary(Ctx *ctx, FILE *to, const Schedule *sched)
{
	const Topology *topo = sched->topo;
	unsigned classes = 0;
	int depth;
	TRY(sched_depth(ctx, sched, &depth));
	for (int l = 0; l < topo->n_links; l++)
		classes |= 1u << topo->link[l].class;
	fprintf(to, "topology    %s, %d ranks:", topo->name, topo->n_ranks);
	for (int r = 0; r < topo->n_ranks && r < 16; r++)
		fprintf(to, " %s", topo->vertex[r].id);
	fprintf(to, "%s; links:", topo->n_ranks > 16 ? " ..." : "");
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (classes >> c & 1)
			fprintf(to, " %s", link_class_name((LinkClass)c));
	fprintf(to, "\ncollective  %s", collective_name(sched->coll));
	if (sched->root >= 0)
		fprintf(to, " from root %d (%s)", sched->root, topo->vertex[sched->root].id);
	fprintf(to, "\ntrees       %d, depth %d\n", sched->n_segments, depth);
	double unit = (double)topo_link_unit(topo);
	fprintf(to, "rate        %.6g GB/s algorithm bandwidth", frac_double(sched->achieved) / 1e9);
	if (frac_double(sched->achieved) < 1000 * unit)
		fprintf(to, " = %.4g x %.6g GB/s", frac_double(sched->achieved) / unit, unit / 1e9);
	static const char *const proofs[] = { "a cut", "a partition", "prices", "lengths" };
	fprintf(to, "\nbound       %.6g GB/s, proven by %s\n", frac_double(sched->bound.rate) / 1e9, proofs[sched->bound.kind]);
	double ratio = frac_double(sched->achieved) / frac_double(sched->bound.rate);
	/* 1.000 is for what reaches the bound. */
	bool nearly = ratio >= 0.9995 && frac_cmp(sched->achieved, sched->bound.rate) < 0;
	fprintf(to, "ratio       %.*f\n", nearly ? 6 : 3, nearly && ratio > 0.999999 ? 0.999999 : ratio);
	return OK;
}

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

/* The arrow of model.h. What is written is what was read back and verified, not what we meant. */
static Status
compile_text(Ctx *ctx, const struct options *opt, const char *format, const char *label, const Text *in, Text value[4],
    Text *json)
{
	Request ask;
	Topology *machine, *job;
	Bound bound, proof;
	Packing *pack;
	Schedule *sched, *again;
	unsigned classes;
	int *gpu, n;
	TRY(parse_request(ctx, opt, &ask));
	TRY(topo_read(ctx, label, in->data, in->size, &machine));
	TRY(NEW(ctx, gpu, machine->n_ranks));
	TRY(topo_select(ctx, machine, opt->gpus, gpu, &n));
	if (n < 2)
		return fail(ctx, BAD_INPUT, "%s: 1 GPU: want at least 2 for a collective", opt->gpus ? "--gpus" : label);
	if (opt->links)
		TRY(parse_links(ctx, opt->links, &classes));
	else
		TRY(topo_default_classes(ctx, machine, gpu, n, &classes));
	TRY(topo_induce(ctx, machine, gpu, n, classes, &job));
	TRY(parse_root(ctx, job, ask.coll, opt->root, &ask.root));
	TRY(bound_compute(ctx, job, ask.coll, ask.root, &bound));
	TRY(plan_trees(ctx, job, &bound, &ask, &pack, &proof));
	TRY(sched_build(ctx, job, &proof, &ask, "trees", pack, &sched));
	TRY(record_options(ctx, &ask, classes, value, sched));
	emit_sched_json(sched, json);
	if (json->failed)
		return fail_memory(ctx);
	TRY(sched_read(ctx, "the compiled schedule", json->data, json->size, &again));
	TRY(sched_verify(ctx, "the compiled schedule", again));
	TRY(emit_as(ctx, format, again, json, opt->output ? opt->output : "-"));
	return opt->quiet ? OK : print_summary(ctx, stderr, again);
}

static Status
compile_file(Ctx *ctx, const struct options *opt)
{
	static const char *const formats[] = { "json", "cu", NULL };
	const char *format;
	Text in = { 0 }, json = { 0 }, value[4] = { { 0 } };
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d topology files: want one; blinkc --help tells more", opt->n_files);
	TRY(choose_format(ctx, opt, formats, "json", &format));
	TRY(file_read(ctx, opt->file[0], &in));
	Status status = compile_text(ctx, opt, format, opt->file[0], &in, value, &json);
	text_free(&in);
	text_free(&json);
	for (int i = 0; i < 4; i++)
		text_free(&value[i]);
	return status;
}

/* ---- check, convert ---- */

static Status
check_text(Ctx *ctx, const struct options *opt, const char *label, const Text *in)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	if (opt->quiet)
		return OK;
	printf("%s: right\n", label);
	return print_summary(ctx, stdout, sched);
}

static Status
check_one(Ctx *ctx, const struct options *opt, const char *path)
{
	Text in = { 0 };
	TRY(file_read(ctx, path, &in));
	Status status = check_text(ctx, opt, path, &in);
	text_free(&in);
	return status;
}

/* Every file, whatever is wrong with others; the status of the first that is wrong. */
static Status
check_file(Ctx *ctx, const struct options *opt)
{
	Status first = OK;
	if (opt->n_files < 1)
		return fail(ctx, USAGE, "no schedule file: want at least one");
	for (int i = 0; i < opt->n_files; i++) {
		Ctx own;
		ctx_init(&own);
		Status status = check_one(&own, opt, opt->file[i]);
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
	TRY(topo_read(ctx, label, in->data, in->size, &topo));
	if (strcmp(format, "json") == 0)
		emit_topo_json(topo, &out);
	else if (strcmp(format, "xml") == 0)
		emit_topo_xml(topo, &out);
	else
		emit_topo_canonical(topo, &out);
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
convert_file(Ctx *ctx, const struct options *opt)
{
	static const char *const formats[] = { "json", "xml", "canonical", "cu", NULL };
	const char *format, *path = opt->output ? opt->output : "-";
	Text in = { 0 };
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d files: want one", opt->n_files);
	TRY(choose_format(ctx, opt, formats, "json", &format));
	TRY(file_read(ctx, opt->file[0], &in));
	Status status = strcmp(format, "cu") == 0 ? convert_schedule(ctx, format, opt->file[0], &in, path)
	    : convert_topology(ctx, format, opt->file[0], &in, path);
	text_free(&in);
	return status;
}

/* ---- verbs ---- */

static const struct verb verbs[] = {
	{ "compile", COMPILE, "[options] TOPOLOGY", "plan a schedule for a topology file (the verb may be left out)", compile_file },
	{ "check", CHECK, "[options] SCHEDULE...", "replay schedules exactly; recompute rate and bound", check_file },
	{ "convert", CONVERT, "[options] FILE", "write a topology in its other spelling, or a schedule as source code", convert_file },
};

enum { N_VERBS = sizeof verbs / sizeof *verbs };

/* From column 26 to 79. */
static void
print_wrapped(const char *text)
{
	int column = 26;
	while (*text) {
		int n = (int)strcspn(text, " ");
		if (column + 1 + n > 79) {
			printf("\n%26s", "");
			column = 26;
		}
		printf(" %.*s", n, text);
		column += 1 + n;
		text += n + (text[n] == ' ');
	}
	printf("\n");
}

static void
print_help(const struct verb *only)
{
	printf("Usage: blinkc [VERB] [options] FILE\n\n");
	for (int i = 0; i < N_VERBS; i++)
		if (!only || only == &verbs[i])
			printf("  blinkc %-8s %-23s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].summary);
	printf("\nOptions:\n");
#define X(name, text, letter, argument, bits, help)                                                                    \
	if (!only || ((bits) & only->bit)) {                                                                           \
		char left[40];                                                                                         \
		snprintf(left, sizeof left, "%c%c%s--" text " %s", letter ? '-' : ' ', letter ? letter : ' ',          \
		    letter ? ", " : "  ", argument ? argument : "");                                                   \
		printf("  %-24s", left);                                                                               \
		print_wrapped(help);                                                                                   \
	}
	OPTION_LIST(X)
#undef X
	printf("\nFILE - is standard input. Exit status:\n");
#define X(name, code, text) printf("  %d  %s\n", code, text);
	STATUS_LIST(X)
#undef X
}

static const struct option long_options[] = {
#define X(name, text, letter, argument, bits, help) { text, (argument) ? required_argument : no_argument, NULL, name },
	OPTION_LIST(X)
#undef X
	{ 0 }
};

static const char short_options[] = ":o:c:r:g:l:p:qvhV";

static int
option_of(int letter)
{
	switch (letter) {
#define X(name, text, short_name, argument, bits, help)                                                                \
	case name:                                                                                                     \
		return name;
		OPTION_LIST(X)
#undef X
	case 'o':
		return OPT_OUTPUT;
	case 'c':
		return OPT_COLLECTIVE;
	case 'r':
		return OPT_ROOT;
	case 'g':
		return OPT_GPUS;
	case 'l':
		return OPT_LINKS;
	case 'p':
		return OPT_PACKING;
	case 'q':
		return OPT_QUIET;
	case 'v':
		return OPT_VERBOSE;
	case 'h':
		return OPT_HELP;
	case 'V':
		return OPT_VERSION;
	default:
		return 0;
	}
}

static bool
belongs_to(int option, const struct verb *verb)
{
#define X(name, text, letter, argument, bits, help)                                                                    \
	if (option == name)                                                                                            \
		return (bits) & verb->bit;
	OPTION_LIST(X)
#undef X
	return false;
}

static void
set_option(struct options *opt, int option, const char *value)
{
	switch (option) {
	case OPT_OUTPUT:
		opt->output = value;
		break;
	case OPT_FORMAT:
		opt->format = value;
		break;
	case OPT_COLLECTIVE:
		opt->collective = value;
		break;
	case OPT_ROOT:
		opt->root = value;
		break;
	case OPT_GPUS:
		opt->gpus = value;
		break;
	case OPT_LINKS:
		opt->links = value;
		break;
	case OPT_PACKING:
		opt->packing = value;
		break;
	case OPT_EPSILON:
		opt->epsilon = value;
		break;
	case OPT_TOLERANCE:
		opt->tolerance = value;
		break;
	case OPT_NO_MINIMISE:
		opt->no_minimise = true;
		break;
	case OPT_QUIET:
		opt->quiet = true;
		break;
	case OPT_VERBOSE:
		opt->verbose = true;
		break;
	case OPT_HELP:
		opt->help = true;
		break;
	default:
		opt->version = true;
		break;
	}
}

static Status
parse_options(Ctx *ctx, int argc, char **argv, const struct verb *verb, struct options *opt)
{
	opterr = 0;
	for (int letter; (letter = getopt_long(argc, argv, short_options, long_options, NULL)) != -1;) {
		int option = option_of(letter);
		if (letter == ':')
			return fail(ctx, USAGE, "%.80s: wants an argument", argv[optind - 1]);
		/* Of several letters in one word getopt tells which; the word may be no option at all. */
		if (!option && optopt && optopt < OPT_FIRST)
			return fail(ctx, USAGE, "-%c: no such option; blinkc --help lists them", optopt);
		if (!option && optopt)
			return fail(ctx, USAGE, "%.80s: takes no argument", argv[optind - 1]);
		if (!option)
			return fail(ctx, USAGE, "%.80s: no such option; blinkc --help lists them", argv[optind - 1]);
		if (!belongs_to(option, verb))
			return fail(ctx, USAGE, "--%s: not an option of blinkc %s",
			    long_options[option - OPT_FIRST - 1].name, verb->name);
		set_option(opt, option, optarg);
	}
	opt->n_files = argc - optind;
	opt->file = argv + optind;
	return OK;
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
	struct options opt = { 0 };
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
	Status status = parse_options(&ctx, argc - named, argv + named, verb, &opt);
	if (status == OK && opt.help) {
		print_help(named ? verb : NULL);
	} else if (status == OK && opt.version) {
		printf("blinkc %s\n", BLINK_VERSION);
	} else if (status == OK) {
		if (opt.verbose) {
			ctx.talk = say;
			ctx.talk_to = stderr;
		}
		status = verb->run(&ctx, &opt);
	}
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == OK)
		status = fail(&ctx, IO, "standard output: cannot be written");
	if (status != OK)
		fprintf(stderr, "blinkc: %s\n", ctx.error.text);
	ctx_free(&ctx);
	return exit_code(status);
}
