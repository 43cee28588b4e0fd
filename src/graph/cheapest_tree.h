/* The cheapest tree of a demand under prices of links: the pricing problem of column generation. */
#ifndef BLINK_GRAPH_CHEAPEST_TREE_H
#define BLINK_GRAPH_CHEAPEST_TREE_H

#include "graph/search.h"

/* A subset of the topology that is searched by itself, for a family of trees. Its hops are numbered after those of
 * the whole. */
struct subproblem {
	Topology topo;
	const int *rank, *link;	/* of its ranks and links: their numbers in the whole */
	Search search;
	int first_hop;
};

typedef struct Cheapest Cheapest;

/* A family of trees: a search for its cheapest tree, in place of trees of any kind. Unlike trees of limited depth
 * these are the cheapest that there are, so a linear program over them has the optimal rate of the family.
 * start: c->family_state, in the scratch arena; sym: as cheapest_new has it. Fails: INFEASIBLE hops that the family
 * is made of are missing.
 * find: the cheapest tree of c->demand, into there, back and root; *cost: -1: there is none. Fails: INFEASIBLE
 * likewise. */
typedef struct {
	const char *trees;	/* what messages call them: "one-hop trees" */
	Status (*start)(Cheapest *c, const Symmetry *sym);
	void (*price)(Cheapest *c, const int64_t *price);
	Status (*find)(Cheapest *c, int64_t *cost);
} Family;

struct Cheapest {
	Ctx *ctx;
	const Topology *topo;
	bool paired;		/* DEMAND_ALLREDUCE: up and down are two arborescences, not one tree */
	bool hurries;		/* once time is over, trees are quick, not cheapest */
	int max_depth;		/* hops of a tree, up and down; 0: any. With a limit, trees are cheap, not cheapest */
	int n_roots;		/* ranks that may be the root of such a pair: all, or one of each orbit */
	const int *roots;	/* NULL: all */
	Search search;
	Demand demand;		/* of the current tree */
	int root;		/* of the current tree, if paired */
	int *there, *back;	/* hops of the current tree; back for DEMAND_ALLREDUCE only; -1: none */
	int *into, *out_of;	/* work space of cheapest_pair */
	int path_end;		/* of the current shortest paths: their source; -1: none */
	bool paths_into;	/* it is their destination */
	int last_to;		/* destination of the last path; -1: none */
	int64_t *distance;	/* of each rank from (to) it */
	int *path_hop;		/* that enters (leaves) each rank on its path */
	int n_used, *used;	/* links that the current tree uses, in order of discovery, */
	int *uses;		/* and how often it uses each link of the topology */
	const Family *family;	/* NULL: trees of any kind */
	void *family_state;
	int n_subproblems;		/* of a family */
	const struct subproblem *subproblem;	/* by first_hop */
};

/* In the scratch arena. DEMAND_ALLREDUCE starts paired where some link has no equal in the other direction.
 * sym: all prices will be symmetric under this group; or NULL. */
Status cheapest_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, Cheapest *out);

/* From now on cheapest_find finds trees of this family; NULL: of any kind. sym: as above. Fails: as family->start
 * does. */
Status cheapest_limit(Cheapest *c, const Family *family, const Symmetry *sym);

/* Prices from now on: one per link, 0 <= price < 2^SEARCH_PRICE_BITS. */
void cheapest_price(Cheapest *c, const int64_t *price);

/* Find the cheapest tree of a demand. *cost: every use of a link counts; -1: the ranks have none.
 * Fails: LIMIT a route has more than LIMIT_ROUTE_LINKS links. */
Status cheapest_find(Cheapest *c, Demand demand, int64_t *cost);

/* The current tree, in the run arena. rooted_at_end: a path is rooted where it ends, and goes up. */
Status cheapest_tree(Cheapest *c, bool rooted_at_end, Tree *out);

#endif
