/* blinkc tune: a batch whose jobs have the best algorithm for each size of messages. Where two sizes that follow each
 * other have the same, all sizes between them have it; else a size in the middle is looked at, until the boundary is
 * known to an eighth. The first range begins at 0, and the last has no end. Algorithms that come back at other sizes
 * have one file. */
#include "base/file.h"
#include "base/limits.h"
#include "base/pool.h"
#include "choice/choice.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"
#include "verb/simulate/simulation.h"
#include "verb/verb.h"

#include <string.h>

#define DEFAULT_SIZES "1K-1G"

struct sweep {
	Ctx *ctx;
	Choices *choices;
	TunedRange *range;	/* of one plan, TUNED_RANGES */
	int *way;		/* of each range */
	int n;
};

/* What is chosen from this size on. */
static void
take_point(struct sweep *s, const ChoicePoint *point)
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
take_between(struct sweep *s, const ChoicePoint *low, const ChoicePoint *high)
{
	ChoicePoint middle;
	int64_t m = low->m + (high->m - low->m) / 2;
	if (low->best == high->best || high->m - low->m <= low->m / 8 || m == low->m || s->n > TUNED_RANGES / 2) {
		take_point(s, high);
		return OK;
	}
	TRY(choice_of_size(s->ctx, s->choices, m, &middle));
	TRY(take_between(s, low, &middle));
	return take_between(s, &middle, high);
}

static Status
sweep_sizes(struct sweep *s, const Sizes *sizes)
{
	ChoicePoint low, high;
	for (int i = 0; i < sizes->n; i++) {
		TRY(choice_of_size(s->ctx, s->choices, sizes->m[i], &high));
		if (i == 0)
			take_point(s, &high);
		else
			TRY(take_between(s, &low, &high));
		low = high;
	}
	s->range[0].from = 0;
	s->range[s->n - 1].to = LIMIT_MESSAGE;
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

static Status
write_schedule(Ctx *ctx, const Batch *b, const BatchPlan *plan, const TunedRange *range, const Compiled *made)
{
	char path[FILE_PATH_ROOM];
	BatchPlan to = *plan;
	TRY(tuned_file(ctx, plan, range, &to.file));
	TRY(batch_path(ctx, b, &to, path));
	return file_write_soon(ctx, path, &made->json);
}

/* The file of a range, unless an earlier range has it. */
static Status
finish_range(const struct sweep *s, const Batch *b, int p, int i)
{
	Ctx *ctx = s->ctx;
	TunedRange *range = &s->range[i];
	BatchResult *result = &b->result[p];
	Compiled made = { 0 };
	const Candidate *c = &s->choices->candidate[s->way[i]];
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

Status
tune_plan(Ctx *ctx, const Batch *b, const Job *job, int p)
{
	struct sweep s = { .ctx = ctx, .range = b->range + (size_t)p * TUNED_RANGES };
	TRY(NEW(ctx, s.way, TUNED_RANGES));
	TRY(choice_prepare(ctx, job, &b->tuning->p, &s.choices));
	TRY(sweep_sizes(&s, &b->tuning->sizes));
	for (int i = 0; i < s.n; i++)
		TRY(finish_range(&s, b, p, i));
	b->result[p].n_ranges = s.n;
	return OK;
}

/* ---- the verb ---- */

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

/* Times jump where messages get too long for packets: both sides of that are looked at. */
static void
add_end_of_packets(int64_t most, Sizes *sizes)
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

static Status
parse_tuning(Ctx *ctx, const Options *opt, Tuning *out)
{
	const char *text = opt->value[OPT_SIZE] ? opt->value[OPT_SIZE] : DEFAULT_SIZES;
	TRY(request_sizes(ctx, text, &out->sizes));
	for (int i = 1; i < out->sizes.n; i++)
		if (out->sizes.m[i] <= out->sizes.m[i - 1])
			return fail(ctx, USAGE, "--size: %.80s: want ascending sizes", text);
	if (out->sizes.m[out->sizes.n - 1] > LIMIT_MESSAGE)
		return fail(ctx, USAGE, "--size: %.80s: want sizes up to 2^53, as an index has them", text);
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR], &out->executor));
	TRY(request_parameters(ctx, opt->value[OPT_PARAMETERS], out->executor, &out->p));
	add_end_of_packets(out->p.packet_most, &out->sizes);
	return OK;
}

Status
verb_tune(Ctx *ctx, const Options *opt)
{
	Tuning tuning;
	TRY(parse_tuning(ctx, opt, &tuning));
	return batch_run(ctx, opt, &tuning);
}
