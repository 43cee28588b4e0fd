/* Indexes as callers have them: opened, searched, and without what a machine has lost. */
#include "api/schedule.h"
#include "choose/index.h"
#include "support/give.h"

#include <stdlib.h>
#include <string.h>

/* A path that a caller was given, and may use as long as the index. */
struct kept_file {
	struct kept_file *smaller, *larger;
	const char *path;
};

static void
free_index(struct blinkIndex *index)
{
	index_unload(index);
	free(index);
}

/* To the caller, or freed if it could not be loaded. */
static blinkResult_t
give_index(struct blinkIndex *index, Status status, blinkIndex_t *out, blinkError_t *error)
{
	arena_free(&index->ctx.scratch);
	if (status != OK) {
		give_error(error, status, index->ctx.error.text);
		free_index(index);
		return (blinkResult_t)status;
	}
	*out = index;
	return blinkSuccess;
}

blinkResult_t
blinkIndexLoad(const char *path, blinkIndex_t *out, blinkError_t *error)
{
	if (!path || !out)
		return give_error(error, USAGE, "an argument is NULL");
	struct blinkIndex *index = calloc(1, sizeof *index);
	if (!index)
		return give_error(error, NO_MEMORY, "out of memory");
	ctx_init(&index->ctx);
	return give_index(index, index_load(index, path), out, error);
}

/* The index beside this one, for what is left of the machine. */
static Status
load_change(const struct blinkIndex *index, const char *lost, struct blinkIndex *out)
{
	Ctx *ctx = &out->ctx;
	char *path;
	const IndexChange *change = index_change(index->index, lost);
	if (!change && strcmp(lost, index->index->digest) != 0)
		return fail(ctx, INFEASIBLE, "%s: no schedules without %.200s: want what the index has as changes",
		    index->info.directory, lost);
	const char *file = change ? change->file : index->file;
	size_t n = strlen(index->info.directory) + strlen(file) + sizeof "/";
	TRY(NEW(ctx, path, n));
	snprintf(path, n, "%s/%s", index->info.directory, file);
	TRY(index_load(out, path));
	if (!change)
		return OK;
	if (strcmp(out->index->digest, change->digest) != 0 && strcmp(change->file, index->file) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: want that of its change, %.80s", path,
		    out->index->digest, change->digest);
	out->info.digest = arena_text(&ctx->run, change->digest, strlen(change->digest));
	return out->info.digest ? OK : fail_memory(ctx);
}

blinkResult_t
blinkIndexWithout(blinkIndex_t index, const char *lost, blinkIndex_t *out, blinkError_t *error)
{
	if (!index || !lost || !out)
		return give_error(error, USAGE, "an argument is NULL");
	struct blinkIndex *left = calloc(1, sizeof *left);
	if (!left)
		return give_error(error, NO_MEMORY, "out of memory");
	ctx_init(&left->ctx);
	return give_index(left, load_change(index, lost, left), out, error);
}

blinkResult_t
blinkIndexGetInfo(blinkIndex_t index, blinkIndexInfo_t *info)
{
	if (!index || !info)
		return blinkInvalidArgument;
	*info = index->info;
	return blinkSuccess;
}

blinkResult_t
blinkIndexDestroy(blinkIndex_t index)
{
	if (index)
		free_index(index);
	return blinkSuccess;
}

/* "broadcast over GPUs 3,0,5 from rank 1", cut where it is too long for a message. */
static Status
fail_absent(Ctx *ctx, const struct blinkIndex *index, const int *gpus, const IndexEntry *want, int root)
{
	enum { MOST = 32 };		/* GPUs in the message */
	char list[MOST * 8 + 8] = "", from[32] = "";
	int at = 0;
	for (int i = 0; i < want->n && i < MOST; i++)
		at += snprintf(list + at, sizeof list - (size_t)at, "%s%d", i ? "," : "", gpus[i]);
	if (want->n > MOST)
		strcpy(list + at, ",...");
	if (root >= 0)
		snprintf(from, sizeof from, " from rank %d", root);
	return fail(ctx, INFEASIBLE, "%s: no schedule for %s over GPUs %s%s", index->info.directory,
	    collective_name(want->coll), list, from);
}

/* The entry for messages of any size. rank: run arena. */
static Status
find(Ctx *ctx, const struct blinkIndex *index, const int *gpus, int n, int collective, int root, const IndexEntry **out,
    int **rank)
{
	struct indexed_job job;
	TRY(index_find_job(ctx, index, gpus, n, collective, root, &job));
	IndexEntry asked = { .n = n, .coll = (Collective)collective };
	if (!job.entry)
		return fail_absent(ctx, index, gpus, &asked, collective_rooted(asked.coll) ? root : -1);
	return index_choose(ctx, &job, -1, out, rank);
}

/* The path of an entry, for as long as the index is there. Paths are kept in a tree. */
static Status
keep_file(struct blinkIndex *index, const char *path, const char **out)
{
	struct kept_file **at = &index->kept, *kept;
	int order;
	while (*at && (order = strcmp(path, (*at)->path)) != 0)
		at = order < 0 ? &(*at)->smaller : &(*at)->larger;
	if (!*at) {
		TRY(NEW(&index->ctx, kept, 1));
		kept->path = arena_text(&index->ctx.run, path, strlen(path));
		if (!kept->path)
			return fail_memory(&index->ctx);
		*at = kept;
	}
	*out = (*at)->path;
	return OK;
}

static Status
give_entry(Ctx *ctx, struct blinkIndex *index, const IndexEntry *entry, blinkIndexEntry_t *out)
{
	const char *file = entry->file;
	if (index->lookup) {
		pthread_mutex_lock(&index->lock);
		Status status = keep_file(index, entry->file, &file);
		pthread_mutex_unlock(&index->lock);
		if (status != OK)
			return fail_memory(ctx);
	}
	*out = (blinkIndexEntry_t){ file, entry->rate, entry->bound, entry->trees, entry->depth };
	return OK;
}

blinkResult_t
blinkIndexGetEntry(blinkIndex_t index, const int *gpus, int nGpus, blinkCollective_t collective, int root,
    blinkIndexEntry_t *out, int *ranks, blinkError_t *error)
{
	const IndexEntry *entry;
	int *rank;
	Ctx ctx;
	if (!index || !gpus || !out)
		return give_error(error, USAGE, "an argument is NULL");
	ctx_init(&ctx);
	Status status = find(&ctx, index, gpus, nGpus, (int)collective, root, &entry, &rank);
	if (status == OK)
		status = give_entry(&ctx, index, entry, out);
	if (status != OK)
		give_error(error, status, ctx.error.text);
	if (status == OK && ranks)
		memcpy(ranks, rank, (size_t)nGpus * sizeof *ranks);
	ctx_free(&ctx);
	return (blinkResult_t)status;
}

blinkResult_t
blinkIndexFind(blinkIndex_t index, const int *gpus, int nGpus, blinkCollective_t collective, int root,
    blinkSchedule_t *sched, blinkError_t *error)
{
	struct found found = { 0 };
	int *rank;
	char *path;
	Ctx ctx;
	if (!index || !gpus || !sched)
		return give_error(error, USAGE, "an argument is NULL");
	ctx_init(&ctx);
	Status status = find(&ctx, index, gpus, nGpus, (int)collective, root, &found.entry, &rank);
	if (status == OK)
		status = index_path(&ctx, index, found.entry, &path);
	if (status != OK) {
		give_error(error, status, ctx.error.text);
	} else {
		found.index = index->index;
		found.rank = rank;
		status = (Status)schedule_load(path, &found, sched, error);
	}
	ctx_free(&ctx);
	return (blinkResult_t)status;
}
