/* The halves of pairs: every spanning tree from every root, up and down; and memory for the search. */
#include "plan/pack/pair_halves.h"

enum { TOP = 1 << (PAIRS_DEGREE_BITS - 1) };

/* A row whose one end was reached, in the direction away from it. */
static void
add_hop(struct pairs *p, int at, int row, bool along, int *hops)
{
	const struct trees *all = p->all;
	const Link *link = &all->topo->link[all->there[row]];
	int near = along ? link->from : link->to, far = along ? link->to : link->from;
	hops[far] = hops[near] + 1;
	p->down[at] |= UINT64_C(1) << (along ? all->there[row] : all->back[row]);
	p->up[at] |= UINT64_C(1) << (along ? all->back[row] : all->there[row]);
	if (hops[far] > p->height[at])
		p->height[at] = (unsigned char)hops[far];
}

/* One spanning tree from one root. */
static void
orient(struct pairs *p, int root, int tree)
{
	int hops[TREES_RANKS];
	uint64_t left = p->all->rows[tree];
	for (int r = 0; r < p->n; r++)
		hops[r] = r == root ? 0 : -1;
	while (left)
		for (uint64_t rest = left; rest; rest &= rest - 1) {
			int row = __builtin_ctzll(rest);
			const Link *link = &p->all->topo->link[p->all->there[row]];
			if ((hops[link->from] < 0) == (hops[link->to] < 0))
				continue;
			add_hop(p, pair_place(p, root, tree), row, hops[link->from] >= 0, hops);
			left ^= rest & -rest;
		}
}

static void
count_degrees(struct pairs *p)
{
	for (int r = 0; r < p->n; r++)
		p->tops |= (uint64_t)TOP << r * PAIRS_DEGREE_BITS;
	for (int t = 0; t < p->all->n; t++)
		for (uint64_t rest = p->all->rows[t]; rest; rest &= rest - 1) {
			const Link *link = &p->all->topo->link[p->all->there[__builtin_ctzll(rest)]];
			p->degrees[t] += UINT64_C(1) << link->from * PAIRS_DEGREE_BITS;
			p->degrees[t] += UINT64_C(1) << link->to * PAIRS_DEGREE_BITS;
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
pairs_new(Ctx *ctx, const struct trees *all, int max_depth, struct pairs **out)
{
	const Topology *topo = all->topo;
	struct pairs *p;
	TRY(TEMP(ctx, p, 1));
	*p = (struct pairs){ .ctx = ctx, .all = all, .n = topo->n_ranks, .n_links = topo->n_links,
	    .max_depth = max_depth };
	for (int l = 0; l < p->n_links; l++) {
		p->capacity[l] = (int)all->capacity[all->row_of[l]];
		p->every |= UINT64_C(1) << l;
		p->from[l] = (unsigned char)topo->link[l].from;
		p->to[l] = (unsigned char)topo->link[l].to;
		p->into[p->to[l]] |= UINT64_C(1) << l;
		p->out_of[p->from[l]] |= UINT64_C(1) << l;
	}
	TRY(TEMP(ctx, p->up, (size_t)p->n * (size_t)all->n));
	TRY(TEMP(ctx, p->down, (size_t)p->n * (size_t)all->n));
	TRY(TEMP(ctx, p->degrees, all->n));
	TRY(TEMP(ctx, p->height, (size_t)p->n * (size_t)all->n));
	for (int root = 0; root < p->n; root++)
		for (int t = 0; t < all->n; t++)
			orient(p, root, t);
	count_degrees(p);
	for (int j = 0; j < PAIRS_MOST; j++)
		TRY(new_level(p, &p->level[j]));
	*out = p;
	return OK;
}
