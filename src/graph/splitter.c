/* Pairs of arcs that are split off, and what that leaves to the sets of vertices. */
#include "graph/splitter.h"
#include "base/array.h"

#include <string.h>

/* ---- the network ---- */

/* All arcs anew, where some have come. Flows are sought backwards, from a rank to the source. */
static Status
net_update(struct splitter *s)
{
	int n = s->topo->n_ranks, arcs = s->n_arcs + n;
	if (arcs > s->net_capacity) {
		s->net_capacity = 2 * arcs;
		TRY(network_new(s->ctx, s->n + 1, s->net_capacity, &s->net));
		TRY(TEMP_EACH(s->ctx, s->net_capacity, s->tail, s->head, s->at));
	}
	int m = 0;
	for (; m < n; m++) {
		s->tail[m] = m;
		s->head[m] = s->n;
	}
	/* Arcs without units have a place, too: they may get some back. */
	for (int a = 0; a < s->n_arcs; a++, m++) {
		s->tail[m] = s->arc[a].to;
		s->head[m] = s->arc[a].from;
	}
	network_build(&s->net, s->n + 1, m, s->tail, s->head, s->at);
	for (int v = 0; v < n; v++)
		s->net.arc[s->at[v]].room = s->supply->owed[v];
	for (int a = 0; a < s->n_arcs; a++)
		s->net.arc[s->at[n + a]].room = s->arc[a].units;
	s->net_arcs = s->n_arcs;
	return OK;
}

void
split_set_units(struct splitter *s, int a, int64_t units)
{
	s->arc[a].units = units;
	if (a < s->net_arcs)
		s->net.arc[s->at[s->topo->n_ranks + a]].room = units;
}

Status
split_lacking(struct splitter *s, int64_t most, int64_t *out)
{
	int n = s->topo->n_ranks, v;
	int64_t total = s->supply->total;
	*out = 0;
	if (s->net_arcs != s->n_arcs)
		TRY(net_update(s));
	for (v = 0; v < n && *out < most; v++) {
		struct network_arc *own = &s->net.arc[s->at[v]];
		int64_t flow = s->supply->owed[v] == total ? total : network_flow(&s->net, v, s->n, total);
		own->room = NETWORK_INFINITE;
		if (total - flow <= *out)
			continue;
		*out = total - flow;
		memset(s->worst, 0, (size_t)s->words * sizeof *s->worst);
		for (int u = 0; u < s->n; u++)
			if (network_side(&s->net, u))
				s->worst[u / SET_BITS] |= UINT64_C(1) << u % SET_BITS;
	}
	while (v > 0) {
		v--;
		s->net.arc[s->at[v]].room = s->supply->owed[v];
	}
	return OK;
}

/* ---- sets without slack ---- */

static bool
has_bit(const uint64_t *set, int i)
{
	return set[i / SET_BITS] >> i % SET_BITS & 1;
}

static void
keep_tight(struct splitter *s)
{
	memcpy(s->tight + (size_t)(s->n_tight++ % MOST_TIGHT) * (size_t)s->words, s->worst,
	    (size_t)s->words * sizeof *s->worst);
}

bool
split_is_blocked(const struct splitter *s, int u, int w, int t)
{
	int n = s->n_tight < MOST_TIGHT ? s->n_tight : MOST_TIGHT;
	for (int i = 0; i < n; i++) {
		const uint64_t *set = s->tight + (size_t)i * (size_t)s->words;
		bool inside = has_bit(set, w);
		if (has_bit(set, u) != inside && has_bit(set, t) != inside)
			return true;
	}
	return false;
}

/* ---- splitting ---- */

/* Both routes one after the other, without what lies between two visits of one switch. */
static Status
join_routes(struct splitter *s, const Arc *a, const Arc *b, Arc *out)
{
	int n = a->n_links, skip = 0, *link;
	for (int i = 0; i < b->n_links; i++)
		s->place[supply_head(s->supply, b->link[i])] = i + 1;
	for (int i = 0; i < a->n_links; i++) {
		int at = s->place[supply_head(s->supply, a->link[i])];
		if (at > 0) {
			n = i + 1;
			skip = at;
			break;
		}
	}
	for (int i = 0; i < b->n_links; i++)
		s->place[supply_head(s->supply, b->link[i])] = 0;
	TRY(TEMP(s->ctx, link, n + b->n_links - skip));
	memcpy(link, a->link, (size_t)n * sizeof *link);
	memcpy(link + n, b->link + skip, (size_t)(b->n_links - skip) * sizeof *link);
	out->n_links = n + b->n_links - skip;
	out->link = link;
	return OK;
}

/* The arc that is made of both; -1: one that leads to where it begins is none. */
static Status
made_of(struct splitter *s, int in, int out, int *made)
{
	Arc arc = { .from = s->arc[in].from, .to = s->arc[out].to };
	*made = -1;
	if (arc.from == arc.to)
		return OK;
	TRY(join_routes(s, &s->arc[in], &s->arc[out], &arc));
	TRY(GROW_TEMP(s->ctx, s->arc, s->n_arcs, s->capacity));
	*made = s->n_arcs++;
	s->arc[*made] = arc;
	return OK;
}

void
split_move(struct splitter *s, const struct pair *p, int64_t units)
{
	split_set_units(s, p->in, s->arc[p->in].units - units);
	split_set_units(s, p->out, s->arc[p->out].units - units);
	if (p->made >= 0)
		split_set_units(s, p->made, s->arc[p->made].units + units);
}

Status
split_pair(struct splitter *s, int in, int out, int64_t units)
{
	struct pair p = { in, out, -1, units };
	TRY(made_of(s, in, out, &p.made));
	TRY(GROW_TEMP(s->ctx, s->pair, s->n_pairs, s->pair_capacity));
	s->pair[s->n_pairs++] = p;
	split_move(s, &p, units);
	return OK;
}

Status
split_safely(struct splitter *s, int w, int in, int out, int64_t most)
{
	int64_t units = split_most(s, in, out), lacks;
	units = most < units ? most : units;
	if (units <= 0 || split_is_blocked(s, s->arc[in].from, w, s->arc[out].to))
		return OK;
	TRY(split_pair(s, in, out, units));
	TRY(split_lacking(s, units, &lacks));
	if (lacks > 0) {
		split_move(s, &s->pair[s->n_pairs - 1], -(lacks < units ? lacks : units));
		keep_tight(s);
	}
	return OK;
}
