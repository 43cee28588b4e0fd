/* blinkc: options, verbs, and the whole pipeline in one screen (compile_file). The only file that prints errors and
 * exits. */
#include "base/digest.h"
#include "base/file.h"
#include "options.h"
#include "passes.h"

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

/* ---- sizes ---- */

enum { SIZES_MAX = 64 };
#define SIZE_LARGEST (INT64_C(1) << 60)

struct sizes {
	int n;
	int64_t m[SIZES_MAX];	/* bytes */
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
parse_count(Ctx *ctx, const char *name, const char *text, int most, int *out)
{
	int64_t value;
	if (!text)
		return OK;
	if (strspn(text, "0123456789") != strlen(text) || !decimal_parse(text, strlen(text), 1, &value) || value < 1
	    || value > most)
		return fail(ctx, USAGE, "--%s: %.40s: want a whole number, 1 to %d", name, text, most);
	*out = (int)value;
	return OK;
}

/* A time as 10s, 500ms or 2m; a bare number is seconds. */
static Status
parse_budget(Ctx *ctx, const char *text, int64_t *ms)
{
	static const struct { const char *unit; int64_t ms; } units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 } };
	size_t n = strspn(text, "0123456789.");
	for (int i = 0; i < 4; i++)
		if (strcmp(text + n, units[i].unit) == 0 && decimal_parse(text, n, units[i].ms, ms) && *ms > 0 && *ms < INT_MAX)
			return OK;
	return fail(ctx, USAGE, "--budget: %.40s: want a time, as 10s, 500ms or 2m", text);
}

/* Sizes of messages, as blink-perf takes them: digits and, for powers of 1024, K, M or G. */
static Status
parse_sizes(Ctx *ctx, const char *text, struct sizes *out)
{
	out->n = 0;
	for (const char *at = text; at; at = *at == ',' ? at + 1 : NULL) {
		static const char letters[] = "KMG";
		size_t digits = strspn(at, "0123456789"), n = strcspn(at, ",");
		const char *letter = digits + 1 == n ? strchr(letters, at[digits]) : NULL;
		int shift = letter ? 10 * (int)(letter - letters + 1) : 0;
		int64_t value;
		if (out->n == SIZES_MAX || digits + (letter != NULL) != n || !decimal_parse(at, digits, 1, &value) || value < 1
		    || value > SIZE_LARGEST >> shift)
			return fail(ctx, USAGE, "--size: %.80s: want up to %d sizes in bytes, as 1024, 1K, 64M or 2G, comma separated, each "
			    "1 to 2^60", text, (int)SIZES_MAX);
		out->m[out->n++] = value << shift;
		at += n;
	}
	return OK;
}

static Status
parse_hybrid(Ctx *ctx, const Options *opt, HybridKind *out)
{
	const char *text = opt->value[OPT_HYBRID], *packing = opt->value[OPT_PACKING];
	*out = HYBRID_PEER;
	if (*text && !hybrid_parse(text, out))
		return fail(ctx, USAGE, "--hybrid: %.40s: want peer or host", text);
	if (opt->value[OPT_LINKS] || opt->value[OPT_PARETO] || opt->value[OPT_MAX_TREES] || (packing && strcmp(packing, "mwu") == 0))
		return fail(ctx, USAGE, "--hybrid: want none of --links, --pareto, --max-trees and --packing mwu with it");
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

/* Other trees than those of any kind are planned by the linear program only. */
static Status
parse_algorithm(Ctx *ctx, const Options *opt, Request *ask)
{
	static const char names[] = ALGORITHM_LIST(ALGORITHM_COMMA);
	const char *name = opt->value[OPT_ALGORITHM];
	if (name && !algorithm_parse(name, &ask->algorithm))
		return fail(ctx, USAGE, "--algorithm: %.40s: want one of %s", name, names + 2);
	if (ask->algorithm != ALGORITHM_TREES && (ask->packing != PACKING_EXACT || ask->max_depth || ask->max_trees || opt->value[OPT_PARETO]))
		return fail(ctx, USAGE, "--algorithm: %s: want trees with --packing mwu, --max-depth, --max-trees or --pareto", name);
	return OK;
}

static Status
parse_request(Ctx *ctx, const Options *opt, Request *ask)
{
	*ask = (Request){ .coll = ALLREDUCE, .root = -1, .epsilon = { 1, 20 }, .tolerance = { 1, 20 },
		.minimise = !opt->value[OPT_NO_MINIMISE] };
	if (opt->value[OPT_COLLECTIVE] && !collective_parse(opt->value[OPT_COLLECTIVE], &ask->coll))
		return fail(ctx, USAGE, "--collective: %.40s: want broadcast, reduce, allreduce, gather, scatter, allgather, reducescatter or alltoall", opt->value[OPT_COLLECTIVE]);
	/* Several demands, as those of blocks, are planned by the linear program only. */
	bool blocks = collective_has_blocks(ask->coll), mwu = opt->value[OPT_PACKING] && strcmp(opt->value[OPT_PACKING], "mwu") == 0;
	if (opt->value[OPT_PACKING] && !mwu && strcmp(opt->value[OPT_PACKING], "exact") != 0)
		return fail(ctx, USAGE, "--packing: %.40s: want mwu or exact", opt->value[OPT_PACKING]);
	if (mwu && blocks)
		return fail(ctx, USAGE, "--packing: mwu: want exact for %s", collective_name(ask->coll));
	if (!mwu) {
		ask->packing = PACKING_EXACT;
		ask->tolerance = FRAC_ZERO;
	}
	if (opt->value[OPT_EPSILON])
		TRY(parse_fraction(ctx, "epsilon", opt->value[OPT_EPSILON], (Frac){ 1, 1000 }, (Frac){ 49, 100 }, &ask->epsilon));
	if (opt->value[OPT_TOLERANCE])
		TRY(parse_fraction(ctx, "tolerance", opt->value[OPT_TOLERANCE], FRAC_ZERO, (Frac){ 99, 100 }, &ask->tolerance));
	TRY(parse_count(ctx, "max-depth", opt->value[OPT_MAX_DEPTH], LIMIT_TREES, &ask->max_depth));
	TRY(parse_count(ctx, "max-trees", opt->value[OPT_MAX_TREES], LIMIT_TREES, &ask->max_trees));
	if (mwu && (ask->max_depth || ask->max_trees || opt->value[OPT_PARETO]))
		return fail(ctx, USAGE, "--packing: mwu: want exact with --max-depth, --max-trees or --pareto");
	TRY(parse_algorithm(ctx, opt, ask));
	if (opt->value[OPT_PARETO] && (opt->value[OPT_OUTPUT] || opt->value[OPT_FORMAT]))
		return fail(ctx, USAGE, "--pareto: writes no schedule: want no -o and no --format");
	return OK;
}

/* json or cu: by --format, else by the ending of the output. */
static Status
choose_format(Ctx *ctx, const Options *opt, const char *const *formats, const char *otherwise, const char **out)
{
	const char *dot = opt->value[OPT_OUTPUT] ? strrchr(opt->value[OPT_OUTPUT], '.') : NULL;
	const char *name = opt->value[OPT_FORMAT] ? opt->value[OPT_FORMAT] : dot && !strchr(dot, '/') ? dot + 1 : otherwise;
	for (; *formats; formats++) {
		if (strcmp(name, *formats) == 0) {
			*out = *formats;
			return OK;
		}
	}
	if (opt->value[OPT_FORMAT])
		return fail(ctx, USAGE, "--format: %.40s: not a format of this verb", name);
	return fail(ctx, USAGE, "-o: %.200s: no format ends in \".%.40s\": name one with --format", opt->value[OPT_OUTPUT], name);
}

static void
put_option(Schedule *sched, const char *key, const Text *value)
{
	sched->option[sched->n_options++] = (Option){ key, value->data };
}

/* An option that is recorded only where it was given. */
static Status
record_number(Ctx *ctx, const char *key, int value, Schedule *sched)
{
	char digits[16];
	const char *text;
	if (!value)
		return OK;
	snprintf(digits, sizeof digits, "%d", value);
	text = arena_text(&ctx->run, digits, strlen(digits));
	sched->option[sched->n_options++] = (Option){ key, text };
	return text ? OK : fail_memory(ctx);
}

static Status
record_name(Ctx *ctx, const char *key, const char *name, Schedule *sched)
{
	char quoted[32];
	const char *text;
	snprintf(quoted, sizeof quoted, "\"%s\"", name);
	text = arena_text(&ctx->run, quoted, strlen(quoted));
	sched->option[sched->n_options++] = (Option){ key, text };
	return text ? OK : fail_memory(ctx);
}

/* What was asked, with defaults filled in, so that the file can be made again. */
static Status
record_options(Ctx *ctx, const Options *opt, const Request *ask, unsigned classes, HybridKind hybrid, Text value[4],
    Schedule *sched)
{
	const Topology *job = sched->topo;
	char digits[48];
	bool any = false;
	TRY(NEW(ctx, sched->option, 10));
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
	if (ask->algorithm != ALGORITHM_TREES)
		TRY(record_name(ctx, "algorithm", algorithm_name(ask->algorithm), sched));
	TRY(record_number(ctx, "max_depth", ask->max_depth, sched));
	TRY(record_number(ctx, "max_trees", ask->max_trees, sched));
	if (opt->value[OPT_HYBRID])
		sched->option[sched->n_options++] = (Option){ "hybrid", hybrid == HYBRID_HOST ? "\"host\"" : "\"peer\"" };
	/* A budget is no promise of the same bytes, so it is no more than named. */
	if (opt->value[OPT_BUDGET])
		sched->option[sched->n_options++] = (Option){ "budget", "true" };
	return OK;
}

static Status
print_pareto(Ctx *ctx, const Topology *job, const Symmetry *sym, const Bound *bound, const Request *ask)
{
	ParetoPoint *point;
	int n;
	TRY(plan_pareto(ctx, job, sym, bound, ask, &point, &n));
	hide_progress();
	printf("trees  depth    rate GB/s  ratio to the bound of %.6g GB/s\n", frac_double(bound->rate) / 1e9);
	for (int i = 0; i < n; i++)
		printf("%5d  %5d  %11.6g  %.3f\n", point[i].trees, point[i].depth, frac_double(point[i].rate) / 1e9,
		    frac_double(point[i].rate) / frac_double(bound->rate));
	return OK;
}

/* "pcie,qpi" */
static const char *
classes_text(unsigned classes, char text[64])
{
	size_t n = 0;
	text[0] = 0;
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (classes >> c & 1)
			n += (size_t)snprintf(text + n, 64 - n, "%s%s", n ? "," : "", link_class_name((LinkClass)c));
	return text;
}

/* Rates, and what a part waits for; up to which size the part that waits least goes alone. */
static void
print_parts(FILE *to, const Schedule *sched, const PartEnd *split)
{
	char name[64];
	int least = 0;
	fprintf(to, "hybrid     ");
	for (int i = 0; i < sched->n_parts; i++) {
		fprintf(to, "%s %s %.6g", i ? " +" : "", classes_text(sched->part[i].classes, name), frac_double(sched->part[i].rate) / 1e9);
		least = sched->part[i].setup < sched->part[least].setup ? i : least;
	}
	fprintf(to, " GB/s");
	for (int i = 0; i < sched->n_parts; i++)
		if (sched->part[i].setup > 0)
			fprintf(to, "; %.6g us to set up %s", (double)sched->part[i].setup / 1e3, classes_text(sched->part[i].classes, name));
	if (sched->n_parts > 1 && split[sched->n_parts - 1].from > 0)
		fprintf(to, "; messages up to %.4g MB go over %s alone", (double)split[sched->n_parts - 1].from / 1e6,
		    classes_text(sched->part[least].classes, name));
	fprintf(to, "\n");
}

/* A line for each size: bytes of each part, time, rate, and what the parts behind the first add to that. */
static void
print_sizes(FILE *to, const Schedule *sched, const PartEnd *split, const struct sizes *sizes)
{
	int64_t end[N_LINK_CLASSES];
	char name[64];
	fprintf(to, "%12s", "bytes");
	for (int i = 0; i < sched->n_parts; i++)
		fprintf(to, "  %12s", classes_text(sched->part[i].classes, name));
	fprintf(to, "  %10s  %8s%s\n", "time us", "GB/s", sched->n_parts ? "      gain" : "");
	for (int s = 0; s < sizes->n; s++) {
		int64_t m = sizes->m[s];
		double seconds = split_seconds(sched, m), rate = (double)m / seconds / 1e9;
		fprintf(to, "%12lld", (long long)m);
		if (sched->n_parts)
			split_message(split, sched->n_parts, m, end);
		for (int i = 0; i < sched->n_parts; i++)
			fprintf(to, "  %12lld", (long long)(end[i] - (i ? end[i - 1] : 0)));
		fprintf(to, "  %10.6g  %8.6g", seconds * 1e6, rate);
		if (sched->n_parts) {
			const Part *first = &sched->part[0];
			double alone = (double)first->setup / 1e9 + (double)m / frac_double(first->rate);
			fprintf(to, "  %8.4g", alone > seconds * (1 + 1e-12) ? rate - (double)m / alone / 1e9 : 0);
		}
		fprintf(to, "\n");
	}
}

/* What people look at first. */
static Status
print_summary(Ctx *ctx, FILE *to, const Options *opt, const Schedule *sched)
{
	PartEnd *split = NULL;
	struct sizes sizes;
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
	if (sched->n_parts) {
		TRY(sched_split(ctx, topo->name, sched, &split));
		print_parts(to, sched, split);
	}
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
	if (opt->value[OPT_SIZE]) {
		TRY(parse_sizes(ctx, opt->value[OPT_SIZE], &sizes));
		print_sizes(to, sched, split, &sizes);
	}
	return OK;
}

/* What the family of trees can do; fewer trees than it has may do a little less. */
static void
print_best(const Request *ask, Frac best)
{
	const char *trees = algorithm_trees(ask->algorithm);
	if (ask->algorithm == ALGORITHM_TREES)
		return;
	if (best.num > 0)
		fprintf(stderr, "best        %.6g GB/s of %s, by the linear program\n", frac_double(best) / 1e9, trees);
	else
		fprintf(stderr, "best        of %s: not proven\n", trees);
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
		TRY(parse_links(ctx, opt->value[OPT_LINKS], classes));
	else
		TRY(topo_default_classes(ctx, machine, gpu, n, classes));
	TRY(topo_induce(ctx, machine, gpu, n, *classes, &job));
	TRY(parse_root(ctx, job, ask->coll, opt->value[OPT_ROOT], &ask->root));
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
	TRY(parse_root(ctx, job, ask->coll, opt->value[OPT_ROOT], &ask->root));
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
	struct sizes unused;
	unsigned classes;
	int *gpu, n;
	TRY(parse_request(ctx, opt, &ask));
	if (opt->value[OPT_HYBRID])
		TRY(parse_hybrid(ctx, opt, &hybrid));
	if (opt->value[OPT_SIZE])
		TRY(parse_sizes(ctx, opt->value[OPT_SIZE], &unused));
	if (opt->value[OPT_BUDGET])
		TRY(parse_budget(ctx, opt->value[OPT_BUDGET], &watch.limit));
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
	TRY(record_options(ctx, opt, &ask, classes, hybrid, value, sched));
	emit_sched_json(sched, json);
	if (json->failed)
		return fail_memory(ctx);
	TRY(sched_read(ctx, "the compiled schedule", json->data, json->size, &again));
	TRY(sched_verify(ctx, "the compiled schedule", again));
	TRY(emit_as(ctx, format, again, json, opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-"));
	hide_progress();
	if (opt->value[OPT_QUIET])
		return OK;
	TRY(print_summary(ctx, stderr, opt, again));
	if (!opt->value[OPT_HYBRID])
		print_best(&ask, best);
	return OK;
}

static Status
compile_file(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "json", "cu", NULL };
	const char *format, *label;
	Text in = { 0 }, json = { 0 }, value[4] = { { 0 } };
	TRY(choose_format(ctx, opt, formats, "json", &format));
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
check_text(Ctx *ctx, const Options *opt, const char *label, const Text *in)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	if (opt->value[OPT_QUIET])
		return OK;
	printf("%s: right\n", label);
	return print_summary(ctx, stdout, opt, sched);
}

static Status
check_one(Ctx *ctx, const Options *opt, const char *path)
{
	Text in = { 0 };
	TRY(file_read(ctx, path, &in));
	Status status = check_text(ctx, opt, path, &in);
	text_free(&in);
	return status;
}

/* Every file, whatever is wrong with others; the status of the first that is wrong. */
static Status
check_file(Ctx *ctx, const Options *opt)
{
	Status first = OK;
	struct sizes unused;
	if (opt->value[OPT_SIZE])
		TRY(parse_sizes(ctx, opt->value[OPT_SIZE], &unused));
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
	TRY(choose_format(ctx, opt, formats, "json", &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = strcmp(format, "cu") == 0 ? convert_schedule(ctx, format, label, &in, path)
		    : convert_topology(ctx, format, label, &in, path);
	text_free(&in);
	return status;
}

/* ---- topology ---- */

static Status
parse_gb(Ctx *ctx, const char *name, const char *text, const char *unit, int64_t lo, int64_t hi, int64_t *out)
{
	if (text && (!decimal_parse(text, strlen(text), BYTES_PER_GB, out) || *out < lo || *out > hi))
		return fail(ctx, USAGE, "--%s: %.40s: want a number, %g to %g%s", name, text, (double)lo / 1e9, (double)hi / 1e9, unit);
	return OK;
}

static Status
parse_cluster(Ctx *ctx, const Options *opt, ClusterRequest *ask)
{
	const char *path = opt->n_files == 1 ? opt->file[0] : "", *slash = strrchr(path, '/');
	static char name[256];
	*ask = (ClusterRequest){ .name = name, .file = slash ? slash + 1 : path, .rails = opt->value[OPT_RAILS] };
	if (opt->n_files != 1 || strcmp(path, "-") == 0)
		return fail(ctx, USAGE, "%d topology files: want one, of a server, and not -", opt->n_files);
	/* Else it would be looked for among those of blinkc. */
	if (!file_is_there(path))
		return fail(ctx, IO, "%s: no such file: want the topology file of a server", path);
	if (!opt->value[OPT_SERVERS])
		return fail(ctx, USAGE, "--servers: missing: want a whole number, 1 to %d", LIMIT_NODES);
	TRY(parse_count(ctx, "servers", opt->value[OPT_SERVERS], LIMIT_NODES, &ask->servers));
	TRY(parse_count(ctx, "leaf", opt->value[OPT_LEAF], LIMIT_NODES, &ask->leaf));
	TRY(parse_gb(ctx, "nic-rate", opt->value[OPT_NIC_RATE], " (GB/s)", LIMIT_CAPACITY_MIN, LIMIT_CAPACITY_MAX, &ask->nic_rate));
	TRY(parse_gb(ctx, "oversubscription", opt->value[OPT_OVERSUBSCRIPTION], "", BYTES_PER_GB / 1000, BYTES_PER_GB * 1000,
	    &ask->oversubscription));
	snprintf(name, sizeof name, "%d x %.*s", ask->servers, (int)strcspn(ask->file, "."), ask->file);
	return OK;
}

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
	TRY(choose_format(ctx, opt, formats, "json", &format));
	if (opt->value[OPT_SYNTHETIC]) {
		TRY(check_no_cluster(ctx, opt));
		status = input_topology(ctx, opt, &label, &text);
	} else {
		TRY(parse_cluster(ctx, opt, &ask));
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
