/* Edges of trees that meet at a switch exchange what leads there: if v hangs from a and w from b, over one switch, then
 * v from b and w from a. Each link carries what it did. The two may be in different trees, or in one:
 *
 *     tree 1   a --switch-- v     b --switch-- v
 *     tree 2   b --switch-- w     a --switch-- w
 *
 * Where b's links have room for v, nothing need hang from a instead. */
#include "base/array.h"
#include "plan/pack/flow/exchange.h"

#include <string.h>

enum { MOST_LOOKS = 1 << 8 };	/* at edges that v's may be exchanged with */

/* Where way b first comes to a vertex that way a passes as well: after how many links of each. */
static bool
meet(const struct exchange *x, const struct way *a, const struct way *b, int *n_a, int *n_b)
{
	for (*n_b = 1; *n_b < b->edge->n_links; ++*n_b)
		for (*n_a = 1; *n_a < a->edge->n_links; ++*n_a)
			if (exchange_vertex(x, a, *n_a - 1) == exchange_vertex(x, b, *n_b - 1))
				return true;
	return false;
}

/* Has a route of the first n links of `first`, and those of `rest` but its first n_rest, no vertex twice? */
static bool
is_route(const struct exchange *x, const struct way *first, int n, const struct way *rest, int n_rest)
{
	for (int i = 0; i < n - 1; i++)
		for (int k = n_rest; k < rest->edge->n_links - 1; k++)
			if (exchange_vertex(x, first, i) == exchange_vertex(x, rest, k))
				return false;
	return n + rest->edge->n_links - n_rest <= LIMIT_ROUTE_LINKS;
}

static Status
add_way(Ctx *ctx, struct exchange *x, int first, int n, int rest, int n_rest, int v, int *out)
{
	const struct way from = x->way[first], to = x->way[rest];
	int *link, n_links = n + to.edge->n_links - n_rest, *at;
	Edge *edge;
	TRY(NEW(ctx, edge, 1));
	TRY(NEW(ctx, link, n_links));
	at = from.up ? link + n_links - n : link;
	memcpy(at, from.edge->link + (from.up ? from.edge->n_links - n : 0), (size_t)n * sizeof *link);
	at = from.up ? link : link + n;
	memcpy(at, to.edge->link + (to.up ? 0 : n_rest), (size_t)(n_links - n) * sizeof *link);
	*edge = (Edge){ from.up ? v : from.to, from.up ? from.to : v, n_links, link };
	TRY(GROW_TEMP(ctx, x->way, x->n_ways, x->way_room));
	x->way[x->n_ways] = (struct way){ edge, from.to, from.up, -1, 0 };
	exchange_note(x, x->n_ways);
	*out = x->n_ways++;
	return OK;
}

/* Room of the first n links of a way, counted from the rank that the other one hangs from. */
static int64_t
room_of(const struct exchange *x, const struct way *way, int n)
{
	int64_t room = INT64_MAX;
	for (int i = 0; i < n; i++) {
		int l = way->edge->link[way->up ? way->edge->n_links - 1 - i : i];
		room = x->room[l] < room ? x->room[l] : room;
	}
	return room;
}

/* v's way after n_own links, and that by which w hangs in `other`, after n_way; w -1: that has room for v, too. */
struct crossing {
	struct half *other;
	int w, way, n_own, n_way;
	double cost;
};

/* Is w's edge in `o` of use for v in h? */
static void
weigh(struct exchange *x, struct half *h, int v, struct half *o, int w, double gain, struct crossing *best)
{
	int a = h->above[v], own = *exchange_held(x, h, v), way = *exchange_held(x, o, w), n_own, n_way;
	if (w == a || !meet(x, &x->way[own], &x->way[way], &n_own, &n_way)
	    || !is_route(x, &x->way[way], n_way, &x->way[own], n_own))
		return;
	if (gain < best->cost && room_of(x, &x->way[way], n_way) >= h->weight)
		*best = (struct crossing){ NULL, -1, way, n_own, n_way, gain };
	double both = gain + o->sum[w] * (x->power[o->depth[a] + 1] - x->power[o->depth[w]]);
	if (both >= best->cost || both > EXCHANGE_LEAST_GAIN * gain || exchange_is_below(o, a, w)
	    || !is_route(x, &x->way[own], n_own, &x->way[way], n_way))
		return;
	if (h->weight > o->weight ? room_of(x, &x->way[way], n_way) < h->weight - o->weight
	    : h->weight < o->weight && room_of(x, &x->way[own], n_own) < o->weight - h->weight)
		return;
	*best = (struct crossing){ o, w, way, n_own, n_way, both };
}

/* x->meeting: ranks with a way that passes a vertex of this one. */
static void
find_meeting(struct exchange *x, const struct way *way)
{
	size_t words = (size_t)exchange_words(x);
	memset(x->meeting, 0, words * sizeof *x->meeting);
	for (int i = 0; i < way->edge->n_links - 1; i++)
		for (size_t k = 0; k < words; k++)
			x->meeting[k] |= x->passing[(size_t)exchange_vertex(x, way, i) * words + k];
}

/* x->looked: halves in which a rank hangs from b by a way that meets this one. Returns whether there are any. */
static bool
find_halves(struct exchange *x, int own, int b)
{
	bool some = false;
	int n_own, n_way;
	memset(x->looked, false, (size_t)x->n_halves * sizeof *x->looked);
	for (int w = x->first_to[b]; w >= 0; w = x->way[w].next) {
		const struct way *way = &x->way[w];
		const int *held = x->held + (size_t)(way->up ? way->edge->src : way->edge->dst) * (size_t)x->n_halves;
		if (way->up != x->way[own].up || !meet(x, &x->way[own], way, &n_own, &n_way))
			continue;
		for (int i = 0; i < x->n_halves; i++) {
			x->looked[i] |= held[i] == w;
			some |= held[i] == w;
		}
	}
	return some;
}

Status
exchange_cross(Ctx *ctx, struct exchange *x, struct half *h, int v, bool *done)
{
	struct crossing best = { .w = -1, .way = -1, .cost = 0 };
	int looks = 0, own = *exchange_held(x, h, v), a = h->above[v], to, back;
	*done = false;
	if (h->depth[v] < 2 || x->topo->route)
		return OK;
	find_meeting(x, &x->way[own]);
	for (int i = 0; i < x->n && looks < MOST_LOOKS; i++) {
		int b = (v + i) % x->n;
		double gain = h->sum[v] * (x->power[h->depth[b] + 1] - x->power[h->depth[v]]);
		if (b == a || gain >= best.cost || h->depth[b] + 1 >= h->depth[v])
			continue;
		looks += x->n_hanging[h->up][b];
		if (!(x->meeting[b / 64] >> b % 64 & 1) || !find_halves(x, own, b))
			continue;
		for (struct half *o = x->half; o < x->half + x->n_halves; o++)
			for (int w = x->looked[o - x->half] ? o->first[b] : -1; w >= 0; w = o->next[w])
				if (w != v)
					weigh(x, h, v, o, w, gain, &best);
	}
	x->steps += looks + x->n;
	if (best.way < 0)
		return OK;
	TRY(add_way(ctx, x, best.way, best.n_way, own, best.n_own, v, &to));
	if (best.w >= 0) {
		TRY(add_way(ctx, x, own, best.n_own, best.way, best.n_way, best.w, &back));
		exchange_hang(x, best.other, best.w, back);
	}
	exchange_hang(x, h, v, to);
	return *done = true, OK;
}
