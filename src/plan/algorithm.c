/* The algorithms: to add one, write its file, declare it in plan.h, and give it a row here. */
#include "plan/family.h"
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

static bool
any_collective(Collective coll)
{
	(void)coll;
	return true;
}

/* Of the whole buffer, out of a root or into it. */
static bool
whole_buffer(Collective coll)
{
	return coll == BROADCAST || coll == REDUCE;
}

static bool
one_tree_serves(Collective coll)
{
	return whole_buffer(coll) || coll == ALLREDUCE;
}

static bool
rooted_tree_serves(Collective coll)
{
	return one_tree_serves(coll) || coll == GATHER || coll == SCATTER;
}

static bool
exchange_serves(Collective coll)
{
	return coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER;
}

static bool
bruck_serves(Collective coll)
{
	return exchange_serves(coll) || coll == ALLTOALL;
}

static bool
bine_serves(Collective coll)
{
	return coll != ALLTOALL;
}

static bool
allreduce_alone(Collective coll)
{
	return coll == ALLREDUCE;
}

#define LP "by the linear program"
#define ORDERS "of all orders of the GPUs"
#define CLASSIC trees_symmetry, plan_classic

/* The first is what is meant where none is named. */
static const Algorithm algorithms[] = {
	{ "trees", "all", "trees", LP, any_collective, trees_symmetry, plan_trees, NULL, NULL },
	{ "onehop", "one hop to or from the root, if every two GPUs have a direct hop", ONEHOP_TREES, LP,
	    any_collective, trees_symmetry, plan_onehop, NULL, NULL },
	{ "threephase", "each server over its own links, and one hop between servers", THREEPHASE_TREES, LP,
	    any_collective, threephase_symmetry, plan_threephase, NULL, NULL },
	{ "ring", "edge-disjoint rings, each through all GPUs; not for gather, scatter, alltoall", "rings",
	    "each of whole links", collective_has_rings, trees_symmetry, plan_ring, NULL, NULL },
	{ "shared-ring", "rings of the highest rate, which may share links; for the collectives of ring", "rings",
	    LP, collective_has_rings, trees_symmetry, plan_shared_ring, NULL, NULL },
	{ "reducescatter-allgather", "the trees of the best allgather, backwards and forwards; for allreduce",
	    "reduce-scatter and allgather trees", LP, allreduce_alone, trees_symmetry,
	    plan_reducescatter_allgather, NULL, NULL },
	{ "chain", "a path through all GPUs, the linear pipeline; not for allgather, reducescatter, alltoall", "chains",
	    ORDERS, rooted_tree_serves, CLASSIC, &chain_classic, NULL },
	{ "direct", "one hop from each GPU that has data to each that needs it", "direct trees", ORDERS, any_collective,
	    CLASSIC, &direct_classic, NULL },
	{ "knomial", "a k-nomial tree; not for allgather, reducescatter, alltoall",
	    "k-nomial trees", ORDERS, rooted_tree_serves, CLASSIC, &knomial_classic, "radix" },
	{ "double-binary-tree", "two binary trees with half of the data each; for broadcast, reduce, allreduce",
	    "double binary trees", ORDERS, one_tree_serves, CLASSIC, &double_binary_tree_classic, NULL },
	{ "scatter-allgather", "a binomial scatter and a ring; for broadcast, and reversed for reduce",
	    "scatter-allgather trees", ORDERS, whole_buffer, CLASSIC, &scatter_allgather_classic, NULL },
	{ "halving-doubling", "recursive halving and doubling (Rabenseifner); not for gather, scatter, alltoall",
	    "halving-doubling trees", ORDERS, collective_has_rings, CLASSIC, &halving_doubling_classic, NULL },
	{ "recursive-doubling", "all data to every GPU, in half the hops; for allreduce", "recursive doubling trees",
	    ORDERS, allreduce_alone, CLASSIC, &recursive_doubling_classic, NULL },
	{ "bruck", "Bruck's exchange; for allgather, reducescatter, allreduce, alltoall", "Bruck trees",
	    ORDERS, bruck_serves, CLASSIC, &bruck_classic, "radix" },
	{ "hierarchical-ring",
	    "rings in rings (Ueno and Yokota); for allreduce, allgather, reducescatter",
	    "hierarchical rings", ORDERS, exchange_serves, CLASSIC, &hierarchical_ring_classic, "hierarchy" },
	{ "host-staged-knomial", "a k-nomial tree through the memory of the hosts; for the collectives of knomial",
	    "host-staged k-nomial trees", ORDERS, rooted_tree_serves, CLASSIC, &host_staged_knomial_classic, "radix" },
	{ "bine", "Bine trees, and the exchange of Swing; not for alltoall", "Bine trees", ORDERS, bine_serves, CLASSIC,
	    &bine_classic, NULL },
};

/* Names for trees that another row has, too, for collectives of a bit set. */
static const struct {
	const char *alias;
	unsigned collectives;
	const char *name;
} aliases[] = {
	{ "linear-pipeline", ~0u, "chain" },
	{ "binomial", ~0u, "knomial" },
	{ "minimum-spanning-tree", ~0u, "knomial" },
	{ "rabenseifner", ~0u, "halving-doubling" },
	{ "bidirectional-exchange", 1u << BROADCAST, "scatter-allgather" },
	{ "bidirectional-exchange", ~0u, "halving-doubling" },
	{ "recursive-doubling", 1u << ALLGATHER | 1u << REDUCESCATTER, "halving-doubling" },
	{ "swing", ~0u, "bine" },
};

enum { N_ALIASES = sizeof aliases / sizeof *aliases };

enum { N_ALGORITHMS = sizeof algorithms / sizeof *algorithms };

int
algorithm_count(void)
{
	return N_ALGORITHMS;
}

const Algorithm *
algorithm_row(int i)
{
	return &algorithms[i];
}

const char *
algorithm_alias(int i)
{
	return i < N_ALIASES ? aliases[i].alias : NULL;
}

static const char *
without_alias(const char *name, Collective coll)
{
	for (int i = 0; i < N_ALIASES && name; i++)
		if (strcmp(name, aliases[i].alias) == 0 && aliases[i].collectives >> coll & 1)
			return aliases[i].name;
	return name;
}

static const Algorithm *
find_row(const char *name)
{
	for (int i = 0; i < N_ALGORITHMS; i++)
		if (!name || strcmp(name, algorithms[i].name) == 0)
			return &algorithms[i];
	return NULL;
}

bool
algorithm_staged(const char *name)
{
	const Algorithm *row = find_row(name);
	return row && row->classic && row->classic->staged;
}

static Status
fail_unknown(Ctx *ctx, const char *name)
{
	const char *name_of[N_ALGORITHMS];
	for (int i = 0; i < N_ALGORITHMS; i++)
		name_of[i] = algorithms[i].name;
	const Names names = { N_ALGORITHMS, name_of };
	return fail_asked(ctx, USAGE, "algorithm", "%.40s: want one of %s%s", name,
	    names_text(names, ~0u, ", ", ", ").text, names_hint(names, name).text);
}

Status
algorithm_find(Ctx *ctx, const char *name, Collective coll, const Algorithm **out)
{
	const Algorithm *row = find_row(without_alias(name, coll));
	if (!row)
		return fail_unknown(ctx, name);
	if (!row->serves(coll))
		return fail_asked(ctx, USAGE, "algorithm", "%s: want another for %s", name, collective_name(coll));
	*out = row;
	return OK;
}
