/* Values of options: parsed, and held against each other. */
#include "verb/request.h"
#include "base/file.h"
#include "base/pool.h"
#include "model/gpu_list.h"
#include "plan/plan.h"
#include "verb/progress.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SIZE_LARGEST (INT64_C(1) << 60)

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

Status
request_count(Ctx *ctx, const char *name, const char *text, int most, int *out)
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
request_budget(Ctx *ctx, const char *text, int64_t *ms)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 } };
	size_t n = strspn(text, "0123456789.");
	for (int i = 0; i < 4; i++)
		if (strcmp(text + n, units[i].unit) == 0 && decimal_parse(text, n, units[i].ms, ms) && *ms > 0
		    && *ms < INT_MAX)
			return OK;
	return fail(ctx, USAGE, "--budget: %.40s: want a time, as 10s, 500ms or 2m", text);
}

Status
request_time(Ctx *ctx, const char *text)
{
	int64_t budget;
	if (text) {
		TRY(request_budget(ctx, text, &budget));
		progress_limit(budget);
	}
	ctx->step = progress_step;
	return OK;
}

Status
request_in_time(Ctx *ctx, const Options *opt, Status status)
{
	Error error = ctx->error;
	if (status == OK || !error.asked || strcmp(error.asked, "budget") != 0)
		return status;
	ctx->error.status = OK;
	return fail(ctx, status, "--budget: %.40s: %s", opt->value[OPT_BUDGET] ? opt->value[OPT_BUDGET] : "60m",
	    error.text);
}

/* Digits and, for powers of 1024, K, M or G, as blink-perf takes them, at text[0 .. n - 1]. */
static bool
parse_size(const char *text, size_t n, int64_t *out)
{
	static const char letters[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	const char *letter = digits + 1 == n ? strchr(letters, text[digits]) : NULL;
	int shift = letter ? 10 * (int)(letter - letters + 1) : 0;
	if (digits + (letter != NULL) != n || !decimal_parse(text, digits, 1, out) || *out < 1
	    || *out > SIZE_LARGEST >> shift)
		return false;
	*out <<= shift;
	return true;
}

/* "64K", or "1K-1G": each twice the one before. */
static bool
add_sizes(const char *text, size_t n, Sizes *out)
{
	size_t first = strcspn(text, ",-");
	int64_t m, last;
	if (!parse_size(text, first, &m))
		return false;
	last = m;
	if (first < n && (!parse_size(text + first + 1, n - first - 1, &last) || last < m))
		return false;
	for (; m <= last; m *= 2) {
		if (out->n == SIZES_MAX)
			return false;
		out->m[out->n++] = m;
	}
	return true;
}

Status
request_sizes(Ctx *ctx, const char *text, Sizes *out)
{
	out->n = 0;
	for (const char *at = text; at; at = at[strcspn(at, ",")] ? strchr(at, ',') + 1 : NULL)
		if (!add_sizes(at, strcspn(at, ","), out))
			return fail(ctx, USAGE,
			    "--size: %.80s: want up to %d sizes in bytes, as 1024, 1K, 64M or 2G, comma separated, "
			    "each 1 to 2^60, or ranges as 1K-1G", text, (int)SIZES_MAX);
	return OK;
}

/* For the first name of a list. */
static NamesText
hint_of_first(Names names, const char *list)
{
	char word[40];
	snprintf(word, sizeof word, "%.*s", (int)strcspn(list, ","), list);
	return names_hint(names, word);
}

Status
request_summary(Ctx *ctx, const Options *opt, bool *json)
{
	const char *text = opt->value[OPT_SUMMARY];
	*json = text && strcmp(text, "json") == 0;
	if (text && !*json && strcmp(text, "text") != 0)
		return fail(ctx, USAGE, "--summary: %.40s: want text or json", text);
	return OK;
}

Status
request_links(Ctx *ctx, const char *text, unsigned *out)
{
	unsigned some;
	const char *bad = names_parse_set(link_class_names, text, &some);
	return link_classes_parse(text, out) ? OK : fail(ctx, USAGE,
	    "--links: %.40s: want all, or %s, comma separated%s", text,
	    names_text(link_class_names, ~0u, ", ", ", ").text, hint_of_first(link_class_names, bad ? bad : "").text);
}

/* ---- GPUs and root ---- */

static Status
fail_gpus(Ctx *ctx, const Topology *machine, const GpuListError *error)
{
	switch (error->fault) {
	case GPU_LIST_UNKNOWN:
		return fail(ctx, BAD_INPUT,
		    "--gpus: \"%.*s\": %s has no such GPU: want an index 0 to %d, a range as 0-%d, or an id, as %s",
		    error->length, error->found, machine->name, machine->n_ranks - 1, machine->n_ranks - 1,
		    machine->vertex[0].id);
	case GPU_LIST_TWICE:
		return fail(ctx, BAD_INPUT, "--gpus: %s is given twice: want each GPU once",
		    machine->vertex[error->gpu].id);
	default:
		return fail(ctx, BAD_INPUT, "--gpus: \"%.*s\": want %s", error->length, error->found,
		    gpu_list_wanted(error->fault));
	}
}

Status
request_gpus(Ctx *ctx, const Topology *machine, const char *text, int *gpu, int *n)
{
	GpuNames names;
	GpuListError error;
	bool *seen;
	*n = 0;
	if (!text) {
		for (int v = 0; v < machine->n_ranks; v++)
			gpu[(*n)++] = v;
		return OK;
	}
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(topo_gpu_names(ctx, machine, &names));
	TRY(TEMP(ctx, seen, machine->n_ranks));
	*n = gpu_list_parse(&names, text, strlen(text), true, seen, gpu, &error);
	arena_release(&ctx->scratch, mark);
	return *n < 0 ? fail_gpus(ctx, machine, &error) : OK;
}

Status
request_job(Ctx *ctx, const Options *opt, const char *label, const Topology *machine, int **gpu, int *n)
{
	const char *gpus = opt->value[OPT_GPUS];
	TRY(NEW(ctx, *gpu, machine->n_ranks));
	TRY(request_gpus(ctx, machine, gpus, *gpu, n));
	if (*n >= 2)
		return OK;
	if (!gpus || *n == 0)
		return fail(ctx, BAD_INPUT, "%s: %d GPU: want at least 2 for a collective", label, *n);
	return fail(ctx, BAD_INPUT, "--gpus: one GPU, %s: want at least 2 for a collective, as 0-3; "
	    "blinkc advise -n N tells the best sets of N", machine->vertex[**gpu].id);
}

Status
request_root(Ctx *ctx, const Topology *machine, const int *gpu, int n, Collective coll, const char *text, int *out)
{
	int64_t rank;
	*out = -1;
	if (!collective_rooted(coll))
		return text ? fail(ctx, USAGE, "--root: %s has no root", collective_name(coll)) : OK;
	if (!text)
		text = "0";
	for (int r = 0; r < n && *out < 0; r++)
		if (strcmp(machine->vertex[gpu[r]].id, text) == 0)
			*out = r;
	if (*out < 0 && strspn(text, "0123456789") == strlen(text) && decimal_parse(text, strlen(text), 1, &rank)
	    && rank < n)
		*out = (int)rank;
	return *out >= 0 ? OK : fail(ctx, BAD_INPUT,
	    "--root: %.80s: want a rank, 0 to %d, or the id of a GPU of the job, as %s",
	    text, n - 1, machine->vertex[gpu[0]].id);
}

Status
request_relays(Ctx *ctx, const Topology *machine, const char *text, const int *gpu, int n, const char **out)
{
	int *relay, n_relays;
	Text ids = { 0 };
	*out = "rest";
	if (strcmp(text, "rest") == 0)
		return OK;
	TRY(NEW(ctx, relay, machine->n_ranks));
	Status status = request_gpus(ctx, machine, text, relay, &n_relays);
	if (status != OK && strncmp(ctx->error.text, "--gpus: ", 8) == 0) {
		Error error = ctx->error;
		ctx->error.status = OK;
		return fail(ctx, status, "--relay: %s", error.text + 8);
	}
	TRY(status);
	for (int i = 0; i < n_relays; i++) {
		for (int r = 0; r < n; r++)
			if (gpu[r] == relay[i])
				return fail(ctx, BAD_INPUT, "--relay: %s is a rank of the job: want other GPUs",
				    machine->vertex[relay[i]].id);
		text_printf(&ids, "%s%s", i ? "," : "", machine->vertex[relay[i]].id);
	}
	*out = text_keep(&ctx->run, &ids);
	return *out ? OK : fail_memory(ctx);
}

Status
request_bytes(Ctx *ctx, const char *path, int n, const int64_t **out)
{
	Text in = { 0 };
	TRY(file_read(ctx, path, &in));
	Status status = matrix_read(ctx, path, in.data ? in.data : "", in.size, n, out);
	text_free(&in);
	return status;
}

Status
request_matrix(Ctx *ctx, const Options *opt, int n, Ask *ask)
{
	const char *path = opt->value[OPT_MATRIX];
	if (!path)
		return OK;
	if (ask->coll != ALLTOALL)
		return fail(ctx, USAGE, "--matrix: want it with -c alltoall");
	if (ask->algorithm || ask->hybrid || ask->max_depth || ask->max_trees || ask->compact || ask->tolerance.num
	    || opt->value[OPT_PARETO] || opt->value[OPT_SIZE])
		return fail(ctx, USAGE, "--matrix: want none of --algorithm, --hybrid, --max-depth, --max-trees, "
		    "--tolerance, --pareto, --size and compact schedules with it");
	return request_bytes(ctx, path, n, &ask->matrix);
}

/* ---- an Ask ---- */

static Status
parse_hybrid(Ctx *ctx, const Options *opt, Ask *ask)
{
	const char *text = opt->value[OPT_HYBRID];
	if (!text)
		return OK;
	ask->hybrid = HYBRID_PEER;
	if (*text && !hybrid_parse(text, &ask->hybrid))
		return fail(ctx, USAGE, "--hybrid: %.40s: want %s%s", text, names_wanted(hybrid_names).text,
		    names_hint(hybrid_names, text).text);
	if (opt->value[OPT_LINKS] || opt->value[OPT_PARETO] || ask->max_trees || ask->packing == PACKING_MWU)
		return fail(ctx, USAGE,
		    "--hybrid: want none of --links, --pareto, --max-trees and --packing mwu with it");
	if (opt->value[OPT_ROUTES])
		return fail(ctx, USAGE, "--routes: %.40s: want none with --hybrid", opt->value[OPT_ROUTES]);
	return OK;
}

static Status
parse_routes(Ctx *ctx, const Options *opt, Ask *ask)
{
	const char *text = opt->value[OPT_ROUTES];
	if (text && !routes_parse(text, &ask->routes))
		return fail(ctx, USAGE, "--routes: %.40s: want %s", text, names_wanted(routes_names).text);
	return OK;
}

/* Other trees than those of any kind are planned by the linear program only. */
static Status
parse_algorithm(Ctx *ctx, const Options *opt, Ask *ask)
{
	const char *name = opt->value[OPT_ALGORITHM];
	const Algorithm *algorithm;
	TRY(request_blame(ctx, algorithm_find(ctx, name, ask->coll, &algorithm)));
	if (algorithm == algorithm_row(0))
		return OK;
	ask->algorithm = algorithm->name;
	if (ask->packing != PACKING_EXACT || ask->max_depth || ask->max_trees || opt->value[OPT_PARETO])
		return fail(ctx, USAGE,
		    "--algorithm: %s: want trees with --packing mwu, --max-depth, --max-trees or --pareto", name);
	return OK;
}

static Status
parse_limits(Ctx *ctx, const Options *opt, Ask *ask)
{
	TRY(request_count(ctx, "max-depth", opt->value[OPT_MAX_DEPTH], LIMIT_TREES, &ask->max_depth));
	TRY(request_count(ctx, "max-trees", opt->value[OPT_MAX_TREES], LIMIT_TREES, &ask->max_trees));
	if (ask->packing == PACKING_MWU && (ask->max_depth || ask->max_trees || opt->value[OPT_PARETO]))
		return fail(ctx, USAGE, "--packing: mwu: want exact with --max-depth, --max-trees or --pareto");
	return OK;
}

/* For algorithms that obey them. A binomial tree is one of radix 2. */
static Status
parse_shape(Ctx *ctx, const Options *opt, Ask *ask)
{
	const char *radix = opt->value[OPT_RADIX], *layers = opt->value[OPT_HIERARCHY];
	const Algorithm *algorithm;
	TRY(algorithm_find(ctx, ask->algorithm, ask->coll, &algorithm));
	if (radix && (!algorithm->options || strcmp(algorithm->options, "radix") != 0))
		return fail(ctx, USAGE, "--radix: %.40s: want it with --algorithm knomial, bruck or "
		    "host-staged-knomial", radix);
	TRY(request_count(ctx, "radix", radix, MOST_RADIX, &ask->radix));
	if (ask->radix == 1 || (ask->radix > 2 && strcmp(opt->value[OPT_ALGORITHM], "binomial") == 0))
		return fail(ctx, USAGE, "--radix: %d: want %s", ask->radix,
		    ask->radix == 1 ? "a whole number from 2 on" : "2 for binomial, or --algorithm knomial");
	if (layers && (!algorithm->options || strcmp(algorithm->options, "hierarchy") != 0))
		return fail(ctx, USAGE, "--hierarchy: %.80s: want it with --algorithm hierarchical-ring", layers);
	if (layers && !hierarchy_parse(layers, &ask->layers))
		return fail(ctx, USAGE, "--hierarchy: %.80s: want numbers from 2 on, as 4x8x4, at most %d", layers,
		    MOST_LAYERS);
	return OK;
}

/* Several demands, as those of blocks, are planned by the linear program only. */
static Status
parse_packing(Ctx *ctx, const Options *opt, Ask *ask)
{
	const char *text = opt->value[OPT_PACKING];
	bool mwu = text && strcmp(text, "mwu") == 0;
	if (text && !mwu && strcmp(text, "exact") != 0)
		return fail(ctx, USAGE, "--packing: %.40s: want %s%s", text, names_wanted(packing_names).text,
		    names_hint(packing_names, text).text);
	if (mwu && collective_has_blocks(ask->coll))
		return fail(ctx, USAGE, "--packing: mwu: want exact for %s", collective_name(ask->coll));
	ask->packing = mwu ? PACKING_MWU : PACKING_EXACT;
	ask->tolerance = mwu ? (Frac){ 1, 20 } : FRAC_ZERO;
	return OK;
}

Status
request_collective(Ctx *ctx, const Options *opt, Collective *out)
{
	const char *text = opt->value[OPT_COLLECTIVE];
	*out = ALLREDUCE;
	if (text && !collective_parse_spelled(text, out))
		return fail(ctx, USAGE, "--collective: %.40s: want %s%s", text, names_wanted(collective_names).text,
		    names_hint(collective_names, text).text);
	return OK;
}

Status
request_parse(Ctx *ctx, const Options *opt, Collective coll, Ask *ask)
{
	*ask = (Ask){ .coll = coll, .root = -1, .epsilon = { 1, 20 }, .minimise = !opt->value[OPT_NO_MINIMISE],
		.budget = opt->value[OPT_BUDGET] };
	TRY(parse_packing(ctx, opt, ask));
	if (opt->value[OPT_EPSILON])
		TRY(parse_fraction(ctx, "epsilon", opt->value[OPT_EPSILON], (Frac){ 1, 1000 }, (Frac){ 49, 100 },
		    &ask->epsilon));
	if (opt->value[OPT_TOLERANCE])
		TRY(parse_fraction(ctx, "tolerance", opt->value[OPT_TOLERANCE], FRAC_ZERO, (Frac){ 99, 100 },
		    &ask->tolerance));
	TRY(parse_limits(ctx, opt, ask));
	TRY(parse_algorithm(ctx, opt, ask));
	TRY(parse_shape(ctx, opt, ask));
	if (opt->value[OPT_PARETO] && (opt->value[OPT_OUTPUT] || opt->value[OPT_FORMAT]))
		return fail(ctx, USAGE, "--pareto: writes no schedule: want no -o and no --format");
	TRY(parse_routes(ctx, opt, ask));
	TRY(parse_hybrid(ctx, opt, ask));
	return opt->value[OPT_LINKS] ? request_links(ctx, opt->value[OPT_LINKS], &ask->links) : OK;
}

Status
request_blame(Ctx *ctx, Status status)
{
	Error error = ctx->error;
	char option[32];
	if (status == OK || !error.asked)
		return status;
	snprintf(option, sizeof option, "%s", error.asked);
	for (char *c = option; *c; c++)
		*c = *c == '_' ? '-' : *c;
	ctx->error.status = OK;
	return fail(ctx, status, "--%s: %s", option, error.text);
}

/* ---- batches ---- */

/* "7" or "2-7" at the start of text, and how much of it that is; 0: neither. */
static size_t
parse_range(const char *text, int64_t *first, int64_t *last)
{
	size_t n = strspn(text, "0123456789"), more = text[n] == '-' ? strspn(text + n + 1, "0123456789") : 0;
	if (n == 0 || (text[n] == '-' && more == 0) || !decimal_parse(text, n, 1, first))
		return 0;
	*last = *first;
	if (more && !decimal_parse(text + n + 1, more, 1, last))
		return 0;
	return more ? n + 1 + more : n;
}

Status
request_set_sizes(Ctx *ctx, const char *text, int n, bool *sizes)
{
	for (int k = 0; k <= n; k++)
		sizes[k] = !text && k >= 2;
	for (const char *at = text; at; at = *at ? at + 1 : NULL) {
		int64_t first, last;
		size_t length = parse_range(at, &first, &last);
		if (length == 0 || (at[length] && at[length] != ',') || (at[length] && !at[length + 1]) || first < 2
		    || last > n || first > last)
			return fail(ctx, USAGE, "--sizes: %.40s: want numbers of GPUs, 2 to %d, as 2-%d or 3,5", text,
			    n, n);
		for (; first <= last; first++)
			sizes[first] = true;
		at += length;
	}
	return OK;
}

Status
request_collectives(Ctx *ctx, const char *text, unsigned *out)
{
	const char *bad = NULL;
	*out = 1u << ALLREDUCE;
	if (text && strcmp(text, "all") == 0)
		*out = (1u << N_COLLECTIVES) - 1;
	else if (text)
		bad = names_parse_set_spelled(collective_names, text, out);
	return !bad ? OK : fail(ctx, USAGE, "--collectives: %.80s: want all, or %s, comma separated%s", text,
	    names_text(collective_names, ~0u, ", ", ", ").text, hint_of_first(collective_names, bad).text);
}

Status
request_shard(Ctx *ctx, const char *text, int *shard, int *n_shards)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	int64_t i = 1, n = 1;
	if (text && (!slash || strspn(text, "0123456789") != (size_t)(slash - text)
	    || strspn(slash + 1, "0123456789") != strlen(slash + 1)
	    || !decimal_parse(text, (size_t)(slash - text), 1, &i)
	    || !decimal_parse(slash + 1, strlen(slash + 1), 1, &n) || n < 1
	    || n > LIMIT_SETS || i < 1 || i > n))
		return fail(ctx, USAGE, "--shard: %.40s: want I/N, as 1/8, with 1 <= I <= N <= %d", text, LIMIT_SETS);
	*shard = (int)i - 1;
	*n_shards = (int)n;
	return OK;
}

Status
request_gb(Ctx *ctx, const char *name, const char *text, const char *unit, int64_t lo, int64_t hi, int64_t *out)
{
	if (text && (!decimal_parse(text, strlen(text), BYTES_PER_GB, out) || *out < lo || *out > hi))
		return fail(ctx, USAGE, "--%s: %.40s: want a number, %g to %g%s", name, text, (double)lo / 1e9,
		    (double)hi / 1e9, unit);
	return OK;
}

Status
request_jobs(Ctx *ctx, const Options *opt, int *out)
{
	*out = pool_cpus();
	return request_count(ctx, "jobs", opt->value[OPT_JOBS], POOL_WORKERS, out);
}
