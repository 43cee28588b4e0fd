/* Trees for machines so large and so symmetric that a schedule is a few trees and their images: where a table of all
 * pairs of ranks, which the linear program prices trees by, would take gigabytes.
 *
 * A tree grows from its root by Prim's method: the cheapest hop from a rank that it has to one that it has not, and of
 * those that cost the same one from the least depth. Hops lead from a rank to the switch at one of its links, its hub,
 * and from there over switches to another rank. So for each hub it is enough to know the best rank that can send there,
 * and the ranks that it leads to, nearest first:
 *
 *     rank -- NVSwitch of 8 ranks        2 hubs for each rank, and for each hub those that it reaches: of 16384 ranks
 *          \- rail of 2048 ranks         on rails 32768 pairs in place of 268 million
 *
 * Where that is too much, as behind PCIe switches, each of which leads to every rank, a tree grows over links instead:
 * each switch knows the cheapest way from the tree to it so far, and of those that cost the same one from the least
 * depth. All links are looked at for each tree, and hubs that lead to few ranks are faster.
 *
 * Where prices of links are the same in both directions no tree is cheaper. Prices are the same over an orbit, and so
 * loads are, of all images together. They follow loads, round by round, as with multiplicative weights (mwu.c), and the
 * rounds so far with the highest rate are the packing, or, where that is higher, some of their trees, each as much as a
 * linear program says (weights.c). Nothing is claimed of it: the bound says what it is. */
#include "base/array.h"
#include "graph/reversible.h"
#include "plan/pack/templates/templates.h"
#include "plan/pack/templates/weights.h"

#include <string.h>

enum {
	ROUNDS = 12,
	MOST_ROUNDS = 48,	/* where a linear program chooses from all of their trees */
	IDLE_ROUNDS = 8,	/* of these: the rate is no higher after them */
	MOST_LOOKS = 1 << 28,	/* at entries or links of all trees in as many rounds: a few seconds; beyond it there
				 * are ROUNDS */
	MOST_ENTRIES = 1 << 24,
	PRICE_BITS = 28, STEEP = 15,
	SMALL = 4096		/* prices of loads beside those of the linear program are as many times less */
};

/* The cheapest way from the tree to a switch: what it costs from the last rank on, the depth of that rank, the last
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

struct grower {
	Ctx *ctx;
	const Topology *topo;
	const int64_t *price;
	int n_entries, entry_capacity, n_waiting, waiting_capacity;
	struct entry *entry;
	struct waiting *waiting;
	struct hub *hub;	/* of each vertex: of ranks unused */
	bool by_links;		/* entries are not listed: */
	struct label *label;	/* of each vertex: of ranks unused */
	int64_t *distance;	/* of each vertex, during a search */
	int *mark, *opposite;	/* of each vertex: the last search; of each link: the one back, -1: none */
	bool *reached;		/* of each rank */
	int *depth;
	Edge *there, *back;	/* of the current tree */
	int n_edges;
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

static Status
push(struct grower *g, struct waiting one)
{
	TRY(GROW(g->ctx, g->waiting, g->n_waiting, g->waiting_capacity));
	int at = g->n_waiting++;
	for (; at > 0 && before(&one, &g->waiting[(at - 1) / 2]); at = (at - 1) / 2)
		g->waiting[at] = g->waiting[(at - 1) / 2];
	g->waiting[at] = one;
	return OK;
}

static struct waiting
pop(struct grower *g)
{
	struct waiting top = g->waiting[0], last = g->waiting[--g->n_waiting];
	int at = 0;
	for (int child; (child = 2 * at + 1) < g->n_waiting; at = child) {
		child += child + 1 < g->n_waiting && before(&g->waiting[child + 1], &g->waiting[child]);
		if (!before(&g->waiting[child], &last))
			break;
		g->waiting[at] = g->waiting[child];
	}
	if (g->n_waiting > 0)
		g->waiting[at] = last;
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

static Status
search_hubs_of(struct grower *g, bool *fits)
{
	const Topology *topo = g->topo;
	g->n_entries = 0;
	*fits = true;
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
	arena_release(&g->ctx->scratch, mark);
	return OK;
}

/* ---- one tree ---- */

/* The next rank that a hub leads to waits. */
static Status
offer_next(struct grower *g, int v)
{
	struct hub *hub = &g->hub[v];
	int end = hub->first + hub->n;
	while (hub->next < end && (g->entry[hub->next].vertex >= g->topo->n_ranks
	    || g->reached[g->entry[hub->next].vertex]))
		hub->next++;
	if (hub->next == end)
		return OK;
	hub->version++;
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

/* What can be reached over links of a vertex, where the way to it costs `cost` from a rank of this depth on. */
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

/* The way to where link l leads, which is the cheapest now: what was on it has not become cheaper since, or this would
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

/* *out: false: some rank is not reached. *mirrored: each of its edges can be taken back. */
static Status
grow_tree(struct grower *g, int root, bool *out, bool *mirrored)
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

/* ---- rounds ---- */

struct rounds {
	struct grower g;
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	Collective coll;
	int64_t *price, *base;	/* of each link: of a hop of a tree, and of a transfer */
	double *dual;		/* of each orbit, where the linear program is solved; else NULL */
	int64_t *load;		/* of each orbit: uses by representatives, so far */
	int64_t *capacity;	/* of all links of an orbit */
	Packing *pack;
	int n_kept;		/* trees of the rounds with the highest rate */
	Frac best;		/* their rate for a demand; of an allreduce for one image of each tree */
	int64_t *uses;		/* [tree * orbits + orbit]: of all images; NULL: there are too many orbits */
	int64_t *weight;	/* of each tree, where `best` is by weights; else NULL */
};

/* Trees of a round. */
static int
roots_of(const struct rounds *r)
{
	return r->coll == ALLREDUCE ? 1 : r->sym->n_representatives;
}

/* Prices of an orbit: as the capacity of its links has it, and up to 1 + STEEP times that where the load is highest. */
static void
price_loads(struct rounds *r)
{
	const Topology *topo = r->topo;
	int64_t unit = topo_link_unit(topo), most = 0;
	for (int o = 0; o < r->sym->n_orbits; o++) {
		int64_t load = (int64_t)(((Wide)r->load[o] << 20) / (r->capacity[o] / unit + 1));
		most = load > most ? load : most;
	}
	for (int l = 0; l < topo->n_links; l++) {
		int o = r->sym->link_orbit[l];
		int64_t load = (int64_t)(((Wide)r->load[o] << 20) / (r->capacity[o] / unit + 1));
		int64_t part = most ? (int64_t)(((Wide)load << 10) / most) : 0;
		Wide base = ((Wide)1 << PRICE_BITS) / (topo->link[l].capacity / unit) + 1;
		r->base[l] = (int64_t)(base * ((1 << 20) + STEEP * part * part) >> 20);
	}
}

/* Prices of the linear program, and what tells trees of one price from each other: a small part of the other ones. */
static void
price_duals(struct rounds *r)
{
	const Topology *topo = r->topo;
	double most = 0;
	for (int o = 0; o < r->sym->n_orbits; o++)
		most = r->dual[o] > most ? r->dual[o] : most;
	price_loads(r);
	for (int l = 0; l < topo->n_links; l++)
		r->base[l] = r->base[l] / SMALL + 1
		    + (int64_t)(r->dual[r->sym->link_orbit[l]] / most * (1 << PRICE_BITS));
}

/* Trees towards the root load the links of the other direction, and of an allreduce both. */
static void
set_prices(struct rounds *r)
{
	if (r->dual)
		price_duals(r);
	else
		price_loads(r);
	for (int l = 0; l < r->topo->n_links; l++) {
		int back = r->g.opposite[l];
		r->price[l] = r->coll == ALLGATHER || back < 0 ? r->base[l] : r->coll == REDUCESCATTER ? r->base[back]
		    : (r->base[l] + r->base[back]) / 2;
	}
}

/* The link with the same capacity from the twin of its end to that of its beginning, -1: none. A switch may have
 * thousands of links, so the end with fewer is asked. */
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

static Status
new_rounds(struct rounds *r, Packing *pack)
{
	const Topology *topo = r->topo;
	size_t n = (size_t)topo->n_vertices, m = (size_t)topo->n_links;
	struct grower *g = &r->g;
	TRY(TEMP(r->ctx, r->price, m));
	TRY(TEMP(r->ctx, r->base, m));
	TRY(TEMP(r->ctx, r->load, m));
	TRY(TEMP(r->ctx, r->capacity, m));
	*g = (struct grower){ .ctx = r->ctx, .topo = topo, .price = r->price };
	TRY(TEMP(r->ctx, g->hub, n));
	TRY(TEMP(r->ctx, g->label, n));
	TRY(TEMP(r->ctx, g->distance, n));
	TRY(TEMP(r->ctx, g->mark, n));
	TRY(TEMP(r->ctx, g->opposite, m));
	TRY(TEMP(r->ctx, g->reached, n));
	TRY(TEMP(r->ctx, g->depth, n));
	TRY(TEMP(r->ctx, g->there, topo->n_ranks));
	TRY(TEMP(r->ctx, g->back, topo->n_ranks));
	for (int l = 0; l < topo->n_links; l++)
		r->capacity[r->sym->link_orbit[l]] += topo->link[l].capacity;
	TRY(find_opposites(g));
	TRY(count_entries(g, r->sym));
	int roots = roots_of(r);
	size_t most = MOST_ROUNDS * (size_t)roots;
	*pack = (Packing){ .unit = FRAC_ONE, .symmetry = r->sym };
	TRY(NEW(r->ctx, pack->tree, most));
	TRY(NEW(r->ctx, pack->demand, most));
	TRY(NEW(r->ctx, pack->weight, most));
	r->pack = pack;
	return r->sym->n_orbits + roots <= TEMPLATE_ROWS
	    ? TEMP(r->ctx, r->uses, most * (size_t)r->sym->n_orbits) : OK;
}

/* A tree of the representative, and what all images load with it. images: ranks of its orbit. */
static Status
add_tree(struct rounds *r, int root, int images)
{
	struct grower *g = &r->g;
	Packing *pack = r->pack;
	Tree *tree = &pack->tree[pack->n_trees];
	bool into = r->coll == REDUCESCATTER;
	TRY(tree_arrange(r->ctx, r->topo->n_ranks, into ? REDUCE : r->coll == ALLREDUCE ? ALLREDUCE : BROADCAST, root,
	    into ? g->back : g->there, into ? g->there : g->back, g->n_edges, tree));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		for (int k = 0; k < edge->n_links; k++) {
			int o = r->sym->link_orbit[edge->link[k]];
			r->load[o] += images;
			if (r->uses)
				r->uses[(size_t)pack->n_trees * (size_t)r->sym->n_orbits + (size_t)o] += images;
		}
	}
	pack->demand[pack->n_trees] = r->coll == ALLREDUCE ? 0 : root;
	pack->weight[pack->n_trees++] = 1;
	return OK;
}

/* The least capacity by load of any orbit, times the number of trees of a demand that loads are of. False: it is no
 * higher than the best. */
static bool
is_higher(struct rounds *r, const int64_t *load, int64_t trees)
{
	Wide num = 0, den = 1;
	for (int o = 0; o < r->sym->n_orbits; o++)
		if (load[o] > 0 && (num == 0 || ratio_cmp(r->capacity[o], load[o], num, den) < 0)) {
			num = r->capacity[o];
			den = load[o];
		}
	Frac rate;
	if (num == 0 || !frac_make(num * trees, den, &rate) || frac_cmp(rate, r->best) <= 0)
		return false;
	r->best = rate;
	return true;
}

static void
keep_rounds(struct rounds *r, int rounds)
{
	if (!is_higher(r, r->load, rounds))
		return;
	r->n_kept = r->pack->n_trees;
	r->weight = NULL;
}

/* Trees of all rounds so far by their weights, if that is better. */
static Status
keep_weights(struct rounds *r)
{
	const Packing *pack = r->pack;
	int *demand;
	int64_t *weight, *load, sum, images = 0;
	double *price;
	if (!r->uses)
		return OK;
	TRY(TEMP(r->ctx, price, r->sym->n_orbits));
	TRY(TEMP(r->ctx, demand, pack->n_trees));
	TRY(TEMP(r->ctx, weight, pack->n_trees));
	TRY(TEMP(r->ctx, load, r->sym->n_orbits));
	int each = roots_of(r);
	for (int t = 0; t < pack->n_trees; t++)
		demand[t] = t % each;
	TRY(template_weights(r->ctx, &(struct template_pool){ .n_orbits = r->sym->n_orbits, .n_demands = each,
	    .capacity = r->capacity, .n = pack->n_trees, .demand = demand, .load = r->uses }, weight, &sum, price));
	r->dual = sum > 0 ? price : NULL;
	for (int t = 0; t < pack->n_trees && sum > 0; t++) {
		images += weight[t] > 0 ? r->sym->size : 0;
		for (int o = 0; o < r->sym->n_orbits; o++)
			load[o] += weight[t] * r->uses[(size_t)t * (size_t)r->sym->n_orbits + (size_t)o];
	}
	if (sum > 0 && images <= LIMIT_IMAGES && is_higher(r, load, sum)) {
		r->n_kept = pack->n_trees;
		r->weight = weight;
	}
	return OK;
}

/* *good: false: there is no such tree. */
static Status
one_round(struct rounds *r, bool *good)
{
	int n = roots_of(r);
	set_prices(r);
	if (!r->g.by_links)
		TRY(search_hubs_of(&r->g, good));
	for (int i = 0; i < n && *good; i++) {
		int root = r->sym->representative[i], images = r->sym->size;
		bool whole, mirrored, moved = false;
		for (int m = 0; m < r->sym->n_maps; m++)
			moved = moved || r->sym->map[m].vertex[root] != root;
		TRY(grow_tree(&r->g, root, &whole, &mirrored));
		*good = whole && (mirrored || r->coll == ALLGATHER);
		if (*good)
			TRY(add_tree(r, root, moved || r->coll == ALLREDUCE ? images : 1));
	}
	return OK;
}

/* Trees of one demand side by side, in the order of their rounds. */
static Status
sort_by_demand(struct rounds *r, Packing **out)
{
	Packing *made;
	const Packing *pack = r->pack;
	int each = roots_of(r);
	TRY(NEW(r->ctx, made, 1));
	*made = *pack;
	made->n_trees = 0;
	TRY(NEW(r->ctx, made->tree, r->n_kept));
	TRY(NEW(r->ctx, made->demand, r->n_kept));
	TRY(NEW(r->ctx, made->weight, r->n_kept));
	for (int i = 0; i < each; i++)
		for (int t = i; t < r->n_kept; t += each) {
			int64_t weight = r->weight ? r->weight[t] : pack->weight[t];
			if (weight == 0)
				continue;
			made->tree[made->n_trees] = pack->tree[t];
			made->demand[made->n_trees] = pack->demand[t];
			made->weight[made->n_trees++] = weight;
		}
	*out = made;
	return OK;
}

bool
pack_templates_serves(const Topology *topo, const Symmetry *sym, Collective coll)
{
	return (coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER) && sym->size >= 2 && !topo->route
	    && !tree_shares(topo, coll);
}

/* Equal but for rounding. */
static bool
is_near(Frac rate, Frac top)
{
	return frac_double(rate) >= frac_double(top) * (1 - RATE_ROUNDING);
}

/* `least`, or more where the linear program has use for them, and trees grow soon. */
static int
most_rounds(const struct rounds *r, int least)
{
	int64_t looks = r->g.by_links ? r->topo->n_links : r->g.n_entries;
	return r->uses && (looks + r->topo->n_ranks) * roots_of(r) <= MOST_LOOKS / MOST_ROUNDS ? MOST_ROUNDS : least;
}

Status
pack_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct rounds r = { .ctx = ctx, .topo = topo, .sym = sym, .coll = coll, .best = FRAC_ZERO };
	Packing pack;
	bool good = true;
	*out = NULL;
	if (!pack_templates_serves(topo, sym, coll))
		return OK;
	TRY(new_rounds(&r, &pack));
	Frac top, parts = { coll == ALLREDUCE ? sym->size : collective_shares(coll, topo->n_ranks), 1 };
	if (!frac_div(bound->rate, parts, &top))
		return OK;
	int64_t images = (int64_t)sym->size * roots_of(&r);
	int rounds = ROUNDS < LIMIT_IMAGES / images ? ROUNDS : (int)(LIMIT_IMAGES / images);
	for (int i = 1, idle = 0; (i <= rounds || (i <= most_rounds(&r, rounds) && idle < IDLE_ROUNDS)) && good
	    && (i == 1 || !is_near(r.best, top))
	    && progress(ctx, "trees of %d GPUs: round %d", topo->n_ranks, i) > 0; i++) {
		Frac before = r.best;
		TRY(one_round(&r, &good));
		if (good && i <= rounds)
			keep_rounds(&r, i);
		if (good && i > 1 && !is_near(r.best, top))
			TRY(keep_weights(&r));
		idle = frac_cmp(before, r.best) < 0 ? 0 : idle + 1;
	}
	if (r.n_kept > 0)
		TRY(sort_by_demand(&r, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
