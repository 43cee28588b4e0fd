#include "plan/pack/few/pair_cuts.h"
#include "plan/pack/few/pair_search.h"
#include "plan/pack/few/pairs.h"

static Status
make_packing(const struct pairs *p, Packing **out)
{
	Packing *pack;
	TRY(pack_new(p->ctx, p->k, false, &pack));
	if (!frac_make(topo_link_unit(p->all->topo), p->w.den, &pack->unit))
		return OK;
	for (int j = 0; j < p->k; j++) {
		const struct pick *pick = &p->pick[j];
		TRY(trees_make_pair(p->all, pick->root, p->up[pair_place(p, pick->root, pick->up)],
		    p->down[pair_place(p, pick->root, pick->down)], &pack->tree[j]));
		pack->weight[j] = p->w.weight[j];
	}
	pack->n_trees = p->k;
	TRY(pack_check(p->ctx, p->all->topo, pack));
	*out = pack;
	return OK;
}

/* p->k pairs: each choice of weights with few steps, then those that are left with eight times as many. *none: there
 * are no such pairs. */
static Status
try_count(struct pairs *p, const struct pair_goal *goal, Packing **out, bool *none)
{
	enum { FIRST_STEPS = 1 << 13, MORE = 8 };
	struct weights *w;
	int n, left;
	int64_t steps = goal->steps;
	bool all;
	TRY(pairs_weigh(p, goal, &w, &n, &all));
	for (int64_t each = FIRST_STEPS; n > 0 && steps > 0; each *= MORE) {
		left = 0;
		for (int i = 0; i < n; i++) {
			int64_t here = each < steps ? each : steps;
			if (progress(p->ctx, "fewest trees: trying %d pairs", p->k) <= 0)
				steps = here = 0;
			p->steps = here;
			if (pairs_begin(p, &w[i]) && p->steps > 0)
				pairs_place(p);
			if (p->found)
				return make_packing(p, out);
			steps -= here - p->steps;
			if (p->steps <= 0)
				w[left++] = w[i];
		}
		n = left;
	}
	*none = all && n == 0;
	return OK;
}

Status
pairs_fewest(Ctx *ctx, const struct trees *all, const struct pair_goal *goal, Packing **out, int *least)
{
	struct pairs *p;
	Packing *found = NULL;
	*least = goal->from;
	if (all->coll != ALLREDUCE || all->topo->n_links > PAIRS_LINKS)
		return OK;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(pairs_new(ctx, all, &p));
	TRY(pairs_count_parts(p));
	for (p->k = goal->from; p->k <= goal->to && p->k <= PAIRS_MOST && !found; p->k++) {
		ArenaMark one = arena_mark(&ctx->scratch);
		struct pair_goal here = *goal;
		bool none = false, even = goal->flat_from && p->k >= goal->flat_from;
		bool flat = even && goal->flat_depth < goal->max_depth;
		if (flat) {
			here.max_depth = goal->flat_depth;
			here.steps = LIMIT_EVEN_STEPS;
		}
		p->max_depth = here.max_depth;
		TRY(try_count(p, &here, &found, &none));
		*least += none && !flat && *least == p->k;
		arena_release(&ctx->scratch, one);
	}
	arena_release(&ctx->scratch, mark);
	*out = found ? found : *out;
	return OK;
}
