/* Values of options: parsed, held against each other, and recorded in schedules. */
#include "request.h"

#include "base/file.h"
#include "base/pool.h"

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
Status
request_budget(Ctx *ctx, const char *text, int64_t *ms)
{
	static const struct { const char *unit; int64_t ms; } units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 } };
	size_t n = strspn(text, "0123456789.");
	for (int i = 0; i < 4; i++)
		if (strcmp(text + n, units[i].unit) == 0 && decimal_parse(text, n, units[i].ms, ms) && *ms > 0 && *ms < INT_MAX)
			return OK;
	return fail(ctx, USAGE, "--budget: %.40s: want a time, as 10s, 500ms or 2m", text);
}

/* As blink-perf takes them: digits and, for powers of 1024, K, M or G. */
Status
request_sizes(Ctx *ctx, const char *text, Sizes *out)
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

Status
request_hybrid(Ctx *ctx, const Options *opt, HybridKind *out)
{
	const char *text = opt->value[OPT_HYBRID], *packing = opt->value[OPT_PACKING];
	*out = HYBRID_PEER;
	if (*text && !hybrid_parse(text, out))
		return fail(ctx, USAGE, "--hybrid: %.40s: want peer or host", text);
	if (opt->value[OPT_LINKS] || opt->value[OPT_PARETO] || opt->value[OPT_MAX_TREES] || (packing && strcmp(packing, "mwu") == 0))
		return fail(ctx, USAGE, "--hybrid: want none of --links, --pareto, --max-trees and --packing mwu with it");
	return OK;
}

Status
request_links(Ctx *ctx, const char *text, unsigned *out)
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
Status
request_root(Ctx *ctx, const Topology *job, Collective coll, const char *text, int *out)
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

Status
request_parse(Ctx *ctx, const Options *opt, Request *ask)
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
Status
request_format(Ctx *ctx, const Options *opt, const char *const *formats, const char *otherwise, const char **out)
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

/* Text that was put together becomes the value of an option. */
static Status
put_option(Ctx *ctx, const char *key, Text *value, Schedule *sched)
{
	const char *text = value->failed ? NULL : arena_text(&ctx->run, value->data, value->size);
	text_free(value);
	sched->option[sched->n_options++] = (Option){ key, text };
	return text ? OK : fail_memory(ctx);
}

static Status
put_fraction(Ctx *ctx, const char *key, Frac value, Schedule *sched)
{
	char digits[48];
	Text text = { 0 };
	decimal_text(value.num, value.den, 9, digits);
	text_put(&text, digits);
	return put_option(ctx, key, &text, sched);
}

/* An option that is recorded only where it was given. */
static Status
put_number(Ctx *ctx, const char *key, int value, Schedule *sched)
{
	Text text = { 0 };
	if (!value)
		return OK;
	text_int(&text, value);
	return put_option(ctx, key, &text, sched);
}

Status
request_record(Ctx *ctx, const Options *opt, const Request *ask, unsigned classes, HybridKind hybrid, Schedule *sched)
{
	const Topology *job = sched->topo;
	Text gpus = { 0 }, links = { 0 }, algorithm = { 0 };
	bool any = false;
	sched->n_options = 0;
	TRY(NEW(ctx, sched->option, 10));
	for (int r = 0; r < job->n_ranks; r++) {
		text_put(&gpus, r ? ", " : "[");
		text_json(&gpus, job->vertex[r].id);
	}
	text_put(&gpus, "]");
	TRY(put_option(ctx, "gpus", &gpus, sched));
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(classes >> c & 1))
			continue;
		text_put(&links, any ? ", \"" : "[\"");
		text_put(&links, link_class_name((LinkClass)c));
		text_put(&links, "\"");
		any = true;
	}
	text_put(&links, "]");
	TRY(put_option(ctx, "links", &links, sched));
	TRY(put_fraction(ctx, "epsilon", ask->epsilon, sched));
	TRY(put_fraction(ctx, "tolerance", ask->tolerance, sched));
	sched->option[sched->n_options++] = (Option){ "packing", ask->packing == PACKING_EXACT ? "\"exact\"" : "\"mwu\"" };
	sched->option[sched->n_options++] = (Option){ "minimise", ask->minimise ? "true" : "false" };
	if (ask->algorithm != ALGORITHM_TREES) {
		text_json(&algorithm, algorithm_name(ask->algorithm));
		TRY(put_option(ctx, "algorithm", &algorithm, sched));
	}
	TRY(put_number(ctx, "max_depth", ask->max_depth, sched));
	TRY(put_number(ctx, "max_trees", ask->max_trees, sched));
	if (opt->value[OPT_HYBRID])
		sched->option[sched->n_options++] = (Option){ "hybrid", hybrid == HYBRID_HOST ? "\"host\"" : "\"peer\"" };
	/* A budget is no promise of the same bytes, so it is no more than named. */
	if (opt->value[OPT_BUDGET])
		sched->option[sched->n_options++] = (Option){ "budget", "true" };
	return OK;
}

static Status
parse_gb(Ctx *ctx, const char *name, const char *text, const char *unit, int64_t lo, int64_t hi, int64_t *out)
{
	if (text && (!decimal_parse(text, strlen(text), BYTES_PER_GB, out) || *out < lo || *out > hi))
		return fail(ctx, USAGE, "--%s: %.40s: want a number, %g to %g%s", name, text, (double)lo / 1e9, (double)hi / 1e9, unit);
	return OK;
}

Status
request_cluster(Ctx *ctx, const Options *opt, ClusterRequest *ask)
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
		if (length == 0 || (at[length] && at[length] != ',') || (at[length] && !at[length + 1]) || first < 2 || last > n || first > last)
			return fail(ctx, USAGE, "--sizes: %.40s: want numbers of GPUs, 2 to %d, as 2-%d or 3,5", text, n, n);
		for (; first <= last; first++)
			sizes[first] = true;
		at += length;
	}
	return OK;
}

Status
request_collectives(Ctx *ctx, const char *text, unsigned *out)
{
	unsigned colls = 0;
	if (!text || strcmp(text, "all") == 0) {
		*out = text ? (1u << N_COLLECTIVES) - 1 : 1u << ALLREDUCE;
		return OK;
	}
	for (const char *at = text;; at++) {
		char name[16];
		Collective coll;
		size_t n = strcspn(at, ",");
		snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, at);
		if (!collective_parse(name, &coll))
			return fail(ctx, USAGE, "--collectives: %.80s: want all, or broadcast, reduce, allreduce, gather, scatter, allgather, "
			    "reducescatter, alltoall, comma separated", text);
		colls |= 1u << coll;
		at += n;
		if (!*at)
			break;
	}
	*out = colls;
	return OK;
}

Status
request_shard(Ctx *ctx, const char *text, int *shard, int *n_shards)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	int64_t i = 1, n = 1;
	if (text && (!slash || strspn(text, "0123456789") != (size_t)(slash - text) || strspn(slash + 1, "0123456789") != strlen(slash + 1)
	    || !decimal_parse(text, (size_t)(slash - text), 1, &i) || !decimal_parse(slash + 1, strlen(slash + 1), 1, &n) || n < 1
	    || n > LIMIT_SETS || i < 1 || i > n))
		return fail(ctx, USAGE, "--shard: %.40s: want I/N, as 1/8, with 1 <= I <= N <= %d", text, LIMIT_SETS);
	*shard = (int)i - 1;
	*n_shards = (int)n;
	return OK;
}

Status
request_jobs(Ctx *ctx, const Options *opt, int *out)
{
	*out = pool_cpus();
	return parse_count(ctx, "jobs", opt->value[OPT_JOBS], POOL_WORKERS, out);
}
