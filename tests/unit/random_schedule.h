/* What the tests of the runtime share: schedules that are random and right by construction. */
#include "schedule/schedule.h"
#include "tap.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 7 };

static uint64_t state;

static uint64_t
random64(void)
{
	uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int
below(int n)
{
	return (int)(random64() % (uint64_t)n);
}

static void *
need(void *p)
{
	if (!p) {
		printf("Bail out! out of memory\n");
		exit(1);
	}
	return p;
}

#define MAKE(ctx, p, n) need((p) = arena_array(&(ctx)->run, (size_t)(n), sizeof *(p)))

/* Every rank linked with every other: link (i, j) has number i * n + j, less the diagonal. */
static int
link_of(int n, int i, int j)
{
	return i * (n - 1) + j - (j > i);
}

static Topology *
complete(Ctx *ctx, int n)
{
	Topology *topo;
	MAKE(ctx, topo, 1);
	topo->name = "complete \"graph\" */ ?\?/";
	topo->digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	topo->n_nodes = 1;
	MAKE(ctx, topo->node, 1);
	topo->node[0] = "node0";
	topo->n_ranks = topo->n_vertices = n;
	MAKE(ctx, topo->vertex, n);
	for (int r = 0; r < n; r++) {
		char id[16];
		snprintf(id, sizeof id, "gpu%d", r);
		topo->vertex[r].id = need(arena_text(&ctx->run, id, strlen(id)));
		topo->vertex[r].kind = VERTEX_GPU;
	}
	topo->n_links = n * (n - 1);
	MAKE(ctx, topo->link, topo->n_links);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (i != j)
				topo->link[link_of(n, i, j)] = (Link){ .from = i,
					.to = j,
					.class = LINK_NVLINK,
					.count = 1,
					.capacity = INT64_C(25000000000),
					.latency = 1000 };
	topo_index(ctx, topo);
	return topo;
}

static Edge
edge(Ctx *ctx, int n, int src, int dst)
{
	int *link;
	MAKE(ctx, link, 1);
	*link = link_of(n, src, dst);
	return (Edge){ .src = src, .dst = dst, .n_links = 1, .link = link };
}

static void
shuffle(int *a, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int j = below(i + 1), t = a[i];
		a[i] = a[j];
		a[j] = t;
	}
}

/* order[0] = root; each later one hangs below an earlier one. */
static void
grow(int n, int root, int *order, int *parent)
{
	int shape = below(3);
	for (int i = 0; i < n; i++)
		order[i] = i;
	order[root] = 0;
	order[0] = root;
	shuffle(order + 1, n - 1);
	for (int i = 1; i < n; i++)
		parent[order[i]] = order[shape == 0 ? i - 1 : shape == 1 ? 0 : below(i)];
	parent[root] = -1;
}

static void
add_down(Ctx *ctx, int n, Tree *tree, const int *order, const int *parent, const bool *wanted)
{
	bool keep[MAX_RANKS] = { false };
	bool prune = below(3) != 0;
	for (int i = n - 1; i > 0; i--) {
		int r = order[i];
		keep[r] = keep[r] || wanted[r] || !prune;
		if (keep[r])
			keep[parent[r]] = true;
	}
	MAKE(ctx, tree->down, n);
	for (int i = 1; i < n; i++)
		if (keep[order[i]])
			tree->down[tree->n_down++] = edge(ctx, n, parent[order[i]], order[i]);
}

static void
add_up(Ctx *ctx, int n, Tree *tree, const int *order, const int *parent)
{
	MAKE(ctx, tree->up, n);
	for (int i = n - 1; i > 0; i--)
		tree->up[tree->n_up++] = edge(ctx, n, order[i], parent[order[i]]);
}

/* A tree that brings what the holder has (or the sum of all) to the wanted ranks. */
static void
make_tree(Ctx *ctx, const Schedule *sched, int holder, const bool *wanted, Tree *tree)
{
	int n = sched->topo->n_ranks, order[MAX_RANKS], parent[MAX_RANKS], any[MAX_RANKS], n_any = 0;
	for (int r = 0; r < n; r++)
		if (wanted[r])
			any[n_any++] = r;
	if (collective_reduces(sched->coll)) {
		tree->root = below(2) ? any[below(n_any)] : below(n);
		grow(n, tree->root, order, parent);
		add_up(ctx, n, tree, order, parent);
		if (below(2))
			grow(n, tree->root, order, parent);
	} else {
		tree->root = below(2) ? holder : below(n);
		if (tree->root != holder) {
			/* Up along a random path, which may pass ranks that are not served. */
			int path[MAX_RANKS], length = 0;
			grow(n, tree->root, order, parent);
			for (int r = holder; r != tree->root; r = parent[r])
				path[length++] = r;
			MAKE(ctx, tree->up, n);
			for (int i = 0; i < length; i++)
				tree->up[tree->n_up++] = edge(
				    ctx, n, path[i], i + 1 < length ? path[i + 1] : tree->root);
		}
		grow(n, tree->root, order, parent);
	}
	if (n_any > 1 || !wanted[tree->root])
		add_down(ctx, n, tree, order, parent, wanted);
}

/* Of each part, or else of the block, cut block b at random places; `to`: only for these ranks. */
static void
add_segments(Ctx *ctx, Schedule *sched, int64_t b, int p, const bool *wanted, bool limited)
{
	static const int parts[] = { 1, 1, 2, 3, 7 };
	int n = sched->topo->n_ranks, den = parts[below(5)];
	int64_t blocks = collective_blocks(sched->coll, n);
	int holder = collective_holder(sched->coll, n, sched->root, b);
	Frac begin = sched->n_parts ? sched->part[p].begin : FRAC_ZERO,
	     end = sched->n_parts ? sched->part[p].end : FRAC_ONE, share;
	frac_sub(end, begin, &share);
	for (int at = 0; at < den;) {
		int length = 1 + below(den - at);
		Segment *s = &sched->segment[sched->n_segments++];
		s->part = p;
		frac_make((Wide)share.num * at, (Wide)share.den * den, &s->offset);
		frac_add(s->offset, begin, &s->offset);
		frac_make(s->offset.num + (Wide)b * s->offset.den, (Wide)blocks * s->offset.den, &s->offset);
		frac_make((Wide)share.num * length, (Wide)blocks * share.den * den, &s->length);
		make_tree(ctx, sched, holder, wanted, &s->tree);
		MAKE(ctx, s->to, n);
		for (int r = 0; r < n && limited; r++)
			if (wanted[r])
				s->to[s->n_to++] = r;
		at += length;
	}
}

/* Up to three, some of which come in at sizes of up to a few KB. */
static void
add_parts(Ctx *ctx, Schedule *sched)
{
	int share[3], all = 0;
	sched->n_parts = 2 + below(2);
	MAKE(ctx, sched->part, sched->n_parts);
	for (int i = 0; i < sched->n_parts; i++)
		all += share[i] = 1 + below(9);
	sched->achieved = (Frac){ INT64_C(1000000000), 1 + below(9) };
	for (int i = 0, at = 0; i < sched->n_parts; i++) {
		sched->part[i] = (Part){ .classes = 1u << i, .setup = below(2) ? below(8000) : 0 };
		frac_make(at, all, &sched->part[i].begin);
		frac_make(at += share[i], all, &sched->part[i].end);
	}
}

__attribute__((unused)) static Schedule *
random_schedule(Ctx *ctx, Collective coll, int n, bool parts)
{
	Schedule *sched;
	int64_t blocks = collective_blocks(coll, n);
	MAKE(ctx, sched, 1);
	*sched = (Schedule){ .generator = "test", .version = "1", .topo = complete(ctx, n), .coll = coll, .root = -1,
		.algorithm = "random */ \"?\?/" };
	if (collective_rooted(coll))
		sched->root = below(n);
	MAKE(ctx, sched->segment, blocks * n * 7 * 3);
	if (parts)
		add_parts(ctx, sched);
	for (int64_t b = 0; b < blocks && n > 1; b++) {
		int needer = collective_needer(coll, n, sched->root, b);
		int holder = collective_holder(coll, n, sched->root, b);
		/* Groups of ranks that have their own trees; a rank's own block may be left out. */
		int groups = needer == EVERY_RANK ? 1 + below(2) * below(n) : 1;
		int group[MAX_RANKS];
		for (int r = 0; r < n; r++)
			group[r] = below(groups);
		if (needer != EVERY_RANK && needer == holder && below(2))
			continue;
		for (int g = 0; g < groups; g++) {
			bool wanted[MAX_RANKS], some = false;
			for (int r = 0; r < n; r++) {
				wanted[r] = needer == EVERY_RANK ? group[r] == g : r == needer;
				some = some || wanted[r];
			}
			for (int p = 0; some && p < (parts ? sched->n_parts : 1); p++)
				add_segments(ctx, sched, b, p, wanted, groups > 1);
		}
	}
	return sched;
}
