/* blinkc simulate of the phases of a job: the schedules of all groups at once, on the links that they share. */
#include "base/file.h"
#include "format/format.h"
#include "verb/job/job.h"
#include "verb/progress.h"
#include "verb/simulate/phases.h"
#include "verb/verb.h"
#include "workload/check.h"

#include <stdio.h>
#include <string.h>

/* A call of a phase: all of its groups begin together. */
struct call_times {
	const PlannedCall *call;
	int64_t begin;		/* ns */
	int64_t end;		/* ps; -1: not known, as there are too many steps to keep */
	int64_t alone;		/* ps from its beginning, if no other call were there */
	int first, n;		/* of its parts */
};

struct phase_run {
	Ctx *ctx;
	const Phases *phases;
	const PlannedPhase *phase;
	Simulation *s;		/* plan and row are those of the phase */
	SimPart *part;		/* a group of a call */
	int n_parts;
	struct call_times *call;
};

/* ---- what is asked ---- */

/* "5ms" at `text`, in ns; NULL: it is none; else what follows. */
static const char *
parse_offset(const char *text, int64_t *ns)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { "", 0 } };
	size_t n = strspn(text, "0123456789."), end = strcspn(text, ",");
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t size = strlen(units[i].unit);
		/* Without a unit 0 alone. */
		int64_t unit = units[i].ns ? units[i].ns : 1;
		if (end == n + size && strncmp(text + n, units[i].unit, size) == 0 && decimal_parse(text, n, unit, ns)
		    && *ns <= 1000 * INT64_C(1000000000) && (units[i].ns || *ns == 0))
			return text + end;
	}
	return NULL;
}

static Status
read_offsets(struct phase_run *run, const char *text)
{
	int c = 0;
	for (const char *at = text; at && c < run->phase->n_calls; c++) {
		at = parse_offset(at, &run->call[c].begin);
		if (!at)
			return fail(run->ctx, USAGE, "--offset: %.60s: want a time for each call, up to 1000s, as "
			    "0,5ms,200us", text);
		at = *at == ',' ? at + 1 : NULL;
		if (!at && c + 1 == run->phase->n_calls)
			return OK;
	}
	return text ? fail(run->ctx, USAGE, "--offset: %.60s: phase %s has %d calls: want as many times; --phase NAME "
	    "takes one phase", text, run->phase->name, run->phase->n_calls) : OK;
}

/* ---- simulation ---- */

/* All calls of a matrix as one. */
static Status
prepare_matrix(Ctx *ctx, const Schedule *sched, int times, SimPlan **out, int64_t *m)
{
	size_t n = (size_t)sched->topo->n_ranks;
	int64_t *bytes;
	TRY(NEW(ctx, bytes, n * n));
	for (size_t i = 0; i < n * n; i++)
		bytes[i] = sched->matrix->bytes[i] * times;
	return sim_prepare_matrix(ctx, sched, bytes, out, m);
}

static Status
list_parts(struct phase_run *run, const PhaseGroups *groups)
{
	Ctx *ctx = run->ctx;
	int n = 0;
	for (int c = 0; c < groups->n_calls; c++)
		n += groups->call[c].n_groups;
	TRY(NEW(ctx, run->part, n));
	for (int c = 0; c < groups->n_calls; c++) {
		const PhaseCall *call = &groups->call[c];
		run->call[c].first = run->n_parts;
		run->call[c].n = call->n_groups;
		for (int g = 0; g < call->n_groups; g++) {
			const Schedule *sched = call->group[g].sched;
			SimPlan *plan;
			int64_t m = call->bytes;
			progress(ctx, "%s: schedule %d of %d", run->phase->name, run->n_parts + 1, n);
			if (call->by_matrix)
				TRY(prepare_matrix(ctx, sched, call->times, &plan, &m));
			else
				TRY(sim_prepare(ctx, sched, &plan));
			run->part[run->n_parts++] = (SimPart){ plan, run->phase->call[c].group[g].rank,
				call->group[g].shared, m, run->call[c].begin };
		}
	}
	return OK;
}

static int64_t
largest(const struct phase_run *run)
{
	int64_t most = 1;
	for (int i = 0; i < run->n_parts; i++)
		most = run->part[i].m > most ? run->part[i].m : most;
	return most;
}

/* "tp allreduce 3" of each segment, for traces. */
static Status
name_segments(struct phase_run *run)
{
	const char **name;
	int n = 0;
	TRY(NEW(run->ctx, name, run->s->plan->sched->n_segments));
	for (int c = 0; c < run->phase->n_calls; c++)
		for (int g = 0; g < run->call[c].n; g++) {
			const SimPart *part = &run->part[run->call[c].first + g];
			Text text = { 0 };
			text_printf(&text, "%s %s %d", run->phase->call[c].groups,
			    collective_name(run->phase->call[c].coll), g);
			const char *kept = text_keep(&run->ctx->run, &text);
			if (!kept)
				return fail_memory(run->ctx);
			for (int s = 0; s < part->plan->sched->n_segments; s++)
				name[n++] = kept;
		}
	run->s->segment_name = name;
	return OK;
}

/* When the last step of each call has arrived. */
static Status
find_ends(struct phase_run *run, const SimResult *result)
{
	ArenaMark mark = arena_mark(&run->ctx->scratch);
	const SimPlan *plan = run->s->plan;
	int *call_of, n = 0;
	TRY(TEMP(run->ctx, call_of, plan->sched->n_segments));
	for (int c = 0; c < run->phase->n_calls; c++) {
		run->call[c].end = result->step ? run->call[c].begin * PS_PER_NS : -1;
		for (int p = run->call[c].first; p < run->call[c].first + run->call[c].n; p++)
			for (int s = 0; s < run->part[p].plan->sched->n_segments; s++)
				call_of[n++] = c;
	}
	for (int64_t i = 0; result->step && i < result->n_steps; i++) {
		struct call_times *call = &run->call[call_of[plan->hop[result->step[i].hop].segment]];
		call->end = result->step[i].arrive > call->end ? result->step[i].arrive : call->end;
	}
	arena_release(&run->ctx->scratch, mark);
	return OK;
}

static Status
simulate_alone(struct phase_run *run, int c, const SimAsk *whole)
{
	ArenaMark mark = arena_mark(&run->ctx->run);
	SimAsk ask = *whole;
	SimPlan *plan;
	SimResult result;
	TRY(sim_join(run->ctx, run->phases->topo, run->part + run->call[c].first, run->call[c].n, &plan));
	ask.steps = false;
	TRY(sim_run(run->ctx, plan, &ask, &result));
	run->call[c].alone = result.time - run->call[c].begin * PS_PER_NS;
	arena_release(&run->ctx->run, mark);
	return OK;
}

/* With the chunk size, a power of two, that takes least time: groups of unlike sizes may have several that are better
 * than their neighbours, so that all are tried whose steps are not too many. */
static Status
find_chunk(struct phase_run *run, const SimPlan *plan, SimAsk *ask)
{
	enum { LEAST_CHUNK = 16 << 10, MOST_STEPS = 1 << 20 };
	int64_t best = INT64_MAX, chunk = LEAST_CHUNK, found;
	while (chunk < ask->m)
		chunk *= 2;
	found = chunk;
	for (; chunk >= LEAST_CHUNK; chunk /= 2) {
		ArenaMark mark = arena_mark(&run->ctx->run);
		SimResult result;
		ask->chunk = chunk;
		progress(run->ctx, "%s: chunks of %lld bytes", run->phase->name, (long long)chunk);
		TRY(sim_run(run->ctx, plan, ask, &result));
		arena_release(&run->ctx->run, mark);
		found = result.time < best ? chunk : found;
		best = result.time < best ? result.time : best;
		if (result.n_steps > MOST_STEPS)
			break;
	}
	ask->chunk = found;
	return OK;
}

static Status
simulate_phase(struct phase_run *run, bool traced)
{
	Simulation *s = run->s;
	SimAsk ask = { .p = s->p, .m = largest(run), .chunk = s->chunk, .timed = true };
	SimPlan *plan;
	TRY(sim_join(run->ctx, run->phases->topo, run->part, run->n_parts, &plan));
	s->plan = plan;
	TRY(NEW(run->ctx, s->row, 1));
	s->n_rows = 1;
	progress(run->ctx, "%s: %d schedules at once", run->phase->name, run->n_parts);
	SimResult *result = &s->row[0].result;
	if (!s->chunk)
		TRY(find_chunk(run, plan, &ask));
	TRY(sim_run(run->ctx, plan, &ask, result));
	ask.steps = traced || result->n_steps <= LIMIT_SIM_KEPT;
	if (ask.steps)
		TRY(sim_run(run->ctx, plan, &ask, result));
	TRY(find_ends(run, result));
	for (int c = 0; c < run->phase->n_calls; c++)
		if (run->call[c].n > 0)
			TRY(simulate_alone(run, c, &ask));
	return traced ? name_segments(run) : OK;
}

/* ---- what is printed ---- */

static void
put_ps(Text *out, int64_t ps)
{
	Text text = { 0 };
	job_put_seconds(&text, (double)ps / 1e12);
	text_printf(out, "  %10s", ps < 0 ? "-" : text.data ? text.data : "");
	out->failed |= text.failed;
	text_free(&text);
}

static void
put_text(const struct phase_run *run, Text *out)
{
	const SimResult *result = &run->s->row[0].result;
	const PhaseLevel *last = &run->phase->level[run->phase->n_levels - 1];
	text_printf(out, "phase       %s: %d schedules at once\n  time        ", run->phase->name, run->n_parts);
	job_put_seconds(out, (double)result->time / 1e12);
	text_printf(out, " by %s, chunks of %lld bytes; ", executor_names.name[run->s->executor],
	    (long long)result->chunk);
	job_put_seconds(out, last->seconds);
	text_printf(out, " by links alone\n  %-34s  %10s  %10s  %10s\n", "call", "begins", "ends", "by itself");
	for (int c = 0; c < run->phase->n_calls; c++) {
		const PlannedCall *call = run->call[c].call;
		Text name = { 0 };
		text_printf(&name, "%s %s", call->groups, collective_name(call->coll));
		if (call->n_groups > 0)
			text_printf(&name, ", %d group%s", call->n_groups, call->n_groups == 1 ? "" : "s");
		text_printf(out, "  %-34s", name.data ? name.data : "");
		out->failed |= name.failed;
		text_free(&name);
		put_ps(out, run->call[c].begin * PS_PER_NS);
		put_ps(out, run->call[c].end);
		put_ps(out, run->call[c].alone);
		text_put(out, "\n");
	}
}

static void
put_json(JsonWriter *w, const struct phase_run *run)
{
	const SimResult *result = &run->s->row[0].result;
	json_object(w, NULL, JSON_BLOCK);
	json_string(w, "name", run->phase->name);
	json_int64(w, "time_ps", result->time);
	json_number(w, "planned_us", run->phase->level[run->phase->n_levels - 1].seconds * 1e6);
	json_int64(w, "chunk", result->chunk);
	json_int64(w, "steps", result->n_steps);
	json_array(w, "calls", JSON_ROWS);
	for (int c = 0; c < run->phase->n_calls; c++) {
		const struct call_times *call = &run->call[c];
		json_object(w, NULL, JSON_LINE);
		json_string(w, "groups", call->call->groups);
		json_string(w, "collective", collective_name(call->call->coll));
		json_int(w, "schedules", call->n);
		json_int64(w, "bytes", call->call->bytes);
		json_int(w, "times", call->call->times);
		json_int64(w, "begin_ps", call->begin * PS_PER_NS);
		if (call->end < 0)
			json_null(w, "end_ps");
		else
			json_int64(w, "end_ps", call->end);
		json_int64(w, "alone_ps", call->alone);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

/* ---- all phases ---- */

static Status
run_phase(Ctx *ctx, const Options *opt, const char *directory, const Phases *phases, int p, Simulation *s,
    struct phase_run *run)
{
	PhaseGroups groups;
	*run = (struct phase_run){ .ctx = ctx, .phases = phases, .phase = &phases->phase[p], .s = s };
	TRY(NEW(ctx, run->call, run->phase->n_calls));
	for (int c = 0; c < run->phase->n_calls; c++)
		run->call[c].call = &run->phase->call[c];
	TRY(read_offsets(run, opt->value[OPT_OFFSET]));
	TRY(phases_load(ctx, directory, phases, p, &groups));
	TRY(list_parts(run, &groups));
	return simulate_phase(run, opt->value[OPT_TRACE] != NULL);
}

static Status
check_options(Ctx *ctx, const Options *opt, const char *format, const Simulation *s)
{
	const char *option = opt->value[OPT_SIZE] ? "size" : opt->value[OPT_MATRIX] ? "matrix"
	    : opt->value[OPT_GPUS] ? "gpus" : opt->value[OPT_TOPOLOGY] ? "topology" : NULL;
	if (option)
		return fail(ctx, USAGE, "--%s: phases of a job have their sizes, GPUs and links", option);
	if (s->p.cores || s->p.by_memory)
		return fail(ctx, USAGE, "--parameters: phases of a job are simulated without cores and by_memory");
	return strcmp(format, "csv") == 0 ? fail(ctx, USAGE, "--format csv: of phases want text or json") : OK;
}

/* The phase that --phase names, or the number of all. */
static Status
choose_phases(Ctx *ctx, const Options *opt, const Phases *phases, int *first, int *end)
{
	const char *name = opt->value[OPT_PHASE];
	*first = 0;
	*end = phases->n_phases;
	for (int p = 0; name && p < phases->n_phases; p++)
		if (strcmp(phases->phase[p].name, name) == 0) {
			*first = p;
			*end = p + 1;
			return OK;
		}
	if (name)
		return fail(ctx, USAGE, "--phase: %.60s: there is no such phase, the first is %s", name,
		    phases->phase[0].name);
	if (opt->value[OPT_TRACE] && phases->n_phases > 1)
		return fail(ctx, USAGE, "--trace: %d phases: want one, by --phase", phases->n_phases);
	return OK;
}

Status
simulate_phases(Ctx *ctx, const Options *opt, const char *label, const Text *in, const char *format, Simulation *s,
    Text *out, Text *trace)
{
	const char *slash = strrchr(label, '/');
	const char *directory = arena_text(&ctx->run, label, slash ? slash + 1 - label : 0);
	JsonWriter w = { .out = out };
	Phases *phases;
	int first, end;
	bool json = strcmp(format, "json") == 0;
	if (!directory)
		return fail_memory(ctx);
	TRY(check_options(ctx, opt, format, s));
	TRY(phases_read(ctx, label, in->data, in->size, &phases));
	TRY(choose_phases(ctx, opt, phases, &first, &end));
	if (json) {
		json_file(&w, JSON_BLOCK, "blink-phase-simulation");
		json_string(&w, "topology", phases->topo->name);
		json_int(&w, "ranks", phases->topo->n_ranks);
		json_string(&w, "executor", executor_names.name[s->executor]);
		simulation_parameters(&w, "parameters", &s->p);
		json_array(&w, "phases", JSON_BLOCK);
	}
	for (int p = first; p < end; p++) {
		ArenaMark mark = arena_mark(&ctx->run);
		struct phase_run run;
		TRY(run_phase(ctx, opt, directory, phases, p, s, &run));
		if (json)
			put_json(&w, &run);
		else
			put_text(&run, out);
		if (opt->value[OPT_TRACE])
			TRY(trace_write(ctx, s, &s->row[0], trace));
		arena_release(&ctx->run, mark);
	}
	if (json) {
		json_end(&w);
		json_file_end(&w);
	}
	return out->failed ? fail_memory(ctx) : OK;
}
