/* Trees that grow from a root by Prim's method: the cheapest hop from a rank that the tree has to one that it has not,
 * and of those that cost the same one from the least depth. Hops lead from a rank to the switch at one of its links,
 * its hub, and from there over switches to another rank. So for each hub it is enough to know the best rank that can
 * send there, and the ranks that it leads to, nearest first:
 *
 *     rank -- NVSwitch of 8 ranks        2 hubs for each rank, and for each hub those that it reaches: of 16384 ranks
 *          \- rail of 2048 ranks         on rails 32768 pairs in place of 268 million
 *
 * Where that is too much, as behind PCIe switches, each of which leads to every rank, a tree grows over links instead:
 * each switch knows the cheapest path from the tree to it so far, and of those that cost the same one from the least
 * depth. All links are tried for each tree, and hubs that lead to few ranks are faster. */
#include "plan/pack/templates/grow.h"
#include "base/array.h"
#include "base/heap.h"
#include "graph/reversible.h"

#include <string.h>

enum { MOST_ENTRIES = 1 << 24 };

/* The cheapest path from the tree to a switch: what it costs from the last rank on, the depth of that rank, the last
 * link. */
struct label {
	int64_t cost;
	int depth, by;
};

/* What is reached from a hub: a vertex, by this link from that entry. */
struct entry {
	int64_t distance;
	int vertex, link, from;
};

/* Hops that wait: of a hub, or, hub < 0, straight over a link. */
struct waiting {
	int64_t cost;
	int depth, hub, version, link;
};

struct hub {
	int first, n, next;	/* entries; the first that may still be of use */
	int64_t cost;		/* of the best rank's link to it; -1: no rank sends there yet */
	int depth, link, version;
};

/* ---- heaps: by cost, then by what breaks ties ---- */

static bool
before(const struct waiting *a, const struct waiting *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	if (a->depth != b->depth)
		return a->depth < b->depth;
	return a->hub != b->hub ? a->hub < b->hub : a->link < b->link;
}

#define BEFORE(of, a, b) before(&(a), &(b))
HEAP(put_waiting, struct grower, struct waiting, BEFORE, HEAP_UNMOVED)

static Status
push(struct grower *g, struct waiting one)
{
	TRY(GROW(g->ctx, g->waiting, g->n_waiting, g->waiting_capacity));
	g->n_waiting++;
	put_waiting(g, g->waiting, g->n_waiting, g->n_waiting - 1, one);
	return OK;
}

static struct waiting
pop(struct grower *g)
{
	struct waiting top = g->waiting[0];
	if (--g->n_waiting > 0)
		put_waiting(g, g->waiting, g->n_waiting, 0, g->waiting[g->n_waiting]);
	return top;
}

/* ---- what hubs lead to ---- */

/* Dijkstra from a switch over switches: an entry for each vertex, nearest first. The depth of what waits is the vertex,
 * its hub the entry that leads there. */
static Status
search_from(struct grower *g, int source, bool *fits)
{
	const Topology *topo = g->topo;
	struct hub *hub = &g->hub[source];
	*hub = (struct hub){ .first = g->n_entries, .cost = -1 };
	g->n_waiting = 0;
	g->distance[source] = 0;
	g->mark[source] = source;
	TRY(push(g, (struct waiting){ 0, source, -1, 0, -1 }));
	while (g->n_waiting > 0 && g->n_entries < MOST_ENTRIES) {
		struct waiting at = pop(g);
		int v = at.depth;
		if (at.cost != g->distance[v])
			continue;
		/* Once: an entry that costs the same is worth less than none. */
		g->distance[v] = -1;
		TRY(GROW(g->ctx, g->entry, g->n_entries, g->entry_capacity));
		g->entry[g->n_entries++] = (struct entry){ at.cost, v, at.link, at.hub };
		for (int i = topo->first_out[v]; v >= topo->n_ranks && i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], w = topo->link[l].to;
			int64_t cost = at.cost + g->price[l];
			if (g->mark[w] == source && (g->distance[w] < 0 || cost >= g->distance[w]))
				continue;
			g->mark[w] = source;
			g->distance[w] = cost;
			TRY(push(g, (struct waiting){ cost, w, g->n_entries - 1, 0, l }));
		}
	}
	hub->n = g->n_entries - hub->first;
	hub->next = hub->first;
	*fits = g->n_entries < MOST_ENTRIES;
	return OK;
}

Status
grower_search(struct grower *g, bool *fits)
{
	const Topology *topo = g->topo;
	*fits = true;
	if (g->by_links)
		return OK;
	g->n_entries = 0;
	memset(g->mark, -1, (size_t)topo->n_vertices * sizeof *g->mark);
	memset(g->hub, 0, (size_t)topo->n_vertices * sizeof *g->hub);
	for (int l = 0; l < topo->n_links && *fits; l++) {
		int v = topo->link[l].to;
		if (topo->link[l].from < topo->n_ranks && v >= topo->n_ranks && g->hub[v].n == 0)
			TRY(search_from(g, v, fits));
	}
	return OK;
}

/* How many vertices a hub leads to, itself included. Ranks lead no further. */
static int
count_reached(struct grower *g, int source, int *queue)
{
	const Topology *topo = g->topo;
	int n = 0;
	queue[n++] = source;
	g->mark[source] = source;
	for (int at = 0; at < n; at++) {
		int v = queue[at];
		for (int i = topo->first_out[v]; v >= topo->n_ranks && i < topo->first_out[v + 1]; i++) {
			int w = topo->link[topo->out[i]].to;
			if (g->mark[w] == source)
				continue;
			g->mark[w] = source;
			queue[n++] = w;
		}
	}
	return n;
}

/* Are entries of all hubs too many? Hubs that links of one orbit lead to have equally many. */
static Status
count_entries(struct grower *g, const Symmetry *sym)
{
	ArenaMark mark = arena_mark(&g->ctx->scratch);
	const Topology *topo = g->topo;
	int64_t entries = 0;
	int *queue, *each;
	bool *counted;
	TRY(TEMP(g->ctx, queue, topo->n_vertices));
	TRY(TEMP(g->ctx, each, sym->n_orbits));
	TRY(TEMP(g->ctx, counted, topo->n_vertices));
	memset(g->mark, -1, (size_t)topo->n_vertices * sizeof *g->mark);
	for (int l = 0; l < topo->n_links; l++) {
		int v = topo->link[l].to, o = sym->link_orbit[l];
		if (topo->link[l].from >= topo->n_ranks || v < topo->n_ranks || counted[v])
			continue;
		counted[v] = true;
		if (each[o] == 0)
			each[o] = count_reached(g, v, queue);
		entries += each[o];
	}
	g->by_links = entries >= MOST_ENTRIES;
	g->n_looks = g->by_links ? topo->n_links : entries;
	arena_release(&g->ctx->scratch, mark);
	return OK;
}

/* ---- one tree ---- */

/* The next rank that a hub leads to waits; what waited for it before is worth nothing, even if there is no next. */
static Status
offer_next(struct grower *g, int v)
{
	struct hub *hub = &g->hub[v];
	int end = hub->first + hub->n;
	hub->version++;
	while (hub->next < end && (g->entry[hub->next].vertex >= g->topo->n_ranks
	    || g->reached[g->entry[hub->next].vertex]))
		hub->next++;
	if (hub->next == end)
		return OK;
	return push(g, (struct waiting){ hub->cost + g->entry[hub->next].distance, hub->depth, v, hub->version,
	    hub->link });
}

/* What a rank that is new in the tree can send to. */
static Status
offer_links(struct grower *g, int rank)
{
	const Topology *topo = g->topo;
	for (int i = topo->first_out[rank]; i < topo->first_out[rank + 1]; i++) {
		int l = topo->out[i], w = topo->link[l].to;
		if (w < topo->n_ranks) {
			TRY(push(g, (struct waiting){ g->price[l], g->depth[rank], -1, 0, l }));
			continue;
		}
		struct hub *hub = &g->hub[w];
		if (hub->cost >= 0 && (hub->cost < g->price[l]
		    || (hub->cost == g->price[l] && hub->depth <= g->depth[rank])))
			continue;
		hub->cost = g->price[l];
		hub->depth = g->depth[rank];
		hub->link = l;
		TRY(offer_next(g, w));
	}
	return OK;
}

/* Both directions of a hop over n links, of which *link has room for all, in the run arena. */
static Status
new_route(struct grower *g, int n, int **link)
{
	return n <= LIMIT_ROUTE_LINKS ? NEW(g->ctx, *link, n)
	    : fail(g->ctx, LIMIT, "%s: a route needs more than %d links", g->topo->name, LIMIT_ROUTE_LINKS);
}

static Status
add_edge(struct grower *g, const int *link, int n, bool *mirrored)
{
	const Topology *topo = g->topo;
	int *other;
	TRY(NEW(g->ctx, other, n));
	for (int i = 0; i < n; i++) {
		other[i] = g->opposite[link[n - 1 - i]];
		*mirrored = *mirrored && other[i] >= 0;
	}
	int src = topo->link[link[0]].from, dst = topo->link[link[n - 1]].to;
	g->there[g->n_edges] = (Edge){ src, dst, n, link };
	g->back[g->n_edges++] = (Edge){ dst, src, n, other };
	g->reached[dst] = true;
	g->depth[dst] = g->depth[src] + 1;
	return OK;
}

/* Over `first`, and on to that entry, -1: no further. */
static Status
add_hub_edge(struct grower *g, int first, int entry, bool *mirrored)
{
	int n = 1, *link;
	for (int e = entry; e >= 0 && g->entry[e].from >= 0; e = g->entry[e].from)
		n++;
	TRY(new_route(g, n, &link));
	link[0] = first;
	for (int e = entry, at = n; at > 1; e = g->entry[e].from)
		link[--at] = g->entry[e].link;
	TRY(add_edge(g, link, n, mirrored));
	return offer_links(g, g->topo->link[link[n - 1]].to);
}

/* What can be reached over links of a vertex, where the path to it costs `cost` from a rank of this depth on. */
static Status
offer_ahead(struct grower *g, int v, int64_t cost, int depth)
{
	const Topology *topo = g->topo;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		int l = topo->out[i], w = topo->link[l].to;
		const struct label *label = &g->label[w];
		int64_t there = cost + g->price[l];
		if (w < topo->n_ranks ? !g->reached[w]
		    : there < label->cost || (there == label->cost && depth < label->depth))
			TRY(push(g, (struct waiting){ there, depth, -1, 0, l }));
	}
	return OK;
}

/* The path to where link l leads, which is the cheapest now: what was on it has not become cheaper since, or this would
 * have, before. */
static Status
add_label_edge(struct grower *g, int l, bool *mirrored)
{
	const Topology *topo = g->topo;
	int n = 1, *link;
	for (int v = topo->link[l].from; v >= topo->n_ranks; v = topo->link[g->label[v].by].from)
		n++;
	TRY(new_route(g, n, &link));
	for (int at = n, by = l; at > 0; by = at > 0 ? g->label[topo->link[by].from].by : -1)
		link[--at] = by;
	TRY(add_edge(g, link, n, mirrored));
	return offer_ahead(g, topo->link[l].to, 0, g->depth[topo->link[l].to]);
}

static Status
grow_over_links(struct grower *g, int root, bool *mirrored)
{
	const Topology *topo = g->topo;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		g->label[v] = (struct label){ .cost = INT64_MAX };
	TRY(offer_ahead(g, root, 0, 0));
	while (g->n_waiting > 0 && g->n_edges < topo->n_ranks - 1) {
		struct waiting at = pop(g);
		int w = topo->link[at.link].to;
		struct label *label = &g->label[w];
		if (w < topo->n_ranks) {
			if (!g->reached[w])
				TRY(add_label_edge(g, at.link, mirrored));
		} else if (at.cost < label->cost || (at.cost == label->cost && at.depth < label->depth)) {
			*label = (struct label){ at.cost, at.depth, at.link };
			TRY(offer_ahead(g, w, at.cost, at.depth));
		}
	}
	return OK;
}

static Status
grow_over_hubs(struct grower *g, int root, bool *mirrored)
{
	const Topology *topo = g->topo;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		g->hub[v] = (struct hub){ .first = g->hub[v].first, .n = g->hub[v].n, .next = g->hub[v].first,
		    .cost = -1 };
	TRY(offer_links(g, root));
	while (g->n_waiting > 0 && g->n_edges < topo->n_ranks - 1) {
		struct waiting at = pop(g);
		int entry = -1;
		if (at.hub < 0 && g->reached[topo->link[at.link].to])
			continue;
		if (at.hub >= 0) {
			struct hub *hub = &g->hub[at.hub];
			if (at.version != hub->version)
				continue;
			entry = hub->next;
		}
		if (entry < 0 || !g->reached[g->entry[entry].vertex])
			TRY(add_hub_edge(g, at.link, entry, mirrored));
		if (at.hub >= 0 && at.version == g->hub[at.hub].version)
			TRY(offer_next(g, at.hub));
	}
	return OK;
}

Status
grower_tree(struct grower *g, int root, bool *out, bool *mirrored)
{
	memset(g->reached, 0, (size_t)g->topo->n_ranks * sizeof *g->reached);
	g->n_waiting = g->n_edges = 0;
	g->reached[root] = true;
	g->depth[root] = 0;
	*mirrored = true;
	TRY(g->by_links ? grow_over_links(g, root, mirrored) : grow_over_hubs(g, root, mirrored));
	*out = g->n_edges == g->topo->n_ranks - 1;
	return OK;
}

/* ---- opposite links ---- */

/* The link with the same capacity from the twin of its end to that of its beginning, -1: none. A switch may have
 * thousands of links, so those of the end with fewer are searched. */
static int
opposite_of(const Topology *topo, const int *twin, int l)
{
	const Link *a = &topo->link[l];
	int from = twin[a->to], to = twin[a->from];
	int n_out = topo->first_out[from + 1] - topo->first_out[from];
	int n_in = topo->first_in[to + 1] - topo->first_in[to], n = n_out < n_in ? n_out : n_in;
	const int *list = n_out < n_in ? topo->out + topo->first_out[from] : topo->in + topo->first_in[to];
	for (int i = 0; i < n; i++) {
		const Link *b = &topo->link[list[i]];
		if (b->from == from && b->to == to && b->class == a->class && b->capacity == a->capacity)
			return list[i];
	}
	return -1;
}

/* Where the other direction is between the same two vertices; else between their twins, as of a PCIe switch that has
 * one half for what leaves the server, and one for what comes in. */
static Status
find_opposites(struct grower *g)
{
	ArenaMark mark = arena_mark(&g->ctx->scratch);
	const Topology *topo = g->topo;
	int *twin;
	bool all = true, twinned = true;
	TRY(TEMP(g->ctx, twin, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		twin[v] = v;
	for (int l = 0; l < topo->n_links; l++) {
		g->opposite[l] = opposite_of(topo, twin, l);
		all = all && g->opposite[l] >= 0;
	}
	if (!all)
		TRY(topo_twins(g->ctx, topo, twin, &twinned));
	for (int l = 0; l < topo->n_links && !all && twinned; l++)
		g->opposite[l] = opposite_of(topo, twin, l);
	arena_release(&g->ctx->scratch, mark);
	return OK;
}

Status
grower_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, const int64_t *price, struct grower *g)
{
	size_t n = (size_t)topo->n_vertices;
	*g = (struct grower){ .ctx = ctx, .topo = topo, .price = price };
	TRY(TEMP(ctx, g->hub, n));
	TRY(TEMP(ctx, g->label, n));
	TRY(TEMP(ctx, g->distance, n));
	TRY(TEMP(ctx, g->mark, n));
	TRY(TEMP(ctx, g->opposite, topo->n_links));
	TRY(TEMP(ctx, g->reached, n));
	TRY(TEMP(ctx, g->depth, n));
	TRY(TEMP(ctx, g->there, topo->n_ranks));
	TRY(TEMP(ctx, g->back, topo->n_ranks));
	TRY(find_opposites(g));
	return count_entries(g, sym);
}
