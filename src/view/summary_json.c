/* The summary of a schedule as one line of JSON (blinkc-compile(1), Summary). Names of members end in their units. */
#include "base/json_write.h"
#include "schedule/schedule.h"
#include "view/view.h"

enum { MOST_GPUS = 256 };	/* that are listed */

static void
put_topology(JsonWriter *w, const Topology *topo)
{
	json_object(w, "topology", JSON_TIGHT);
	json_string(w, "name", topo->name);
	json_string(w, "digest", topo->digest);
	json_int(w, "ranks", topo->n_ranks);
	if (topo->n_ranks <= MOST_GPUS) {
		json_array(w, "gpus", JSON_TIGHT);
		for (int r = 0; r < topo->n_ranks; r++)
			json_string(w, NULL, topo->vertex[r].id);
		json_end(w);
	}
	json_names(w, "links", link_class_names, topo_classes(topo));
	json_end(w);
}

static void
put_matrix(JsonWriter *w, const ByteMatrix *matrix)
{
	if (!matrix)
		return;
	json_object(w, "matrix", JSON_TIGHT);
	json_number(w, "time_us", matrix->time);
	json_number(w, "bound_us", matrix->bound);
	json_number(w, "ratio", matrix->bound / matrix->time);
	json_end(w);
}

/* A rate that reaches its bound, or is below it by what its fraction was rounded by, has the ratio 1. */
static void
put_rate(JsonWriter *w, const Schedule *sched, const char *unproven)
{
	double achieved = frac_double(sched->achieved), bound = frac_double(sched->bound.rate);
	bool reached = frac_cmp(sched->achieved, sched->bound.rate) >= 0 || achieved >= bound * (1 - RATE_ROUNDING);
	Assumed assumed = bound_assumed(sched->topo, sched->coll, &sched->bound);
	json_gb(w, "rate_gb_per_s", sched->achieved);
	json_number(w, "link_gb_per_s", (double)topo_link_unit(sched->topo) / 1e9);
	json_gb(w, "bound_gb_per_s", sched->bound.rate);
	json_string(w, "certificate", certificate_name(sched->bound.kind));
	if (assumed.classes)
		json_names(w, "assumed_links", link_class_names, assumed.classes);
	json_string(w, "bound_of", *bound_claim(&sched->bound, sched->coll)
	    ? bound_claim(&sched->bound, sched->coll) + 1 : "");
	json_number(w, "ratio", reached ? 1 : achieved / bound);
	json_bool(w, "bound_reached", reached);
	json_string(w, "unproven", reached ? NULL : unproven);
}

static void
put_parts(JsonWriter *w, const Schedule *sched, const PartEnd *split)
{
	json_array(w, "parts", JSON_TIGHT);
	for (int i = 0; i < sched->n_parts; i++) {
		json_object(w, NULL, JSON_TIGHT);
		json_names(w, "links", link_class_names, sched->part[i].classes);
		json_gb(w, "rate_gb_per_s", sched->part[i].rate);
		json_us(w, "setup_us", sched->part[i].setup);
		json_end(w);
	}
	json_end(w);
	if (sched->n_parts > 1)
		json_int64(w, "divided_from_bytes", split[sched->n_parts - 1].from);
}

static void
put_baselines(JsonWriter *w, const Schedule *sched)
{
	json_array(w, "baselines", JSON_TIGHT);
	for (int i = 0; i < sched->n_baselines; i++) {
		const Baseline *baseline = &sched->baseline[i];
		json_object(w, NULL, JSON_TIGHT);
		json_string(w, "name", baseline->name);
		json_names(w, "links", link_class_names, baseline->classes);
		json_int(w, "rings", baseline->rings);
		json_bool(w, "through", baseline->through);
		json_number(w, "rate_gb_per_s", baseline->rate);
		if (baseline->rate > 0)
			json_number(w, "speedup", frac_double(sched->achieved) / 1e9 / baseline->rate);
		else
			json_null(w, "speedup");
		json_end(w);
	}
	json_end(w);
}

static void
put_latency(JsonWriter *w, const Schedule *sched, const int64_t *latency)
{
	json_array(w, "latency_us", JSON_TIGHT);
	for (int i = 0; i < (sched->n_parts ? sched->n_parts : 1); i++)
		json_us(w, NULL, latency[i]);
	json_end(w);
	json_names(w, "links_without_latency", link_class_names, sched_without_latency(sched));
}

static void
put_sizes(JsonWriter *w, const Summary *s, const PartEnd *split, const int64_t *latency)
{
	int64_t end[N_LINK_CLASSES];
	json_array(w, "sizes", JSON_TIGHT);
	for (int i = 0; i < s->n_sizes; i++) {
		int64_t m = s->size[i];
		double seconds = sched_seconds(s->sched, split, latency, m);
		json_object(w, NULL, JSON_TIGHT);
		json_int64(w, "bytes", m);
		if (s->sched->n_parts) {
			json_array(w, "part_bytes", JSON_TIGHT);
			split_message(split, s->sched->n_parts, m, end);
			for (int k = 0; k < s->sched->n_parts; k++)
				json_int64(w, NULL, end[k] - (k ? end[k - 1] : 0));
			json_end(w);
		}
		json_number(w, "time_us", seconds * 1e6);
		json_number(w, "rate_gb_per_s", (double)m / seconds / 1e9);
		if (s->sched->n_parts)
			json_number(w, "alone_time_us", sched_seconds_alone(s->sched, latency, m) * 1e6);
		json_end(w);
	}
	json_end(w);
}

/* What only the planner knows. */
static void
put_plan(JsonWriter *w, const Summary *s)
{
	if (s->best_of) {
		json_object(w, "best", JSON_TIGHT);
		json_string(w, "of", s->best_of);
		if (s->best.num > 0)
			json_gb(w, "rate_gb_per_s", s->best);
		else
			json_null(w, "rate_gb_per_s");
		json_end(w);
	}
	if (s->other_trees > 0) {
		json_object(w, "also", JSON_TIGHT);
		json_int(w, "trees", s->other_trees);
		json_int(w, "depth", s->other_depth);
		json_end(w);
	}
	if (s->cut_at) {
		json_object(w, "budget", JSON_TIGHT);
		json_number(w, "budget_s", s->budget);
		json_string(w, "cut_short", s->cut_at);
		json_end(w);
	}
}

static void
put_idle(JsonWriter *w, const Idle *idle)
{
	json_object(w, "idle", JSON_TIGHT);
	json_names(w, "links", link_class_names, idle->classes);
	if (idle->hybrid.num > 0) {
		json_gb(w, "hybrid_gb_per_s", idle->hybrid);
		json_number(w, "hybrid_from_bytes", idle->hybrid_from);
	}
	if (idle->pairs.num > 0)
		json_gb(w, "pair_routes_gb_per_s", idle->pairs);
	if (idle->bound.num > 0)
		json_gb(w, "all_links_bound_gb_per_s", idle->bound);
	json_end(w);
}

static void
put_relays(JsonWriter *w, const RelayGain *relays)
{
	json_object(w, "relays", JSON_TIGHT);
	json_array(w, "gpus", JSON_TIGHT);
	for (int i = 0; i < relays->n; i++)
		json_string(w, NULL, relays->gpu[i]);
	json_end(w);
	if (relays->connected)
		json_gb(w, "rate_without_gb_per_s", relays->rate);
	else
		json_null(w, "rate_without_gb_per_s");
	json_end(w);
}

static void
put_chosen(JsonWriter *w, const Chosen *chosen)
{
	json_object(w, "chosen", JSON_TIGHT);
	json_string(w, "way", chosen->way);
	json_int(w, "ways", chosen->n_ways);
	json_string(w, "executor", chosen->executor);
	json_int64(w, "bytes", chosen->bytes);
	json_int64(w, "chunk_bytes", chosen->chunk);
	json_ps(w, "time_us", chosen->time);
	json_ps(w, "least_us", chosen->least);
	if (chosen->at_least)
		json_bool(w, "at_least", true);
	json_array(w, "others", JSON_TIGHT);
	for (int i = 0; i < chosen->n_others; i++) {
		json_object(w, NULL, JSON_TIGHT);
		json_string(w, "name", chosen->other[i].name);
		json_string(w, "by", chosen->other[i].by);
		json_ps(w, "time_us", chosen->other[i].time);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

Status
summary_json(Ctx *ctx, const Summary *s, Text *out)
{
	const Schedule *sched = s->sched;
	JsonWriter w = { .out = out };
	PartEnd *split = NULL;
	int64_t latency[N_LINK_CLASSES];
	int depth;
	TRY(sched_depth(ctx, sched, &depth));
	TRY(sched_latency(ctx, sched, latency));
	if (sched->n_parts)
		TRY(sched_split(ctx, sched->topo->name, sched, &split));
	json_file(&w, JSON_TIGHT, "blink-summary");
	if (s->file)
		json_string(&w, "file", s->file);
	put_topology(&w, sched->topo);
	json_string(&w, "collective", collective_name(sched->coll));
	json_rank(&w, "root", sched->root);
	json_string(&w, "algorithm", sched->algorithm);
	json_int64(&w, "trees", sched_trees(sched));
	json_int(&w, "depth", depth);
	if (sched->n_parts)
		put_parts(&w, sched, split);
	put_matrix(&w, sched->matrix);
	put_rate(&w, sched, sched->matrix ? NULL : s->unproven);
	if (s->doubt)
		json_string(&w, "doubtful", s->doubt);
	put_baselines(&w, sched);
	put_latency(&w, sched, latency);
	put_sizes(&w, s, split, latency);
	put_plan(&w, s);
	if (s->idle)
		put_idle(&w, s->idle);
	if (s->relays)
		put_relays(&w, s->relays);
	if (s->chosen)
		put_chosen(&w, s->chosen);
	json_file_end(&w);
	return out->failed ? fail_memory(ctx) : OK;
}
