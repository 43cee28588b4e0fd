/* How matched trees of two schedules differ. What moved is what is not in a longest ascending subsequence of the old
 * positions, taken in the new order. */
#include "verb/diff/match.h"

/* ---- positions ---- */

/* moved[i]: value[i] is not in the longest ascending subsequence; of several, in the one taken. Values differ. */
static Status
find_moved(Ctx *ctx, const int *value, int n, bool *moved)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *tail, *before, length = 0;		/* tail[k]: the last of k + 1 ascending values, the least such */
	TRY(TEMP_EACH(ctx, n, tail, before));
	for (int i = 0; i < n; i++) {
		int lo = 0, hi = length;
		while (lo < hi) {
			int mid = (lo + hi) / 2;
			if (value[tail[mid]] < value[i])
				lo = mid + 1;
			else
				hi = mid;
		}
		before[i] = lo ? tail[lo - 1] : -1;
		tail[lo] = i;
		length += lo == length;
		moved[i] = true;
	}
	for (int i = length ? tail[length - 1] : -1; i >= 0; i = before[i])
		moved[i] = false;
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* "2nd" */
static void
put_ordinal(Text *text, int i)
{
	static const char *const ending[] = { "th", "st", "nd", "rd" };
	int last = i % 10;
	text_printf(text, "%d%s", i, ending[i / 10 % 10 != 1 && last < 4 ? last : 0]);
}

/* ---- texts ---- */

/* "tree 3", or "tree 3 (was 4)" */
static void
put_tree(Text *text, int o, int n)
{
	text_printf(text, "tree %d", n < 0 ? o : n);
	if (o >= 0 && n >= 0 && o != n)
		text_printf(text, " (was %d)", o);
}

static void
put_frac(Text *text, Frac f, bool quoted)
{
	text_printf(text, quoted ? "\"%lld/%lld\"" : "%lld/%lld", (long long)f.num, (long long)f.den);
}

/* "5/24 of the buffer" */
static void
put_share(Text *text, Frac f)
{
	if (frac_cmp(f, FRAC_ONE) == 0)
		text_put(text, "all");
	else
		put_frac(text, f, false);
	text_put(text, " of the buffer");
}

static void
put_hop(Text *text, const Schedule *sched, const Edge *edge)
{
	put_vertex_name(text, sched->topo, edge->src);
	text_put(text, " -> ");
	put_vertex_name(text, sched->topo, edge->dst);
}

/* Its links, by their numbers in the file. */
static void
put_links(Text *text, const Edge *edge)
{
	enum { SOME = 8 };
	text_put(text, edge->n_links > 1 ? "links" : "link");
	for (int i = 0; i < edge->n_links && i < SOME; i++)
		text_printf(text, " %d", edge->link[i]);
	text_put(text, edge->n_links > SOME ? " ..." : "");
}

static void
put_edge_json(Text *text, const Edge *edge)
{
	text_printf(text, "[%d, %d, [", edge->src, edge->dst);
	for (int i = 0; i < edge->n_links; i++)
		text_printf(text, i ? ", %d" : "%d", edge->link[i]);
	text_put(text, "]]");
}

/* What comes before the next element of an array. */
static void
put_item(Text *text)
{
	text_put(text, text->size ? ", " : "[");
}

static void
put_array_end(Text *text)
{
	text_put(text, text->size ? "]" : "[]");
}

/* ---- differences of a pair ---- */

static Difference
of_trees(DifferenceKind kind, int o, int n)
{
	return (Difference){ .kind = kind, .old_tree = o, .new_tree = n };
}

static void
put_segment_json(Text *text, const Segment *s)
{
	text_put(text, "{ \"segment\": [");
	put_frac(text, s->offset, true);
	text_put(text, ", ");
	put_frac(text, s->length, true);
	text_put(text, "]");
	for (int i = 0; i < s->n_to; i++)
		text_printf(text, i ? ", %d" : ", \"to\": [%d", s->to[i]);
	text_put(text, s->n_to ? "] }" : " }");
}

static Status
diff_segment(struct match *m, int o, int n)
{
	const Segment *was = &m->old.sched->segment[o], *is = &m->new.sched->segment[n];
	Text text = { 0 }, a = { 0 }, b = { 0 };
	bool length = frac_cmp(was->length, is->length) != 0, offset = frac_cmp(was->offset, is->offset) != 0,
	    ranks = match_same_ranks(m, o, n);
	if (was->part != is->part) {
		put_tree(&text, o, n);
		text_printf(&text, ": in part %d, was in part %d", is->part, was->part);
		text_int(&a, was->part);
		text_int(&b, is->part);
		TRY(difference_put(m->ctx, m->list, of_trees(DIFF_PARTS, o, n), &text, &a, &b));
	}
	if (!length && !offset && ranks)
		return OK;
	put_tree(&text, o, n);
	if (length || offset) {
		text_put(&text, length ? ": carries " : ": begins at ");
		put_share(&text, length ? is->length : is->offset);
		text_put(&text, ", was ");
		put_frac(&text, length ? was->length : was->offset, false);
	}
	if (!ranks)
		text_put(&text, length || offset ? "; serves different ranks" : ": serves different ranks");
	put_segment_json(&a, was);
	put_segment_json(&b, is);
	return difference_put(m->ctx, m->list, of_trees(DIFF_SEGMENTS, o, n), &text, &a, &b);
}

/* The first edge of a phase that changed; was: NULL: it is new. */
static void
put_change(Text *text, const struct match *m, const Edge *was, const Edge *is)
{
	text_put(text, "edge ");
	put_hop(text, m->new.sched, is);
	if (!was) {
		text_put(text, " was added");
	} else if (was->src == is->src && was->dst == is->dst) {
		text_put(text, " goes over ");
		put_links(text, is);
		text_put(text, ", was ");
		put_links(text, was);
	} else {
		text_put(text, ", was ");
		put_hop(text, m->old.sched, was);
	}
}

static Status
diff_edges(struct match *m, int o, int n, bool up)
{
	const Tree *was = &m->old.sched->segment[o].tree, *is = &m->new.sched->segment[n].tree;
	const Edge *a, *b;
	int n_was = match_phase(was, up, &a), n_is = match_phase(is, up, &b), changed = 0;
	Text text = { 0 }, old = { 0 }, new = { 0 };
	put_tree(&text, o, n);
	text_put(&text, up ? ", up: " : ", down: ");
	match_by_rank(m, a, n_was, up);
	for (int e = 0; e < n_is; e++) {
		const Edge **other = &m->edge_of[match_rank(&b[e], up)];
		bool same = *other && match_equal_edge(m, *other, &b[e]);
		if (!same) {
			if (changed++ == 0)
				put_change(&text, m, *other, &b[e]);
			put_item(&new);
			put_edge_json(&new, &b[e]);
		}
		if (*other && !same) {
			put_item(&old);
			put_edge_json(&old, *other);
		}
		*other = NULL;
	}
	for (int e = 0; e < n_was; e++) {
		if (!m->edge_of[match_rank(&a[e], up)])
			continue;
		if (changed++ == 0) {
			text_put(&text, "edge ");
			put_hop(&text, m->old.sched, &a[e]);
			text_put(&text, " was removed");
		}
		put_item(&old);
		put_edge_json(&old, &a[e]);
	}
	if (changed > 1)
		text_printf(&text, "; %d more edge%s changed", changed - 1, changed > 2 ? "s" : "");
	put_array_end(&old);
	put_array_end(&new);
	if (changed)
		return difference_put(m->ctx, m->list, of_trees(DIFF_EDGES, o, n), &text, &old, &new);
	text_free(&text);
	text_free(&old);
	text_free(&new);
	return OK;
}

static Status
diff_tree_root(struct match *m, int o, int n)
{
	const Tree *was = &m->old.sched->segment[o].tree, *is = &m->new.sched->segment[n].tree;
	Text text = { 0 }, a = { 0 }, b = { 0 };
	if (was->root == is->root)
		return OK;
	put_tree(&text, o, n);
	text_put(&text, ": root ");
	put_vertex_name(&text, m->new.sched->topo, is->root);
	text_put(&text, ", was ");
	put_vertex_name(&text, m->old.sched->topo, was->root);
	text_int(&a, was->root);
	text_int(&b, is->root);
	return difference_put(m->ctx, m->list, of_trees(DIFF_EDGES, o, n), &text, &a, &b);
}

/* "[src, dst, position]" of each edge that moved, and text for the first. */
static void
put_moved(struct match *m, const Edge *edge, const int *position, const bool *moved, int n, Text *text,
    Text *old, Text *new)
{
	int count = 0;
	for (int e = 0; e < n; e++) {
		if (!moved[e])
			continue;
		if (count++ == 0) {
			text_put(text, "edge ");
			put_hop(text, m->new.sched, &edge[e]);
			text_put(text, ", now ");
			put_ordinal(text, e + 1);
			text_put(text, ", was ");
			put_ordinal(text, position[e] + 1);
		}
		put_item(old);
		text_printf(old, "[%d, %d, %d]", edge[e].src, edge[e].dst, position[e]);
		put_item(new);
		text_printf(new, "[%d, %d, %d]", edge[e].src, edge[e].dst, e);
	}
	if (count > 1)
		text_printf(text, "; %d more edge%s moved", count - 1, count > 2 ? "s" : "");
	put_array_end(old);
	put_array_end(new);
}

/* Of trees with the same edges. */
static Status
diff_order(struct match *m, int o, int n, bool up)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	const Edge *a, *b;
	int n_edges = match_phase(&m->old.sched->segment[o].tree, up, &a), *position;
	bool *moved, any = false;
	match_phase(&m->new.sched->segment[n].tree, up, &b);
	TRY(TEMP_EACH(m->ctx, n_edges, position, moved));
	match_by_rank(m, a, n_edges, up);
	for (int e = 0; e < n_edges; e++) {
		position[e] = (int)(m->edge_of[match_rank(&b[e], up)] - a);
		any = any || position[e] != e;
	}
	if (any) {
		Text text = { 0 }, old = { 0 }, new = { 0 };
		TRY(find_moved(m->ctx, position, n_edges, moved));
		put_tree(&text, o, n);
		text_put(&text, up ? ", up: " : ", down: ");
		put_moved(m, b, position, moved, n_edges, &text, &old, &new);
		TRY(difference_put(m->ctx, m->list, of_trees(DIFF_ORDER, o, n), &text, &old, &new));
	}
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

static Status
diff_pair(struct match *m, int o, int n)
{
	TRY(diff_segment(m, o, n));
	bool same = match_same_tree(m, o, n);
	if (!same)
		TRY(diff_tree_root(m, o, n));
	for (int up = 0; up < 2; up++)
		TRY(same ? diff_order(m, o, n, up) : diff_edges(m, o, n, up));
	return OK;
}

/* ---- trees as a whole ---- */

/* A tree of one schedule alone. */
static Status
diff_single(struct match *m, int o, int n)
{
	const Schedule *sched = o < 0 ? m->new.sched : m->old.sched;
	const Segment *s = &sched->segment[o < 0 ? n : o];
	Text text = { 0 }, json = { 0 };
	put_tree(&text, o, n);
	text_put(&text, o < 0 ? " was added: root " : " was removed: root ");
	put_vertex_name(&text, sched->topo, s->tree.root);
	text_put(&text, ", ");
	put_share(&text, s->length);
	put_segment_json(&json, s);
	return difference_put(m->ctx, m->list, of_trees(DIFF_EDGES, o, n), &text, o < 0 ? NULL : &json,
	    o < 0 ? &json : NULL);
}

/* Positions of trees with the same edges. */
static Status
diff_positions(struct match *m)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	int n = m->new.sched->n_segments, n_pairs = 0, *position, *tree;
	bool *moved;
	TRY(TEMP_EACH(m->ctx, n, position, tree, moved));
	for (int t = 0; t < n; t++) {
		int o = m->new.mate[t];
		if (o < 0 || !match_same_tree(m, o, t))
			continue;
		position[n_pairs] = o;
		tree[n_pairs++] = t;
	}
	TRY(find_moved(m->ctx, position, n_pairs, moved));
	for (int i = 0; i < n_pairs; i++) {
		Text text = { 0 }, a = { 0 }, b = { 0 };
		if (!moved[i])
			continue;
		put_tree(&text, position[i], tree[i]);
		text_put(&text, ": now ");
		put_ordinal(&text, tree[i] + 1);
		text_put(&text, ", was ");
		put_ordinal(&text, position[i] + 1);
		text_int(&a, position[i]);
		text_int(&b, tree[i]);
		TRY(difference_put(m->ctx, m->list, of_trees(DIFF_ORDER, position[i], tree[i]), &text, &a, &b));
	}
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

Status
diff_trees(Ctx *ctx, const Schedule *old, const Schedule *new, const int *old_number, const int *new_number,
    Differences *list)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct match m = { .ctx = ctx, .old = { .sched = old, .number = old_number },
	    .new = { .sched = new, .number = new_number }, .list = list };
	TRY(match_trees(&m));
	for (int t = 0; t < new->n_segments; t++)
		if (m.new.mate[t] >= 0)
			TRY(diff_pair(&m, m.new.mate[t], t));
	TRY(diff_positions(&m));
	for (int t = 0; t < old->n_segments; t++)
		if (m.old.mate[t] < 0)
			TRY(diff_single(&m, t, -1));
	for (int t = 0; t < new->n_segments; t++)
		if (m.new.mate[t] < 0)
			TRY(diff_single(&m, -1, t));
	arena_release(&ctx->scratch, mark);
	return OK;
}
