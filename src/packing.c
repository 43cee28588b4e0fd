/* Packing: trees with rates, before anyone asks for segments. */
#include "passes.h"

#include <math.h>
#include <string.h>

Status
pack_check(Ctx *ctx, const Topology *topo, const Packing *pack)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *load, sum = 0;
	TRY(TEMP(ctx, load, topo->n_links));
	if (pack->n_trees < 1 || pack->n_trees > LIMIT_TREES || pack->unit.num < 1)
		return fail(ctx, INTERNAL, "packing: %d trees", pack->n_trees);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		if (pack->weight[t] < 1 || pack->weight[t] > (INT64_C(1) << 32) - sum)
			return fail(ctx, INTERNAL, "packing: tree %d has a weight out of range", t);
		sum += pack->weight[t];
		for (int e = 0; e < tree->n_down + tree->n_up; e++) {
			const Edge *edge = e < tree->n_down ? &tree->down[e] : &tree->up[e - tree->n_down];
			for (int i = 0; i < edge->n_links; i++)
				load[edge->link[i]] += pack->weight[t];
		}
	}
	for (int l = 0; l < topo->n_links; l++)
		if ((Wide)load[l] * pack->unit.num > (Wide)topo->link[l].capacity * pack->unit.den)
			return fail(ctx, INTERNAL, "packing: link %d carries more than its capacity", l);
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

/* Weights of so many bits, times the largest capacity, stay below 2^62: so the rate that segments achieve is a Frac. */
static int
pack_bits(const Topology *topo)
{
	int64_t top = 1;
	int bits = 62;
	for (int l = 0; l < topo->n_links; l++)
		top = topo->link[l].capacity > top ? topo->link[l].capacity : top;
	for (; top > 0; top >>= 1)
		bits--;
	return bits > 20 ? 20 : bits < 8 ? 8 : bits;
}

Frac
pack_unit(const Topology *topo, double rate)
{
	double unit = ldexp(rate, -pack_bits(topo));
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
