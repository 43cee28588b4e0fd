/* Packings of representatives become packings of all ranks: images of trees under a group. */
#include "plan/pack/linear/images.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

struct image {
	int demand, rank;	/* rank: among the trees of its demand, by order of the packing */
	uint64_t hash;		/* of its edges, whatever their order */
	int64_t weight;
	Tree tree;
};

static Status
image_of(Ctx *ctx, const SymmetryWalk *walk, Collective coll, int root, const Tree *tree, int demand, struct image *out)
{
	int n = walk->topo->n_ranks;
	Demand d = collective_demand(coll, n, root, demand);
	out->demand = collective_demand_of(coll, n, root, d.from < 0 ? -1 : walk->vertex[d.from],
	    d.to < 0 ? -1 : walk->vertex[d.to]);
	TRY(tree_image(ctx, tree, walk->vertex, walk->link, &out->tree));
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

/* The same edges, in any order? */
static Status
equal_edges(Ctx *ctx, const Tree *a, const Tree *b, bool *same)
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

/* Equal images, which are of one demand, become one, the first. *n: those that are left, in order. */
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
				TRY(equal_edges(ctx, &image[k].tree, &image[i].tree, &same));
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
		return fail(ctx, LIMIT, "%s: %s over %d ranks: %lld trees with %lld edges: want at most %d and %d",
		    topo->name, collective_name(coll), topo->n_ranks, (long long)trees, (long long)edges, LIMIT_TREES,
		    LIMIT_TREE_EDGES);
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
	/* Not divided where the unit would be too large a number. */
	if (n > 0 && !frac_mul(pack->unit, (Frac){ common, 1 }, &all.unit)) {
		common = 1;
		all.unit = pack->unit;
	}
	if (n > 0 && sum / common >> PACKING_BITS == 0) {
		TRY(pack_room(ctx, n, true, &all));
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
