/* Which of two packings is kept: the order of all planners of trees, and what packers ask of it.
 *
 * A slightly higher rate is of no use by trees that take much longer: over 16 racks of 18 GPUs on rails, one of which
 * lost a NIC, 64 MiB take 397 us at the bound, and 290 us at 0.9996 of it, when simulated. So what counts first is one
 * number, the rate less a part of it: a LOSS for each doubling of the time of 64 MiB over that by the rate alone. Where
 * the fewest trees are looked for, or their number is limited, it is the rate. */
#include "base/limits.h"
#include "plan/plan.h"

#include <math.h>

static const double SLOW = 1.1;		/* times the time of the rate alone: others may take less */
static const double LOSS = 0.003;	/* of the rate */

static int
compare_ints(int a, int b)
{
	return (a > b) - (a < b);
}

static int
compare_values(double x, double y)
{
	return x > y * (1 + RATE_ROUNDING) ? 1 : y > x * (1 + RATE_ROUNDING) ? -1 : 0;
}

/* What is compared first. time: of PLAN_MESSAGE. */
static double
worth(const Planning *in, Frac rate, double time)
{
	double doublings = log2(fmax(1, time * frac_double(rate) / PLAN_MESSAGE));
	return frac_double(rate) * (1 - (in->topo->n_ranks > LIMIT_ILP_RANKS ? doublings * LOSS : 0));
}

/* Rates that are equal but for rounding, or within the tolerance of the bound, are equal. */
int
plan_compare_rates(const Planning *in, Frac a, Frac b)
{
	double x = frac_double(a), y = frac_double(b);
	double enough = frac_double(in->bound->rate) * (1 - frac_double(in->ask->tolerance)) * (1 - RATE_ROUNDING);
	if (in->ask->tolerance.num > 0 && x >= enough && y >= enough)
		return 0;
	return compare_values(x, y);
}

/* Time within PLAN_SAME_TIME is equal. */
static int
compare_times(double a, double b)
{
	return a > b * (1 + PLAN_SAME_TIME) ? 1 : b > a * (1 + PLAN_SAME_TIME) ? -1 : 0;
}

const char *
plan_better(const Planning *in, const Packing *a, const Packing *b, int *work)
{
	Frac rate, other;
	if (!a || !pack_rate(a, in->ask->coll, in->topo->n_ranks, &rate))
		return NULL;
	if (!b || !pack_rate(b, in->ask->coll, in->topo->n_ranks, &other))
		return "the first";
	bool few = in->ask->tolerance.num > 0 || in->ask->max_trees;
	double time = pack_time(in->topo, a, rate, PLAN_MESSAGE, work);
	double other_time = pack_time(in->topo, b, other, PLAN_MESSAGE, work);
	int rates = plan_compare_rates(in, rate, other);
	if (rates && !few)
		rates = compare_values(worth(in, rate, time), worth(in, other, other_time));
	int trees = compare_ints(b->n_trees, a->n_trees);
	if (rates)
		return rates < 0 ? NULL : frac_cmp(rate, other) > 0 ? "a higher rate" : "less time";
	if (trees && few)
		return trees > 0 ? "fewer trees" : NULL;
	int times = compare_times(other_time, time);
	int depths = compare_ints(pack_depth(b, work), pack_depth(a, work));
	if (times || !depths)
		return times > 0 ? "less time" : trees > 0 && !times ? "fewer trees" : NULL;
	return depths > 0 ? "less depth" : NULL;
}

bool
plan_is_shallow(const Planning *in, const Packing *pack, double part, int *work)
{
	Frac rate;
	return pack && pack_depth(pack, work) <= PLAN_SHALLOW
	    && pack_rate(pack, in->ask->coll, in->topo->n_ranks, &rate)
	    && frac_double(rate) >= frac_double(in->bound->rate) * part;
}

bool
plan_takes_less(const Planning *in, const Packing *a, const Packing *b, double part, int *work)
{
	const Collective coll = in->ask->coll;
	Frac rate, other;
	return pack_rate(a, coll, in->topo->n_ranks, &rate) && pack_rate(b, coll, in->topo->n_ranks, &other)
	    && pack_time(in->topo, a, rate, PLAN_MESSAGE, work)
	    < pack_time(in->topo, b, other, PLAN_MESSAGE, work) * (1 - part);
}

bool
plan_is_slow(const Planning *in, const Packing *pack, int *work)
{
	Frac rate;
	return !pack || !pack_rate(pack, in->ask->coll, in->topo->n_ranks, &rate)
	    || pack_time(in->topo, pack, rate, PLAN_MESSAGE, work) > SLOW * PLAN_MESSAGE / frac_double(rate);
}
