/* The list of differences, its kinds, and the texts that all comparisons share. */
#include "verb/diff/comparison.h"
#include "base/array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The last stands for all. */
static const char *const names[N_DIFFERENCE_KINDS + 1] = {
	DIFFERENCE_LIST(ROW_TEXT)
	"any"
};

static const int signs[N_DIFFERENCE_KINDS] = {
#define X(name, text, sign, what) sign,
	DIFFERENCE_LIST(X)
#undef X
};

static const Names names_and_any = { N_DIFFERENCE_KINDS + 1, names };

const char *
difference_name(DifferenceKind kind)
{
	return names[kind];
}

Status
difference_kinds(Ctx *ctx, const char *list, unsigned *out)
{
	const char *bad = names_parse_set(names_and_any, list, out);
	char word[41];
	if (!bad)
		return OK;
	snprintf(word, sizeof word, "%.*s", (int)strcspn(bad, ","), bad);
	return fail(ctx, USAGE, "--fail-on: %s: want kinds of differences, as rate,trees, or any%s", word,
	    names_hint(names_and_any, word).text);
}

const char *
diff_state_name(DiffState state)
{
	static const char *const states[] = { DIFF_STATE_LIST(ROW_TEXT) };
	return states[state];
}

bool
difference_fails(const Difference *difference, unsigned set)
{
	return difference->kind == DIFF_INVALID || (set & DIFF_ANY)
	    || (difference->sign <= 0 && (set >> difference->kind & 1));
}

/* ---- the list ---- */

Status
difference_put(Ctx *ctx, Differences *list, Difference difference, Text *text, Text *old, Text *new)
{
	difference.text = text_keep(&ctx->run, text);
	difference.old = old ? text_keep(&ctx->run, old) : NULL;
	difference.new = new ? text_keep(&ctx->run, new) : NULL;
	if (!difference.text || (old && !difference.old) || (new && !difference.new))
		return fail_memory(ctx);
	TRY(GROW(ctx, list->difference, list->n, list->capacity));
	list->difference[list->n++] = difference;
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
	list->capacity = list->n;
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
	/* Ids of GPUs are unique within a server only. */
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
	Difference difference = { .kind = kind, .sign = new > old ? signs[kind] : -signs[kind], .old_tree = -1,
	    .new_tree = -1, .job = job };
	return difference_put(ctx, list, difference, &text, &was, &is);
}

void
text_per_cent(Text *text, double change)
{
	text_printf(text, fabs(change) >= 0.0005 ? "%+.1f %%" : "%+.1g %%", 100 * change);
}

Status
difference_rate(Ctx *ctx, Differences *list, DifferenceKind kind, const char *job, const char *place, int order,
    double old, double new)
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
	Difference difference = { .kind = kind, .sign = order < 0 ? signs[kind] : -signs[kind], .old_tree = -1,
	    .new_tree = -1, .job = job };
	return difference_put(ctx, list, difference, &text, &was, &is);
}
