/* Edges of all trees, sorted by link and tree. */
#include "plan/pack/pool/rows.h"

#include <stdlib.h>
#include <string.h>

struct use {
	int link, tree, uses;
};

static int
by_link(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	return x->link != y->link ? (x->link > y->link) - (x->link < y->link)
	    : (x->tree > y->tree) - (x->tree < y->tree);
}

static bool
same_row(const Topology *topo, const struct pool_rows *rows, int a, int b)
{
	int n = rows->first[a + 1] - rows->first[a];
	if (n != rows->first[b + 1] - rows->first[b]
	    || topo->link[rows->link[a]].capacity != topo->link[rows->link[b]].capacity)
		return false;
	return memcmp(rows->entry + rows->first[a], rows->entry + rows->first[b],
	    (size_t)n * sizeof *rows->entry) == 0
	    && memcmp(rows->uses + rows->first[a], rows->uses + rows->first[b], (size_t)n * sizeof *rows->uses) == 0;
}

static Status
collect_uses(Ctx *ctx, const Packing *pool, struct use **out, int *n_out)
{
	struct use *use;
	int n = 0, merged = 0;
	for (int t = 0; t < pool->n_trees; t++) {
		const Tree *tree = &pool->tree[t];
		for (int e = 0; e < tree->n_down + tree->n_up; e++)
			n += (e < tree->n_down ? &tree->down[e] : &tree->up[e - tree->n_down])->n_links;
	}
	TRY(TEMP(ctx, use, n));
	n = 0;
	for (int t = 0; t < pool->n_trees; t++) {
		const Tree *tree = &pool->tree[t];
		for (int e = 0; e < tree->n_down + tree->n_up; e++) {
			const Edge *edge = e < tree->n_down ? &tree->down[e] : &tree->up[e - tree->n_down];
			for (int i = 0; i < edge->n_links; i++)
				use[n++] = (struct use){ edge->link[i], t, 1 };
		}
	}
	qsort(use, (size_t)n, sizeof *use, by_link);
	for (int i = 0; i < n; i++) {
		if (merged && use[merged - 1].link == use[i].link && use[merged - 1].tree == use[i].tree)
			use[merged - 1].uses++;
		else
			use[merged++] = use[i];
	}
	*out = use;
	*n_out = merged;
	return OK;
}

Status
pool_rows(Ctx *ctx, const Topology *topo, const Packing *pool, struct pool_rows *out)
{
	struct pool_rows rows = { 0 };
	struct use *use;
	int n;
	TRY(collect_uses(ctx, pool, &use, &n));
	TRY(TEMP(ctx, rows.link, n));
	TRY(TEMP(ctx, rows.first, n + 1));
	TRY(TEMP(ctx, rows.entry, n));
	TRY(TEMP(ctx, rows.uses, n));
	for (int i = 0; i < n;) {
		int r = rows.n, at = rows.first[r];
		rows.link[r] = use[i].link;
		for (int l = use[i].link; i < n && use[i].link == l; i++, at++) {
			rows.entry[at] = use[i].tree;
			rows.uses[at] = use[i].uses;
		}
		rows.first[r + 1] = at;
		bool again = false;
		for (int b = 0; b < r && !again; b++)
			again = same_row(topo, &rows, b, r);
		rows.n += !again;
	}
	*out = rows;
	return OK;
}
