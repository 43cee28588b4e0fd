/* Which trees of two schedules are the same, and how the others differ.
 *
 * Trees are paired in rounds, each among those that are left: the same edges and segment; the same edges, and a segment as long; the
 * same edges; the same segment and root; and at last those that have most edges in common. A hash, a sum over edges in which order
 * plays no role, says which may be the same, and a comparison by rank whether they are: a rank has one edge down into it, and one
 * up out of it. What has been paired tells what moved: a longest ascending run of the old places, in the order of the new, has
 * stayed, and the rest is what came to other places. */
#include "diff.h"

#include "base/mix.h"
#include "passes.h"

#include <stdlib.h>
#include <string.h>

enum {
	CANDIDATES = 64,	/* of one hash that are tried: more are made on purpose, and then only count as different */
	LIKENESS = 1 << 26	/* edges that are looked at to find trees that are alike */
};

struct side {
	const Schedule *sched;
	const int *number;	/* common number of each link */
	uint64_t *body;		/* hash of each tree's edges and root */
	int *mate;		/* of each tree in the other side; -1: none yet */
	int *n_to;		/* of each tree; 0 also where `to` names all that the collective serves */
};

struct match {
	Ctx *ctx;
	struct side old, new;
	const Edge **at;	/* work: n_ranks, the old edge into or out of a rank */
	Differences *list;
};

/* ---- edges ---- */

static bool
edge_same(const struct match *m, const Edge *was, const Edge *is)
{
	if (was->src != is->src || was->dst != is->dst || was->n_links != is->n_links)
		return false;
	for (int i = 0; i < was->n_links; i++)
		if (m->old.number[was->link[i]] != m->new.number[is->link[i]])
			return false;
	return true;
}

static uint64_t
hash_edges(const Edge *edge, int n, const int *number, uint64_t seed)
{
	uint64_t sum = 0;
	for (int e = 0; e < n; e++) {
		uint64_t h = mix64(seed ^ (uint64_t)edge[e].src << 32 ^ (uint64_t)edge[e].dst);
		for (int i = 0; i < edge[e].n_links; i++)
			h = mix64(h ^ (uint64_t)number[edge[e].link[i]]);
		sum += h;
	}
	return sum;
}

/* How many ranks it names, if not all that it could. */
static int
count_to(const Schedule *sched, const Segment *s)
{
	int n = sched->topo->n_ranks;
	int64_t block = frac_floor_mul(s->offset, collective_blocks(sched->coll, n));
	int needer = collective_needer(sched->coll, n, sched->root, block);
	bool all = needer == EVERY_RANK ? s->n_to == n : s->n_to == 1 && s->to[0] == needer;
	return all ? 0 : s->n_to;
}

static Status
hash_side(Ctx *ctx, struct side *side)
{
	const Schedule *sched = side->sched;
	TRY(TEMP(ctx, side->body, sched->n_segments));
	TRY(TEMP(ctx, side->mate, sched->n_segments));
	TRY(TEMP(ctx, side->n_to, sched->n_segments));
	for (int t = 0; t < sched->n_segments; t++) {
		const Tree *tree = &sched->segment[t].tree;
		side->mate[t] = -1;
		side->n_to[t] = count_to(sched, &sched->segment[t]);
		side->body[t] = mix64((uint64_t)tree->root) + hash_edges(tree->down, tree->n_down, side->number, 1)
		    + hash_edges(tree->up, tree->n_up, side->number, UINT64_C(1) << 63);
	}
	return OK;
}

/* The edges of a phase of a tree. */
static int
phase_edges(const Tree *tree, bool up, const Edge **edge)
{
	*edge = up ? tree->up : tree->down;
	return up ? tree->n_up : tree->n_down;
}

/* The rank that has no other edge of the phase. */
static int
edge_key(const Edge *edge, bool up)
{
	return up ? edge->src : edge->dst;
}

/* at[rank] = the old edge of that rank; NULL for others. */
static void
spread_edges(struct match *m, const Edge *edge, int n, bool up)
{
	memset(m->at, 0, (size_t)m->old.sched->topo->n_ranks * sizeof *m->at);
	for (int e = 0; e < n; e++)
		m->at[edge_key(&edge[e], up)] = &edge[e];
}

/* How many edges of a phase do they have in common? */
static int
common_edges(struct match *m, const Tree *was, const Tree *is, bool up)
{
	const Edge *a, *b;
	int n_was = phase_edges(was, up, &a), n_is = phase_edges(is, up, &b), n = 0;
	spread_edges(m, a, n_was, up);
	for (int e = 0; e < n_is; e++) {
		const Edge *other = m->at[edge_key(&b[e], up)];
		n += other && edge_same(m, other, &b[e]);
	}
	return n;
}

/* ---- pairs ---- */

static bool
same_body(struct match *m, int o, int n)
{
	const Tree *was = &m->old.sched->segment[o].tree, *is = &m->new.sched->segment[n].tree;
	return was->root == is->root && was->n_down == is->n_down && was->n_up == is->n_up
	    && common_edges(m, was, is, false) == is->n_down && common_edges(m, was, is, true) == is->n_up;
}

static bool
same_ranks(const struct match *m, int o, int n)
{
	const int *was = m->old.sched->segment[o].to, *is = m->new.sched->segment[n].to, n_to = m->old.n_to[o];
	return n_to == m->new.n_to[n] && (n_to == 0 || memcmp(was, is, (size_t)n_to * sizeof *was) == 0);
}

static bool
same_length(const struct match *m, int o, int n)
{
	const Segment *was = &m->old.sched->segment[o], *is = &m->new.sched->segment[n];
	return was->part == is->part && frac_cmp(was->length, is->length) == 0 && same_ranks(m, o, n);
}

static bool
same_segment(const struct match *m, int o, int n)
{
	return same_length(m, o, n) && frac_cmp(m->old.sched->segment[o].offset, m->new.sched->segment[n].offset) == 0;
}

static uint64_t
hash_length(const struct side *side, int t)
{
	const Segment *s = &side->sched->segment[t];
	uint64_t h = mix64((uint64_t)s->length.num) ^ mix64((uint64_t)s->length.den + (uint64_t)s->part);
	for (int i = 0; i < side->n_to[t]; i++)
		h = mix64(h ^ (uint64_t)s->to[i]);
	return h;
}

static uint64_t
hash_segment(const struct side *side, int t)
{
	const Frac *offset = &side->sched->segment[t].offset;
	return mix64(hash_length(side, t) ^ mix64((uint64_t)offset->num) ^ (uint64_t)offset->den);
}

enum round { SAME, SAME_LENGTH, SAME_EDGES, SAME_SEGMENT, N_ROUNDS };

static uint64_t
round_key(const struct side *side, int t, enum round round)
{
	switch (round) {
	case SAME:
		return mix64(side->body[t]) ^ hash_segment(side, t);
	case SAME_LENGTH:
		return mix64(side->body[t]) ^ hash_length(side, t);
	case SAME_EDGES:
		return side->body[t];
	default:
		return hash_segment(side, t) ^ mix64((uint64_t)side->sched->segment[t].tree.root);
	}
}

static bool
round_same(struct match *m, int o, int n, enum round round)
{
	switch (round) {
	case SAME:
		return same_segment(m, o, n) && same_body(m, o, n);
	case SAME_LENGTH:
		return same_length(m, o, n) && same_body(m, o, n);
	case SAME_EDGES:
		return same_body(m, o, n);
	default:
		return same_segment(m, o, n) && m->old.sched->segment[o].tree.root == m->new.sched->segment[n].tree.root;
	}
}

struct keyed {
	uint64_t key;
	int tree;
};

static int
by_key(const void *a, const void *b)
{
	const struct keyed *k = a, *l = b;
	return k->key != l->key ? (k->key < l->key ? -1 : 1) : (k->tree > l->tree) - (k->tree < l->tree);
}

/* Trees without a mate, by their keys. */
static int
sort_left(const struct side *side, enum round round, struct keyed *out)
{
	int n = 0;
	for (int t = 0; t < side->sched->n_segments; t++)
		if (side->mate[t] < 0)
			out[n++] = (struct keyed){ round_key(side, t, round), t };
	qsort(out, (size_t)n, sizeof *out, by_key);
	return n;
}

static void
mate(struct match *m, int o, int n)
{
	m->old.mate[o] = n;
	m->new.mate[n] = o;
}

static void
pair_round(struct match *m, enum round round, struct keyed *a, struct keyed *b)
{
	int n_a = sort_left(&m->old, round, a), n_b = sort_left(&m->new, round, b);
	for (int i = 0, j = 0; i < n_a && j < n_b; i++) {
		while (j < n_b && (b[j].key < a[i].key || (b[j].key == a[i].key && m->new.mate[b[j].tree] >= 0)))
			j++;
		for (int k = j; k < n_b && b[k].key == a[i].key && k < j + CANDIDATES; k++) {
			if (m->new.mate[b[k].tree] < 0 && round_same(m, a[i].tree, b[k].tree, round)) {
				mate(m, a[i].tree, b[k].tree);
				break;
			}
		}
	}
}

/* What has at least half of its edges in common, most first as seen from the old tree. */
static void
pair_alike(struct match *m)
{
	const Schedule *old = m->old.sched, *new = m->new.sched;
	int64_t n_old = 0, n_new = 0;
	for (int t = 0; t < old->n_segments; t++)
		n_old += m->old.mate[t] < 0;
	for (int t = 0; t < new->n_segments; t++)
		n_new += m->new.mate[t] < 0;
	if (n_old * n_new > LIKENESS / (4 * old->topo->n_ranks))
		return;
	for (int o = 0; o < old->n_segments; o++) {
		const Tree *was = &old->segment[o].tree;
		int best = -1, most = 0;
		for (int n = 0; n < new->n_segments && m->old.mate[o] < 0; n++) {
			const Tree *is = &new->segment[n].tree;
			int all = was->n_down + was->n_up > is->n_down + is->n_up ? was->n_down + was->n_up : is->n_down + is->n_up;
			if (m->new.mate[n] >= 0)
				continue;
			int common = common_edges(m, was, is, false) + common_edges(m, was, is, true);
			if (2 * common >= all && common > most) {
				most = common;
				best = n;
			}
		}
		if (best >= 0)
			mate(m, o, best);
	}
}

/* ---- what stayed in place ---- */

/* moved[i]: value[i] is not in the longest ascending run that is taken, one of those. Values differ. */
static Status
find_moved(Ctx *ctx, const int *value, int n, bool *moved)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *tail, *before, length = 0;		/* tail[k]: where the run of k + 1 ends that ends lowest */
	TRY(TEMP(ctx, tail, n));
	TRY(TEMP(ctx, before, n));
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
put_place(Text *text, int i)
{
	static const char *const ending[] = { "th", "st", "nd", "rd" };
	int last = i % 10;
	text_printf(text, "%d%s", i, ending[i / 10 % 10 != 1 && last < 4 ? last : 0]);
}

/* ---- what people read ---- */

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

/* What it goes over: its links, by their numbers in the file. */
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

/* Begin an array with the first of it, or go on. */
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
	bool length = frac_cmp(was->length, is->length) != 0, offset = frac_cmp(was->offset, is->offset) != 0, ranks = same_ranks(m, o, n);
	if (was->part != is->part) {
		put_tree(&text, o, n);
		text_printf(&text, ": is of part %d, was of part %d", is->part, was->part);
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
		text_put(&text, length || offset ? "; serves other ranks" : ": serves other ranks");
	put_segment_json(&a, was);
	put_segment_json(&b, is);
	return difference_put(m->ctx, m->list, of_trees(DIFF_SEGMENTS, o, n), &text, &a, &b);
}

/* The first edge of a phase that changed. */
static void
put_change(Text *text, const struct match *m, const Edge *was, const Edge *is)
{
	text_put(text, "edge ");
	put_hop(text, is ? m->new.sched : m->old.sched, is ? is : was);
	if (!is || !was) {
		text_put(text, is ? " is new" : " is gone");
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
	int n_was = phase_edges(was, up, &a), n_is = phase_edges(is, up, &b), changed = 0;
	Text text = { 0 }, old = { 0 }, new = { 0 };
	put_tree(&text, o, n);
	text_put(&text, up ? ", up: " : ", down: ");
	spread_edges(m, a, n_was, up);
	for (int e = 0; e < n_is; e++) {
		const Edge **other = &m->at[edge_key(&b[e], up)];
		bool same = *other && edge_same(m, *other, &b[e]);
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
		if (!m->at[edge_key(&a[e], up)])
			continue;
		if (changed++ == 0)
			put_change(&text, m, &a[e], NULL);
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

/* "[src, dst, place]" of each edge that moved, and words for the first. */
static void
put_moved(struct match *m, const Edge *edge, const int *place, const bool *moved, int n, Text *text, Text *old, Text *new)
{
	int count = 0;
	for (int e = 0; e < n; e++) {
		if (!moved[e])
			continue;
		if (count++ == 0) {
			text_put(text, "edge ");
			put_hop(text, m->new.sched, &edge[e]);
			text_put(text, " comes ");
			put_place(text, e + 1);
			text_put(text, ", was ");
			put_place(text, place[e] + 1);
		}
		put_item(old);
		text_printf(old, "[%d, %d, %d]", edge[e].src, edge[e].dst, place[e]);
		put_item(new);
		text_printf(new, "[%d, %d, %d]", edge[e].src, edge[e].dst, e);
	}
	if (count > 1)
		text_printf(text, "; %d more edge%s moved", count - 1, count > 2 ? "s" : "");
	put_array_end(old);
	put_array_end(new);
}

/* The same edges. */
static Status
diff_order(struct match *m, int o, int n, bool up)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	const Edge *a, *b;
	int n_edges = phase_edges(&m->old.sched->segment[o].tree, up, &a), *place;
	bool *moved, any = false;
	phase_edges(&m->new.sched->segment[n].tree, up, &b);
	TRY(TEMP(m->ctx, place, n_edges));
	TRY(TEMP(m->ctx, moved, n_edges));
	spread_edges(m, a, n_edges, up);
	for (int e = 0; e < n_edges; e++) {
		place[e] = (int)(m->at[edge_key(&b[e], up)] - a);
		any = any || place[e] != e;
	}
	if (any) {
		Text text = { 0 }, old = { 0 }, new = { 0 };
		TRY(find_moved(m->ctx, place, n_edges, moved));
		put_tree(&text, o, n);
		text_put(&text, up ? ", up: " : ", down: ");
		put_moved(m, b, place, moved, n_edges, &text, &old, &new);
		TRY(difference_put(m->ctx, m->list, of_trees(DIFF_ORDER, o, n), &text, &old, &new));
	}
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

static Status
diff_pair(struct match *m, int o, int n)
{
	TRY(diff_segment(m, o, n));
	bool same = same_body(m, o, n);
	if (!same)
		TRY(diff_tree_root(m, o, n));
	for (int up = 0; up < 2; up++)
		TRY(same ? diff_order(m, o, n, up) : diff_edges(m, o, n, up));
	return OK;
}

/* ---- trees as a whole ---- */

/* Only one of them has it. */
static Status
diff_single(struct match *m, int o, int n)
{
	const Schedule *sched = o < 0 ? m->new.sched : m->old.sched;
	const Segment *s = &sched->segment[o < 0 ? n : o];
	Text text = { 0 }, json = { 0 };
	put_tree(&text, o, n);
	text_put(&text, o < 0 ? " is new: root " : " is gone: root ");
	put_vertex_name(&text, sched->topo, s->tree.root);
	text_put(&text, ", ");
	put_share(&text, s->length);
	put_segment_json(&json, s);
	return difference_put(m->ctx, m->list, of_trees(DIFF_EDGES, o, n), &text, o < 0 ? NULL : &json, o < 0 ? &json : NULL);
}

/* Trees with the same edges whose places are others. */
static Status
diff_places(struct match *m)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	int n = m->new.sched->n_segments, n_pairs = 0, *place, *tree;
	bool *moved;
	TRY(TEMP(m->ctx, place, n));
	TRY(TEMP(m->ctx, tree, n));
	TRY(TEMP(m->ctx, moved, n));
	for (int t = 0; t < n; t++) {
		int o = m->new.mate[t];
		if (o < 0 || !same_body(m, o, t))
			continue;
		place[n_pairs] = o;
		tree[n_pairs++] = t;
	}
	TRY(find_moved(m->ctx, place, n_pairs, moved));
	for (int i = 0; i < n_pairs; i++) {
		Text text = { 0 }, a = { 0 }, b = { 0 };
		if (!moved[i])
			continue;
		put_tree(&text, place[i], tree[i]);
		text_put(&text, ": comes ");
		put_place(&text, tree[i] + 1);
		text_put(&text, ", was ");
		put_place(&text, place[i] + 1);
		text_int(&a, place[i]);
		text_int(&b, tree[i]);
		TRY(difference_put(m->ctx, m->list, of_trees(DIFF_ORDER, place[i], tree[i]), &text, &a, &b));
	}
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

Status
diff_trees(Ctx *ctx, const Schedule *old, const Schedule *new, const int *old_number, const int *new_number, Differences *list)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct match m = { .ctx = ctx, .old = { .sched = old, .number = old_number }, .new = { .sched = new, .number = new_number }, .list = list };
	struct keyed *a, *b;
	TRY(hash_side(ctx, &m.old));
	TRY(hash_side(ctx, &m.new));
	TRY(TEMP(ctx, m.at, old->topo->n_ranks));
	TRY(TEMP(ctx, a, old->n_segments));
	TRY(TEMP(ctx, b, new->n_segments));
	for (int round = 0; round < N_ROUNDS; round++)
		pair_round(&m, (enum round)round, a, b);
	pair_alike(&m);
	for (int t = 0; t < new->n_segments; t++)
		if (m.new.mate[t] >= 0)
			TRY(diff_pair(&m, m.new.mate[t], t));
	TRY(diff_places(&m));
	for (int t = 0; t < old->n_segments; t++)
		if (m.old.mate[t] < 0)
			TRY(diff_single(&m, t, -1));
	for (int t = 0; t < new->n_segments; t++)
		if (m.new.mate[t] < 0)
			TRY(diff_single(&m, -1, t));
	arena_release(&ctx->scratch, mark);
	return OK;
}
