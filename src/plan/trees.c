/* Trees of any kind: how large a job may be, and whether it is planned by its automorphisms. portfolio.c plans it. */
#include "plan/plan.h"
#include "topology/topology.h"

/* Each demand needs a tree of its own, and a tree that reaches every rank an edge for each rank: a schedule that
 * would be too large to be written is not planned. */
Status
plan_check_size(Ctx *ctx, const Topology *topo, Collective coll)
{
	int64_t n = topo->n_ranks, demands = collective_demands(coll, topo->n_ranks);
	bool spans = collective_demand(coll, topo->n_ranks, 0, 0).kind != DEMAND_PATH;
	TRY(topo_check_pairs(ctx, topo));
	int64_t edges = demands * (spans ? n - 1 : 1) * (coll == ALLREDUCE ? 2 : 1);
	if (demands > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: want a schedule of at most %d trees and %d edges",
		    topo->name, collective_name(coll), topo->n_ranks, LIMIT_TREES, LIMIT_TREE_EDGES);
	return OK;
}

/* With few ranks and links between GPUs only, fewer trees are found without symmetry, since there is more choice.
 * Behind a switch ranks are symmetric, and one short tree for each of them is enough. With a root the full program
 * stays small for more ranks. */
SymmetryKind
trees_symmetry(const Topology *topo, const Ask *ask)
{
	bool wanted = topo->n_ranks > 16 || topo->n_vertices > topo->n_ranks;
	if (ask->root >= 0)
		wanted = topo->n_ranks > (collective_has_blocks(ask->coll) || topo->n_nodes == 1 ? 32 : 128);
	return ask->packing == PACKING_EXACT && wanted && !ask->matrix ? SYMMETRY_ANY : SYMMETRY_NONE;
}
