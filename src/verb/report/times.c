/* What messages of several sizes take, of each class of a page: simulated, each class by itself, by several processes.
 * Schedules have the links that they use, and NCCL's rings may take others: so the machine is read again. */
#include "base/pool.h"
#include "verb/progress.h"
#include "verb/report/report.h"
#include "verb/shipped.h"
#include "verb/verb.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_SIZES "1K,4K,16K,64K,256K,1M,4M,16M,64M,256M,1G"

struct timing {
	const Options *opt;
	const Topology *machine;
	SimParameters p;
	Sizes sizes;
	Page *page;
};

/* Of any series, the first that has one. */
static const IndexEntry *
best_job(const Page *page, const PageClass *class)
{
	for (int s = 0; s < page->n_series; s++)
		if (class->best[s].file >= 0)
			return class->best[s].job;
	return NULL;
}

static Status
fill_point(Ctx *ctx, Choices *choices, NcclBeside *beside, PagePoint *out)
{
	ChoicePoint point;
	TRY(choice_of_size(ctx, choices, out->m, &point));
	out->ours = point.time;
	out->least = point.least;
	TRY(choice_least(ctx, choices, out->m, &out->least));
	snprintf(out->name, sizeof out->name, "%s", choices->candidate[point.best].name);
	for (int i = 0; i < beside->n_rings; i++)
		TRY(nccl_ring_time(ctx, beside, i, out->m, &out->ring[i]));
	for (int v = 0; v < N_NCCL_VERSIONS; v++) {
		out->nccl_time[v] = -1;
		if (!beside->why_not)
			TRY(nccl_time(ctx, beside, v, out->m, &out->nccl[v], &out->nccl_time[v]));
	}
	return OK;
}

static Status
time_class(Ctx *ctx, void *of, int task)
{
	const struct timing *all = of;
	PageTimes *out = &all->page->times[task];
	const IndexEntry *entry = best_job(all->page, &all->page->class[task]);
	Ask ask;
	Job job;
	Choices *choices;
	NcclBeside *beside;
	TRY(request_parse(ctx, all->opt, entry->coll, &ask));
	ask.root = entry->root;
	TRY(job_induce(ctx, all->machine, entry->gpu, entry->n, &ask, &job));
	TRY(choice_prepare(ctx, &job, &all->p, &choices));
	TRY(nccl_prepare(ctx, &job, &all->p, &beside));
	out->job = entry;
	out->why_not = beside->why_not;
	out->left_out = beside->left_out;
	out->n_rings = beside->n_rings;
	out->n_points = all->sizes.n;
	for (int i = 0; i < all->sizes.n; i++) {
		out->point[i].m = all->sizes.m[i];
		TRY(fill_point(ctx, choices, beside, &out->point[i]));
	}
	return OK;
}

static void
show_progress(void *of, int n_done)
{
	const struct timing *all = of;
	progress_bar("simulating classes", n_done, all->page->n_times);
}

static Status
read_page_machine(Ctx *ctx, const Options *opt, const Page *page, const Topology **out)
{
	const char *path;
	Topology *machine;
	TRY(read_machine_of(ctx, opt, &path, &machine));
	if (strcmp(machine->digest, page->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: %.80s: want %.80s, the machine of %s", path, machine->digest,
		    page->digest, page->series[0].dir);
	*out = machine;
	return index_check_gpus(ctx, path, page->series[0].index, machine);
}

static Status
time_classes(Ctx *ctx, struct timing *all, int n_workers)
{
	Page *page = all->page;
	int n = page->n_classes < PAGE_TIMES ? page->n_classes : PAGE_TIMES;
	Pool pool = { .n_tasks = n, .n_workers = n_workers, .run = time_class, .done = show_progress, .of = all };
	page->times = shared_array((size_t)n, sizeof *page->times);
	page->n_times = n;
	Status status = page->times ? pool_run_all(ctx, &pool) : fail_memory(ctx);
	progress_hide();
	return status;
}

Status
page_times(Ctx *ctx, const Options *opt, int n_workers, Page *page)
{
	struct timing all = { .opt = opt, .page = page };
	const char *sizes = opt->value[OPT_SIZE];
	if (!opt->value[OPT_TOPOLOGY])
		return sizes ? fail(ctx, USAGE, "--size: want --topology, too") : OK;
	TRY(request_sizes(ctx, sizes ? sizes : DEFAULT_SIZES, &all.sizes));
	TRY(read_page_machine(ctx, opt, page, &all.machine));
	sim_parameters_for(EXECUTOR_KERNEL, &all.machine->parameters, NULL, &all.p);
	page->executor = executor_names.name[EXECUTOR_KERNEL];
	return time_classes(ctx, &all, n_workers);
}
