/* Trees of a packing that exchange edges: for shallower.c. */
#ifndef BLINK_PLAN_PACK_FLOW_EXCHANGE_H
#define BLINK_PLAN_PACK_FLOW_EXCHANGE_H

#include "model/model.h"

enum {
	EXCHANGE_BASE = 4,	/* of a power for each hop */
	EXCHANGE_MOST_DEPTH = 250	/* EXCHANGE_BASE to twice that is finite */
};

static const double EXCHANGE_LEAST_GAIN = 1e-9;	/* of what a tree gains: less is rounding */

/* One direction of a tree: away from its root, or `up` towards it. Arrays are indexed by rank. */
struct half {
	int root, tree;
	bool up, changed;
	int64_t weight;
	int *above;		/* -1: the root */
	int *first, *next;	/* ranks that hang from each, as lists; -1 ends */
	int *depth, *height;	/* hops from the root; to the deepest below */
	double *sum;		/* of EXCHANGE_BASE^depth of the ranks below and itself, as if it were the root */
};

/* An edge by which a rank may hang from another one. */
struct way {
	const Edge *edge;
	int to;			/* that one */
	bool up;
	int next;		/* of those to the same rank; -1: none */
	double gain;		/* what it adds to the sum of the half in question; 0: it is of no use */
};

struct move;

struct exchange {
	const Topology *topo;
	int n, n_trees, n_halves;
	struct half *half;	/* of each tree the way up, the way down, or one after the other */
	int n_ways, way_room;
	struct way *way;	/* those of each rank; and others, that it came to have */
	int *first_way;		/* of each rank, and one more */
	int *n_hanging[2];	/* of each rank: by a way of all halves down, up */
	uint64_t *passing;	/* [vertex * exchange_words + rank / 64]: has this rank a way that passes the vertex? */
	uint64_t *meeting;	/* work space: of each rank */
	int *first_to;		/* of each rank: the ways to it, as a list */
	bool *looked;		/* work space: of each half */
	int *held;		/* [v * n_halves + h]: the way by which v hangs; -1: v is the root */
	double *power;		/* of EXCHANGE_BASE */
	int64_t *room;		/* of each link, in units of the packing */
	int *queue;
	int64_t steps, last_steps;	/* looks at an edge: of all sweeps, of the last */
	int goal;		/* no exchange makes all trees less deep than that */
	struct move *move, *best;	/* of shallower.c: room for two of each half */
};

/* The trees of this packing, each with n_ranks - 1 edges; they hang after exchange_take. */
Status exchange_new(Ctx *ctx, const Topology *topo, const Packing *pack, struct exchange *x);

/* Ways of all ranks, and the trees as they are. Cost: edges are sorted. */
Status exchange_take(Ctx *ctx, struct exchange *x, const Packing *pack);

/* The place of the way by which rank v hangs in h. */
int *exchange_held(const struct exchange *x, const struct half *h, int v);

/* Words of a bit for each rank. */
int exchange_words(const struct exchange *x);

/* The vertex after link i of an edge, counted from the rank that the other one hangs from. */
static inline int
exchange_vertex(const struct exchange *x, const struct way *way, int i)
{
	const Edge *edge = way->edge;
	return way->up ? x->topo->link[edge->link[edge->n_links - 1 - i]].from : x->topo->link[edge->link[i]].to;
}

/* x->passing and x->first_to have this way. */
void exchange_note(struct exchange *x, int way);

/* v hangs by another way. */
void exchange_hang(struct exchange *x, struct half *h, int v, int way);

/* Is u below v, or v itself? */
bool exchange_is_below(const struct half *h, int u, int v);

/* v hangs from a rank nearer to the root, by an edge that meets its own at a switch: crossing.c. *done: false: there is
 * none of use. Fails: NO_MEMORY. */
Status exchange_cross(Ctx *ctx, struct exchange *x, struct half *h, int v, bool *done);

#endif
