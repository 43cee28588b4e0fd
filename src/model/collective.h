/* What each collective means: who holds which block before, and who needs it after. */
#ifndef BLINK_MODEL_COLLECTIVE_H
#define BLINK_MODEL_COLLECTIVE_H

#include "base/names.h"
#include "model/units.h"

/* name, has a root, reduces, blocks of the buffer: 0 = none, 1 = n blocks, 2 = n * n */
#define COLLECTIVE_LIST(X)                                                     \
	X(BROADCAST, "broadcast", true, false, 0)                              \
	X(REDUCE, "reduce", true, true, 0)                                     \
	X(ALLREDUCE, "allreduce", false, true, 0)                              \
	X(GATHER, "gather", true, false, 1)                                    \
	X(SCATTER, "scatter", true, false, 1)                                  \
	X(ALLGATHER, "allgather", false, false, 1)                             \
	X(REDUCESCATTER, "reducescatter", false, true, 1)                      \
	X(ALLTOALL, "alltoall", false, false, 2)

typedef enum { COLLECTIVE_LIST(ROW_NAME) N_COLLECTIVES } Collective;

enum { EVERY_RANK = -1 };

const char *collective_name(Collective coll);
bool collective_parse(const char *text, Collective *out);		/* as in files */
bool collective_parse_spelled(const char *text, Collective *out);	/* as people write it: AllReduce, all_reduce */
extern const Names collective_names;
bool collective_rooted(Collective coll);
bool collective_reduces(Collective coll);
bool collective_has_blocks(Collective coll);
bool collective_has_rings(Collective coll);	/* can data go around rings: all but gather, scatter, alltoall */
int64_t collective_blocks(Collective coll, int n_ranks);	/* blocks in the buffer: 1, n or n * n */

/* Who holds block b before, and who needs it after: one rank, or EVERY_RANK (schedule-format, "What must hold").
 * A reducing collective starts with every rank's own contribution. */
int collective_holder(Collective coll, int n_ranks, int root, int64_t block);
int collective_needer(Collective coll, int n_ranks, int root, int64_t block);

/* What a collective needs of trees: blocks of the buffer, of equal size, each along trees of its own kind. */
typedef enum {
	DEMAND_BROADCAST,		/* out of `from`, to every rank */
	DEMAND_REDUCE,		/* from every rank into `to` */
	DEMAND_ALLREDUCE,		/* into any one rank and out of it again */
	DEMAND_PATH		/* from `from` to `to`, along a path */
} DemandKind;

typedef struct {
	DemandKind kind;
	int from, to;		/* ranks; -1: any, or every one */
	int64_t block;		/* which block of the buffer */
} Demand;

/* Number of demands, which are ordered by block, at most INT_MAX; blocks that do not move have none. Demand d of
 * them. */
int collective_demands(Collective coll, int n_ranks);
Demand collective_demand(Collective coll, int n_ranks, int root, int d);

/* The inverse: the number of the demand with these ends. */
int collective_demand_of(Collective coll, int n_ranks, int root, int from, int to);

/* M divided by the size of one demand, which is the algorithm bandwidth divided by the rate of a demand. */
int collective_shares(Collective coll, int n_ranks);

/* Of bytes from rank i to rank j of an alltoall, n_ranks * n_ranks of them: those that are sent, without what ranks
 * keep; and the message of an alltoall of equal blocks that sends as many, rounded up, at least 1. */
int64_t alltoall_sent(const int64_t *bytes, int n_ranks);
int64_t alltoall_message(const int64_t *bytes, int n_ranks);

#endif
