/* Paths of an alltoall without symmetry: a maximum concurrent flow, by trees into each rank.
 *
 * The flow to one rank, from all others together, is a mix of trees into it. So each block is cut into equal parts, and
 * every rank has a few trees for some of them each, at first all equal: the state is one link for each vertex and tree,
 * and loads are whole numbers. The method of multipliers (Hestenes 1969, Powell 1969) finds loads and prices: a link
 * costs its price, and more the more it is used above the others:
 *
 *   cost = max(0, price + stiffness * (load / capacity - use)),  with `use` so that the sum of capacity * cost is 1
 *
 * In a round each vertex of each tree takes the link by which its blocks cost least, what they do to loads counted.
 * Then costs become prices. Parts are halved where loads are as even as they allow. The mean of prices proves a bound:
 * sum of capacity * price / sum of shortest distances, by duality.
 *
 * Before all that prices stay equal, and loads are evened. Where this alone comes near the bound, as in a torus that
 * lost a GPU, little but the prices of links about what was lost is missing, which prove the bound. */
#include "base/limits.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/alltoall/in_trees.h"
#include "plan/pack/alltoall/path_columns.h"

#include <math.h>
#include <string.h>

enum {
	MOST_EQUAL = 16,	/* trees of as many parts each */
	MOST_TREES = 24,	/* into a rank */
	FINEST = 4096,		/* parts of a block */
	MOST_CELLS = 3 << 25,	/* vertices of all trees: 768 MiB */
	MUCH_LOAD = 3000,	/* parts on the fullest link from which one more hardly changes its price */
	FINE_LOAD = 12000	/* parts of blocks on the fullest link: one more is less than 1e-4 of it */
};

#define MOST_WORK 5e9		/* links of all trees of all rounds: one to two minutes */
#define LAST_PART 0.8		/* of it, from where prices stay */
#define NEAR 1e-4		/* of the bound */

static Status
in_trees_new(Ctx *ctx, const Topology *topo, const Bound *known, struct in_trees *s)
{
	double mean = 0, all = 0;
	*s = (struct in_trees){ .ctx = ctx, .topo = topo, .n = topo->n_ranks, .n_vertices = topo->n_vertices,
		.n_links = topo->n_links, .parts = 1, .n_trees = 1, .most_trees = MOST_TREES,
		.best_use = INFINITY };
	while (s->most_trees > 1 && (int64_t)s->n * s->n_vertices * s->most_trees > MOST_CELLS)
		s->most_trees--;
	TRY(TEMP_EACH(ctx, (size_t)s->n * (size_t)s->n_vertices * (size_t)s->most_trees, s->next, s->best));
	TRY(TEMP_EACH(ctx, s->most_trees, s->weight, s->best_weight));
	s->weight[0] = 1;
	TRY(TEMP(ctx, s->link, s->n_links));
	TRY(TEMP_EACH(ctx, s->n_links, s->capacity, s->price, s->best_price, s->mean_price, s->last_cost));
	TRY(TEMP_EACH(ctx, s->n_vertices, s->placed, s->inner, s->size, s->cost, s->seen, s->saved, s->distance));
	s->paths = (Paths){ .topo = topo, .price = s->price, .classes = ~0u, .relay = true };
	TRY(TEMP(ctx, s->paths.room, PATHS_ROOM * (size_t)s->n_vertices));
	for (int l = 0; l < s->n_links; l++)
		mean += (double)topo->link[l].capacity / s->n_links;
	for (int l = 0; l < s->n_links; l++) {
		s->capacity[l] = (double)topo->link[l].capacity / mean;
		s->link[l] = (struct in_link){ .per_load = 1 / s->capacity[l], .to = topo->link[l].to };
		all += s->capacity[l];
	}
	for (int l = 0; l < s->n_links; l++)
		s->link[l].price = s->mean_price[l] = 1 / all;
	s->bound = collective_shares(ALLTOALL, s->n) * mean / frac_double(known->rate);
	return OK;
}

static double
use_of(const struct in_trees *s, int l)
{
	return s->link[l].load * s->link[l].per_load;
}

/* Shortest paths; of equal ones, those over links that the trees before have used less. False: there is no path. */
static bool
first_trees(struct in_trees *s)
{
	enum { UNIT = 1 << 12 };
	for (int root = 0; root < s->n; root++) {
		double mean = 0;
		int *next = in_tree_at(s, s->next, root, 0);
		for (int l = 0; l < s->n_links; l++)
			mean += use_of(s, l) / s->n_links;
		for (int l = 0; l < s->n_links; l++)
			s->price[l] = 1 + (int64_t)(UNIT / s->capacity[l] * (root ? 4 + use_of(s, l) / mean : 1));
		shortest_paths(&s->paths, root, true, s->distance, next);
		in_tree_measure(s, root, next);
		for (int v = 0; v < s->n_vertices; v++) {
			if (next[v] >= 0)
				s->link[next[v]].load += s->size[v];
			else if (v < s->n && v != root)
				return false;
		}
	}
	return true;
}

/* Parts of half the size. */
static void
halve_parts(struct in_trees *s)
{
	s->parts *= 2;
	for (int t = 0; t < s->n_trees; t++)
		s->weight[t] *= 2;
	for (int l = 0; l < s->n_links; l++) {
		s->link[l].load *= 2;
		s->link[l].per_load /= 2;
	}
}

/* Each tree from `first` on twice, of half the weight. */
static void
split_trees(struct in_trees *s, int first)
{
	size_t bytes = (size_t)s->n_vertices * sizeof *s->next;
	int n = 2 * s->n_trees - first;
	halve_parts(s);
	for (int root = 0; root < s->n; root++)
		for (int t = n - 1; t > first; t--)
			memcpy(in_tree_at(s, s->next, root, t),
			    in_tree_at(s, s->next, root, first + (t - first) / 2), bytes);
	for (int t = n - 1; t >= first; t--)
		s->weight[t] = s->weight[first + (t - first) / 2] / 2;
	s->n_trees = n;
	s->first = first;
}

static void
keep_best(struct in_trees *s)
{
	double most = 0;
	for (int l = 0; l < s->n_links; l++)
		most = fmax(most, use_of(s, l));
	if (most >= s->best_use)
		return;
	s->best_use = most;
	s->best_parts = s->parts;
	s->n_best = s->n_trees;
	memcpy(s->best_weight, s->weight, (size_t)s->n_trees * sizeof *s->weight);
	for (int root = 0; root < s->n; root++)
		memcpy(in_tree_at(s, s->best, root, 0), in_tree_at(s, s->next, root, 0),
		    (size_t)s->n_vertices * (size_t)s->n_trees * sizeof *s->best);
}

/* By how much of its mean the cost of a link rises where its use does by as much of its own. */
static void
set_stiffness(struct in_trees *s, double relative)
{
	double sum = 0;
	for (int l = 0; l < s->n_links; l++)
		sum += use_of(s, l) * s->capacity[l];
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
 * At last prices stay, and the last tree into each rank is cut, again and again: what the others leave uneven is for
 * these trees of few parts. What they cannot even is for other prices, as near the bound, as long as that helps. */
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
	first_trees(s);
	keep_best(s);
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

static void
begin_last(struct in_trees *s, struct phase *at)
{
	if (!s->held) {
		in_trees_bound(s, LAST_ROUNDINGS);
		hold_prices(s);
	}
	begin(at, LAST, LEVEL_STIFFNESS);
}

static double
unevenness(const struct in_trees *s)
{
	double most = 0;
	for (int l = 0; l < s->n_links; l++)
		most = fmax(most, use_of(s, l));
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
static void
follow_level(struct in_trees *s, struct phase *at)
{
	enum { PATIENCE = 2 };
	const double far = 0.01, moving = 5;
	double distance = distance_of(s);
	if (!is_even(s, at, distance, PATIENCE))
		return;
	at->since = 0;
	if (!at->near && s->n_trees == 1 && distance > far) {
		begin_anew(s);
		begin(at, MOVING, moving);
	} else if (full_load(s) < MUCH_LOAD && can_halve(s)) {
		split_trees(s, 0);
	} else if (at->near && wants_smaller_parts(s)) {
		begin_last(s, at);
	} else {
		begin_near(at);
	}
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
			split_trees(s, 0);
		else {
			begin(at, CALM, soft);
			at->soft = true;
		}
	}
}

/* Until trees of fewer parts make loads no more even. */
static void
follow_last(struct in_trees *s, struct phase *at)
{
	enum { PATIENCE = 4, MOST_WAITS = 3 };
	if (!is_even(s, at, unevenness(s), PATIENCE))
		return;
	at->since = 0;
	at->least = INFINITY;
	at->waits = distance_of(s) < 0.9 * at->distance ? 0 : at->waits + 1;
	at->distance = distance_of(s);
	if (s->parts < FINEST && s->n_trees < s->most_trees && at->waits < MOST_WAITS) {
		split_trees(s, s->n_trees - 1);
		at->stiffness = fmax(at->stiffness, 0.05 * full_load(s));
	} else {
		at->done = distance_of(s) > 0.9 * at->before;
		at->before = distance_of(s);
		s->first = 0;
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
		split_trees(s, 0);
}

static void
next_phase(struct in_trees *s, struct phase *at)
{
	switch (at->stage) {
	case LEVEL:
		follow_level(s, at);
		return;
	case MOVING:
		follow_moving(s, at);
		return;
	case LAST:
		follow_last(s, at);
		return;
	case NEAR_BOUND:
	case CALM:
		follow_calm(s, at);
	}
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
	enum { WAIT = 15 };
	double distance = distance_of(s);
	if (!at->soft || distance < 0.9 * at->distance) {
		at->distance = distance;
		at->waits = 0;
	}
	return at->waits++ > WAIT;
}

static void
rounds(struct in_trees *s)
{
	enum { BOUND_EACH = 3 };
	const double mean_part = 0.2, momentum = 0.7;
	/* ms, as choose_proof (compile.c) wants them. */
	const int proof_time = 2 * (int)((int64_t)s->n * s->n_links / 10000);
	struct phase at = { .stage = LEVEL, .stiffness = LEVEL_STIFFNESS, .least = INFINITY,
		.before = INFINITY };
	for (double work = 0; work < MOST_WORK && !at.done && distance_of(s) > NEAR; at.round++) {
		if (progress(s->ctx, "trees into each rank: round %d, within %.2g of the bound", at.round,
		    s->best_use / s->bound - 1) <= proof_time)
			return;
		set_stiffness(s, at.stiffness);
		in_trees_settle(s);
		in_trees_round(s);
		in_trees_settle(s);
		work += (double)s->n * s->n_links * (s->n_trees - s->first);
		keep_best(s);
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
		next_phase(s, &at);
		if (at.stage != LAST && ((at.stage != MOVING && waits_long(s, &at)) || work > LAST_PART * MOST_WORK))
			begin_last(s, &at);
	}
}

/* ---- the packing ---- */

static bool
has_choice(const Topology *topo, int v)
{
	return topo->first_out[v + 1] > topo->first_out[v] + 1;
}

/* Links of one tree into each rank. */
static int64_t
most_listed(const Topology *topo)
{
	int64_t n = 0;
	for (int v = 0; v < topo->n_vertices; v++)
		n += has_choice(topo, v);
	return n * topo->n_ranks;
}

/* Links of vertices that blocks pass, where several leave these and they are not as `listed`. Returns how many.
 * link: or NULL. */
static int
list_links(struct in_trees *s, int root, const int *next, int *listed, int *link)
{
	int n = 0;
	in_tree_measure(s, root, next);
	for (int v = 0; v < s->n_vertices; v++) {
		if (v == root || s->size[v] == 0 || !has_choice(s->topo, v) || listed[v] == next[v])
			continue;
		if (link) {
			link[n] = next[v];
			listed[v] = next[v];
		}
		n++;
	}
	return n;
}

/* Trees that are as the one before are merged with it, and so are those for which there is no room. */
static Status
list_trees(struct in_trees *s, int root, int *listed, int64_t *room, Packing *pack)
{
	int before = 0;
	memset(listed, -1, (size_t)s->n_vertices * sizeof *listed);
	for (int t = 0; t < s->n_best; before += s->best_weight[t++]) {
		const int *next = in_tree_at(s, s->best, root, t);
		Frac part;
		int n = list_links(s, root, next, listed, NULL), *link;
		InTree *tree = &pack->in_tree[pack->n_in_trees];
		frac_make(s->best_weight[t], s->best_parts, &part);
		if (t > 0 && (n == 0 || n > *room)) {
			frac_add(tree[-1].length, part, &tree[-1].length);
			continue;
		}
		*room -= t > 0 ? n : 0;
		TRY(NEW(s->ctx, link, n));
		list_links(s, root, next, listed, link);
		*tree = (InTree){ .root = root, .length = part, .n_links = n, .link = link };
		frac_make(before, s->best_parts, &tree->offset);
		pack->n_in_trees++;
	}
	return OK;
}

static Status
make_packing(struct in_trees *s, Packing **out)
{
	Packing *pack;
	int *listed;
	int64_t room = LIMIT_IN_LINKS - most_listed(s->topo);
	TRY(NEW(s->ctx, pack, 1));
	TRY(NEW(s->ctx, pack->in_tree, (size_t)s->n * (size_t)s->n_best));
	TRY(TEMP(s->ctx, listed, s->n_vertices));
	for (int root = 0; root < s->n; root++)
		TRY(list_trees(s, root, listed, &room, pack));
	*out = pack;
	return OK;
}

Status
pack_in_trees(Ctx *ctx, const Topology *topo, Packing **out, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct in_trees s;
	*out = NULL;
	if (topo->route || (int64_t)topo->n_ranks * topo->n_vertices > MOST_CELLS || most_listed(topo) > LIMIT_IN_LINKS)
		return OK;
	TRY(in_trees_new(ctx, topo, proof, &s));
	if (!first_trees(&s))
		return OK;
	keep_best(&s);
	rounds(&s);
	TRY(in_trees_prove(&s, proof));
	TRY(make_packing(&s, out));
	log_verbose(ctx, "trees into each rank: %d, of %d parts of each block, within %.2g of the bound",
	    (*out)->n_in_trees, s.best_parts, fmax(0, distance_of(&s)));
	arena_release(&ctx->scratch, mark);
	return OK;
}
