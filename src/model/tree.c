/* Trees from sets of edges: rooted, parent-first down and leaf-first up, longest branch first; images, depths,
 * hashes. */
#include "base/hash.h"
#include "model/tree.h"

#include <string.h>

struct arrange {
	int n;			/* ranks */
	int n_edges;
	const Edge *there, *back;
	int *first, *next_of;	/* edges by rank: first[v], then next_of[2e + end] as 2f + end; -1 ends */
	int *order, *parent, *height;	/* ranks in breadth-first order; edge to the parent as 2e + end */
};

static int
end_of(const struct arrange *a, int half)
{
	const Edge *edge = &a->there[half / 2];
	return half % 2 ? edge->dst : edge->src;
}

static Status
arrange_new(Ctx *ctx, int n, const Edge *there, const Edge *back, int n_edges, struct arrange *a)
{
	*a = (struct arrange){ .n = n, .n_edges = n_edges, .there = there, .back = back };
	TRY(TEMP(ctx, a->first, n));
	TRY(TEMP(ctx, a->next_of, 2 * (size_t)n_edges));
	TRY(TEMP_EACH(ctx, n, a->order, a->parent, a->height));
	memset(a->first, -1, (size_t)n * sizeof *a->first);
	for (int half = 2 * n_edges - 1; half >= 0; half--) {
		int v = end_of(a, half);
		a->next_of[half] = a->first[v];
		a->first[v] = half;
	}
	return OK;
}

/* Breadth-first from root: order, parent, and the height of every branch. Returns the last rank reached. */
static int
walk_from(struct arrange *a, int root)
{
	int tail = 0;
	a->order[tail++] = root;
	a->parent[root] = -1;
	for (int head = 0; head < tail; head++) {
		int v = a->order[head];
		a->height[v] = 0;
		for (int half = a->first[v]; half >= 0; half = a->next_of[half]) {
			int w = end_of(a, half ^ 1);
			if (a->parent[v] >= 0 && half == (a->parent[v] ^ 1))
				continue;
			a->parent[w] = half;
			a->order[tail++] = w;
		}
	}
	for (int i = tail - 1; i > 0; i--) {
		int v = a->order[i], up = end_of(a, a->parent[v]);
		if (a->height[v] + 1 > a->height[up])
			a->height[up] = a->height[v] + 1;
	}
	return a->order[tail - 1];
}

/* The middle of a longest path: no other root makes the tree less deep. Of two, the lower rank. */
static int
centre(struct arrange *a)
{
	int far = walk_from(a, walk_from(a, 0)), length = 0;
	for (int v = far; a->parent[v] >= 0; v = end_of(a, a->parent[v]))
		length++;
	int v = far;
	for (int i = 0; i < length / 2; i++)
		v = end_of(a, a->parent[v]);
	if (length % 2) {
		int other = end_of(a, a->parent[v]);
		return v < other ? v : other;
	}
	return v;
}

/* Lists of children for lists of edges: less high branches first, of equal ones the higher rank. place: n + 1. */
static void
list_children(struct arrange *a, int root, int *place)
{
	memset(place, 0, ((size_t)a->n + 1) * sizeof *place);
	for (int v = 0; v < a->n; v++)
		place[a->n - a->height[v]]++;
	for (int h = 0; h < a->n; h++)
		place[h + 1] += place[h];
	for (int v = 0; v < a->n; v++)
		a->order[place[a->n - 1 - a->height[v]]++] = v;
	memset(a->first, -1, (size_t)a->n * sizeof *a->first);
	for (int i = 0; i < a->n; i++) {
		int v = a->order[i];
		if (v == root)
			continue;
		int up = end_of(a, a->parent[v]);
		a->next_of[v] = a->first[up];
		a->first[up] = v;
	}
}

/* Ranks in the order of their edges: a parent before its children, of siblings the one with the higher branch first,
 * then the lower rank. stack: n + 1. */
static void
parent_first(struct arrange *a, int root, int *stack)
{
	int n = 0, depth = 0;
	list_children(a, root, stack);
	stack[depth++] = root;
	while (depth > 0) {
		int v = stack[--depth];
		a->order[n++] = v;
		for (int child = a->first[v]; child >= 0; child = a->next_of[child])
			stack[depth++] = child;
	}
}

Status
tree_arrange(Ctx *ctx, int n_ranks, Collective coll, int root, const Edge *there, const Edge *back, int n_edges,
    Tree *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct arrange a;
	Tree tree = { 0 };
	int *stack;
	TRY(arrange_new(ctx, n_ranks, there, back, n_edges, &a));
	TRY(TEMP(ctx, stack, n_ranks + 1));
	tree.root = coll == ALLREDUCE ? centre(&a) : root;
	walk_from(&a, tree.root);
	parent_first(&a, tree.root, stack);
	bool down = coll != REDUCE, up = coll != BROADCAST;
	tree.n_down = down ? n_edges : 0;
	tree.n_up = up ? n_edges : 0;
	TRY(NEW(ctx, tree.down, tree.n_down));
	TRY(NEW(ctx, tree.up, tree.n_up));
	for (int i = 1; i < n_ranks; i++) {
		/* An edge of `there` that leads from child to parent has its partner in `back`. */
		int half = a.parent[a.order[i]], e = half / 2;
		bool away = half % 2 == 0;
		if (down)
			tree.down[i - 1] = away ? there[e] : back[e];
		if (up)
			tree.up[n_edges - i] = coll == REDUCE ? there[e] : away ? back[e] : there[e];
	}
	arena_release(&ctx->scratch, mark);
	*out = tree;
	return OK;
}

static Status
image_of_edges(Ctx *ctx, const Edge *edge, int n, const int *vertex, const int *link, Edge **out)
{
	int n_links = 0, *images = NULL;
	for (int e = 0; e < n && link; e++)
		n_links += edge[e].n_links;
	*out = arena_raw(&ctx->run, (size_t)n, sizeof **out);
	if (link)
		images = arena_raw(&ctx->run, (size_t)n_links, sizeof *images);
	if (!*out || (link && !images))
		return fail_memory(ctx);
	for (int e = 0; e < n; e++) {
		Edge *image = &(*out)[e];
		*image = edge[e];
		if (vertex) {
			image->src = vertex[edge[e].src];
			image->dst = vertex[edge[e].dst];
		}
		if (!link)
			continue;
		image->link = images;
		for (int i = 0; i < edge[e].n_links; i++)
			*images++ = link[edge[e].link[i]];
	}
	return OK;
}

Status
tree_image(Ctx *ctx, const Tree *tree, const int *vertex, const int *link, Tree *out)
{
	Tree image = { .root = vertex ? vertex[tree->root] : tree->root, .n_down = tree->n_down, .n_up = tree->n_up };
	TRY(image_of_edges(ctx, tree->down, tree->n_down, vertex, link, &image.down));
	TRY(image_of_edges(ctx, tree->up, tree->n_up, vertex, link, &image.up));
	*out = image;
	return OK;
}

/* Hops of the longest chain; parents come first, so one sweep in that order does. */
static int
phase_depth(const Edge *edge, int n, bool down, int *depth)
{
	int deepest = 0;
	for (int e = 0; e < n; e++) {
		const Edge *hop = &edge[down ? e : n - 1 - e];
		int near = down ? hop->src : hop->dst, far = down ? hop->dst : hop->src;
		depth[far] = depth[near] + 1;
		deepest = depth[far] > deepest ? depth[far] : deepest;
	}
	return deepest;
}

int
tree_depth(const Tree *tree, int *work)
{
	work[tree->root] = 0;
	int up = phase_depth(tree->up, tree->n_up, false, work);
	work[tree->root] = 0;
	return up + phase_depth(tree->down, tree->n_down, true, work);
}

uint64_t
tree_hash(const Tree *tree)
{
	uint64_t sum = 0;
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		for (int k = 0; k < edge->n_links; k++)
			sum += hash64((uint64_t)edge->src << 42 ^ (uint64_t)edge->dst << 20 ^ (uint64_t)edge->link[k]);
	}
	return sum;
}

/* ---- switches that copy and add ---- */

static void
pass(const Topology *topo, const Edge *edge, int rank, int *last)
{
	for (int i = 0; i < edge->n_links; i++)
		last[topo->link[edge->link[i]].from] = last[topo->link[edge->link[i]].to] = rank;
}

bool
tree_shares(const Topology *topo, Collective coll)
{
	bool down = collective_needer(coll, topo->n_ranks, 0, 0) == EVERY_RANK, up = collective_reduces(coll);
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if ((down && topo->vertex[v].multicast) || (up && topo->vertex[v].reduce))
			return true;
	return false;
}

void
tree_share(const Topology *topo, bool reduces, Tree *tree, int *last)
{
	memset(last, -1, (size_t)topo->n_vertices * sizeof *last);
	for (int e = 0; e < tree->n_down; e++) {
		Edge *edge = &tree->down[e];
		for (int i = edge->n_links - 1; i >= 0; i--) {
			int v = topo->link[edge->link[i]].to;
			if (!topo->vertex[v].multicast || last[v] != edge->src)
				continue;
			edge->link += i + 1;
			edge->n_links -= i + 1;
			break;
		}
		pass(topo, edge, edge->src, last);
	}
	memset(last, -1, (size_t)topo->n_vertices * sizeof *last);
	for (int e = 0; e < tree->n_up && reduces; e++) {
		Edge *edge = &tree->up[e];
		for (int i = 0; i < edge->n_links; i++) {
			int v = topo->link[edge->link[i]].to;
			if (topo->vertex[v].reduce && last[v] == edge->dst)
				edge->n_links = i + 1;
		}
		pass(topo, edge, edge->dst, last);
	}
}

bool
tree_same_edges(const Edge *a, const Edge *b, int n)
{
	for (int e = 0; e < n; e++)
		if (a[e].src != b[e].src || a[e].dst != b[e].dst || a[e].n_links != b[e].n_links
		    || memcmp(a[e].link, b[e].link, (size_t)a[e].n_links * sizeof *a[e].link) != 0)
			return false;
	return true;
}
