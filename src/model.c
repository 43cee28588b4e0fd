/* Names of the closed sets in model.h, and what each collective means. */
#include "model.h"

#include <string.h>

const char *
vertex_kind_name(VertexKind kind)
{
	static const char *const names[] = {
#define X(name, one, many) one,
		VERTEX_LIST(X)
#undef X
	};
	return names[kind];
}

static const char *const class_names[] = {
#define X(name, text, what) text,
	LINK_CLASS_LIST(X)
#undef X
};

const char *
link_class_name(LinkClass class)
{
	return class_names[class];
}

bool
link_class_parse(const char *text, LinkClass *out)
{
	for (int i = 0; i < N_LINK_CLASSES; i++) {
		if (strcmp(text, class_names[i]) == 0) {
			*out = (LinkClass)i;
			return true;
		}
	}
	return false;
}

static const struct {
	const char *name;
	bool rooted, reduces;
	int blocks;
} collectives[] = {
#define X(name, text, rooted, reduces, blocks) { text, rooted, reduces, blocks },
	COLLECTIVE_LIST(X)
#undef X
};

const char *
collective_name(Collective coll)
{
	return collectives[coll].name;
}

bool
collective_parse(const char *text, Collective *out)
{
	for (int i = 0; i < N_COLLECTIVES; i++) {
		if (strcmp(text, collectives[i].name) == 0) {
			*out = (Collective)i;
			return true;
		}
	}
	return false;
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
		return n_ranks * (n_ranks - 1);
	default:
		return 1;
	}
}

Demand
collective_demand(Collective coll, int n_ranks, int root, int d)
{
	/* The d-th rank that is not the root; of an alltoall, the pair. */
	int other = d + (d >= root), from = d / (n_ranks > 1 ? n_ranks - 1 : 1), to = d % (n_ranks > 1 ? n_ranks - 1 : 1);
	to += to >= from;
	switch (coll) {
	case BROADCAST:
		return (Demand){ DEMAND_SPREAD, root, -1, 0 };
	case REDUCE:
		return (Demand){ DEMAND_COLLECT, -1, root, 0 };
	case ALLREDUCE:
		return (Demand){ DEMAND_BOTH, -1, -1, 0 };
	case GATHER:
		return (Demand){ DEMAND_CARRY, other, root, other };
	case SCATTER:
		return (Demand){ DEMAND_CARRY, root, other, other };
	case ALLGATHER:
		return (Demand){ DEMAND_SPREAD, d, -1, d };
	case REDUCESCATTER:
		return (Demand){ DEMAND_COLLECT, -1, d, d };
	default:
		return (Demand){ DEMAND_CARRY, from, to, (int64_t)from * n_ranks + to };
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

static const char *const certificate_names[] = {
#define X(name, text) text,
	CERTIFICATE_LIST(X)
#undef X
};

const char *
certificate_name(CertificateKind kind)
{
	return certificate_names[kind];
}

bool
certificate_parse(const char *text, CertificateKind *out)
{
	for (int i = 0; i < N_CERTIFICATES; i++) {
		if (strcmp(text, certificate_names[i]) == 0) {
			*out = (CertificateKind)i;
			return true;
		}
	}
	return false;
}

static const char *const algorithms[][2] = {
#define X(name, text, trees, what) { text, trees },
	ALGORITHM_LIST(X)
#undef X
};

const char *
algorithm_name(AlgorithmKind algorithm)
{
	return algorithms[algorithm][0];
}

const char *
algorithm_trees(AlgorithmKind algorithm)
{
	return algorithms[algorithm][1];
}

bool
algorithm_parse(const char *text, AlgorithmKind *out)
{
	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (strcmp(text, algorithms[i][0]) == 0) {
			*out = (AlgorithmKind)i;
			return true;
		}
	}
	return false;
}
