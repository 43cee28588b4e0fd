/* The algorithms of the literature (classic/) as rows of the table. */
#include "plan/family.h"

static void
log_cost(Ctx *ctx, const Algorithm *row, const Shape *shape)
{
	Cost cost;
	row->classic->cost(shape, &cost);
	log_verbose(ctx, "%s: by its formula %d steps, depth %d, and %.6g of the data through the busiest port",
	    row->name, cost.steps, cost.depth, frac_double(cost.load));
}

Status
plan_classic(Ctx *ctx, const Planning *in, Plan *out)
{
	const Algorithm *row = in->row;
	const Topology *topo = in->topo;
	Frac rate = FRAC_ZERO;
	Shape shape;
	bool best;
	*out = (Plan){ .proof = *in->bound, .best = FRAC_ZERO };
	TRY(classic_shape(ctx, topo, in->ask, &shape));
	TRY(classic_pack(ctx, topo, row->classic, &shape, in->ask->root, row->trees, &out->pack, &best));
	log_cost(ctx, row, &shape);
	if (pack_rate(out->pack, in->ask->coll, topo->n_ranks, &rate)
	    && (best || frac_cmp(rate, in->bound->rate) >= 0))
		out->best = rate;
	return plan_compare(ctx, in, rate, out);
}
