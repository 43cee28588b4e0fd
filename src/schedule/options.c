/* The options of a schedule: what was asked of the program that made it. */
#include "schedule/schedule.h"
#include "base/json_write.h"

#include <string.h>

enum { MOST_OPTIONS = 20 };

static Status
put_option(Ctx *ctx, const char *key, Text *value, Schedule *sched)
{
	const char *text = text_keep(&ctx->run, value);
	sched->option[sched->n_options++] = (Option){ key, text };
	return text ? OK : fail_memory(ctx);
}

static Status
put_fraction(Ctx *ctx, const char *key, Frac value, Schedule *sched)
{
	char digits[48];
	Text text = { 0 };
	decimal_text(value.num, value.den, 9, digits);
	text_put(&text, digits);
	return put_option(ctx, key, &text, sched);
}

static Status
put_word(Ctx *ctx, const char *key, const char *word, Schedule *sched)
{
	Text text = { 0 };
	text_json(&text, word);
	return put_option(ctx, key, &text, sched);
}

/* A limit is recorded only where there is one. */
static Status
put_limit(Ctx *ctx, const char *key, int64_t value, Schedule *sched)
{
	Text text = { 0 };
	if (!value)
		return OK;
	text_printf(&text, "%lld", (long long)value);
	return put_option(ctx, key, &text, sched);
}

static Status
put_gpus(Ctx *ctx, Schedule *sched)
{
	Text gpus = { 0 };
	JsonWriter w = { .out = &gpus };
	json_array(&w, NULL, JSON_LINE);
	for (int r = 0; r < sched->topo->n_ranks; r++)
		json_string(&w, NULL, sched->topo->vertex[r].id);
	json_end(&w);
	return put_option(ctx, "gpus", &gpus, sched);
}

/* "a,b" as an array; NULL: nothing. */
static Status
put_list(Ctx *ctx, const char *key, const char *list, Schedule *sched)
{
	Text text = { 0 };
	if (!list)
		return OK;
	text_put(&text, "[\"");
	for (const char *at = list; *at; at++)	/* ids need no escape */
		text_put(&text, *at == ',' ? "\", \"" : (char[]){ *at, 0 });
	text_put(&text, "\"]");
	return put_option(ctx, key, &text, sched);
}

static Status
put_links(Ctx *ctx, unsigned classes, Schedule *sched)
{
	Text links = { 0 };
	json_names(&(JsonWriter){ .out = &links }, NULL, link_class_names, classes);
	return put_option(ctx, "links", &links, sched);
}

static void
put_flag(const char *key, bool value, Schedule *sched)
{
	sched->option[sched->n_options++] = (Option){ key, value ? "true" : "false" };
}

Status
sched_record(Ctx *ctx, const Ask *ask, unsigned classes, Schedule *sched)
{
	sched->n_options = 0;
	TRY(NEW(ctx, sched->option, MOST_OPTIONS));
	TRY(put_gpus(ctx, sched));
	TRY(put_links(ctx, classes, sched));
	if (ask->routes == ROUTES_PAIR)
		TRY(put_word(ctx, "routes", "pair", sched));
	TRY(put_fraction(ctx, "epsilon", ask->epsilon, sched));
	TRY(put_fraction(ctx, "tolerance", ask->tolerance, sched));
	TRY(put_word(ctx, "packing", packing_name(ask->packing), sched));
	put_flag("minimise", ask->minimise, sched);
	if (ask->algorithm)
		TRY(put_word(ctx, "algorithm", ask->algorithm, sched));
	TRY(put_limit(ctx, "radix", ask->radix, sched));
	if (ask->layers.n)
		TRY(put_word(ctx, "hierarchy", hierarchy_text(&ask->layers).text, sched));
	TRY(put_limit(ctx, "max_depth", ask->max_depth, sched));
	TRY(put_limit(ctx, "max_trees", ask->max_trees, sched));
	if (ask->hybrid)
		TRY(put_word(ctx, "hybrid", hybrid_name(ask->hybrid), sched));
	TRY(put_limit(ctx, "size", ask->size, sched));
	if (ask->size)
		TRY(put_word(ctx, "executor", ask->executor, sched));
	TRY(put_limit(ctx, "chunk", ask->chunk, sched));
	TRY(put_list(ctx, "without", ask->without, sched));
	TRY(put_list(ctx, "relays", ask->relays, sched));
	/* A budget is no promise of the same bytes, so it is no more than named. */
	if (ask->budget)
		put_flag("budget", true, sched);
	return OK;
}

/* "[\"nvlink\", \"pcie\"]" becomes "nvlink,pcie". What is no list of words becomes no word that is known. */
static Status
words_of(Ctx *ctx, const char *json, const char **out)
{
	char *text;
	size_t n = 0;
	TRY(NEW(ctx, text, strlen(json) + 1));
	for (; *json; json++)
		if (!strchr("[]\" ", *json))
			text[n++] = *json;
	*out = text;
	return OK;
}

static const char *
option_of(const Schedule *sched, const char *key)
{
	const char *value = NULL;
	for (int i = 0; i < sched->n_options; i++)
		if (strcmp(sched->option[i].key, key) == 0)
			value = sched->option[i].value;
	return value;
}

/* Without an option any routes were allowed. */
static Status
recorded_routes(Ctx *ctx, const Schedule *sched, Routes *out)
{
	const char *routes = option_of(sched, "routes"), *text;
	if (!routes)
		return OK;
	TRY(words_of(ctx, routes, &text));
	return routes_parse(text, out) ? OK : fail_asked(ctx, BAD_INPUT, "routes", "%.40s: want %s", text,
	    names_wanted(routes_names).text);
}

Status
sched_recorded_links(Ctx *ctx, const Schedule *sched, Ask *out)
{
	const char *hybrid = option_of(sched, "hybrid"), *links = option_of(sched, "links"), *text;
	const char *without = option_of(sched, "without"), *relays = option_of(sched, "relays");
	out->hybrid = HYBRID_NONE;
	out->routes = ROUTES_ANY;
	out->links = 0;
	out->without = out->relays = NULL;
	if (without)
		TRY(words_of(ctx, without, &out->without));
	if (relays)
		TRY(words_of(ctx, relays, &out->relays));
	if (hybrid) {
		TRY(words_of(ctx, hybrid, &text));
		if (!*text)
			out->hybrid = HYBRID_PEER;
		else if (!hybrid_parse(text, &out->hybrid))
			return fail_asked(ctx, BAD_INPUT, "hybrid", "%.40s: want %s", text,
			    names_wanted(hybrid_names).text);
	} else if (links) {
		TRY(recorded_routes(ctx, sched, &out->routes));
		TRY(words_of(ctx, links, &text));
		if (!link_classes_parse(text, &out->links))
			return fail_asked(ctx, BAD_INPUT, "links", "%.40s: want all, or %s, comma separated", text,
			    names_text(link_class_names, ~0u, ", ", ", ").text);
	}
	return OK;
}
