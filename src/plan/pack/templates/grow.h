/* Spanning trees of machines with many switches, of the cheapest hops. */
#ifndef BLINK_PLAN_PACK_TEMPLATES_GROW_H
#define BLINK_PLAN_PACK_TEMPLATES_GROW_H

#include "model/model.h"

struct grower {
	Ctx *ctx;
	const Topology *topo;
	const int64_t *price;
	int n_entries, entry_capacity, n_waiting, waiting_capacity;
	struct entry *entry;
	struct waiting *waiting;
	struct hub *hub;	/* of each vertex: of ranks unused */
	bool by_links;		/* entries are not listed: */
	struct label *label;	/* of each vertex: of ranks unused */
	int64_t n_looks;	/* at entries or links, for a tree */
	int64_t *distance;	/* of each vertex, during a search */
	int *mark, *opposite;	/* of each vertex: the last search; of each link: the one back, -1: none */
	bool *reached;		/* of each rank */
	int *depth;
	Edge *there, *back;	/* of the current tree */
	int n_edges;
};

/* price: of each link, read by what follows. In the scratch arena. Cost: a search from each orbit of hubs. */
Status grower_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, const int64_t *price, struct grower *g);

/* What hubs lead to, at the current prices. *fits: false: that is too much. Fails: NO_MEMORY. */
Status grower_search(struct grower *g, bool *fits);

/* The cheapest tree from a root, by the last search: g->there and g->back. *out: false: some rank is not reached.
 * *mirrored: each of its edges can be taken back. Fails: LIMIT a route of more than LIMIT_ROUTE_LINKS links. */
Status grower_tree(struct grower *g, int root, bool *out, bool *mirrored);

#endif
