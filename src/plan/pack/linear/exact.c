/* The linear program over trees, from start to end: the optimal rate by column generation, what proves it, and then
 * fewer trees.
 *
 * Allreduce first packs trees that use both directions of each edge; only if those stay below the bound, pairs of
 * arborescences. */
#include "plan/pack/linear/linear.h"
#include "plan/pack/linear/master.h"

/* Might pairs of arborescences have a higher rate? A rounded rate is near enough to the bound or it is not. */
static bool
wants_pairs(struct master *m, const Bound *bound, const Packing *pack)
{
	Frac rate;
	if (m->coll != ALLREDUCE || m->cheapest.paired || !pack)
		return false;
	if (m->proven)
		return frac_cmp(m->optimum, bound->rate) < 0;
	return !pack_rate(pack, m->coll, m->topo->n_ranks, &rate)
	    || frac_double(rate) < (1 - 2 * NEAR) * frac_double(bound->rate);
}

/* The rate less the tolerance, in units of a demand; false: it needs too many digits. */
static bool
set_target(struct master *m, const Packing *pack, Frac tolerance)
{
	Frac keep, rate, share = { collective_shares(m->coll, m->topo->n_ranks), 1 };
	if (m->proven)
		rate = m->optimum;
	else if (!pack_rate(pack, m->coll, m->topo->n_ranks, &rate))
		return false;
	return frac_sub(FRAC_ONE, tolerance, &keep) && frac_mul(rate, keep, &rate) && frac_div(rate, share, &rate)
	    && frac_div(rate, (Frac){ m->unit, 1 }, &m->target) && m->target.num >> 40 == 0 && m->target.den >> 40 == 0;
}

static const char *
how_sure(const struct master *m, const Ask *ask)
{
	if (m->cut_short)
		return "cut short";
	if (m->shares && !m->at_bound)
		return "sharing links";
	if (ask->max_depth)
		return "of limited depth";
	return m->proven ? "the optimum is proven" : "rounded";
}

/* Trees to start from. */
static Status
add_known(struct master *m, const Packing *pool, const KnownTrees *known)
{
	bool added;
	for (int t = 0; pool && t < pool->n_trees; t++)
		TRY(master_add_tree(m, 0, &pool->tree[t], &added));
	for (int c = 0; known && c < known->n; c++)
		if (m->cheapest.max_depth == 0 || known->column[c].depth <= m->cheapest.max_depth)
			TRY(master_add_tree(m, known->column[c].orbit, &known->column[c].tree, &added));
	return OK;
}

/* *pack: NULL if there is no solution. */
static Status
best_rate(struct master *m, const Bound *bound, const Packing *pool, const KnownTrees *known, const Ask *ask,
    Packing **pack)
{
	Packing *paired;
	TRY(columns_start(m));
	TRY(add_known(m, pool, known));
	TRY(master_open(m, ask));
	TRY(columns_generate(m, bound, pack));
	if (m->cut_short || m->enough || !wants_pairs(m, bound, *pack))
		return OK;
	m->cheapest.paired = true;
	TRY(columns_generate(m, bound, &paired));
	*pack = paired ? paired : *pack;
	return OK;
}

/* What the linear program proves of trees of any kind. Trees of limited depth or of a family, and prices where trees
 * share links, prove nothing about others. */
static Status
prove_bound(struct master *m, const Bound *bound, const Ask *ask, Bound *proof)
{
	if (m->solved && m->at_bound) {
		*proof = *bound;
		return OK;
	}
	if (m->near_bound || !m->solved || ask->max_depth || m->shares || m->cut_short || m->cheapest.family)
		return OK;
	return m->proven ? basis_bound(m, bound, proof) : columns_bound(m, proof);
}

static Status
fewer_trees(struct master *m, const Ask *ask, Packing **pack)
{
	bool exact = (m->proven || ask->max_depth || m->shares) && !m->cut_short;
	if (!*pack)
		return OK;
	if (exact && ask->minimise && set_target(m, *pack, ask->tolerance))
		TRY(sparsify(m, pack));
	return m->solved && ask->max_trees && (*pack)->n_trees > ask->max_trees ? sparsify_to(m, ask->max_trees, pack)
	    : OK;
}

static Status
solve(struct master *m, const Bound *bound, const Packing *pool, KnownTrees *known, const Ask *ask, Packing **pack,
    Bound *proof, Frac *optimum)
{
	TRY(best_rate(m, bound, pool, known, ask, pack));
	*optimum = m->proven && !m->cut_short ? m->optimum : FRAC_ZERO;
	TRY(prove_bound(m, bound, ask, proof));
	pack_note_reached(*pack, m->coll, m->topo->n_ranks, proof);
	TRY(fewer_trees(m, ask, pack));
	if (known)
		*known = (KnownTrees){ .column = m->column, .n = m->n_columns };
	return master_close(m);
}

/* *optimum: of trees of the family; FRAC_ZERO where it is not proven. */
static Status
pack_best(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Family *family,
    const Packing *pool, KnownTrees *known, const Ask *ask, Packing **out, Bound *proof, Frac *optimum)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct master m;
	Packing *pack = NULL;
	TRY(master_new(ctx, topo, sym, family, ask, &m));
	Status status = solve(&m, bound, pool, known, ask, &pack, proof, optimum);
	lp_release();
	TRY(status);
	/* Each image of a tree is a tree. */
	if (pack)
		log_verbose(ctx, "lp: %d rows, %d of %lld %s generated, %s", m.n_rows, pack->n_trees,
		    (long long)m.n_columns * sym->size, family ? family->trees : "trees", how_sure(&m, ask));
	if (pack)
		pack->cells = (int64_t)m.n_rows * m.n_columns;
	arena_release(&ctx->scratch, mark);
	*out = pack;
	return OK;
}

Status
pack_exact(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Packing *pool,
    const Ask *ask, Packing **out, Bound *proof)
{
	Frac unused;
	return pack_best(ctx, topo, sym, bound, NULL, pool, NULL, ask, out, proof, &unused);
}

Status
pack_exact_from(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, KnownTrees *known,
    const Ask *ask, Packing **out, Bound *proof)
{
	Frac unused;
	return pack_best(ctx, topo, sym, bound, NULL, NULL, known, ask, out, proof, &unused);
}

Status
pack_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Family *family,
    const Ask *ask, Packing **out, Bound *proof, Frac *optimum)
{
	return pack_best(ctx, topo, sym, bound, family, NULL, NULL, ask, out, proof, optimum);
}
