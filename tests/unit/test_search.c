/* Cheapest trees, routes and flows against each other and against brute force, on random graphs with many ties and
 * links that cost nothing; bounds with and without symmetry. */
#include "graph/graph.h"
#include "graph/shortest.h"
#include "plan/plan.h"
#include "random.h"
#include "topology/topology.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 7, LINKS = MOST * (MOST - 1) };

struct graph {
	Topology topo;
	Vertex vertex[MOST + 1];
	Link link[LINKS];
	int64_t price[LINKS];
};

/* n ranks, some links, prices of 0 to 3. A switch that nothing leads to makes the search take the dense way. */
static Status
make(Ctx *ctx, struct graph *g, int n, bool mirrored, bool with_switch)
{
	memset(&g->topo, 0, sizeof g->topo);
	for (int v = 0; v <= n; v++)
		g->vertex[v] = (Vertex){ .id = "v", .kind = v < n ? VERTEX_GPU : VERTEX_SWITCH, .node = 0 };
	g->topo.name = "graph";
	g->topo.n_ranks = n;
	g->topo.n_vertices = n + with_switch;
	g->topo.vertex = g->vertex;
	g->topo.link = g->link;
	for (int a = 0; a < n; a++) {
		for (int b = 0; b < n; b++) {
			if (a == b || (mirrored && b < a) || below(3) == 0)
				continue;
			for (int back = 0; back <= mirrored; back++) {
				g->link[g->topo.n_links] = (Link){
					.from = back ? b : a, .to = back ? a : b, .count = 1, .capacity = 1
				};
				g->price[g->topo.n_links++] = below(4);
			}
		}
	}
	return topo_index(ctx, &g->topo);
}

/* The least cost over all choices of an entering (leaving) link for each rank but the root; -1: none reaches all. */
static int64_t
brute_arborescence(const struct graph *g, int root, bool into, int v, int *chosen)
{
	int n = g->topo.n_ranks;
	int64_t least = -1;
	if (v == n) {
		int64_t cost = 0;
		for (int u = 0; u < n; u++) {
			int at = u;
			for (int steps = 0; at != root; steps++) {
				if (steps == n)
					return -1;
				at = into ? g->link[chosen[at]].to : g->link[chosen[at]].from;
			}
			cost += u == root ? 0 : g->price[chosen[u]];
		}
		return cost;
	}
	if (v == root)
		return brute_arborescence(g, root, into, v + 1, chosen);
	for (int l = 0; l < g->topo.n_links; l++) {
		if ((into ? g->link[l].from : g->link[l].to) != v)
			continue;
		chosen[v] = l;
		int64_t cost = brute_arborescence(g, root, into, v + 1, chosen);
		if (cost >= 0 && (least < 0 || cost < least))
			least = cost;
	}
	return least;
}

/* Does hop[] make an arborescence of this cost? */
static bool
is_tree(const Search *s, int n, int root, bool into, const int *hop, int64_t cost)
{
	for (int v = 0; v < n; v++) {
		int at = v;
		for (int steps = 0; at != root; steps++) {
			if (steps == n || hop[at] < 0 || (into ? s->hop[hop[at]].src : s->hop[hop[at]].dst) != at)
				return false;
			at = into ? s->hop[hop[at]].dst : s->hop[hop[at]].src;
		}
		cost -= v == root ? 0 : s->hop[hop[v]].cost;
	}
	return cost == 0 && hop[root] == -1;
}

static int
arborescences(Ctx *ctx)
{
	int wrong = 0;
	for (int round = 0; round < 4000; round++) {
		struct graph sparse, dense;
		Search a, b;
		int n = 2 + below(round % 16 ? 4 : MOST - 1), hop[MOST], chosen[MOST];
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		uint64_t seed = state;
		Status status = make(ctx, &sparse, n, false, false);
		state = seed;
		if (status != OK || make(ctx, &dense, n, false, true) != OK || search_new(ctx, &sparse.topo, &a) != OK
		    || search_new(ctx, &dense.topo, &b) != OK)
			return report(1, "arborescences: no memory");
		search_price(&a, sparse.price);
		search_price(&b, dense.price);
		for (int root = 0; root < n; root++) {
			for (int into = 0; into < 2; into++) {
				int64_t want = search_arborescence(&a, root, into, hop);
				wrong += want >= 0 && !is_tree(&a, n, root, into, hop, want);
				wrong += search_arborescence(&b, root, into, hop) != want;
				wrong += want >= 0 && !is_tree(&b, n, root, into, hop, want);
				if (n <= 5)
					wrong += brute_arborescence(&sparse, root, into, 0, chosen) != want;
			}
		}
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong, "arborescences: sparse, dense and all of them");
}

/* Limited trees keep their limit, and with a loose one a path is the cheapest. */
static int
limited(Ctx *ctx)
{
	int wrong = 0;
	for (int round = 0; round < 2000; round++) {
		struct graph g;
		Search s;
		int n = 2 + below(MOST - 1), hop[MOST], hops[MOST], path[MOST];
		int64_t distance[MOST], layer[(MOST + 1) * MOST];
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		if (make(ctx, &g, n, false, round % 2) != OK || search_new(ctx, &g.topo, &s) != OK)
			return report(1, "limited trees: no memory");
		search_price(&s, g.price);
		int most = search_depths(&s, 0, false, hops, NULL);
		for (int limit = 1; limit < n; limit++) {
			int64_t cost = search_depth_limited(&s, 0, false, limit, hop, NULL);
			wrong += (cost >= 0) != (most >= 0 && most <= limit);
			wrong += cost >= 0 && !is_tree(&s, n, 0, false, hop, cost);
			for (int v = 1; v < n && cost >= 0; v++) {
				int depth = 0;
				for (int at = v; at != 0; at = s.hop[hop[at]].src)
					depth++;
				wrong += depth > limit;
			}
		}
		search_shortest_paths(&s, 0, false, distance, hop);
		for (int v = 1; v < n; v++) {
			wrong += search_depth_limited_path(&s, 0, v, n - 1, layer, path) != distance[v];
			wrong += (search_depth_limited_path(&s, 0, v, 1, layer, path) >= 0) != (hops[v] == 1);
		}
		search_shortest_paths(&s, 0, true, distance, hop);
		for (int v = 1; v < n; v++) {
			wrong += search_depth_limited_path(&s, v, 0, n - 1, layer, path) != distance[v];
			for (int at = v; at != 0 && distance[v] >= 0; at = s.hop[hop[at]].dst)
				distance[v] -= s.hop[hop[at]].cost;
			wrong += distance[v] > 0;
		}
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong, "limited trees and paths");
}

/* Of a mirrored graph: as cheap as Kruskal's, whose edges are tried in order of cost, and a tree. */
static int
spanning_trees(Ctx *ctx)
{
	int wrong = 0;
	for (int round = 0; round < 4000; round++) {
		struct graph g;
		Search s;
		int n = 2 + below(MOST - 1), there[MOST], back[MOST], part[MOST], joined = 0;
		int64_t kruskal = 0, sum = 0;
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		if (make(ctx, &g, n, true, round % 2) != OK || search_new(ctx, &g.topo, &s) != OK)
			return report(1, "spanning trees: no memory");
		search_price(&s, g.price);
		int64_t cost = search_spanning_tree(&s, there, back);
		for (int v = 0; v < n; v++)
			part[v] = v;
		for (int both = 0; both <= 6; both++) {
			for (int l = 0; l < g.topo.n_links; l += 2) {
				int a = part[g.link[l].from], b = part[g.link[l].to];
				if (g.price[l] + g.price[l + 1] != both || a == b)
					continue;
				for (int v = 0; v < n; v++)
					part[v] = part[v] == b ? a : part[v];
				kruskal += both;
				joined++;
			}
		}
		wrong += (cost >= 0) != (joined == n - 1) || (cost >= 0 && cost != kruskal);
		for (int v = 0; v < n; v++)
			part[v] = v;
		for (int e = 0; e < n - 1 && cost >= 0; e++) {
			const struct hop *out = &s.hop[there[e]], *in = &s.hop[back[e]];
			int a = part[out->src], b = part[out->dst];
			wrong += out->src != in->dst || out->dst != in->src || a == b;
			for (int v = 0; v < n; v++)
				part[v] = part[v] == b ? a : part[v];
			sum += out->cost + in->cost;
		}
		wrong += cost >= 0 && sum != cost;
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong, "spanning trees");
}

/* ---- routes ---- */

enum { SWITCHES = 8, VERTICES = 4 + SWITCHES };

struct fabric {
	Topology topo;
	Vertex vertex[VERTICES];
	Link link[4 * VERTICES];
	int64_t price[4 * VERTICES];
};

/* Four ranks and switches, half of which one link leaves: to anywhere, so also rings of them, and to ranks. */
static Status
make_fabric(Ctx *ctx, struct fabric *f)
{
	memset(f, 0, sizeof *f);
	for (int v = 0; v < VERTICES; v++)
		f->vertex[v] = (Vertex){ .id = "v", .kind = v < 4 ? VERTEX_GPU : VERTEX_SWITCH, .node = 0 };
	f->topo = (Topology){
		.name = "fabric", .n_ranks = 4, .n_vertices = VERTICES, .vertex = f->vertex, .link = f->link
	};
	for (int v = 0; v < VERTICES; v++) {
		for (int i = v >= 4 && v % 2 ? 1 : 1 + below(3); i > 0; i--) {
			int to = below(VERTICES);
			if (to == v)
				continue;
			f->link[f->topo.n_links] = (Link){ .from = v, .to = to, .count = 1, .capacity = 1 };
			f->price[f->topo.n_links++] = below(4);
		}
	}
	return topo_index(ctx, &f->topo);
}

/* Bellman and Ford: the cheapest way from a rank to each vertex, through no other rank; -1: none. */
static void
plain_routes(const struct fabric *f, int from, int64_t *cost)
{
	for (int v = 0; v < VERTICES; v++)
		cost[v] = v == from ? 0 : -1;
	for (int round = 0; round < VERTICES; round++) {
		for (int l = 0; l < f->topo.n_links; l++) {
			int u = f->link[l].from, v = f->link[l].to;
			if (cost[u] < 0 || (u < 4 && u != from) || v == from)
				continue;
			if (cost[v] < 0 || cost[u] + f->price[l] < cost[v])
				cost[v] = cost[u] + f->price[l];
		}
	}
}

/* Each hop costs what the plain way says, and its route leads there for that. */
static int
routes(Ctx *ctx)
{
	int wrong = 0, known = 0;
	for (int round = 0; round < 4000; round++) {
		struct fabric f;
		Search s;
		int64_t cost[VERTICES];
		int link[LIMIT_ROUTE_LINKS];
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		if (make_fabric(ctx, &f) != OK || search_new(ctx, &f.topo, &s) != OK)
			return report(1, "routes: no memory");
		search_price(&s, f.price);
		for (int u = 0; u < 4; u++) {
			plain_routes(&f, u, cost);
			for (int v = 0; v < 4; v++) {
				int h = u == v ? -1 : search_cheapest_hop(&s, u, v), at = u;
				wrong += u != v && (h < 0 ? -1 : s.hop[h].cost) != cost[v];
				int n = h < 0 ? 0 : search_route(&s, h, link);
				for (int i = 0; i < n; i++) {
					wrong += f.link[link[i]].from != at || (at < 4 && at != u);
					at = f.link[link[i]].to;
					cost[v] -= f.price[link[i]];
				}
				wrong += h >= 0 && (at != v || cost[v] != 0);
				known += h >= 0;
			}
		}
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong + (known < 10000), "routes behind switches that one link leaves");
}

/* Over links through switches and other ranks: as far as hops lead, and each path costs its distance. */
static int
link_paths(Ctx *ctx)
{
	int wrong = 0, reached = 0;
	for (int round = 0; round < 4000; round++) {
		struct fabric f;
		Search s, links;
		int64_t by_hops[4], distance[VERTICES];
		int hop[4], enter[VERTICES];
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		if (make_fabric(ctx, &f) != OK || search_new(ctx, &f.topo, &s) != OK
		    || search_links_new(ctx, &f.topo, &links) != OK)
			return report(1, "paths over links: no memory");
		search_price(&s, f.price);
		for (int u = 0; u < 4; u++) {
			search_shortest_paths(&s, u, false, by_hops, hop);
			search_link_paths(&links, f.price, u, distance, enter);
			for (int v = 0; v < 4; v++) {
				wrong += distance[v] != by_hops[v] || (enter[v] < 0) != (v == u || by_hops[v] < 0);
				for (int at = v; distance[v] >= 0 && at != u; at = f.link[enter[at]].from) {
					by_hops[v] -= f.price[enter[at]];
					reached += at == v;
				}
				wrong += distance[v] >= 0 && by_hops[v] != 0;
			}
		}
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong + (reached < 10000), "paths over links are as long as paths of hops");
}

/* ---- order ---- */

enum { CROWD = 40, CROWD_LINKS = 160 };

/* Of the vertices that wait the nearest goes on, and of these the one of the lowest number: as plainly as can be. */
static void
plain_paths(const Paths *paths, int source, int64_t *distance, int *enter)
{
	const Topology *topo = paths->topo;
	bool done[CROWD] = { false };
	for (int v = 0; v < CROWD; v++)
		distance[v] = enter[v] = -1;
	distance[source] = 0;
	for (;;) {
		int at = -1;
		for (int v = 0; v < CROWD; v++)
			if (!done[v] && distance[v] >= 0 && (at < 0 || distance[v] < distance[at]))
				at = v;
		if (at < 0)
			return;
		done[at] = true;
		for (int i = topo->first_out[at]; i < topo->first_out[at + 1]; i++) {
			int l = topo->out[i], to = topo->link[l].to;
			int64_t far = distance[at] + paths->price[l];
			if (distance[to] < 0 || far < distance[to]) {
				distance[to] = far;
				enter[to] = l;
			}
		}
	}
}

/* Prices of 0 and 1, which make many ties, and of up to 2^40: as long, and by the same links. */
static int
path_order(Ctx *ctx)
{
	int wrong = 0, reached = 0;
	for (int round = 0; round < 2000; round++) {
		Vertex vertex[CROWD];
		Link link[CROWD_LINKS];
		int64_t price[CROWD_LINKS], want[CROWD], distance[CROWD], alone[CROWD];
		int room[PATHS_ROOM * CROWD], by[CROWD], enter[CROWD], n_ranks = CROWD / (1 + round % 2);
		ArenaMark run = arena_mark(&ctx->run);
		Topology topo = { .name = "crowd", .n_ranks = n_ranks, .n_vertices = CROWD, .vertex = vertex,
			.link = link, .n_links = CROWD_LINKS };
		for (int v = 0; v < CROWD; v++)
			vertex[v] = (Vertex){ .id = "v", .kind = v < n_ranks ? VERTEX_GPU : VERTEX_SWITCH, .node = 0 };
		for (int l = 0; l < CROWD_LINKS; l++) {
			int from = below(CROWD);
			link[l] = (Link){ .from = from, .to = (from + 1 + below(CROWD - 1)) % CROWD, .count = 1,
				.capacity = 1 };
			price[l] = round % 4 < 2 ? below(2) : (int64_t)below(1 << 20) << below(21);
		}
		if (topo_index(ctx, &topo) != OK)
			return report(1, "order of paths: no memory");
		Paths paths = { .topo = &topo, .price = price, .classes = ~0u, .relay = true, .room = room };
		plain_paths(&paths, round % CROWD, want, by);
		shortest_paths(&paths, round % CROWD, false, distance, enter);
		shortest_paths(&paths, round % CROWD, false, alone, NULL);
		for (int v = 0; v < CROWD; v++) {
			wrong += distance[v] != want[v] || alone[v] != want[v] || enter[v] != by[v];
			reached += want[v] > 0;
		}
		arena_release(&ctx->run, run);
	}
	return report(wrong + (reached < 10000),
	    "shortest paths take the nearest vertex first, then the lowest number");
}

/* ---- the cheapest hops into ranks ---- */

/* They cost no more than the cheapest trees; and as much at a switch, where links into ranks alone have a price. */
static int
cheapest_hops(Ctx *ctx)
{
	const Collective coll[] = { BROADCAST, REDUCE, ALLREDUCE, ALLGATHER, REDUCESCATTER };
	int wrong = 0, positive = 0;
	for (int round = 0; round < 500; round++) {
		enum { N = 6, N_SWITCHES = 3, MOST_LINKS = 60 };
		Vertex vertex[N + N_SWITCHES];
		Link link[MOST_LINKS];
		int64_t price[MOST_LINKS];
		const bool star = round % 4 == 0;
		const int n = star ? 2 * N : MOST_LINKS;
		ArenaMark run = arena_mark(&ctx->run);
		Topology topo = { .name = "hops", .n_ranks = N, .n_vertices = N + N_SWITCHES, .vertex = vertex,
			.link = link, .n_links = n };
		for (int v = 0; v < N + N_SWITCHES; v++)
			vertex[v] = (Vertex){ .id = "v", .kind = v < N ? VERTEX_GPU : VERTEX_SWITCH, .node = 0 };
		for (int l = 0; l < n; l++) {
			int from = star ? (l < N ? l : N) : below(N + N_SWITCHES);
			int to = star ? (l < N ? N : l - N) : (from + 1 + below(N + N_SWITCHES - 1)) % (N + N_SWITCHES);
			link[l] = (Link){ .from = from, .to = to, .count = 1, .capacity = 1 };
			price[l] = star ? (l < N ? 0 : 1 + below(3)) : below(4);
		}
		if (topo_index(ctx, &topo) != OK)
			return report(1, "cheapest hops: no memory");
		for (size_t c = 0; c < sizeof coll / sizeof *coll; c++) {
			Wide least, cost;
			int root = collective_rooted(coll[c]) ? below(N) : -1;
			if (demands_least(ctx, "x", &topo, coll[c], root, price, &least) != OK
			    || demands_cost(ctx, "x", &topo, coll[c], root, NULL, price, &cost) != OK)
				return report(1, "cheapest hops: failed");
			bool enters = coll[c] == BROADCAST || coll[c] == ALLGATHER;
			wrong += cost >= 0 && (least > cost || (star && enters && least < cost));
			positive += cost >= 0 && least > 0;
		}
		arena_release(&ctx->run, run);
	}
	return report(wrong + (positive < 1000), "the cheapest hops cost no more than the cheapest trees");
}

/* ---- flows ---- */

/* What leaves a side, of links, sources and sinks. */
static int64_t
leaving(const struct graph *g, unsigned side, const int64_t *from_source, const int64_t *to_sink)
{
	int64_t sum = 0;
	for (int l = 0; l < g->topo.n_links; l++)
		if ((side >> g->link[l].from & 1) && !(side >> g->link[l].to & 1))
			sum += g->link[l].capacity;
	for (int v = 0; v < g->topo.n_ranks; v++)
		sum += side >> v & 1 ? to_sink[v] : from_source[v];
	return sum;
}

/* The least of that over all sides, and the smallest side with it, which all others contain. */
static int64_t
brute_cut(const struct graph *g, const int64_t *from_source, const int64_t *to_sink, unsigned *smallest)
{
	int64_t least = INT64_MAX;
	for (unsigned side = 0; side < 1u << g->topo.n_ranks; side++) {
		int64_t sum = leaving(g, side, from_source, to_sink);
		*smallest = sum < least ? side : sum == least ? *smallest & side : *smallest;
		least = sum < least ? sum : least;
	}
	return least;
}

static int
wrong_flow(Flow *f, const struct graph *g, int64_t found, const int64_t *from_source, const int64_t *to_sink)
{
	unsigned smallest = 0;
	int wrong = found != brute_cut(g, from_source, to_sink, &smallest);
	for (int v = 0; v < g->topo.n_ranks; v++)
		wrong += flow_side(f, v) != (smallest >> v & 1);
	return wrong;
}

/* Any sources and sinks, from the last of which or the first of which a search begins; and the least cut between rank 0
 * and any other, by flows past the ranks that are known. */
static int
flows(Ctx *ctx)
{
	enum { ENOUGH = 1000 };		/* more than all links */
	int wrong = 0;
	for (int round = 0; round < 2000; round++) {
		struct graph g;
		Flow f;
		int n = 2 + below(MOST - 1);
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		if (make(ctx, &g, n, false, false) != OK || flow_new(ctx, &g.topo, &f) != OK)
			return report(1, "flows: no memory");
		for (int l = 0; l < g.topo.n_links; l++)
			g.link[l].capacity = 1 + below(5);
		int64_t from_source[MOST] = { 0 }, to_sink[MOST] = { 0 };
		flow_reset(&f, 1, false);
		for (int v = 0; v < n; v++) {
			bool begins = below(2);
			(begins ? from_source : to_sink)[v] = below(9);
			flow_from_source(&f, v, from_source[v]);
			flow_to_sink(&f, v, to_sink[v]);
		}
		wrong += wrong_flow(&f, &g, (int64_t)flow_max(&f), from_source, to_sink);
		for (int into = 0; into < 2; into++) {
			bool known[MOST] = { true };
			int64_t least = ENOUGH, brute = ENOUGH;
			for (int r = 1; r < n; known[r++] = true) {
				int64_t one[MOST] = { ENOUGH }, other[MOST] = { 0 };
				unsigned unused = 0;
				other[r] = ENOUGH;
				int64_t between = brute_cut(&g, into ? other : one, into ? one : other, &unused);
				brute = between < brute ? between : brute;
				for (int v = 0; v < n; v++)
					one[v] = known[v] ? ENOUGH : 0;
				int64_t past = flow_past(&f, known, r, into);
				wrong += wrong_flow(&f, &g, past, into ? other : one, into ? one : other);
				least = past < least ? past : least;
			}
			wrong += least != brute;
		}
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong, "maximum flows, and cuts of one rank");
}

/* ---- bounds ---- */

/* Equal GPUs in servers behind switches: the bound of an allreduce is the same whether the symmetry is known or
 * not. */
static int
alike_bounds(Ctx *ctx)
{
	int wrong = 0, symmetric = 0;
	for (int round = 0; round < 1000; round++) {
		enum { MOST_NODES = 6, GPUS = 3 };
		Vertex vertex[MOST_NODES * (GPUS + 2) + 1];
		Link link[MOST_NODES * (4 * GPUS + 4)];
		int nodes = 2 + below(MOST_NODES - 1), gpus = 1 + below(GPUS), n = nodes * gpus, n_links = 0;
		/* To the switch of a server and back; between it and the network by way of a NIC out and one in. */
		int64_t capacity[4] = { 1 + below(9), 1 + below(9), 1 + below(20), 1 + below(20) };
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		Topology topo = { .name = "symmetric", .n_nodes = nodes, .n_ranks = n,
		    .n_vertices = n + 2 * nodes + 1, .vertex = vertex,
			.link = link };
		for (int v = 0; v < topo.n_vertices; v++)
			vertex[v] = (Vertex){
				.id = "v", .kind = v < n ? VERTEX_GPU : VERTEX_SWITCH, .node = v < n ? v / gpus : -1
			};
		for (int s = 0; s < nodes; s++) {
			int inside = n + 2 * s, nic = inside + 1, net = n + 2 * nodes;
			for (int g = s * gpus; g < (s + 1) * gpus; g++) {
				link[n_links++] = (Link){
					.from = g, .to = inside, .count = 1, .capacity = capacity[0]
				};
				link[n_links++] = (Link){
					.from = inside, .to = g, .count = 1, .capacity = capacity[1]
				};
			}
			link[n_links++] = (Link){ .from = inside, .to = nic, .count = 1, .capacity = capacity[2] };
			link[n_links++] = (Link){ .from = nic, .to = net, .count = 1, .capacity = capacity[3] };
			link[n_links++] = (Link){
				.from = net, .to = inside, .count = 1, .capacity = 1 + capacity[round % 2]
			};
		}
		topo.n_links = n_links;
		Symmetry *known, *unknown;
		Bound a, b;
		if (topo_index(ctx, &topo) != OK || topo_symmetry(ctx, &topo, -1, true, &known) != OK
		    || topo_symmetry(ctx, &topo, -1, false, &unknown) != OK
		    || bound_compute(ctx, &topo, known, ALLREDUCE, -1, &a) != OK
		    || bound_compute(ctx, &topo, unknown, ALLREDUCE, -1, &b) != OK)
			return report(1, "bounds of symmetric machines: failed");
		wrong += frac_cmp(a.rate, b.rate) != 0;
		symmetric += known->n_representatives == 1;
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong + (symmetric < 900), "bounds of an allreduce over symmetric ranks");
}

/* Ranks with a switch out and one in each, and a network: its own reverse as long as both ways have the same
 * capacity. */
static int
twins(Ctx *ctx)
{
	int wrong = 0;
	for (int round = 0; round < 200; round++) {
		enum { N = 5, NET = 3 * N };
		Vertex vertex[NET + 1];
		Link link[4 * N];
		int odd = round % 2 ? below(4 * N) : -1;
		bool twinned, mirrored;
		ArenaMark run = arena_mark(&ctx->run);
		Topology topo = { .name = "twins",
			.n_ranks = N,
			.n_vertices = NET + 1,
			.vertex = vertex,
			.link = link,
			.n_links = 4 * N };
		for (int v = 0; v <= NET; v++)
			vertex[v] = (Vertex){ .id = "v", .kind = v < N ? VERTEX_GPU : VERTEX_SWITCH, .node = -1 };
		for (int r = 0; r < N; r++) {
			int out = N + 2 * r, in = out + 1, pcie = 2 + below(2), net = 4 + below(2);
			link[4 * r] = (Link){ .from = r, .to = out, .count = 1, .capacity = pcie };
			link[4 * r + 1] = (Link){ .from = in, .to = r, .count = 1, .capacity = pcie };
			link[4 * r + 2] = (Link){ .from = out, .to = NET, .count = 1, .capacity = net };
			link[4 * r + 3] = (Link){ .from = NET, .to = in, .count = 1, .capacity = net };
		}
		if (odd >= 0)
			link[odd].capacity = 1;
		if (topo_index(ctx, &topo) != OK || topo_twinned(ctx, &topo, &twinned) != OK
		    || topo_mirrored(ctx, &topo, &mirrored) != OK)
			return report(1, "twins: no memory");
		wrong += twinned != (odd < 0) || mirrored;
		arena_release(&ctx->run, run);
	}
	return report(wrong, "topologies that are their own reverse");
}

int
main(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	int failed = arborescences(&ctx) + limited(&ctx) + spanning_trees(&ctx) + routes(&ctx) + link_paths(&ctx)
	    + path_order(&ctx) + cheapest_hops(&ctx) + flows(&ctx) + alike_bounds(&ctx) + twins(&ctx);
	ctx_free(&ctx);
	return failed != 0;
}
