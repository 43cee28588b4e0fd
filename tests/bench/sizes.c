/* What the choice is worth over sizes: sizes NAME MACHINE INDEX [SIZE...] simulates every job of an index that
 * `blinkc batch` wrote, as chosen, by every candidate, by the rings of each baseline, and as NCCL would choose. Prints
 * rows of a table in Markdown: geometric mean and maximum of what rings take, by what ours take. Exit status 1, with a
 * line for each, where a choice is slower than some candidate, or anything faster than the least time. */
#include "base/file.h"
#include "base/pool.h"
#include "choice/choice.h"
#include "choice/nccl.h"
#include "format/format.h"
#include "schedule/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 8, ROWS = 2, OLD = 0, NEW = N_NCCL_VERSIONS - 1, COLUMNS = 4 };

static const char *const column[COLUMNS] = { "rings of 2.4", "rings of 2.8", "NCCL 2.4.8", "NCCL 2.30.7" };

struct point {
	int64_t ours, best, least;	/* ps; best: of all candidates */
	int64_t other[COLUMNS];
	char name[CANDIDATE_NAME], best_name[CANDIDATE_NAME];
};

struct work {
	const Topology *machine;
	const Index *index;
	int n_sizes;
	int64_t m[SIZES];
	struct point *point;	/* n_entries * n_sizes, shared */
};

static Status
best_candidate(Ctx *ctx, Choices *choices, int64_t m, struct point *out)
{
	int64_t time[CANDIDATES_MOST];
	int best = 0;
	TRY(choice_times(ctx, choices, m, time, NULL));
	for (int i = 1; i < choices->n; i++)
		best = time[i] >= 0 && (time[best] < 0 || time[i] < time[best]) ? i : best;
	out->best = time[best];
	snprintf(out->best_name, sizeof out->best_name, "%s", choices->candidate[best].name);
	return OK;
}

static Status
fill(Ctx *ctx, Choices *choices, NcclBeside *beside, int64_t m, struct point *out)
{
	ChoicePoint point;
	NcclChoice choice;
	TRY(choice_of_size(ctx, choices, m, &point));
	out->ours = point.time;
	out->least = point.least;
	snprintf(out->name, sizeof out->name, "%s", choices->candidate[point.best].name);
	TRY(best_candidate(ctx, choices, m, out));
	for (int row = 0; row < ROWS; row++)
		TRY(nccl_ring_time(ctx, beside, row, m, &out->other[row]));
	TRY(nccl_time(ctx, beside, OLD, m, &choice, &out->other[ROWS]));
	return nccl_time(ctx, beside, NEW, m, &choice, &out->other[ROWS + 1]);
}

static Status
run_job(Ctx *ctx, void *of, int task)
{
	struct work *work = of;
	const IndexEntry *entry = &work->index->entry[task];
	const Ask ask = { .coll = entry->coll, .root = entry->root, .packing = PACKING_EXACT, .epsilon = { 1, 20 },
		.tolerance = FRAC_ZERO, .minimise = true };
	SimParameters p;
	Job job;
	Choices *choices;
	NcclBeside *beside;
	sim_defaults(EXECUTOR_KERNEL, &p);
	TRY(job_induce(ctx, work->machine, entry->gpu, entry->n, &ask, &job));
	TRY(choice_prepare(ctx, &job, &p, &choices));
	TRY(nccl_prepare(ctx, &job, &p, &beside));
	for (int i = 0; i < work->n_sizes; i++)
		TRY(fill(ctx, choices, beside, work->m[i], &work->point[task * work->n_sizes + i]));
	return OK;
}

/* ---- what must hold ---- */

static int
complain(const struct work *work, int e, int i, const char *what, const char *who, int64_t time)
{
	const IndexEntry *entry = &work->index->entry[e];
	const struct point *point = &work->point[e * work->n_sizes + i];
	printf("%s: %s, GPUs", what, collective_name(entry->coll));
	for (int g = 0; g < entry->n; g++)
		printf(" %d", entry->gpu[g]);
	printf(", %lld bytes: %s %.2f us; ours %s %.2f us, least %.2f us\n", (long long)work->m[i], who,
	    (double)time / 1e6, point->name, (double)point->ours / 1e6, (double)point->least / 1e6);
	return 1;
}

static int
check_point(const struct work *work, int e, int i)
{
	const struct point *point = &work->point[e * work->n_sizes + i];
	int wrong = 0;
	if (point->best != point->ours)
		wrong += complain(work, e, i, "not the best candidate", point->best_name, point->best);
	if (point->ours < point->least)
		wrong += complain(work, e, i, "below the least time", point->name, point->ours);
	for (int row = 0; row < ROWS; row++)
		if (point->other[row] >= 0 && point->other[row] < point->least)
			wrong += complain(work, e, i, "below the least time", column[row], point->other[row]);
	return wrong;
}

/* ---- the table ---- */

/* Of jobs of one collective. */
static void
put_column(const struct work *work, Collective coll, int i, int c)
{
	double sum = 0, most = 0, least = INFINITY;
	int n = 0, slower = 0;
	for (int e = 0; e < work->index->n_entries; e++) {
		const struct point *point = &work->point[e * work->n_sizes + i];
		if (work->index->entry[e].coll != coll || point->other[c] < 0)
			continue;
		double ratio = (double)point->other[c] / (double)point->ours;
		sum += log(ratio);
		most = fmax(most, ratio);
		least = fmin(least, ratio);
		slower += ratio < 1;
		n++;
	}
	printf(" %.2f, %.2f", exp(sum / n), most);
	if (slower)
		printf(" (%d below 1, %.2f)", slower, least);
	printf(" |");
}

static void
put_rows(const struct work *work, const char *name, Collective coll)
{
	int n = 0;
	for (int e = 0; e < work->index->n_entries; e++)
		n += work->index->entry[e].coll == coll;
	for (int i = 0; i < work->n_sizes && n > 0; i++) {
		bool mega = work->m[i] >= 1 << 20;
		printf("| %s | %s | %d | %lld %s |", name, collective_name(coll), n,
		    (long long)(mega ? work->m[i] >> 20 : work->m[i] >> 10), mega ? "MiB" : "KiB");
		for (int c = 0; c < COLUMNS; c++)
			put_column(work, coll, i, c);
		printf("\n");
	}
}

static Status
simulate_all(Ctx *ctx, struct work *work)
{
	int n = work->index->n_entries;
	const Pool pool = { .n_tasks = n, .n_workers = pool_cpus(), .run = run_job, .of = work };
	work->point = shared_array((size_t)n * (size_t)work->n_sizes, sizeof *work->point);
	return work->point ? pool_run_all(ctx, &pool) : fail_memory(ctx);
}

static Status
read_input(Ctx *ctx, char **argv, struct work *work)
{
	static const char *const none[] = { NULL };
	Text machine = { 0 }, text = { 0 };
	Topology *topo;
	Index *index;
	TRY(file_read(ctx, argv[2], &machine));
	TRY(file_read(ctx, argv[3], &text));
	TRY(topo_read(ctx, argv[2], none, machine.data, machine.size, &topo));
	TRY(index_read(ctx, argv[3], text.data, text.size, &index));
	text_free(&machine);
	text_free(&text);
	work->machine = topo;
	work->index = index;
	return index_check_gpus(ctx, argv[3], index, topo);
}

int
main(int argc, char **argv)
{
	struct work work = { .n_sizes = 4, .m = { 64 << 10, 1 << 20, 100 << 20, 1 << 30 } };
	Ctx ctx;
	int wrong = 0;
	if (argc < 4 || argc > 4 + SIZES) {
		fprintf(stderr, "usage: sizes NAME MACHINE INDEX [SIZE...]\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		work.m[i - 4] = atoll(argv[i]);
	work.n_sizes = argc > 4 ? argc - 4 : work.n_sizes;
	ctx_init(&ctx);
	if (read_input(&ctx, argv, &work) != OK || simulate_all(&ctx, &work) != OK) {
		fprintf(stderr, "sizes: %s\n", ctx.error.text);
		return 2;
	}
	for (int e = 0; e < work.index->n_entries; e++)
		for (int i = 0; i < work.n_sizes; i++)
			wrong += check_point(&work, e, i);
	put_rows(&work, argv[1], BROADCAST);
	put_rows(&work, argv[1], ALLREDUCE);
	ctx_free(&ctx);
	return wrong != 0;
}
