/* Routes: Dijkstra from each rank over the vertices that are no ranks, since a route passes through no third GPU.
 * Arborescences: every rank but the root takes its cheapest entering hop; a cycle of such hops is contracted to one
 * vertex whose entering hops cost what they save less (Edmonds), and opened again in reverse order at the end. The
 * entering hops of a (contracted) vertex lie in a leftist heap with lazy additions, so a contraction is a merge. */
#include "search.h"

#include "passes.h"

#include <string.h>

/* A hop in a leftist heap. */
struct cone {
	int left, right, height;
	int64_t cost, add;	/* add: owed to the whole subtree below */
};

struct arbor {
	int heap;		/* of entering hops; -1: empty */
	int seen;		/* start of the walk that passed here; -1 */
	int up, size;		/* union-find without path compression, so that joins can be undone */
};

struct contraction {
	int vertex;		/* representative of the contracted cycle */
	int joins;		/* length of `joined` before it */
	int first, n;		/* its hops in `chosen` */
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
		TRY(TEMP(ctx, s.distance, n_vertices));
		TRY(TEMP(ctx, s.last, (size_t)n * (size_t)n_vertices));
		TRY(TEMP(ctx, s.heap, n_vertices));
		TRY(TEMP(ctx, s.place, n_vertices));
	} else {
		for (int l = 0; l < topo->n_links; l++)
			s.hop[l] = (struct hop){ .src = topo->link[l].from, .dst = topo->link[l].to, .link = l };
	}
	TRY(TEMP(ctx, s.cone, s.n_hops));
	TRY(TEMP(ctx, s.arbor, n));
	TRY(TEMP(ctx, s.contraction, n));
	TRY(TEMP(ctx, s.chosen, 2 * (size_t)n));
	TRY(TEMP(ctx, s.joined, n));
	TRY(TEMP(ctx, s.pair, 3 * (size_t)n));
	*out = s;
	return OK;
}

/* ---- routes ---- */

/* Binary heap of vertices by distance, then by number. */
static bool
nearer(const Search *s, int v, int w)
{
	return s->distance[v] != s->distance[w] ? s->distance[v] < s->distance[w] : v < w;
}

static void
heap_set(Search *s, int at, int v)
{
	s->heap[at] = v;
	s->place[v] = at;
}

static void
heap_rise(Search *s, int at)
{
	int v = s->heap[at];
	for (; at > 0 && nearer(s, v, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap_set(s, at, s->heap[(at - 1) / 2]);
	heap_set(s, at, v);
}

static int
heap_take(Search *s, int *size)
{
	int top = s->heap[0], v = s->heap[--*size], at = 0;
	for (int child; (child = 2 * at + 1) < *size; at = child) {
		if (child + 1 < *size && nearer(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (!nearer(s, s->heap[child], v))
			break;
		heap_set(s, at, s->heap[child]);
	}
	heap_set(s, at, v);
	return top;
}

static void
routes_from(Search *s, int source, const int64_t *price)
{
	const Topology *topo = s->topo;
	int *last = s->last + (size_t)source * (size_t)topo->n_vertices;
	int size = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		s->distance[v] = INT64_MAX;
		s->place[v] = -1;
		last[v] = -1;
	}
	s->distance[source] = 0;
	heap_set(s, size++, source);
	while (size > 0) {
		int v = heap_take(s, &size);
		if (v < topo->n_ranks && v != source)
			continue;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], w = topo->link[l].to;
			if (w == source || s->distance[v] + price[l] >= s->distance[w])
				continue;
			s->distance[w] = s->distance[v] + price[l];
			last[w] = l;
			if (s->place[w] < 0)
				heap_set(s, size++, w);
			heap_rise(s, s->place[w]);
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
	for (int h = 0; h < s->n_hops; h++) {
		struct hop *hop = &s->hop[h];
		if (h % (topo->n_ranks - 1) == 0)
			routes_from(s, hop->src, price);
		hop->cost = s->distance[hop->dst] == INT64_MAX ? -1 : s->distance[hop->dst];
		hop->link = s->last[(size_t)hop->src * (size_t)topo->n_vertices + (size_t)hop->dst];
	}
}

int
search_route(const Search *s, int h, int link[LIMIT_ROUTE_LINKS])
{
	const struct hop *hop = &s->hop[h];
	int n = 0;
	for (int l = hop->link;; l = s->last[(size_t)hop->src * (size_t)s->topo->n_vertices + (size_t)s->topo->link[l].from]) {
		if (n == LIMIT_ROUTE_LINKS)
			return -1;
		link[n++] = l;
		if (s->topo->link[l].from == hop->src)
			break;
	}
	for (int i = 0; i < n / 2; i++) {
		int l = link[i];
		link[i] = link[n - 1 - i];
		link[n - 1 - i] = l;
	}
	return n;
}

/* ---- paths ---- */

/* Hops that leave a rank: hop number first + i, or, without switches, link out[first + i]. */
static int
hop_leaving(const Search *s, int rank, int i)
{
	const Topology *topo = s->topo;
	if (s->switched)
		return i < topo->n_ranks - 1 ? rank * (topo->n_ranks - 1) + i : -1;
	return topo->first_out[rank] + i < topo->first_out[rank + 1] ? topo->out[topo->first_out[rank] + i] : -1;
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
		for (int i = 0, h; (h = hop_leaving(s, v, i)) >= 0; i++) {
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
	while (s->arbor[v].up >= 0)
		v = s->arbor[v].up;
	return v;
}

static bool
join(Search *s, int v, int w, int *joins)
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
	s->joined[(*joins)++] = w;
	return true;
}

static void
undo_joins(Search *s, int *joins, int down_to)
{
	while (*joins > down_to) {
		struct arbor *w = &s->arbor[s->joined[--*joins]];
		s->arbor[w->up].size -= w->size;
		w->up = -1;
	}
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

int64_t
search_arborescence(Search *s, int root, bool into, int *in)
{
	int n = s->topo->n_ranks, joins = 0, n_contractions = 0, kept = 0;
	int64_t total = 0;
	int *walk = s->pair, *walk_hop = s->pair + n;
	for (int v = 0; v < n; v++) {
		s->arbor[v] = (struct arbor){ .heap = -1, .seen = -1, .up = -1, .size = 1 };
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
			walk[length] = v;
			walk_hop[length++] = h;
			s->arbor[v].seen = start;
			int tail = find(s, tail_of(s, h, into));
			if (s->arbor[tail].seen == start) {
				/* The walk met itself: contract the cycle from tail to v. */
				int before = joins, end = length, merged = -1, w;
				do {
					w = walk[--length];
					merged = cone_merge(s, merged, s->arbor[w].heap);
				} while (join(s, tail, w, &joins));
				tail = find(s, tail);
				s->arbor[tail].heap = merged;
				s->arbor[tail].seen = -1;
				s->contraction[n_contractions++] = (struct contraction){ tail, before, kept, end - length };
				for (int i = length; i < end; i++)
					s->chosen[kept++] = walk_hop[i];
			}
			v = tail;
		}
		for (int i = 0; i < length; i++)
			in[find(s, head_of(s, walk_hop[i], into))] = walk_hop[i];
	}
	while (n_contractions > 0) {
		struct contraction *c = &s->contraction[--n_contractions];
		int entering = in[c->vertex];
		undo_joins(s, &joins, c->joins);
		for (int i = c->first; i < c->first + c->n; i++)
			in[find(s, head_of(s, s->chosen[i], into))] = s->chosen[i];
		in[find(s, head_of(s, entering, into))] = entering;
	}
	return total;
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

int64_t
search_spanning_tree(Search *s, int *there, int *back)
{
	int n = s->topo->n_ranks, n_edges = 0;
	int *in_tree = s->pair, *out_hop = s->pair + n, *back_hop = s->pair + 2 * n;
	int64_t total = 0;
	for (int v = 0; v < n; v++) {
		in_tree[v] = 0;
		out_hop[v] = -1;
	}
	for (int v = 0;;) {
		in_tree[v] = 1;
		for (int w = 0; w < n; w++) {
			int out, in;
			if (in_tree[w] || (out = cheapest_hop(s, v, w)) < 0 || (in = cheapest_hop(s, w, v)) < 0)
				continue;
			int64_t cost = s->hop[out].cost + s->hop[in].cost;
			if (out_hop[w] < 0 || cost < s->hop[out_hop[w]].cost + s->hop[back_hop[w]].cost) {
				out_hop[w] = out;
				back_hop[w] = in;
			}
		}
		if (n_edges == n - 1)
			return total;
		int64_t least = -1;
		for (int w = 0; w < n; w++) {
			if (in_tree[w] || out_hop[w] < 0)
				continue;
			int64_t cost = s->hop[out_hop[w]].cost + s->hop[back_hop[w]].cost;
			if (least < 0 || cost < least) {
				least = cost;
				v = w;
			}
		}
		if (least < 0)
			return -1;
		total += least;
		there[n_edges] = out_hop[v];
		back[n_edges++] = back_hop[v];
	}
}
