/* Ask: what is wanted of a plan. */
#ifndef BLINK_MODEL_ASK_H
#define BLINK_MODEL_ASK_H

#include "base/names.h"
#include "model/collective.h"
#include "model/units.h"

/* name in options, what it is */
#define PACKING_LIST(X)                                                        \
	X(PACKING_MWU, "mwu", "multiplicative weights: a rate within epsilon of the optimum") \
	X(PACKING_EXACT, "exact", "column generation: the optimal rate itself")

typedef enum { PACKING_LIST(ROW_NAME) N_PACKINGS } PackingKind;

const char *packing_name(PackingKind kind);	/* "exact" */
extern const Names packing_names;

/* name in options, what it is */
#define HYBRID_LIST(X)                                                         \
	X(HYBRID_PEER, "peer", "switches peer access from NVLink to PCIe, which takes time")   \
	X(HYBRID_HOST, "host", "sends over PCIe through the memory of the host")

typedef enum {
	HYBRID_NONE,		/* one set of links */
	HYBRID_LIST(ROW_NAME)
	N_HYBRIDS
} HybridKind;

const char *hybrid_name(HybridKind kind);	/* "host" */
bool hybrid_parse(const char *text, HybridKind *out);
extern const Names hybrid_names;

/* name in options, what it is */
#define ROUTES_LIST(X)                                                         \
	X(ROUTES_ANY, "any", "over any of the links in use")                   \
	X(ROUTES_PAIR, "pair", "by the one route that joins the two GPUs: NVLink or xGMI, else PCIe, else the network")

/* What the hops of trees may take. */
typedef enum {
	ROUTES_CHOSEN,		/* any, or with chosen links what topo_choose_links says */
	ROUTES_LIST(ROW_NAME)
	N_ROUTES
} Routes;

bool routes_parse(const char *text, Routes *out);
extern const Names routes_names;

enum { MOST_RADIX = 4096, MOST_LAYERS = 12 };

/* Rings in rings, the innermost first; at least 2 ranks in each. */
typedef struct {
	int n;			/* 0: not given */
	int size[MOST_LAYERS];
} Hierarchy;

bool hierarchy_parse(const char *text, Hierarchy *out);	/* "4x8x4", a product of at most INT_MAX */
NamesText hierarchy_text(const Hierarchy *layers);

/* Which rank stands where in an algorithm: what is fastest; or the p-th after the root, or after rank 0, at position p,
 * at position n - p, or, of a power of two, at p with its bits in reverse. */
typedef enum { ORDER_CHOSEN, ORDER_RANKS, ORDER_BACKWARDS, ORDER_BITS } RankOrder;

/* All that a plan depends on besides the machine and the GPUs. Text of a command line becomes an Ask in
 * verb/request.c. */
typedef struct {
	Collective coll;
	int root;		/* -1: none */
	unsigned links;		/* classes to use, a bit set; 0: chosen (topo_choose_links); ignored where hybrid */
	Routes routes;
	HybridKind hybrid;
	const char *algorithm;	/* a row of plan/algorithm.c, by its name; NULL: the first, trees of any kind */
	int radix;		/* of k-nomial trees and Bruck's exchange, 2 to MOST_RADIX; 0: not given */
	Hierarchy layers;	/* of a hierarchical ring */
	RankOrder order;	/* of algorithms of the literature, and of the ring */
	Frac epsilon;		/* 0 < epsilon < 1/2: allowed gap of MWU to the optimum, relative */
	Frac tolerance;		/* 0 <= tolerance < 1: gap to the known optimum that fewer trees may leave */
	PackingKind packing;
	bool minimise;		/* false: keep the trees and rates of MWU, or of the linear program */
	int max_depth;		/* hops of a tree, up and down together; 0: any */
	int max_trees;		/* 0: any */
	bool compact;		/* the schedule is wanted compact (schedule/images.h) */
	bool budget;		/* planning may be cut short, so bytes depend on the machine that plans */
	const char *without;	/* what the machine has lost, for the record; NULL: nothing (topo_losses) */
	const char *relays;	/* GPUs that forward if they are not ranks: ids, comma separated, or "rest"; NULL */
	/* What the plan was chosen for, for the record; size 0: it was not. */
	int64_t size, chunk;	/* bytes of the message, and of the chunks that take it the least time */
	const char *executor;	/* of simulate/simulate.h, by its name */
	const int64_t *matrix;	/* of an alltoall, n * n: bytes from rank i to rank j at i * n + j; NULL: none */
	int variant;		/* 0: MWU starts from weights of 1 / capacity; others lean to other trees at first */
} Ask;

#endif
