/* Algorithms other than trees of any kind: the linear program over a family of trees, and how far its optimum is from what others
 * reach. */
#include "family.h"

#include "passes.h"

enum { MOST_RANKS = 32 };	/* that are not alike: the program over all trees takes seconds for so many */

Status
family_use(Cheapest *c, AlgorithmKind algorithm, const Symmetry *sym)
{
	switch (algorithm) {
	case ALGORITHM_ONEHOP:
		return onehop_use(c);
	case ALGORITHM_THREEPHASE:
		return threephase_use(c, sym);
	default:
		return OK;
	}
}

static bool
one_server(const Topology *topo)
{
	for (int v = 1; v < topo->n_ranks; v++)
		if (topo->vertex[v].node != topo->vertex[0].node)
			return false;
	return true;
}

/* The bound need not be what trees of any kind reach: of few ranks the program over all of them says what that is. */
static Status
prove_others(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask, Bound *proof, Frac *others)
{
	Request any = *ask;
	Packing *pack;
	any.algorithm = ALGORITHM_TREES;
	any.minimise = false;
	*others = FRAC_ZERO;
	if (sym->n_leads > MOST_RANKS || progress(ctx, "trees of any kind") <= 0)
		return OK;
	TRY(pack_family(ctx, topo, sym, bound, &any, &pack, proof, others));
	if (others->num == 0 && pack && !pack_rate(pack, ask->coll, topo->n_ranks, others))
		*others = FRAC_ZERO;
	return OK;
}

/* What the optimum of the family loses; where that is not proven, what was found. */
static void
tell_loss(Ctx *ctx, const Request *ask, Frac rate, bool proven, const Bound *proof, Frac others)
{
	const char *name = algorithm_name(ask->algorithm), *what = proven ? "the best is" : "what was found is";
	double loss = 100 - 100 * frac_double(rate) / frac_double(proof->rate);
	if (frac_cmp(rate, proof->rate) == 0)
		talk(ctx, "%s: %s at the bound, no algorithm is faster", name, what);
	else if (frac_cmp(others, proof->rate) == 0)
		talk(ctx, "%s: %s %.3g %% below the bound, which trees of any kind reach", name, what, loss);
	else if (others.num > 0)
		talk(ctx, "%s: %s %.3g %% below the bound; trees of any kind reach %.6g GB/s", name, what, loss, frac_double(others) / 1e9);
	else
		talk(ctx, "%s: %s %.3g %% below the bound; what trees of any kind reach was not asked", name, what, loss);
}

static Status
plan_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask, Packing **out,
    Bound *proof, Frac *best)
{
	Packing *pack = NULL;
	Frac rate, others = FRAC_ZERO;
	TRY(pack_family(ctx, topo, sym, bound, ask, &pack, proof, best));
	if (!pack)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: too large for the linear program", topo->name,
		    collective_name(ask->coll), topo->n_ranks);
	if (best->num > 0)
		rate = *best;
	else if (!pack_rate(pack, ask->coll, topo->n_ranks, &rate))
		rate = FRAC_ZERO;
	if (frac_cmp(rate, bound->rate) < 0)
		TRY(prove_others(ctx, topo, sym, bound, ask, proof, &others));
	tell_loss(ctx, ask, rate, best->num > 0, proof, others);
	*out = pack;
	return OK;
}

Status
plan_algorithm(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask, Packing **out,
    Bound *proof, Frac *best)
{
	Request any = *ask;
	Frac rate;
	*proof = *bound;
	*best = FRAC_ZERO;
	TRY(plan_check_size(ctx, topo, ask->coll));
	/* Of one server there is only the first phase and the last: any tree. */
	if (ask->algorithm != ALGORITHM_TREES && !(ask->algorithm == ALGORITHM_THREEPHASE && one_server(topo)))
		return plan_family(ctx, topo, sym, bound, ask, out, proof, best);
	any.algorithm = ALGORITHM_TREES;
	TRY(plan_trees(ctx, topo, sym, bound, &any, out, proof));
	if (pack_rate(*out, ask->coll, topo->n_ranks, &rate) && frac_cmp(rate, proof->rate) == 0)
		*best = rate;
	return OK;
}
