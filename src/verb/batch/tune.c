/* blinkc tune: a batch whose jobs have the best algorithm for each size of messages. Where two sizes that follow each
 * other have the same, all sizes between them have it; else a size in the middle is looked at, until the boundary is
 * known to an eighth. The first range begins at 0, and the last has no end. Algorithms that come back at other sizes
 * have one file. */
#include "base/limits.h"
#include "verb/batch/batch.h"

#include <string.h>

/* Times jump where messages get too long for packets or lines: both sides of that are looked at. */
static void
add_end(int64_t most, Sizes *sizes)
{
	int at = 0, twice;
	while (at < sizes->n && sizes->m[at] < most)
		at++;
	twice = at < sizes->n && sizes->m[at] == most ? 1 : 2;
	if (at == 0 || at == sizes->n || sizes->n + twice > SIZES_MAX)
		return;
	memmove(&sizes->m[at + 2], &sizes->m[at + 2 - twice], (size_t)(sizes->n - at - 2 + twice) * sizeof *sizes->m);
	sizes->m[at] = most;
	sizes->m[at + 1] = most + 1;
	sizes->n += twice;
}

void
tuning_for(const Topology *machine, Tuning *tuning)
{
	sim_parameters_for(tuning->executor, &machine->parameters, &tuning->given, &tuning->p);
	const int64_t end[] = { tuning->p.line_above, tuning->p.packet_most, tuning->p.line_most };
	for (int i = 0; i < 3; i++)
		add_end(end[i], &tuning->sizes);
}

/* What is chosen from this size on. */
static void
take_point(Sweep *s, const ChoicePoint *point)
{
	if (s->n > 0 && s->way[s->n - 1] == point->best)
		return;
	if (s->n > 0)
		s->range[s->n - 1].to = point->m - 1;
	s->way[s->n] = point->best;
	s->range[s->n++] = (TunedRange){ .from = point->m, .time = point->time, .least = point->least };
}

/* Sizes above low's, up to high's. Each boundary adds one range, so that there is room for one more at the end. */
static Status
take_between(Ctx *ctx, Sweep *s, const ChoicePoint *low, const ChoicePoint *high)
{
	ChoicePoint middle;
	int64_t m = low->m + (high->m - low->m) / 2;
	if (low->best == high->best || high->m - low->m <= low->m / 8 || m == low->m || s->n > TUNED_RANGES / 2) {
		take_point(s, high);
		return OK;
	}
	TRY(s->at(ctx, s, m, &middle));
	TRY(take_between(ctx, s, low, &middle));
	return take_between(ctx, s, &middle, high);
}

Status
tune_sweep(Ctx *ctx, Sweep *s, const Sizes *sizes)
{
	ChoicePoint low, high;
	TRY(NEW(ctx, s->way, TUNED_RANGES));
	for (int i = 0; i < sizes->n; i++) {
		TRY(s->at(ctx, s, sizes->m[i], &high));
		if (i == 0)
			take_point(s, &high);
		else
			TRY(take_between(ctx, s, &low, &high));
		low = high;
	}
	s->range[0].from = 0;
	s->range[s->n - 1].to = LIMIT_MESSAGE;
	return OK;
}

static Status
write_schedule(Ctx *ctx, const Batch *b, const BatchPlan *plan, const TunedRange *range, const Compiled *made)
{
	char path[FILE_PATH_ROOM];
	const char *file;
	TRY(tuned_file(ctx, plan, range, &file));
	TRY(batch_path(ctx, b, file, path));
	return file_write_soon(ctx, path, &made->json);
}

/* The file of a range, unless an earlier range has it. */
static Status
finish_range(Ctx *ctx, const Sweep *s, const Batch *b, int p, int i)
{
	TunedRange *range = &s->range[i];
	BatchResult *result = &b->result[p];
	Compiled made = { 0 };
	const Candidate *c = &((const Choices *)s->of)->candidate[s->way[i]];
	for (int k = 0; k < i; k++)
		if (s->way[k] == s->way[i]) {
			const TunedRange *same = &s->range[k];
			memcpy(range->way, same->way, sizeof range->way);
			range->stated_rate = same->stated_rate;
			range->stated_bound = same->stated_bound;
			range->trees = same->trees;
			range->depth = same->depth;
			return OK;
		}
	memcpy(range->way, c->name, sizeof range->way);
	Status status = job_finish(ctx, &c->job, &c->plan, &made);
	if (status == OK)
		status = result_take(ctx, made.sched, result);
	if (status == OK)
		status = write_schedule(ctx, b, &b->plan[p], range, &made);
	text_free(&made.json);
	range->stated_rate = result->stated_rate;
	range->stated_bound = result->stated_bound;
	range->trees = result->trees;
	range->depth = result->depth;
	return status;
}

static Status
best_of_size(Ctx *ctx, const Sweep *s, int64_t m, ChoicePoint *out)
{
	return choice_of_size(ctx, s->of, m, out);
}

Status
tune_plan(Ctx *ctx, const Batch *b, const Job *job, int p)
{
	Sweep s = { .at = best_of_size, .range = b->range + (size_t)p * TUNED_RANGES };
	Choices *choices;
	TRY(choice_prepare(ctx, job, &b->tuning->p, &choices));
	s.of = choices;
	TRY(tune_sweep(ctx, &s, &b->tuning->sizes));
	for (int i = 0; i < s.n; i++)
		TRY(finish_range(ctx, &s, b, p, i));
	b->result[p].n_ranges = s.n;
	return OK;
}

/* ---- for people ---- */

static void
print_plan(FILE *to, const Batch *b, int p)
{
	const BatchPlan *plan = &b->plan[p];
	for (int i = 0; i < b->result[p].n_ranges; i++) {
		const TunedRange *range = &b->range[(size_t)p * TUNED_RANGES + (size_t)i];
		fprintf(to, "%-44.*s  %11lld  %10.5g  %10.5g  %s\n", (int)strlen(plan->file) - 5, plan->file,
		    (long long)range->from, (double)range->time / 1e6, (double)range->least / 1e6, range->way);
	}
}

void
tune_print(FILE *to, const Batch *b, bool verbose)
{
	enum { MOST = 32 };
	const Sizes *sizes = &b->tuning->sizes;
	fprintf(to, "tuned       %d plans for messages of %lld to %lld bytes, by %s\n", b->n_plans,
	    (long long)sizes->m[0], (long long)sizes->m[sizes->n - 1], executor_names.name[b->tuning->executor]);
	if (b->n_plans > MOST && !verbose)
		return;
	fprintf(to, "%-44s  %11s  %10s  %10s  algorithm\n", "plan", "from bytes", "time us", "least us");
	for (int p = 0; p < b->n_plans; p++)
		print_plan(to, b, p);
}
