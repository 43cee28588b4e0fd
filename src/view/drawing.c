/* A tree with the children of each rank, as it is drawn. */
#include "base/hash.h"
#include "view/parts.h"

Status
drawing_new(Ctx *ctx, const Explained *e, Drawing drawing[2])
{
	int n = e->topo->n_ranks;
	for (int i = 0; i < 2; i++) {
		Drawing *d = &drawing[i];
		TRY(NEW_EACH(ctx, n, d->parent, d->first, d->next, d->edge, d->up_edge, d->hash, d->n_isomorphic));
		TRY(NEW_EACH(ctx, n, d->size, d->order));
	}
	return OK;
}

/* The ranks of a phase, parents first, children in the order of their edges. */
static void
add_edges(const Tree *tree, bool down, Drawing *d)
{
	int n = down ? tree->n_down : tree->n_up;
	d->order[d->n++] = tree->root;
	for (int i = 0; i < n; i++) {
		const Edge *edge = down ? &tree->down[i] : &tree->up[n - 1 - i];
		int parent = down ? edge->src : edge->dst, child = down ? edge->dst : edge->src;
		d->parent[child] = parent;
		d->edge[child] = edge;
		d->order[d->n++] = child;
	}
	/* Backwards, since each child is put before its siblings. */
	for (int i = d->n - 1; i > 0; i--) {
		int child = d->order[i], parent = d->parent[child];
		d->next[child] = d->first[parent];
		d->first[parent] = child;
		d->size[parent] += d->size[child];
	}
}

/* Of a subtree and the edge above it: classes and lengths of routes, whatever the order of children. */
static uint64_t
hash_subtree(const Explained *e, const Drawing *d, int r)
{
	uint64_t hash = d->hash[r];
	for (int i = 0; d->edge[r] && i < d->edge[r]->n_links; i++)
		hash = hash64(hash + (uint64_t)e->topo->link[d->edge[r]->link[i]].class + 1);
	return hash64(hash ^ (uint64_t)d->size[r]);
}

/* Backwards in the order, so children come before parents and later siblings before earlier ones. */
static void
count_isomorphic(const Explained *e, Drawing *d)
{
	for (int i = d->n - 1; i >= 0; i--) {
		int r = d->order[i], next = d->next[r];
		d->hash[r] = hash_subtree(e, d, r);
		if (d->parent[r] >= 0)
			d->hash[d->parent[r]] += hash64(d->hash[r]);
		d->n_isomorphic[r] = next >= 0 && d->hash[next] == d->hash[r] ? d->n_isomorphic[next] + 1 : 0;
	}
}

static void
draw_phase(const Explained *e, const Tree *tree, bool down, Drawing *d)
{
	int n = e->topo->n_ranks;
	for (int r = 0; r < n; r++) {
		d->parent[r] = d->first[r] = d->next[r] = -1;
		d->edge[r] = d->up_edge[r] = NULL;
		d->hash[r] = 0;
		d->size[r] = 1;
	}
	d->root = tree->root;
	d->n = 0;
	d->down = down;
	d->up = !down;
	add_edges(tree, down, d);
	count_isomorphic(e, d);
}

/* Is the tree of phase up that of phase down, reversed? */
static bool
mirrors(const Tree *tree, const Drawing *down)
{
	if (tree->n_up != tree->n_down)
		return false;
	for (int i = 0; i < tree->n_up; i++)
		if (down->parent[tree->up[i].src] != tree->up[i].dst)
			return false;
	return true;
}

int
draw_tree(const Explained *e, int t, Drawing drawing[2])
{
	const Tree *tree = &e->sched->segment[t].tree;
	int n = 0;
	if (tree->n_up || !tree->n_down)
		draw_phase(e, tree, false, &drawing[n++]);
	if (!tree->n_down)
		return n;
	draw_phase(e, tree, true, &drawing[n]);
	if (!n || !mirrors(tree, &drawing[n]))
		return n + 1;
	draw_phase(e, tree, true, &drawing[0]);
	drawing[0].up = true;
	for (int i = 0; i < tree->n_up; i++)
		drawing[0].up_edge[tree->up[i].src] = &tree->up[i];
	return 1;
}

bool
drawing_is_path(const Drawing *d)
{
	for (int i = 0; i < d->n; i++)
		if (d->next[d->order[i]] >= 0)
			return false;
	return true;
}
