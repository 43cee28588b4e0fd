/* The halves of pairs: every spanning tree from every root, up and down; and memory for the search. */
#include "plan/pack/few/pair_halves.h"

/* A spanning tree from rank 0: ranks as they are reached, and the links that lead to them, down and up. */
struct walk {
	int n, rank[TREES_RANKS], parent[TREES_RANKS];	/* parent: its place in the walk */
	int below[TREES_RANKS];		/* hops to the farthest rank below */
	uint64_t to[TREES_RANKS], back[TREES_RANKS];
};

static void
walk_tree(const struct pairs *p, int tree, struct walk *w)
{
	const struct trees *all = p->all;
	uint64_t rows = all->rows[tree];
	w->n = 1;
	w->rank[0] = w->parent[0] = w->below[0] = 0;
	for (int at = 0; at < w->n; at++) {
		int near = w->rank[at];
		for (uint64_t rest = rows & p->rows_of[near]; rest; rest &= rest - 1) {
			int row = __builtin_ctzll(rest), l = all->there[row], m = all->back[row], i = w->n++;
			bool along = p->from[l] == near;
			w->rank[i] = along ? p->to[l] : p->from[l];
			w->parent[i] = at;
			w->below[i] = 0;
			w->to[i] = UINT64_C(1) << (along ? l : m);
			w->back[i] = UINT64_C(1) << (along ? m : l);
		}
		rows &= ~p->rows_of[near];
	}
	for (int i = w->n - 1; i > 0; i--)
		if (w->below[w->parent[i]] < w->below[i] + 1)
			w->below[w->parent[i]] = w->below[i] + 1;
}

/* Hops from a rank to the farthest one that is not below it: up to its parent, and from there. */
static int
hops_above(const struct walk *w, const int *above, int i)
{
	int most = above[w->parent[i]];
	for (int k = 1; k < w->n; k++)
		if (k != i && w->parent[k] == w->parent[i] && w->below[k] + 1 > most)
			most = w->below[k] + 1;
	return most + 1;
}

/* One spanning tree from all roots: from that of a rank to that of the next one below, one link turns round. */
static void
orient(struct pairs *p, int tree)
{
	struct walk w;
	uint64_t up[TREES_RANKS] = { 0 }, down[TREES_RANKS] = { 0 };
	int above[TREES_RANKS] = { 0 };
	walk_tree(p, tree, &w);
	for (int i = 1; i < w.n; i++) {
		down[0] |= w.to[i];
		up[0] |= w.back[i];
	}
	for (int i = 0; i < w.n; i++) {
		int place = pair_place(p, w.rank[i], tree);
		if (i > 0) {
			uint64_t both = w.to[i] | w.back[i];
			down[i] = down[w.parent[i]] ^ both;
			up[i] = up[w.parent[i]] ^ both;
			above[i] = hops_above(&w, above, i);
		}
		p->down[place] = down[i];
		p->up[place] = up[i];
		p->height[place] = (unsigned char)(above[i] > w.below[i] ? above[i] : w.below[i]);
	}
}

static Status
new_level(struct pairs *p, struct pair_level *level)
{
	int n = p->all->n, words = TREES_WORDS * p->all->n_blocks;
	for (int i = 0; i < PAIRS_MOST; i++)
		TRY(TEMP(p->ctx, level->left[i], words));
	TRY(TEMP(p->ctx, level->up_tree, n));
	TRY(TEMP(p->ctx, level->down_tree, n));
	TRY(TEMP(p->ctx, level->up, n));
	TRY(TEMP(p->ctx, level->down, n));
	TRY(TEMP(p->ctx, level->fit, words));
	for (int l = 0; l < p->n_links; l++)
		TRY(TEMP(p->ctx, level->with[l], words));
	return OK;
}

Status
pairs_new(Ctx *ctx, const struct trees *all, struct pairs **out)
{
	const Topology *topo = all->topo;
	struct pairs *p;
	TRY(TEMP(ctx, p, 1));
	*p = (struct pairs){ .ctx = ctx, .all = all, .n = topo->n_ranks, .n_links = topo->n_links };
	for (int l = 0; l < p->n_links; l++) {
		p->capacity[l] = (int)all->capacity[all->row_of[l]];
		p->every |= UINT64_C(1) << l;
		p->from[l] = (unsigned char)topo->link[l].from;
		p->to[l] = (unsigned char)topo->link[l].to;
		p->into[p->to[l]] |= UINT64_C(1) << l;
		p->out_of[p->from[l]] |= UINT64_C(1) << l;
		p->rows_of[p->from[l]] |= UINT64_C(1) << all->row_of[l];
	}
	TRY(TEMP(ctx, p->up, (size_t)p->n * (size_t)all->n));
	TRY(TEMP(ctx, p->down, (size_t)p->n * (size_t)all->n));
	TRY(TEMP(ctx, p->height, (size_t)p->n * (size_t)all->n));
	for (int t = 0; t < all->n; t++)
		orient(p, t);
	for (int j = 0; j < PAIRS_MOST; j++)
		TRY(new_level(p, &p->level[j]));
	*out = p;
	return OK;
}
