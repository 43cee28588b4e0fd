/* What the cheapest trees of a collective cost under prices, for certificates: no tree is built and no route is kept,
 * so this takes less time and memory than cheapest_tree.h. */
#ifndef BLINK_GRAPH_DEMAND_COST_H
#define BLINK_GRAPH_DEMAND_COST_H

#include "graph/search.h"
#include "model/symmetry.h"

enum { STEPS_SEARCH = 9 };	/* of count_steps() for a search from a rank: for each link and each vertex */

/* The sum over all demands of the cost of the cheapest tree; an allreduce's are pairs of arborescences. A route of more
 * links than LIMIT_ROUTE_LINKS counts, at most as that many of the highest price. price: one per link,
 * 0 <= price < 2^SEARCH_PRICE_BITS. *cost: -1: no tree reaches the ranks.
 * sym: automorphisms that move every rank, or NULL: where they keep prices, too, paths from the first rank of an orbit
 * cost what those from any other do, and are searched alone.
 * Fails: LIMIT past the steps of count_steps() (label: where). */
Status demands_cost(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root, const Symmetry *sym,
    const int64_t *price, Wide *cost);

/* No more than demands_cost, and often as much where prices are those of a cut: what each rank costs that a tree
 * enters, by the cheapest route from any rank; in an allreduce also what each costs that leaves for the root. 0 for
 * paths. Cost: a search, or two. */
Status demands_least(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root,
    const int64_t *price, Wide *cost);

/* The sum over all pairs of ranks of bytes, n_ranks * n_ranks from rank i to rank j, times the cost of the shortest
 * path between them; a pair without a path counts nothing. Bytes together are at most LIMIT_MESSAGE. Fails: as
 * demands_cost. */
Status pairs_cost(Ctx *ctx, const char *label, const Topology *topo, const int64_t *bytes, const int64_t *price,
    Wide *cost);

#endif
