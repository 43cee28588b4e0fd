/* What a job takes, for people and for programs. */
#include "base/json_write.h"
#include "verb/job/job.h"

void
job_put_seconds(Text *out, double seconds)
{
	if (seconds < 1e-3)
		text_printf(out, "%.4g us", seconds * 1e6);
	else if (seconds < 1)
		text_printf(out, "%.4g ms", seconds * 1e3);
	else
		text_printf(out, "%.4g s", seconds);
}

static void
put_bytes(Text *out, int64_t bytes)
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB" };
	int i = 0;
	for (; i < 3 && bytes % 1024 == 0 && bytes >= 1024; i++)
		bytes /= 1024;
	text_printf(out, "%lld %s", (long long)bytes, unit[i]);
}

/* "4 groups of 2", or "3 groups of 2 to 4". */
static void
put_groups(Text *out, const PlannedCall *call)
{
	int least = call->group[0].n, most = least;
	for (int g = 1; g < call->n_groups; g++) {
		least = call->group[g].n < least ? call->group[g].n : least;
		most = call->group[g].n > most ? call->group[g].n : most;
	}
	text_printf(out, "%d group%s of %d", call->n_groups, call->n_groups == 1 ? "" : "s", least);
	if (most > least)
		text_printf(out, " to %d", most);
}

static void
put_call(Text *out, const PlannedCall *call)
{
	if (call->n_groups == 0) {
		text_printf(out, "  %s %s: groups of one rank, nothing moves\n", call->groups,
		    collective_name(call->coll));
		return;
	}
	text_printf(out, "  %s %s: ", call->groups, collective_name(call->coll));
	put_groups(out, call);
	text_put(out, ", ");
	if (call->by_matrix)
		text_printf(out, "unequal blocks, %.6g MB between ranks", (double)call->between / 1e6);
	else
		put_bytes(out, call->bytes);
	if (call->times > 1)
		text_printf(out, ", %d times", call->times);
	if (call->priority > FIRST_PRIORITY)
		text_printf(out, ", priority %d", call->priority);
	text_put(out, "\n");
}

/* What it gains to plan groups together. */
static void
put_gain(Text *out, const PlannedPhase *phase, bool together, bool shares, double seconds)
{
	text_put(out, "  each alone  ");
	job_put_seconds(out, phase->alone);
	if (together && phase->alone <= seconds * (1 + 1e-9))
		text_printf(out, ": no gain, as the links that limit it %s", shares
		    ? "carry no more than they must" : "are of one group each");
	else
		text_printf(out, ", %.3f times as long", phase->alone / seconds);
	text_put(out, "\n  rings       ");
	if (phase->rings < 0) {
		text_put(out, "none: some group has no ring\n");
		return;
	}
	job_put_seconds(out, phase->rings);
	text_printf(out, ", %.3f times as long\n", phase->rings / seconds);
}

void
job_text(const JobPlans *plans, Text *out)
{
	const Phases *phases = &plans->phases;
	double step = 0;
	text_printf(out, "job         %d ranks of %s, %d phase%s\n", phases->topo->n_ranks, phases->topo->name,
	    phases->n_phases, phases->n_phases == 1 ? "" : "s");
	for (int p = 0; p < phases->n_phases; p++) {
		const PlannedPhase *phase = &phases->phase[p];
		double seconds = phase->level[phase->n_levels - 1].seconds;
		text_printf(out, "phase       %s", phase->name);
		if (phase->times > 1)
			text_printf(out, ", %d times in a step", phase->times);
		text_put(out, "\n");
		for (int c = 0; c < phase->n_calls; c++)
			put_call(out, &phase->call[c]);
		for (int level = 0; level < phase->n_levels; level++) {
			const PhaseLevel *of = &phase->level[level];
			text_put(out, "  time        ");
			job_put_seconds(out, of->seconds);
			if (level < phase->n_levels - 1)
				text_printf(out, " for priority %d", of->priority);
			text_put(out, "; bound ");
			job_put_seconds(out, of->bound);
			text_printf(out, ", ratio %.3f\n", of->bound / of->seconds);
		}
		put_gain(out, phase, plans->in->schedules == SCHEDULES_TOGETHER, plans->plan[p].shares, seconds);
		step += seconds * phase->times;
	}
	if (phases->n_phases > 1 || phases->phase[0].times > 1) {
		text_put(out, "step        ");
		job_put_seconds(out, step);
		text_put(out, " for all phases, one after the other\n");
	}
}

void
job_json(const JobPlans *plans, const char *file, Text *out)
{
	const Phases *phases = &plans->phases;
	JsonWriter w = { .out = out };
	json_object(&w, NULL, JSON_TIGHT);
	json_string(&w, "file", file);
	json_string(&w, "topology", phases->topo->name);
	json_int(&w, "ranks", phases->topo->n_ranks);
	json_array(&w, "phases", JSON_TIGHT);
	for (int p = 0; p < phases->n_phases; p++) {
		const PlannedPhase *phase = &phases->phase[p];
		json_object(&w, NULL, JSON_TIGHT);
		json_string(&w, "name", phase->name);
		json_int(&w, "times", phase->times);
		json_array(&w, "levels", JSON_TIGHT);
		for (int level = 0; level < phase->n_levels; level++) {
			json_object(&w, NULL, JSON_TIGHT);
			json_int(&w, "priority", phase->level[level].priority);
			json_number(&w, "time", phase->level[level].seconds * 1e6);
			json_number(&w, "bound", phase->level[level].bound * 1e6);
			json_end(&w);
		}
		json_end(&w);
		json_number(&w, "alone", phase->alone * 1e6);
		if (phase->rings < 0)
			json_null(&w, "rings");
		else
			json_number(&w, "rings", phase->rings * 1e6);
		json_end(&w);
	}
	json_end(&w);
	json_end(&w);
	text_put(out, "\n");
}
