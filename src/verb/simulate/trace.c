/* Trace events of Chrome: each step on each of its links, from when its bytes begin to move. Events of one row must not
 * overlap, so a link that carries several steps at once has more rows: a step takes the first one that is free.
 * Times are us with six digits, which are whole ps. */
#include "base/json_write.h"
#include "verb/simulate/simulation.h"

#include <stdlib.h>

/* A step on a link. */
struct use {
	int link, step, lane;
	int64_t begin, end;
};

static int
by_link_and_time(const void *x, const void *y)
{
	const struct use *a = x, *b = y;
	if (a->link != b->link)
		return a->link < b->link ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

static Status
list_uses(Ctx *ctx, const Simulation *s, const SimResult *result, struct use **out, int *n)
{
	size_t all = 0;
	for (int64_t i = 0; i < result->n_steps; i++)
		all += (size_t)s->plan->hop[result->step[i].hop].n_links;
	TRY(TEMP(ctx, *out, all));
	*n = 0;
	for (int i = 0; i < (int)result->n_steps; i++) {
		const SimStep *step = &result->step[i];
		const SimHop *hop = &s->plan->hop[step->hop];
		for (int k = 0; k < hop->n_links; k++)
			(*out)[(*n)++] = (struct use){ hop->link[k], i, 0, step->move, step->end };
	}
	qsort(*out, (size_t)*n, sizeof **out, by_link_and_time);
	return OK;
}

/* Lanes of each link: n_lanes[link]. */
static Status
choose_lanes(Ctx *ctx, struct use *use, int n, int *n_lanes)
{
	int64_t *free_at;
	TRY(TEMP(ctx, free_at, n));
	for (int i = 0; i < n; i++) {
		int *lanes = &n_lanes[use[i].link], lane = 0;
		while (lane < *lanes && free_at[lane] > use[i].begin)
			lane++;
		if (out_of_time(ctx, lane + 1))
			return fail_asked(ctx, LIMIT, "budget", "a trace of %d steps on links: %d of them have a "
			    "row: want more time, or larger chunks", n, i);
		*lanes += lane == *lanes;
		use[i].lane = lane;
		free_at[lane] = use[i].end;
	}
	return OK;
}

static void
put_time(JsonWriter *w, const char *name, int64_t ps)
{
	json_value(w, name);
	text_printf(w->out, "%lld.%06lld", (long long)(ps / (PS_PER_NS * NS_PER_US)),
	    (long long)(ps % (PS_PER_NS * NS_PER_US)));
}

static void
put_name(JsonWriter *w, const Simulation *s, int link, int lane, int tid)
{
	Text name = { 0 };
	put_link(&name, s->plan->sched->topo, link);
	if (lane > 0)
		text_printf(&name, " +%d", lane);
	json_object(w, NULL, JSON_LINE);
	json_string(w, "ph", "M");
	json_string(w, "name", "thread_name");
	json_int(w, "pid", 0);
	json_int(w, "tid", tid);
	json_object(w, "args", JSON_LINE);
	json_string(w, "name", name.data ? name.data : "");
	json_end(w);
	json_end(w);
	text_drop(w->out, &name);
}

static void
put_use(JsonWriter *w, const Simulation *s, const SimStep *step, const struct use *use, int tid)
{
	const SimHop *hop = &s->plan->hop[step->hop];
	Text name = { 0 };
	if (s->segment_name)
		text_printf(&name, "%s,", s->segment_name[hop->segment]);
	else
		put_hop(&name, s, hop);
	text_printf(&name, " %d -> %d %s %lld", hop->src, hop->dst, what_moves(s), (long long)step->chunk);
	json_object(w, NULL, JSON_LINE);
	json_string(w, "ph", "X");
	json_string(w, "name", name.data ? name.data : "");
	json_int(w, "pid", 0);
	json_int(w, "tid", tid);
	put_time(w, "ts", use->begin);
	put_time(w, "dur", use->end - use->begin);
	json_end(w);
	text_drop(w->out, &name);
}

Status
trace_write(Ctx *ctx, const Simulation *s, const SimRow *row, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	JsonWriter w = { .out = out };
	int n, n_links = s->plan->sched->topo->n_links, *n_lanes, *tid, next = 1;
	struct use *use;
	TRY(list_uses(ctx, s, &row->result, &use, &n));
	TRY(TEMP_EACH(ctx, n_links, n_lanes, tid));
	TRY(choose_lanes(ctx, use, n, n_lanes));
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "displayTimeUnit", "ns");
	json_array(&w, "traceEvents", JSON_ROWS);
	for (int l = 0; l < n_links; l++) {
		tid[l] = next;
		for (int lane = 0; lane < n_lanes[l]; lane++)
			put_name(&w, s, l, lane, next++);
	}
	for (int i = 0; i < n; i++)
		put_use(&w, s, &row->result.step[use[i].step], &use[i], tid[use[i].link] + use[i].lane);
	json_end(&w);
	json_end(&w);
	text_put(out, "\n");
	arena_release(&ctx->scratch, mark);
	return out->failed ? fail_memory(ctx) : OK;
}
