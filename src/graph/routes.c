/* Routes: Dijkstra from each switch over switches, since a route passes through no third GPU; a rank's route is its
 * link to another rank, or its link to a switch and a route of that switch. So a thousand ranks behind a hundred
 * switches take a hundred searches.
 *
 * A switch that only one link leaves has no choice: its routes are that link and those of the next vertex. On the
 * path
 *
 *     gpu -> PCIe switch -> NIC -> leaf -> ...
 *
 * only the leaf switch, the hub, is searched from, so a thousand NICs take as many searches as they have leaf
 * switches.
 *
 * Where each pair of ranks has one kind of route, the searches from a hub are made for each kind, over the links that
 * it may have. */
#include "graph/search.h"
#include "graph/shortest.h"

#include <string.h>

/* ---- hubs ---- */

/* In a ring of such switches, which leads nowhere, any of them. */
static int
hub_of(const Topology *topo, int v)
{
	for (int i = 0; i < topo->n_vertices && v >= topo->n_ranks
	    && topo->first_out[v + 1] - topo->first_out[v] == 1; i++)
		v = topo->link[topo->out[topo->first_out[v]]].to;
	return v;
}

/* A layer for each kind of route that some pair has. */
static void
find_layers(Search *s)
{
	const Topology *topo = s->topo;
	size_t pairs = (size_t)topo->n_ranks * (size_t)topo->n_ranks;
	for (int k = 0; k < N_ROUTE_KINDS; k++) {
		s->layer_of[k] = -1;
		if (!topo->route || k == ROUTE_NONE || !memchr(topo->route, k, pairs))
			continue;
		s->layer_of[k] = s->n_layers;
		s->layer_classes[s->n_layers++] = route_classes((RouteKind)k);
	}
	if (!topo->route)
		s->layer_classes[s->n_layers++] = ~0u;
}

/* The layer of the route between two ranks; -1: there is none. */
static int
layer_of(const Search *s, int src, int dst)
{
	const Topology *topo = s->topo;
	return topo->route ? s->layer_of[topo->route[(size_t)src * (size_t)topo->n_ranks + (size_t)dst]] : 0;
}

/* Where the routes of a hub begin in the tables. */
static size_t
row_at(const Search *s, int layer, int hub)
{
	return ((size_t)layer * (size_t)s->n_rows + (size_t)s->row_of[hub]) * (size_t)s->topo->n_vertices;
}

Status
search_hubs(Ctx *ctx, Search *s)
{
	const Topology *topo = s->topo;
	size_t n = (size_t)topo->n_vertices;
	find_layers(s);
	TRY(TEMP_EACH(ctx, n, s->hub, s->row_of));
	for (int v = 0; v < topo->n_vertices; v++) {
		s->hub[v] = hub_of(topo, v);
		s->row_of[v] = -1;
	}
	for (int r = 0; r < topo->n_ranks; r++) {
		for (int i = topo->first_out[r]; i < topo->first_out[r + 1]; i++) {
			int hub = s->hub[topo->link[topo->out[i]].to];
			if (hub >= topo->n_ranks && s->row_of[hub] < 0)
				s->row_of[hub] = s->n_rows++;
		}
	}
	size_t cells = (size_t)s->n_layers * (size_t)s->n_rows * n;
	if (cells > LIMIT_ROUTE_CELLS)
		return fail(ctx, LIMIT,
		    "%s: %d switches next to GPUs, times %d vertices: want at most %d, for routes through them",
		    topo->name, s->n_rows * s->n_layers, topo->n_vertices, LIMIT_ROUTE_CELLS);
	TRY(TEMP_EACH(ctx, cells, s->distance, s->last));
	return TEMP(ctx, s->room, PATHS_ROOM * n);
}

/* The only link that leaves v, towards its hub. */
static int
only_link(const Search *s, int v)
{
	return s->topo->out[s->topo->first_out[v]];
}

/* ---- routes ---- */

static Paths
paths_of(const Search *s, const int64_t *price, unsigned classes, bool relay)
{
	return (Paths){ s->topo, price, classes, relay, s->room };
}

/* The hops of a rank whose routes begin with link l, at this cost up to a hub, and have these classes up to there. */
static void
hops_over(Search *s, int source, int l, int hub, int64_t cost, unsigned classes)
{
	const Topology *topo = s->topo;
	struct hop *hop = s->hop + (size_t)source * (size_t)(topo->n_ranks - 1);
	for (int layer = 0; layer < s->n_layers; layer++) {
		const int64_t *distance = s->distance + row_at(s, layer, hub);
		if (classes & ~s->layer_classes[layer])
			continue;
		for (int k = 0; k < topo->n_ranks - 1; k++) {
			int64_t beyond = distance[hop[k].dst];
			if (beyond < 0 || (hop[k].cost >= 0 && cost + beyond >= hop[k].cost)
			    || layer_of(s, source, hop[k].dst) != layer)
				continue;
			hop[k].cost = cost + beyond;
			hop[k].link = l;
		}
	}
}

/* The same where links lead to another rank without a choice. */
static void
hop_to(Search *s, int source, int rank, int l, int64_t cost, unsigned classes)
{
	struct hop *direct = s->hop + (size_t)source * (size_t)(s->topo->n_ranks - 1) + rank - (rank > source);
	int layer = layer_of(s, source, rank);
	if (layer < 0 || classes & ~s->layer_classes[layer] || (direct->cost >= 0 && cost >= direct->cost))
		return;
	direct->cost = cost;
	direct->link = l;
}

/* One of these hops alone. */
static void
hop_over(Search *s, struct hop *hop, int l, int hub, int64_t cost, unsigned classes)
{
	int layer = layer_of(s, hop->src, hop->dst);
	if (layer < 0 || classes & ~s->layer_classes[layer])
		return;
	int64_t beyond = s->distance[row_at(s, layer, hub) + (size_t)hop->dst];
	if (beyond < 0 || (hop->cost >= 0 && cost + beyond >= hop->cost))
		return;
	hop->cost = cost + beyond;
	hop->link = l;
}

/* The hops of a rank, dst < 0: to all others, over each of its links, hop->link. */
static void
hops_of(Search *s, int source, int dst, const int64_t *price)
{
	const Topology *topo = s->topo;
	for (int i = topo->first_out[source]; i < topo->first_out[source + 1]; i++) {
		int l = topo->out[i], w = topo->link[l].to, hub = s->hub[w];
		unsigned classes = 1u << topo->link[l].class;
		int64_t cost = price[l];
		for (; w != hub; w = topo->link[only_link(s, w)].to) {
			cost += price[only_link(s, w)];
			classes |= 1u << topo->link[only_link(s, w)].class;
		}
		if (w < topo->n_ranks) {
			if (w != source && (dst < 0 || w == dst))
				hop_to(s, source, w, l, cost, classes);
		} else if (dst < 0) {
			hops_over(s, source, l, hub, cost, classes);
		} else {
			hop_over(s, &s->hop[search_hop_between(s, source, dst)], l, hub, cost, classes);
		}
	}
}

static void
hops_from(Search *s, int source, const int64_t *price)
{
	struct hop *hop = s->hop + (size_t)source * (size_t)(s->topo->n_ranks - 1);
	for (int i = 0; i < s->topo->n_ranks - 1; i++)
		hop[i].cost = -1;
	hops_of(s, source, -1, price);
}

void
search_price_hubs(Search *s, const int64_t *price)
{
	const Topology *topo = s->topo;
	for (int l = 0; l < topo->n_links && !s->switched; l++)
		s->hop[l].cost = s->price[l] = price[l];
	for (int layer = 0; layer < s->n_layers; layer++) {
		const Paths paths = paths_of(s, price, s->layer_classes[layer], false);
		for (int v = topo->n_ranks; v < topo->n_vertices; v++)
			if (s->row_of[v] >= 0)
				shortest_paths(&paths, v, false, s->distance + row_at(s, layer, v),
				    s->last + row_at(s, layer, v));
	}
}

void
search_price_rank(Search *s, int src, const int64_t *price)
{
	struct hop *hop = s->hop + (size_t)src * (size_t)(s->topo->n_ranks - 1);
	if (!s->switched)
		return;
	for (int dst = 0; dst < s->topo->n_ranks; dst++)
		if (dst != src)
			*hop++ = (struct hop){ .src = src, .dst = dst };
	hops_from(s, src, price);
}

void
search_price_hop(Search *s, int src, int dst, const int64_t *price)
{
	if (!s->switched)
		return;
	s->hop[search_hop_between(s, src, dst)] = (struct hop){ .src = src, .dst = dst, .cost = -1 };
	hops_of(s, src, dst, price);
}

void
search_price(Search *s, const int64_t *price)
{
	search_price_hubs(s, price);
	for (int r = 0; r < s->topo->n_ranks && s->switched; r++)
		hops_from(s, r, price);
}

int
search_route(const Search *s, int h, int link[LIMIT_ROUTE_LINKS])
{
	const struct hop *hop = &s->hop[h];
	const Topology *topo = s->topo;
	int at = topo->link[hop->link].to, n = 0;
	link[n++] = hop->link;
	if (at < topo->n_ranks)
		return n;
	int hub = s->hub[at];
	for (; at != hub; at = topo->link[link[n - 1]].to) {
		if (n == LIMIT_ROUTE_LINKS)
			return -1;
		link[n++] = only_link(s, at);
	}
	if (hub < topo->n_ranks)
		return n;
	const int *last = s->last + row_at(s, layer_of(s, hop->src, hop->dst), hub);
	int first = n;
	for (int v = hop->dst; v != hub; v = topo->link[last[v]].from) {
		if (n == LIMIT_ROUTE_LINKS)
			return -1;
		link[n++] = last[v];
	}
	for (int i = first, j = n - 1; i < j; i++, j--) {
		int l = link[i];
		link[i] = link[j];
		link[j] = l;
	}
	return n;
}

/* ---- hops and paths ---- */

int
search_hop_between(const Search *s, int src, int dst)
{
	return src * (s->topo->n_ranks - 1) + dst - (dst > src);
}

int
search_hop_at(const Search *s, int rank, int i, bool entering)
{
	const Topology *topo = s->topo;
	const int *first = entering ? topo->first_in : topo->first_out;
	int n = topo->n_ranks, other = i + (i >= rank);
	if (!s->switched)
		return first[rank] + i < first[rank + 1] ? (entering ? topo->in : topo->out)[first[rank] + i] : -1;
	if (i >= n - 1)
		return -1;
	return entering ? other * (n - 1) + rank - (rank > other) : rank * (n - 1) + i;
}

int
search_cheapest_hop(const Search *s, int src, int dst)
{
	const Topology *topo = s->topo;
	int best = -1;
	if (s->switched) {
		int h = search_hop_between(s, src, dst);
		return s->hop[h].cost >= 0 ? h : -1;
	}
	for (int i = topo->first_out[src]; i < topo->first_out[src + 1]; i++) {
		int l = topo->out[i];
		if (topo->link[l].to == dst && (best < 0 || s->hop[l].cost < s->hop[best].cost))
			best = l;
	}
	return best;
}

Status
search_links_new(Ctx *ctx, const Topology *topo, Search *out)
{
	Search s = { .topo = topo };
	TRY(TEMP(ctx, s.room, PATHS_ROOM * (size_t)topo->n_vertices));
	*out = s;
	return OK;
}

void
search_link_paths(Search *s, const int64_t *price, int source, int64_t *distance, int *link)
{
	const Paths paths = paths_of(s, price, ~0u, true);
	shortest_paths(&paths, source, false, distance, link);
}

void
search_shortest_paths(Search *s, int end, bool into, int64_t *distance, int *hop)
{
	const Paths links = paths_of(s, s->price, ~0u, true);
	if (!s->switched) {
		shortest_paths(&links, end, into, distance, hop);
		return;
	}
	int n = s->topo->n_ranks, *done = s->triple;
	for (int v = 0; v < n; v++) {
		distance[v] = v == end ? 0 : -1;
		hop[v] = -1;
		done[v] = 0;
	}
	for (int v = end; v >= 0;) {
		done[v] = 1;
		for (int i = 0, h; (h = search_hop_at(s, v, i, into)) >= 0; i++) {
			int w = into ? s->hop[h].src : s->hop[h].dst;
			if (s->hop[h].cost < 0 || done[w]
			    || (distance[w] >= 0 && distance[v] + s->hop[h].cost >= distance[w]))
				continue;
			distance[w] = distance[v] + s->hop[h].cost;
			hop[w] = h;
		}
		v = -1;
		for (int w = 0; w < n; w++)
			if (!done[w] && distance[w] >= 0 && (v < 0 || distance[w] < distance[v]))
				v = w;
	}
}
