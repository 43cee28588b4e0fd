/* Packing: trees with rates, before anyone asks for segments. */
#include "passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
pack_fits(const Topology *topo, const Packing *pack, int64_t *load)
{
	memset(load, 0, (size_t)topo->n_links * sizeof *load);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		for (int i = 0; i < tree->n_down + tree->n_up; i++) {
			const Edge *edge = tree_edge(tree, i);
			for (int k = 0; k < edge->n_links; k++)
				load[edge->link[k]] += pack->weight[t];
		}
	}
	for (int l = 0; l < topo->n_links; l++)
		if ((Wide)load[l] * pack->unit.num > (Wide)topo->link[l].capacity * pack->unit.den)
			return false;
	return true;
}

Status
pack_check(Ctx *ctx, const Topology *topo, const Packing *pack)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *load, sum = 0;
	TRY(TEMP(ctx, load, topo->n_links));
	if (pack->n_trees < 1 || pack->n_trees > LIMIT_TREES || pack->unit.num < 1)
		return fail(ctx, INTERNAL, "packing: %d trees", pack->n_trees);
	for (int t = 0; t < pack->n_trees; t++) {
		if (pack->weight[t] < 1 || pack->weight[t] > (INT64_C(1) << PACKING_BITS) - sum)
			return fail(ctx, INTERNAL, "packing: tree %d has a weight out of range", t);
		sum += pack->weight[t];
	}
	if (!pack_fits(topo, pack, load))
		return fail(ctx, INTERNAL, "packing: a link carries more than its capacity");
	arena_release(&ctx->scratch, mark);
	return OK;
}

bool
pack_rate(const Packing *pack, Collective coll, int n_ranks, Frac *out)
{
	Frac all;
	int64_t sum = 0;
	for (int t = 0; t < pack->n_trees; t++)
		sum += pack->weight[t];
	return frac_make((Wide)sum * collective_shares(coll, n_ranks), collective_demands(coll, n_ranks), &all)
	    && frac_mul(pack->unit, all, out);
}

/* 20 bits of weights for each demand, as far as there is room. Weights of so many bits, times the largest capacity, stay below 2^62:
 * so the rate that segments achieve is a Frac. */
static int
pack_bits(const Topology *topo, int n_demands)
{
	int64_t top = 1;
	int bits = 62, most = 20;
	for (int l = 0; l < topo->n_links; l++)
		top = topo->link[l].capacity > top ? topo->link[l].capacity : top;
	for (; top > 0; top >>= 1)
		bits--;
	for (; n_demands > 1 && most < 30; n_demands /= 2)
		most++;
	return bits > most ? most : bits < 8 ? 8 : bits;
}

Frac
pack_unit(const Topology *topo, double rate, int n_demands)
{
	double unit = ldexp(rate, -pack_bits(topo, n_demands));
	/* 20 bits behind the point where there is room; rounded up. */
	int fine = unit < 4294967296.0 ? 20 : 0;
	return (Frac){ (int64_t)(unit * (1 << fine)) + 1, INT64_C(1) << fine };
}

static bool
same_edges(const Edge *a, const Edge *b, int n)
{
	for (int e = 0; e < n; e++)
		if (a[e].src != b[e].src || a[e].dst != b[e].dst || a[e].n_links != b[e].n_links
		    || memcmp(a[e].link, b[e].link, (size_t)a[e].n_links * sizeof *a[e].link) != 0)
			return false;
	return true;
}

static bool
same_tree(const Tree *a, const Tree *b)
{
	return a->root == b->root && a->n_down == b->n_down && a->n_up == b->n_up
	    && same_edges(a->down, b->down, a->n_down) && same_edges(a->up, b->up, a->n_up);
}

Status
pack_pool(Ctx *ctx, const Packing *a, const Packing *b, Packing **out)
{
	Packing *pool;
	TRY(NEW(ctx, pool, 1));
	TRY(NEW(ctx, pool->tree, a->n_trees + b->n_trees));
	TRY(NEW(ctx, pool->weight, a->n_trees + b->n_trees));
	memcpy(pool->tree, a->tree, (size_t)a->n_trees * sizeof *a->tree);
	pool->n_trees = a->n_trees;
	for (int t = 0; t < b->n_trees; t++) {
		bool known = false;
		for (int u = 0; u < a->n_trees && !known; u++)
			known = same_tree(&b->tree[t], &a->tree[u]);
		if (!known)
			pool->tree[pool->n_trees++] = b->tree[t];
	}
	pool->unit = a->unit;
	for (int t = 0; t < pool->n_trees; t++)
		pool->weight[t] = 1;
	*out = pool;
	return OK;
}

/* ---- images under a group ---- */

struct image {
	int demand, rank;	/* rank: among the trees of its demand, by order of the packing */
	uint64_t hash;		/* of its edges, whatever their order */
	int64_t weight;
	Tree tree;
};

static Status
image_of_edges(Ctx *ctx, const SymmetryWalk *walk, const Edge *edge, int n, Edge **out)
{
	int n_links = 0, *link;
	Edge *image;
	for (int e = 0; e < n; e++)
		n_links += edge[e].n_links;
	TRY(NEW(ctx, image, n));
	TRY(NEW(ctx, link, n_links));
	for (int e = 0; e < n; e++) {
		image[e] = (Edge){ walk->vertex[edge[e].src], walk->vertex[edge[e].dst], edge[e].n_links, link };
		for (int i = 0; i < edge[e].n_links; i++)
			*link++ = walk->link[edge[e].link[i]];
	}
	*out = image;
	return OK;
}

static Status
image_of(Ctx *ctx, const SymmetryWalk *walk, Collective coll, int root, const Tree *tree, int demand, struct image *out)
{
	int n = walk->topo->n_ranks;
	Demand d = collective_demand(coll, n, root, demand);
	out->demand = collective_demand_of(coll, n, root, d.from < 0 ? -1 : walk->vertex[d.from],
	    d.to < 0 ? -1 : walk->vertex[d.to]);
	out->tree = (Tree){ .root = walk->vertex[tree->root], .n_down = tree->n_down, .n_up = tree->n_up };
	TRY(image_of_edges(ctx, walk, tree->down, tree->n_down, &out->tree.down));
	TRY(image_of_edges(ctx, walk, tree->up, tree->n_up, &out->tree.up));
	out->hash = tree_hash(&out->tree);
	return OK;
}

static int
by_demand(const void *a, const void *b)
{
	const struct image *p = a, *q = b;
	return p->demand != q->demand ? (p->demand > q->demand) - (p->demand < q->demand)
	    : (p->rank > q->rank) - (p->rank < q->rank);
}

static int
by_edge(const void *a, const void *b)
{
	const Edge *p = *(const Edge *const *)a, *q = *(const Edge *const *)b;
	if (p->src != q->src)
		return p->src < q->src ? -1 : 1;
	if (p->dst != q->dst)
		return p->dst < q->dst ? -1 : 1;
	return (p->link[0] > q->link[0]) - (p->link[0] < q->link[0]);
}

/* Have they the same edges, in any order? */
static Status
are_one(Ctx *ctx, const Tree *a, const Tree *b, bool *same)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = a->n_down + a->n_up;
	const Edge **p, **q;
	*same = n == b->n_down + b->n_up;
	TRY(TEMP(ctx, p, n));
	TRY(TEMP(ctx, q, n));
	for (int i = 0; i < n && *same; i++) {
		p[i] = tree_edge(a, i);
		q[i] = tree_edge(b, i);
	}
	if (*same) {
		qsort(p, (size_t)n, sizeof *p, by_edge);
		qsort(q, (size_t)n, sizeof *q, by_edge);
	}
	for (int i = 0; i < n && *same; i++)
		*same = p[i]->src == q[i]->src && p[i]->dst == q[i]->dst && p[i]->n_links == q[i]->n_links
		    && memcmp(p[i]->link, q[i]->link, (size_t)p[i]->n_links * sizeof *p[i]->link) == 0;
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Images that are one tree become one, the first; they lie within one demand. Returns how many are left, in order. */
static Status
merge_images(Ctx *ctx, struct image *image, int *n)
{
	int kept = 0;
	for (int i = 0, begin = 0; i < *n; i++) {
		bool same = false;
		if (kept > 0 && image[i].demand != image[kept - 1].demand)
			begin = kept;
		for (int k = begin; k < kept && !same; k++) {
			if (image[k].hash == image[i].hash)
				TRY(are_one(ctx, &image[k].tree, &image[i].tree, &same));
			if (same)
				image[k].weight += image[i].weight;
		}
		if (!same)
			image[kept++] = image[i];
	}
	*n = kept;
	return OK;
}

static Status
check_images(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Packing *pack)
{
	int64_t trees = (int64_t)pack->n_trees * sym->size, edges = 0;
	for (int t = 0; t < pack->n_trees; t++)
		edges += (int64_t)(pack->tree[t].n_down + pack->tree[t].n_up) * sym->size;
	if (trees > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: %lld trees with %lld edges: want at most %d and %d", topo->name,
		    collective_name(coll), topo->n_ranks, (long long)trees, (long long)edges, LIMIT_TREES, LIMIT_TREE_EDGES);
	return OK;
}

Status
pack_unfold(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SymmetryWalk walk;
	struct image *image;
	Packing all = { 0 }, *made;
	int n = 0;
	int64_t common = 0;
	Wide sum = 0;
	TRY(check_images(ctx, topo, sym, coll, pack));
	TRY(TEMP(ctx, image, (size_t)pack->n_trees * (size_t)sym->size));
	TRY(symmetry_walk(ctx, topo, sym, &walk));
	do {
		for (int t = 0; t < pack->n_trees; t++, n++) {
			TRY(image_of(ctx, &walk, coll, root, &pack->tree[t], pack->demand[t], &image[n]));
			image[n].weight = pack->weight[t];
			image[n].rank = t * sym->size + n / pack->n_trees;
		}
	} while (symmetry_next(&walk));
	qsort(image, (size_t)n, sizeof *image, by_demand);
	TRY(merge_images(ctx, image, &n));
	for (int i = 0; i < n; i++) {
		common = gcd64(image[i].weight, common);
		sum += image[i].weight;
	}
	/* Undivided, where the unit would be too large a number. */
	if (n > 0 && !frac_mul(pack->unit, (Frac){ common, 1 }, &all.unit)) {
		common = 1;
		all.unit = pack->unit;
	}
	if (n > 0 && sum / common >> PACKING_BITS == 0) {
		TRY(NEW(ctx, all.tree, n));
		TRY(NEW(ctx, all.demand, n));
		TRY(NEW(ctx, all.weight, n));
		for (int i = 0; i < n; i++) {
			all.tree[i] = image[i].tree;
			all.demand[i] = image[i].demand;
			all.weight[i] = image[i].weight / common;
		}
		all.n_trees = n;
		TRY(NEW(ctx, made, 1));
		*made = all;
		*out = made;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
