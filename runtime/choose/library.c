/* The schedules that a user names, and the choice among them and the built-in ones. */
#include "choose/choose.h"
#include "base/file_read.h"
#include "base/printable.h"
#include "choose/index.h"
#include "choose/read.h"
#include "format/file_kind.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A schedule file that has been read for one rank: its schedule, without trees unless it is compact, and the rank's
 * program. Each has an arena of its own, as trees come and go in the one. */
struct part {
	Ctx ctx, own;
	SchedulePart of;
};

struct item {
	const char *path;
	struct blinkIndex *index;	/* NULL: a schedule file, for the job of the members below */
	Collective coll;
	int n_ranks, root;
	struct part *part;		/* NULL: it is read again when it is chosen */
};

struct library {
	Ctx ctx;			/* its memory */
	int64_t small;
	int n_ranks, rank;		/* of the job whose parts are read at once; 0: of none */
	int n_items;
	struct item *item;
};

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
	*kept = lib->n_ranks == sched->topo->n_ranks && sched->symmetry && sched_verify(&part->ctx, path, sched) == OK
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

/* Is the index of the machine that ranks state? */
static bool
is_stated(const Index *index, const struct job *job)
{
	bool good = true;
	for (int i = 0; i < job->n_stated && good; i++)
		good = is_machine(index, job->stated[i].machine);
	return good;
}

/* ---- GPUs of an index ---- */

int
library_gpus(const struct library *lib, const struct job *job)
{
	for (int i = 0; i < lib->n_items; i++)
		if (lib->item[i].index && is_stated(lib->item[i].index->index, job))
			return lib->item[i].index->index->n_gpus;
	return 0;
}

/* The GPU of this id, or else of this number; below 0: none. */
static int
number_of(const Index *index, const char *gpu)
{
	int number = 0;
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

/* The job's GPUs by their numbers in the index. False: it does not have them all, or not one for each rank. */
static bool
find_gpus(const Index *index, const struct job *job, int *gpu, bool *taken)
{
	memset(taken, 0, (size_t)index->n_gpus * sizeof *taken);
	for (int r = 0; r < job->n_ranks; r++) {
		const char *name = job->gpu && job->gpu[r] ? job->gpu[r] : "";
		gpu[r] = *name ? number_of(index, name) : r < index->n_gpus ? r : -1;
		if (gpu[r] < 0 || taken[gpu[r]])
			return false;
		taken[gpu[r]] = true;
	}
	return true;
}

/* Nobody says which GPU it has, but the driver does. */
static bool
by_links_alone(const struct job *job)
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

static Status
find_indexed(Ctx *ctx, const struct item *item, const struct job *job, Collective coll, int root,
    struct indexed_job *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	bool *taken, found;
	int *gpu;
	*out = (struct indexed_job){ .index = item->index };
	if (!item->index || job->n_ranks < 2 || !is_stated(item->index->index, job))
		return OK;
	TRY(TEMP(ctx, gpu, job->n_ranks));
	TRY(TEMP(ctx, taken, item->index->index->n_gpus));
	found = !by_links_alone(job) && find_gpus(item->index->index, job, gpu, taken);
	if (by_links_alone(job) && !item->index->index->machine)
		found = find_by_number(item->index->index, job, gpu, taken);
	else if (!found && job->card && item->index->index->machine)
		TRY(probe_match(ctx, item->index->index->machine, job->card, job->server, job->n_ranks, gpu, &found));
	if (found)
		TRY(index_find_job(ctx, item->index, gpu, job->n_ranks, (int)coll, root, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- choice ---- */

struct choosing {
	Ctx *ctx;
	const struct library *lib;
	const struct job *job;
	Collective coll;
	int root;
	int64_t bytes;
	struct indexed_job *found;	/* of each item of the library */
	Choice *out;
};

/* The choice may be another one inside from .. to than outside: it holds on the side of this message. */
static void
clip(struct choosing *c, int64_t from, int64_t to)
{
	Choice *out = c->out;
	int64_t low = c->bytes < from ? 0 : c->bytes <= to ? from : to + 1;
	int64_t high = c->bytes < from ? from - 1 : c->bytes <= to ? to : INT64_MAX;
	out->from = low > out->from ? low : out->from;
	out->to = high < out->to ? high : out->to;
}

static Status
find_jobs(struct choosing *c)
{
	TRY(TEMP(c->ctx, c->found, c->lib->n_items));
	for (int i = 0; i < c->lib->n_items; i++) {
		struct indexed_job *found = &c->found[i];
		TRY(find_indexed(c->ctx, &c->lib->item[i], c->job, c->coll, c->root, found));
		for (int e = 0; e < found->n_entries; e++)
			if (found->entry[e].sized)
				clip(c, found->entry[e].from, found->entry[e].to);
	}
	return OK;
}

/* Has the item a schedule for this message, with a range of sizes or without? */
static bool
serves(const struct choosing *c, int i, bool sized)
{
	const struct item *item = &c->lib->item[i];
	if (!item->index)
		return !sized && item->coll == c->coll && item->n_ranks == c->job->n_ranks && item->root == c->root;
	const IndexEntry *entry = index_of_size(c->found[i].entry, c->found[i].n_entries, c->bytes);
	return entry && entry->sized == sized;
}

/* The number of the first item that serves; n_items: none. */
static int
first_that_serves(const struct choosing *c, bool sized)
{
	int i = 0;
	while (i < c->lib->n_items && !serves(c, i, sized))
		i++;
	return i;
}

static void
describe(Choice *out, const char *path, double rate)
{
	enum { MOST = 100 };
	char number[48];
	size_t n = strlen(path);
	decimal_text((Wide)(rate * 1e6), 1000000, 4, number);
	snprintf(out->what, sizeof out->what, "%s%s: %.20s, %.24s GB/s", n > MOST ? "..." : "",
	    n > MOST ? path + n - MOST : path, out->sched->algorithm, number);
	make_printable(out->what);
}

static Status
read_indexed(struct choosing *c, const struct indexed_job *job)
{
	Ctx *ctx = c->ctx;
	struct found found = { .index = job->index->index };
	Schedule *sched;
	char *path;
	int *rank;
	TRY(index_choose(ctx, job, c->bytes, &found.entry, &rank));
	found.rank = rank;
	TRY(index_path(ctx, job->index, found.entry, &path));
	TRY(schedule_read(ctx, path, &found, c->out->digest, &sched));
	c->out->sched = sched;
	describe(c->out, path, found.entry->rate);
	return OK;
}

static Status
read_file(struct choosing *c, const struct item *item)
{
	Schedule *sched;
	if (item->part) {
		c->out->sched = item->part->of.sched;
		c->out->prog = item->part->of.prog;
		memcpy(c->out->digest, item->part->of.digest, sizeof c->out->digest);
		describe(c->out, item->path, c->out->sched->stated_achieved);
		return OK;
	}
	TRY(schedule_read(c->ctx, item->path, NULL, c->out->digest, &sched));
	if (sched->coll != item->coll || sched->topo->n_ranks != item->n_ranks || sched->root != item->root)
		return fail(c->ctx, BAD_INPUT, "%s: %s over %d ranks, root %d: want %s over %d, root %d, as it was",
		    item->path, collective_name(sched->coll), sched->topo->n_ranks, sched->root,
		    collective_name(item->coll), item->n_ranks, item->root);
	c->out->sched = sched;
	describe(c->out, item->path, sched->stated_achieved);
	return OK;
}

static Status
take_item(struct choosing *c, int i)
{
	return c->lib->item[i].index ? read_indexed(c, &c->found[i]) : read_file(c, &c->lib->item[i]);
}

/* By what the indexes were searched for what the driver shows of the job's GPUs; NULL: they were not. */
static const char *
searched_by(const struct choosing *c)
{
	bool links = false, numbers = false;
	for (int i = 0; i < c->lib->n_items; i++) {
		const struct blinkIndex *index = c->lib->item[i].index;
		if (!index || !c->job->card || !is_stated(index->index, c->job))
			continue;
		links |= index->index->machine != NULL;
		numbers |= !index->index->machine && by_links_alone(c->job);
	}
	if (links && numbers)
		return "with the NVLinks, or the driver's numbers, of those of this job";
	if (links)
		return "with the NVLinks of those of this job";
	return numbers ? "with the driver's numbers of those of this job" : NULL;
}

/* Why nothing of the library was chosen. */
static void
explain(const struct choosing *c, char *why, size_t size)
{
	const struct job *job = c->job;
	bool none = job->n_stated > 0;
	const char *by = searched_by(c);
	for (int i = 0; i < c->lib->n_items && none; i++)
		none = c->lib->item[i].index && !is_stated(c->lib->item[i].index->index, job);
	if (c->lib->n_items == 0)
		*why = 0;
	else if (!none && by)
		snprintf(why, size, ", as no index has a schedule for GPUs %s", by);
	else if (!none)
		snprintf(why, size, ", as no schedule that was named is for this job");
	else if (job->n_stated == 1)
		snprintf(why, size, ", as no index that was named is of machine %s", job->stated[0].machine);
	else
		snprintf(why, size, ", as no index is of machine %s (rank %d) and of %s (rank %d)",
		    job->stated[0].machine, job->stated[0].rank, job->stated[1].machine, job->stated[1].rank);
	make_printable(why);
}

/* why: for people, in addition. */
static Status
take_built_in(struct choosing *c, bool small, const char *why)
{
	Choice *out = c->out;
	out->built_in = (struct built_in){ .coll = c->coll, .root = c->root, .small = small };
	snprintf(out->what, sizeof out->what, "%s over %d ranks, built in%s", built_in_form(c->job, &out->built_in),
	    c->job->n_ranks, why);
	return built_in_digest(c->ctx, c->job, &out->built_in, out->digest);
}

static Status
choose(struct choosing *c)
{
	const struct library *lib = c->lib;
	bool small = c->bytes <= lib->small, one_server = c->job->n_servers <= 1;
	/* Of these there is one form. */
	bool direct = c->coll == GATHER || c->coll == SCATTER || c->coll == ALLTOALL;
	TRY(find_jobs(c));
	int item = first_that_serves(c, true);
	if (item < lib->n_items)
		return take_item(c, item);
	item = first_that_serves(c, false);
	bool absent = item == lib->n_items;
	char why[MACHINE_BYTES * 2 + 80] = "";
	if (absent)
		explain(c, why, sizeof why);
	if (absent && direct)
		return take_built_in(c, false, why);
	if (!absent && !one_server)
		return take_item(c, item);
	clip(c, 0, lib->small);
	if (small)
		return take_built_in(c, true, absent ? why : ", for small messages");
	return absent ? take_built_in(c, false, why) : take_item(c, item);
}

Status
library_choose(Ctx *ctx, struct library *lib, const struct job *job, Collective coll, int root, int64_t bytes,
    Choice *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	*out = (Choice){ .from = 0, .to = INT64_MAX };
	struct choosing c = { .ctx = ctx, .lib = lib, .job = job, .coll = coll,
		.root = collective_rooted(coll) ? root : -1, .bytes = bytes, .out = out };
	if (collective_rooted(coll) && (root < 0 || root >= job->n_ranks))
		return fail(ctx, USAGE, "root: %d: want a rank, 0 to %d", root, job->n_ranks - 1);
	TRY(choose(&c));
	arena_release(&ctx->scratch, mark);
	return OK;
}
