#include "base/file.h"
#include "base/pool.h"
#include "format/format.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <string.h>

static Status
parse_roots(Ctx *ctx, const char *text, RootsKind *out)
{
	static const char *const names[] = {
#define X(name, word, what) word,
		ROOTS_LIST(X)
#undef X
	};
	const Names roots = { sizeof names / sizeof *names, names };
	int kind = ROOTS_ALL;
	if (text && !names_find(roots, text, &kind))
		return fail(ctx, USAGE, "--roots: %.40s: want %s%s", text, names_wanted(roots).text,
		    names_hint(roots, text).text);
	*out = (RootsKind)kind;
	return OK;
}

/* What does not depend on the machine. All collectives must be ones for which the options can be met. */
static Status
parse_batch(Ctx *ctx, const Options *opt, Batch *b)
{
	*b = (Batch){ .directory = opt->value[OPT_OUTPUT], .distinct = opt->value[OPT_DISTINCT] };
	TRY(request_collectives(ctx, opt->value[OPT_COLLECTIVES], &b->colls));
	for (int c = 0; c < N_COLLECTIVES; c++) {
		if (b->colls >> c & 1)
			TRY(request_parse(ctx, opt, (Collective)c, &b->ask));
	}
	TRY(parse_roots(ctx, opt->value[OPT_ROOTS], &b->roots));
	TRY(request_shard(ctx, opt->value[OPT_SHARD], &b->shard, &b->n_shards));
	TRY(request_jobs(ctx, opt, &b->n_workers));
	if (!b->directory || !*b->directory || strcmp(b->directory, "-") == 0)
		return fail(ctx, USAGE, "-o: want the directory for schedules and their index");
	size_t length = strlen(b->directory);
	while (length > 1 && b->directory[length - 1] == '/')
		length--;
	b->directory = arena_text(&ctx->run, b->directory, length);
	return b->directory ? OK : fail_memory(ctx);
}

/* Every set of the machine's GPUs, or those of a file. */
static Status
find_jobs(Ctx *ctx, const Options *opt, Batch *b)
{
	const char *path = opt->value[OPT_GPUS], *sizes_text = opt->value[OPT_SIZES];
	const int n = b->machine->n_ranks;
	bool *sizes;
	TRY(NEW(ctx, sizes, n + 1));
	if (n < 2)
		return fail(ctx, BAD_INPUT, "%s: 1 GPU: want at least 2 for a collective", b->machine->name);
	TRY(request_set_sizes(ctx, sizes_text, n, sizes));
	if (!path && b->distinct)
		return sets_distinct(ctx, b->machine, sizes, b->n_workers, &b->job, &b->n_jobs);
	if (!path)
		return sets_all(ctx, n, sizes, &b->job, &b->n_jobs);
	Text text = { 0 };
	Status status = file_read(ctx, path, &text);
	if (status == OK)
		status = sets_read(ctx, path, &text, b->machine, sizes, &b->job, &b->n_jobs);
	text_free(&text);
	if (status == OK && b->n_jobs == 0)
		status = fail(ctx, BAD_INPUT, "%s: no list of GPUs%s: want a line for each job, as 0,1,4", path,
		    sizes_text ? " of these sizes" : "");
	return status;
}

/* Who repeats a batch that is done need not be able to write. */
static bool
holds(const char *path, const Text *text)
{
	Ctx own;
	Text in = { 0 };
	ctx_init(&own);
	bool same = file_read_regular(&own, path, &in) == OK && in.size == text->size
	    && memcmp(in.data, text->data, in.size) == 0;
	text_free(&in);
	ctx_free(&own);
	return same;
}

static Status
write_index(Ctx *ctx, const Batch *b, Index **index, int64_t *bytes)
{
	char path[FILE_PATH_ROOM];
	Text text = { 0 };
	TRY(batch_index(ctx, b, index));
	snprintf(path, sizeof path, "%s/index.json", b->directory);
	index_write(*index, &text);
	*bytes = (int64_t)text.size;
	Status status = holds(path, &text) ? OK : file_write(ctx, path, &text);
	text_free(&text);
	return status;
}

static Status
run_batch(Ctx *ctx, const Options *opt, Batch *b)
{
	Index *index = NULL;
	int64_t bytes = 0;
	TRY(sets_of_jobs(ctx, b->job, b->n_jobs, &b->set, &b->n_sets, &b->set_of));
	TRY(classes_find(ctx, b));
	TRY(plans_list(ctx, b));
	Status status = plans_run(ctx, b);
	if (status == OK && b->n_shards == 1)
		status = write_index(ctx, b, &index, &bytes);
	progress_hide();
	if (!opt->value[OPT_QUIET])
		batch_print(stderr, b, opt->value[OPT_VERBOSE], index, bytes);
	return status;
}

Status
verb_batch(Ctx *ctx, const Options *opt)
{
	Batch b;
	const char *label;
	Text in = { 0 };
	Topology *machine = NULL;
	TRY(parse_batch(ctx, opt, &b));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = read_topology(ctx, opt, label, &in, &machine);
	text_free(&in);
	TRY(status);
	b.machine = machine;
	TRY(find_jobs(ctx, opt, &b));
	status = run_batch(ctx, opt, &b);
	classes_free(b.classes);
	shared_free(b.result);
	return status;
}
