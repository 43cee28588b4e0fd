/* Rings from the trees of a schedule. A ring is cut at each rank in turn: an allreduce has its chains into a rank and
 * out of it, an allgather those out of each. Chains that visit ranks in the same order are parts of one ring; it is
 * whole if each of its hops is in some chain. A hop carries what all chains over it do:
 *
 *     0 -> 1 -> 2, 1 -> 2 -> 0, 2 -> 0 -> 1     an allgather of 3 ranks: each hop is in 2 chains */
#include "format/nccl/graph.h"

#include <stdlib.h>
#include <string.h>

/* What a search for rings works on. */
struct rings {
	Ctx *ctx;
	const Schedule *sched;
	NcclGraph *graph;
	const Edge **hop;	/* out of each rank, of one tree */
	int *next, *before;	/* in its order */
	int **order;		/* `next` of each ring */
};

static Status
fail_not_rings(const struct rings *s, const char *what)
{
	return fail(s->ctx, INFEASIBLE, "nccl-graph: %.100s: %.60s: want rings, as of an allreduce with "
	    "--algorithm ring", s->sched->topo->name, what);
}

/* The hops of one direction of a tree; false: some rank has two. */
static bool
add_hops(const struct rings *s, const Edge *edge, int n_edges)
{
	for (int i = 0; i < n_edges; i++) {
		const Edge *other = s->hop[edge[i].src];
		if (other && other->dst != edge[i].dst)
			return false;
		s->hop[edge[i].src] = &edge[i];
	}
	return true;
}

/* The order that the hops go round in, closed where one is missing; false: they are no part of a ring. */
static bool
find_order(const struct rings *s)
{
	int n = s->sched->topo->n_ranks, last = -1, hops = 0, at = 0;
	for (int r = 0; r < n; r++)
		s->before[r] = -1;
	for (int r = 0; r < n; r++) {
		if (!s->hop[r]) {
			last = r;
			continue;
		}
		if (s->before[s->hop[r]->dst] >= 0)
			return false;
		s->next[r] = s->hop[r]->dst;
		s->before[s->next[r]] = r;
		hops++;
	}
	if (hops < n - 1)
		return false;
	for (int r = 0; hops < n && r < n; r++)
		if (s->before[r] < 0)
			s->next[last] = r;
	for (int i = 1; i < n; i++)
		if ((at = s->next[at]) == 0)
			return false;
	return s->next[at] == 0;
}

/* The ring with that order, or a new one. */
static Status
find_ring(const struct rings *s, struct nccl_ring **out)
{
	NcclGraph *graph = s->graph;
	int n = s->sched->topo->n_ranks, i = 0;
	while (i < graph->n_rings && memcmp(s->order[i], s->next, (size_t)n * sizeof *s->next) != 0)
		i++;
	*out = &graph->ring[i];
	if (i < graph->n_rings)
		return OK;
	TRY(NEW(s->ctx, (*out)->hop, n));
	TRY(NEW(s->ctx, (*out)->load, n));
	TRY(TEMP(s->ctx, s->order[i], n));
	memcpy(s->order[i], s->next, (size_t)n * sizeof *s->next);
	for (int r = 0; r < n; r++)
		(*out)->load[r] = FRAC_ZERO;
	graph->n_rings++;
	return OK;
}

static Status
add_tree(const struct rings *s, const Segment *segment)
{
	const Tree *tree = &segment->tree;
	struct nccl_ring *ring;
	memset(s->hop, 0, (size_t)s->sched->topo->n_ranks * sizeof *s->hop);
	if (!add_hops(s, tree->down, tree->n_down) || !add_hops(s, tree->up, tree->n_up) || !find_order(s))
		return fail_not_rings(s, "its trees are not parts of rings");
	TRY(find_ring(s, &ring));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		Frac *load = &ring->load[edge->src];
		ring->hop[edge->src] = edge;
		if (!frac_add(*load, segment->length, load))
			return fail(s->ctx, LIMIT, "nccl-graph: rates need more than %d bits", FRAC_BITS);
	}
	return OK;
}

/* What its busiest hop carries, of M at the rate of the schedule. */
static Status
find_rate(const struct rings *s, struct nccl_ring *ring)
{
	Frac most = FRAC_ZERO;
	for (int r = 0; r < s->sched->topo->n_ranks; r++) {
		if (!ring->hop[r])
			return fail_not_rings(s, "its trees close no ring");
		if (frac_cmp(ring->load[r], most) > 0)
			most = ring->load[r];
	}
	if (!frac_mul(most, s->sched->achieved, &most))
		return fail(s->ctx, LIMIT, "nccl-graph: rates need more than %d bits", FRAC_BITS);
	ring->rate = (int64_t)(most.num / most.den / NCCL_GRAPH_UNIT);
	return ring->rate > 0 ? OK : fail(s->ctx, LIMIT, "nccl-graph: a ring of less than 0.001 GB/s: want more");
}

static int
by_rate(const void *a, const void *b)
{
	const struct nccl_ring *x = a, *y = b;
	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	return x->place - y->place;
}

Status
nccl_graph_rings(Ctx *ctx, const Schedule *sched, NcclGraph *out)
{
	struct rings s = { .ctx = ctx, .sched = sched, .graph = out };
	int n = sched->topo->n_ranks;
	if (sched->n_parts > 0)
		return fail_not_rings(&s, "its parts are over different links");
	TRY(NEW(ctx, out->ring, sched->n_segments));
	TRY(TEMP(ctx, s.order, sched->n_segments));
	TRY(TEMP(ctx, s.hop, n));
	TRY(TEMP(ctx, s.next, n));
	TRY(TEMP(ctx, s.before, n));
	for (int i = 0; i < sched->n_segments; i++)
		TRY(add_tree(&s, &sched->segment[i]));
	for (int i = 0; i < out->n_rings; i++) {
		out->ring[i].place = i;
		TRY(find_rate(&s, &out->ring[i]));
	}
	qsort(out->ring, (size_t)out->n_rings, sizeof *out->ring, by_rate);
	return OK;
}
