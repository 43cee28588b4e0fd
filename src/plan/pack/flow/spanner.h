/* Spanning trees with weights, over a graph whose edges are full-duplex links: for spanning.c. */
#ifndef BLINK_PLAN_PACK_FLOW_SPANNER_H
#define BLINK_PLAN_PACK_FLOW_SPANNER_H

#include "graph/graph.h"
#include "model/model.h"

/* An edge of the graph: two links that are the opposite of each other. */
struct pair {
	int a, b;		/* its ends; there leads from a to b */
	int there, back;
	int64_t room;		/* capacity times q, in units */
	int64_t load;
};

/* A spanning tree with a weight. */
struct spanning {
	int64_t weight;
	uint64_t *has;		/* bit set of its edges */
	int *order;		/* ranks, each after its parent */
	int *up;		/* edge to the parent; -1: the root, rank 0 */
	int diameter;
};

struct step {
	int edge, tree;		/* from which edge, by an exchange in which tree; -1: none */
};

struct spanner {
	Ctx *ctx;
	const Topology *topo;
	int n, n_edges;
	size_t words;		/* of a bit set */
	struct pair *pair;
	int *edge_of;		/* of each link */
	struct spanning *tree;
	int n_trees, capacity;
	int deepest;		/* diameter of the greedy trees */
	/* Work space. */
	Search search;
	int64_t *price;
	int *first, *list;	/* edges of a tree by rank */
	bool *below;		/* the side of the tree that a search has cut off */
	int *down, *away;	/* the longest path from a rank, on its own side: downwards, and any */
	int *second;		/* the longest downwards by another child */
	struct step *step;	/* how each edge was reached */
	int *queue;
};

static inline bool
spanner_has(const struct spanning *t, int e)
{
	return t->has[e / 64] >> (e % 64) & 1;
}

/* No edges and no trees. In the scratch arena. Fails: as search_new does. */
Status spanner_new(Ctx *ctx, const Topology *topo, struct spanner *s);

/* Edges, with room for their capacity in units, times `scale`. False: some link has no opposite of the same capacity,
 * or numbers are too large. */
bool spanner_pair_links(struct spanner *s, int64_t unit, int64_t scale);

/* One more tree, without edges. It may move those that there are. */
Status spanner_add(struct spanner *s, int64_t weight, struct spanning **out);

/* Order, parents and diameter of a tree from the bit set of its edges. */
void spanner_arrange(struct spanner *s, struct spanning *t);

/* Of rank v, in a tree that is arranged; -1: the root. */
int spanner_parent(const struct spanner *s, const struct spanning *t, int v);

/* Heights of the trees that are left without the edge above `cut`; -1: with all edges. s->away: the longest path from
 * each rank. Returns the longest of all. */
int spanner_measure(struct spanner *s, const struct spanning *t, int cut);

#endif
