/* Schedule files: as they are, or of an index and in the ranks of its job. */
#include "choose/read.h"
#include "base/file_read.h"
#include "schedule/schedule.h"

#include <errno.h>
#include <string.h>

/* The schedule of another job than its index states would give wrong results, or be slow. */
static Status
check_found(Ctx *ctx, const char *name, const Schedule *sched, const struct found *found)
{
	const IndexEntry *entry = found->entry;
	int root = entry->root < 0 ? -1 : entry->rank[entry->root];
	if (!index_same_job(entry, sched))
		return fail(ctx, BAD_INPUT,
		    "%s: %s over %d ranks, root %d: want %s over %d, root %d, as in its index", name,
		    collective_name(sched->coll), sched->topo->n_ranks, sched->root, collective_name(entry->coll),
		    entry->n, root);
	if (!index_has_digest(found->index, sched->topo->digest))
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: want that of its index, %.80s", name,
		    sched->topo->digest, found->index->digest);
	return OK;
}

Status
schedule_parse(Ctx *ctx, const char *name, const char *json, size_t size, const struct found *found, Schedule **out)
{
	TRY(sched_read_verified(ctx, name, json, size, out));
	if (!found)
		return OK;
	TRY(check_found(ctx, name, *out, found));
	return sched_relabel(ctx, *out, found->rank, out);
}

Status
file_rest(Ctx *ctx, const char *path, int fd, Text *out)
{
	switch (file_read_rest(fd, out)) {
	case OK:
		return OK;
	case NO_MEMORY:
		return fail_memory(ctx);
	case LIMIT:
		return fail(ctx, LIMIT, "%s: larger than %d bytes", path, (int)LIMIT_FILE_BYTES);
	default:
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	}
}

Status
schedule_read(Ctx *ctx, const char *path, const struct found *found, char digest[DIGEST_ROOM], Schedule **out)
{
	Text text = { 0 };
	TRY(file_read_regular(ctx, path, &text));
	const char *json = text.data ? text.data : "";
	Status status = schedule_parse(ctx, path, json, text.size, found, out);
	if (status == OK)
		digest_of(json, text.size, digest);
	text_free(&text);
	return status;
}
