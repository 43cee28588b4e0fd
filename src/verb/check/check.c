/* blinkc check: workers check the files and leave the results in shared memory; they are printed in the order of the
 * files. */
#include "base/file.h"
#include "base/pool.h"
#include "format/file_kind.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/check/fits_machine.h"
#include "verb/check/changes.h"
#include "verb/check/check.h"
#include "verb/check/msccl.h"
#include "verb/check/mscclpp.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/shipped.h"
#include "verb/verb.h"
#include "view/view.h"
#include "workload/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* bytes: names of a path and a topology, SIZES_MAX lines with a number for each part, the GPUs that JSON lists */
enum { SUMMARY_ROOM = 1 << 16 };

/* Of a valid file, or one for another machine. */
struct result {
	bool schedule;		/* not a topology */
	bool other_machine;	/* invalid: for a machine of another digest */
	bool bounded;		/* its bound is above 0, so there is a ratio */
	double ratio;
};

struct check {
	const Options *opt;
	Sizes sizes;
	Inputs *all;
	const Topology *machine;	/* of --topology; NULL: not given */
	bool json;		/* summaries are JSON, and all that goes to standard output */
	bool verbose;		/* valid files and summaries are printed */
	/* Shared with workers. */
	TaskEnd *end;			/* of each item */
	Changes *changes;		/* between the machine and those of the schedules */
	struct result *result;		/* of each item */
	TaskEnd *group_end;		/* of each group */
	char (*summary)[SUMMARY_ROOM];	/* of each item that was named */
};

/* ---- in a worker ---- */

/* Into the room of an item that was named. */
static Status
keep_summary(Ctx *ctx, Status status, Text *text, char *summary)
{
	if (status == OK && text->failed)
		status = fail_memory(ctx);
	if (status == OK && text->size >= SUMMARY_ROOM)
		status = fail(ctx, INTERNAL, "a summary of more than %d bytes", (int)SUMMARY_ROOM);
	if (status == OK && summary)
		memcpy(summary, text->data, text->size + 1);
	text_free(text);
	return status;
}

static Status
write_summary(Ctx *ctx, const struct check *check, const char *path, const Schedule *sched, char *summary)
{
	const Summary of = { .file = path, .sched = sched, .unproven = UNPROVEN_BOTH, .best = FRAC_ZERO,
		.size = check->sizes.m, .n_sizes = check->sizes.n };
	Text text = { 0 };
	Status status = check->json ? summary_json(ctx, &of, &text) : summary_text(ctx, &of, &text);
	return keep_summary(ctx, status, &text, summary);
}

enum { NAME_ROOM = 180 };

/* "broadcast from root 1 over GPUs 0,2,5, 0 to 8192 bytes" */
static void
name_entry(const IndexEntry *entry, char text[NAME_ROOM])
{
	int n = snprintf(text, NAME_ROOM, "%s", collective_name(entry->coll));
	if (entry->root >= 0)
		n += snprintf(text + n, (size_t)(NAME_ROOM - n), " from root %d", entry->root);
	n += snprintf(text + n, (size_t)(NAME_ROOM - n), " over GPUs ");
	for (int i = 0; i < entry->n && n < 100; i++)
		n += snprintf(text + n, (size_t)(NAME_ROOM - n), "%s%d", i ? "," : "", entry->gpu[i]);
	if (n >= 100)
		n += snprintf(text + n, (size_t)(NAME_ROOM - n), "...");
	if (entry->sized)
		snprintf(text + n, (size_t)(NAME_ROOM - n), ", %lld to %lld bytes", (long long)entry->from,
		    (long long)entry->to);
}

static Status
check_group(Ctx *ctx, const Inputs *all, const Group *group, const Schedule *sched, Match *match)
{
	const Index *index = all->index_file[group->index_file].index;
	IndexedFile file;
	TRY(index_check_machine(ctx, "", index, sched));
	if (match) {
		TRY(index_check_gpus(ctx, "", index, match->whole));
		TRY(match_index(ctx, "", index, match));
	}
	TRY(index_describe(ctx, sched, &file));
	for (int i = 0; i < group->n; i++) {
		const IndexEntry *entry = all->entry[group->first + i];
		char name[NAME_ROOM];
		name_entry(entry, name);
		TRY(index_check_entry(ctx, name, entry, &file));
		if (match)
			TRY(match_entry(ctx, name, match, entry));
	}
	return OK;
}

/* Compare a file with the entries of indexes for it. An entry that differs is an error of the index, not of the
 * file. */
static void
check_groups(const struct check *check, const Item *item, const Schedule *sched, Match *match)
{
	for (int g = item->group; g >= 0; g = check->all->group[g].next) {
		Ctx own;
		ctx_init(&own);
		Status status = check_group(&own, check->all, &check->all->group[g], sched, match);
		if (status != OK)
			snprintf(check->group_end[g].text, sizeof check->group_end[g].text, "%.500s",
			    own.error.text + (strncmp(own.error.text, ": ", 2) == 0 ? 2 : 0));
		check->group_end[g].status = status;
		ctx_free(&own);
	}
}

/* Does it fit the machine of --topology? What of that has changed is noted. */
static Status
check_machine(Ctx *ctx, const struct check *check, int i, const Schedule *sched, Match *match)
{
	*match = (Match){ .machine = NULL };
	Status status = match_schedule(ctx, "", check->machine, sched, match);
	if (status != BAD_INPUT || !match->machine || strcmp(match->machine->digest, sched->topo->digest) == 0)
		return status;
	Ctx own;
	ctx_init(&own);
	check->result[i].other_machine = changes_note(&own, check->changes, match->machine, &match->ask, sched) == OK;
	ctx_free(&own);
	return status;
}

static Status
check_schedule(Ctx *ctx, const struct check *check, int i, const Text *in)
{
	const Item *item = &check->all->item[i];
	struct result *result = &check->result[i];
	Schedule *sched;
	Match match;
	TRY(sched_read_verified(ctx, "", in->data, in->size, &sched));
	if (check->machine)
		TRY(check_machine(ctx, check, i, sched, &match));
	if (check->verbose && item->named >= 0)
		TRY(write_summary(ctx, check, item->path, sched, check->summary[item->named]));
	result->schedule = true;
	result->bounded = sched->bound.rate.num > 0;
	if (result->bounded)
		result->ratio = frac_double(sched->achieved) / frac_double(sched->bound.rate);
	check_groups(check, item, sched, check->machine ? &match : NULL);
	return OK;
}

static Status
check_algorithm(Ctx *ctx, const struct check *check, const Item *item, FileKind kind, const Text *in)
{
	Text text = { 0 };
	Status status = (kind == FILE_MSCCL ? check_msccl : check_mscclpp)(ctx, item->path, in, check->json, &text);
	return keep_summary(ctx, status, &text, check->verbose ? check->summary[item->named] : NULL);
}

/* The schedules that it names are beside it. */
static Status
check_phases(Ctx *ctx, const char *path, const Text *in)
{
	const char *slash = strrchr(path, '/'), *directory = arena_text(&ctx->run, path, slash ? slash + 1 - path : 0);
	Phases *phases;
	if (!directory)
		return fail_memory(ctx);
	TRY(phases_read(ctx, "", in->data, in->size, &phases));
	return phases_check(ctx, "", directory, phases);
}

static Status
check_topology(Ctx *ctx, const char *path, const Text *in)
{
	Topology *topo;
	return topo_read(ctx, path, topology_dirs(), in->data, in->size, &topo);
}

/* An error does not repeat the path. */
static Status
check_item(Ctx *ctx, void *of, int i)
{
	const struct check *check = of;
	const Item *item = &check->all->item[i];
	Text in = { 0 };
	if (item->index_file >= 0 || item->status != OK)
		return OK;
	Status status = item->named < 0 ? file_read_regular(ctx, item->path, &in)
	    : schedule_file(ctx, item->path, &in);
	FileKind kind = status == OK ? file_kind(in.data, in.size) : FILE_OTHER;
	if (status == OK && item->named >= 0 && (kind == FILE_MSCCL || kind == FILE_MSCCLPP))
		status = check_algorithm(ctx, check, item, kind, &in);
	else if (status == OK && kind == FILE_PHASES)
		status = check_phases(ctx, item->path, &in);
	else if (status == OK)
		status = item->named < 0 && kind == FILE_TOPOLOGY
		    ? check_topology(ctx, item->path, &in) : check_schedule(ctx, check, i, &in);
	text_free(&in);
	const char *text = text_after_path(ctx->error.text, item->path);
	memmove(ctx->error.text, text, strlen(text) + 1);
	return status;
}

/* ---- findings ---- */

/* The error of an index about a file; NULL: none. An invalid file is not an error of the index. */
static const char *
group_error(const struct check *check, int g)
{
	int i = check->all->group[g].item;
	if (i < 0)
		return "no such file";
	if (check->group_end[g].status != OK)
		return check->group_end[g].text;
	if (check->all->item[i].status != OK || check->end[i].status != OK || check->result[i].schedule)
		return NULL;
	return check->all->item[i].index_file >= 0 ? "an index: want a schedule"
	    : "a topology: want a schedule";
}

static Status
item_status(const struct check *check, int i)
{
	const Item *item = &check->all->item[i];
	const IndexFile *file = item->index_file >= 0 ? &check->all->index_file[item->index_file] : NULL;
	if (file && file->lookup_error)
		return BAD_INPUT;
	for (int g = 0; file && g < file->n_groups; g++)
		if (group_error(check, file->first_group + g))
			return BAD_INPUT;
	return item->status != OK ? item->status : check->end[i].status;
}

static Finding
item_finding(const struct check *check, int i)
{
	const Item *item = &check->all->item[i];
	Status status = item_status(check, i);
	const char *text = item->status != OK ? item->text : check->end[i].text;
	Finding found = { .kind = FINDING_ERROR, .file = item->path, .type = status_name(status) };
	if (status != OK) {
		finding_place(text, &found);
		if (check->result[i].other_machine)
			found.kind = FINDING_COUNTED;
	} else if (item->named < 0 && item->group < 0 && check->result[i].schedule
	    && below_an_index(check->all, item->path)) {
		found.kind = FINDING_NOTE;
		found.message = "not in any index";
	} else {
		found.kind = FINDING_VALID;
	}
	return found;
}

/* The errors of an index, or a finding that there are none. Returns how many. */
static int
find_index(const struct check *check, const IndexFile *file, Finding *found)
{
	int n = 0;
	for (int g = file->first_group; g < file->first_group + file->n_groups; g++) {
		const Group *group = &check->all->group[g];
		const char *error = group_error(check, g);
		if (!error)
			continue;
		found[n++] = (Finding){ .kind = FINDING_ERROR, .file = file->path,
		    .part = group->path + strlen(file->directory),
			.type = status_name(BAD_INPUT), .message = error };
	}
	if (file->lookup_error)
		found[n++] = (Finding){ .kind = FINDING_ERROR, .file = file->path, .part = "its lookup file",
		    .type = status_name(BAD_INPUT), .message = file->lookup_error };
	if (n == 0)
		found[n++] = (Finding){ .kind = FINDING_VALID, .file = file->path };
	return n;
}

/* Of the machine: a finding for each link that has changed, and one that counts schedules. */
static Status
find_changes(Ctx *ctx, const struct check *check, const ChangesList *changes, Finding *found, int *n)
{
	Finding one = { .kind = FINDING_ERROR, .file = check->opt->value[OPT_TOPOLOGY],
		.type = status_name(BAD_INPUT) };
	Text text = { 0 };
	int schedules = 0;
	if (changes->n_schedules == 0)
		return OK;
	for (int i = 0; i < changes->n; i++) {
		found[*n] = one;
		found[(*n)++].message = changes->line[i];
	}
	for (int i = 0; i < check->all->n_items; i++)
		schedules += check->result[i].schedule || check->result[i].other_machine;
	text_printf(&text, "another machine than that of %d of %d schedule%s: %d %s other links between %s GPUs%s",
	    changes->n_schedules, schedules, schedules == 1 ? "" : "s", changes->n_with_links,
	    changes->n_with_links == 1 ? "has" : "have", changes->n_with_links == 1 ? "its" : "their",
	    changes->more ? ", more than are listed" : "");
	one.message = text_keep(&ctx->run, &text);
	found[(*n)++] = one;
	return one.message ? OK : fail_memory(ctx);
}

static Status
list_findings(Ctx *ctx, const struct check *check, Finding **out, int *n_out)
{
	const Inputs *all = check->all;
	ChangesList changes;
	Finding *found;
	int n = 0;
	TRY(changes_list(ctx, check->changes, &changes));
	TRY(NEW(ctx, found, all->n_items + all->n_groups + changes.n + 1));
	TRY(find_changes(ctx, check, &changes, found, &n));
	for (int i = 0; i < all->n_items; i++) {
		if (all->item[i].index_file >= 0)
			n += find_index(check, &all->index_file[all->item[i].index_file], found + n);
		else
			found[n++] = item_finding(check, i);
	}
	*out = found;
	*n_out = n;
	return OK;
}

/* ---- output ---- */

/* "247 files: 246 right, 1 wrong; ratio to the bound at least 0.951 (FILE)", the first file with that ratio. */
static void
summarise(const struct check *check, Text *out)
{
	const Inputs *all = check->all;
	int files = 0, invalid = 0, least = -1;
	for (int i = 0; i < all->n_items; i++) {
		files += !all->item[i].directory;
		invalid += !all->item[i].directory && item_status(check, i) != OK;
		if (check->result[i].bounded && (least < 0 || check->result[i].ratio < check->result[least].ratio))
			least = i;
	}
	text_printf(out, "%d file%s: %d valid, %d invalid", files, files == 1 ? "" : "s", files - invalid, invalid);
	if (least < 0)
		return;
	/* Rounded down, so that "at least" is true. */
	int thousandths = (int)floor(check->result[least].ratio * 1000 + 1e-9);
	text_printf(out, "; ratio to the bound at least %d.%03d (", thousandths / 1000, thousandths % 1000);
	finding_text(out, all->item[least].path);
	text_put(out, ")");
}

static bool
print_line(FILE *to, const Finding *found, const char *before)
{
	Text line = { 0 };
	finding_line(&line, found);
	bool failed = line.failed;
	if (!failed)
		fprintf(to, "%s%s\n", before, line.data);
	text_free(&line);
	return !failed;
}

/* Errors to standard error, the rest to standard output. */
static Status
print_findings(Ctx *ctx, const struct check *check, const Finding *found, int n, const char *summary)
{
	int i = 0;
	for (int f = 0; f < n; f++) {
		if (found[f].file == check->opt->value[OPT_TOPOLOGY]) {
			if (!print_line(stderr, &found[f], "blinkc: "))
				return fail_memory(ctx);
			continue;
		}
		while (found[f].file != check->all->item[i].path)
			i++;
		const Item *item = &check->all->item[i];
		if (found[f].kind == FINDING_ERROR) {
			fflush(stdout);
			if (!print_line(stderr, &found[f], "blinkc: "))
				return fail_memory(ctx);
		} else if (check->verbose && (found[f].kind == FINDING_NOTE || item->named >= 0)) {
			if (!check->json && !print_line(stdout, &found[f], ""))
				return fail_memory(ctx);
			if (item->named >= 0 && item->index_file < 0)
				fputs(check->summary[item->named], stdout);
		}
	}
	if (check->verbose && !check->json && check->all->many)
		printf("%s\n", summary);
	return OK;
}

static Status
print_all(Ctx *ctx, const struct check *check, const Finding *found, int n)
{
	Text summary = { 0 };
	summarise(check, &summary);
	Status status = summary.failed ? fail_memory(ctx) : OK;
	if (status == OK && !check->opt->value[OPT_GITHUB])
		status = print_findings(ctx, check, found, n, summary.data);
	if (status == OK)
		status = output_findings(ctx, check->opt, "blinkc check", found, n, summary.data);
	text_free(&summary);
	return status;
}

static void
show_progress(void *of, int n_done)
{
	const struct check *check = of;
	progress_bar("checking", n_done, check->all->n_items);
}

static Status
run(Ctx *ctx, struct check *check, int jobs)
{
	const Inputs *all = check->all;
	Finding *found;
	int n;
	Pool pool = { .n_tasks = all->n_items, .n_workers = jobs, .run = check_item, .done = show_progress,
	    .of = check };
	if (!check->end || !check->changes || !check->result || !check->group_end || !check->summary)
		return fail_memory(ctx);
	TRY(pool_run(ctx, &pool, check->end));
	progress_hide();
	TRY(list_findings(ctx, check, &found, &n));
	Status status = print_all(ctx, check, found, n), first = OK;
	for (int i = 0; i < all->n_items && first == OK; i++)
		first = item_status(check, i);
	return first != OK ? first : status;
}

Status
verb_check(Ctx *ctx, const Options *opt)
{
	struct check check = { .opt = opt, .verbose = !opt->value[OPT_QUIET] && !opt->value[OPT_GITHUB] };
	const char *label;
	Topology *machine = NULL;
	int jobs;
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], &check.sizes));
	TRY(request_summary(ctx, opt, &check.json));
	TRY(request_jobs(ctx, opt, &jobs));
	TRY(request_from(ctx, opt, &(const char *){ NULL }));
	if (opt->n_files < 1)
		return fail(ctx, USAGE, "no schedule file: want at least one");
	if (opt->value[OPT_TOPOLOGY])
		TRY(read_machine_of(ctx, opt, &label, &machine));
	check.machine = machine;
	TRY(find_inputs(ctx, opt->file, opt->n_files, &check.all));
	const Inputs *all = check.all;
	check.end = shared_array((size_t)all->n_items, sizeof *check.end);
	check.changes = changes_new();
	check.result = shared_array((size_t)all->n_items, sizeof *check.result);
	check.group_end = shared_array((size_t)all->n_groups, sizeof *check.group_end);
	check.summary = shared_array((size_t)all->n_named, sizeof *check.summary);
	Status status = run(ctx, &check, jobs);
	shared_free(check.end);
	changes_free(check.changes);
	shared_free(check.result);
	shared_free(check.group_end);
	shared_free(check.summary);
	return status;
}
