/* What changed in meaning, as JSON (schemas/diff.schema.json): a line for each difference. */
#include "diff.h"

#include "passes.h"

#include <math.h>

/* Logarithms of other libraries may be other in their last digits. */
static void
put_ratio(Text *out, double ratio)
{
	text_number(out, floor(ratio * 1e9 + 0.5) / 1e9);
}

static void
put_side(Text *out, const char *name, const Schedule *sched, int depth)
{
	text_printf(out, ",\n      \"%s\": ", name);
	if (!sched) {
		text_put(out, "null");
		return;
	}
	text_put(out, "{ \"generator\": ");
	text_json(out, sched->generator);
	text_put(out, ", \"version\": ");
	text_json(out, sched->version);
	text_printf(out, ", \"collective\": \"%s\", \"root\": ", collective_name(sched->coll));
	sched->root < 0 ? text_put(out, "null") : text_int(out, sched->root);
	text_put(out, ", \"algorithm\": ");
	text_json(out, sched->algorithm);
	text_put(out, ", \"rate\": ");
	text_gb(out, sched->achieved);
	text_put(out, ", \"bound\": ");
	text_gb(out, sched->bound.rate);
	text_printf(out, ", \"trees\": %d, \"depth\": %d }", sched->n_segments, depth);
}

static void
put_difference(Text *out, const Difference *difference)
{
	static const char *const change[] = { "worse", "other", "better" };
	text_printf(out, "        { \"kind\": \"%s\", \"change\": \"%s\"", difference_name(difference->kind), change[difference->sign + 1]);
	if (difference->job) {
		text_put(out, ", \"job\": ");
		text_put(out, difference->job);
	}
	if (difference->old_tree >= 0)
		text_printf(out, ", \"old_tree\": %d", difference->old_tree);
	if (difference->new_tree >= 0)
		text_printf(out, ", \"new_tree\": %d", difference->new_tree);
	text_put(out, ", \"old\": ");
	text_put(out, difference->old ? difference->old : "null");
	text_put(out, ", \"new\": ");
	text_put(out, difference->new ? difference->new : "null");
	text_put(out, ", \"message\": ");
	text_json(out, difference->text);
	text_put(out, " }");
}

void
emit_diff_json(const Comparison *comparison, Text *out)
{
	const Differences *list = &comparison->list;
	text_put(out, "    {\n      \"file\": ");
	comparison->file ? text_json(out, comparison->file) : text_put(out, "null");
	text_printf(out, ",\n      \"state\": \"%s\",\n      \"fails\": %s", diff_state_name(comparison->state), comparison->fails ? "true" : "false");
	put_side(out, "old", comparison->old, comparison->old_depth);
	put_side(out, "new", comparison->new, comparison->new_depth);
	text_put(out, ",\n      \"differences\": [");
	for (int i = 0; i < list->n; i++) {
		text_put(out, i ? ",\n" : "\n");
		put_difference(out, &list->difference[i]);
	}
	text_put(out, list->n ? "\n      ],\n      \"notes\": [" : "],\n      \"notes\": [");
	for (int i = 0; i < list->n_notes; i++) {
		text_put(out, i ? ", " : "");
		text_json(out, list->note[i]);
	}
	text_put(out, "]\n    }");
}

void
emit_diff_json_begin(const DiffSummary *summary, Text *out)
{
	text_put(out, "{\n  \"format\": \"blink-diff\",\n  \"version\": 1,\n  \"old\": ");
	text_json(out, summary->old);
	text_put(out, ",\n  \"new\": ");
	text_json(out, summary->new);
	text_put(out, ",\n  \"files\": [\n");
}

void
emit_diff_json_end(const DiffSummary *summary, Text *out)
{
	text_put(out, "\n  ],\n  \"summary\": {\n");
	for (int s = 0; s < N_DIFF_STATES; s++)
		text_printf(out, "    \"%s\": %d,\n", diff_state_name((DiffState)s), summary->count[s]);
	text_printf(out, "    \"failing\": %d,\n    \"rate\": ", summary->failing);
	if (summary->n_rates == 0) {
		text_put(out, "null\n  }\n}\n");
		return;
	}
	text_printf(out, "{ \"compared\": %d, \"lower\": %d, \"higher\": %d, \"mean\": ", summary->n_rates, summary->lower, summary->higher);
	put_ratio(out, summary->mean);
	text_put(out, ", \"worst\": ");
	put_ratio(out, summary->worst);
	text_put(out, ", \"worst_file\": ");
	summary->worst_file ? text_json(out, summary->worst_file) : text_put(out, "null");
	text_put(out, " }\n  }\n}\n");
}
