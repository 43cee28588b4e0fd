/* The choice among the schedules of a library and the built-in ones. */
#include "choose/library_inside.h"
#include "base/printable.h"
#include "choose/read.h"

#include <stdio.h>
#include <string.h>

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
		TRY(library_find(c->ctx, &c->lib->item[i], c->job, c->coll, c->root, found));
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

/* "broadcast, root 0,": without a root "allreduce". */
static void
name_call(Collective coll, int root, char *out, size_t size)
{
	if (root >= 0)
		snprintf(out, size, "%s, root %d,", collective_name(coll), root);
	else
		snprintf(out, size, "%s", collective_name(coll));
}

/* Of a file that was named, the job that it is for; returns how near that is to this one. */
static int
say_of_file(const struct choosing *c, const struct item *item, char *out, size_t size)
{
	char call[60];
	name_call(item->coll, item->root, call, sizeof call);
	snprintf(out, size, "is for %s over %d ranks", call, item->n_ranks);
	return 4 * (item->coll == c->coll) + 2 * (item->n_ranks == c->job->n_ranks) + (item->root == c->root);
}

/* Likewise of an index. */
static int
say_of_index(const struct choosing *c, int i, char *out, size_t size)
{
	const struct indexed_job *found = &c->found[i];
	const Index *index = c->lib->item[i].index->index;
	char call[60];
	name_call(c->coll, c->root, call, sizeof call);
	if (!library_is_stated(index, c->job))
		snprintf(out, size, "is of machine %.60s", index->name);
	else if (*found->lacks)
		snprintf(out, size, "has %s", found->lacks);
	else if (c->job->n_ranks < 2)
		snprintf(out, size, "has none for one rank");
	else if (found->n_entries == 0)
		snprintf(out, size, "has no %s over these %d GPUs", call, c->job->n_ranks);
	else
		snprintf(out, size, "has it for other sizes, as %lld to %lld bytes", (long long)found->entry[0].from,
		    (long long)found->entry[0].to);
	return found->n_entries > 0 ? 8 : *found->lacks ? 1 : library_is_stated(index, c->job) ? 3 : 0;
}

/* What is said of the item that is nearest to this job, the first of equals. */
static void
explain_nearest(const struct choosing *c, char *why, size_t size)
{
	enum { MOST = 60 };
	int nearest = -1, n = c->lib->n_items;
	char others[60] = "";
	if (n > 1)
		snprintf(others, sizeof others, "none of the %d that were named is for it: ", n);
	for (int i = 0; i < n; i++) {
		const struct item *item = &c->lib->item[i];
		size_t length = strlen(item->path);
		char said[160];
		int near = item->index ? say_of_index(c, i, said, sizeof said)
		    : say_of_file(c, item, said, sizeof said);
		if (near <= nearest)
			continue;
		nearest = near;
		snprintf(why, size, ", as %s%s%s %s", others, length > MOST ? "..." : "",
		    length > MOST ? item->path + length - MOST : item->path, said);
	}
}

/* Why nothing of the library was chosen. */
static void
explain(const struct choosing *c, char *why, size_t size)
{
	const struct job *job = c->job;
	bool none = job->n_stated > 0;
	for (int i = 0; i < c->lib->n_items && none; i++)
		none = c->lib->item[i].index && !library_is_stated(c->lib->item[i].index->index, job);
	if (c->lib->n_items == 0)
		*why = 0;
	else if (!none)
		explain_nearest(c, why, size);
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
	out->unserved = strncmp(why, ", as ", 5) == 0;
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
	char why[MACHINE_BYTES * 2 + 160] = "";
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
