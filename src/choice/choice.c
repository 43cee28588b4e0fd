/* The best candidate for a message.
 *
 * A candidate's time is that of sim_run_best, as `blinkc simulate` has it. It costs some simulations, so first each
 * candidate gets a floor, the least of all its chunk sizes (floor.c), which costs a thousandth of one. What was chosen
 * for the last size is simulated first, as neighbours often have the same; then candidates by ascending floors, until
 * the next floor is above the best time: those that are left cannot be better. A simulation ends once it has taken
 * longer than the best time. Of equal times the candidate that comes first is chosen. When time is over the best of
 * those simulated is taken, at least one. */
#include "choice/candidates.h"
#include "simulate/floor.h"

#include <stdlib.h>

struct ranked {
	int64_t floor;
	int candidate;
};

/* Of all chunk sizes that sim_run_best may try. */
static int64_t
least_floor(const Choices *choices, int i, int64_t m)
{
	Floor *of = choices->candidate[i].floor;
	int64_t longest = floor_of_message(of, m);
	int64_t chunk = sim_least_chunk(sim_protocol(choices->candidate[i].sim, &choices->p, m));
	int64_t least = floor_of_chunk(of, chunk);
	while (chunk < longest) {
		chunk *= 2;
		int64_t floor = floor_of_chunk(of, chunk);
		least = floor < least ? floor : least;
	}
	return least;
}

static int
by_floor(const void *a, const void *b)
{
	const struct ranked *p = a, *q = b;
	if (p->floor != q->floor)
		return (p->floor > q->floor) - (p->floor < q->floor);
	return (p->candidate > q->candidate) - (p->candidate < q->candidate);
}

/* *time: INT64_MAX: more than `most` ps. */
static Status
simulate(Ctx *ctx, Choices *choices, int i, int64_t m, int64_t most, int64_t *time, int64_t *chunk)
{
	ArenaMark run = arena_mark(&ctx->run);
	const SimAsk ask = { .p = choices->p, .m = m };
	SimResult result;
	progress(ctx, "message of %lld bytes by %s", (long long)m, choices->candidate[i].name);
	TRY(sim_run_best_within(ctx, choices->candidate[i].sim, &ask, choices->candidate[i].floor, most, &result));
	arena_release(&ctx->run, run);
	choices->n_simulated++;
	*time = result.time;
	*chunk = result.chunk;
	return OK;
}

/* The candidate replaces the best one if it is better. */
static Status
consider(Ctx *ctx, Choices *choices, int i, ChoicePoint *out)
{
	int64_t time, chunk, most = i < out->best ? out->time : out->time - 1;
	TRY(simulate(ctx, choices, i, out->m, most, &time, &chunk));
	if (time > most)
		return OK;
	out->best = choices->last = i;
	out->time = time;
	out->chunk = chunk;
	return OK;
}

static bool
has_time(Ctx *ctx)
{
	return progress(ctx, "other algorithms") > 0;
}

static Status
find_best(Ctx *ctx, Choices *choices, ChoicePoint *out)
{
	struct ranked *order;
	TRY(TEMP(ctx, order, choices->n));
	for (int i = 0; i < choices->n; i++)
		order[i] = (struct ranked){ least_floor(choices, i, out->m), i };
	qsort(order, (size_t)choices->n, sizeof *order, by_floor);
	int first = choices->last < 0 ? order[0].candidate : choices->last;
	out->time = INT64_MAX;
	out->best = choices->n;
	TRY(consider(ctx, choices, first, out));
	for (int k = 0; k < choices->n && order[k].floor <= out->time && has_time(ctx); k++)
		if (order[k].candidate != first)
			TRY(consider(ctx, choices, order[k].candidate, out));
	return OK;
}

/* ---- interface ---- */

Status
choice_prepare(Ctx *ctx, const Job *job, const SimParameters *p, Choices **out)
{
	return choice_prepare_of(ctx, job, NULL, 0, p, out);
}

Status
choice_prepare_of(Ctx *ctx, const Job *job, const Ask *ask, int n, const SimParameters *p, Choices **out)
{
	Choices *choices;
	TRY(NEW(ctx, choices, 1));
	choices->p = *p;
	choices->last = -1;
	TRY(n > 0 ? candidates_of(ctx, job, ask, n, choices) : candidates_find(ctx, job, choices));
	for (int i = 0; i < choices->n; i++)
		TRY(floor_prepare(ctx, choices->candidate[i].sim, &choices->p, &choices->candidate[i].floor));
	*out = choices;
	return OK;
}

/* By the bound that is proven best: candidates may have proven lower ones. */
static Status
least_time(Ctx *ctx, const Choices *choices, int64_t m, int64_t *out)
{
	const SimAsk ask = { .p = choices->p, .m = m, .chunk = m };
	int best = 0;
	for (int i = 1; i < choices->n; i++)
		if (frac_cmp(choices->candidate[i].sched->bound.rate, choices->candidate[best].sched->bound.rate) < 0)
			best = i;
	return sim_least_time(ctx, choices->candidate[best].sim, &ask, out);
}

Status
choice_of_size(Ctx *ctx, Choices *choices, int64_t m, ChoicePoint *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	*out = (ChoicePoint){ .m = m };
	TRY(find_best(ctx, choices, out));
	TRY(least_time(ctx, choices, m, &out->least));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
choice_times(Ctx *ctx, Choices *choices, int64_t m, int64_t *time, int64_t *chunk)
{
	int64_t unused;
	for (int i = 0; i < choices->n; i++)
		TRY(simulate(ctx, choices, i, m, INT64_MAX, &time[i], chunk ? &chunk[i] : &unused));
	return OK;
}

Status
choice_pareto(Ctx *ctx, Choices *choices, int64_t *latency, bool *optimal)
{
	TRY(choice_times(ctx, choices, 1, latency, NULL));
	for (int i = 0; i < choices->n; i++) {
		const Candidate *c = choices->candidate;
		optimal[i] = true;
		for (int k = 0; k < choices->n; k++) {
			int rate = frac_cmp(c[k].rate, c[i].rate);
			bool as_good = latency[k] <= latency[i] && rate >= 0;
			bool equal = latency[k] == latency[i] && rate == 0;
			optimal[i] = optimal[i] && (!as_good || (equal && k >= i));
		}
	}
	return OK;
}

int64_t
choice_floor(const Choices *choices, int i, int64_t m, int64_t chunk)
{
	floor_of_message(choices->candidate[i].floor, m);
	return floor_of_chunk(choices->candidate[i].floor, chunk);
}

Status
choice_least(Ctx *ctx, const Choices *choices, int64_t m, int64_t *least)
{
	SimAsk ask = { .p = choices->p, .m = m, .chunk = m };
	const Candidate *best = &choices->candidate[0];
	int64_t packets;
	for (int i = 1; i < choices->n; i++)
		if (frac_cmp(choices->candidate[i].sched->bound.rate, best->sched->bound.rate) < 0)
			best = &choices->candidate[i];
	ask.p.packet_most = m;
	ask.p.line_most = 0;
	TRY(sim_least_time(ctx, best->sim, &ask, &packets));
	*least = packets < *least ? packets : *least;
	return OK;
}
