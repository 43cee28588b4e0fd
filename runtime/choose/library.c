/* The schedules that a user names: files and indexes, and which GPUs of an index a job has. */
#include "choose/library_inside.h"
#include "base/file_read.h"
#include "choose/read.h"
#include "format/file_kind.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- open ---- */

static Status
open_index(Ctx *ctx, struct library *lib, struct item *item)
{
	TRY(NEW(&lib->ctx, item->index, 1));
	ctx_init(&item->index->ctx);
	Status status = index_load(item->index, item->path);
	arena_free(&item->index->ctx.scratch);
	return status == OK ? OK : fail(ctx, status, "%s", item->index->ctx.error.text);
}

static void
know_job(struct item *item, const Schedule *sched)
{
	item->coll = sched->coll;
	item->n_ranks = sched->topo->n_ranks;
	item->root = sched->root;
}

static void
free_part(struct part *part)
{
	ctx_free(&part->ctx);
	ctx_free(&part->own);
	free(part);
}

static Status
new_part(Ctx *ctx, struct part **out)
{
	struct part *part = malloc(sizeof *part);
	if (!part)
		return fail_memory(ctx);
	ctx_init(&part->ctx);
	ctx_init(&part->own);
	*out = part;
	return OK;
}

static void
keep_part(struct item *item, struct part *part)
{
	arena_free(&part->ctx.scratch);
	arena_free(&part->own.scratch);
	know_job(item, part->of.sched);
	item->part = part;
}

/* Tree by tree, if the file is for the library's job and laid out for that. Else, item->part is not set. */
static Status
read_part(Ctx *ctx, struct library *lib, struct item *item)
{
	struct part *part = NULL;
	bool done = false;
	int fd;
	if (!lib->n_ranks)
		return OK;
	TRY(file_open_regular(ctx, item->path, &fd));
	Status status = new_part(ctx, &part);
	if (status == OK) {
		status = sched_read_part(&part->ctx, &part->own, item->path, fd, lib->n_ranks, lib->rank, &part->of,
		    &done);
		if (status != OK)
			fail_memory(ctx);
		if (done)
			keep_part(item, part);
		else
			free_part(part);
	}
	close(fd);
	return status;
}

/* One that is compact takes little memory, so it is kept. What is invalid is said when it is chosen. */
static Status
keep_compact(struct library *lib, struct part *part, const char *path, const char *data, size_t size, bool *kept)
{
	Schedule *sched = part->of.sched;
	*kept = lib->n_ranks == sched->topo->n_ranks && !sched_is_list(sched)
	    && sched_verify_read(&part->ctx, path, sched) == OK
	    && sched_project(&part->own, sched, lib->rank, &part->of.prog) == OK;
	if (*kept)
		digest_of(data, size, part->of.digest);
	return part->ctx.error.status == NO_MEMORY || part->own.error.status == NO_MEMORY ? NO_MEMORY : OK;
}

/* What it is for; it is read again when it is chosen, unless its part is kept. */
static Status
open_schedule(Ctx *ctx, struct library *lib, struct item *item, const char *data, size_t size)
{
	struct part *part = NULL;
	bool kept = false;
	TRY(new_part(ctx, &part));
	Status status = sched_read_compact(&part->ctx, item->path, data, size, &part->of.sched);
	if (status == OK) {
		know_job(item, part->of.sched);
		status = keep_compact(lib, part, item->path, data, size, &kept);
	}
	if (status == NO_MEMORY)
		fail_memory(ctx);
	else if (status != OK)
		fail(ctx, status, "%s", part->ctx.error.text);
	if (status == OK && kept)
		keep_part(item, part);
	else
		free_part(part);
	return status;
}

static Status
open_item(Ctx *ctx, struct library *lib, struct item *item)
{
	struct stat there;
	Text text = { 0 };
	if (index_file_name(item->path) || (stat(item->path, &there) == 0 && S_ISDIR(there.st_mode)))
		return open_index(ctx, lib, item);
	TRY(read_part(ctx, lib, item));
	if (item->part)
		return OK;
	TRY(file_read_regular(ctx, item->path, &text));
	const char *data = text.data ? text.data : "";
	Status status = file_kind(data, text.size) == FILE_INDEX ? open_index(ctx, lib, item)
	    : open_schedule(ctx, lib, item, data, text.size);
	text_free(&text);
	return status;
}

/* The path that begins at *at, of which *at is moved to the end; empty ones are left out. NULL: no more. */
static const char *
next_path(const char **at, size_t *length)
{
	*at += strspn(*at, ":");
	const char *path = *at;
	*length = strcspn(path, ":");
	*at += *length;
	return *length > 0 ? path : NULL;
}

static Status
open_items(Ctx *ctx, struct library *lib, const char *paths)
{
	size_t length;
	int n = 0;
	for (const char *at = paths; next_path(&at, &length);)
		n++;
	lib->item = arena_array(&lib->ctx.run, (size_t)n, sizeof *lib->item);
	if (!lib->item)
		return fail_memory(ctx);
	for (const char *at = paths, *path; (path = next_path(&at, &length));) {
		struct item *item = &lib->item[lib->n_items++];
		item->path = arena_text(&lib->ctx.run, path, length);
		if (!item->path)
			return fail_memory(ctx);
		TRY(open_item(ctx, lib, item));
	}
	return OK;
}

Status
library_open_part(Ctx *ctx, const char *paths, int64_t small, int n_ranks, int rank, struct library **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct library *lib = calloc(1, sizeof *lib);
	if (!lib)
		return fail_memory(ctx);
	ctx_init(&lib->ctx);
	lib->small = small;
	lib->n_ranks = n_ranks;
	lib->rank = rank;
	Status status = open_items(ctx, lib, paths ? paths : "");
	arena_release(&ctx->scratch, mark);
	if (status != OK) {
		library_close(lib);
		return status;
	}
	*out = lib;
	return OK;
}

Status
library_open(Ctx *ctx, const char *paths, int64_t small, struct library **out)
{
	return library_open_part(ctx, paths, small, 0, 0, out);
}

void
library_close(struct library *lib)
{
	if (!lib)
		return;
	for (int i = 0; i < lib->n_items; i++) {
		if (lib->item[i].index)
			index_unload(lib->item[i].index);
		if (lib->item[i].part)
			free_part(lib->item[i].part);
	}
	ctx_free(&lib->ctx);
	free(lib);
}

/* ---- machines ---- */

enum { DIGITS_LEAST = 12 };

static size_t
hex_digits(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

static const char *
without_scheme(const char *digest)
{
	size_t n = strlen("sha256:");
	return strncmp(digest, "sha256:", n) == 0 ? digest + n : digest;
}

bool
machine_valid(const char *stated)
{
	const char *digits = without_scheme(stated);
	return digits == stated || (hex_digits(digits) == strlen(digits) && strlen(digits) >= DIGITS_LEAST);
}

static bool
is_machine(const Index *index, const char *stated)
{
	const char *digits = without_scheme(stated);
	size_t n = strlen(digits);
	return strcmp(index->name, stated) == 0
	    || (n >= DIGITS_LEAST && hex_digits(digits) == n && strncmp(without_scheme(index->digest), digits, n) == 0);
}

bool
library_is_stated(const Index *index, const struct job *job)
{
	bool good = true;
	for (int i = 0; i < job->n_stated && good; i++)
		good = is_machine(index, job->stated[i].machine);
	return good;
}

/* ---- GPUs of an index ---- */

bool
library_has_index(const struct library *lib)
{
	bool found = false;
	for (int i = 0; i < lib->n_items; i++)
		found |= lib->item[i].index != NULL;
	return found;
}

int
library_gpus(const struct library *lib, const struct job *job)
{
	for (int i = 0; i < lib->n_items; i++)
		if (lib->item[i].index && library_is_stated(lib->item[i].index->index, job))
			return lib->item[i].index->index->n_gpus;
	return 0;
}

/* The GPU of this id, or else of this number, as "3" or "=3"; below 0: none. */
static int
number_of(const Index *index, const char *gpu)
{
	int number = 0;
	gpu += *gpu == '=';
	for (int g = 0; g < index->n_gpus; g++)
		if (strcmp(index->gpu[g], gpu) == 0)
			return g;
	for (const char *at = gpu; *at; at++) {
		if (*at < '0' || *at > '9' || number > LIMIT_COMM_RANKS)
			return -1;
		number = 10 * number + (*at - '0');
	}
	return number < index->n_gpus ? number : -1;
}

/* Nothing is said of its GPU but a number that it had in a larger job, as "=9". */
static bool
is_assumed(const struct job *job, int rank)
{
	return !job->gpu || !job->gpu[rank] || !*job->gpu[rank] || *job->gpu[rank] == '=';
}

/* Ranks whose numbers in a larger job are no GPUs of the index are those of one of several such machines: then their
 * numbers in this job count. */
static bool
assumed_are_there(const Index *index, const struct job *job)
{
	for (int r = 0; r < job->n_ranks; r++)
		if (is_assumed(job, r) && job->gpu && job->gpu[r] && *job->gpu[r] && number_of(index, job->gpu[r]) < 0)
			return false;
	return true;
}

/* The job's GPUs by their numbers in the index. False: it does not have them all, or not one for each rank; `lacks`
 * says it. */
static bool
find_gpus(const Index *index, const struct job *job, int *gpu, bool *taken, char *lacks, size_t room)
{
	bool all = assumed_are_there(index, job);
	memset(taken, 0, (size_t)index->n_gpus * sizeof *taken);
	for (int r = 0; r < job->n_ranks; r++) {
		const char *name = job->gpu && job->gpu[r] && (all || !is_assumed(job, r)) ? job->gpu[r] : "";
		gpu[r] = *name ? number_of(index, name) : r < index->n_gpus ? r : -1;
		if (gpu[r] < 0 && *name)
			snprintf(lacks, room, "no GPU \"%s\" (rank %d)", name, r);
		else if (gpu[r] < 0)
			snprintf(lacks, room, "%d GPUs, and the job %d ranks", index->n_gpus, job->n_ranks);
		else if (taken[gpu[r]])
			snprintf(lacks, room, "one GPU \"%s\" for rank %d and one before it", index->gpu[gpu[r]], r);
		if (*lacks)
			return false;
		taken[gpu[r]] = true;
	}
	return true;
}

bool
library_by_links(const struct job *job)
{
	bool named = false;
	for (int r = 0; r < job->n_ranks && job->gpu; r++)
		named |= job->gpu[r] && *job->gpu[r];
	return job->card && !named;
}

/* Without the machine's links: the numbers that the driver gives the GPUs of a server, if the index has as many. */
static bool
find_by_number(const Index *index, const struct job *job, int *gpu, bool *taken)
{
	memset(taken, 0, (size_t)index->n_gpus * sizeof *taken);
	for (int r = 0; r < job->n_ranks; r++) {
		const struct gpu_card *card = &job->card[r];
		if (job->server[r] != job->server[0] || card->shown != index->n_gpus || card->number >= index->n_gpus ||
		    taken[card->number])
			return false;
		gpu[r] = card->number;
		taken[gpu[r]] = true;
	}
	return true;
}

Status
library_find(Ctx *ctx, const struct item *item, const struct job *job, Collective coll, int root,
    struct indexed_job *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	bool *taken, found;
	int *gpu;
	*out = (struct indexed_job){ .index = item->index };
	if (!item->index || job->n_ranks < 2 || !library_is_stated(item->index->index, job))
		return OK;
	TRY(TEMP(ctx, gpu, job->n_ranks));
	TRY(TEMP(ctx, taken, item->index->index->n_gpus));
	const Index *index = item->index->index;
	size_t room = sizeof out->lacks;
	found = !library_by_links(job) && find_gpus(index, job, gpu, taken, out->lacks, room);
	if (library_by_links(job) && !index->machine) {
		found = find_by_number(index, job, gpu, taken);
		snprintf(out->lacks, room, "no GPUs with the driver's numbers of those of this job");
	} else if (!found && job->card && index->machine) {
		TRY(probe_match(ctx, index->machine, job->card, job->server, job->n_ranks, gpu, &found));
		snprintf(out->lacks, room, "no GPUs with the NVLinks of those of this job");
	}
	if (found)
		*out->lacks = '\0';
	if (found)
		TRY(index_find_job(ctx, item->index, gpu, job->n_ranks, (int)coll, root, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
