/* Switches split off: a pair of an arc u -> w into a switch and an arc w -> t out of it becomes one arc u -> t, for as
 * many units as is safe.
 *
 * Trees that owe all ranks `total` units fit over switches that only forward if and only if for each set X of vertices
 * with a rank
 *     slack(X) = units of arcs into X - (sum of owed over the ranks outside X) >= 0
 * and no more leaves a switch than enters it (Bang-Jensen, Frank, Jackson 1995). Where as much leaves as enters, each
 * arc into a switch has a partner, and the pair is split off whole (Mader 1982; Frank 1988). Only sets that have w,
 * but not u and t, or u and t, but not w, lose slack, and all of them as much as is split. So a number of units is
 * split at once, and what the worst set lacks then is taken back; that set has no slack from then on, nor will it get
 * any, so that other pairs which it would lose by need no flow.
 *
 *     u -2-> w -2-> t	  2 of both: what is safe now	   u -1-> t, 1 is left of u -> w and w -> t
 *
 * What the worst set lacks takes a maximum flow for each rank v: from a source, which sends each rank what it owes, to
 * v. Ranks whose sets were looked at join the source: a set that has one of them was seen before. So all flows but a
 * few are from neighbours, and short.
 *
 * A switch goes like this: wanted pairs, many at once, and one at a time where that is too much; if what is left of its
 * arcs is needed, all pairs, likewise. The switch with the fewest pairs is next. */
#include "graph/split_off.h"
#include "graph/splitter.h"
#include "base/array.h"

#include <string.h>

enum { CHECK_NS = 2000 };	/* about what a rank's flow takes */

/* ---- one switch ---- */

static Status
list_arcs(struct splitter *s, int w)
{
	if (s->room < s->n_arcs) {
		s->room = 2 * s->n_arcs;
		TRY(TEMP_EACH(s->ctx, s->room, s->in, s->out));
	}
	s->n_in = s->n_out = s->n_pairs = 0;
	for (int a = 0; a < s->n_arcs; a++) {
		if (s->arc[a].units > 0 && s->arc[a].to == w)
			s->in[s->n_in++] = a;
		if (s->arc[a].units > 0 && s->arc[a].from == w)
			s->out[s->n_out++] = a;
	}
	return OK;
}

/* Units that hops want from each neighbour before w to each after it; the hops then go past w. at_vertex: the first
 * arc of a neighbour in `in`, plus one. */
static Status
add_wanted(struct splitter *s, int w)
{
	TRY(TEMP(s->ctx, s->wanted, (size_t)s->n * (size_t)s->n_in));
	memset(s->at_vertex, 0, (size_t)s->n * sizeof *s->at_vertex);
	for (int i = s->n_in - 1; i >= 0; i--)
		s->at_vertex[s->arc[s->in[i]].from] = i + 1;
	for (int h = 0; h < s->n_want; h++) {
		Hop *hop = &s->want[h];
		int i = 1;
		while (i < hop->n && hop->vertex[i] != w)
			i++;
		if (i >= hop->n - 1)
			continue;
		int from = s->at_vertex[hop->vertex[i - 1]];
		if (from > 0)
			s->wanted[(size_t)(from - 1) * (size_t)s->n + (size_t)hop->vertex[i + 1]] += hop->units;
		memmove(hop->vertex + i, hop->vertex + i + 1, (size_t)(hop->n - i - 1) * sizeof *hop->vertex);
		hop->n--;
	}
	return OK;
}

/* The next wanted pair at or after (*i, *j), and how much is left of it; false: there is none. */
static bool
next_wanted(const struct splitter *s, int *i, int *j, int64_t **left)
{
	for (; *i < s->n_in; ++*i, *j = 0) {
		const Arc *in = &s->arc[s->in[*i]];
		int64_t *row = s->wanted + (size_t)(s->at_vertex[in->from] - 1) * (size_t)s->n;
		for (; *j < s->n_out && in->units > 0; ++*j) {
			*left = &row[s->arc[s->out[*j]].to];
			if (**left > 0 && split_most(s, s->in[*i], s->out[*j]) > 0)
				return true;
		}
	}
	return false;
}

/* Pairs after the first ones are as they were; what was wanted is wanted again, where s->wanted has that. */
static void
take_back(struct splitter *s, int first, bool wanted)
{
	while (s->n_pairs > first) {
		const struct pair *p = &s->pair[--s->n_pairs];
		const Arc *in = &s->arc[p->in];
		if (wanted)
			s->wanted[(size_t)(s->at_vertex[in->from] - 1) * (size_t)s->n + (size_t)s->arc[p->out].to]
			    += p->units;
		split_move(s, p, -p->units);
		s->n_arcs -= p->made >= 0;
	}
	s->net_arcs = -1;
}

/* How many are tried at once next, where n were. */
static int
next_many(int many, int n, bool safe)
{
	return !safe ? n / 4 : many < INT32_MAX / 2 ? 2 * many : many;
}

/* Wanted pairs: as many at once as proved safe before, and twice that where all of them are. */
static Status
split_wanted(struct splitter *s, int w)
{
	int i = 0, j = 0, many = INT32_MAX;
	int64_t *left, lacks;
	TRY(add_wanted(s, w));
	while (next_wanted(s, &i, &j, &left) && !out_of_time(s->ctx, (int64_t)CHECK_NS * s->topo->n_ranks)) {
		int from_i = i, from_j = j, first = s->n_pairs;
		if (many <= 1) {
			int64_t most = *left;
			*left = 0;
			TRY(split_safely(s, w, s->in[i], s->out[j++], most));
			many = 2;
			continue;
		}
		for (int n = 0; n < many && next_wanted(s, &i, &j, &left); n++) {
			int64_t units = split_most(s, s->in[i], s->out[j]);
			units = *left < units ? *left : units;
			TRY(split_pair(s, s->in[i], s->out[j++], units));
			*left -= units;
		}
		TRY(split_lacking(s, 1, &lacks));
		many = next_many(many, s->n_pairs - first, lacks == 0);
		if (lacks == 0)
			continue;
		take_back(s, first, true);
		i = from_i;
		j = from_j;
	}
	return OK;
}

/* The place of a pair in the order of all; those that lead back to where they come from are last. */
struct place {
	int back, i, k;
};

/* The next pair at or after the place of which some may be split; false: there is none. */
static bool
next_pair(const struct splitter *s, int w, struct place *at, int *in, int *out)
{
	for (; at->back < 2; at->back++, at->i = 0) {
		for (; at->i < s->n_in; at->i++, at->k = 1) {
			for (; at->k <= s->n_out && s->arc[s->in[at->i]].units > 0; at->k++) {
				*in = s->in[at->i];
				*out = s->out[(at->i + at->k) % s->n_out];
				bool same = s->arc[*in].from == s->arc[*out].to;
				if (same == at->back && split_most(s, *in, *out) > 0
				    && !split_is_blocked(s, s->arc[*in].from, w, s->arc[*out].to))
					return true;
			}
		}
	}
	return false;
}

/* All pairs, likewise. Nearly all of them are safe, so that many at once save checks; the result is that of one after
 * the other. */
static Status
split_all(struct splitter *s, int w)
{
	int many = INT32_MAX, in, out;
	struct place at = { 0, 0, 1 };
	int64_t lacks;
	while (next_pair(s, w, &at, &in, &out) && !out_of_time(s->ctx, (int64_t)CHECK_NS * s->topo->n_ranks)) {
		struct place from = at;
		int first = s->n_pairs;
		if (many <= 1) {
			TRY(split_safely(s, w, in, out, INT64_MAX));
			at.k++;
			many = 2;
			continue;
		}
		for (int n = 0; n < many && next_pair(s, w, &at, &in, &out); n++, at.k++)
			TRY(split_pair(s, in, out, split_most(s, in, out)));
		TRY(split_lacking(s, 1, &lacks));
		many = next_many(many, s->n_pairs - first, lacks == 0);
		if (lacks == 0)
			continue;
		take_back(s, first, false);
		at = from;
	}
	return OK;
}

/* Does at least as much enter each switch as leaves it? */
static bool
is_even(struct splitter *s)
{
	bool even = true;
	memset(s->balance, 0, (size_t)s->n * sizeof *s->balance);
	for (int a = 0; a < s->n_arcs; a++) {
		s->balance[s->arc[a].from] -= s->arc[a].units;
		s->balance[s->arc[a].to] += s->arc[a].units;
	}
	for (int w = s->topo->n_ranks; w < s->n; w++)
		even = even && s->balance[w] >= 0;
	return even;
}

/* *fits: the trees fit without what is left of the arcs of the switch, which are gone then. even: and what enters other
 * switches is still as much as leaves them. */
static Status
drop_rest(struct splitter *s, bool even, bool *fits)
{
	int64_t *units, sum = 0, lacks = 0;
	TRY(TEMP(s->ctx, units, s->n_in + s->n_out));
	for (int i = 0; i < s->n_in + s->n_out; i++) {
		int a = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
		units[i] = s->arc[a].units;
		sum += units[i];
		split_set_units(s, a, 0);
	}
	if (sum > 0)
		TRY(split_lacking(s, 1, &lacks));
	*fits = lacks == 0 && (!even || is_even(s));
	for (int i = 0; i < s->n_in + s->n_out && !*fits; i++)
		split_set_units(s, i < s->n_in ? s->in[i] : s->out[i - s->n_in], units[i]);
	return OK;
}

/* Arcs that are gone, and those without units, make room. */
static void
compact(struct splitter *s)
{
	int kept = 0;
	for (int a = 0; a < s->n_arcs; a++)
		if (s->arc[a].units > 0)
			s->arc[kept++] = s->arc[a];
	s->n_arcs = kept;
	s->net_arcs = -1;
}

static Status
split_switch(struct splitter *s, int w, bool *done)
{
	TRY(list_arcs(s, w));
	TRY(split_wanted(s, w));
	TRY(drop_rest(s, true, done));
	if (!*done) {
		TRY(split_all(s, w));
		TRY(drop_rest(s, false, done));
	}
	s->gone[w] = true;
	compact(s);
	return OK;
}

/* The one with the fewest pairs of arcs; -1: none is left. */
static int
next_switch(struct splitter *s)
{
	int best = -1, *in = s->at_vertex, *out = s->place;
	int64_t fewest = INT64_MAX;
	memset(in, 0, (size_t)s->n * sizeof *in);
	memset(out, 0, (size_t)s->n * sizeof *out);
	for (int a = 0; a < s->n_arcs; a++) {
		out[s->arc[a].from]++;
		in[s->arc[a].to]++;
	}
	for (int w = s->topo->n_ranks; w < s->n; w++) {
		int64_t pairs = (int64_t)in[w] * out[w];
		if (!s->gone[w] && pairs < fewest) {
			best = w;
			fewest = pairs;
		}
	}
	memset(out, 0, (size_t)s->n * sizeof *out);
	return best;
}

/* ---- more out of a switch than into it ---- */

/* What leaves a switch falls to what enters it, where that is safe. */
static Status
trim_switch(struct splitter *s, int w, bool *changed)
{
	int64_t excess = 0, lacks;
	TRY(list_arcs(s, w));
	for (int i = 0; i < s->n_out; i++)
		excess += s->arc[s->out[i]].units;
	for (int i = 0; i < s->n_in; i++)
		excess -= s->arc[s->in[i]].units;
	for (int i = 0; i < s->n_out && excess > 0; i++) {
		int64_t had = s->arc[s->out[i]].units, units = had < excess ? had : excess;
		split_set_units(s, s->out[i], had - units);
		TRY(split_lacking(s, units, &lacks));
		units -= lacks < units ? lacks : units;
		split_set_units(s, s->out[i], had - units);
		excess -= units;
		*changed |= units > 0;
	}
	return OK;
}

static Status
trim(struct splitter *s)
{
	for (bool changed = true; changed && !s->ctx->late;) {
		changed = false;
		for (int w = s->topo->n_ranks; w < s->n; w++)
			TRY(trim_switch(s, w, &changed));
	}
	return OK;
}

/* ---- all of them ---- */

Status
supply_edge(Ctx *ctx, const Supply *supply, int from, int to, int n_links, const int *link, bool up, Edge *out)
{
	bool against = supply->into || up;
	int *copy;
	TRY(NEW(ctx, copy, n_links));
	for (int i = 0; i < n_links; i++) {
		int l = link[against ? n_links - 1 - i : i];
		copy[i] = up ? supply->opposite[l] : l;
	}
	*out = (Edge){ against ? to : from, against ? from : to, n_links, copy };
	return OK;
}

static Status
splitter_new(Ctx *ctx, const Supply *supply, struct splitter *s)
{
	const Topology *topo = supply->topo;
	size_t n = (size_t)topo->n_vertices;
	*s = (struct splitter){ .ctx = ctx, .supply = supply, .topo = topo, .n = topo->n_vertices, .net_arcs = -1 };
	s->words = (s->n + SET_BITS - 1) / SET_BITS;
	TRY(TEMP_EACH(ctx, n, s->gone, s->at_vertex, s->place, s->balance));
	TRY(TEMP(ctx, s->tight, MOST_TIGHT * (size_t)s->words));
	TRY(TEMP(ctx, s->worst, s->words));
	for (int l = 0; l < topo->n_links; l++) {
		int *link;
		if (supply->capacity[l] == 0)
			continue;
		TRY(TEMP(ctx, link, 1));
		*link = l;
		TRY(GROW_TEMP(ctx, s->arc, s->n_arcs, s->capacity));
		s->arc[s->n_arcs++] = (Arc){ supply_tail(supply, l), supply_head(supply, l), supply->capacity[l],
			1, link };
	}
	return OK;
}

Status
split_off(Ctx *ctx, const Supply *supply, Hop *want, int n_want, Arc **out, int *n)
{
	struct splitter s;
	bool done = true;
	int64_t lacks;
	*out = NULL;
	TRY(splitter_new(ctx, supply, &s));
	s.want = want;
	s.n_want = n_want;
	TRY(split_lacking(&s, 1, &lacks));
	if (lacks > 0)
		return OK;
	TRY(trim(&s));
	for (int w; done && (w = next_switch(&s)) >= 0;) {
		done = progress(ctx, "splitting off %s", s.topo->vertex[w].id) > 0;
		if (done)
			TRY(split_switch(&s, w, &done));
	}
	if (done) {
		*out = s.arc;
		*n = s.n_arcs;
	}
	return OK;
}
