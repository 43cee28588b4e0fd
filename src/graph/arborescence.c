/* Arborescences: every rank but the root takes its cheapest entering hop; a cycle of such hops is contracted to one
 * vertex, and the costs of its entering hops are reduced by those that they replace (Edmonds). The entering hops of a
 * (contracted) vertex lie in a leftist heap with lazy additions, so a contraction is a merge; behind switches, where
 * all pairs of ranks have hops, in a row of a matrix. Of all cheapest arborescences a shallow one is built at the end
 * (laminar.h). */
#include "graph/laminar.h"
#include "graph/shortest.h"

/* What both ways to contract need. */
static Status
new_sets(Ctx *ctx, int n, Search *s)
{
	TRY(TEMP(ctx, s->triple, 3 * (size_t)n));
	TRY(TEMP(ctx, s->set, 2 * (size_t)n));
	TRY(TEMP(ctx, s->set_of, n));
	return TEMP(ctx, s->part, n);
}

Status
search_rows_new(Ctx *ctx, const Topology *topo, Search *out)
{
	Search s = { .topo = topo };
	TRY(topo_check_pairs(ctx, topo));
	TRY(TEMP(ctx, s.row, (size_t)topo->n_ranks * (size_t)topo->n_ranks));
	TRY(new_sets(ctx, topo->n_ranks, &s));
	*out = s;
	return OK;
}

/* All pairs of ranks. sparse: few of the hops will be written; else all of them, before any is read. */
static Status
new_pairs(Ctx *ctx, const Topology *topo, bool sparse, Search *out)
{
	Search s = { .topo = topo, .switched = true, .n_hops = topo->n_ranks * (topo->n_ranks - 1) };
	TRY(topo_check_pairs(ctx, topo));
	if (sparse)
		TRY(TEMP(ctx, s.hop, s.n_hops));
	else if (!(s.hop = arena_raw(&ctx->scratch, (size_t)s.n_hops, sizeof *s.hop)))
		return fail_memory(ctx);
	TRY(search_hubs(ctx, &s));
	*out = s;
	return OK;
}

Status
search_new_lazy(Ctx *ctx, const Topology *topo, Search *out)
{
	return topo->n_vertices > topo->n_ranks ? new_pairs(ctx, topo, true, out) : search_new(ctx, topo, out);
}

Status
search_new(Ctx *ctx, const Topology *topo, Search *out)
{
	int n = topo->n_ranks;
	Search s = { .topo = topo, .n_hops = topo->n_links };
	if (topo->n_vertices > n) {
		TRY(new_pairs(ctx, topo, false, &s));
		struct hop *hop = s.hop;
		for (int src = 0; src < n; src++)
			for (int dst = 0; dst < n; dst++)
				if (src != dst)
					*hop++ = (struct hop){ .src = src, .dst = dst };
		TRY(TEMP(ctx, s.row, (size_t)n * (size_t)n));
	} else {
		TRY(TEMP_EACH(ctx, s.n_hops, s.hop, s.price));
		TRY(TEMP(ctx, s.room, PATHS_ROOM * (size_t)n));
		for (int l = 0; l < topo->n_links; l++)
			s.hop[l] = (struct hop){ .src = topo->link[l].from, .dst = topo->link[l].to, .link = l };
	}
	TRY(TEMP(ctx, s.heap_hop, s.switched ? 0 : s.n_hops));
	TRY(TEMP_EACH(ctx, n, s.component, s.tree_edge));
	TRY(new_sets(ctx, n, &s));
	TRY(TEMP(ctx, s.queue, n));
	TRY(TEMP(ctx, s.cost, 2 * (size_t)n));
	*out = s;
	return OK;
}

/* ---- leftist heaps ---- */

static void
heap_settle(Search *s, int c)
{
	struct heap_hop *cone = &s->heap_hop[c];
	cone->cost += cone->add;
	if (cone->left >= 0)
		s->heap_hop[cone->left].add += cone->add;
	if (cone->right >= 0)
		s->heap_hop[cone->right].add += cone->add;
	cone->add = 0;
}

/* Leftist heaps: the right spine has O(log n) nodes, which bounds the recursion. */
static int
heap_merge(Search *s, int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	heap_settle(s, a);
	heap_settle(s, b);
	if (s->heap_hop[b].cost < s->heap_hop[a].cost || (s->heap_hop[b].cost == s->heap_hop[a].cost && b < a)) {
		int t = a;
		a = b;
		b = t;
	}
	struct heap_hop *top = &s->heap_hop[a];
	top->right = heap_merge(s, top->right, b);
	int left = top->left < 0 ? 0 : s->heap_hop[top->left].height, right = s->heap_hop[top->right].height;
	if (left < right) {
		int t = top->left;
		top->left = top->right;
		top->right = t;
	}
	top->height = 1 + (left < right ? left : right);
	return a;
}

/* ---- shallow trees ---- */

/* The ends of a hop in the direction of the search: with `into`, hops are reversed. */
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
			if (s->set[w].entered || s->hop[h].cost < 0 || !is_open(s, u, w, s->hop[h].cost))
				continue;
			enter(s, w);
			in[w] = h;
			s->queue[tail++] = w;
		}
	}
	return tail;
}

/* ---- dense: all pairs of ranks ---- */

/* What a set of ranks with all their entering hops in a row of the matrix pays: the cheapest from outside. Returns
 * its tail. */
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

/* The rows of the cycle walk[from .. to - 1], each less what it paid, become the row of its first; its ranks become
 * one part. */
static void
contract_rows(Search *s, const int *walk, int from, int to)
{
	int n = s->topo->n_ranks, v = walk[from];
	int64_t *row = s->row + (size_t)v * (size_t)n;
	for (int u = 0; u < n; u++)
		row[u] -= row[u] >= 0 ? s->set[s->set_of[v]].paid : 0;
	for (int i = from + 1; i < to; i++) {
		int w = walk[i];
		const int64_t *other = s->row + (size_t)w * (size_t)n;
		int64_t paid = s->set[s->set_of[w]].paid;
		for (int u = 0; u < n; u++) {
			if (other[u] >= 0 && (row[u] < 0 || other[u] - paid < row[u]))
				row[u] = other[u] - paid;
			s->part[u] = s->part[u] == w ? v : s->part[u];
		}
	}
}

/* Edmonds in O(n^2), where hops are that many: Tarjan 1977, section 4. The rows of the matrix are used up. */
static int64_t
dense_total(Search *s, int root, int *n_sets_out)
{
	int n = s->topo->n_ranks, n_sets = n, *walk = s->triple, *seen = s->triple + n;
	int64_t total = 0;
	for (int v = 0; v < n; v++) {
		s->set[v] = (struct laminar_set){ .parent = -1 };
		s->set_of[v] = s->part[v] = v;
		seen[v] = -1;
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
			s->set[s->set_of[v]].paid = cost;
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
				s->set[s->set_of[walk[i]]].parent = n_sets;
			contract_rows(s, walk, from, length);
			length = from;
			s->set_of[v] = n_sets;
			s->set[n_sets++] = (struct laminar_set){ .parent = -1 };
			seen[v] = -1;
		}
	}
	*n_sets_out = n_sets;
	return total;
}

int64_t
search_rows_cost(Search *s, int root)
{
	int n_sets;
	return dense_total(s, root, &n_sets);
}

static int64_t
dense_arborescence(Search *s, int root, bool into, int *in)
{
	int n = s->topo->n_ranks, n_sets;
	for (int v = 0; v < n; v++) {
		in[v] = -1;
		for (int u = 0; u < n; u++) {
			int tail = into ? v : u, head = into ? u : v;
			s->row[(size_t)v * (size_t)n + (size_t)u] = u == v ? -1
			    : s->hop[tail * (n - 1) + head - (head > tail)].cost;
		}
	}
	int64_t total = dense_total(s, root, &n_sets);
	if (total < 0)
		return -1;
	settle_sets(s, n_sets);
	return flatten(s, root, into, in) == n ? total : -1;
}

/* ---- sparse: hops are links ---- */

static int64_t
sparse_total(Search *s, int root, bool into, int *n_sets_out)
{
	int n = s->topo->n_ranks, n_sets = n, *walk = s->triple;
	int64_t total = 0;
	for (int v = 0; v < n; v++) {
		s->component[v] = (struct component){ .heap = -1, .seen = -1, .up = -1, .size = 1 };
		s->set[v] = (struct laminar_set){ .parent = -1 };
		s->set_of[v] = v;
	}
	s->component[root].seen = root;
	for (int h = 0; h < s->n_hops; h++) {
		s->heap_hop[h] = (struct heap_hop){ -1, -1, 1, s->hop[h].cost, 0 };
		int head = head_of(s, h, into);
		if (s->hop[h].cost >= 0 && head != root)
			s->component[head].heap = heap_merge(s, s->component[head].heap, h);
	}
	for (int start = 0; start < n; start++) {
		int v = start, length = 0;
		while (s->component[v = find(s, v)].seen < 0) {
			int h;
			do {	/* hops from inside a contracted cycle lead nowhere */
				h = s->component[v].heap;
				if (h < 0)
					return -1;
				heap_settle(s, h);
				s->component[v].heap = heap_merge(s, s->heap_hop[h].left, s->heap_hop[h].right);
			} while (find(s, tail_of(s, h, into)) == v);
			int64_t cost = s->heap_hop[h].cost;
			/* What v pays from now on is what another hop costs more than this one. */
			if (s->component[v].heap >= 0)
				s->heap_hop[s->component[v].heap].add -= cost;
			total += cost;
			s->set[s->set_of[v]].paid = cost;
			walk[length++] = v;
			s->component[v].seen = start;
			int tail = find(s, tail_of(s, h, into));
			if (s->component[tail].seen == start) {
				/* The walk met itself: contract the cycle from tail to v. */
				int merged = -1, w;
				do {
					w = walk[--length];
					merged = heap_merge(s, merged, s->component[w].heap);
					s->set[s->set_of[w]].parent = n_sets;
				} while (join(s, tail, w));
				tail = find(s, tail);
				s->component[tail].heap = merged;
				s->component[tail].seen = -1;
				s->set_of[tail] = n_sets;
				s->set[n_sets++] = (struct laminar_set){ .parent = -1 };
			}
			v = tail;
		}
	}
	*n_sets_out = n_sets;
	return total;
}

int64_t
search_links_cost(Search *s, int root, bool into)
{
	int n_sets;
	return sparse_total(s, root, into, &n_sets);
}

int64_t
search_arborescence(Search *s, int root, bool into, int *in)
{
	int n = s->topo->n_ranks, n_sets;
	if (s->switched)
		return dense_arborescence(s, root, into, in);
	for (int v = 0; v < n; v++)
		in[v] = -1;
	int64_t total = sparse_total(s, root, into, &n_sets);
	if (total < 0)
		return -1;
	settle_sets(s, n_sets);
	return flatten(s, root, into, in) == n ? total : -1;
}
