/* A lower bound on the number of trees: none has more than its narrowest link. Links of at least some capacity lead
 * from rank to rank or not; at the largest capacity at which they do no tree is wider, whatever it looks like. */
#include "plan/pack/pool/pool.h"

#include <stdlib.h>
#include <string.h>

struct width {
	const Topology *topo;
	int64_t capacity;	/* links of at least this */
	int *queue;
	bool *reached;
};

/* Are all ranks reached from this one (against: is it reached from all)? */
static bool
spans(struct width *w, int root, bool against)
{
	const Topology *topo = w->topo;
	const int *first = against ? topo->first_in : topo->first_out, *list = against ? topo->in : topo->out;
	int head = 0, tail = 0, ranks = 0;
	memset(w->reached, 0, (size_t)topo->n_vertices * sizeof *w->reached);
	w->reached[root] = true;
	w->queue[tail++] = root;
	while (head < tail) {
		int u = w->queue[head++];
		ranks += u < topo->n_ranks;
		for (int i = first[u]; i < first[u + 1]; i++) {
			const Link *link = &topo->link[list[i]];
			int v = against ? link->from : link->to;
			if (link->capacity < w->capacity || w->reached[v])
				continue;
			w->reached[v] = true;
			w->queue[tail++] = v;
		}
	}
	return ranks == topo->n_ranks;
}

static int
by_capacity(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* An allreduce collects and sends: in a rank of its own both, so the links lead from each rank to each. */
static bool
has_tree(struct width *w, Collective coll, int root, int64_t capacity)
{
	w->capacity = capacity;
	root = root < 0 ? 0 : root;
	return (coll == REDUCE || spans(w, root, false)) && (coll == BROADCAST || spans(w, root, true));
}

Status
pack_least_trees(Ctx *ctx, const Topology *topo, const Ask *ask, Frac rate, int *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct width w = { .topo = topo };
	int64_t *capacity;
	int low = 0, high = topo->n_links;
	Frac least;
	TRY(TEMP(ctx, w.queue, topo->n_vertices));
	TRY(TEMP(ctx, w.reached, topo->n_vertices));
	TRY(TEMP(ctx, capacity, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		capacity[l] = topo->link[l].capacity;
	qsort(capacity, (size_t)topo->n_links, sizeof *capacity, by_capacity);
	/* The first at which there is no tree; at the least one there is, or there is no plan. */
	while (low < high) {
		int middle = (low + high) / 2;
		if (has_tree(&w, ask->coll, ask->root, capacity[middle]))
			low = middle + 1;
		else
			high = middle;
	}
	*out = 1;
	if (low > 0 && frac_div(rate, (Frac){ capacity[low - 1], 1 }, &least)) {
		Wide trees = (least.num + least.den - 1) / least.den;
		*out = trees > INT32_MAX ? INT32_MAX : trees < 1 ? 1 : (int)trees;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
