/* blinkc diff: two files, or the files of two directories by their relative paths, each pair by itself. A worker leaves numbers in
 * shared memory and text in a file that all share and nobody sees, from which it is put together in the order of the paths. */
#include "base/file.h"
#include "base/pool.h"
#include "diff.h"
#include "passes.h"
#include "request.h"
#include "verb/verb.h"
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pair {
	const char *old, *new;	/* paths; NULL: only the other directory has it */
	const char *file;	/* relative path; NULL: two files were named */
};

/* Text in the spool. */
struct span {
	int64_t at, size;
};

/* What is left of a pair: in shared memory, but for its text. */
struct result {
	DiffState state;
	bool fails, rated;
	int order;		/* of the old rate and the new, exactly */
	double ratio;		/* new rate / old rate */
	Status wrong;		/* of the first file that is wrong */
	char reason[512];
	struct span text;
	struct span message, detail;	/* for reports, where there are differences */
	DifferenceKind kind;		/* that the message is of */
};

struct work {
	bool json, all;
	bool reports;		/* are asked for */
	unsigned fail_on;
	int n;
	struct pair *pair;
	struct result *result;
	int spool;		/* file descriptor */
	atomic_llong *spooled;	/* bytes of it that are taken */
};

/* ---- one file ---- */

struct loaded {
	Ctx ctx;		/* keeps its error for itself */
	Text in;
	Status status;
	Schedule *sched;
	Index *index;
	int depth;
};

static bool
is_index(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, "index.json") == 0;
}

static Status
read_right(struct loaded *file, const char *path)
{
	Ctx *ctx = &file->ctx;
	if (is_index(path))
		return index_read(ctx, path, file->in.data, file->in.size, &file->index);
	TRY(sched_read(ctx, path, file->in.data, file->in.size, &file->sched));
	TRY(sched_verify(ctx, path, file->sched));
	return sched_depth(ctx, file->sched, &file->depth);
}

static bool
same_bytes(const Text *a, const Text *b)
{
	return a->data && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* other: NULL, or a file that was loaded: the same bytes mean the same, and are judged once. *trouble: it could not even be read. */
static void
load(struct loaded *file, const char *path, const struct loaded *other, bool *trouble)
{
	ctx_init(&file->ctx);
	if (!path)
		return;
	file->status = file_read(&file->ctx, path, &file->in);
	if (file->status != OK) {
		*trouble = true;
	} else if (other && other->status == OK && same_bytes(&other->in, &file->in)) {
		file->sched = other->sched;
		file->index = other->index;
		file->depth = other->depth;
	} else {
		file->status = read_right(file, path);
	}
}

static void
unload(struct loaded *file)
{
	text_free(&file->in);
	ctx_free(&file->ctx);
}

/* ---- one pair ---- */

static Status
put_words(Ctx *ctx, Differences *list, DifferenceKind kind, const char *words)
{
	Text text = { 0 };
	text_put(&text, words);
	return difference_put(ctx, list, (Difference){ .kind = kind, .old_tree = -1, .new_tree = -1 }, &text, NULL, NULL);
}

static Status
put_wrong(Ctx *ctx, Differences *list, Status status, const char *reason, struct result *result)
{
	if (result->wrong == OK) {
		result->wrong = status;
		snprintf(result->reason, sizeof result->reason, "%.*s", (int)sizeof result->reason - 1, reason);
	}
	return put_words(ctx, list, DIFF_WRONG, reason);
}

static Status
compare(Ctx *ctx, const struct pair *pair, const struct loaded *old, const struct loaded *new, Comparison *out, struct result *result)
{
	Differences *list = &out->list;
	if (old->status != OK)
		TRY(put_wrong(ctx, list, old->status, old->ctx.error.text, result));
	if (new->status != OK)
		TRY(put_wrong(ctx, list, new->status, new->ctx.error.text, result));
	if (!pair->old || !pair->new)
		TRY(put_words(ctx, list, pair->old ? DIFF_MISSING : DIFF_NEW, pair->old ? "only the old directory has it" : "only the new directory has it"));
	if (old->sched && new->sched && !result->wrong) {
		TRY(diff_schedules(ctx, old->sched, new->sched, list));
		result->rated = old->sched->coll == new->sched->coll;
		result->order = frac_cmp(old->sched->achieved, new->sched->achieved);
		result->ratio = result->order ? frac_double(new->sched->achieved) / frac_double(old->sched->achieved) : 1;
	}
	if (old->index && new->index)
		TRY(diff_indexes(ctx, old->index, new->index, list));
	out->state = result->wrong ? STATE_WRONG : !pair->new ? STATE_MISSING : !pair->old ? STATE_NEW : list->n ? STATE_CHANGED : STATE_SAME;
	out->old = old->status == OK ? old->sched : NULL;
	out->new = new->status == OK ? new->sched : NULL;
	out->old_depth = old->depth;
	out->new_depth = new->depth;
	return OK;
}

/* Text goes to the spool, behind that of others, and is freed here. */
static Status
spool(Ctx *ctx, const struct work *work, Text *text, struct span *span)
{
	Status status = text->failed ? fail_memory(ctx) : OK;
	span->size = (int64_t)text->size;
	span->at = atomic_fetch_add(work->spooled, (long long)text->size);
	for (size_t done = 0; done < text->size && status == OK;) {
		ssize_t n = pwrite(work->spool, text->data + done, text->size - done, (off_t)(span->at + (int64_t)done));
		if (n < 0 && errno != EINTR)
			status = fail(ctx, IO, "text between processes: %s", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	text_free(text);
	return status;
}

static Status
spool_finding(Ctx *ctx, const struct work *work, const Comparison *out, struct result *result)
{
	Text message = { 0 }, detail = { 0 };
	result->kind = emit_diff_finding(out, work->fail_on, &message, &detail);
	Status status = spool(ctx, work, &message, &result->message);
	if (status != OK)
		text_free(&detail);
	return status == OK ? spool(ctx, work, &detail, &result->detail) : status;
}

static Status
write_pair(Ctx *ctx, const struct work *work, Comparison *out, struct result *result)
{
	Text text = { 0 };
	for (int i = 0; i < out->list.n; i++)
		out->fails = out->fails || difference_fails(&out->list.difference[i], work->fail_on);
	result->state = out->state;
	result->fails = out->fails;
	if (work->json)
		emit_diff_json(out, &text);
	else
		emit_diff_text(out, work->all, &text);
	TRY(spool(ctx, work, &text, &result->text));
	return work->reports && out->list.n ? spool_finding(ctx, work, out, result) : OK;
}

static Status
compare_task(Ctx *ctx, void *of, int task)
{
	const struct work *work = of;
	const struct pair *pair = &work->pair[task];
	struct loaded old = { .status = OK }, new = { .status = OK };
	Comparison out = { .file = pair->file };
	struct result *result = &work->result[task];
	bool trouble = false;
	load(&old, pair->old, NULL, &trouble);
	load(&new, pair->new, &old, &trouble);
	const struct loaded *first = old.status != OK ? &old : &new;
	Status status = OK;
	/* Two files that were named have to be there; in directories others go on. Where memory ran out nobody knows what is right. */
	if ((trouble && !pair->file) || first->status == NO_MEMORY || first->status == INTERNAL)
		status = fail(ctx, first->status, "%s", first->ctx.error.text);
	if (status == OK)
		status = compare(ctx, pair, &old, &new, &out, result);
	if (status == OK)
		status = write_pair(ctx, work, &out, result);
	unload(&old);
	unload(&new);
	return status;
}

/* ---- all pairs ---- */

/* Paths are bytes, and what we write is UTF-8. */
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
pair_directories(Ctx *ctx, const char *old, const char *new, struct work *work)
{
	const char **a, **b;
	int n_a, n_b;
	TRY(file_list(ctx, old, ".json", &a, &n_a));
	TRY(file_list(ctx, new, ".json", &b, &n_b));
	if (n_a + n_b == 0)
		return fail(ctx, BAD_INPUT, "%s, %s: no file whose name ends in .json: want schedules", old, new);
	TRY(NEW(ctx, work->pair, n_a + n_b));
	for (int i = 0, j = 0; i < n_a || j < n_b;) {
		int order = i == n_a ? 1 : j == n_b ? -1 : strcmp(relative(old, a[i]), relative(new, b[j]));
		struct pair *pair = &work->pair[work->n++];
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
find_pairs(Ctx *ctx, char *const *path, struct work *work, bool *directories)
{
	bool old = file_is_directory(path[0]), new = file_is_directory(path[1]);
	*directories = old && new;
	if (*directories)
		return pair_directories(ctx, path[0], path[1], work);
	for (int i = 0; i < 2 && (old || new); i++)
		if (strcmp(path[i], "-") != 0 && access(path[i], F_OK) != 0)
			return fail(ctx, IO, "%s: %s", path[i], strerror(errno));
	if (old || new)
		return fail(ctx, USAGE, "%s: a directory, %s: none: want two files or two directories", path[new], path[old]);
	if (strcmp(path[0], "-") == 0 && strcmp(path[1], "-") == 0)
		return fail(ctx, USAGE, "-: twice: want standard input for one of the two");
	TRY(NEW(ctx, work->pair, 1));
	work->pair[0] = (struct pair){ path[0], path[1], NULL };
	work->n = 1;
	return OK;
}

static void
summarise(const struct work *work, DiffSummary *summary)
{
	double logs = 0;
	summary->worst = 1;
	for (int i = 0; i < work->n; i++) {
		const struct result *result = &work->result[i];
		summary->count[result->state]++;
		summary->failing += result->fails;
		if (!result->rated)
			continue;
		summary->n_rates++;
		summary->lower += result->order > 0;
		summary->higher += result->order < 0;
		logs += log(result->ratio);
		if (result->ratio < summary->worst) {
			summary->worst = result->ratio;
			summary->worst_file = work->pair[i].file;
		}
	}
	summary->mean = summary->n_rates ? exp(logs / summary->n_rates) : 1;
}

static Status
unspool(Ctx *ctx, const struct work *work, const struct span *span, Text *out)
{
	char part[1 << 14];
	for (int64_t done = 0; done < span->size;) {
		int64_t left = span->size - done;
		ssize_t n = pread(work->spool, part, left < (int64_t)sizeof part ? (size_t)left : sizeof part, (off_t)(span->at + done));
		if (n == 0 || (n < 0 && errno != EINTR))
			return fail(ctx, IO, "text between processes: %s", n ? strerror(errno) : "it ends early");
		text_add(out, part, n > 0 ? (size_t)n : 0);
		done += n > 0 ? n : 0;
	}
	return OK;
}

static Status
write_all(Ctx *ctx, const struct work *work, const DiffSummary *summary, const char *path)
{
	Text out = { 0 };
	Status status = OK;
	if (work->json)
		emit_diff_json_begin(summary, &out);
	for (int i = 0; i < work->n && status == OK; i++) {
		text_put(&out, work->json && i ? ",\n" : "");
		status = unspool(ctx, work, &work->result[i].text, &out);
	}
	if (work->json)
		emit_diff_json_end(summary, &out);
	else if (summary->directories)
		emit_diff_text_summary(summary, &out);
	if (status == OK)
		status = out.failed ? fail_memory(ctx) : file_write(ctx, path, &out);
	text_free(&out);
	return status;
}

/* Text that was spooled, to the arena, without a newline at the end; NULL where there is none. */
static Status
keep_spooled(Ctx *ctx, const struct work *work, const struct span *span, const char **out)
{
	Text text = { 0 };
	if (span->size == 0)
		return OK;
	Status status = unspool(ctx, work, span, &text);
	if (status == OK && text.failed)
		status = fail_memory(ctx);
	if (status == OK) {
		*out = arena_text(&ctx->run, text.data, text.size - (text.data[text.size - 1] == '\n'));
		status = *out ? OK : fail_memory(ctx);
	}
	text_free(&text);
	return status;
}

/* A pair is reported as the file of the old directory, which is the one that is kept, or else of the new one. */
static Status
describe_pair(Ctx *ctx, const struct work *work, int i, Finding *found)
{
	const struct pair *pair = &work->pair[i];
	const struct result *result = &work->result[i];
	bool old = pair->old && strcmp(pair->old, "-") != 0;
	*found = (Finding){ .kind = FINDING_RIGHT, .file = old || !pair->new ? pair->old : pair->new };
	if (result->message.size == 0)
		return OK;
	found->kind = result->fails ? FINDING_WRONG : FINDING_NOTED;
	found->type = difference_name(result->kind);
	TRY(keep_spooled(ctx, work, &result->message, &found->message));
	return keep_spooled(ctx, work, &result->detail, &found->detail);
}

static Status
report(Ctx *ctx, const Options *opt, const struct work *work, const DiffSummary *summary)
{
	Finding *found;
	Text line = { 0 };
	TRY(NEW(ctx, found, work->n));
	for (int i = 0; i < work->n; i++)
		TRY(describe_pair(ctx, work, i, &found[i]));
	emit_diff_line(summary, &line);
	Status status = line.failed ? fail_memory(ctx) : output_findings(ctx, opt, "blinkc diff", found, work->n, line.data);
	text_free(&line);
	return status;
}

/* The status of the first file that is wrong; else whether something changed that fails. told: what is wrong was said already. */
static Status
verdict(Ctx *ctx, const struct work *work, const DiffSummary *summary, bool told)
{
	for (int i = 0; i < work->n; i++)
		if (work->result[i].wrong)
			return told ? work->result[i].wrong : fail(ctx, work->result[i].wrong, "%s", work->result[i].reason);
	return summary->failing ? DIFFERENT : OK;
}

static void
show_bar(void *of, int n_done)
{
	const struct work *work = of;
	watch_bar("comparing", n_done, work->n);
}

static Status
run_all(Ctx *ctx, struct work *work, int jobs)
{
	TaskEnd *end = shared_array((size_t)work->n, sizeof *end);
	work->result = shared_array((size_t)work->n, sizeof *work->result);
	work->spooled = shared_array(1, sizeof *work->spooled);
	work->spool = memfd_create("differences", MFD_CLOEXEC);
	Status status = !end || !work->result || !work->spooled ? fail_memory(ctx) : OK;
	if (status == OK && work->spool < 0)
		status = fail(ctx, IO, "text between processes: %s", strerror(errno));
	Pool pool = { .n_tasks = work->n, .n_workers = jobs, .run = compare_task, .done = show_bar, .of = work };
	if (status == OK)
		status = pool_run(ctx, &pool, end);
	watch_hide();
	for (int i = 0; i < work->n && status == OK; i++)
		if (end[i].status != OK)
			status = fail(ctx, end[i].status, "%s%s%s", work->pair[i].file ? work->pair[i].file : "", work->pair[i].file ? ": " : "", end[i].text);
	shared_free(end);
	return status;
}

static void
work_free(struct work *work)
{
	if (work->spool >= 0)
		close(work->spool);
	shared_free(work->result);
	shared_free(work->spooled);
}

Status
verb_diff(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "text", "json", NULL };
	const char *format, *path = output_path(opt), *dot = strrchr(path, '.');
	struct work work = { .spool = -1, .all = opt->value[OPT_VERBOSE] };
	DiffSummary summary = { 0 };
	bool github = opt->value[OPT_GITHUB];
	int jobs;
	if (opt->n_files != 2)
		return fail(ctx, USAGE, "%d files: want two, the old and the new", opt->n_files);
	/* Text goes to files of any name. */
	format = dot && strcmp(dot, ".json") == 0 ? "json" : "text";
	if (opt->value[OPT_FORMAT])
		TRY(request_format(ctx, opt, formats, format, &format));
	work.json = strcmp(format, "json") == 0;
	work.reports = github || opt->value[OPT_JUNIT];
	TRY(difference_kinds(ctx, opt->value[OPT_FAIL_ON] ? opt->value[OPT_FAIL_ON] : "any", &work.fail_on));
	TRY(request_jobs(ctx, opt, &jobs));
	TRY(find_pairs(ctx, opt->file, &work, &summary.directories));
	summary.old = valid_text(ctx, opt->file[0]);
	summary.new = valid_text(ctx, opt->file[1]);
	if (!summary.old || !summary.new)
		return fail_memory(ctx);
	Status status = run_all(ctx, &work, jobs);
	if (status == OK) {
		summarise(&work, &summary);
		/* Annotations are alone on standard output. */
		if (!opt->value[OPT_QUIET] && !(github && strcmp(path, "-") == 0))
			status = write_all(ctx, &work, &summary, path);
		if (status == OK && work.reports)
			status = report(ctx, opt, &work, &summary);
		if (status == OK)
			status = verdict(ctx, &work, &summary, github);
	}
	work_free(&work);
	return status;
}
