/* Paths of an alltoall without symmetry: a maximum concurrent flow, by trees into each rank.
 *
 * The flow to one rank, from all others together, is a mix of trees into it. So each block is cut into a few equal
 * parts, and every rank has a tree for each part, at first all equal: the state is one link for each vertex and tree,
 * and loads are whole numbers. The method of multipliers (Hestenes 1969, Powell 1969) finds loads and prices: a link
 * costs its price, and more the more it is used above the others:
 *
 *   cost = max(0, price + stiffness * (load / capacity - use)),  with `use` so that the sum of capacity * cost is 1
 *
 * In a round each vertex of each tree takes the link by which its blocks cost least, what they do to loads counted.
 * Then costs become prices. First the links get stiffer and parts are halved, until loads are as even as parts allow.
 * Then they get softer, so that a part more or less changes prices less, and the mean of prices proves a bound: sum of
 * capacity * price / sum of shortest distances, by duality.
 *
 * Before all that prices stay equal, and loads are evened. Where this alone comes near the bound, as in a torus that
 * lost a GPU, little but the prices of links about what was lost is missing, which prove the bound. */
#include "base/limits.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/alltoall/in_trees.h"

#include <math.h>
#include <string.h>

enum {
	MOST_PARTS = 16,
	MOST_CELLS = 1 << 26,	/* vertices of all trees: 512 MiB */
	FINE_LOAD = 12000	/* parts of blocks on the fullest link: one more is less than 1e-4 of it */
};

#define MOST_WORK 5e9		/* links of all trees of all rounds: one to two minutes */
#define NEAR 1e-4		/* of the bound */

static Status
in_trees_new(Ctx *ctx, const Topology *topo, const Bound *known, struct in_trees *s)
{
	double mean = 0, all = 0;
	*s = (struct in_trees){ .ctx = ctx, .topo = topo, .n = topo->n_ranks, .n_vertices = topo->n_vertices,
		.n_links = topo->n_links, .parts = 1, .most_parts = MOST_PARTS, .best_use = INFINITY };
	while (s->most_parts > 1 && (int64_t)s->n * s->n_vertices * s->most_parts > MOST_CELLS)
		s->most_parts /= 2;
	TRY(TEMP_EACH(ctx, (size_t)s->n * (size_t)s->n_vertices * (size_t)s->most_parts, s->next, s->best));
	TRY(TEMP(ctx, s->link, s->n_links));
	TRY(TEMP_EACH(ctx, s->n_links, s->capacity, s->price, s->best_price, s->mean_price));
	TRY(TEMP_EACH(ctx, s->n_vertices, s->placed, s->inner, s->size, s->cost, s->seen, s->saved, s->distance));
	s->paths = (Paths){ .topo = topo, .price = s->price, .classes = ~0u, .relay = true };
	TRY(TEMP(ctx, s->paths.room, 3 * (size_t)s->n_vertices));
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

/* Each tree twice. */
static void
halve_parts(struct in_trees *s)
{
	size_t bytes = (size_t)s->n_vertices * sizeof *s->next;
	for (int root = 0; root < s->n; root++)
		for (int t = 2 * s->parts - 1; t > 0; t--)
			memcpy(in_tree_at(s, s->next, root, t), in_tree_at(s, s->next, root, t / 2), bytes);
	s->parts *= 2;
	for (int l = 0; l < s->n_links; l++) {
		s->link[l].load *= 2;
		s->link[l].per_load /= 2;
	}
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
	for (int root = 0; root < s->n; root++)
		memcpy(in_tree_at(s, s->best, root, 0), in_tree_at(s, s->next, root, 0),
		    (size_t)s->n_vertices * (size_t)s->parts * sizeof *s->best);
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

/* What follows a round: other prices, and links that are stiffer, with smaller parts, and then softer.
 *
 * First prices stay, until loads get no more even. Where these are near the bound then, stiff links change prices in
 * each round; once these prove a better bound, they stay again, and loads become even at them.
 *
 * Elsewhere links are soft then, and all rounds change prices: so prices come near the best ones, as in random graphs,
 * where few paths are as short as others. Where many are, as in tori, all blocks follow each change of prices, and
 * loads get no better: then it is begun anew, `calm`, with stiff links that even loads before prices change, and these
 * seldom. */
struct phase {
	double stiffness;
	bool level, near;	/* prices stay; or did, and loads came near the bound */
	bool soft, calm;
	int round, begin;	/* rounds so far; when it became calm */
	double least;		/* use of the fullest link, the last time that this was lower; `level`: its distance; */
	int since;		/* rounds ago */
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

#define LEVEL_STIFFNESS 30

/* Prices stay from now on: those that prove the best bound. */
static void
hold_prices(struct in_trees *s, struct phase *at)
{
	double all = 0;
	for (int l = 0; l < s->n_links; l++)
		all += s->capacity[l] * (double)s->best_price[l];
	for (int l = 0; l < s->n_links; l++)
		s->link[l].price = s->mean_price[l] = (double)s->best_price[l] / all;
	s->held = at->level = true;
	at->stiffness = LEVEL_STIFFNESS;
	at->least = INFINITY;
	at->since = 0;
}

/* Where prices have to differ, trees that are even at equal ones are no good start. */
static void
begin_anew(struct in_trees *s)
{
	for (int l = 0; l < s->n_links; l++)
		s->link[l].load = 0;
	first_trees(s);
	s->best_use = INFINITY;
	keep_best(s);
}

/* While prices stay. */
static void
follow_level(struct in_trees *s, struct phase *at)
{
	enum { PATIENCE = 2 };
	const double gain = 0.1, far = 0.01, first = 2, near = 200;
	double distance = distance_of(s);
	at->since = distance < (1 - gain) * at->least ? 0 : at->since + 1;
	at->least = fmin(distance, at->least);
	if (at->since < PATIENCE)
		return;
	at->since = 0;
	if (!at->near && s->parts == 1 && distance > far) {
		begin_anew(s);
		at->level = false;
		at->least = INFINITY;
		at->stiffness = first;
		at->begin = at->round + 1;
	} else if (2 * s->parts <= s->most_parts && full_load(s) <= FINE_LOAD) {
		halve_parts(s);
	} else {
		at->level = false;
		at->near = at->soft = true;
		at->stiffness = near;
	}
}

/* Has nothing come of the rounds with soft links? Then all begins anew. */
static bool
become_calm(struct in_trees *s, struct phase *at)
{
	enum { PATIENCE = 8 };
	const double stiff = 40;
	double all = 0;
	at->since = s->best_use < at->least ? 0 : at->since + 1;
	at->least = s->best_use;
	if (at->calm || at->soft || s->parts > 1 || at->since < PATIENCE)
		return false;
	at->calm = true;
	at->begin = at->round + 1;
	at->stiffness = stiff;
	for (int l = 0; l < s->n_links; l++)
		all += s->capacity[l];
	for (int l = 0; l < s->n_links; l++)
		s->link[l].price = s->mean_price[l] = 1 / all;
	return true;
}

static void
next_phase(struct in_trees *s, struct phase *at)
{
	/* One part more on a link changes its cost by less than `noise`. */
	const double stiffer = 1.5, softer = at->near ? 0.95 : 0.8, softest = 0.5, noise = at->calm ? 0.05 : 0.02;
	if (at->level) {
		follow_level(s, at);
		return;
	}
	if (become_calm(s, at))
		return;
	if (at->soft)
		at->stiffness = fmax(softest, at->stiffness * softer);
	else if ((at->round - at->begin) % 2)
		at->stiffness *= stiffer;
	double load = full_load(s);
	if (at->soft || at->stiffness <= noise * load)
		return;
	at->soft = 2 * s->parts > s->most_parts || load > FINE_LOAD;
	if (!at->soft)
		halve_parts(s);
}

/* Do costs become prices after this round? */
static bool
changes_prices(const struct phase *at)
{
	enum { FIRST = 3, FIRST_CALM = 5 };
	int round = at->round - at->begin;
	if (at->level)
		return false;
	return at->soft || (at->calm ? round >= FIRST_CALM && round % 2 == 0 : round >= FIRST);
}

/* Near the bound, or no nearer than some rounds ago. */
static bool
is_done(const struct in_trees *s, struct phase *at)
{
	enum { WAIT = 15 };
	double distance = distance_of(s);
	if (!at->soft || distance < 0.9 * at->distance) {
		at->distance = distance;
		at->waits = 0;
	}
	return distance <= NEAR || at->waits++ > WAIT;
}

static void
rounds(struct in_trees *s)
{
	enum { BOUND_EACH = 3 };
	const double mean_part = 0.2;
	/* ms, as choose_proof (compile.c) wants them. */
	const int proof_time = 2 * (int)((int64_t)s->n * s->n_links / 10000);
	struct phase at = { .level = true, .stiffness = LEVEL_STIFFNESS, .least = INFINITY };
	for (double work = 0; work < MOST_WORK && !is_done(s, &at); at.round++) {
		if (progress(s->ctx, "trees into each rank: round %d, within %.2g of the bound", at.round,
		    s->best_use / s->bound - 1) <= proof_time)
			return;
		set_stiffness(s, at.stiffness);
		in_trees_settle(s);
		in_trees_round(s);
		in_trees_settle(s);
		work += (double)s->n * s->n_links * s->parts;
		keep_best(s);
		if (changes_prices(&at))
			in_trees_reprice(s, mean_part);
		double bound = s->bound;
		if (at.round % BOUND_EACH == 0 && (at.round == 0 || !at.level))
			in_trees_bound(s, at.round / BOUND_EACH, at.soft);
		if (at.near && s->bound > bound * (1 + NEAR))
			hold_prices(s, &at);
		next_phase(s, &at);
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
	Frac part = { 1, s->best_parts };
	memset(listed, -1, (size_t)s->n_vertices * sizeof *listed);
	for (int t = 0; t < s->best_parts; t++) {
		const int *next = in_tree_at(s, s->best, root, t);
		int n = list_links(s, root, next, listed, NULL), *link;
		InTree *tree = &pack->in_tree[pack->n_in_trees];
		if (t > 0 && (n == 0 || n > *room)) {
			frac_add(tree[-1].length, part, &tree[-1].length);
			continue;
		}
		*room -= t > 0 ? n : 0;
		TRY(NEW(s->ctx, link, n));
		list_links(s, root, next, listed, link);
		*tree = (InTree){ .root = root, .length = part, .n_links = n, .link = link };
		frac_make(t, s->best_parts, &tree->offset);
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
	TRY(NEW(s->ctx, pack->in_tree, (size_t)s->n * (size_t)s->best_parts));
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
	log_verbose(ctx, "trees into each rank: %d, of %d parts of each block", (*out)->n_in_trees, s.best_parts);
	arena_release(&ctx->scratch, mark);
	return OK;
}
