/* The critical path: from the step that ends last back to the call, by what let each begin. */
#include "base/array.h"
#include "verb/simulate/simulation.h"

/* Steps of one hop that follow each other are one run. */
static bool
extends(const SimStep *step, const PathRun *run)
{
	return step->hop == run->hop && step->chunk + 1 == run->first;
}

/* The steps of which each let the next begin, up to the last. Fails: NO_MEMORY. */
static Status
critical_path(Ctx *ctx, const SimPlan *plan, const SimResult *result, PathRun **out, int *n)
{
	PathRun *run = NULL;
	int room = 0;
	int64_t end = result->time;
	*n = 0;
	for (int i = result->last; i >= 0; i = result->step[i].cause) {
		const SimStep *step = &result->step[i];
		if (*n > 0 && extends(step, &run[*n - 1])) {
			run[*n - 1].first = step->chunk;
			run[*n - 1].begin = step->begin;
		} else {
			TRY(GROW(ctx, run, *n, room));
			run[(*n)++] = (PathRun){ step->hop, step->chunk, step->chunk, step->begin, end, false };
		}
		/* A cause that neither brought the chunk nor was the hop's own made room at the sender. */
		const SimHop *hop = &plan->hop[step->hop];
		const SimHop *by = step->cause >= 0 ? &plan->hop[result->step[step->cause].hop] : NULL;
		run[*n - 1].waited |= by && by != hop && by->to != hop->from && hop->feeder < 0;
		end = step->begin;
	}
	for (int i = 0; i < *n / 2; i++) {
		PathRun other = run[i];
		run[i] = run[*n - 1 - i];
		run[*n - 1 - i] = other;
	}
	*out = run;
	return OK;
}

enum { LINES_MOST = 24 };

static void
put_us(Text *out, int64_t ps)
{
	text_number(out, (double)ps / 1e6);
	text_put(out, " us");
}

static void
put_run(const Simulation *s, const PathRun *run, Text *out)
{
	const SimHop *hop = &s->plan->hop[run->hop];
	const Topology *topo = s->plan->sched->topo;
	text_put(out, "            ");
	put_hop(out, s, hop);
	text_put(out, ", ");
	text_printable(out, topo->vertex[hop->src].id);
	text_put(out, " -> ");
	text_printable(out, topo->vertex[hop->dst].id);
	text_printf(out, ", %s", what_moves(s));
	text_printf(out, run->first == run->last ? " %lld" : "s %lld to %lld", (long long)run->first,
	    (long long)run->last);
	text_put(out, run->waited ? ", after other steps of its GPU: " : ": ");
	put_us(out, run->end - run->begin);
	text_put(out, "\n");
}

Status
critical_path_text(Ctx *ctx, const Simulation *s, const SimRow *row, Text *out)
{
	PathRun *run;
	int n;
	if (!row->result.step) {
		text_printf(out, "path        not for %lld steps: for %lld or less\n", (long long)row->result.n_steps,
		    (long long)LIMIT_SIM_KEPT);
		return OK;
	}
	TRY(critical_path(ctx, s->plan, &row->result, &run, &n));
	if (n == 0)
		return OK;
	text_put(out, "path        of steps of which each let the next begin; from the call: ");
	put_us(out, run[0].begin);
	text_put(out, "\n");
	for (int i = 0; i < n; i++) {
		if (n > LINES_MOST && i == LINES_MOST / 2) {
			text_printf(out, "            ... %d more\n", n - LINES_MOST);
			i = n - LINES_MOST / 2;
		}
		put_run(s, &run[i], out);
	}
	return OK;
}
