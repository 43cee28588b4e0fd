/* What changed in meaning between two schedules: the request and the figures. topology.c compares machines, trees.c
 * trees, index.c indexes. */
#include "verb/diff/diff.h"
#include "base/array.h"
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

static Difference
of_schedule(DifferenceKind kind)
{
	return (Difference){ .kind = kind, .old_tree = -1, .new_tree = -1 };
}

static Status
diff_figures(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	int was, is;
	TRY(sched_depth(ctx, old, &was));
	TRY(sched_depth(ctx, new, &is));
	TRY(difference_rate(ctx, list, DIFF_RATE, NULL, "", frac_cmp(old->achieved, new->achieved),
	    old->stated_achieved, new->stated_achieved));
	TRY(difference_rate(ctx, list, DIFF_BOUND, NULL, "", frac_cmp(old->bound.rate, new->bound.rate),
	    old->stated_bound, new->stated_bound));
	TRY(difference_count(ctx, list, DIFF_TREES, NULL, "", old->n_segments, new->n_segments));
	return difference_count(ctx, list, DIFF_DEPTH, NULL, "", was, is);
}

/* ---- the request ---- */

/* "OLD -> NEW" if they differ; NULL: none. json: both are JSON already, else they are strings. */
static Status
diff_strings(Ctx *ctx, Differences *list, DifferenceKind kind, const char *place, const char *old, const char *new,
    bool json)
{
	Text text = { 0 }, was = { 0 }, is = { 0 };
	if (text_same(old, new))
		return OK;
	text_put(&text, place);
	text_short(&text, old ? old : "none", 100);
	text_put(&text, " -> ");
	text_short(&text, new ? new : "none", 100);
	if (old)
		json ? text_put(&was, old) : text_json(&was, old);
	if (new)
		json ? text_put(&is, new) : text_json(&is, new);
	return difference_put(ctx, list, of_schedule(kind), &text, old ? &was : NULL, new ? &is : NULL);
}

/* The options of both schedules, by key: a file may have a million. */
struct options {
	int n_old, n_new;
	Option *old, *new;
};

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const Option *)a)->key, ((const Option *)b)->key);
}

static Status
sort_options(Ctx *ctx, const Schedule *sched, Option **out)
{
	TRY(NEW(ctx, *out, sched->n_options));
	if (sched->n_options) {
		memcpy(*out, sched->option, (size_t)sched->n_options * sizeof **out);
		qsort(*out, (size_t)sched->n_options, sizeof **out, by_key);
	}
	return OK;
}

static const char *
option_value(const Option *sorted, int n, const char *key)
{
	const Option *found = bsearch(&(Option){ .key = key }, sorted, (size_t)n, sizeof *sorted, by_key);
	return found ? found->value : NULL;
}

static Status
diff_option(Ctx *ctx, const struct options *options, const char *key, Differences *list)
{
	const char *was = option_value(options->old, options->n_old, key),
	    *is = option_value(options->new, options->n_new, key);
	if (text_same(was, is))
		return OK;
	Text place = { 0 };
	text_short(&place, key, 100);
	text_put(&place, ": ");
	const char *name = text_keep(&ctx->run, &place);
	if (!name)
		return fail_memory(ctx);
	return diff_strings(ctx, list, DIFF_OPTIONS, name, was, is, true);
}

static Status
diff_root(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	Text text = { 0 }, was = { 0 }, is = { 0 };
	if (old->root == new->root)
		return OK;
	text_put(&text, old->root < 0 ? "none" : "");
	if (old->root >= 0) {
		text_printf(&text, "%d ", old->root);
		put_vertex_name(&text, old->topo, old->root);
		text_int(&was, old->root);
	}
	text_put(&text, new->root < 0 ? " -> none" : " -> ");
	if (new->root >= 0) {
		text_printf(&text, "%d ", new->root);
		put_vertex_name(&text, new->topo, new->root);
		text_int(&is, new->root);
	}
	return difference_put(ctx, list, of_schedule(DIFF_ROOT), &text, old->root < 0 ? NULL : &was,
	    new->root < 0 ? NULL : &is);
}

static Status
diff_request(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	struct options options = { .n_old = old->n_options, .n_new = new->n_options };
	TRY(sort_options(ctx, old, &options.old));
	TRY(sort_options(ctx, new, &options.new));
	TRY(diff_strings(ctx, list, DIFF_COLLECTIVE, "", collective_name(old->coll),
	    collective_name(new->coll), false));
	TRY(diff_root(ctx, old, new, list));
	TRY(diff_strings(ctx, list, DIFF_ALGORITHM, "", old->algorithm, new->algorithm, false));
	for (int i = 0; i < old->n_options; i++)
		TRY(diff_option(ctx, &options, old->option[i].key, list));
	for (int i = 0; i < new->n_options; i++)
		if (!option_value(options.old, options.n_old, new->option[i].key))
			TRY(diff_option(ctx, &options, new->option[i].key, list));
	return OK;
}

/* ---- parts ---- */

/* A part of a hybrid schedule: "nvlink 150 GB/s, up to 9/10 of the buffer", "pcie,qpi 6 GB/s after 2200 us, ...". */
static void
put_part(Text *text, const Part *part)
{
	text_printf(text, "%s %.6g GB/s", link_classes_text(part->classes).text, frac_double(part->rate) / 1e9);
	if (part->setup > 0) {
		text_put(text, " after ");
		text_us(text, part->setup);
		text_put(text, " us");
	}
	text_printf(text, ", up to %lld/%lld of the buffer", (long long)part->end.num, (long long)part->end.den);
}

static bool
equal_parts(const Part *a, const Part *b)
{
	return a->classes == b->classes && a->setup == b->setup && frac_cmp(a->rate, b->rate) == 0
	    && frac_cmp(a->end, b->end) == 0;
}

static Status
diff_parts(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	for (int i = 0; i < old->n_parts || i < new->n_parts; i++) {
		const Part *was = i < old->n_parts ? &old->part[i] : NULL,
		    *is = i < new->n_parts ? &new->part[i] : NULL;
		Text text = { 0 }, a = { 0 }, b = { 0 }, c = { 0 };
		if (was && is && equal_parts(was, is))
			continue;
		text_printf(&text, !was ? "part %d was added: " : !is ? "part %d was removed: " : "part %d: ", i);
		put_part(&text, is ? is : was);
		if (was && is) {
			text_put(&text, "; was ");
			put_part(&text, was);
		}
		for (int side = 0; side < 2; side++) {
			const Part *part = side ? is : was;
			if (!part)
				continue;
			put_part(&c, part);
			text_json(side ? &b : &a, c.data ? c.data : "");
			text_free(&c);
		}
		TRY(difference_put(ctx, list, of_schedule(DIFF_PARTS), &text, was ? &a : NULL, is ? &b : NULL));
	}
	return OK;
}

/* ---- the whole ---- */

static Status
put_note(Ctx *ctx, Differences *list, Text *text)
{
	const char *line = text_keep(&ctx->run, text);
	if (!line)
		return fail_memory(ctx);
	TRY(GROW(ctx, list->note, list->n_notes, list->notes_capacity));
	list->note[list->n_notes++] = line;
	return OK;
}

static Status
diff_notes(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	Text text = { 0 };
	if (strcmp(old->generator, new->generator) != 0 || strcmp(old->version, new->version) != 0) {
		text_put(&text, "made by ");
		text_short(&text, new->generator, 40);
		text_put(&text, " ");
		text_short(&text, new->version, 40);
		text_put(&text, ", was by ");
		text_short(&text, old->generator, 40);
		text_put(&text, " ");
		text_short(&text, old->version, 40);
		TRY(put_note(ctx, list, &text));
	}
	if (strcmp(old->topo->digest, new->topo->digest) == 0 && strcmp(old->topo->name, new->topo->name) != 0) {
		text_put(&text, "the machine is named ");
		text_short(&text, new->topo->name, 60);
		text_put(&text, ", was ");
		text_short(&text, old->topo->name, 60);
		TRY(put_note(ctx, list, &text));
	}
	if (frac_cmp(old->bound.rate, new->bound.rate) == 0 && old->bound.kind != new->bound.kind) {
		text_printf(&text, "the bound is proven by %s, was by %s", certificate_name(new->bound.kind),
		    certificate_name(old->bound.kind));
		TRY(put_note(ctx, list, &text));
	}
	return OK;
}

Status
diff_schedules(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	int *old_number, *new_number;
	TRY(NEW(ctx, old_number, old->topo->n_links));
	TRY(NEW(ctx, new_number, new->topo->n_links));
	TRY(diff_links(ctx, old->topo, new->topo, old_number, new_number));
	TRY(diff_topologies(ctx, old->topo, new->topo, old_number, new_number, list));
	TRY(diff_request(ctx, old, new, list));
	TRY(diff_figures(ctx, old, new, list));
	TRY(diff_parts(ctx, old, new, list));
	if (old->coll == new->coll && old->root == new->root && old->topo->n_ranks == new->topo->n_ranks)
		TRY(diff_trees(ctx, old, new, old_number, new_number, list));
	TRY(diff_notes(ctx, old, new, list));
	return differences_sort(ctx, list);
}
