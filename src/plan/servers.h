/* Servers as subproblems: each is a topology of its own, with its own search. */
#ifndef BLINK_PLAN_SERVERS_H
#define BLINK_PLAN_SERVERS_H

#include "graph/graph.h"

struct servers {
	int n;			/* servers that have ranks, in the order of nodes */
	struct subproblem *subproblem;	/* of each */
	int *of, *place;	/* of each rank: its server, and its number among the ranks of that server */
};

/* In the scratch arena; c->subproblem and c->n_subproblems, too. Fails: INFEASIBLE a rank is in no server. */
Status servers_split(Cheapest *c, struct servers *out);

/* Do the ranks of each server reach each other over its own links? Fails: INFEASIBLE, naming two that do not. */
Status servers_check(Cheapest *c, const struct servers *servers);

#endif
