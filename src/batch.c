/* A batch: canonical forms of all sets, with each root that is asked for; sets of one form are one class. The first set of a class is
 * planned, and others take its schedule by the isomorphism that their forms give. What a set is worth does not depend on the others
 * of the batch, so neither does a file on what else is made, nor on who makes it. */
#include "batch.h"

#include "base/file.h"
#include "base/pool.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };	/* sets of a task, when forms are looked for */

/* A variant is a set without a root, or with one of its ranks as the root. Those of set s are first[s] and, if there are collectives with
 * a root, the n behind it. */
struct forms {
	bool rooted;
	size_t n_variants, n_places;
	size_t *first, *first_place;	/* of each set; n_sets + 1 */
	int *set_of;			/* of each variant */
	unsigned char (*form)[TOPO_FORM_BYTES];	/* shared, as are the next three */
	uint16_t *place;		/* of the ranks of each variant */
	unsigned *classes;		/* of the links that each set uses */
	unsigned char *apart;		/* whether no links connect a set */
	int *lead;			/* of each variant, the first of its form; the set's own are behind each other */
	int *number;			/* of each lead, among those of its sort: with or without a root; -1: it is apart */
	int first_plan[N_COLLECTIVES];
};

static int
variant_root(const struct forms *f, int v)
{
	return v - (int)f->first[f->set_of[v]] - 1;
}

static uint16_t *
variant_place(const Batch *b, int v)
{
	const struct forms *f = b->forms;
	int s = f->set_of[v];
	return f->place + f->first_place[s] + ((size_t)v - f->first[s]) * (size_t)b->set[s].n;
}

/* ---- forms ---- */

static Status
parse_job(Ctx *ctx, const Batch *b, Collective coll, int s, Options *own, Job *job)
{
	*own = *b->opt;
	own->value[OPT_COLLECTIVE] = collective_name(coll);
	TRY(job_parse(ctx, own, job));
	job->machine = b->machine;
	job->n = b->set[s].n;
	job->gpu = b->set[s].gpu;
	return OK;
}

static Status
find_forms(Ctx *ctx, const Batch *b, int s)
{
	struct forms *f = b->forms;
	Options own;
	Job job;
	int *place, *mark;
	TRY(parse_job(ctx, b, ALLREDUCE, s, &own, &job));
	Status status = job_induce(ctx, &job);
	if (status == INFEASIBLE) {
		f->apart[s] = 1;
		ctx->error.status = OK;
		return OK;
	}
	TRY(status);
	for (int l = 0; l < job.topo->n_links; l++)
		f->classes[s] |= 1u << job.topo->link[l].class;
	TRY(NEW(ctx, place, job.topo->n_vertices));
	TRY(NEW(ctx, mark, job.n));
	for (int v = (int)f->first[s]; v < (int)f->first[s + 1]; v++) {
		uint16_t *own_place = variant_place(b, v);
		for (int r = 0; r < job.n; r++)
			mark[r] = r == variant_root(f, v);
		TRY(topo_form(ctx, job.topo, mark, f->form[v], place, NULL));
		for (int r = 0; r < job.n; r++)
			own_place[r] = (uint16_t)place[r];
	}
	return OK;
}

static Status
find_chunk(Ctx *ctx, void *of, int task)
{
	const Batch *b = of;
	for (int s = task * CHUNK; s < b->n_sets && s < (task + 1) * CHUNK; s++) {
		ArenaMark mark = arena_mark(&ctx->run);
		TRY(find_forms(ctx, b, s));
		arena_release(&ctx->run, mark);
	}
	return OK;
}

static void
forms_done(void *of, int n_done)
{
	const Batch *b = of;
	watch_bar("looking for sets that are alike", (int64_t)n_done * CHUNK < b->n_sets ? (int64_t)n_done * CHUNK : b->n_sets, b->n_sets);
}

static Status
new_forms(Ctx *ctx, Batch *b)
{
	struct forms *f;
	TRY(NEW(ctx, f, 1));
	b->forms = f;
	for (int c = 0; c < N_COLLECTIVES; c++)
		f->rooted = f->rooted || (b->colls >> c & 1 && collective_rooted((Collective)c));
	TRY(NEW(ctx, f->first, b->n_sets + 1));
	TRY(NEW(ctx, f->first_place, b->n_sets + 1));
	for (int s = 0; s < b->n_sets; s++) {
		size_t variants = 1 + (f->rooted ? (size_t)b->set[s].n : 0);
		f->first[s + 1] = f->first[s] + variants;
		f->first_place[s + 1] = f->first_place[s] + variants * (size_t)b->set[s].n;
	}
	f->n_variants = f->first[b->n_sets];
	f->n_places = f->first_place[b->n_sets];
	if (f->n_variants > 4 * (size_t)LIMIT_INDEX)
		return fail(ctx, LIMIT, "%zu sets with their roots: want at most %d; fewer --sizes, or sets in a file with --gpus", f->n_variants,
		    4 * LIMIT_INDEX);
	TRY(NEW(ctx, f->set_of, f->n_variants));
	TRY(NEW(ctx, f->lead, f->n_variants));
	TRY(NEW(ctx, f->number, f->n_variants));
	for (int s = 0; s < b->n_sets; s++)
		for (size_t v = f->first[s]; v < f->first[s + 1]; v++)
			f->set_of[v] = s;
	f->form = shared_array(f->n_variants, sizeof *f->form);
	f->place = shared_array(f->n_places, sizeof *f->place);
	f->classes = shared_array((size_t)b->n_sets, sizeof *f->classes);
	f->apart = shared_array((size_t)b->n_sets, sizeof *f->apart);
	return f->form && f->place && f->classes && f->apart ? OK : fail_memory(ctx);
}

static Status
all_forms(Ctx *ctx, Batch *b)
{
	int n_tasks = (b->n_sets + CHUNK - 1) / CHUNK;
	const Pool pool = { .n_tasks = n_tasks, .n_workers = b->n_workers, .run = find_chunk, .done = forms_done, .of = b };
	TaskEnd *end = shared_array((size_t)n_tasks, sizeof *end);
	Status status = end ? pool_run(ctx, &pool, end) : fail_memory(ctx);
	if (status == OK)
		status = pool_first_failure(ctx, end, n_tasks);
	shared_free(end);
	return status;
}

/* ---- classes ---- */

struct keyed {
	const unsigned char *form;
	int v;
};

static int
by_form(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;
	int order = memcmp(a->form, b->form, TOPO_FORM_BYTES);
	return order ? order : (a->v > b->v) - (a->v < b->v);
}

static Status
find_leads(Ctx *ctx, Batch *b)
{
	struct forms *f = b->forms;
	struct keyed *key;
	int n = 0, numbers[2] = { 0 };
	TRY(NEW(ctx, key, f->n_variants));
	for (int v = 0; v < (int)f->n_variants; v++) {
		f->lead[v] = v;
		if (!f->apart[f->set_of[v]])
			key[n++] = (struct keyed){ f->form[v], v };
	}
	qsort(key, (size_t)n, sizeof *key, by_form);
	for (int i = 1; i < n; i++)
		if (memcmp(key[i - 1].form, key[i].form, TOPO_FORM_BYTES) == 0)
			f->lead[key[i].v] = f->lead[key[i - 1].v];
	for (int v = 0; v < (int)f->n_variants; v++) {
		bool apart = f->apart[f->set_of[v]], rooted = variant_root(f, v) >= 0;
		f->number[v] = !apart && f->lead[v] == v ? numbers[rooted]++ : -1;
	}
	return OK;
}

/* Of the jobs those whose sets are the first of their class, or apart. */
static Status
keep_first(Ctx *ctx, Batch *b)
{
	const struct forms *f = b->forms;
	int n = 0;
	bool *kept;
	TRY(NEW(ctx, kept, b->n_sets));
	for (int j = 0; j < b->n_jobs; j++) {
		int s = b->set_of[j], v = (int)f->first[s];
		if (f->lead[v] != v || kept[s])
			continue;
		kept[s] = true;
		b->job[n] = b->job[j];
		b->set_of[n++] = s;
	}
	b->n_jobs = n;
	return OK;
}

static Status
new_plan(Ctx *ctx, Batch *b, Collective coll, int v)
{
	int s = b->forms->set_of[v], root = variant_root(b->forms, v);
	Text name = { 0 };
	text_printf(&name, "%s/", collective_name(coll));
	set_name(&b->set[s], &name);
	text_printf(&name, root >= 0 ? ".r%d.json" : ".json", root);
	const char *file = name.failed ? NULL : arena_text(&ctx->run, name.data, name.size);
	text_free(&name);
	b->plan[b->n_plans++] = (BatchPlan){ coll, s, root, file };
	return file ? OK : fail_memory(ctx);
}

static Status
list_plans(Ctx *ctx, Batch *b)
{
	struct forms *f = b->forms;
	int most = 0;
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int v = 0; b->colls >> c & 1 && v < (int)f->n_variants; v++)
			most += f->number[v] >= 0 && (variant_root(f, v) >= 0) == collective_rooted((Collective)c);
	TRY(NEW(ctx, b->plan, most));
	b->result = shared_array((size_t)most, sizeof *b->result);
	if (!b->result)
		return fail_memory(ctx);
	for (int c = 0; c < N_COLLECTIVES; c++) {
		f->first_plan[c] = b->n_plans;
		for (int v = 0; b->colls >> c & 1 && v < (int)f->n_variants; v++)
			if (f->number[v] >= 0 && (variant_root(f, v) >= 0) == collective_rooted((Collective)c))
				TRY(new_plan(ctx, b, (Collective)c, v));
	}
	return OK;
}

Status
batch_prepare(Ctx *ctx, Batch *b)
{
	TRY(sets_of_jobs(ctx, b->job, b->n_jobs, &b->set, &b->n_sets, &b->set_of));
	TRY(new_forms(ctx, b));
	TRY(all_forms(ctx, b));
	TRY(find_leads(ctx, b));
	if (b->distinct)
		TRY(keep_first(ctx, b));
	return list_plans(ctx, b);
}

SetClass
batch_class(const Batch *b, int s)
{
	const struct forms *f = b->forms;
	return (SetClass){ .apart = f->apart[s], .first = f->number[f->first[s]] >= 0, .links = f->classes[s] };
}

void
batch_free(Batch *b)
{
	struct forms *f = b->forms;
	shared_free(b->result);
	if (!f)
		return;
	shared_free(f->form);
	shared_free(f->place);
	shared_free(f->classes);
	shared_free(f->apart);
}

/* ---- plans ---- */

/* What workers are given: plans in the order in which they are taken, large sets first, so that none is left for the end. */
struct run {
	Batch *b;
	int n, *order;
	atomic_bool *stop;	/* shared: nothing can be written any more */
};

static Status
plan_path(Ctx *ctx, const Batch *b, const BatchPlan *plan, char path[FILE_PATH_ROOM])
{
	if (snprintf(path, FILE_PATH_ROOM, "%s/%s", b->directory, plan->file) >= FILE_PATH_ROOM)
		return fail(ctx, LIMIT, "%s: a path longer than %d bytes", b->directory, FILE_PATH_ROOM - 1);
	return OK;
}

static Status
take_result(Ctx *ctx, const Schedule *sched, BatchResult *result)
{
	result->rate = sched->achieved;
	result->bound = sched->bound.rate;
	result->stated_rate = sched->stated_achieved;
	result->stated_bound = sched->stated_bound;
	result->trees = sched->n_segments;
	return sched_depth(ctx, sched, &result->depth);
}

/* The schedule over the job's own topology, whose links have the same numbers, and whose switches may have others. */
static Status
adopt(Ctx *ctx, const Topology *topo, Schedule *sched)
{
	Bound *bound = &sched->bound;
	int *part;
	if (bound->kind == CERTIFICATE_CUT || bound->kind == CERTIFICATE_PARTITION) {
		TRY(NEW(ctx, part, topo->n_vertices));
		for (int l = 0; l < topo->n_links; l++) {
			part[topo->link[l].from] = bound->part[sched->topo->link[l].from];
			part[topo->link[l].to] = bound->part[sched->topo->link[l].to];
		}
		bound->part = part;
	}
	sched->topo = topo;
	return OK;
}

/* Is the file what this job would write, and right? Its trees are not planned again. */
static Status
examine(Ctx *ctx, const Job *job, const char *path, const Text *in, bool *same, BatchResult *result)
{
	Schedule *sched;
	Text again = { 0 };
	TRY(sched_read(ctx, path, in->data, in->size, &sched));
	TRY(sched_verify(ctx, path, sched));
	*same = sched->coll == job->ask.coll && sched->root == job->ask.root && topo_same_in_files(sched->topo, job->topo)
	    && strcmp(sched->algorithm, algorithm_name(job->ask.algorithm)) == 0;
	if (!*same)
		return OK;
	TRY(adopt(ctx, job->topo, sched));
	sched->generator = "blinkc";
	sched->version = BLINK_VERSION;
	TRY(request_record(ctx, job->opt, &job->ask, job->classes, job->kind, sched));
	emit_sched_json(sched, &again);
	*same = !again.failed && again.size == in->size && memcmp(again.data, in->data, in->size) == 0;
	text_free(&again);
	return take_result(ctx, sched, result);
}

/* An earlier file stays if it is what would be written. */
static Status
keep_earlier(const Job *job, const char *path, BatchResult *result)
{
	Ctx own;
	Text in = { 0 };
	bool same = false;
	ctx_init(&own);
	Status status = file_read(&own, path, &in);
	if (status == OK) {
		status = examine(&own, job, path, &in, &same, result);
		if (status != OK)
			snprintf(result->note, sizeof result->note, "%.*s", (int)sizeof result->note - 1, own.error.text);
		else if (!same)
			snprintf(result->note, sizeof result->note, "%.200s: of other options, or another version or machine", path);
	}
	result->kept = status == OK && same;
	text_free(&in);
	ctx_free(&own);
	return OK;
}

static Status
plan_anew(Ctx *ctx, const Job *job, const char *path, BatchResult *result)
{
	Text json = { 0 };
	Schedule *sched, *again;
	Frac best;
	TRY(job_plan(ctx, job, &best, &sched));
	Status status = job_write(ctx, job, sched, &json, &again);
	if (status == OK)
		status = take_result(ctx, again, result);
	if (status == OK)
		status = file_write_soon(ctx, path, &json);
	text_free(&json);
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
	Options own;
	Job job;
	if (atomic_load(run->stop))
		return OK;
	TRY(plan_path(ctx, b, plan, path));
	TRY(parse_job(ctx, b, plan->coll, plan->set, &own, &job));
	TRY(job_induce(ctx, &job));
	job.ask.root = plan->root;
	TRY(keep_earlier(&job, path, result));
	if (result->kept)
		return OK;
	result->trees = 0;
	Status status = plan_anew(ctx, &job, path, result);
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
	watch_bar("planning", n_done, run->n);
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
			if (b->set[b->plan[p].set].n == n)
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
		return fail(ctx, end[first].status, "%s%s%s; %d other schedules are not there, either", named ? "" : file, named ? "" : ": ", text, more - 1);
	return fail(ctx, end[first].status, "%s%s%s", named ? "" : file, named ? "" : ": ", text);
}

static Status
make_directories(Ctx *ctx, const Batch *b)
{
	char path[FILE_PATH_ROOM];
	TRY(file_make_directory(ctx, b->directory));
	TRY(file_sweep(ctx, b->directory));
	for (int c = 0; c < N_COLLECTIVES; c++) {
		const BatchPlan directory = { .file = collective_name((Collective)c) };
		if (!(b->colls >> c & 1))
			continue;
		TRY(plan_path(ctx, b, &directory, path));
		TRY(file_make_directory(ctx, path));
		TRY(file_sweep(ctx, path));
	}
	return OK;
}

Status
batch_run(Ctx *ctx, Batch *b)
{
	struct run run = { .b = b };
	TRY(make_directories(ctx, b));
	TRY(order_plans(ctx, &run));
	const Pool pool = { .n_tasks = run.n, .n_workers = b->n_workers, .run = run_plan, .done = plans_done, .of = &run };
	TaskEnd *end = shared_array((size_t)run.n, sizeof *end);
	run.stop = shared_array(1, sizeof *run.stop);
	Status status = end && run.stop ? pool_run(ctx, &pool, end) : fail_memory(ctx);
	if (status == OK)
		status = report_failures(ctx, &run, end);
	if (status == OK)
		status = file_sync(ctx, b->directory);
	shared_free(end);
	shared_free(run.stop);
	return status;
}

/* ---- index ---- */

/* The plan of a job's variant, or -1 where it has none. */
static int
plan_of(const Batch *b, Collective coll, int v)
{
	const struct forms *f = b->forms;
	int number = f->number[f->lead[v]], p = f->first_plan[coll] + number;
	return number < 0 || b->result[p].trees == 0 ? -1 : p;
}

/* Is plan p better than q: faster, then less deep, then of fewer trees? */
static bool
better(const Batch *b, int p, int q)
{
	const BatchResult *x = &b->result[p], *y = &b->result[q];
	int order = frac_cmp(x->rate, y->rate);
	if (order)
		return order > 0;
	return x->depth != y->depth ? x->depth < y->depth : x->trees < y->trees;
}

/* Variant of job j whose root is its rank i; without a root, i is -1. */
static int
job_variant(const Batch *b, int j, int i)
{
	int s = b->set_of[j], first = (int)b->forms->first[s];
	if (i < 0)
		return first;
	for (int r = 0;; r++)
		if (b->set[s].gpu[r] == b->job[j].gpu[i])
			return first + 1 + r;
}

/* Rank i of the job has the place that rank[i] has in the first set of its class. */
static Status
map_ranks(Ctx *ctx, const Batch *b, int j, int v, const int **out)
{
	const GpuSet *job = &b->job[j], *set = &b->set[b->set_of[j]];
	const uint16_t *place = variant_place(b, v), *lead = variant_place(b, b->forms->lead[v]);
	int *rank, *at, *position;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, rank, job->n));
	TRY(TEMP(ctx, at, job->n));
	TRY(TEMP(ctx, position, b->machine->n_ranks));
	for (int r = 0; r < job->n; r++) {
		at[lead[r]] = r;
		position[set->gpu[r]] = r;
	}
	for (int i = 0; i < job->n; i++)
		rank[i] = at[place[position[job->gpu[i]]]];
	arena_release(&ctx->scratch, mark);
	*out = rank;
	return OK;
}

static Status
add_entry(Ctx *ctx, const Batch *b, int j, int root, int v, int p, Index *index)
{
	const BatchResult *result = &b->result[p];
	IndexEntry entry = { .n = b->job[j].n, .gpu = b->job[j].gpu, .coll = b->plan[p].coll, .root = root, .file = b->plan[p].file,
		.rate = result->stated_rate, .bound = result->stated_bound, .trees = result->trees, .depth = result->depth };
	TRY(map_ranks(ctx, b, j, v, &entry.rank));
	index->entry[index->n_entries++] = entry;
	return OK;
}

/* Roots of a job: all, the best one, or one of each class. */
static Status
add_rooted(Ctx *ctx, const Batch *b, Collective coll, int j, Index *index)
{
	int best = -1, best_plan = -1, n = b->job[j].n;
	for (int i = 0; i < n; i++) {
		int v = job_variant(b, j, i), p = plan_of(b, coll, v);
		bool first = true;
		if (p < 0)
			continue;
		for (int k = 0; k < i && b->roots == ROOTS_CANONICAL; k++)
			first = first && b->forms->lead[job_variant(b, j, k)] != b->forms->lead[v];
		if (b->roots == ROOTS_BEST) {
			if (best < 0 || better(b, p, best_plan)) {
				best = i;
				best_plan = p;
			}
		} else if (first) {
			TRY(add_entry(ctx, b, j, i, v, p, index));
		}
	}
	return best < 0 ? OK : add_entry(ctx, b, j, best, job_variant(b, j, best), best_plan, index);
}

Status
batch_index(Ctx *ctx, const Batch *b, Index **out)
{
	const Topology *machine = b->machine;
	Index *index;
	size_t most = 0;
	TRY(NEW(ctx, index, 1));
	*index = (Index){ .name = machine->name, .digest = machine->digest, .n_gpus = machine->n_ranks };
	TRY(NEW(ctx, index->gpu, machine->n_ranks));
	for (int g = 0; g < machine->n_ranks; g++)
		index->gpu[g] = machine->vertex[g].id;
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int j = 0; j < b->n_jobs && b->colls >> c & 1; j++)
			most += !collective_rooted((Collective)c) || b->roots == ROOTS_BEST ? 1 : (size_t)b->job[j].n;
	if (most > LIMIT_INDEX)
		return fail(ctx, LIMIT, "an index of %zu entries: want at most %d; fewer --sizes, --collectives or --roots", most, LIMIT_INDEX);
	TRY(NEW(ctx, index->entry, most));
	for (int j = 0; j < b->n_jobs; j++)
		for (int c = 0; c < N_COLLECTIVES; c++) {
			Collective coll = (Collective)c;
			int v = job_variant(b, j, -1);
			if (!(b->colls >> c & 1))
				continue;
			if (collective_rooted(coll))
				TRY(add_rooted(ctx, b, coll, j, index));
			else if (plan_of(b, coll, v) >= 0)
				TRY(add_entry(ctx, b, j, -1, v, plan_of(b, coll, v), index));
		}
	*out = index;
	return OK;
}
