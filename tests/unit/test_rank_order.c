/* Algorithms with their ranks in the order of numbers, as Open MPI has them: who sends to whom by its formulas, also on
 * a machine on which another order is faster. */
#include "choice/choice.h"
#include "choice/ompi.h"
#include "compiled.h"

#include <string.h>

enum { N = 8 };

static int number, failures;

static void
ok(bool good, const char *what)
{
	failures += !good;
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
}

static Job *
job_of(Ctx *ctx, const char *path, Collective coll, int root)
{
	static const int gpu[N] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const Ask ask = { .coll = coll, .root = root, .packing = PACKING_EXACT, .epsilon = { 1, 20 },
		.tolerance = FRAC_ZERO, .minimise = true, .links = (1u << N_LINK_CLASSES) - 1 };
	Job *job;
	must(ctx, NEW(ctx, job, 1));
	must(ctx, job_induce(ctx, machine(ctx, path), gpu, N, &ask, job));
	return job;
}

/* sends[src][dst], of all trees. */
static void
plan(const char *path, Collective coll, int root, const char *algorithm, RankOrder order, bool sends[N][N])
{
	Ctx ctx;
	SimParameters p;
	Choices *choices;
	ctx_init(&ctx);
	sim_defaults(EXECUTOR_HOST, &p);
	Job *job = job_of(&ctx, path, coll, root);
	Ask ask = job->ask;
	ask.algorithm = algorithm;
	ask.order = order;
	must(&ctx, choice_prepare_of(&ctx, job, &ask, 1, &p, &choices));
	memset(sends, 0, N * sizeof *sends);
	const Schedule *sched = choices->candidate[0].sched;
	for (int s = 0; s < sched->n_segments; s++) {
		const Tree *tree = &sched->segment[s].tree;
		for (int i = 0; i < tree->n_down + tree->n_up; i++)
			sends[tree_edge(tree, i)->src][tree_edge(tree, i)->dst] = true;
	}
	ctx_free(&ctx);
}

static void
check(const char *what, const char *path, Collective coll, int root, const char *algorithm, RankOrder order,
    bool (*want)(int src, int dst))
{
	bool sends[N][N], good = true;
	int from = root < 0 ? 0 : root;
	plan(path, coll, root, algorithm, order, sends);
	for (int src = 0; src < N; src++)
		for (int dst = 0; dst < N; dst++)
			good &= sends[src][dst] == want((src - from + N) % N, (dst - from + N) % N);
	ok(good, what);
}

static bool
to_next(int src, int dst)
{
	return dst == (src + 1) % N;
}

static bool
along_chain(int src, int dst)
{
	return dst == src + 1;
}

/* The parent of a rank is that without its highest bit. */
static bool
binomial(int src, int dst)
{
	int high = 1;
	while (2 * high <= dst)
		high *= 2;
	return dst > 0 && src == dst - high;
}

static bool
to_distances_before(int src, int dst)
{
	int distance = (src - dst + N) % N;
	return distance == 1 || distance == 2 || distance == 4;
}

static void
check_rules(void)
{
	Ctx ctx;
	SimParameters p;
	OmpiRules rules;
	static const int64_t sizes[] = { 1 << 10, 1 << 26 };
	ctx_init(&ctx);
	sim_defaults(EXECUTOR_HOST, &p);
	Job *job = job_of(&ctx, "topologies/dgx2.xml", BROADCAST, 0);
	must(&ctx, ompi_rules_find(&ctx, job, &p, sizes, 2, &rules));
	ok(rules.n == 2 && rules.n_ranks == N && rules.rule[0].from == 1 << 10 && rules.rule[0].algorithm == 6
	    && rules.rule[0].segment == 0 && rules.rule[1].algorithm == 3 && rules.rule[1].segment > 0
	    && rules.rule[1].segment < 1 << 26 && rules.rule[1].time >= rules.rule[1].least,
	    "a broadcast: binomial, then a pipeline in segments");
	ctx_free(&ctx);
}

int
main(void)
{
	for (int i = 0; i < 2; i++) {
		const char *path = i ? "topologies/dgx1v.xml" : "topologies/dgx2.xml";
		check("a ring", path, ALLREDUCE, -1, "ring", ORDER_RANKS, to_next);
		check("a chain", path, BROADCAST, 3, "chain", ORDER_RANKS, along_chain);
		check("a binomial tree", path, BROADCAST, 3, "knomial", ORDER_BITS, binomial);
		check("Bruck's exchange", path, ALLGATHER, -1, "bruck", ORDER_BACKWARDS, to_distances_before);
	}
	check_rules();
	printf("1..%d\n", number);
	return failures != 0;
}
