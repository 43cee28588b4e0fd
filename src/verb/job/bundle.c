/* The files of a job: a schedule for each group and call, what was planned together, and an index by which a runtime
 * finds the schedule of a group. */
#include "base/file.h"
#include "base/sort.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/job/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* Calls before this one in the phase that have its kind and collective. */
static int
alike_before(const Phase *phase, int c)
{
	int n = 0;
	for (int i = 0; i < c; i++)
		n += phase->call[i].kind == phase->call[c].kind && phase->call[i].coll == phase->call[c].coll;
	return n;
}

/* "backward/dp-allreduce/0.json", and "backward/dp-allreduce-2/0.json" of the second such call. */
static Status
name_file(Ctx *ctx, const Workload *w, const Phase *phase, int c, int g, const char **out)
{
	Text name = { 0 };
	int before = alike_before(phase, c);
	text_printf(&name, "%s/%s-%s", phase->name, w->kind[phase->call[c].kind].name,
	    collective_name(phase->call[c].coll));
	if (before > 0)
		text_printf(&name, "-%d", before + 1);
	text_printf(&name, "/%d.json", g);
	*out = text_keep(&ctx->run, &name);
	return *out ? OK : fail_memory(ctx);
}

/* The file of an earlier phase with the same schedule; NULL: none. */
static const char *
same_file(const JobPlans *plans, int p, int c, int g)
{
	const Workload *w = plans->in->workload;
	const GroupCall *call = &w->phase[p].call[c];
	const Text *json = &plans->plan[p].group[c][g].json;
	for (int q = 0; q < p; q++)
		for (int d = 0; d < w->phase[q].n_calls; d++) {
			const Text *other = &plans->plan[q].group[d][g].json;
			int place = 0;
			if (w->phase[q].call[d].kind != call->kind || other->size != json->size
			    || memcmp(other->data, json->data, json->size) != 0)
				continue;
			for (int h = 0; h < g; h++)
				place += plans->plan[q].group[d][h].sched != NULL;
			return plans->phases.phase[q].call[d].file[place];
		}
	return NULL;
}

static Status
list_call(Ctx *ctx, const JobPlans *plans, int p, int c, PlannedCall *out)
{
	const Workload *w = plans->in->workload;
	const Phase *phase = &w->phase[p];
	const GroupCall *call = &phase->call[c];
	const GroupKind *kind = &w->kind[call->kind];
	RankGroup *group;
	*out = (PlannedCall){ .groups = kind->name, .coll = call->coll, .root = call->root, .bytes = call->bytes,
		.by_matrix = call->matrix != NULL, .times = call->times, .priority = call->priority };
	TRY(NEW(ctx, group, kind->n_groups));
	TRY(NEW(ctx, out->file, kind->n_groups));
	for (int g = 0; g < kind->n_groups; g++) {
		if (!plans->plan[p].group[c][g].sched)
			continue;
		if (call->matrix)
			out->between += alltoall_sent(call->matrix[g], kind->group[g].n);
		group[out->n_groups] = kind->group[g];
		out->file[out->n_groups] = same_file(plans, p, c, g);
		if (!out->file[out->n_groups])
			TRY(name_file(ctx, w, phase, c, g, &out->file[out->n_groups]));
		out->n_groups++;
	}
	out->group = group;
	return OK;
}

Status
bundle_phases(Ctx *ctx, JobPlans *plans)
{
	const Workload *w = plans->in->workload;
	plans->phases = (Phases){ .topo = plans->in->topo, .n_phases = w->n_phases };
	TRY(NEW(ctx, plans->phases.phase, w->n_phases));
	for (int p = 0; p < w->n_phases; p++) {
		const PhasePlan *plan = &plans->plan[p];
		PlannedPhase *phase = &plans->phases.phase[p];
		*phase = (PlannedPhase){ .name = w->phase[p].name, .times = w->phase[p].times,
			.n_calls = w->phase[p].n_calls, .n_levels = plan->n_levels, .level = plan->level,
			.alone = plan->alone, .rings = plan->rings };
		TRY(NEW(ctx, phase->call, phase->n_calls));
		for (int c = 0; c < phase->n_calls; c++)
			TRY(list_call(ctx, plans, p, c, &phase->call[c]));
	}
	return OK;
}

/* ---- the index ---- */

/* A schedule of a group, and for what it was planned. */
struct listed {
	IndexEntry entry;
	int64_t bytes;
	double weight;		/* s in a step of its phase */
};

static int
by_job(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = index_job_order(&x->entry, &y->entry);
	if (order)
		return order;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->weight < y->weight) - (x->weight > y->weight);
}

static Status
describe(Ctx *ctx, const JobPlans *plans, const RankGroup *group, const Schedule *sched, const char *file,
    IndexEntry *out)
{
	IndexedFile described;
	int *gpu, *rank;
	TRY(index_describe(ctx, sched, &described));
	TRY(NEW_EACH(ctx, group->n, gpu, rank));
	for (int i = 0; i < group->n; i++) {
		gpu[i] = plans->gpu[group->rank[i]];
		rank[i] = i;
	}
	*out = (IndexEntry){ .n = group->n, .gpu = gpu, .rank = rank, .coll = sched->coll, .root = sched->root,
		.file = file, .rate = described.rate, .bound = described.bound, .trees = described.trees,
		.depth = described.depth };
	return OK;
}

static Status
list_all(Ctx *ctx, const JobPlans *plans, struct listed **out, int *n)
{
	int most = 0;
	struct listed *all;
	for (int p = 0; p < plans->phases.n_phases; p++)
		for (int c = 0; c < plans->phases.phase[p].n_calls; c++)
			most += plans->phases.phase[p].call[c].n_groups;
	TRY(NEW(ctx, all, most));
	*n = 0;
	for (int p = 0; p < plans->phases.n_phases; p++) {
		const PlannedPhase *phase = &plans->phases.phase[p];
		for (int c = 0; c < phase->n_calls; c++) {
			const PlannedCall *call = &phase->call[c];
			const GroupPlan *plan = plans->plan[p].group[c];
			for (int g = 0; g < call->n_groups; g++, plan++) {
				while (!plan->sched)
					plan++;
				struct listed *one = &all[(*n)++];
				TRY(describe(ctx, plans, &call->group[g], plan->sched, call->file[g], &one->entry));
				one->bytes = call->bytes;
				one->weight = phase->level[phase->n_levels - 1].seconds * phase->times;
			}
		}
	}
	sort_array(all, *n, sizeof *all, by_job);
	*out = all;
	return OK;
}

/* The schedules of one job, of different sizes: each serves what is nearer to its own, by the ratio. Of one size that
 * of the phase that takes longest in a step stays. */
static void
divide_sizes(struct listed *one, int n, Index *index)
{
	int kept = 1;
	for (int i = 1; i < n; i++)
		if (one[i].bytes != one[kept - 1].bytes)
			one[kept++] = one[i];
	for (int i = 0; i < kept; i++) {
		IndexEntry *entry = &one[i].entry;
		entry->sized = kept > 1;
		entry->from = i == 0 ? 0 : one[i - 1].entry.to + 1;
		entry->to = i == kept - 1 ? LIMIT_MESSAGE
		    : (int64_t)sqrt((double)one[i].bytes * (double)one[i + 1].bytes);
		index->entry[index->n_entries++] = *entry;
	}
}

static Status
make_index(Ctx *ctx, const JobPlans *plans, Index *out)
{
	const Topology *machine = plans->in->machine, *whole = plans->whole;
	struct listed *all;
	int n;
	*out = (Index){ .name = machine->name, .digest = machine->digest, .without = plans->in->ask.without,
		.n_gpus = whole->n_ranks };
	TRY(NEW(ctx, out->gpu, whole->n_ranks));
	for (int g = 0; g < whole->n_ranks; g++)
		out->gpu[g] = whole->vertex[g].id;
	TRY(list_all(ctx, plans, &all, &n));
	TRY(NEW(ctx, out->entry, n));
	for (int i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && index_job_order(&all[i].entry, &all[end].entry) == 0; end++)
			continue;
		divide_sizes(&all[i], end - i, out);
	}
	return OK;
}

/* ---- writing ---- */

static Status
make_path(Ctx *ctx, const char *directory, const char *file, char path[FILE_PATH_ROOM])
{
	if (snprintf(path, FILE_PATH_ROOM, "%s/%s", directory, file) >= FILE_PATH_ROOM)
		return fail(ctx, LIMIT, "%s: a path longer than %d bytes", directory, FILE_PATH_ROOM - 1);
	return OK;
}

/* Directories of a file below the one that is there. */
static Status
make_directories(Ctx *ctx, char *path, size_t from)
{
	for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		TRY(file_make_directory(ctx, path));
		*slash = '/';
	}
	return OK;
}

static Status
write_text(Ctx *ctx, const char *directory, const char *file, Text *text)
{
	char path[FILE_PATH_ROOM];
	Status status = text->failed ? fail_memory(ctx) : make_path(ctx, directory, file, path);
	if (status == OK)
		status = file_write(ctx, path, text);
	text_free(text);
	return status;
}

static Status
write_schedules(Ctx *ctx, const JobPlans *plans, const char *directory)
{
	char path[FILE_PATH_ROOM];
	for (int p = 0; p < plans->phases.n_phases; p++) {
		const PlannedPhase *phase = &plans->phases.phase[p];
		for (int c = 0; c < phase->n_calls; c++) {
			const GroupPlan *plan = plans->plan[p].group[c];
			for (int g = 0; g < phase->call[c].n_groups; g++, plan++) {
				while (!plan->sched)
					plan++;
				TRY(make_path(ctx, directory, phase->call[c].file[g], path));
				TRY(make_directories(ctx, path, strlen(directory) + 1));
				TRY(file_write_soon(ctx, path, &plan->json));
			}
			if (phase->call[c].n_groups > 0) {
				*strrchr(path, '/') = '\0';
				TRY(file_sync(ctx, path));
			}
		}
	}
	return OK;
}

Status
bundle_write(Ctx *ctx, const JobPlans *plans, const char *directory)
{
	Index index;
	Text text = { 0 };
	TRY(file_make_directory(ctx, directory));
	TRY(file_sweep(ctx, directory));
	TRY(write_schedules(ctx, plans, directory));
	phases_write(&plans->phases, &text);
	TRY(write_text(ctx, directory, "phases.json", &text));
	/* The index comes last: what it names is there. */
	TRY(make_index(ctx, plans, &index));
	text = (Text){ 0 };
	index_write(&index, &text);
	return write_text(ctx, directory, "index.json", &text);
}
