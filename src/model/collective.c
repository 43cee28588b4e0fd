/* What each collective means. */
#include "model/collective.h"

#include <limits.h>

static const char *const names[] = { COLLECTIVE_LIST(ROW_TEXT) };

static const struct {
	bool rooted, reduces;
	int blocks;
} collectives[] = {
#define X(name, text, rooted, reduces, blocks) { rooted, reduces, blocks },
	COLLECTIVE_LIST(X)
#undef X
};

const Names collective_names = { N_COLLECTIVES, names };

const char *
collective_name(Collective coll)
{
	return names[coll];
}

bool
collective_parse(const char *text, Collective *out)
{
	int coll;
	if (!names_find(collective_names, text, &coll))
		return false;
	*out = (Collective)coll;
	return true;
}

bool
collective_parse_spelled(const char *text, Collective *out)
{
	int coll;
	if (!names_find_spelled(collective_names, text, &coll))
		return false;
	*out = (Collective)coll;
	return true;
}

bool
collective_rooted(Collective coll)
{
	return collectives[coll].rooted;
}

bool
collective_reduces(Collective coll)
{
	return collectives[coll].reduces;
}

bool
collective_has_blocks(Collective coll)
{
	return collectives[coll].blocks > 0;
}

bool
collective_has_rings(Collective coll)
{
	return coll != GATHER && coll != SCATTER && coll != ALLTOALL;
}

int64_t
collective_blocks(Collective coll, int n_ranks)
{
	int64_t n = n_ranks;
	return collectives[coll].blocks == 0 ? 1 : collectives[coll].blocks == 1 ? n : n * n;
}

int
collective_holder(Collective coll, int n_ranks, int root, int64_t block)
{
	switch (coll) {
	case BROADCAST:
	case SCATTER:
		return root;
	case GATHER:
	case ALLGATHER:
		return (int)block;
	case ALLTOALL:
		return (int)(block / n_ranks);
	default:
		return EVERY_RANK;
	}
}

int
collective_needer(Collective coll, int n_ranks, int root, int64_t block)
{
	switch (coll) {
	case REDUCE:
	case GATHER:
		return root;
	case SCATTER:
	case REDUCESCATTER:
		return (int)block;
	case ALLTOALL:
		return (int)(block % n_ranks);
	default:
		return EVERY_RANK;
	}
}

int
collective_demands(Collective coll, int n_ranks)
{
	switch (coll) {
	case GATHER:
	case SCATTER:
		return n_ranks - 1;
	case ALLGATHER:
	case REDUCESCATTER:
		return n_ranks;
	case ALLTOALL:
		return n_ranks <= 46341 ? n_ranks * (n_ranks - 1) : INT_MAX;
	default:
		return 1;
	}
}

Demand
collective_demand(Collective coll, int n_ranks, int root, int d)
{
	/* The d-th rank that is not the root; of an alltoall, the pair. */
	int other = d + (d >= root), from = d / (n_ranks > 1 ? n_ranks - 1 : 1),
	    to = d % (n_ranks > 1 ? n_ranks - 1 : 1);
	to += to >= from;
	switch (coll) {
	case BROADCAST:
		return (Demand){ DEMAND_BROADCAST, root, -1, 0 };
	case REDUCE:
		return (Demand){ DEMAND_REDUCE, -1, root, 0 };
	case ALLREDUCE:
		return (Demand){ DEMAND_ALLREDUCE, -1, -1, 0 };
	case GATHER:
		return (Demand){ DEMAND_PATH, other, root, other };
	case SCATTER:
		return (Demand){ DEMAND_PATH, root, other, other };
	case ALLGATHER:
		return (Demand){ DEMAND_BROADCAST, d, -1, d };
	case REDUCESCATTER:
		return (Demand){ DEMAND_REDUCE, -1, d, d };
	default:
		return (Demand){ DEMAND_PATH, from, to, (int64_t)from * n_ranks + to };
	}
}

int
collective_demand_of(Collective coll, int n_ranks, int root, int from, int to)
{
	switch (coll) {
	case GATHER:
		return from - (from > root);
	case SCATTER:
		return to - (to > root);
	case ALLGATHER:
		return from;
	case REDUCESCATTER:
		return to;
	case ALLTOALL:
		return from * (n_ranks - 1) + to - (to > from);
	default:
		return 0;
	}
}

int
collective_shares(Collective coll, int n_ranks)
{
	return collectives[coll].blocks ? n_ranks : 1;
}

int64_t
alltoall_sent(const int64_t *bytes, int n_ranks)
{
	int64_t all = 0;
	for (size_t i = 0; i < (size_t)n_ranks * (size_t)n_ranks; i++)
		all += i % ((size_t)n_ranks + 1) == 0 ? 0 : bytes[i];
	return all;
}

int64_t
alltoall_message(const int64_t *bytes, int n_ranks)
{
	int64_t all = alltoall_sent(bytes, n_ranks);
	return all > 0 ? (all - 1) / (n_ranks - 1) + 1 : 1;
}
