/* The halves of pairs: every spanning tree from every root, up and down; and memory for the search. */
#include "plan/pack/pair_halves.h"

/* One spanning tree from one root: breadth-first over its rows. */
static void
orient(struct pairs *p, int root, int tree)
{
	const struct trees *all = p->all;
	uint64_t rows = all->rows[tree], up = 0, down = 0;
	unsigned reached = 1u << root;
	int at = pair_place(p, root, tree), hops = 0;
	for (unsigned last = reached; rows; hops++) {
		unsigned found = 0;
		for (; last; last &= last - 1) {
			int near = __builtin_ctz(last);
			for (uint64_t rest = rows & p->rows_of[near]; rest; rest &= rest - 1) {
				int row = __builtin_ctzll(rest), l = all->there[row], m = all->back[row];
				bool along = p->from[l] == near;
				down |= UINT64_C(1) << (along ? l : m);
				up |= UINT64_C(1) << (along ? m : l);
				found |= 1u << (along ? p->to[l] : p->from[l]);
			}
			rows &= ~p->rows_of[near];
		}
		last = found;
	}
	p->down[at] = down;
	p->up[at] = up;
	p->height[at] = (unsigned char)hops;
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
	for (int root = 0; root < p->n; root++)
		for (int t = 0; t < all->n; t++)
			orient(p, root, t);
	for (int j = 0; j < PAIRS_MOST; j++)
		TRY(new_level(p, &p->level[j]));
	*out = p;
	return OK;
}
