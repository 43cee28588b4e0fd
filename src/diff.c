/* What changed in meaning between two schedules: what was asked, and what people look at first. Machines are compared in
 * diff_topology.c, trees in diff_trees.c, indexes in diff_index.c. */
#include "diff.h"

#include "passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int sign;
} kinds[N_DIFFERENCE_KINDS] = {
#define X(name, text, sign, what) { text, sign },
	DIFFERENCE_LIST(X)
#undef X
};

const char *
difference_name(DifferenceKind kind)
{
	return kinds[kind].name;
}

bool
difference_parse(const char *text, DifferenceKind *out)
{
	for (int k = 0; k < N_DIFFERENCE_KINDS; k++) {
		if (strcmp(text, kinds[k].name) == 0) {
			*out = (DifferenceKind)k;
			return true;
		}
	}
	return false;
}

Status
difference_kinds(Ctx *ctx, const char *list, unsigned *out)
{
	unsigned set = 0;
	for (const char *at = list;; at++) {
		char name[32];
		size_t n = strcspn(at, ",");
		DifferenceKind kind;
		snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, at);
		if (strcmp(name, "any") == 0)
			set |= DIFF_ANY;
		else if (difference_parse(name, &kind))
			set |= 1u << kind;
		else
			return fail(ctx, USAGE, "--fail-on: %.*s: want kinds of differences, as rate,trees, or any", n < 40 ? (int)n : 40, at);
		at += n;
		if (!*at)
			break;
	}
	*out = set;
	return OK;
}

const char *
diff_state_name(DiffState state)
{
	static const char *const names[] = {
#define X(name, text) text,
		DIFF_STATE_LIST(X)
#undef X
	};
	return names[state];
}

bool
difference_fails(const Difference *difference, unsigned set)
{
	return difference->kind == DIFF_WRONG || (set & DIFF_ANY) || (difference->sign <= 0 && (set >> difference->kind & 1));
}

/* ---- the list ---- */

/* What was put together moves to the arena; NULL: no memory, or there was none. */
static const char *
keep(Ctx *ctx, Text *text)
{
	const char *copy = text && !text->failed ? arena_text(&ctx->run, text->data ? text->data : "", text->size) : NULL;
	if (text)
		text_free(text);
	return copy;
}

Status
difference_put(Ctx *ctx, Differences *list, Difference difference, Text *text, Text *old, Text *new)
{
	bool has_old = old, has_new = new;
	difference.text = keep(ctx, text);
	difference.old = keep(ctx, old);
	difference.new = keep(ctx, new);
	if (!difference.text || (has_old && !difference.old) || (has_new && !difference.new))
		return fail_memory(ctx);
	if (list->n == list->room) {
		Difference *more;
		list->room = list->room ? 2 * list->room : 16;
		TRY(NEW(ctx, more, list->room));
		for (int i = 0; i < list->n; i++)
			more[i] = list->difference[i];
		list->difference = more;
	}
	list->difference[list->n++] = difference;
	return OK;
}

static Status
put_note(Ctx *ctx, Differences *list, Text *text)
{
	const char *line = keep(ctx, text);
	if (!line)
		return fail_memory(ctx);
	if (list->n_notes == list->room_notes) {
		const char **more;
		list->room_notes += 4;
		TRY(NEW(ctx, more, list->room_notes));
		for (int i = 0; i < list->n_notes; i++)
			more[i] = list->note[i];
		list->note = more;
	}
	list->note[list->n_notes++] = line;
	return OK;
}

Status
differences_sort(Ctx *ctx, Differences *list)
{
	Difference *sorted;
	int n = 0;
	TRY(NEW(ctx, sorted, list->n));
	for (int kind = 0; kind < N_DIFFERENCE_KINDS; kind++)
		for (int i = 0; i < list->n; i++)
			if ((int)list->difference[i].kind == kind)
				sorted[n++] = list->difference[i];
	list->difference = sorted;
	list->room = list->n;
	return OK;
}

void
text_short(Text *text, const char *string, size_t most)
{
	size_t n = strlen(string);
	if (n <= most) {
		text_put(text, string);
		return;
	}
	text_add(text, string, utf8_valid(string, most));
	text_put(text, "...");
}

void
put_vertex_name(Text *text, const Topology *topo, int v)
{
	const Vertex *vertex = &topo->vertex[v];
	const char *node = vertex->node >= 0 ? topo->node[vertex->node] : "";
	/* Ids of GPUs are unique in their servers only. */
	if (topo->n_nodes > 1 && v < topo->n_ranks && strncmp(vertex->id, node, strlen(node)) != 0)
		text_printf(text, "%s:", node);
	text_put(text, vertex->id);
}

/* ---- numbers ---- */

Status
difference_count(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place, int old, int new)
{
	Text text = { 0 }, was = { 0 }, is = { 0 };
	if (old == new)
		return OK;
	text_put(&text, place);
	text_printf(&text, "%d -> %d", old, new);
	text_int(&was, old);
	text_int(&is, new);
	int sign = new > old ? kinds[kind].sign : -kinds[kind].sign;
	return difference_put(ctx, list, (Difference){ .kind = kind, .sign = sign, .old_tree = -1, .new_tree = -1, .job = job }, &text, &was, &is);
}

void
text_per_cent(Text *text, double change)
{
	char digits[64];
	snprintf(digits, sizeof digits, fabs(change) >= 0.0005 ? "%+.1f %%" : "%+.1g %%", 100 * change);
	text_put(text, digits);
}

Status
difference_rate(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place, int order, double old, double new)
{
	Text text = { 0 }, was = { 0 }, is = { 0 };
	char a[32], b[32];
	if (order == 0)
		return OK;
	snprintf(a, sizeof a, "%.6g", old);
	snprintf(b, sizeof b, "%.6g", new);
	if (strcmp(a, b) == 0) {
		snprintf(a, sizeof a, "%.15g", old);
		snprintf(b, sizeof b, "%.15g", new);
	}
	text_put(&text, place);
	text_printf(&text, "%s -> %s GB/s", a, b);
	if (old > 0) {
		text_put(&text, " (");
		text_per_cent(&text, (new - old) / old);
		text_put(&text, ")");
	}
	text_number(&was, old);
	text_number(&is, new);
	int sign = order < 0 ? kinds[kind].sign : -kinds[kind].sign;
	return difference_put(ctx, list, (Difference){ .kind = kind, .sign = sign, .old_tree = -1, .new_tree = -1, .job = job }, &text, &was, &is);
}

static Status
diff_numbers(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	int was, is;
	TRY(sched_depth(ctx, old, &was));
	TRY(sched_depth(ctx, new, &is));
	TRY(difference_rate(ctx, list, DIFF_RATE, NULL, "", frac_cmp(old->achieved, new->achieved), old->stated_achieved,
	    new->stated_achieved));
	TRY(difference_rate(ctx, list, DIFF_BOUND, NULL, "", frac_cmp(old->bound.rate, new->bound.rate), old->stated_bound,
	    new->stated_bound));
	TRY(difference_count(ctx, list, DIFF_TREES, NULL, "", old->n_segments, new->n_segments));
	return difference_count(ctx, list, DIFF_DEPTH, NULL, "", was, is);
}

/* ---- what was asked ---- */

/* "OLD -> NEW", where they are not the same; both as JSON, or NULL for nothing. json: it is shown as it is, else without quotes. */
static Status
diff_words(Ctx *ctx, Differences *list, DifferenceKind kind, const char *place, const char *old, const char *new, bool json)
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
	return difference_put(ctx, list, (Difference){ .kind = kind, .old_tree = -1, .new_tree = -1 }, &text, old ? &was : NULL, new ? &is : NULL);
}

static const char *
option_value(const Schedule *sched, const char *key)
{
	for (int i = 0; i < sched->n_options; i++)
		if (strcmp(sched->option[i].key, key) == 0)
			return sched->option[i].value;
	return NULL;
}

static Status
diff_option(Ctx *ctx, const Schedule *old, const Schedule *new, const char *key, Differences *list)
{
	Text place = { 0 };
	text_short(&place, key, 100);
	text_put(&place, ": ");
	const char *name = keep(ctx, &place);
	return name ? diff_words(ctx, list, DIFF_OPTIONS, name, option_value(old, key), option_value(new, key), true) : fail_memory(ctx);
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
	return difference_put(ctx, list, (Difference){ .kind = DIFF_ROOT, .old_tree = -1, .new_tree = -1 }, &text, old->root < 0 ? NULL : &was,
	    new->root < 0 ? NULL : &is);
}

static Status
diff_request(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	TRY(diff_words(ctx, list, DIFF_COLLECTIVE, "", collective_name(old->coll), collective_name(new->coll), false));
	TRY(diff_root(ctx, old, new, list));
	TRY(diff_words(ctx, list, DIFF_ALGORITHM, "", old->algorithm, new->algorithm, false));
	for (int i = 0; i < old->n_options; i++)
		TRY(diff_option(ctx, old, new, old->option[i].key, list));
	for (int i = 0; i < new->n_options; i++)
		if (!option_value(old, new->option[i].key))
			TRY(diff_option(ctx, old, new, new->option[i].key, list));
	return OK;
}

/* ---- parts ---- */

static void
put_classes(Text *text, unsigned classes)
{
	bool any = false;
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(classes >> c & 1))
			continue;
		text_printf(text, any ? ",%s" : "%s", link_class_name((LinkClass)c));
		any = true;
	}
}

/* What a part is, for people: "nvlink 150 GB/s at once", "pcie,qpi 6 GB/s after 2200 us". */
static void
put_part(Text *text, const Part *part)
{
	char digits[32];
	put_classes(text, part->classes);
	snprintf(digits, sizeof digits, " %.6g GB/s", frac_double(part->rate) / 1e9);
	text_put(text, digits);
	if (part->setup > 0) {
		text_put(text, " after ");
		text_us(text, part->setup);
		text_put(text, " us");
	}
	text_printf(text, ", up to %lld/%lld of the buffer", (long long)part->end.num, (long long)part->end.den);
}

static bool
part_same(const Part *a, const Part *b)
{
	return a->classes == b->classes && a->setup == b->setup && frac_cmp(a->rate, b->rate) == 0 && frac_cmp(a->end, b->end) == 0;
}

static Status
diff_parts(Ctx *ctx, const Schedule *old, const Schedule *new, Differences *list)
{
	for (int i = 0; i < old->n_parts || i < new->n_parts; i++) {
		const Part *was = i < old->n_parts ? &old->part[i] : NULL, *is = i < new->n_parts ? &new->part[i] : NULL;
		Text text = { 0 }, a = { 0 }, b = { 0 }, c = { 0 };
		if (was && is && part_same(was, is))
			continue;
		text_printf(&text, is ? was ? "part %d: " : "part %d is new: " : "part %d is gone: ", i);
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
		TRY(difference_put(ctx, list, (Difference){ .kind = DIFF_PARTS, .old_tree = -1, .new_tree = -1 }, &text, was ? &a : NULL, is ? &b : NULL));
	}
	return OK;
}

/* ---- the whole ---- */

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
		text_put(&text, "the machine is called ");
		text_short(&text, new->topo->name, 60);
		text_put(&text, ", was ");
		text_short(&text, old->topo->name, 60);
		TRY(put_note(ctx, list, &text));
	}
	if (frac_cmp(old->bound.rate, new->bound.rate) == 0 && old->bound.kind != new->bound.kind) {
		text_printf(&text, "the bound is proven by %s, was by %s", certificate_name(new->bound.kind), certificate_name(old->bound.kind));
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
	TRY(diff_numbers(ctx, old, new, list));
	TRY(diff_parts(ctx, old, new, list));
	if (old->coll == new->coll && old->root == new->root && old->topo->n_ranks == new->topo->n_ranks)
		TRY(diff_trees(ctx, old, new, old_number, new_number, list));
	TRY(diff_notes(ctx, old, new, list));
	return differences_sort(ctx, list);
}
