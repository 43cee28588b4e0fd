/* A schedule in the ranks of another job: what rank[i] does in it, rank i does in the new one.
 *
 *   a broadcast from 0 along 0->2 2->1, by rank = 2 0 1, so that 0 takes the place of 2, 1 of 0 and 2 of 1, is
 *   a broadcast from 1 along 1->0 0->2
 *
 * Vertices of ranks change places, with what leads to and from them; links and trees keep theirs. Blocks of a buffer are
 * numbered by ranks, so segments of collectives with blocks move to where the blocks of the new ranks lie. */
#include "passes.h"

#include <stdlib.h>

struct relabel {
	Ctx *ctx;
	int n;
	int *now;		/* of each old rank: the new one */
};

static int
vertex_now(const struct relabel *r, int v)
{
	return v < r->n ? r->now[v] : v;
}

static Status
relabel_topology(const struct relabel *r, const Topology *in, const Topology **out)
{
	Topology *topo;
	TRY(NEW(r->ctx, topo, 1));
	*topo = *in;
	TRY(NEW(r->ctx, topo->vertex, in->n_vertices));
	TRY(NEW(r->ctx, topo->link, in->n_links));
	for (int v = 0; v < in->n_vertices; v++)
		topo->vertex[vertex_now(r, v)] = in->vertex[v];
	for (int l = 0; l < in->n_links; l++) {
		topo->link[l] = in->link[l];
		topo->link[l].from = vertex_now(r, in->link[l].from);
		topo->link[l].to = vertex_now(r, in->link[l].to);
	}
	TRY(topo_index(r->ctx, topo));
	*out = topo;
	return OK;
}

static Status
relabel_bound(const struct relabel *r, const Topology *topo, Bound *bound)
{
	const int *part = bound->part;
	if (!part)
		return OK;
	TRY(NEW(r->ctx, bound->part, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		bound->part[vertex_now(r, v)] = part[v];
	return OK;
}

static Status
relabel_edges(const struct relabel *r, int n, Edge **edges)
{
	Edge *edge;
	TRY(NEW(r->ctx, edge, n));
	for (int e = 0; e < n; e++)
		edge[e] = (Edge){ r->now[(*edges)[e].src], r->now[(*edges)[e].dst], (*edges)[e].n_links, (*edges)[e].link };
	*edges = edge;
	return OK;
}

static int
by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
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
	segment->tree.root = r->now[segment->tree.root];
	TRY(relabel_edges(r, segment->tree.n_down, &segment->tree.down));
	TRY(relabel_edges(r, segment->tree.n_up, &segment->tree.up));
	const int *served = segment->to;
	TRY(NEW(r->ctx, segment->to, segment->n_to));
	for (int i = 0; i < segment->n_to; i++)
		segment->to[i] = r->now[served[i]];
	if (segment->n_to > 0)
		qsort(segment->to, (size_t)segment->n_to, sizeof *segment->to, by_number);
	return OK;
}

Status
sched_relabel(Ctx *ctx, const Schedule *in, const int *rank, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct relabel r = { .ctx = ctx, .n = in->topo->n_ranks };
	Schedule *sched;
	TRY(TEMP(ctx, r.now, r.n));
	TRY(NEW(ctx, sched, 1));
	*sched = *in;
	for (int i = 0; i < r.n; i++)
		r.now[rank[i]] = i;
	sched->root = in->root < 0 ? -1 : r.now[in->root];
	TRY(relabel_topology(&r, in->topo, &sched->topo));
	TRY(relabel_bound(&r, in->topo, &sched->bound));
	TRY(NEW(ctx, sched->segment, in->n_segments));
	for (int t = 0; t < in->n_segments; t++) {
		sched->segment[t] = in->segment[t];
		TRY(relabel_segment(&r, sched, &sched->segment[t]));
	}
	arena_release(&ctx->scratch, mark);
	*out = sched;
	return OK;
}
