/* template_weights on random trees: demands have equal sums, and its prices prove that no weights are better. */
#include "plan/pack/lp/weights.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>

enum { ORBITS = 40, DEMANDS = 12, TREES = 200 };

static int64_t capacity[ORBITS], load[TREES * ORBITS], weight[TREES];
static int demand[TREES], links[ORBITS];
static double price[ORBITS];

/* Orbits of one link and of thousands, over which a tree has some hops for each; each demand has a tree at least. */
static void
make_pool(struct template_pool *pool)
{
	int orbits = 1 + below(ORBITS), demands = 1 + below(DEMANDS), n = demands + below(TREES - demands);
	*pool = (struct template_pool){ .n_orbits = orbits, .n_demands = demands, .capacity = capacity, .n = n,
		.demand = demand, .load = load, .most_steps = 4096 };
	for (int o = 0; o < orbits; o++) {
		links[o] = below(2) ? 1 : 1 + below(2000);
		capacity[o] = (1 + below(12)) * INT64_C(25000000000) * links[o];
	}
	for (int t = 0; t < n; t++) {
		bool used = false;
		demand[t] = t < demands ? t : below(demands);
		for (int o = 0; o < orbits; o++) {
			load[t * orbits + o] = below(3) == 0 ? 1 + below(3 * links[o]) : 0;
			used = used || load[t * orbits + o] > 0;
		}
		if (!used)
			load[t * orbits] = links[0];
	}
}

/* Rates of a demand: of the weights, and one that none can exceed. */
static double
rate_of(const struct template_pool *pool, int64_t sum)
{
	double least = INFINITY;
	for (int o = 0; o < pool->n_orbits; o++) {
		double all = 0;
		for (int t = 0; t < pool->n; t++)
			all += (double)weight[t] * (double)load[t * pool->n_orbits + o];
		least = all > 0 ? fmin(least, (double)capacity[o] * (double)sum / all) : least;
	}
	return least;
}

/* A rate r costs, by any prices, r times the cheapest tree of each demand, and all capacities cost what they do. */
static double
bound_of(const struct template_pool *pool)
{
	double cheapest[DEMANDS], all = 0, demands = 0;
	for (int d = 0; d < pool->n_demands; d++)
		cheapest[d] = INFINITY;
	for (int o = 0; o < pool->n_orbits; o++)
		all += price[o] * (double)capacity[o];
	for (int t = 0; t < pool->n; t++) {
		double cost = 0;
		for (int o = 0; o < pool->n_orbits; o++)
			cost += price[o] * (double)load[t * pool->n_orbits + o];
		cheapest[demand[t]] = fmin(cheapest[demand[t]], cost);
	}
	for (int d = 0; d < pool->n_demands; d++)
		demands += cheapest[d];
	return all / demands;
}

static bool
sums_agree(const struct template_pool *pool, int64_t sum)
{
	int64_t of[DEMANDS] = { 0 };
	bool good = true;
	for (int t = 0; t < pool->n; t++) {
		good = good && weight[t] >= 0;
		of[demand[t]] += weight[t];
	}
	for (int d = 0; d < pool->n_demands; d++)
		good = good && of[d] == sum;
	return good;
}

/* Two trees over seven links in turn, and one over all: parts of seven. */
static int
not_in_turn(Ctx *ctx)
{
	enum { LINKS = 7 };
	struct template_pool pool = { .n_orbits = LINKS, .n_demands = 2, .capacity = capacity, .n = LINKS + 1,
		.demand = demand, .load = load, .most_steps = 4096 };
	int64_t sum;
	int wrong = 0;
	for (int t = 0; t <= LINKS; t++) {
		demand[t] = t == LINKS;
		for (int o = 0; o < LINKS; o++)
			load[t * LINKS + o] = t == LINKS || t == o;
	}
	for (int o = 0; o < LINKS; o++)
		capacity[o] = 8;
	if (template_weights(ctx, &pool, weight, &sum, price) != OK)
		return 1;
	for (int t = 0; t <= LINKS; t++)
		wrong += weight[t] != (t == LINKS ? LINKS : 1);
	return wrong + (sum != LINKS);
}

int
main(void)
{
	int wrong = 0, apart = 0, unsolved = 0, turns;
	Ctx ctx;
	for (int round = 0; round < 300; round++) {
		struct template_pool pool;
		int64_t sum;
		make_pool(&pool);
		ctx_init(&ctx);
		if (template_weights(&ctx, &pool, weight, &sum, price) != OK)
			wrong++;
		else if (sum == 0)
			unsolved++;
		else {
			wrong += !sums_agree(&pool, sum);
			apart += rate_of(&pool, sum) < bound_of(&pool) * (1 - 1e-7);
		}
		ctx_free(&ctx);
	}
	ctx_init(&ctx);
	turns = not_in_turn(&ctx);
	ctx_free(&ctx);
	return report(wrong, "equal sums") + report(apart, "the highest rate") + report(unsolved, "solved")
	    + report(turns, "seven links in turn") ? EXIT_FAILURE : EXIT_SUCCESS;
}
