/* The walk over trees of each rank; trees of edges: their checks, and what they are in a list. */
#include "schedule/root_trees.h"

#include <string.h>

/* ---- tree after tree ---- */

Status
in_tree_walk(Ctx *ctx, const Schedule *sched, InTreeWalk *w)
{
	const Topology *topo = sched->topo;
	*w = (InTreeWalk){ .sched = sched, .t = -1 };
	TRY(TEMP_EACH(ctx, topo->n_vertices, w->only, w->next, w->order, w->state, w->stack));
	for (int v = 0; v < topo->n_vertices; v++)
		w->only[v] = !sched->n_edges && topo->first_out[v + 1] == topo->first_out[v] + 1
		    ? topo->out[topo->first_out[v]] : -1;
	return OK;
}

enum { UNSEEN, OPEN, ARRIVES };

/* Vertices from v on that have no place yet, the last first. False: they come to none that has one. */
static bool
place_path(InTreeWalk *w, int v)
{
	int n = 0;
	for (; w->state[v] == UNSEEN; v = in_tree_nearer(w->sched, w->next[v])) {
		w->state[v] = OPEN;
		w->stack[n++] = v;
		if (w->next[v] < 0)
			return false;
	}
	if (w->state[v] == OPEN)
		return false;
	while (n > 0) {
		v = w->stack[--n];
		w->state[v] = ARRIVES;
		w->order[w->n++] = v;
	}
	return true;
}

int
in_tree_place(InTreeWalk *w)
{
	const Topology *topo = w->sched->topo;
	int root = w->sched->in_tree[w->t].root;
	memset(w->state, 0, (size_t)topo->n_vertices * sizeof *w->state);
	w->state[root] = ARRIVES;
	w->order[0] = root;
	w->n = 1;
	for (int v = 0; v < topo->n_ranks; v++)
		if (w->state[v] == UNSEEN && !place_path(w, v))
			return v;
	return -1;
}

void
in_tree_take(InTreeWalk *w, int t)
{
	const Schedule *sched = w->sched;
	const InTree *tree = &sched->in_tree[t];
	if (t == 0 || tree->root != sched->in_tree[t - 1].root)
		memcpy(w->next, w->only, (size_t)sched->topo->n_vertices * sizeof *w->next);
	for (int i = 0; i < tree->n_links; i++)
		w->next[in_tree_vertex(sched, tree->link[i])] = tree->link[i];
	w->t = t;
}

bool
in_tree_next(InTreeWalk *w)
{
	if (w->t + 1 >= w->sched->n_in_trees)
		return false;
	in_tree_take(w, w->t + 1);
	in_tree_place(w);
	return true;
}

/* ---- trees of edges: checks ---- */

Status
root_tree_check(Ctx *ctx, const char *label, const Schedule *sched, int t)
{
	const InTree *tree = &sched->in_tree[t];
	const char *at = sched->coll == ALLGATHER ? "ends at" : "begins at";
	bool first = t == 0 || sched->in_tree[t - 1].root != tree->root;
	if (first && tree->n_links != sched->topo->n_ranks - 1)
		return fail(ctx, BAD_INPUT, "%s: trees[%d].edges: %d: want %d in the first tree of a root, one for "
		    "each other rank", label, t, tree->n_links, sched->topo->n_ranks - 1);
	for (int i = 0, before = -1; i < tree->n_links; i++) {
		int e = tree->link[i], rank = e < 0 || e >= sched->n_edges ? -1 : in_tree_vertex(sched, e);
		if (rank < 0)
			return fail(ctx, BAD_INPUT, "%s: trees[%d].edges[%d]: %d: want 0 to %d", label, t, i, e,
			    sched->n_edges - 1);
		if (rank == tree->root)
			return fail(ctx, BAD_INPUT, "%s: trees[%d].edges[%d]: edge %d %s the root, rank %d: want edges "
			    "of the other ranks", label, t, i, e, at, rank);
		if (rank <= before)
			return fail(ctx, BAD_INPUT, "%s: trees[%d].edges[%d]: edge %d %s rank %d, the one before %s "
			    "rank %d: want each rank once, ascending", label, t, i, e, at, rank, at, before);
		before = rank;
	}
	return OK;
}

Status
root_tree_check_joined(Ctx *ctx, const char *label, const Schedule *sched, int t, int stuck)
{
	int root = sched->in_tree[t].root;
	if (stuck < 0)
		return OK;
	bool out = sched->coll == ALLGATHER;
	return fail(ctx, UNVERIFIED, "%s: trees[%d]: its edges form a cycle: want a way from rank %d to rank %d", label,
	    t, out ? root : stuck, out ? stuck : root);
}

/* ---- trees of edges: as in a list ---- */

static bool
find_place(const Schedule *sched, const InTree *tree, Segment *out)
{
	Wide n = sched->topo->n_ranks;
	return frac_make((Wide)tree->root * tree->offset.den + tree->offset.num, n * tree->offset.den, &out->offset)
	    && frac_make(tree->length.num, n * tree->length.den, &out->length);
}

Status
root_trees_each(Ctx *ctx, const Schedule *sched, Status (*visit)(void *with, const Segment *tree), void *with)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	InTreeWalk w;
	Edge *edge;
	TRY(in_tree_walk(ctx, sched, &w));
	TRY(TEMP(ctx, edge, sched->topo->n_ranks));
	while (in_tree_next(&w)) {
		int n = w.n - 1;
		bool down = sched->coll == ALLGATHER;
		Segment tree = { .tree = { .root = w.order[0] } };
		if (!find_place(sched, &sched->in_tree[w.t], &tree))
			return fail(ctx, LIMIT, "%s: a tree needs more than 64 bits", sched->topo->name);
		for (int i = 1; i <= n; i++)
			edge[down ? i - 1 : n - i] = sched->edge[w.next[w.order[i]]];
		*(down ? &tree.tree.down : &tree.tree.up) = edge;
		*(down ? &tree.tree.n_down : &tree.tree.n_up) = n;
		TRY(visit(with, &tree));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
