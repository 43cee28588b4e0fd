/* Routes: Dijkstra from each switch over switches, since a route passes through no third GPU; a rank's route is its link to
 * another, or its link to a switch and that one's route. So a thousand ranks behind a hundred switches cost a hundred searches.
 * Arborescences: every rank but the root takes its cheapest entering hop; a cycle of such hops is contracted to one
 * vertex whose entering hops cost what they save less (Edmonds), and opened again in reverse order at the end. The
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
	int n = topo->n_ranks, n_vertices = topo->n_vertices;
	Search s = { .topo = topo, .switched = n_vertices > n };
	s.n_hops = s.switched ? n * (n - 1) : topo->n_links;
	TRY(TEMP(ctx, s.hop, s.n_hops));
	if (s.switched) {
		struct hop *hop = s.hop;
		for (int src = 0; src < n; src++)
			for (int dst = 0; dst < n; dst++)
				if (src != dst)
					*hop++ = (struct hop){ .src = src, .dst = dst };
		size_t n_switches = (size_t)(n_vertices - n);
		TRY(TEMP(ctx, s.distance, n_switches * (size_t)n_vertices));
		TRY(TEMP(ctx, s.last, n_switches * (size_t)n_vertices));
		TRY(TEMP(ctx, s.heap, n_vertices));
		TRY(TEMP(ctx, s.place, n_vertices));
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

/* ---- routes ---- */

/* Binary heap of vertices by distance, then by number. */
static bool
nearer(const int64_t *distance, int v, int w)
{
	return distance[v] != distance[w] ? distance[v] < distance[w] : v < w;
}

static void
heap_set(Search *s, int at, int v)
{
	s->heap[at] = v;
	s->place[v] = at;
}

static void
heap_rise(Search *s, const int64_t *distance, int at)
{
	int v = s->heap[at];
	for (; at > 0 && nearer(distance, v, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap_set(s, at, s->heap[(at - 1) / 2]);
	heap_set(s, at, v);
}

static int
heap_take(Search *s, const int64_t *distance, int *size)
{
	int top = s->heap[0], v = s->heap[--*size], at = 0;
	for (int child; (child = 2 * at + 1) < *size; at = child) {
		if (child + 1 < *size && nearer(distance, s->heap[child + 1], s->heap[child]))
			child++;
		if (!nearer(distance, s->heap[child], v))
			break;
		heap_set(s, at, s->heap[child]);
	}
	heap_set(s, at, v);
	return top;
}

/* Ranks are reached, and left alone. */
static void
routes_from(Search *s, int source, const int64_t *price)
{
	const Topology *topo = s->topo;
	size_t row = (size_t)(source - topo->n_ranks) * (size_t)topo->n_vertices;
	int64_t *distance = s->distance + row;
	int *last = s->last + row, size = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		distance[v] = INT64_MAX;
		s->place[v] = -1;
		last[v] = -1;
	}
	distance[source] = 0;
	heap_set(s, size++, source);
	while (size > 0) {
		int v = heap_take(s, distance, &size);
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], w = topo->link[l].to;
			if (w == source || distance[v] + price[l] >= distance[w])
				continue;
			distance[w] = distance[v] + price[l];
			last[w] = l;
			if (w < topo->n_ranks)
				continue;
			if (s->place[w] < 0)
				heap_set(s, size++, w);
			heap_rise(s, distance, s->place[w]);
		}
	}
}

/* Of a rank to all others: by each of its links. hop->link is that link. */
static void
hops_from(Search *s, int source, const int64_t *price)
{
	const Topology *topo = s->topo;
	struct hop *hop = s->hop + (size_t)source * (size_t)(topo->n_ranks - 1);
	for (int i = 0; i < topo->n_ranks - 1; i++)
		hop[i].cost = -1;
	for (int i = topo->first_out[source]; i < topo->first_out[source + 1]; i++) {
		int l = topo->out[i], w = topo->link[l].to;
		if (w < topo->n_ranks) {
			struct hop *direct = &hop[w - (w > source)];
			if (direct->cost < 0 || price[l] < direct->cost) {
				direct->cost = price[l];
				direct->link = l;
			}
			continue;
		}
		const int64_t *distance = s->distance + (size_t)(w - topo->n_ranks) * (size_t)topo->n_vertices;
		for (int k = 0; k < topo->n_ranks - 1; k++) {
			int64_t beyond = distance[hop[k].dst];
			if (beyond == INT64_MAX || (hop[k].cost >= 0 && price[l] + beyond >= hop[k].cost))
				continue;
			hop[k].cost = price[l] + beyond;
			hop[k].link = l;
		}
	}
}

void
search_price(Search *s, const int64_t *price)
{
	const Topology *topo = s->topo;
	if (!s->switched) {
		for (int h = 0; h < s->n_hops; h++)
			s->hop[h].cost = price[s->hop[h].link];
		return;
	}
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		routes_from(s, v, price);
	for (int r = 0; r < topo->n_ranks; r++)
		hops_from(s, r, price);
}

int
search_route(const Search *s, int h, int link[LIMIT_ROUTE_LINKS])
{
	const struct hop *hop = &s->hop[h];
	const Topology *topo = s->topo;
	int first = topo->link[hop->link].to, n = 0;
	link[n++] = hop->link;
	if (first < topo->n_ranks)
		return n;
	const int *last = s->last + (size_t)(first - topo->n_ranks) * (size_t)topo->n_vertices;
	for (int v = hop->dst; v != first; v = topo->link[last[v]].from) {
		if (n == LIMIT_ROUTE_LINKS)
			return -1;
		link[n++] = last[v];
	}
	for (int i = 1, j = n - 1; i < j; i++, j--) {
		int l = link[i];
		link[i] = link[j];
		link[j] = l;
	}
	return n;
}

/* ---- paths ---- */

/* The i-th hop that leaves (enters) a rank, in order of the other end if there are switches; -1: no more. */
static int
hop_at(const Search *s, int rank, int i, bool entering)
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

void
search_paths(Search *s, int from, int64_t *distance, int *hop)
{
	int n = s->topo->n_ranks, *done = s->pair;
	for (int v = 0; v < n; v++) {
		distance[v] = v == from ? 0 : -1;
		hop[v] = -1;
		done[v] = 0;
	}
	for (int v = from; v >= 0;) {
		done[v] = 1;
		for (int i = 0, h; (h = hop_at(s, v, i, false)) >= 0; i++) {
			int w = s->hop[h].dst;
			if (s->hop[h].cost < 0 || done[w] || (distance[w] >= 0 && distance[v] + s->hop[h].cost >= distance[w]))
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
		for (int i = 0, h; (h = hop_at(s, u, i, into)) >= 0; i++) {
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

/* Cheapest hop from src to dst, -1: none. Without switches a pair may have none or several. */
static int
cheapest_hop(const Search *s, int src, int dst)
{
	const Topology *topo = s->topo;
	int best = -1;
	if (s->switched) {
		int h = src * (topo->n_ranks - 1) + dst - (dst > src);
		return s->hop[h].cost >= 0 ? h : -1;
	}
	for (int i = topo->first_out[src]; i < topo->first_out[src + 1]; i++) {
		int l = topo->out[i];
		if (topo->link[l].to == dst && (best < 0 || s->hop[l].cost < s->hop[best].cost))
			best = l;
	}
	return best;
}

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
		for (int i = 0, out; (out = hop_at(s, v, i, false)) >= 0; i++) {
			int w = s->hop[out].dst, back;
			if (in_tree[w] || s->hop[out].cost < 0 || (back = cheapest_hop(s, w, v)) < 0)
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
		for (int i = 0, out, in; (out = hop_at(s, u, i, false)) >= 0; i++) {
			int w = s->hop[out].dst;
			if (s->level[w].entered || s->hop[out].cost < 0 || (in = cheapest_hop(s, w, u)) < 0
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

/* ---- trees of few hops ---- */

int
search_hops(Search *s, int root, bool into, int *hops)
{
	int n = s->topo->n_ranks, head = 0, tail = 0;
	for (int v = 0; v < n; v++)
		hops[v] = -1;
	hops[root] = 0;
	s->queue[tail++] = root;
	while (head < tail) {
		int u = s->queue[head++];
		for (int i = 0, h; (h = hop_at(s, u, i, into)) >= 0; i++) {
			int w = into ? s->hop[h].src : s->hop[h].dst;
			if (s->hop[h].cost < 0 || hops[w] >= 0)
				continue;
			hops[w] = hops[u] + 1;
			s->queue[tail++] = w;
		}
	}
	return tail < n ? -1 : hops[s->queue[tail - 1]];
}

/* The way back of a hop, -1: none; its cost both ways. */
static int64_t
cost_both(const Search *s, int h, bool both, int *back)
{
	*back = -1;
	if (s->hop[h].cost < 0 || !both)
		return s->hop[h].cost;
	*back = cheapest_hop(s, s->hop[h].dst, s->hop[h].src);
	return *back < 0 ? -1 : s->hop[h].cost + s->hop[*back].cost;
}

/* Prim, but no rank joins below depth `limit`; level: if not NULL, each rank joins one below it in this order of depths. */
static int64_t
grow_limited(Search *s, int root, bool into, int limit, const int *level, int *hop, int *back)
{
	int n = s->topo->n_ranks, *depth = s->pair;
	int64_t *cost = s->reach, total = 0;
	for (int v = 0; v < n; v++) {
		depth[v] = -1;
		cost[v] = -1;
		hop[v] = -1;
		if (back)
			back[v] = -1;
	}
	depth[root] = 0;
	for (int u = root, n_joined = 1;; n_joined++) {
		for (int i = 0, h; depth[u] < limit && (h = hop_at(s, u, i, into)) >= 0; i++) {
			int w = into ? s->hop[h].src : s->hop[h].dst, other;
			int64_t one = cost_both(s, h, back != NULL, &other);
			if (one < 0 || depth[w] >= 0 || (level && level[w] != level[u] + 1) || (cost[w] >= 0 && cost[w] <= one))
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
			bool sooner = u < 0 || (level && level[w] != level[u] ? level[w] < level[u] : cost[w] < cost[u]);
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
search_limited(Search *s, int root, bool into, int limit, int *hop, int *back)
{
	int *level = s->node, hops = search_hops(s, root, into, level);
	if (hops < 0 || hops > limit)
		return -1;
	int64_t flat = grow_limited(s, root, into, limit, level, hop, back);
	int64_t cheap = grow_limited(s, root, into, limit, NULL, hop, back);
	return cheap >= 0 && (cheap <= flat || flat < 0) ? cheap : grow_limited(s, root, into, limit, level, hop, back);
}

int64_t
search_limited_path(Search *s, int from, int to, int limit, int64_t *layer, int *hop)
{
	int n = s->topo->n_ranks, at = to;
	/* layer[k * n + v]: the cheapest way to v of exactly k hops. */
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
	/* Of the shortest of the cheapest ways no rank comes twice: without the round trip it would be shorter. */
	for (int k = best; k > 0; k--) {
		const int64_t *before = layer + (size_t)(k - 1) * (size_t)n, *now = before + n;
		for (int i = 0, h; (h = hop_at(s, at, i, true)) >= 0; i++) {
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
