/* The optimal rate over all trees, by column generation in exact arithmetic; and few trees for it. */
#ifndef BLINK_PLAN_PACK_LINEAR_LINEAR_H
#define BLINK_PLAN_PACK_LINEAR_LINEAR_H

#include "graph/graph.h"
#include "model/model.h"

/* What a linear program knew of trees at its end: one that follows may start from them. In the run arena. */
typedef struct {
	const struct column *column;
	int n;
} KnownTrees;

/* The optimal rate over all trees, exactly, and what proves it. All collectives.
 * pool: more trees to start from, of a collective with one demand; may be NULL.
 * *out: the optimum; rounded, with a rate a little below it, where its fractions need too many digits; NULL if GLPK
 * fails.
 * *proof: `bound`; or, where that is not tight, prices or lengths that prove the optimum, or one a little above it
 * where *out is rounded. Its `reached` is set if the optimum is at *proof, however many trees *out keeps of it.
 * Fails: NO_MEMORY. Cost: a linear program of n_links + n_demands rows for each round of new trees. */
Status pack_exact(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Packing *pool,
    const Ask *ask, Packing **out, Bound *proof);

/* As pack_exact, starting from the trees of `known` that are no deeper than ask->max_depth: those of a program over the
 * same topology, symmetries and collective. Afterwards `known` has this program's. */
Status pack_exact_from(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, KnownTrees *known,
    const Ask *ask, Packing **out, Bound *proof);

/* As pack_exact, over the trees of a family; NULL: over all trees.
 * *proof: stays; family NULL: as pack_exact. *optimum: of these trees, bytes/s; FRAC_ZERO where it is not proven.
 * Fails: INFEASIBLE there are no such trees. */
Status pack_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Family *family,
    const Ask *ask, Packing **out, Bound *proof, Frac *optimum);

/* A bound of an allreduce by pairs of trees, where links are of few kinds: *proof, if it is lower than that.
 * Fails: NO_MEMORY. Cost: a cheapest pair of trees from each rank. */
Status pack_kind_prices(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Bound *proof);

/* Are few trees looked for by a tableau (tableau.c), next to a basis of the least depth? Of an allgather or
 * reducescatter over few ranks with direct links, but not where the program is so small that GLPK solves dozens
 * soon. */
bool pack_has_tableau(const Topology *topo, const Ask *ask);

#endif
