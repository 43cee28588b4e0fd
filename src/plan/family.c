/* Planning with one family of trees: the linear program over it, and how far its optimum is from what other trees
 * reach. */
#include "graph/graph.h"
#include "plan/family.h"
#include "plan/pack/linear/linear.h"
#include "plan/work.h"

enum { MOST_RANKS = 32 };	/* one of each orbit: for more of them the program over all trees takes seconds */

Status
plan_prove(Ctx *ctx, const Planning *in, Bound *proof, Frac *others)
{
	Ask any = *in->ask;
	Topology topo = *in->topo;	/* a bound is of all routes */
	Packing *pack;
	topo.route = NULL;
	any.max_depth = any.max_trees = 0;
	any.minimise = false;
	*others = FRAC_ZERO;
	if (in->sym->n_representatives > MOST_RANKS || progress(ctx, "trees of any kind") <= 0)
		return OK;
	Status status = pack_family(ctx, &topo, in->sym, in->bound, NULL, &any, &pack, proof, others);
	if (status == LIMIT) {
		/* More of those trees than a schedule may have: their optimum is not known. */
		ctx->error = (Error){ .status = OK };
		*proof = *in->bound;
		return OK;
	}
	TRY(status);
	if (others->num == 0 && pack && !pack_rate(pack, any.coll, in->topo->n_ranks, others))
		*others = FRAC_ZERO;
	return OK;
}

/* How far the optimum of the family is below the bound; where it is not proven, the best rate found. */
static void
log_loss(Ctx *ctx, const Ask *ask, Frac rate, bool proven, const Bound *proof, Frac others)
{
	const char *name = ask->algorithm;
	const char *what = proven ? "the best is" : "the best found is";
	double loss = 100 - 100 * frac_double(rate) / frac_double(proof->rate);
	if (frac_cmp(rate, proof->rate) == 0)
		log_verbose(ctx, "%s: %s at the bound, no algorithm%s is faster", name, what,
		    bound_claim(proof, ask->coll));
	else if (frac_cmp(others, proof->rate) == 0)
		log_verbose(ctx, "%s: %s %.3g %% below the bound, which trees of any kind reach", name, what, loss);
	else if (others.num > 0)
		log_verbose(ctx, "%s: %s %.3g %% below the bound; trees of any kind reach %.6g GB/s", name, what, loss,
		    frac_double(others) / 1e9);
	else
		log_verbose(ctx, "%s: %s %.3g %% below the bound; the rate of trees of any kind was not computed", name,
		    what, loss);
}

/* Once for all algorithms that share it. */
static Status
prove_once(Ctx *ctx, const Planning *in, Bound *proof, Frac *others)
{
	Proven own = { .known = false }, *proven = in->proven ? in->proven : &own;
	if (!proven->known) {
		proven->proof = *proof;
		TRY(plan_prove(ctx, in, &proven->proof, &proven->others));
		proven->known = true;
	}
	*proof = proven->proof;
	*others = proven->others;
	return OK;
}

Status
plan_compare(Ctx *ctx, const Planning *in, Frac rate, Plan *plan)
{
	Frac others = FRAC_ZERO;
	if (frac_cmp(rate, in->bound->rate) < 0)
		TRY(prove_once(ctx, in, &plan->proof, &others));
	log_loss(ctx, in->ask, rate, plan->best.num > 0, &plan->proof, others);
	return OK;
}

Status
plan_family(Ctx *ctx, const Planning *in, const Family *family, Plan *out)
{
	const Topology *topo = in->topo;
	const Ask *ask = in->ask;
	Frac rate;
	*out = (Plan){ .proof = *in->bound, .best = FRAC_ZERO };
	TRY(plan_check_size(ctx, topo, ask->coll));
	TRY(work_check_soon(ctx, in));
	TRY(pack_family(ctx, topo, in->sym, in->bound, family, ask, &out->pack, &out->proof, &out->best));
	if (!out->pack)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: too large for the linear program", topo->name,
		    collective_name(ask->coll), topo->n_ranks);
	if (out->best.num > 0)
		rate = out->best;
	else if (!pack_rate(out->pack, ask->coll, topo->n_ranks, &rate))
		rate = FRAC_ZERO;
	return plan_compare(ctx, in, rate, out);
}
