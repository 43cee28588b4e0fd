/* The trees of two packings together. */
#include "plan/pack/pool/pool.h"

#include <string.h>

static bool
same_tree(const Tree *a, const Tree *b)
{
	return a->root == b->root && a->n_down == b->n_down && a->n_up == b->n_up
	    && tree_same_edges(a->down, b->down, a->n_down) && tree_same_edges(a->up, b->up, a->n_up);
}

Status
pack_pool(Ctx *ctx, const Packing *a, const Packing *b, Packing **out)
{
	Packing *pool;
	TRY(pack_new(ctx, a->n_trees + b->n_trees, false, &pool));
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
