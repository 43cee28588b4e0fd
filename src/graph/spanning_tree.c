/* Spanning trees, by Prim's algorithm. Of all cheapest ones a shallow tree is built at the end (laminar.h), with
 * Kruskal's sets: the components that edges up to some cost connect, each paid for with the difference to the cost of
 * the next. */
#include "graph/laminar.h"

#include <stdlib.h>

/* The edges in s->tree_edge, n_ranks - 1 of them; false: hops in both directions do not connect the ranks. */
static bool
prim(Search *s, int64_t *total)
{
	int n = s->topo->n_ranks;
	int *in_tree = s->triple, *out_hop = s->triple + n, *from = s->triple + 2 * n;
	int64_t *cost = s->cost;
	*total = 0;
	for (int v = 0; v < n; v++) {
		in_tree[v] = 0;
		cost[v] = -1;
	}
	for (int v = 0, n_edges = 0;;) {
		in_tree[v] = 1;
		for (int i = 0, out; (out = search_hop_at(s, v, i, false)) >= 0; i++) {
			int w = s->hop[out].dst, back;
			if (in_tree[w] || s->hop[out].cost < 0 || (back = search_cheapest_hop(s, w, v)) < 0)
				continue;
			int64_t both = s->hop[out].cost + s->hop[back].cost;
			if (cost[w] < 0 || both < cost[w]) {
				cost[w] = both;
				out_hop[w] = out;
				from[w] = v;
			}
		}
		if (n_edges == n - 1)
			return true;
		v = -1;
		for (int w = 0; w < n; w++)
			if (!in_tree[w] && cost[w] >= 0 && (v < 0 || cost[w] < cost[v]))
				v = w;
		if (v < 0)
			return false;
		*total += cost[v];
		s->tree_edge[n_edges++] = (struct tree_edge){ cost[v], from[v], v };
	}
}

static int
by_cost(const void *a, const void *b)
{
	const struct tree_edge *p = a, *q = b;
	if (p->cost != q->cost)
		return p->cost < q->cost ? -1 : 1;
	return p->v != q->v ? (p->v > q->v) - (p->v < q->v) : (p->w > q->w) - (p->w < q->w);
}

/* Kruskal's sets: a component that edges of one cost connect is paid for when an edge of the next cost joins it to
 * another. Returns the number of sets. */
static int
kruskal_sets(Search *s)
{
	int n = s->topo->n_ranks, n_sets = n;
	int64_t *reached = s->cost;	/* of a component: the cost of the edge that made it */
	for (int v = 0; v < n; v++) {
		s->component[v] = (struct component){ .up = -1, .size = 1 };
		s->set[v] = (struct laminar_set){ .parent = -1 };
		s->set_of[v] = v;
		reached[v] = 0;
	}
	qsort(s->tree_edge, (size_t)(n - 1), sizeof *s->tree_edge, by_cost);
	for (int i = 0; i < n - 1; i++) {
		const struct tree_edge *edge = &s->tree_edge[i];
		int v = find(s, edge->v), w = find(s, edge->w);
		int a = s->set_of[v], b = s->set_of[w];
		s->set[a].parent = s->set[b].parent = n_sets;
		s->set[a].paid = edge->cost - reached[v];
		s->set[b].paid = edge->cost - reached[w];
		join(s, v, w);
		s->set_of[find(s, v)] = n_sets;
		reached[find(s, v)] = edge->cost;
		s->set[n_sets++] = (struct laminar_set){ .parent = -1 };
	}
	return n_sets;
}

/* Breadth-first from the root over tight edges. Returns the depth. */
static int
flatten_edges(Search *s, int root, int n_sets, int *there, int *back)
{
	int head = 0, tail = 0, *depth = s->triple;
	for (int i = 0; i < n_sets; i++)
		s->set[i].entered = false;
	s->queue[tail++] = root;
	depth[root] = 0;
	enter(s, root);
	while (head < tail) {
		int u = s->queue[head++];
		for (int i = 0, out, in; (out = search_hop_at(s, u, i, false)) >= 0; i++) {
			int w = s->hop[out].dst;
			if (s->set[w].entered || s->hop[out].cost < 0 || (in = search_cheapest_hop(s, w, u)) < 0
			    || !is_open(s, u, w, s->hop[out].cost + s->hop[in].cost))
				continue;
			enter(s, w);
			there[tail - 1] = out;
			back[tail - 1] = in;
			depth[w] = depth[u] + 1;
			s->queue[tail++] = w;
		}
	}
	return depth[s->queue[tail - 1]];
}

int64_t
search_spanning_tree(Search *s, int *there, int *back)
{
	enum { FEW = 64 };	/* ranks, of which each is tried as the root; where there are more only rank 0 is */
	int n = s->topo->n_ranks, n_sets, best = 0, least = -1;
	int64_t total;
	if (!prim(s, &total))
		return -1;
	n_sets = kruskal_sets(s);
	settle_sets(s, n_sets);
	for (int root = 0; n <= FEW && root < n; root++) {
		int depth = flatten_edges(s, root, n_sets, there, back);
		if (least < 0 || depth < least) {
			least = depth;
			best = root;
		}
	}
	flatten_edges(s, best, n_sets, there, back);
	return total;
}
