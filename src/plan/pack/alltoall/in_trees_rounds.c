/* The rounds that even loads of trees into each rank, and what follows each.
 *
 * The method of multipliers (Hestenes 1969, Powell 1969) finds loads and prices: a link costs its price, and more the
 * more it is used above the others:
 *
 *   cost = max(0, price + stiffness * (load / capacity - use)),  with `use` so that the sum of capacity * cost is 1
 *
 * In a round each vertex of each tree takes the link by which its blocks cost least, what they do to loads counted.
 * Then costs become prices. Parts are halved where loads are as even as they allow. The mean of prices proves a bound:
 * sum of capacity * price / sum of shortest distances, by duality.
 *
 * Before all that prices stay equal, and loads are evened. Where this alone comes near the bound, as in a torus that
 * lost a GPU, little but the prices of links about what was lost is missing, which prove the bound. */
#include "plan/pack/alltoall/in_trees.h"

#include <math.h>

enum {
	MOST_EQUAL = 16,	/* trees of as many parts each */
	MUCH_LOAD = 3000,	/* parts on the fullest link from which one more hardly changes its price */
	FINE_LOAD = 12000	/* parts of blocks on the fullest link: one more is less than 1e-4 of it */
};

#define MOST_WORK 8.5e9		/* links that all rounds and searches scan: about a minute */
#define LAST_PART 0.8		/* of it, from where prices stay */
#define KINDS_PART 0.3		/* of it, for the best prices of kinds of links */
#define NEAR 1e-4		/* of the bound */

/* By how much of its mean the cost of a link rises where its use does by as much of its own. */
static void
set_stiffness(struct in_trees *s, double relative)
{
	double sum = 0;
	for (int l = 0; l < s->n_links; l++)
		sum += in_trees_use(s, l) * s->capacity[l];
	s->stiffness = relative / sum;
}

/* What follows a round: other prices, and links that are stiffer, with smaller parts.
 *
 * First prices stay, until loads get no more even. Where these are near the bound then, stiff links change prices in
 * each round; once these prove a better bound, they stay again, and loads become even at them.
 *
 * Elsewhere all is begun anew, links are soft, all rounds change prices, and prices go on in the direction in which
 * they went (Polyak 1964): so they come near the best ones, as in random graphs, where few paths are as short as
 * others; then they stay, as above.
 * Where many are, as in tori, all blocks follow each change of prices, and the bound gets no better: then it is begun
 * anew, `calm`, with stiff links that even loads before prices change, and these seldom.
 *
 * At last prices stay: the best that few kinds of links have in common, where these prove more (in_trees_kinds.c). The
 * last tree into each rank is cut, again and again: what the others leave uneven is for these trees of few parts. What
 * they cannot even is for other prices, as near the bound, as long as that helps; or, where costs prove it, no paths
 * can. */
enum stage { LEVEL, NEAR_BOUND, MOVING, CALM, LAST };

struct phase {
	enum stage stage;
	double stiffness;
	bool near;		/* loads came near the bound while prices stayed, or prices did; */
	bool done;		/* this is the end */
	bool soft;		/* stiffness falls */
	int round, begin;	/* rounds so far; when the stage began */
	double least;		/* how uneven loads were at best; */
	int since;		/* rounds ago */
	double bound;		/* the last time that it was better by much */
	int stalls;		/* rounds ago */
	double before;		/* distance from the bound at the end of the LAST stage before */
	int waits;		/* rounds since the distance from the bound was this */
	double distance;
};

/* Parts of blocks on the thinnest of the links that have a price. */
static double
full_load(const struct in_trees *s)
{
	double least = INFINITY;
	for (int l = 0; l < s->n_links; l++)
		if (s->link[l].price > 0)
			least = fmin(least, s->capacity[l]);
	return s->use * s->parts * least;
}

static double
distance_of(const struct in_trees *s)
{
	return s->best_use / s->bound - 1;
}

static void
begin(struct phase *at, enum stage stage, double stiffness)
{
	at->stage = stage;
	at->stiffness = stiffness;
	at->least = INFINITY;
	at->since = at->stalls = at->waits = 0;
	at->begin = at->round + 1;
	at->soft = false;
}

#define LEVEL_STIFFNESS 30

/* By how much of a link's mean cost one part more changes it while prices stay at last: where all trees move, and where
 * the last ones do. */
#define EVEN_NOISE 0.01
#define CUT_NOISE 0.05

/* Prices stay from now on: those that prove the best bound, if any do. */
static void
hold_prices(struct in_trees *s)
{
	double all = 0;
	for (int l = 0; l < s->n_links; l++)
		all += s->capacity[l] * (double)s->best_price[l];
	for (int l = 0; l < s->n_links && all > 0; l++)
		s->link[l].price = s->mean_price[l] = (double)s->best_price[l] / all;
	s->held = all > 0;
	s->first = 0;
}

/* Where prices have to differ, trees that are even at equal ones are no good start. */
static void
begin_anew(struct in_trees *s)
{
	double all = 0;
	s->parts = s->n_trees = s->weight[0] = 1;
	s->first = 0;
	for (int l = 0; l < s->n_links; l++)
		all += s->capacity[l];
	for (int l = 0; l < s->n_links; l++) {
		s->link[l].load = 0;
		s->link[l].per_load = 1 / s->capacity[l];
		s->link[l].price = s->mean_price[l] = s->last_cost[l] = 1 / all;
	}
	in_trees_first(s);
	in_trees_keep_best(s);
}

/* Into equal parts, as many as there may be of them. */
static bool
can_halve(const struct in_trees *s)
{
	return 2 * s->n_trees <= s->most_trees && 2 * s->n_trees <= MOST_EQUAL && full_load(s) <= FINE_LOAD;
}

/* Have loads got no more even, by a tenth, for some rounds, or do hardly any vertices take other links? */
static bool
is_even(const struct in_trees *s, struct phase *at, double uneven, int patience)
{
	at->since = uneven < 0.9 * at->least ? 0 : at->since + 1;
	at->least = fmin(uneven, at->least);
	return at->since >= patience || s->moves < s->n;
}

static Status
begin_last(struct in_trees *s, struct phase *at)
{
	if (!s->held) {
		in_trees_bound(s, LAST_ROUNDINGS);
		TRY(in_trees_kinds(s, KINDS_PART * MOST_WORK));
		hold_prices(s);
	}
	begin(at, LAST, fmax(LEVEL_STIFFNESS, EVEN_NOISE * full_load(s)));
	return OK;
}

static double
unevenness(const struct in_trees *s)
{
	double most = 0;
	for (int l = 0; l < s->n_links; l++)
		most = fmax(most, in_trees_use(s, l));
	return most / s->use - 1;
}

/* Loads at the bound but for a few parts of blocks. */
static bool
wants_smaller_parts(const struct in_trees *s)
{
	enum { FEW = 3 };
	return fabs(s->use / s->bound - 1) < NEAR && unevenness(s) * full_load(s) < FEW;
}

static void
begin_near(struct phase *at)
{
	const double near = 200;
	begin(at, NEAR_BOUND, near);
	at->near = at->soft = true;
}

/* While prices stay. */
static Status
follow_level(struct in_trees *s, struct phase *at)
{
	enum { PATIENCE = 2 };
	const double far = 0.01, moving = 5;
	double distance = distance_of(s);
	if (!is_even(s, at, distance, PATIENCE))
		return OK;
	at->since = 0;
	if (!at->near && s->n_trees == 1 && distance > far) {
		begin_anew(s);
		begin(at, MOVING, moving);
	} else if (full_load(s) < MUCH_LOAD && can_halve(s)) {
		in_trees_split(s);
	} else if (at->near && wants_smaller_parts(s)) {
		return begin_last(s, at);
	} else {
		begin_near(at);
	}
	return OK;
}

/* While prices move. Far from the bound parts stay large, and what does not come nearer to it is begun anew. */
static void
follow_moving(struct in_trees *s, struct phase *at)
{
	enum { SOON = 2, PATIENCE = 7, MOST_STALLS = 12 };
	const double much = 1e-3, far = 3e-3, calm = 40, soft = 300;
	double from_bound = fabs(s->use / s->bound - 1);
	bool fine = s->n_trees == 1 && full_load(s) > MUCH_LOAD;
	at->stalls = s->bound > (1 + much) * at->bound ? 0 : at->stalls + 1;
	at->bound = at->stalls ? at->bound : s->bound;
	if (at->stalls >= MOST_STALLS && from_bound > far) {
		begin_anew(s);
		begin(at, CALM, calm);
	} else if (is_even(s, at, unevenness(s), fine ? SOON : PATIENCE) && from_bound < far) {
		at->since = 0;
		at->least = INFINITY;
		if (from_bound < NEAR) {
			hold_prices(s);
			begin(at, LEVEL, LEVEL_STIFFNESS);
			at->near = true;
		} else if (can_halve(s))
			in_trees_split(s);
		else {
			begin(at, CALM, soft);
			at->soft = true;
		}
	}
}

/* Until trees of fewer parts make loads no more even. While all trees move they are split in two, as far as that leaves
 * room for cuts. */
static void
follow_last(struct in_trees *s, struct phase *at)
{
	enum { PATIENCE = 4, MOST_WAITS = 3, FEW = 6 };
	if (!is_even(s, at, unevenness(s), PATIENCE))
		return;
	at->since = 0;
	at->least = INFINITY;
	at->waits = distance_of(s) < 0.9 * at->distance ? 0 : at->waits + 1;
	at->distance = distance_of(s);
	if (s->first == 0 && FEW * s->n_trees <= s->most_trees && can_halve(s)) {
		in_trees_split(s);
		at->stiffness = fmax(at->stiffness, EVEN_NOISE * full_load(s));
	} else if (s->parts < FINEST && s->n_trees < s->most_trees && at->waits < MOST_WAITS) {
		in_trees_cut_last(s);
		at->stiffness = fmax(at->stiffness, CUT_NOISE * full_load(s));
	} else {
		in_trees_bound_by_costs(s);
		hold_prices(s);
		at->done = distance_of(s) > 0.9 * at->before;
		at->before = distance_of(s);
		begin_near(at);
	}
}

/* Stiffer links and smaller parts in turn, then softer links, by which a part more or less changes prices less. */
static void
follow_calm(struct in_trees *s, struct phase *at)
{
	/* One part more on a link changes its cost by less than `noise`. */
	const double stiffer = 1.5, softer = at->near ? 0.95 : 0.8, softest = 0.5, noise = 0.05;
	if (at->soft)
		at->stiffness = fmax(softest, at->stiffness * softer);
	else if ((at->round - at->begin) % 2)
		at->stiffness *= stiffer;
	if (at->soft || at->stiffness <= noise * full_load(s))
		return;
	at->soft = !can_halve(s);
	if (!at->soft)
		in_trees_split(s);
}

static Status
next_phase(struct in_trees *s, struct phase *at)
{
	switch (at->stage) {
	case LEVEL:
		return follow_level(s, at);
	case MOVING:
		follow_moving(s, at);
		break;
	case LAST:
		follow_last(s, at);
		break;
	case NEAR_BOUND:
	case CALM:
		follow_calm(s, at);
	}
	return OK;
}

/* Do costs become prices after this round? */
static bool
changes_prices(const struct phase *at)
{
	enum { FIRST = 3, FIRST_CALM = 5 };
	int round = at->round - at->begin;
	if (at->stage == LEVEL || at->stage == LAST)
		return false;
	return at->soft || (at->stage == CALM ? round >= FIRST_CALM && round % 2 == 0 : round >= FIRST);
}

/* No nearer to the bound than some rounds ago? */
static bool
waits_long(const struct in_trees *s, struct phase *at)
{
	enum { WAIT = 12 };
	double distance = distance_of(s);
	if (!at->soft || distance < 0.9 * at->distance) {
		at->distance = distance;
		at->waits = 0;
	}
	return at->waits++ > WAIT;
}

Status
in_trees_rounds(struct in_trees *s)
{
	enum { BOUND_EACH = 3 };
	const double mean_part = 0.2, momentum = 0.7;
	struct phase at = { .stage = LEVEL, .stiffness = LEVEL_STIFFNESS, .least = INFINITY,
		.before = INFINITY };
	for (; s->work < MOST_WORK && !at.done && distance_of(s) > NEAR; at.round++) {
		if (progress(s->ctx, "trees into each rank: round %d, within %.2g of the bound", at.round,
		    s->best_use / s->bound - 1) <= in_trees_proof_time(s))
			return OK;
		set_stiffness(s, at.stiffness);
		in_trees_settle(s);
		in_trees_round(s);
		in_trees_settle(s);
		s->work += (double)s->n * s->n_links * (s->n_trees - s->first);
		in_trees_keep_best(s);
		bool changes = changes_prices(&at);
		if (changes)
			in_trees_reprice(s, mean_part, at.stage == MOVING ? momentum : 0);
		double bound = s->bound;
		if (at.round % BOUND_EACH == 0 && (at.round == 0 || changes))
			in_trees_bound(s, 1);
		if (at.stage == NEAR_BOUND && s->bound > bound * (1 + NEAR)) {
			hold_prices(s);
			begin(&at, LEVEL, LEVEL_STIFFNESS);
		}
		TRY(next_phase(s, &at));
		if (at.stage != LAST && ((at.stage != MOVING && waits_long(s, &at)) || s->work > LAST_PART * MOST_WORK))
			TRY(begin_last(s, &at));
	}
	return OK;
}
