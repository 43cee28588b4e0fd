/* blinkc diff: two files, or the files of two directories by their relative paths. Each pair is compared by a worker;
 * the texts are put together in the order of the paths. */
#include "base/file.h"
#include "base/pool.h"
#include "verb/diff/pair.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- all pairs ---- */

/* A path is bytes, the output is UTF-8. */
static const char *
valid_text(Ctx *ctx, const char *path)
{
	char *copy = arena_text(&ctx->run, path, strlen(path));
	size_t size = strlen(path);
	for (size_t good = 0; copy && (good += utf8_valid(copy + good, size - good)) < size;)
		copy[good] = '?';
	return copy;
}

static const char *
relative(const char *directory, const char *path)
{
	size_t n = strlen(directory);
	while (n > 1 && directory[n - 1] == '/')
		n--;
	path += n;
	return path + strspn(path, "/");
}

static Status
pair_directories(Ctx *ctx, const char *old, const char *new, struct diff *diff)
{
	const char **a, **b;
	int n_a, n_b;
	TRY(file_list(ctx, old, ".json", &a, &n_a));
	TRY(file_list(ctx, new, ".json", &b, &n_b));
	if (n_a + n_b == 0)
		return fail(ctx, BAD_INPUT, "%s, %s: no file whose name ends in .json: want schedules", old, new);
	TRY(NEW(ctx, diff->pair, n_a + n_b));
	for (int i = 0, j = 0; i < n_a || j < n_b;) {
		int order = i == n_a ? 1 : j == n_b ? -1 : strcmp(relative(old, a[i]), relative(new, b[j]));
		struct pair *pair = &diff->pair[diff->n++];
		*pair = (struct pair){ .old = order <= 0 ? a[i] : NULL, .new = order >= 0 ? b[j] : NULL };
		pair->file = valid_text(ctx, pair->old ? relative(old, pair->old) : relative(new, pair->new));
		if (!pair->file)
			return fail_memory(ctx);
		i += order <= 0;
		j += order >= 0;
	}
	return OK;
}

static Status
find_pairs(Ctx *ctx, char *const *path, struct diff *diff, bool *directories)
{
	bool old = file_is_directory(path[0]), new = file_is_directory(path[1]);
	*directories = old && new;
	if (*directories)
		return pair_directories(ctx, path[0], path[1], diff);
	for (int i = 0; i < 2 && (old || new); i++)
		if (strcmp(path[i], "-") != 0 && access(path[i], F_OK) != 0)
			return fail(ctx, IO, "%s: %s", path[i], strerror(errno));
	if (old || new)
		return fail(ctx, USAGE, "%s: a directory, %s: not a directory: want two files or two directories",
		    path[new], path[old]);
	if (strcmp(path[0], "-") == 0 && strcmp(path[1], "-") == 0)
		return fail(ctx, USAGE, "-: twice: want standard input for one of the two");
	TRY(NEW(ctx, diff->pair, 1));
	diff->pair[0] = (struct pair){ path[0], path[1], NULL };
	diff->n = 1;
	return OK;
}

static void
summarise(const struct diff *diff, DiffSummary *summary)
{
	double logs = 0;
	summary->worst = 1;
	for (int i = 0; i < diff->n; i++) {
		const struct result *result = &diff->result[i];
		summary->count[result->state]++;
		summary->failing += result->fails;
		if (!result->has_rates)
			continue;
		summary->n_rates++;
		summary->lower += result->order > 0;
		summary->higher += result->order < 0;
		logs += log(result->ratio);
		if (result->ratio < summary->worst) {
			summary->worst = result->ratio;
			summary->worst_file = diff->pair[i].file;
		}
	}
	summary->mean = summary->n_rates ? exp(logs / summary->n_rates) : 1;
}

static Status
write_all(Ctx *ctx, const struct diff *diff, const DiffSummary *summary, const char *path)
{
	Text out = { 0 };
	Status status = OK;
	JsonWriter w = { .out = &out };
	if (diff->json)
		emit_diff_json_begin(summary, &w);
	for (int i = 0; i < diff->n && status == OK; i++) {
		if (diff->json)
			json_value(&w, NULL);
		status = spool_get(ctx, &diff->spool, &diff->result[i].text, &out);
	}
	if (diff->json)
		emit_diff_json_end(summary, &w);
	else if (summary->directories)
		emit_diff_text_summary(summary, &out);
	if (status == OK)
		status = out.failed ? fail_memory(ctx) : file_write(ctx, path, &out);
	text_free(&out);
	return status;
}

/* A spooled text in the run arena, without its last newline; unchanged if the span is empty. */
static Status
keep_spooled(Ctx *ctx, const struct diff *diff, const Span *span, const char **out)
{
	Text text = { 0 };
	if (span->size == 0)
		return OK;
	Status status = spool_get(ctx, &diff->spool, span, &text);
	if (status == OK && text.failed)
		status = fail_memory(ctx);
	if (status == OK) {
		*out = arena_text(&ctx->run, text.data, text.size - (text.data[text.size - 1] == '\n'));
		status = *out ? OK : fail_memory(ctx);
	}
	text_free(&text);
	return status;
}

/* A finding names the old file, which is the one under version control, or else the new one. */
static Status
describe_pair(Ctx *ctx, const struct diff *diff, int i, Finding *found)
{
	const struct pair *pair = &diff->pair[i];
	const struct result *result = &diff->result[i];
	bool old = pair->old && strcmp(pair->old, "-") != 0;
	*found = (Finding){ .kind = FINDING_VALID, .file = old || !pair->new ? pair->old : pair->new };
	if (result->message.size == 0)
		return OK;
	found->kind = result->fails ? FINDING_ERROR : FINDING_NOTE;
	found->type = difference_name(result->kind);
	TRY(keep_spooled(ctx, diff, &result->message, &found->message));
	return keep_spooled(ctx, diff, &result->detail, &found->detail);
}

static Status
write_findings(Ctx *ctx, const Options *opt, const struct diff *diff, const DiffSummary *summary)
{
	Finding *found;
	Text line = { 0 };
	TRY(NEW(ctx, found, diff->n));
	for (int i = 0; i < diff->n; i++)
		TRY(describe_pair(ctx, diff, i, &found[i]));
	emit_diff_line(summary, &line);
	Status status = line.failed ? fail_memory(ctx) : output_findings(ctx, opt, "blinkc diff", found,
	    diff->n, line.data);
	text_free(&line);
	return status;
}

/* The status of the first invalid file; else DIFFERENT if a difference fails. printed: the reason is on standard output
 * already. */
static Status
verdict(Ctx *ctx, const struct diff *diff, const DiffSummary *summary, bool printed)
{
	for (int i = 0; i < diff->n; i++)
		if (diff->result[i].invalid)
			return printed ? diff->result[i].invalid
			    : fail(ctx, diff->result[i].invalid, "%s", diff->result[i].reason);
	return summary->failing ? DIFFERENT : OK;
}

static void
show_progress(void *of, int n_done)
{
	const struct diff *diff = of;
	progress_bar("comparing", n_done, diff->n);
}

static Status
run_all(Ctx *ctx, struct diff *diff, int jobs)
{
	TaskEnd *end = shared_array((size_t)diff->n, sizeof *end);
	diff->result = shared_array((size_t)diff->n, sizeof *diff->result);
	Status status = end && diff->result ? spool_open(ctx, &diff->spool) : fail_memory(ctx);
	Pool pool = { .n_tasks = diff->n, .n_workers = jobs, .run = compare_pair, .done = show_progress, .of = diff };
	if (status == OK)
		status = pool_run(ctx, &pool, end);
	progress_hide();
	for (int i = 0; i < diff->n && status == OK; i++)
		if (end[i].status != OK)
			status = fail(ctx, end[i].status, "%s%s%s", diff->pair[i].file ? diff->pair[i].file : "",
			    diff->pair[i].file ? ": " : "", end[i].text);
	shared_free(end);
	return status;
}

Status
verb_diff(Ctx *ctx, const Options *opt)
{
	const char *format, *path = output_path(opt), *dot = strrchr(path, '.');
	struct diff diff = { .spool = { .file = -1 }, .all = opt->value[OPT_VERBOSE] };
	DiffSummary summary = { 0 };
	bool github = opt->value[OPT_GITHUB];
	int jobs;
	if (opt->n_files != 2)
		return fail(ctx, USAGE, "%d file%s: want two, the old and the new", opt->n_files,
		    opt->n_files == 1 ? "" : "s");
	/* The suffix of the output chooses JSON; any other is text. */
	format = dot && strcmp(dot, ".json") == 0 ? "json" : "text";
	if (opt->value[OPT_FORMAT])
		TRY(request_format(ctx, opt, DIFF, &format));
	diff.json = strcmp(format, "json") == 0;
	diff.findings = github || opt->value[OPT_JUNIT];
	TRY(difference_kinds(ctx, opt->value[OPT_FAIL_ON] ? opt->value[OPT_FAIL_ON] : "any", &diff.fail_on));
	TRY(request_jobs(ctx, opt, &jobs));
	TRY(find_pairs(ctx, opt->file, &diff, &summary.directories));
	summary.old = valid_text(ctx, opt->file[0]);
	summary.new = valid_text(ctx, opt->file[1]);
	if (!summary.old || !summary.new)
		return fail_memory(ctx);
	Status status = run_all(ctx, &diff, jobs);
	if (status == OK) {
		summarise(&diff, &summary);
		/* Annotations must be alone on standard output. */
		if (!opt->value[OPT_QUIET] && !(github && strcmp(path, "-") == 0))
			status = write_all(ctx, &diff, &summary, path);
		if (status == OK && diff.findings)
			status = write_findings(ctx, opt, &diff, &summary);
		if (status == OK)
			status = verdict(ctx, &diff, &summary, github);
	}
	spool_close(&diff.spool);
	shared_free(diff.result);
	return status;
}
