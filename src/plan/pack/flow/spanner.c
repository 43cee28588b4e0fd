/* Spanning trees with weights, over a graph of full-duplex links. */
#include "plan/pack/flow/spanner.h"
#include "base/array.h"

#include <string.h>

static int
other_end(const struct spanner *s, int e, int v)
{
	return s->pair[e].a == v ? s->pair[e].b : s->pair[e].a;
}

int
spanner_parent(const struct spanner *s, const struct spanning *t, int v)
{
	return t->up[v] < 0 ? -1 : other_end(s, t->up[v], v);
}

/* ---- the graph ---- */

/* An unused link in the opposite direction, of the same capacity, if there is one of the same class; -1: none. */
static int
opposite(const struct spanner *s, int l)
{
	const Topology *topo = s->topo;
	const Link *link = &topo->link[l];
	int found = -1;
	for (int i = topo->first_out[link->to]; i < topo->first_out[link->to + 1]; i++) {
		const Link *back = &topo->link[topo->out[i]];
		if (back->to != link->from || back->capacity != link->capacity || s->edge_of[topo->out[i]] >= 0)
			continue;
		if (back->class == link->class)
			return topo->out[i];
		found = found < 0 ? topo->out[i] : found;
	}
	return found;
}

bool
spanner_pair_links(struct spanner *s, int64_t unit, int64_t scale)
{
	const Topology *topo = s->topo;
	Wide sum = 0;
	memset(s->edge_of, -1, (size_t)topo->n_links * sizeof *s->edge_of);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (s->edge_of[l] >= 0)
			continue;
		int back = opposite(s, l);
		Wide room = (Wide)(link->capacity / unit) * scale;
		sum += room;
		if (back < 0 || sum >> 60)
			return false;
		s->edge_of[l] = s->edge_of[back] = s->n_edges;
		s->pair[s->n_edges++] = (struct pair){ link->from, link->to, l, back, (int64_t)room, 0 };
	}
	return true;
}

Status
spanner_new(Ctx *ctx, const Topology *topo, struct spanner *s)
{
	size_t n = (size_t)topo->n_ranks, n_links = (size_t)topo->n_links;
	*s = (struct spanner){ .ctx = ctx, .topo = topo, .n = topo->n_ranks, .words = (n_links / 2 + 64) / 64 };
	TRY(TEMP(ctx, s->pair, n_links));
	TRY(TEMP(ctx, s->edge_of, n_links));
	TRY(search_new(ctx, topo, &s->search));
	TRY(TEMP(ctx, s->price, n_links));
	TRY(TEMP(ctx, s->first, n + 1));
	TRY(TEMP(ctx, s->list, 2 * n));
	TRY(TEMP(ctx, s->below, n));
	TRY(TEMP(ctx, s->down, n));
	TRY(TEMP(ctx, s->away, n));
	TRY(TEMP(ctx, s->second, n));
	TRY(TEMP(ctx, s->step, n_links));
	return TEMP(ctx, s->queue, n_links + n);
}

/* ---- trees ---- */

int
spanner_measure(struct spanner *s, const struct spanning *t, int cut)
{
	int longest = 0;
	memset(s->down, 0, (size_t)s->n * sizeof *s->down);
	memset(s->second, 0, (size_t)s->n * sizeof *s->second);
	for (int i = s->n - 1; i > 0; i--) {
		int v = t->order[i], p = spanner_parent(s, t, v), height = s->down[v] + 1;
		if (v == cut)
			continue;
		int less = height > s->down[p] ? s->down[p] : height;
		s->second[p] = less > s->second[p] ? less : s->second[p];
		s->down[p] = height > s->down[p] ? height : s->down[p];
	}
	for (int i = 0; i < s->n; i++) {
		int v = t->order[i], p = i > 0 && v != cut ? spanner_parent(s, t, v) : -1, upwards = 0;
		if (p >= 0) {
			int other = s->down[p] == s->down[v] + 1 ? s->second[p] : s->down[p];
			/* What p reaches but not by v: away is the larger of down and upwards. */
			upwards = 1 + (s->queue[p] > other ? s->queue[p] : other);
		}
		s->queue[v] = upwards;
		s->away[v] = upwards > s->down[v] ? upwards : s->down[v];
		longest = s->away[v] > longest ? s->away[v] : longest;
	}
	return longest;
}

void
spanner_arrange(struct spanner *s, struct spanning *t)
{
	memset(s->first, 0, ((size_t)s->n + 1) * sizeof *s->first);
	for (int e = 0; e < s->n_edges; e++) {
		if (spanner_has(t, e)) {
			s->first[s->pair[e].a + 1]++;
			s->first[s->pair[e].b + 1]++;
		}
	}
	for (int v = 0; v < s->n; v++)
		s->first[v + 1] += s->first[v];
	memset(s->down, 0, (size_t)s->n * sizeof *s->down);
	for (int e = 0; e < s->n_edges; e++) {
		if (spanner_has(t, e)) {
			int a = s->pair[e].a, b = s->pair[e].b;
			s->list[s->first[a] + s->down[a]++] = e;
			s->list[s->first[b] + s->down[b]++] = e;
		}
	}
	int tail = 0;
	t->up[0] = -1;
	t->order[tail++] = 0;
	for (int head = 0; head < tail; head++) {
		int v = t->order[head];
		for (int i = s->first[v]; i < s->first[v + 1]; i++) {
			int w = other_end(s, s->list[i], v);
			if (s->list[i] == t->up[v])
				continue;
			t->up[w] = s->list[i];
			t->order[tail++] = w;
		}
	}
	t->diameter = spanner_measure(s, t, -1);
}

Status
spanner_add(struct spanner *s, int64_t weight, struct spanning **out)
{
	struct spanning t = { .weight = weight };
	TRY(TEMP(s->ctx, t.has, s->words));
	TRY(TEMP(s->ctx, t.order, s->n));
	TRY(TEMP(s->ctx, t.up, s->n));
	TRY(GROW_TEMP(s->ctx, s->tree, s->n_trees, s->capacity));
	*out = &s->tree[s->n_trees++];
	**out = t;
	return OK;
}
