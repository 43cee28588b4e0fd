/* Files of a batch, below its directory. */
#include "verb/batch/batch.h"

#include <string.h>

Status
batch_path(Ctx *ctx, const Batch *b, const char *file, char path[FILE_PATH_ROOM])
{
	if (snprintf(path, FILE_PATH_ROOM, "%s/%s", b->directory, file) >= FILE_PATH_ROOM)
		return fail(ctx, LIMIT, "%s: a path longer than %d bytes", b->directory, FILE_PATH_ROOM - 1);
	return OK;
}

/* "allreduce/0-7.json" and "trees, depth 5": "allreduce/0-7.trees-depth-5.json". */
Status
tuned_file(Ctx *ctx, const BatchPlan *plan, const TunedRange *range, const char **out)
{
	Text name = { 0 };
	text_add(&name, plan->file, strlen(plan->file) - sizeof "json" + 1);
	for (const char *c = range->way; *c; c++)
		if (*c != ',')
			text_add(&name, *c == ' ' ? "-" : c, 1);
	text_put(&name, ".json");
	*out = text_keep(&ctx->run, &name);
	return *out ? OK : fail_memory(ctx);
}
