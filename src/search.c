/* Arborescences: every rank but the root takes its cheapest entering hop; a cycle of such hops is contracted to one
 * vertex whose entering hops cost what they save less (Edmonds). The
 * entering hops of a (contracted) vertex lie in a leftist heap with lazy additions, so a contraction is a merge; behind switches,
 * where all pairs of ranks have hops, in a row of a matrix.
 *
 * Shallow trees: what Edmonds pays for each (contracted) vertex is a dual solution. A tree is cheapest if all its hops are
 * tight, that is cost just what is paid for the sets that they enter, and no contracted set that was paid for is entered
 * twice. Tight hops connect each such set strongly, so a breadth-first search that keeps to these two rules reaches
 * every rank, wherever it enters, and early. For spanning trees the sets are Kruskal's: the parts that edges up to some
 * cost connect, each paid for with what the next one costs more. */
#include "search.h"

#include "passes.h"

#include <stdlib.h>
#include <string.h>

/* A hop in a leftist heap. */
struct cone {
	int left, right, height;
	int64_t cost, add;	/* add: owed to the whole subtree below */
};

struct arbor {
	int heap;		/* of entering hops; -1: empty */
	int seen;		/* start of the walk that passed here; -1 */
	int up, size;		/* union-find */
};

/* An edge of a spanning tree. */
struct rung {
	int64_t cost;
	int v, w;
};

/* A rank (0 .. n_ranks-1) or a set that was contracted, in the laminar family of sets. */
struct level {
	int parent;		/* the least set around it that was paid for; -1: none */
	int depth;		/* sets around it */
	int64_t paid;
	bool entered;		/* by the search for a shallow tree */
};

Status
search_new(Ctx *ctx, const Topology *topo, Search *out)
{
	int n = topo->n_ranks;
	Search s = { .topo = topo, .switched = topo->n_vertices > n };
	s.n_hops = s.switched ? n * (n - 1) : topo->n_links;
	TRY(TEMP(ctx, s.hop, s.n_hops));
	if (s.switched) {
		struct hop *hop = s.hop;
		for (int src = 0; src < n; src++)
			for (int dst = 0; dst < n; dst++)
				if (src != dst)
					*hop++ = (struct hop){ .src = src, .dst = dst };
		TRY(search_hubs(ctx, &s));
		TRY(TEMP(ctx, s.row, (size_t)n * (size_t)n));
	} else {
		for (int l = 0; l < topo->n_links; l++)
			s.hop[l] = (struct hop){ .src = topo->link[l].from, .dst = topo->link[l].to, .link = l };
	}
	TRY(TEMP(ctx, s.cone, s.switched ? 0 : s.n_hops));
	TRY(TEMP(ctx, s.arbor, n));
	TRY(TEMP(ctx, s.rung, n));
	TRY(TEMP(ctx, s.pair, 3 * (size_t)n));
	TRY(TEMP(ctx, s.level, 2 * (size_t)n));
	TRY(TEMP(ctx, s.node, n));
	TRY(TEMP(ctx, s.part, n));
	TRY(TEMP(ctx, s.queue, n));
	TRY(TEMP(ctx, s.reach, 2 * (size_t)n));
	*out = s;
	return OK;
}

/* ---- arborescences ---- */

static void
cone_settle(Search *s, int c)
{
	struct cone *cone = &s->cone[c];
	cone->cost += cone->add;
	if (cone->left >= 0)
		s->cone[cone->left].add += cone->add;
	if (cone->right >= 0)
		s->cone[cone->right].add += cone->add;
	cone->add = 0;
}

/* Leftist heaps: the right spine has O(log n) nodes, which bounds the recursion. */
static int
cone_merge(Search *s, int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	cone_settle(s, a);
	cone_settle(s, b);
	if (s->cone[b].cost < s->cone[a].cost || (s->cone[b].cost == s->cone[a].cost && b < a)) {
		int t = a;
		a = b;
		b = t;
	}
	struct cone *top = &s->cone[a];
	top->right = cone_merge(s, top->right, b);
	int left = top->left < 0 ? 0 : s->cone[top->left].height, right = s->cone[top->right].height;
	if (left < right) {
		int t = top->left;
		top->left = top->right;
		top->right = t;
	}
	top->height = 1 + (left < right ? left : right);
	return a;
}

static int
find(const Search *s, int v)
{
	for (; s->arbor[v].up >= 0; v = s->arbor[v].up) {
		int above = s->arbor[s->arbor[v].up].up;
		if (above >= 0)
			s->arbor[v].up = above;
	}
	return v;
}

static bool
join(Search *s, int v, int w)
{
	v = find(s, v);
	w = find(s, w);
	if (v == w)
		return false;
	if (s->arbor[v].size < s->arbor[w].size) {
		int t = v;
		v = w;
		w = t;
	}
	s->arbor[w].up = v;
	s->arbor[v].size += s->arbor[w].size;
	return true;
}

/* A hop's ends as the search sees them: with `into`, hops are walked against. */
static int
tail_of(const Search *s, int h, bool into)
{
	return into ? s->hop[h].dst : s->hop[h].src;
}

static int
head_of(const Search *s, int h, bool into)
{
	return into ? s->hop[h].src : s->hop[h].dst;
}

/* ---- shallow trees ---- */

/* Sets that were not paid for go, and each level knows its depth. Parents have higher numbers than children. */
static void
settle_levels(Search *s, int n_levels)
{
	struct level *level = s->level;
	for (int i = n_levels - 1; i >= 0; i--) {
		int up = level[i].parent;
		if (up >= 0 && level[up].paid == 0)
			level[i].parent = up = level[up].parent;
		level[i].depth = up < 0 ? 0 : level[up].depth + 1;
		level[i].entered = false;
	}
}

/* May the tree grow from u to w by a hop (or an edge) of this cost? It enters the sets around w that u is not in. */
static bool
is_open(const Search *s, int u, int w, int64_t cost)
{
	const struct level *level = s->level;
	int a = w, b = u;
	while (a != b) {
		if (b < 0 || (a >= 0 && level[a].depth >= level[b].depth)) {
			if (level[a].entered || level[a].paid > cost)
				return false;
			cost -= level[a].paid;
			a = level[a].parent;
		} else {
			b = level[b].parent;
		}
	}
	return cost == 0;
}

static void
enter(Search *s, int w)
{
	for (; w >= 0 && !s->level[w].entered; w = s->level[w].parent)
		s->level[w].entered = true;
}

/* in[v]: the hop of each rank but the root, on a tight tree. Returns the ranks reached. */
static int
flatten(Search *s, int root, bool into, int *in)
{
	int head = 0, tail = 0;
	s->queue[tail++] = root;
	enter(s, root);
	while (head < tail) {
		int u = s->queue[head++];
		for (int i = 0, h; (h = search_hop_at(s, u, i, into)) >= 0; i++) {
			int w = into ? s->hop[h].src : s->hop[h].dst;
			if (s->level[w].entered || s->hop[h].cost < 0 || !is_open(s, u, w, s->hop[h].cost))
				continue;
			enter(s, w);
			in[w] = h;
			s->queue[tail++] = w;
		}
	}
	return tail;
}

/* ---- Edmonds ---- */

/* What a set of ranks with all their entering hops in a row of the matrix pays: the cheapest from outside. Returns its tail. */
static int
cheapest_entry(const Search *s, int v, int64_t *cost)
{
	int n = s->topo->n_ranks, best = -1;
	const int64_t *row = s->row + (size_t)v * (size_t)n;
	for (int u = 0; u < n; u++)
		if (s->part[u] != v && row[u] >= 0 && (best < 0 || row[u] < row[best]))
			best = u;
	*cost = best < 0 ? -1 : row[best];
	return best;
}

/* The rows of the cycle walk[from .. to - 1], each less what it paid, become the row of its first; its ranks become one part. */
static void
contract_rows(Search *s, const int *walk, int from, int to)
{
	int n = s->topo->n_ranks, v = walk[from];
	int64_t *row = s->row + (size_t)v * (size_t)n;
	for (int u = 0; u < n; u++)
		row[u] -= row[u] >= 0 ? s->level[s->node[v]].paid : 0;
	for (int i = from + 1; i < to; i++) {
		int w = walk[i];
		const int64_t *other = s->row + (size_t)w * (size_t)n;
		int64_t paid = s->level[s->node[w]].paid;
		for (int u = 0; u < n; u++) {
			if (other[u] >= 0 && (row[u] < 0 || other[u] - paid < row[u]))
				row[u] = other[u] - paid;
			s->part[u] = s->part[u] == w ? v : s->part[u];
		}
	}
}

/* Edmonds in O(n^2), where hops are that many: Tarjan 1977, section 4. */
static int64_t
dense_arborescence(Search *s, int root, bool into, int *in)
{
	int n = s->topo->n_ranks, n_levels = n, *walk = s->pair, *seen = s->pair + n;
	int64_t total = 0;
	for (int v = 0; v < n; v++) {
		s->level[v] = (struct level){ .parent = -1 };
		s->node[v] = s->part[v] = v;
		seen[v] = -1;
		in[v] = -1;
		for (int u = 0; u < n; u++) {
			int tail = into ? v : u, head = into ? u : v;
			s->row[(size_t)v * (size_t)n + (size_t)u] = u == v ? -1 : s->hop[tail * (n - 1) + head - (head > tail)].cost;
		}
	}
	seen[root] = root;
	for (int start = 0; start < n; start++) {
		int v = s->part[start], length = 0;
		while (seen[v] < 0) {
			int64_t cost;
			int tail = cheapest_entry(s, v, &cost);
			if (tail < 0)
				return -1;
			total += cost;
			s->level[s->node[v]].paid = cost;
			walk[length++] = v;
			seen[v] = start;
			v = s->part[tail];
			if (seen[v] != start || v == root)
				continue;
			/* The walk met itself: contract the cycle from v on. */
			int from = length - 1;
			while (walk[from] != v)
				from--;
			for (int i = from; i < length; i++)
				s->level[s->node[walk[i]]].parent = n_levels;
			contract_rows(s, walk, from, length);
			length = from;
			s->node[v] = n_levels;
			s->level[n_levels++] = (struct level){ .parent = -1 };
			seen[v] = -1;
		}
	}
	settle_levels(s, n_levels);
	return flatten(s, root, into, in) == n ? total : -1;
}

int64_t
search_arborescence(Search *s, int root, bool into, int *in)
{
	if (s->switched)
		return dense_arborescence(s, root, into, in);
	int n = s->topo->n_ranks, n_levels = n, *walk = s->pair;
	int64_t total = 0;
	for (int v = 0; v < n; v++) {
		s->arbor[v] = (struct arbor){ .heap = -1, .seen = -1, .up = -1, .size = 1 };
		s->level[v] = (struct level){ .parent = -1 };
		s->node[v] = v;
		in[v] = -1;
	}
	s->arbor[root].seen = root;
	for (int h = 0; h < s->n_hops; h++) {
		s->cone[h] = (struct cone){ -1, -1, 1, s->hop[h].cost, 0 };
		int head = head_of(s, h, into);
		if (s->hop[h].cost >= 0 && head != root)
			s->arbor[head].heap = cone_merge(s, s->arbor[head].heap, h);
	}
	for (int start = 0; start < n; start++) {
		int v = start, length = 0;
		while (s->arbor[v = find(s, v)].seen < 0) {
			int h;
			do {	/* hops from inside a contracted cycle lead nowhere */
				h = s->arbor[v].heap;
				if (h < 0)
					return -1;
				cone_settle(s, h);
				s->arbor[v].heap = cone_merge(s, s->cone[h].left, s->cone[h].right);
			} while (find(s, tail_of(s, h, into)) == v);
			int64_t cost = s->cone[h].cost;
			/* What v pays from now on is what another hop costs more than this one. */
			if (s->arbor[v].heap >= 0)
				s->cone[s->arbor[v].heap].add -= cost;
			total += cost;
			s->level[s->node[v]].paid = cost;
			walk[length++] = v;
			s->arbor[v].seen = start;
			int tail = find(s, tail_of(s, h, into));
			if (s->arbor[tail].seen == start) {
				/* The walk met itself: contract the cycle from tail to v. */
				int merged = -1, w;
				do {
					w = walk[--length];
					merged = cone_merge(s, merged, s->arbor[w].heap);
					s->level[s->node[w]].parent = n_levels;
				} while (join(s, tail, w));
				tail = find(s, tail);
				s->arbor[tail].heap = merged;
				s->arbor[tail].seen = -1;
				s->node[tail] = n_levels;
				s->level[n_levels++] = (struct level){ .parent = -1 };
			}
			v = tail;
		}
	}
	settle_levels(s, n_levels);
	return flatten(s, root, into, in) == n ? total : -1;
}

/* ---- spanning trees ---- */

/* Prim. The edges in s->rung, n_ranks - 1 of them; false: the ranks are not connected both ways. */
static bool
spanning_rungs(Search *s, int64_t *total)
{
	int n = s->topo->n_ranks;
	int *in_tree = s->pair, *out_hop = s->pair + n, *from = s->pair + 2 * n;
	int64_t *cost = s->reach;
	*total = 0;
	for (int v = 0; v < n; v++) {
		in_tree[v] = 0;
		cost[v] = -1;
	}
	for (int v = 0, n_rungs = 0;;) {
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
		if (n_rungs == n - 1)
			return true;
		v = -1;
		for (int w = 0; w < n; w++)
			if (!in_tree[w] && cost[w] >= 0 && (v < 0 || cost[w] < cost[v]))
				v = w;
		if (v < 0)
			return false;
		*total += cost[v];
		s->rung[n_rungs++] = (struct rung){ cost[v], from[v], v };
	}
}

static int
by_cost(const void *a, const void *b)
{
	const struct rung *p = a, *q = b;
	if (p->cost != q->cost)
		return p->cost < q->cost ? -1 : 1;
	return p->v != q->v ? (p->v > q->v) - (p->v < q->v) : (p->w > q->w) - (p->w < q->w);
}

/* Kruskal's parts: a part that edges of one cost make is paid for when the next cost joins it to others. */
static int
spanning_levels(Search *s)
{
	int n = s->topo->n_ranks, n_levels = n;
	int64_t *reached = s->reach;	/* cost of the edges that made a level */
	for (int v = 0; v < n; v++) {
		s->arbor[v] = (struct arbor){ .up = -1, .size = 1 };
		s->level[v] = (struct level){ .parent = -1 };
		s->node[v] = v;
		reached[v] = 0;
	}
	qsort(s->rung, (size_t)(n - 1), sizeof *s->rung, by_cost);
	for (int i = 0; i < n - 1; i++) {
		const struct rung *rung = &s->rung[i];
		int v = find(s, rung->v), w = find(s, rung->w);
		int a = s->node[v], b = s->node[w];
		s->level[a].parent = s->level[b].parent = n_levels;
		s->level[a].paid = rung->cost - reached[v];
		s->level[b].paid = rung->cost - reached[w];
		join(s, v, w);
		s->node[find(s, v)] = n_levels;
		reached[find(s, v)] = rung->cost;
		s->level[n_levels++] = (struct level){ .parent = -1 };
	}
	return n_levels;
}

/* As flatten, over edges. Returns the depth. */
static int
flatten_edges(Search *s, int root, int n_levels, int *there, int *back)
{
	int head = 0, tail = 0, *depth = s->pair;
	for (int i = 0; i < n_levels; i++)
		s->level[i].entered = false;
	s->queue[tail++] = root;
	depth[root] = 0;
	enter(s, root);
	while (head < tail) {
		int u = s->queue[head++];
		for (int i = 0, out, in; (out = search_hop_at(s, u, i, false)) >= 0; i++) {
			int w = s->hop[out].dst;
			if (s->level[w].entered || s->hop[out].cost < 0 || (in = search_cheapest_hop(s, w, u)) < 0
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
	enum { FEW = 64 };	/* ranks, of which each is tried as a root; where there are more, the first will do */
	int n = s->topo->n_ranks, n_levels, best = 0, least = -1;
	int64_t total;
	if (!spanning_rungs(s, &total))
		return -1;
	n_levels = spanning_levels(s);
	settle_levels(s, n_levels);
	for (int root = 0; n <= FEW && root < n; root++) {
		int depth = flatten_edges(s, root, n_levels, there, back);
		if (least < 0 || depth < least) {
			least = depth;
			best = root;
		}
	}
	flatten_edges(s, best, n_levels, there, back);
	return total;
}
