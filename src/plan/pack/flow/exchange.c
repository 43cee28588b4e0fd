/* Trees of a packing that exchange edges, as halves: the ways by which ranks may hang, and what they do. */
#include "base/sort.h"
#include "plan/pack/flow/exchange.h"

#include <math.h>

int *
exchange_held(const struct exchange *x, const struct half *h, int v)
{
	return &x->held[(size_t)v * (size_t)x->n_halves + (size_t)(h - x->half)];
}

bool
exchange_is_below(const struct half *h, int u, int v)
{
	while (h->depth[u] > h->depth[v])
		u = h->above[u];
	return u == v;
}

int
exchange_words(const struct exchange *x)
{
	return (x->n + 63) / 64;
}

void
exchange_note(struct exchange *x, int w)
{
	struct way *way = &x->way[w];
	way->next = x->first_to[way->to];
	x->first_to[way->to] = w;
	for (int i = 0; i < way->edge->n_links - 1; i++)
		x->passing[(size_t)exchange_vertex(x, way, i) * (size_t)exchange_words(x) + (size_t)way->to / 64]
		    |= UINT64_C(1) << way->to % 64;
}

/* From the ranks that hang from it. */
static void
add_up(struct half *h, int v)
{
	h->sum[v] = 1;
	h->height[v] = 0;
	for (int c = h->first[v]; c >= 0; c = h->next[c]) {
		h->sum[v] += EXCHANGE_BASE * h->sum[c];
		h->height[v] = h->height[c] >= h->height[v] ? h->height[c] + 1 : h->height[v];
	}
}

/* Depths of v and of what hangs below, which are in the queue afterwards, parents first. Returns their number. */
static int
set_depths(struct exchange *x, struct half *h, int v)
{
	int tail = 0;
	x->queue[tail++] = v;
	for (int i = 0; i < tail; i++) {
		int u = x->queue[i], up = h->above[u];
		h->depth[u] = up < 0 ? 0 : h->depth[up] + 1;
		for (int c = h->first[u]; c >= 0; c = h->next[c])
			x->queue[tail++] = c;
	}
	return tail;
}

static void
attach(struct exchange *x, struct half *h, int v, int way)
{
	int up = x->way[way].to;
	*exchange_held(x, h, v) = way;
	h->above[v] = up;
	h->next[v] = h->first[up];
	h->first[up] = v;
	x->n_hanging[h->up][up]++;
}

static void
load(struct exchange *x, int way, int64_t weight)
{
	const Edge *edge = x->way[way].edge;
	for (int k = 0; k < edge->n_links; k++)
		x->room[edge->link[k]] -= weight;
}

void
exchange_hang(struct exchange *x, struct half *h, int v, int way)
{
	int from = h->above[v], *at = &h->first[from];
	while (*at != v)
		at = &h->next[*at];
	*at = h->next[v];
	x->n_hanging[h->up][from]--;
	load(x, *exchange_held(x, h, v), -h->weight);
	load(x, way, h->weight);
	attach(x, h, v, way);
	x->steps += set_depths(x, h, v);
	for (; from >= 0; from = h->above[from])
		add_up(h, from);
	for (int u = h->above[v]; u >= 0; u = h->above[u])
		add_up(h, u);
	h->changed = true;
}

/* ---- ways ---- */

/* An edge that tree `half` has, -1: a link alone, which may come without; and of which rank. */
struct candidate {
	const Edge *edge;
	int rank, half;
	bool up;
};

static int
compare_candidates(const void *a, const void *b)
{
	const struct candidate *s = a, *t = b;
	if (s->rank != t->rank || s->up != t->up)
		return s->rank != t->rank ? (s->rank > t->rank) - (s->rank < t->rank) : s->up - t->up;
	const Edge *p = s->edge, *q = t->edge;
	if (p == q)
		return 0;
	int first = p->src != q->src ? p->src - q->src : p->dst != q->dst ? p->dst - q->dst : p->n_links - q->n_links;
	for (int k = 0; first == 0 && k < p->n_links; k++)
		first = p->link[k] - q->link[k];
	return first;
}

static Status
list_links(Ctx *ctx, const Topology *topo, bool up, struct candidate *out, int *n)
{
	Edge *edge;
	int *link;
	if (topo->route)
		return OK;
	TRY(NEW(ctx, edge, topo->n_links));
	TRY(NEW(ctx, link, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		int from = topo->link[l].from, to = topo->link[l].to;
		if (from >= topo->n_ranks || to >= topo->n_ranks)
			continue;
		link[l] = l;
		edge[l] = (Edge){ from, to, 1, &link[l] };
		out[(*n)++] = (struct candidate){ &edge[l], up ? from : to, -1, up };
	}
	return OK;
}

/* Each edge of the trees, once, and each link between ranks; and what is held by which. */
static Status
make_ways(Ctx *ctx, struct exchange *x, const Packing *pack)
{
	size_t most = (size_t)x->n_halves * (size_t)x->n + 2 * (size_t)x->topo->n_links;
	struct candidate *list;
	bool links[2] = { false, false };
	int n = 0, w = -1;
	TRY(TEMP(ctx, list, most));
	for (int i = 0; i < x->n_halves; i++) {
		const struct half *h = &x->half[i];
		const Tree *tree = &pack->tree[h->tree];
		for (int e = 0; e < x->n - 1; e++) {
			const Edge *edge = h->up ? &tree->up[e] : &tree->down[e];
			list[n++] = (struct candidate){ edge, h->up ? edge->src : edge->dst, i, h->up };
		}
		links[h->up] = true;
	}
	for (int up = 0; up < 2; up++)
		if (links[up])
			TRY(list_links(ctx, x->topo, up, list, &n));
	sort_array(list, n, sizeof *list, compare_candidates);
	TRY(TEMP(ctx, x->way, n));
	x->way_room = n;
	TRY(TEMP(ctx, x->first_way, x->n + 1));
	for (int i = 0; i < n; i++) {
		const struct candidate *c = &list[i];
		if (i == 0 || compare_candidates(c, c - 1) != 0)
			x->way[++w] = (struct way){ c->edge, c->up ? c->edge->dst : c->edge->src, c->up, -1, 0 };
		x->first_way[c->rank + 1] = w + 1;
		if (c->half >= 0)
			*exchange_held(x, &x->half[c->half], c->rank) = w;
	}
	for (int v = 0; v < x->n; v++)
		x->first_way[v + 1] = x->first_way[v + 1] ? x->first_way[v + 1] : x->first_way[v];
	x->n_ways = w + 1;
	for (w = 0; w < x->n_ways; w++)
		exchange_note(x, w);
	return OK;
}

static Status
new_half(Ctx *ctx, struct exchange *x, const Tree *tree, int t, int64_t weight, bool up)
{
	struct half *h = &x->half[t * (x->n_halves / x->n_trees) + (up ? 0 : x->n_halves / x->n_trees - 1)];
	*h = (struct half){ .root = tree->root, .tree = t, .up = up, .weight = weight };
	TRY(TEMP_EACH(ctx, x->n, h->above, h->first, h->next, h->depth, h->height, h->sum));
	memset(h->first, -1, (size_t)x->n * sizeof *h->first);
	h->above[h->root] = *exchange_held(x, h, h->root) = -1;
	return OK;
}

Status
exchange_new(Ctx *ctx, const Topology *topo, const Packing *pack, struct exchange *x)
{
	int halves = (pack->tree[0].n_up > 0) + (pack->tree[0].n_down > 0);
	*x = (struct exchange){ .topo = topo, .n = topo->n_ranks, .n_trees = pack->n_trees,
		.n_halves = halves * pack->n_trees };
	TRY(TEMP(ctx, x->half, x->n_halves));
	TRY(TEMP(ctx, x->held, (size_t)x->n * (size_t)x->n_halves));
	TRY(TEMP(ctx, x->passing, (size_t)topo->n_vertices * (size_t)exchange_words(x)));
	TRY(TEMP(ctx, x->meeting, exchange_words(x)));
	TRY(TEMP_EACH(ctx, x->n, x->n_hanging[0], x->n_hanging[1], x->first_to));
	memset(x->first_to, -1, (size_t)x->n * sizeof *x->first_to);
	TRY(TEMP(ctx, x->looked, x->n_halves));
	TRY(TEMP(ctx, x->power, x->n + 1));
	TRY(TEMP(ctx, x->room, topo->n_links));
	TRY(TEMP(ctx, x->queue, x->n));
	for (int d = 0; d <= x->n; d++)
		x->power[d] = pow(EXCHANGE_BASE, d < 2 * EXCHANGE_MOST_DEPTH ? d : 2 * EXCHANGE_MOST_DEPTH);
	for (int l = 0; l < topo->n_links; l++)
		x->room[l] = (int64_t)((Wide)topo->link[l].capacity * pack->unit.den / pack->unit.num);
	for (int t = 0; t < pack->n_trees; t++) {
		if (pack->tree[t].n_up)
			TRY(new_half(ctx, x, &pack->tree[t], t, pack->weight[t], true));
		if (pack->tree[t].n_down)
			TRY(new_half(ctx, x, &pack->tree[t], t, pack->weight[t], false));
	}
	return OK;
}

Status
exchange_take(Ctx *ctx, struct exchange *x, const Packing *pack)
{
	TRY(make_ways(ctx, x, pack));
	for (struct half *h = x->half; h < x->half + x->n_halves; h++) {
		for (int v = 0; v < x->n; v++)
			if (v != h->root) {
				attach(x, h, v, *exchange_held(x, h, v));
				load(x, *exchange_held(x, h, v), h->weight);
			}
		for (int i = set_depths(x, h, h->root) - 1; i >= 0; i--)
			add_up(h, x->queue[i]);
	}
	return OK;
}
