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

/* By what the indexes were searched for what the driver shows of the job's GPUs; NULL: they were not. */
static const char *
searched_by(const struct choosing *c)
{
	bool links = false, numbers = false;
	for (int i = 0; i < c->lib->n_items; i++) {
		const struct blinkIndex *index = c->lib->item[i].index;
		if (!index || !c->job->card || !library_is_stated(index->index, c->job))
			continue;
		links |= index->index->machine != NULL;
		numbers |= !index->index->machine && library_by_links(c->job);
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
		none = c->lib->item[i].index && !library_is_stated(c->lib->item[i].index->index, job);
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
	out->unserved = strncmp(why, ", as no ", 8) == 0;
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
