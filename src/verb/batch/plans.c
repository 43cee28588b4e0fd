/* The plans of a batch, a schedule for each class of sets, and their execution by many processes. A schedule depends on
 * its set alone, so batches may be split, resumed and run in parallel. */
#include "base/digest.h"
#include "base/pool.h"
#include "compile.h"
#include "graph/isomorphism.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"

#include <string.h>

/* Of each class one variant, with a root if the collective has one. */
static bool
is_planned(const Batch *b, Collective coll, int v)
{
	const SetClasses *classes = b->classes;
	return b->colls >> coll & 1 && classes->number[v] >= 0
	    && (variant_root(classes, v) >= 0) == collective_rooted(coll);
}

/* ".without-gpu3-gpu5=1": ids have neither "=" nor "~", which stand for ":" and "/". A long name is a digest. */
static void
without_name(const char *without, Text *out)
{
	enum { LONGEST = 80, DIGITS = 16 };
	char digest[DIGEST_ROOM];
	size_t n = strlen(without);
	text_put(out, ".without-");
	if (n > LONGEST) {
		digest_of(without, n, digest);
		text_add(out, digest + sizeof "sha256:" - 1, DIGITS);
	}
	for (size_t i = 0; i < n && n <= LONGEST; i++)
		text_add(out, without[i] == ':' ? "=" : without[i] == '/' ? "~" : without + i, 1);
}

void
batch_index_name(const char *without, Text *out)
{
	text_put(out, "index");
	if (without)
		without_name(without, out);
	text_put(out, ".json");
}

static Status
new_plan(Ctx *ctx, Batch *b, Collective coll, int v)
{
	int s = b->classes->set_of[v], root = variant_root(b->classes, v);
	Text name = { 0 };
	text_printf(&name, "%s/", collective_name(coll));
	set_name(batch_set(b, s), &name);
	if (root >= 0)
		text_printf(&name, ".r%d", root);
	if (batch_machine(b, s)->without)
		without_name(batch_machine(b, s)->without, &name);
	text_put(&name, ".json");
	const char *file = text_keep(&ctx->run, &name);
	b->plan[b->n_plans++] = (BatchPlan){ coll, s, root, file };
	return file ? OK : fail_memory(ctx);
}

Status
plans_list(Ctx *ctx, Batch *b)
{
	const SetClasses *classes = b->classes;
	int most = 0;
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int v = 0; v < (int)classes->n_variants; v++)
			most += is_planned(b, (Collective)c, v);
	TRY(NEW(ctx, b->plan, most));
	b->result = shared_array((size_t)most, sizeof *b->result);
	if (b->tuning)
		b->range = shared_array((size_t)most * TUNED_RANGES, sizeof *b->range);
	if (!b->result || (b->tuning && !b->range))
		return fail_memory(ctx);
	for (int c = 0; c < N_COLLECTIVES; c++) {
		b->first_plan[c] = b->n_plans;
		for (int v = 0; v < (int)classes->n_variants; v++)
			if (is_planned(b, (Collective)c, v))
				TRY(new_plan(ctx, b, (Collective)c, v));
	}
	return OK;
}

/* ---- execution ---- */

/* What workers share: plans in the order in which they are taken, large sets first, so that no long one is left for
 * the end. */
struct run {
	Batch *b;
	int n, *order;
	atomic_bool *stop;	/* in shared memory: nothing can be written any more */
};

/* path: NULL: not written. */
static Status
plan_anew(Ctx *ctx, const Job *job, const char *path, BatchResult *result)
{
	Compiled made = { 0 };
	Status status = job_compile(ctx, job, &made);
	if (status == OK)
		status = result_take(ctx, made.sched, result);
	if (status == OK && path)
		status = file_write_soon(ctx, path, &made.json);
	text_free(&made.json);
	return status;
}

static Status
run_plan(Ctx *ctx, void *of, int task)
{
	struct run *run = of;
	Batch *b = run->b;
	const BatchPlan *plan = &b->plan[run->order[task]];
	BatchResult *result = &b->result[run->order[task]];
	char path[FILE_PATH_ROOM];
	Ask ask = b->ask;
	Job job;
	if (atomic_load(run->stop))
		return OK;
	if (b->directory)
		TRY(batch_path(ctx, b, plan->file, path));
	ask.coll = plan->coll;
	ask.root = plan->root;
	if (batch_machine(b, plan->set)->without)
		ask.without = batch_machine(b, plan->set)->without;
	TRY(request_blame(ctx, batch_induce(ctx, b, plan->set, &ask, &job)));
	if (b->by_form)
		TRY(topo_invariant(ctx, job.topo, plan->root, &result->form));
	if (b->directory && !b->tuning)
		earlier_keep(&job, path, result);
	if (result->kept)
		return OK;
	result->trees = 0;
	Status status = b->tuning && b->tuning->plans ? tune_mscclpp_plan(ctx, b, &job, run->order[task])
	    : b->tuning ? tune_plan(ctx, b, &job, run->order[task])
	    : plan_anew(ctx, &job, b->directory ? path : NULL, result);
	status = request_blame(ctx, status);
	if (status != OK)
		result->trees = 0;
	if (status == IO)
		atomic_store(run->stop, true);
	return status;
}

static void
plans_done(void *of, int n_done)
{
	const struct run *run = of;
	progress_bar("planning", n_done, run->n);
}

static Status
order_plans(Ctx *ctx, struct run *run)
{
	const Batch *b = run->b;
	int most = 0;
	TRY(NEW(ctx, run->order, b->n_plans));
	for (int s = 0; s < b->n_sets; s++)
		most = b->set[s].n > most ? b->set[s].n : most;
	for (int n = most; n >= 2; n--)
		for (int p = b->shard; p < b->n_plans; p += b->n_shards)
			if (batch_set(b, b->plan[p].set)->n == n)
				run->order[run->n++] = p;
	return OK;
}

/* What failed first, in the order of plans, and how much else did. Plans without trees are left out. */
static Status
report_failures(Ctx *ctx, const struct run *run, const TaskEnd *end)
{
	const Batch *b = run->b;
	int first = -1, more = 0;
	for (int i = 0; i < run->n; i++) {
		if (end[i].status == INFEASIBLE || (end[i].status == OK && b->result[run->order[i]].trees > 0))
			continue;
		more++;
		if (end[i].status != OK && (first < 0 || run->order[i] < run->order[first]))
			first = i;
	}
	if (first < 0)
		return OK;
	const char *text = end[first].text, *file = b->plan[run->order[first]].file;
	bool named = strstr(text, file);
	if (more > 1)
		return fail(ctx, end[first].status, "%s%s%s; %d other schedules are missing, too",
		    named ? "" : file, named ? "" : ": ", text, more - 1);
	return fail(ctx, end[first].status, "%s%s%s", named ? "" : file, named ? "" : ": ", text);
}

static Status
make_directories(Ctx *ctx, const Batch *b)
{
	char path[FILE_PATH_ROOM];
	TRY(file_make_directory(ctx, b->directory));
	TRY(file_sweep(ctx, b->directory));
	for (int c = 0; c < N_COLLECTIVES; c++) {
		if (!(b->colls >> c & 1))
			continue;
		TRY(batch_path(ctx, b, collective_name((Collective)c), path));
		TRY(file_make_directory(ctx, path));
		TRY(file_sweep(ctx, path));
	}
	return OK;
}

Status
plans_run(Ctx *ctx, Batch *b)
{
	struct run run = { .b = b };
	if (b->directory)
		TRY(make_directories(ctx, b));
	TRY(order_plans(ctx, &run));
	const Pool pool = { .n_tasks = run.n, .n_workers = b->n_workers, .run = run_plan, .done = plans_done,
	    .of = &run };
	TaskEnd *end = shared_array((size_t)run.n, sizeof *end);
	run.stop = shared_array(1, sizeof *run.stop);
	Status status = end && run.stop ? pool_run(ctx, &pool, end) : fail_memory(ctx);
	if (status == OK)
		status = report_failures(ctx, &run, end);
	if (status == OK && b->directory)
		status = file_sync(ctx, b->directory);
	shared_free(end);
	shared_free(run.stop);
	return status;
}
