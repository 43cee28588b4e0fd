/* Collectives of several groups of ranks at once, over links that they share: how much of each link each group gets.
 * It is the maximum concurrent flow problem (Shahrokhi and Matula 1990), of trees in place of paths. */
#ifndef BLINK_PLAN_PACK_CONCURRENT_CONCURRENT_H
#define BLINK_PLAN_PACK_CONCURRENT_CONCURRENT_H

#include "model/model.h"

/* A group of ranks, or one of several that are images of each other, and what it calls. */
typedef struct {
	const Topology *topo;	/* its ranks, and the links that it may use */
	const int *row;		/* n_links: the row of shared links that each is in */
	Collective coll;
	int root;
	int64_t bytes;		/* of the message, as blink-schedule(5) counts M; with weights, of a weight of 1 */
	const int64_t *weight;	/* of an alltoall of unequal blocks: of each demand; NULL: each has its share of the
				 * message. Together less than 2^CONCURRENT_WEIGHT_BITS */
	int level;		/* 0 first: all of a level is done before what higher levels ask for counts */
	int64_t copies;		/* groups that it stands for; all together they load each link of a row alike */
	int n_bundles;		/* bundles that are planned: each stands for `alike` of the group, which are its
				 * images */
	const int *bundle, *alike;
	const Packing *known;	/* trees to start from; NULL: none */
} Concurrent;

enum { CONCURRENT_WEIGHT_BITS = 31 };

/* The message is as many times what a demand, or a weight of 1, has. */
int concurrent_shares(const Concurrent *group);

/* Demands whose trees are chosen together: paths from one rank, or for a root; of other collectives each alone. */
int concurrent_bundles(Collective coll, int n_ranks);
int concurrent_bundle_of(Collective coll, int n_ranks, int demand);

/* Links that all of them share. Those of a row are alike. */
typedef struct {
	int n_rows;
	const int64_t *capacity;	/* of a row: of all of its links together, bytes/s */
	const int *links;		/* of a row: how many links it has */
} SharedLinks;

/* What proves when a level is done are prices y(j) of links for levels j = 0 to `level`, price[j * n_rows + row]. A
 * tree of level i costs what its links cost together at the sum of y(i) to y(level); bytes of all groups times the cost
 * of their cheapest trees are no more than the sum of y(j) * capacity * time(j) over levels. */
typedef struct {
	int n_levels;
	int64_t **price;	/* of each level: what proves when it is done */
	Wide **sent;		/* of each group and each of its links: what trees of its planned bundles send, times
				 * how many are alike, */
	Wide *each;		/* where every demand gets this much */
	double seconds;		/* when the last level is done */
	bool exact;		/* what is sent is a solution in fractions; else it is rounded */
	Packing **pack;		/* of each group whose bundles are all planned: its trees, with rates in proportion;
				 * of others NULL */
} ConcurrentPlan;

/* What each group sends over each link, so that level 0 is done as soon as it can be, level 1 as soon as it can be
 * then, and so on: level k is done when no link has more to send for levels 0 to k. All groups have the rate, in
 * messages/s, at which the last level is done. By column generation, as linear.h has it for one collective: exact where
 * fractions are small, else within 1e-9. Levels are numbered from 0 without gaps. *out: in the run arena. Fails:
 * NO_MEMORY; LIMIT numbers are too large; INTERNAL the simplex method failed. Cost: a linear program of n_rows +
 * bundles rows for each round of new trees. */
Status pack_concurrent(Ctx *ctx, const Concurrent *group, int n_groups, const SharedLinks *links, ConcurrentPlan *out);

#endif
