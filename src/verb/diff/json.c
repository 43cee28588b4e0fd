/* Differences in meaning, as JSON (schemas/diff.schema.json): a line for each difference. */
#include "model/model.h"
#include "verb/diff/comparison.h"

#include <math.h>

/* Logarithms of other libraries may differ in their last digits. */
static double
rounded(double ratio)
{
	return floor(ratio * 1e9 + 0.5) / 1e9;
}

static void
put_schedule(JsonWriter *w, const char *name, const Schedule *sched, int depth)
{
	if (!sched) {
		json_null(w, name);
		return;
	}
	json_object(w, name, JSON_LINE);
	json_string(w, "generator", sched->generator);
	json_string(w, "version", sched->version);
	json_string(w, "collective", collective_name(sched->coll));
	json_rank(w, "root", sched->root);
	json_string(w, "algorithm", sched->algorithm);
	json_gb(w, "rate", sched->achieved);
	json_gb(w, "bound", sched->bound.rate);
	json_int(w, "trees", sched->n_segments);
	json_int(w, "depth", depth);
	json_end(w);
}

static void
put_difference(JsonWriter *w, const Difference *difference)
{
	static const char *const change[] = { "worse", "other", "better" };
	json_object(w, NULL, JSON_LINE);
	json_string(w, "kind", difference_name(difference->kind));
	json_string(w, "change", change[difference->sign + 1]);
	if (difference->job)
		json_raw(w, "job", difference->job);
	if (difference->old_tree >= 0)
		json_int(w, "old_tree", difference->old_tree);
	if (difference->new_tree >= 0)
		json_int(w, "new_tree", difference->new_tree);
	json_raw(w, "old", difference->old ? difference->old : "null");
	json_raw(w, "new", difference->new ? difference->new : "null");
	json_string(w, "message", difference->text);
	json_end(w);
}

void
emit_diff_json(const Comparison *comparison, Text *out)
{
	JsonWriter w = { .out = out, .indent = 2 };
	const Differences *list = &comparison->list;
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "file", comparison->file);
	json_string(&w, "state", diff_state_name(comparison->state));
	json_bool(&w, "fails", comparison->fails);
	put_schedule(&w, "old", comparison->old, comparison->old_depth);
	put_schedule(&w, "new", comparison->new, comparison->new_depth);
	json_array(&w, "differences", list->n ? JSON_BLOCK : JSON_LINE);
	for (int i = 0; i < list->n; i++)
		put_difference(&w, &list->difference[i]);
	json_end(&w);
	json_array(&w, "notes", JSON_LINE);
	for (int i = 0; i < list->n_notes; i++)
		json_string(&w, NULL, list->note[i]);
	json_end(&w);
	json_end(&w);
}

void
emit_diff_json_begin(const DiffSummary *summary, JsonWriter *w)
{
	json_file(w, JSON_BLOCK, "blink-diff");
	json_string(w, "old", summary->old);
	json_string(w, "new", summary->new);
	json_array(w, "files", JSON_BLOCK);
}

static void
put_rates(JsonWriter *w, const DiffSummary *summary)
{
	if (summary->n_rates == 0) {
		json_null(w, "rate");
		return;
	}
	json_object(w, "rate", JSON_LINE);
	json_int(w, "compared", summary->n_rates);
	json_int(w, "lower", summary->lower);
	json_int(w, "higher", summary->higher);
	json_number(w, "mean", rounded(summary->mean));
	json_number(w, "worst", rounded(summary->worst));
	json_string(w, "worst_file", summary->worst_file);
	json_end(w);
}

void
emit_diff_json_end(const DiffSummary *summary, JsonWriter *w)
{
	json_end(w);
	json_object(w, "summary", JSON_BLOCK);
	for (int s = 0; s < N_DIFF_STATES; s++)
		json_int(w, diff_state_name((DiffState)s), summary->count[s]);
	json_int(w, "failing", summary->failing);
	put_rates(w, summary);
	json_end(w);
	json_file_end(w);
}
