/* What a limit on depth or on the number of trees costs: plan under every limit that makes a difference, and keep the
 * Pareto-optimal plans. */
#include "plan/plan.h"

#include <stdlib.h>

struct frontier {
	Ctx *ctx;
	const Planning *in;
	KnownPlans known[2];	/* for Planning */
	ParetoPoint *point;
	int n, capacity;
};

static Status
add_point(struct frontier *f, ParetoPoint point)
{
	if (f->n == f->capacity) {
		ParetoPoint *grown;
		TRY(NEW(f->ctx, grown, 2 * (size_t)f->capacity + 16));
		for (int i = 0; i < f->n; i++)
			grown[i] = f->point[i];
		f->point = grown;
		f->capacity = 2 * f->capacity + 16;
	}
	f->point[f->n++] = point;
	return OK;
}

/* One plan, as compile makes it within these limits. False in *found: there is none. */
static Status
plan_one(struct frontier *f, int max_depth, int max_trees, ParetoPoint *out, bool *found)
{
	ArenaMark run = arena_mark(&f->ctx->run), scratch = arena_mark(&f->ctx->scratch);
	Ask ask = *f->in->ask;
	Planning in = *f->in;
	Plan plan;
	int *work;
	ask.max_depth = max_depth;
	ask.max_trees = max_trees;
	in.ask = &ask;
	in.known = f->known;
	f->known[0].grown = f->known[1].grown = false;
	Status status = plan_trees(f->ctx, &in, &plan);
	*found = status == OK && pack_rate(plan.pack, ask.coll, in.topo->n_ranks, &out->rate);
	if (status == LIMIT && (max_depth || max_trees)) {
		f->ctx->error = (Error){ 0 };
		status = OK;
	}
	TRY(status);
	if (*found) {
		TRY(TEMP(f->ctx, work, in.topo->n_ranks));
		out->trees = plan.pack->n_trees;
		out->depth = pack_depth(plan.pack, work);
	}
	arena_release(&f->ctx->scratch, scratch);
	if (!f->known[0].grown && !f->known[1].grown)
		arena_release(&f->ctx->run, run);
	return OK;
}

/* A point whose own trees and depth, as limits, give that point: the plan within them, if need be within those of that
 * plan, and so on. Limits only become lower, so it ends. */
static Status
plan_point(struct frontier *f, int max_depth, int max_trees, ParetoPoint *out, bool *found)
{
	ParetoPoint point;
	TRY(plan_one(f, max_depth, max_trees, out, found));
	while (*found) {
		point = *out;
		TRY(plan_one(f, point.depth, point.trees, out, found));
		if (*found && out->depth == point.depth && out->trees == point.trees)
			break;
	}
	return OK;
}

static bool
dominates(const ParetoPoint *a, const ParetoPoint *b)
{
	int rate = frac_cmp(a->rate, b->rate);
	bool as_good = rate >= 0 && a->trees <= b->trees && a->depth <= b->depth;
	return as_good && (rate > 0 || a->trees < b->trees || a->depth < b->depth);
}

static int
by_rate(const void *a, const void *b)
{
	const ParetoPoint *p = a, *q = b;
	int rate = frac_cmp(q->rate, p->rate);
	if (rate)
		return rate;
	return p->trees != q->trees ? (p->trees > q->trees) - (p->trees < q->trees)
	    : (p->depth > q->depth) - (p->depth < q->depth);
}

/* The Pareto-optimal points, each once. */
static int
keep_best(ParetoPoint *point, int n)
{
	int kept = 0;
	qsort(point, (size_t)n, sizeof *point, by_rate);
	for (int i = 0; i < n; i++) {
		bool dominated = i > 0 && by_rate(&point[i - 1], &point[i]) == 0;
		for (int k = 0; k < kept && !dominated; k++)
			dominated = dominates(&point[k], &point[i]);
		if (!dominated)
			point[kept++] = point[i];
	}
	return kept;
}

/* The next number of trees to try: one less, or where there are many, a sixth less. */
static int
next_fewer(int trees, int least)
{
	return trees - ((trees - least) / 6 > 1 ? (trees - least) / 6 : 1);
}

/* Plans of this depth with fewer and fewer trees. */
static Status
fewer_trees(struct frontier *f, int depth, int trees, int least)
{
	ParetoPoint point;
	bool found = true;
	while (trees > least && found && progress(f->ctx, "pareto: depth %d, %d trees", depth, trees) > 0) {
		trees = next_fewer(trees, least);
		TRY(plan_point(f, depth, trees, &point, &found));
		if (found)
			TRY(add_point(f, point));
		trees = found && point.trees < trees ? point.trees : trees;
	}
	return OK;
}

Status
plan_pareto(Ctx *ctx, const Planning *in, ParetoPoint **out, int *n)
{
	const Topology *topo = in->topo;
	const Ask *ask = in->ask;
	struct frontier f = { .ctx = ctx, .in = in };
	int least_depth, least_trees;
	ParetoPoint best;
	bool found;
	TRY(plan_least(ctx, topo, ask, &least_depth, &least_trees));
	TRY(plan_point(&f, ask->max_depth, ask->max_trees, &best, &found));
	if (!found)
		return fail(ctx, LIMIT, "%s: the rate needs more than 64 bits", topo->name);
	TRY(add_point(&f, best));
	TRY(fewer_trees(&f, ask->max_depth, best.trees, least_trees));
	for (int depth = best.depth - 1; depth >= least_depth; depth--) {
		if (progress(ctx, "pareto: depth %d", depth) <= 0)
			break;
		TRY(plan_point(&f, depth, ask->max_trees, &best, &found));
		if (!found)
			continue;
		TRY(add_point(&f, best));
		depth = best.depth < depth ? best.depth : depth;
		TRY(fewer_trees(&f, depth, best.trees, least_trees));
	}
	*n = keep_best(f.point, f.n);
	*out = f.point;
	return OK;
}
