#include "base/pool.h"
#include "format/format.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"
#include "verb/verb.h"

#include <string.h>
#include <sys/stat.h>

static Status
parse_roots(Ctx *ctx, const char *text, RootsKind *out)
{
	static const char *const names[] = { ROOTS_LIST(ROW_TEXT) };
	const Names roots = { sizeof names / sizeof *names, names };
	int kind = ROOTS_ALL;
	if (text && !names_find(roots, text, &kind))
		return fail(ctx, USAGE, "--roots: %.40s: want %s%s", text, names_wanted(roots).text,
		    names_hint(roots, text).text);
	*out = (RootsKind)kind;
	return OK;
}

static Status
parse_directory(Ctx *ctx, const Options *opt, Batch *b)
{
	b->directory = opt->value[OPT_OUTPUT];
	if (!b->directory || !*b->directory || strcmp(b->directory, "-") == 0)
		return fail(ctx, USAGE, "-o: want the directory for schedules and their index");
	size_t length = strlen(b->directory);
	while (length > 1 && b->directory[length - 1] == '/')
		length--;
	b->directory = arena_text(&ctx->run, b->directory, length);
	return b->directory ? OK : fail_memory(ctx);
}

static Status
parse_failures(Ctx *ctx, const Options *opt, Batch *b)
{
	const char *text = opt->value[OPT_FAILURES];
	b->failures = text;
	if (text && strcmp(text, "1") != 0)
		return fail(ctx, USAGE, "--failures: %.40s: want 1", text);
	if (text && b->distinct)
		return fail(ctx, USAGE, "--failures: want no --distinct with it");
	if (text && opt->value[OPT_WITHOUT])
		return fail(ctx, USAGE, "--failures: want no --without with it");
	return OK;
}

/* All collectives must be ones for which the options can be met. */
static Status
batch_parse(Ctx *ctx, const Options *opt, bool directory, Batch *b)
{
	Collective one;
	*b = (Batch){ .distinct = opt->value[OPT_DISTINCT], .n_shards = 1 };
	TRY(request_collective(ctx, opt, &one));
	b->colls = 1u << one;
	if (opt->value[OPT_COLLECTIVES])
		TRY(request_collectives(ctx, opt->value[OPT_COLLECTIVES], &b->colls));
	for (int c = 0; c < N_COLLECTIVES; c++) {
		if (b->colls >> c & 1)
			TRY(request_parse(ctx, opt, (Collective)c, &b->ask));
	}
	TRY(parse_roots(ctx, opt->value[OPT_ROOTS], &b->roots));
	TRY(request_shard(ctx, opt->value[OPT_SHARD], &b->shard, &b->n_shards));
	TRY(request_jobs(ctx, opt, &b->n_workers));
	TRY(parse_failures(ctx, opt, b));
	return directory ? parse_directory(ctx, opt, b) : OK;
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
	for (int k = 2; k < n && b->tuning && !sizes_text && !path; k++)
		sizes[k] = false;
	if (!path && b->distinct)
		return sets_distinct(ctx, b->machine, sizes, b->n_workers, &b->job, &b->n_jobs);
	if (!path)
		return sets_all(ctx, n, sizes, &b->job, &b->n_jobs);
	Text text = { 0 };
	if (path[strspn(path, "0123456789,-")] == '\0' && strcmp(path, "-") != 0 && !file_is_there(path))
		return fail(ctx, IO, "--gpus: %.60s: no such file: want one with a list of GPUs in each line; "
		    "-n N takes all sets of N", path);
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

/* Is the first file at least as young as the second? */
static bool
is_as_young(const char *path, const char *than)
{
	struct stat a, b;
	if (stat(path, &a) != 0 || stat(than, &b) != 0)
		return false;
	return a.st_mtim.tv_sec != b.st_mtim.tv_sec ? a.st_mtim.tv_sec > b.st_mtim.tv_sec
	    : a.st_mtim.tv_nsec >= b.st_mtim.tv_nsec;
}

/* Small indexes are read in a few ms without it; what is there is renewed. */
static Status
write_lookup(Ctx *ctx, const Index *index, const char *path, const Text *json)
{
	enum { LEAST = 1 << 20 };
	Text text = { 0 };
	const char *beside;
	TRY(lookup_path(ctx, path, &beside));
	if (json->size < LEAST && !file_is_there(beside))
		return OK;
	Status status = lookup_write(ctx, index, json->data, json->size, &text);
	if (status == OK && !(holds(beside, &text) && is_as_young(beside, path)))
		status = file_write(ctx, beside, &text);
	text_free(&text);
	return status;
}

static Status
write_one(Ctx *ctx, const Batch *b, const char *without, const Index *index, int64_t *bytes)
{
	char path[FILE_PATH_ROOM];
	Text text = { 0 }, name = { 0 };
	batch_index_name(without, &name);
	if (name.failed)
		return fail_memory(ctx);
	Status status = batch_path(ctx, b, name.data, path);
	text_free(&name);
	TRY(status);
	index_write(index, &text);
	*bytes += (int64_t)text.size;
	status = holds(path, &text) ? OK : file_write(ctx, path, &text);
	if (status == OK)
		status = write_lookup(ctx, index, path, &text);
	text_free(&text);
	return status;
}

/* An index for each machine that is left; where a loss changes no entry, it is that of the whole one. */
static Status
write_changes(Ctx *ctx, Batch *b, Index *whole)
{
	TRY(NEW(ctx, whole->change, b->n_machines));
	for (int m = 1; m < b->n_machines; m++) {
		ArenaMark mark = arena_mark(&ctx->run);
		Index *index;
		Text name = { 0 };
		TRY(batch_index(ctx, b, m, &index));
		bool same = index_same_entries(whole, index);
		if (!same)
			TRY(write_one(ctx, b, b->of[m].without, index, &b->index_bytes));
		arena_release(&ctx->run, mark);
		batch_index_name(same ? NULL : b->of[m].without, &name);
		IndexChange change = { b->of[m].without, b->of[m].topo->digest, text_keep(&ctx->run, &name) };
		if (!change.file)
			return fail_memory(ctx);
		whole->change[whole->n_changes++] = change;
	}
	return OK;
}

/* The index of the whole machine comes last: what it names is there. */
static Status
write_index(Ctx *ctx, Batch *b, Index **index)
{
	TRY(batch_index(ctx, b, 0, index));
	if (b->n_machines > 1)
		TRY(write_changes(ctx, b, *index));
	return write_one(ctx, b, NULL, *index, &b->index_bytes);
}

/* Classes and plans of all sets on all machines, planned. Fails: as plans_run does. */
static Status
batch_plan(Ctx *ctx, Batch *b)
{
	TRY(classes_find(ctx, b));
	TRY(plans_list(ctx, b));
	return plans_run(ctx, b);
}

void
batch_free(Batch *b)
{
	classes_free(b->classes);
	shared_free(b->result);
	shared_free(b->range);
}

/* --without: GPUs keep the numbers of the whole machine. */
static Status
take_losses(Ctx *ctx, const Options *opt, Batch *b)
{
	Loss *loss;
	int n;
	Topology *left;
	if (b->distinct)
		return fail(ctx, USAGE, "--without: want no --distinct with it");
	TRY(request_blame(ctx, topo_losses(ctx, b->machine, opt->value[OPT_WITHOUT], &loss, &n)));
	TRY(topo_losses_name(ctx, b->machine, loss, n, &b->base.without));
	TRY(topo_without(ctx, b->machine, loss, n, &left, &b->base.gpu));
	b->base.topo = left;
	if (left->n_ranks < 2)
		return fail(ctx, BAD_INPUT, "%.200s: %d GPUs left: want at least 2 for a collective", left->name,
		    left->n_ranks);
	return OK;
}

/* Of all sets, those of GPUs that are left. */
static void
drop_lost(Batch *b)
{
	int n = 0;
	for (int j = 0; j < b->n_jobs; j++)
		if (!machine_lost(&b->base, &b->job[j]))
			b->job[n++] = b->job[j];
	b->n_jobs = n;
}

/* Whole numbers of JSON are exact up to 2^53. */
static bool
exact_in_files(const Topology *machine)
{
	for (int l = 0; l < machine->n_links; l++)
		if (machine->link[l].capacity > INT64_C(1) << 53)
			return false;
	return true;
}

static Status
take_relays(Ctx *ctx, const Options *opt, Batch *b)
{
	if (!opt->value[OPT_RELAY])
		return OK;
	return request_relays(ctx, b->machine, opt->value[OPT_RELAY], NULL, 0, &b->ask.relays);
}

/* The machine and its jobs: by --gpus, a file, and --sizes. lost: it has lost what --without names. */
static Status
batch_read(Ctx *ctx, const Options *opt, bool lost, Batch *b)
{
	const char *label;
	Topology *machine;
	TRY(read_machine(ctx, opt, &label, &machine));
	b->machine = machine;
	b->base.topo = machine;
	if (lost && opt->value[OPT_WITHOUT])
		TRY(take_losses(ctx, opt, b));
	TRY(take_relays(ctx, opt, b));
	b->base.routes = b->tuning ? b->ask.routes : choose_routes(ctx, opt, b->base.topo, &b->ask);
	TRY(find_jobs(ctx, opt, b));
	if (!opt->value[OPT_GPUS])
		drop_lost(b);
	b->by_form = (b->distinct || b->roots != ROOTS_ALL || opt->value[OPT_GPUS]) && !b->ask.hybrid && !b->ask.relays
	    && exact_in_files(machine);
	if (b->n_jobs == 0)
		return fail(ctx, BAD_INPUT, "%.200s: %d GPUs left: want fewer --sizes", b->base.topo->name,
		    b->base.topo->n_ranks);
	return sets_of_jobs(ctx, b->job, b->n_jobs, &b->set, &b->n_sets, &b->set_of);
}

static Status
run_batch(Ctx *ctx, const Options *opt, Batch *b)
{
	Index *index = NULL;
	Loss *loss = NULL;
	int n = 0;
	if (b->failures)
		TRY(topo_single_losses(ctx, b->machine, &loss, &n));
	TRY(batch_machines(ctx, b, loss, n, false));
	Status status = batch_plan(ctx, b);
	if (status == OK && b->tuning && b->tuning->plans)
		status = tune_mscclpp_register(ctx, b);
	else if (status == OK && b->n_shards == 1)
		status = write_index(ctx, b, &index);
	progress_hide();
	if (!opt->value[OPT_QUIET])
		batch_print(stderr, b, opt->value[OPT_VERBOSE], index);
	if (status == OK && !opt->value[OPT_QUIET] && b->tuning)
		tune_print(stderr, b, opt->value[OPT_VERBOSE]);
	return status;
}

Status
batch_jobs(Ctx *ctx, const Options *opt, Tuning *tuning, bool directory, Batch *b)
{
	TRY(batch_parse(ctx, opt, directory, b));
	b->tuning = tuning;
	if (tuning && !opt->value[OPT_COLLECTIVES])
		b->colls = (1u << N_COLLECTIVES) - 1;
	if (tuning && tuning->plans && !opt->value[OPT_COLLECTIVES])
		b->colls = 1u << ALLREDUCE | 1u << ALLGATHER | 1u << REDUCESCATTER
		    | (tuning->in_place ? 0 : 1u << ALLTOALL);
	TRY(batch_read(ctx, opt, true, b));
	if (tuning && tuning->plans)
		TRY(tune_mscclpp_check(ctx, opt, b));
	if (tuning)
		tuning_for(b->machine, tuning);
	return OK;
}

Status
batch_run(Ctx *ctx, const Options *opt, Tuning *tuning)
{
	Batch b;
	TRY(batch_jobs(ctx, opt, tuning, true, &b));
	Status status = run_batch(ctx, opt, &b);
	batch_free(&b);
	return status;
}

Status
verb_batch(Ctx *ctx, const Options *opt)
{
	return batch_run(ctx, opt, NULL);
}

Status
batch_rates(Ctx *ctx, const Options *opt, bool lost, Status (*machines)(Ctx *, const Options *, Batch *), Batch *b)
{
	TRY(batch_parse(ctx, opt, false, b));
	b->ask.minimise = false;
	TRY(batch_read(ctx, opt, lost, b));
	Status status = machines ? machines(ctx, opt, b) : batch_machines(ctx, b, NULL, 0, false);
	if (status == OK)
		status = batch_plan(ctx, b);
	if (status != OK)
		batch_free(b);
	return status;
}

Collective
batch_collective(const Batch *b)
{
	return (Collective)__builtin_ctz(b->colls);
}

void
batch_put_machine(const Batch *b, const Topology *named, JsonWriter *w)
{
	json_object(w, "topology", JSON_BLOCK);
	json_string(w, "name", named->name);
	json_string(w, "digest", named->digest);
	json_array(w, "gpus", JSON_LINE);
	for (int g = 0; g < b->machine->n_ranks; g++)
		json_string(w, NULL, b->machine->vertex[g].id);
	json_end(w);
	json_end(w);
}
