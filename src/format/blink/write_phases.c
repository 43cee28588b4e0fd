/* What groups of a job do at once (blink-phases(5)). */
#include "format/blink/schedule_writer.h"
#include "format/format.h"

/* Times are in us, 15 digits. */
static void
put_time(JsonWriter *w, const char *name, double seconds)
{
	if (seconds < 0)
		json_null(w, name);
	else
		json_number(w, name, seconds * 1e6);
}

static void
put_call(JsonWriter *w, const PlannedCall *call)
{
	json_object(w, NULL, JSON_BLOCK);
	json_string(w, "groups", call->groups);
	json_string(w, "collective", collective_name(call->coll));
	json_rank(w, "root", call->root);
	json_int64(w, "bytes", call->bytes);
	if (call->by_matrix)
		json_bool(w, "by_matrix", true);
	json_int(w, "times", call->times);
	json_int(w, "priority", call->priority);
	json_array(w, "schedules", JSON_BLOCK);
	for (int g = 0; g < call->n_groups; g++) {
		json_object(w, NULL, JSON_LINE);
		json_ints(w, "ranks", call->group[g].rank, call->group[g].n);
		json_string(w, "file", call->file[g]);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

static void
put_level(JsonWriter *w, const PhaseLevel *level, int number, int n_links)
{
	json_object(w, NULL, JSON_BLOCK);
	json_int(w, "priority", level->priority);
	put_time(w, "time", level->seconds);
	put_time(w, "bound", level->bound);
	json_array(w, "prices", JSON_BLOCK);
	for (int j = 0; j <= number; j++) {
		json_array(w, NULL, JSON_LINE);
		for (int l = 0; l < n_links; l++)
			json_int64(w, NULL, level->price[(size_t)j * (size_t)n_links + (size_t)l]);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

static void
put_phase(JsonWriter *w, const PlannedPhase *phase, int n_links)
{
	json_object(w, NULL, JSON_BLOCK);
	json_string(w, "name", phase->name);
	json_int(w, "times", phase->times);
	json_array(w, "calls", JSON_BLOCK);
	for (int c = 0; c < phase->n_calls; c++)
		put_call(w, &phase->call[c]);
	json_end(w);
	json_array(w, "levels", JSON_BLOCK);
	for (int level = 0; level < phase->n_levels; level++)
		put_level(w, &phase->level[level], level, n_links);
	json_end(w);
	put_time(w, "alone", phase->alone);
	put_time(w, "rings", phase->rings);
	json_end(w);
}

void
phases_write(const Phases *phases, Text *out)
{
	JsonWriter w = { .out = out };
	json_file(&w, JSON_BLOCK, "blink-phases");
	json_object(&w, "generator", JSON_LINE);
	json_string(&w, "name", "blinkc");
	json_string(&w, "version", BLINK_VERSION);
	json_end(&w);
	schedule_put_topology(&w, phases->topo);
	json_array(&w, "phases", JSON_BLOCK);
	for (int p = 0; p < phases->n_phases; p++)
		put_phase(&w, &phases->phase[p], phases->topo->n_links);
	json_end(&w);
	json_file_end(&w);
}
