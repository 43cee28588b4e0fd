/* Trees that grow by the cheapest hops, in 2000 random machines of ranks and switches with random prices, over hubs and
 * over links: each hop is a route from a rank that the tree has to one that it has not, over switches, and all hops
 * together cost what those of Prim's method over a table of all pairs of ranks do. */
#include "plan/pack/templates/grow.h"
#include "random.h"
#include "topology/topology.h"

#include <stdlib.h>

enum { MACHINES = 2000, RANKS = 8, SWITCHES = 5, VERTICES = RANKS + SWITCHES, LINKS = 60, FAR = INT32_MAX };

static Vertex vertex[VERTICES];
static Link link[LINKS];
static int64_t price[LINKS];

/* No two sums of prices are likely to be equal, so that trees of one price are the same. */
static Status
make(Ctx *ctx, Topology *topo, Symmetry **none)
{
	int n = 2 + below(RANKS - 1), all = n + below(SWITCHES + 1);
	*topo = (Topology){ .name = "machine", .n_nodes = 1, .n_ranks = n, .n_vertices = all, .vertex = vertex,
		.link = link, .n_links = all + below(LINKS - all) };
	for (int v = 0; v < all; v++)
		vertex[v] = v < n ? (Vertex){ .id = "r", .kind = VERTEX_GPU, .node = 0 }
		    : (Vertex){ .id = "s", .kind = VERTEX_SWITCH, .node = -1 };
	for (int l = 0; l < topo->n_links; l++) {
		int from = below(all), to = (from + 1 + below(all - 1)) % all;
		link[l] = (Link){ .from = from, .to = to, .count = 1, .capacity = 1000 };
		price[l] = 1 + below(1 << 24);
	}
	TRY(topo_index(ctx, topo));
	return topo_symmetry(ctx, topo, -1, SYMMETRY_NONE, none);
}

/* What the cheapest way costs from a rank to each vertex, over no other rank. */
static void
reach_from(const Topology *topo, int rank, int64_t *cost)
{
	for (int v = 0; v < topo->n_vertices; v++)
		cost[v] = v == rank ? 0 : FAR;
	for (int round = 0; round < topo->n_vertices; round++)
		for (int l = 0; l < topo->n_links; l++) {
			int u = link[l].from, v = link[l].to;
			if ((u == rank || u >= topo->n_ranks) && cost[u] + price[l] < cost[v])
				cost[v] = cost[u] + price[l];
		}
}

/* Of a tree over all ranks; -1: there is none. */
static int64_t
plain_cost(const Topology *topo, int root)
{
	int64_t cost[RANKS][VERTICES], sum = 0;
	bool has[RANKS] = { false };
	for (int r = 0; r < topo->n_ranks; r++)
		reach_from(topo, r, cost[r]);
	has[root] = true;
	for (int n = 1; n < topo->n_ranks; n++) {
		int64_t least = FAR;
		int next = -1;
		for (int a = 0; a < topo->n_ranks; a++)
			for (int b = 0; b < topo->n_ranks; b++)
				if (has[a] && !has[b] && cost[a][b] < least) {
					least = cost[a][b];
					next = b;
				}
		if (next < 0)
			return -1;
		has[next] = true;
		sum += least;
	}
	return sum;
}

/* -1: it is no tree. */
static int64_t
tree_cost(const Topology *topo, const struct grower *g, int root)
{
	bool has[VERTICES] = { false };
	int64_t sum = 0;
	has[root] = true;
	for (int e = 0; e < g->n_edges; e++) {
		const Edge *edge = &g->there[e];
		int v = edge->src;
		if (edge->dst >= topo->n_ranks || !has[v] || has[edge->dst])
			return -1;
		has[edge->dst] = true;
		for (int i = 0; i < edge->n_links; i++) {
			int l = edge->link[i];
			if (link[l].from != v || (i > 0 && v < topo->n_ranks))
				return -1;
			v = link[l].to;
			sum += price[l];
		}
		if (v != edge->dst)
			return -1;
	}
	return sum;
}

/* Trees of all roots, one after the other, as those of a round are. */
static Status
try_roots(Ctx *ctx, const Topology *topo, const Symmetry *none, bool by_links, int *wrong, int *trees)
{
	struct grower g;
	bool fits;
	TRY(grower_new(ctx, topo, none, price, &g));
	g.by_links = by_links;
	TRY(grower_search(&g, &fits));
	for (int root = 0; root < topo->n_ranks; root++) {
		bool whole, mirrored;
		int64_t cost = plain_cost(topo, root);
		TRY(grower_tree(&g, root, &whole, &mirrored));
		*wrong += !fits || whole != (cost >= 0) || (whole && tree_cost(topo, &g, root) != cost);
		*trees += whole;
	}
	return OK;
}

int
main(void)
{
	int failed = 0, over_hubs = 0, over_links = 0, trees = 0;
	for (int i = 0; i < MACHINES; i++) {
		Ctx ctx;
		Topology topo;
		Symmetry *none;
		ctx_init(&ctx);
		failed += make(&ctx, &topo, &none) != OK
		    || try_roots(&ctx, &topo, none, false, &over_hubs, &trees) != OK
		    || try_roots(&ctx, &topo, none, true, &over_links, &trees) != OK;
		ctx_free(&ctx);
	}
	failed = report(failed, "machines") + report(over_hubs, "trees over hubs")
	    + report(over_links, "trees over links") + report(trees < MACHINES, "trees enough");
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
