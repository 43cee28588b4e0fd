/* One file for each algorithm, and the bound that all are held against. */
#ifndef BLINK_PLAN_PLAN_H
#define BLINK_PLAN_PLAN_H

#include "graph/hamiltonian.h"
#include "model/model.h"
#include "plan/classic/classic.h"

/* What no algorithm exceeds, of those that bound_claim names, with its proof. Exact.
 * broadcast, reduce: minimum cut over all other ranks (Edmonds 1973; Blink 3.1).
 * allreduce: the least of the partition bound (Nash-Williams, Tutte; schedule-format.md, "Rate, bound and certificate")
 * and of the directed minimum cuts. Cost: O(n^2) maximum flows. Fails: INTERNAL other collectives. */
Status bound_compute(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *out);

/* Plans of portfolio.c within several limits, so that each is made once. They are in the run arena. */
typedef struct KnownPlan {
	int max_depth, max_trees;	/* 0: any */
	Packing *pack;			/* NULL: none was found */
	Bound proof;
	struct KnownPlan *next;
} KnownPlan;

typedef struct KnownDepth {
	int max_depth;
	Packing *pool;		/* all trees of this depth; NULL: too many */
	Packing *best, *few;	/* with the best rate; with few trees; or NULL */
	struct KnownDepth *next;
} KnownDepth;

typedef struct {
	KnownPlan *plan;
	KnownDepth *depth;
	bool grown;		/* something was added */
} KnownPlans;

/* What trees of any kind reach, which the algorithms are held against: found once for all of a job. */
typedef struct {
	bool known;
	Bound proof;		/* the bound, or a lower one that the linear program proves */
	Frac others;		/* the optimum, bytes/s; FRAC_ZERO: not known */
} Proven;

typedef struct Algorithm Algorithm;

/* What planning starts from. */
typedef struct {
	const Algorithm *row;	/* of the table: what plans */
	const Topology *topo;
	const Symmetry *sym;	/* of topo: as the algorithm wants it */
	const Bound *bound;	/* bound_compute */
	const Ask *ask;
	/* Of a hybrid schedule: what is planned on (hybrid_induce), and its parts. */
	const Topology *planning_topology;
	int n_parts;
	const Part *part;
	/* Of the Pareto-optimal plans: what is known with the symmetries, and without; NULL: nothing is kept. */
	KnownPlans *known;
	Proven *proven;		/* shared with other algorithms; NULL: with none */
	bool soon;		/* one of many to compare: a long linear program (work.h) is not wanted */
} Planning;

/* What limits cost, where the rate is lower for them. */
typedef struct {
	Frac rate;		/* without those of the Ask; FRAC_ZERO: they cost none, or it is not known */
	int trees, depth;
	bool too_large;		/* more trees would have more edges than a schedule may have */
} Unlimited;

/* Its result. */
typedef struct {
	Packing *pack;
	Bound proof;		/* the bound, or a lower one that the linear program proves */
	Frac best;		/* the optimum of the algorithm's own trees, within limits; FRAC_ZERO: not proven */
	Unlimited unlimited;
	int64_t *length;	/* of each link: the proof for the matrix of the Ask; NULL: it has none */
} Plan;

/* ---- algorithm.c: the table ---- */

struct Algorithm {
	const char *name;	/* in options and files */
	const char *what;	/* for people, in one line */
	const char *trees;	/* what messages call its trees: "one-hop trees" */
	const char *proof;	/* what is proven of their optimum: "by the linear program" */
	bool (*serves)(Collective coll);
	SymmetryKind (*wants_symmetry)(const Topology *topo, const Ask *ask);	/* which pays off */
	Status (*plan)(Ctx *ctx, const Planning *in, Plan *out);	/* INFEASIBLE: these links have no such trees */
	const Classic *classic;	/* of the literature: the rule that plan_classic follows; NULL */
	const char *options;	/* those of the Ask that it obeys besides: "radix"; NULL: none */
};

/* Is this the name of an algorithm whose data turns back in the memory of hosts? */
bool algorithm_staged(const char *name);

int algorithm_count(void);
const Algorithm *algorithm_row(int i);

/* Other names that the literature has for a row, for some collectives or for all: alias i, NULL: no more. */
const char *algorithm_alias(int i);

/* name: of a row, or an alias; NULL: the first row. Fails: USAGE there is none, or it does not serve the collective;
 * with what was asked. */
Status algorithm_find(Ctx *ctx, const char *name, Collective coll, const Algorithm **out);

/* ---- limits.c, portfolio.c, trees.c: the trees of any kind ---- */

/* MWU, with PACKING_EXACT the linear program over its trees, then the ILP. Fails: INFEASIBLE the limits of the Ask
 * are too low. */
Status plan_trees(Ctx *ctx, const Planning *in, Plan *out);
SymmetryKind trees_symmetry(const Topology *topo, const Ask *ask);

/* The rate of the best trees, however many they are; FRAC_ZERO: not known. Fails: LIMIT. */
Status plan_rate(Ctx *ctx, const Planning *in, Frac *out);

/* The least max_depth and max_trees for which there are trees at all. */
Status plan_least(Ctx *ctx, const Topology *topo, const Ask *ask, int *depth, int *trees);

/* ---- portfolio.c ---- */

/* Without limits: the best that the packers (packers.c) find. *proof: the bound, or a lower one that is proven. */
Status plan_free(Ctx *ctx, const Planning *in, Packing **out, Bound *proof);

/* ---- better.c ---- */

enum {
	PLAN_MESSAGE = 1 << 26,	/* bytes of the message whose time counts */
	PLAN_SHALLOW = 8	/* hops of an allreduce: others are hardly less deep */
};
#define PLAN_SAME_TIME 0.001	/* part of a time that is no difference */

/* The order of packings for a request, by which the best is kept. First the rate: equal where it differs by rounding
 * alone, or where both are within the tolerance of the bound; over many ranks less a part of it where the trees take
 * long (better.c). Then the time of a message of 64 MiB (pack_time), where
 * it differs by a thousandth: mostly a hop more takes longer, but so do deep trees that have a short part of the
 * message. Then the depth, and then the number of trees; with a tolerance, or a limit on the number of trees, that
 * number comes right after the rate.
 * Returns why a is better than b; NULL: it is not. Either may be NULL. work: pack_work ints. */
const char *plan_better(const Planning *in, const Packing *a, const Packing *b, int *work);

/* The order of rates alone: 1, a is higher, 0 or -1. */
int plan_compare_rates(const Planning *in, Frac a, Frac b);

/* At this part of the bound at least, and of PLAN_SHALLOW hops at most: trees at it may be much deeper. pack: or
 * NULL. */
bool plan_is_shallow(const Planning *in, const Packing *pack, double part, int *work);

/* Does a take less than b, by this part of b's time? */
bool plan_takes_less(const Planning *in, const Packing *a, const Packing *b, double part, int *work);

/* Its trees are so deep, or some of them of so small a rate, that the last chunk is late. pack: or NULL. */
bool plan_is_slow(const Planning *in, const Packing *pack, int *work);

/* ---- trees.c ---- */

/* Before a bound is searched for: whether so large a job has trees at all. Fails: LIMIT it has more than
 * LIMIT_PAIR_RANKS ranks, and none of the planners that need no table of their pairs serves it; or each rank's block
 * goes to all others, in a list that has no room for these edges. */
Status plan_check_ranks(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Ask *ask);

/* Fails: LIMIT there would be more trees or edges than a schedule may have. */
Status plan_check_size(Ctx *ctx, const Topology *topo, Collective coll);

/* ---- onehop.c, threephase.c: the linear program over one family of trees ---- */

Status plan_onehop(Ctx *ctx, const Planning *in, Plan *out);

/* Equal links between every two ranks, of which there are at most LIMIT_ILP_RANKS. */
bool onehop_is_even_mesh(const Topology *topo);

Status plan_threephase(Ctx *ctx, const Planning *in, Plan *out);
SymmetryKind threephase_symmetry(const Topology *topo, const Ask *ask);

/* ---- ring.c ---- */

/* As many edge-disjoint rings as the links allow. out->best: of rings of whole links. Fails: INFEASIBLE no ring is
 * found. */
Status plan_ring(Ctx *ctx, const Planning *in, Plan *out);

/* Rings of the highest rate, as pack_rings finds them, which may share links. out->best: where they are proven. Fails:
 * INFEASIBLE no ring is found, or more than a schedule may have. */
Status plan_shared_ring(Ctx *ctx, const Planning *in, Plan *out);

/* A tree of each ring for each demand; of an allreduce for `roots` ranks, at equal distances, which for other
 * collectives is 1. Edges are those of the rings. Fails: INTERNAL rings without links. */
Status ring_trees(Ctx *ctx, const Topology *topo, const Ask *ask, const Cycle *ring, int n_rings, int roots,
    Packing **out);

/* ---- reducescatter_allgather.c ---- */

/* An allreduce by the trees of the best allgather (plan_trees), backwards and then forwards. out->best: where it is the
 * bound. Fails: INFEASIBLE links are not as fast in both directions, or switches multicast or reduce; LIMIT;
 * as plan_trees does.
 * From: Zhao et al., ForestColl; Cai et al., SCCL, which inverts an allgather. There the phases follow each other; here
 * both are under way at once. */
Status plan_reducescatter_allgather(Ctx *ctx, const Planning *in, Plan *out);

/* ---- literature.c: the rows with a Classic ---- */

/* out->best: where no order of the ranks has a higher rate. Fails: as classic_shape and classic_pack do. */
Status plan_classic(Ctx *ctx, const Planning *in, Plan *out);

/* ---- hybrid.c ---- */

/* Each part planned by itself, by the algorithm of the Ask, and all in one packing over `topo`, with weights in
 * proportion to the rates of the parts. The proof is of algorithms that use all links of the job at once.
 * No row of the table: in files it has the name of its parts' algorithm.
 * Fails: as that algorithm does; INFEASIBLE a part does not connect the ranks; LIMIT rates without a common unit. */
extern const Algorithm hybrid_algorithm;

/* ---- pareto.c ---- */

typedef struct {
	int trees, depth;
	Frac rate;		/* bytes/s */
} ParetoPoint;

/* The Pareto-optimal plans of rate, number of trees and depth, as far as plan_trees finds them, the highest rate first:
 * it plans for every depth, and for each of them with fewer and fewer trees. */
Status plan_pareto(Ctx *ctx, const Planning *in, ParetoPoint **out, int *n);

#endif
