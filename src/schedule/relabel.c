/* A schedule with its ranks renumbered for another job: the new rank i does what rank[i] did.
 *
 *   a broadcast from 0 along 0->2 2->1, with rank = 2 0 1, so that 0 replaces 2, 1 replaces 0 and 2 replaces 1, is
 *   a broadcast from 1 along 1->0 0->2
 *
 * Vertices of ranks are permuted, with the ends of their links; links and trees keep their numbers. Blocks of a
 * buffer are numbered by ranks, so segments of collectives with blocks move to the blocks of the new ranks. */
#include "schedule/root_trees.h"
#include "base/sort.h"

#include <stdlib.h>

struct relabel {
	Ctx *ctx;
	int n;
	int *now;		/* of each old vertex: the new one; others than ranks keep their numbers */
};

static Status
relabel_topology(const struct relabel *r, const Topology *in, const Topology **out)
{
	Topology *topo;
	TRY(NEW(r->ctx, topo, 1));
	*topo = *in;
	*out = topo;
	return topo_renumber(r->ctx, r->now, in->n_vertices, topo);
}

static Status
relabel_bound(const struct relabel *r, const Topology *topo, Bound *bound)
{
	const int *part = bound->part;
	if (!part)
		return OK;
	TRY(NEW(r->ctx, bound->part, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		bound->part[r->now[v]] = part[v];
	return OK;
}

/* Maps of the new ranks: back to the old ones, on, and to the new ones again. Links keep their numbers. */
static Status
relabel_symmetry(const struct relabel *r, const Topology *topo, const Symmetry **sym)
{
	Symmetry *made;
	TRY(NEW(r->ctx, made, 1));
	*made = **sym;
	TRY(NEW(r->ctx, made->map, made->n_maps));
	for (int i = 0; i < made->n_maps; i++) {
		const SymmetryMap *old = &(*sym)->map[i];
		int *vertex;
		TRY(NEW(r->ctx, vertex, topo->n_vertices));
		for (int v = 0; v < topo->n_vertices; v++)
			vertex[r->now[v]] = r->now[old->vertex[v]];
		made->map[i] = (SymmetryMap){ .order = old->order, .vertex = vertex, .link = old->link };
	}
	*sym = made;
	return OK;
}

static Status
relabel_matrix(const struct relabel *r, const ByteMatrix **matrix)
{
	size_t n = (size_t)r->n;
	int64_t *bytes;
	ByteMatrix *made;
	TRY(NEW(r->ctx, made, 1));
	TRY(NEW(r->ctx, bytes, n * n));
	*made = **matrix;
	for (size_t i = 0; i < n * n; i++)
		bytes[(size_t)r->now[i / n] * n + (size_t)r->now[i % n]] = made->bytes[i];
	made->bytes = bytes;
	*matrix = made;
	return OK;
}

/* Segments lie in one block. */
static Status
relabel_segment(const struct relabel *r, const Schedule *sched, Segment *segment)
{
	int n = r->n;
	int64_t blocks = collective_blocks(sched->coll, n), block = frac_floor_mul(segment->offset, blocks), to = block;
	Frac old, new;
	if (blocks == n)
		to = r->now[block];
	else if (blocks > 1)
		to = (int64_t)r->now[block / n] * n + r->now[block % n];
	if (!frac_make(block, blocks, &old) || !frac_make(to, blocks, &new) || !frac_sub(segment->offset, old, &old)
	    || !frac_add(old, new, &segment->offset))
		return fail(r->ctx, LIMIT, "%s: segments need more than 64 bits", sched->topo->name);
	TRY(tree_image(r->ctx, &segment->tree, r->now, NULL, &segment->tree));
	const int *served = segment->to;
	TRY(NEW(r->ctx, segment->to, segment->n_to));
	for (int i = 0; i < segment->n_to; i++)
		segment->to[i] = r->now[served[i]];
	sort_array(segment->to, segment->n_to, sizeof *segment->to, order_of_ints);
	return OK;
}

static Status
relabel_edges(const struct relabel *r, const Schedule *in, Schedule *out)
{
	Edge *edge;
	TRY(NEW(r->ctx, edge, in->n_edges));
	for (int e = 0; e < in->n_edges; e++) {
		edge[e] = in->edge[e];
		edge[e].src = r->now[edge[e].src];
		edge[e].dst = r->now[edge[e].dst];
	}
	out->edge = edge;
	return OK;
}

/* Numbers of edges, by the new ranks. of: work space, -1 for each rank. */
static Status
relabel_numbers(const struct relabel *r, const Schedule *in, int *of, InTree *tree)
{
	int *number, n = 0;
	TRY(NEW(r->ctx, number, tree->n_links));
	for (int i = 0; i < tree->n_links; i++)
		of[r->now[in_tree_vertex(in, tree->link[i])]] = tree->link[i];
	for (int v = 0; v < r->n; v++) {
		if (of[v] >= 0)
			number[n++] = of[v];
		of[v] = -1;
	}
	tree->link = number;
	return OK;
}

/* Trees of each rank go to its new place; links and edges keep their numbers. rank: that was at each place. */
static Status
relabel_in_trees(struct relabel *r, const Schedule *in, const int *rank, Schedule *out)
{
	int *first, *of, n = 0;
	InTree *tree;
	TRY(relabel_edges(r, in, out));
	TRY(TEMP(r->ctx, of, r->n));
	for (int v = 0; v < r->n; v++)
		of[v] = -1;
	TRY(TEMP(r->ctx, first, r->n));
	TRY(NEW(r->ctx, tree, in->n_in_trees));
	for (int t = in->n_in_trees - 1; t >= 0; t--)
		first[in->in_tree[t].root] = t;
	for (int root = 0; root < r->n; root++)
		for (int t = first[rank[root]]; t < in->n_in_trees && in->in_tree[t].root == rank[root]; t++) {
			tree[n] = in->in_tree[t];
			tree[n].root = root;
			if (in->n_edges)
				TRY(relabel_numbers(r, in, of, &tree[n]));
			n++;
		}
	out->in_tree = tree;
	return OK;
}

Status
sched_relabel(Ctx *ctx, const Schedule *in, const int *rank, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct relabel r = { .ctx = ctx, .n = in->topo->n_ranks };
	Schedule *sched;
	TRY(TEMP(ctx, r.now, in->topo->n_vertices));
	TRY(NEW(ctx, sched, 1));
	*sched = *in;
	for (int v = 0; v < in->topo->n_vertices; v++)
		r.now[v < r.n ? rank[v] : v] = v;
	sched->root = in->root < 0 ? -1 : r.now[in->root];
	TRY(relabel_topology(&r, in->topo, &sched->topo));
	TRY(relabel_bound(&r, in->topo, &sched->bound));
	if (in->symmetry)
		TRY(relabel_symmetry(&r, in->topo, &sched->symmetry));
	if (in->matrix)
		TRY(relabel_matrix(&r, &sched->matrix));
	if (in->n_in_trees)
		TRY(relabel_in_trees(&r, in, rank, sched));
	TRY(NEW(ctx, sched->segment, in->n_segments));
	for (int t = 0; t < in->n_segments; t++) {
		sched->segment[t] = in->segment[t];
		TRY(relabel_segment(&r, sched, &sched->segment[t]));
	}
	arena_release(&ctx->scratch, mark);
	*out = sched;
	return OK;
}
