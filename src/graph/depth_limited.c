/* Trees and paths of a limited number of hops. The cheapest tree of limited depth is hard to find; these are cheap. */
#include "graph/search.h"

#include <string.h>

int
search_depths(Search *s, int root, bool into, int *depth, int *hop)
{
	int n = s->topo->n_ranks, head = 0, tail = 0;
	memset(depth, -1, (size_t)n * sizeof *depth);
	if (hop)
		memset(hop, -1, (size_t)n * sizeof *hop);
	depth[root] = 0;
	s->queue[tail++] = root;
	while (head < tail && tail < n) {
		int u = s->queue[head++];
		for (int i = 0, h; tail < n && (h = search_hop_at(s, u, i, into)) >= 0; i++) {
			int w = into ? s->hop[h].src : s->hop[h].dst;
			if (s->hop[h].cost < 0 || depth[w] >= 0)
				continue;
			depth[w] = depth[u] + 1;
			if (hop)
				hop[w] = h;
			s->queue[tail++] = w;
		}
	}
	return tail < n ? -1 : depth[s->queue[tail - 1]];
}

bool
search_quick_tree(Search *s, int root, bool into, int *hop)
{
	return search_depths(s, root, into, s->triple, hop) >= 0;
}

/* The cost of a hop; both: with that of the cheapest hop in the other direction, *back, -1: none. */
static int64_t
cost_both(const Search *s, int h, bool both, int *back)
{
	*back = -1;
	if (s->hop[h].cost < 0 || !both)
		return s->hop[h].cost;
	*back = search_cheapest_hop(s, s->hop[h].dst, s->hop[h].src);
	return *back < 0 ? -1 : s->hop[h].cost + s->hop[*back].cost;
}

/* Prim, but no rank is deeper than `limit`. level: NULL, or the depth that each rank has to have. */
static int64_t
grow_limited(Search *s, int root, bool into, int limit, const int *level, int *hop, int *back)
{
	int n = s->topo->n_ranks, *depth = s->triple;
	int64_t *cost = s->cost, total = 0;
	for (int v = 0; v < n; v++) {
		depth[v] = -1;
		cost[v] = -1;
		hop[v] = -1;
		if (back)
			back[v] = -1;
	}
	depth[root] = 0;
	for (int u = root, n_joined = 1;; n_joined++) {
		for (int i = 0, h; depth[u] < limit && (h = search_hop_at(s, u, i, into)) >= 0; i++) {
			int w = into ? s->hop[h].src : s->hop[h].dst, other;
			int64_t one = cost_both(s, h, back != NULL, &other);
			if (one < 0 || depth[w] >= 0 || (level && level[w] != level[u] + 1)
			    || (cost[w] >= 0 && cost[w] <= one))
				continue;
			cost[w] = one;
			hop[w] = h;
			if (back)
				back[w] = other;
		}
		if (n_joined == n)
			return total;
		u = -1;
		for (int w = 0; w < n; w++) {
			bool sooner = u < 0 || (level && level[w] != level[u] ? level[w] < level[u]
			    : cost[w] < cost[u]);
			if (depth[w] < 0 && cost[w] >= 0 && sooner)
				u = w;
		}
		if (u < 0)
			return -1;
		total += cost[u];
		depth[u] = depth[into ? s->hop[hop[u]].dst : s->hop[hop[u]].src] + 1;
	}
}

int64_t
search_depth_limited(Search *s, int root, bool into, int limit, int *hop, int *back)
{
	int *level = s->set_of, hops = search_depths(s, root, into, level, NULL);
	if (hops < 0 || hops > limit)
		return -1;
	int64_t flat = grow_limited(s, root, into, limit, level, hop, back);
	int64_t cheap = grow_limited(s, root, into, limit, NULL, hop, back);
	return cheap >= 0 && (cheap <= flat || flat < 0) ? cheap : grow_limited(s, root, into, limit, level, hop, back);
}

int64_t
search_depth_limited_path(Search *s, int from, int to, int limit, int64_t *layer, int *hop)
{
	int n = s->topo->n_ranks, at = to;
	/* layer[k * n + v]: the cheapest walk to v of exactly k hops. */
	for (int v = 0; v < n; v++)
		layer[v] = v == from ? 0 : -1;
	for (int k = 1; k <= limit; k++) {
		int64_t *before = layer + (size_t)(k - 1) * (size_t)n, *now = before + n;
		for (int v = 0; v < n; v++)
			now[v] = -1;
		for (int h = 0; h < s->n_hops; h++) {
			int u = s->hop[h].src, w = s->hop[h].dst;
			int64_t cost = before[u] + s->hop[h].cost;
			if (s->hop[h].cost >= 0 && before[u] >= 0 && (now[w] < 0 || cost < now[w]))
				now[w] = cost;
		}
	}
	int best = -1;
	for (int k = 1; k <= limit; k++) {
		int64_t cost = layer[(size_t)k * (size_t)n + (size_t)to];
		if (cost >= 0 && (best < 0 || cost < layer[(size_t)best * (size_t)n + (size_t)to]))
			best = k;
	}
	/* No rank comes twice on the shortest of the cheapest walks: without the cycle it would be shorter. */
	for (int k = best; k > 0; k--) {
		const int64_t *before = layer + (size_t)(k - 1) * (size_t)n, *now = before + n;
		for (int i = 0, h; (h = search_hop_at(s, at, i, true)) >= 0; i++) {
			int u = s->hop[h].src;
			if (s->hop[h].cost >= 0 && before[u] >= 0 && before[u] + s->hop[h].cost == now[at]) {
				hop[at] = h;
				at = u;
				break;
			}
		}
	}
	return best < 0 ? -1 : layer[(size_t)best * (size_t)n + (size_t)to];
}
