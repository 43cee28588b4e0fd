/* Allreduce over full-duplex links between GPUs, at the bound, without a linear program.
 *
 * A tree uses both directions of its edges, so trees are spanning trees of an undirected graph, and by Tutte and
 * Nash-Williams the bound, the least of capacity / (2 (k - 1)) over partitions, is always reached. Let it be p/q links.
 * With capacities of q for each link, p spanning trees fit, counted with their weights.
 *
 * Trees of p together are chosen greedily, each where edges have most room; some edges then have too much load. What
 * is too much goes along exchanges
 *
 *     T - e + f,   e in T, f not in T but between the two sides that T - e leaves
 *
 * from an edge with too much, e, to one with room, f; where no tree has such a pair, along a shortest sequence of
 * them, which may be made together (Edmonds 1965, matroid partition). There is one as long as any edge has too much,
 * since p trees fit. An exchange of less than a tree's weight splits the tree, and uses up what e has too much or what
 * f has left, so there are about as many trees as edges at most. Example: a ring of 3 links of 1 has p/q = 3/2; of
 * three trees of weight 1 each leaves out another edge.
 *
 * Of exchanges those are preferred that make no tree deeper than the deepest. */
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/spanner.h"

#include <stdlib.h>
#include <string.h>

/* ---- greedy trees ---- */

/* Edges cost what the load would be by the weight, relative to their room; of equal trees a shallow one is taken. */
static Status
add_greedy(struct spanner *s, int64_t weight)
{
	enum { FINE = 1 << 10 };
	struct spanning *t;
	int *there = s->queue;
	for (int e = 0; e < s->n_edges; e++) {
		const struct pair *p = &s->pair[e];
		Wide over = (Wide)(p->load + weight - p->room) * FINE / (p->room > 0 ? p->room : 1);
		int64_t price = over <= 0 ? 0 : over > (1 << 20) ? 1 << 20 : (int64_t)over;
		s->price[p->there] = s->price[p->back] = 1 + (over > 0 ? s->n + price * s->n : 0);
	}
	search_price(&s->search, s->price);
	TRY(spanner_add(s, weight, &t));
	if (search_spanning_tree(&s->search, there, there + s->n) < 0)
		return fail(s->ctx, INTERNAL, "%s: no tree over connected ranks", s->topo->name);
	for (int i = 0; i < s->n - 1; i++) {
		int e = s->edge_of[there[i]];
		t->has[e / 64] |= UINT64_C(1) << (e % 64);
		s->pair[e].load += weight;
	}
	spanner_arrange(s, t);
	s->deepest = t->diameter > s->deepest ? t->diameter : s->deepest;
	return OK;
}

/* ---- exchanges ---- */

/* The rank below edge e of a tree, and in s->below its side. */
static int
cut_tree(struct spanner *s, const struct spanning *t, int e)
{
	int cut = t->up[s->pair[e].a] == e ? s->pair[e].a : s->pair[e].b;
	for (int i = 0; i < s->n; i++) {
		int v = t->order[i], p = spanner_parent(s, t, v);
		s->below[v] = v == cut || (p >= 0 && s->below[p]);
	}
	return cut;
}

static bool
joins_sides(const struct spanner *s, int f)
{
	return s->below[s->pair[f].a] != s->below[s->pair[f].b];
}

static int64_t
left_of(const struct spanner *s, int f)
{
	return s->pair[f].room - s->pair[f].load;
}

/* A single exchange, how much of the load it moves, and the diameter of the tree that it makes. */
struct exchange {
	int tree, edge;		/* -1: none */
	int64_t amount;
	int diameter;
};

static bool
is_better(const struct spanner *s, const struct exchange *a, const struct exchange *b)
{
	int deep = a->diameter > s->deepest ? a->diameter : s->deepest;
	int known = b->diameter > s->deepest ? b->diameter : s->deepest;
	if (b->tree < 0 || deep != known)
		return b->tree < 0 || deep < known;
	if (a->amount != b->amount)
		return a->amount > b->amount;
	return a->diameter < b->diameter;
}

/* The best exchange of e for an edge with room. */
static void
best_exchange(struct spanner *s, int e, struct exchange *best)
{
	int64_t excess = -left_of(s, e);
	*best = (struct exchange){ .tree = -1, .edge = -1 };
	for (int i = 0; i < s->n_trees; i++) {
		const struct spanning *t = &s->tree[i];
		if (!spanner_has(t, e))
			continue;
		int cut = cut_tree(s, t, e), longest = spanner_measure(s, t, cut);
		for (int f = 0; f < s->n_edges; f++) {
			if (left_of(s, f) <= 0 || spanner_has(t, f) || !joins_sides(s, f))
				continue;
			int through = s->away[s->pair[f].a] + 1 + s->away[s->pair[f].b];
			struct exchange x = { i, f, excess < t->weight ? excess : t->weight,
				through > longest ? through : longest };
			x.amount = left_of(s, f) < x.amount ? left_of(s, f) : x.amount;
			if (is_better(s, &x, best))
				*best = x;
		}
	}
}

/* Edges that an exchange of e reaches, by any tree, enter the queue. Returns one that has room; -1: none. */
static int
spread(struct spanner *s, int e, int *tail)
{
	for (int i = 0; i < s->n_trees; i++) {
		const struct spanning *t = &s->tree[i];
		if (!spanner_has(t, e))
			continue;
		cut_tree(s, t, e);
		for (int f = 0; f < s->n_edges; f++) {
			if (s->step[f].edge >= 0 || spanner_has(t, f) || !joins_sides(s, f))
				continue;
			s->step[f] = (struct step){ e, i };
			if (left_of(s, f) > 0)
				return f;
			s->queue[(*tail)++] = f;
		}
	}
	return -1;
}

/* A shortest sequence of exchanges from e to an edge with room; -1: there is none. */
static int
find_sequence(struct spanner *s, int e)
{
	int tail = 0, found = -1;
	for (int f = 0; f < s->n_edges; f++)
		s->step[f] = (struct step){ -1, -1 };
	s->step[e] = (struct step){ e, -1 };
	s->queue[tail++] = e;
	for (int head = 0; head < tail && found < 0; head++)
		found = spread(s, s->queue[head], &tail);
	return found;
}

/* Tree i in which all exchanges of the sequence to `last` that are its own are made, for `amount` of its weight. */
static Status
exchange_in(struct spanner *s, int i, int last, int64_t amount)
{
	struct spanning *t = &s->tree[i], *rest;
	if (amount < t->weight) {
		TRY(spanner_add(s, t->weight - amount, &rest));
		t = &s->tree[i];
		memcpy(rest->has, t->has, s->words * sizeof *t->has);
		memcpy(rest->order, t->order, (size_t)s->n * sizeof *t->order);
		memcpy(rest->up, t->up, (size_t)s->n * sizeof *t->up);
		rest->diameter = t->diameter;
		t->weight = amount;
	}
	for (int f = last; s->step[f].tree >= 0; f = s->step[f].edge) {
		if (s->step[f].tree != i)
			continue;
		int e = s->step[f].edge;
		t->has[e / 64] &= ~(UINT64_C(1) << (e % 64));
		t->has[f / 64] |= UINT64_C(1) << (f % 64);
	}
	spanner_arrange(s, t);
	return OK;
}

/* The exchanges that lead from e to `last`, for as much as e has too much, the last has room and trees have weight. */
static Status
apply_sequence(struct spanner *s, int e, int last)
{
	int64_t amount = -left_of(s, e) < left_of(s, last) ? -left_of(s, e) : left_of(s, last);
	for (int f = last; f != e; f = s->step[f].edge)
		amount = s->tree[s->step[f].tree].weight < amount ? s->tree[s->step[f].tree].weight : amount;
	s->pair[e].load -= amount;
	s->pair[last].load += amount;
	for (int f = last; f != e; f = s->step[f].edge) {
		bool done = false;
		for (int g = last; g != f && !done; g = s->step[g].edge)
			done = s->step[g].tree == s->step[f].tree;
		if (!done)
			TRY(exchange_in(s, s->step[f].tree, last, amount));
	}
	return OK;
}

/* Some load of e goes to other edges. False in *moved: no sequence of exchanges leads to one with room. */
static Status
relieve(struct spanner *s, int e, bool *moved)
{
	struct exchange best;
	int last = -1;
	best_exchange(s, e, &best);
	if (best.tree >= 0) {
		last = best.edge;
		s->step[e] = (struct step){ e, -1 };
		s->step[last] = (struct step){ e, best.tree };
	} else {
		last = find_sequence(s, e);
	}
	*moved = last >= 0;
	return *moved ? apply_sequence(s, e, last) : OK;
}

/* ---- the packing ---- */

/* The edge with most load above its room; -1: none. */
static int
fullest(const struct spanner *s)
{
	int worst = -1;
	for (int e = 0; e < s->n_edges; e++)
		if (left_of(s, e) < 0 && (worst < 0 || left_of(s, e) < left_of(s, worst)))
			worst = e;
	return worst;
}

/* About the ns of one exchange, for out_of_time. */
static int64_t
work_of(const struct spanner *s)
{
	return (int64_t)s->n_trees * (s->n_edges + 8 * s->n);
}

/* Trees of weight `total` together that fit; false in *fit: time is over before they do. */
static Status
pack_total(struct spanner *s, int64_t total, bool *fit)
{
	enum { PART = 2 };
	bool moved = true;
	for (int64_t left = total; left > 0;) {
		int64_t weight = (left + PART - 1) / PART;
		TRY(add_greedy(s, weight));
		left -= weight;
	}
	for (int e; moved && (e = fullest(s)) >= 0 && !out_of_time(s->ctx, work_of(s));)
		TRY(relieve(s, e, &moved));
	*fit = fullest(s) < 0;
	return moved ? OK : fail(s->ctx, INTERNAL, "%s: spanning trees do not reach their bound", s->topo->name);
}

/* Trees with the same edges become one. */
static void
merge_equal(struct spanner *s)
{
	for (int i = 0; i < s->n_trees; i++) {
		for (int k = s->n_trees - 1; k > i; k--) {
			if (memcmp(s->tree[i].has, s->tree[k].has, s->words * sizeof *s->tree[i].has) != 0)
				continue;
			s->tree[i].weight += s->tree[k].weight;
			s->tree[k] = s->tree[--s->n_trees];
		}
	}
}

static int
heaviest_first(const void *a, const void *b)
{
	const struct spanning *p = a, *q = b;
	if (p->weight != q->weight)
		return p->weight < q->weight ? 1 : -1;
	return p->diameter != q->diameter ? (p->diameter > q->diameter) - (p->diameter < q->diameter) : 0;
}

static Status
tree_of(struct spanner *s, const struct spanning *t, Tree *out)
{
	ArenaMark mark = arena_mark(&s->ctx->scratch);
	Edge *there, *back;
	int n = 0;
	TRY(TEMP(s->ctx, there, s->n));
	TRY(TEMP(s->ctx, back, s->n));
	for (int e = 0; e < s->n_edges; e++) {
		const struct pair *p = &s->pair[e];
		int *link;
		if (!spanner_has(t, e))
			continue;
		TRY(NEW(s->ctx, link, 2));
		link[0] = p->there;
		link[1] = p->back;
		there[n] = (Edge){ p->a, p->b, 1, link };
		back[n++] = (Edge){ p->b, p->a, 1, link + 1 };
	}
	TRY(tree_arrange(s->ctx, s->n, ALLREDUCE, -1, there, back, n, out));
	arena_release(&s->ctx->scratch, mark);
	return OK;
}

static Status
to_packing(struct spanner *s, Frac unit, bool fit, Packing **out)
{
	Packing *pack;
	int64_t *load;
	merge_equal(s);
	qsort(s->tree, (size_t)s->n_trees, sizeof *s->tree, heaviest_first);
	TRY(pack_new(s->ctx, s->n_trees, false, &pack));
	pack->n_trees = s->n_trees;
	pack->unit = unit;
	for (int t = 0; t < s->n_trees; t++) {
		TRY(tree_of(s, &s->tree[t], &pack->tree[t]));
		pack->weight[t] = s->tree[t].weight;
	}
	TRY(TEMP(s->ctx, load, s->topo->n_links));
	if (!fit && !pack_widest_unit(s->topo, pack, load, &pack->unit))
		return OK;
	TRY(pack_check(s->ctx, s->topo, pack));
	*out = pack;
	return OK;
}

/* The fraction with the least denominator of those from low to high. */
static Frac
simplest_between(Frac low, Frac high)
{
	Wide num[2] = { 0, 1 }, den[2] = { 1, 0 };	/* of the last two convergents */
	Wide a = low.num, b = low.den, c = high.num, d = high.den;
	for (;;) {
		Wide whole = a / b;
		bool ends = a % b == 0 || whole < c / d;
		whole += ends && a % b != 0;
		Wide p = whole * num[1] + num[0], q = whole * den[1] + den[0];
		if (ends)
			return (Frac){ p, (int64_t)q };
		num[0] = num[1], num[1] = p;
		den[0] = den[1], den[1] = q;
		Wide rest = a - whole * b, other = c - whole * d;
		/* Their reciprocals, in the other order. */
		a = d, d = rest, c = b, b = other;
	}
}

Status
pack_spanning(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t unit = topo_link_unit(topo);
	struct spanner s;
	Frac keep, low, rate, each;
	bool fit = false;
	*out = NULL;
	if (ask->coll != ALLREDUCE || topo->n_vertices > topo->n_ranks || topo->route || ctx->late
	    || bound->kind != CERTIFICATE_PARTITION || !frac_div(bound->rate, (Frac){ unit, 1 }, &rate)
	    || !frac_sub(FRAC_ONE, ask->tolerance, &keep) || !frac_mul(rate, keep, &low)
	    || low.num >> 60 || rate.num >> 60)
		return OK;
	rate = simplest_between(low, rate);
	TRY(spanner_new(ctx, topo, &s));
	if (rate.num >> PACKING_BITS == 0 && spanner_pair_links(&s, unit, rate.den)
	    && frac_make(unit, rate.den, &each)) {
		TRY(pack_total(&s, (int64_t)rate.num, &fit));
		TRY(to_packing(&s, each, fit, out));
	}
	if (*out)
		log_verbose(ctx, "spanning trees: %d, %s", (*out)->n_trees, fit ? "at the bound" : "cut short");
	arena_release(&ctx->scratch, mark);
	return OK;
}
