/* An allreduce over a cluster with few trees, or with shallow ones. Seen from the servers, a tree over n of them has
 * n - 1 edges, so it ends 2 (n - 1) times at an uplink of a server, and at each server at least once. Any numbers of
 * ends with this sum are those of some tree: servers with more than one are hubs, which lead to each other and to the
 * rest. So T trees of rate x fit where each uplink of capacity c has c / x places, rounded down, and
 *
 *     places of each server >= T        places of all servers >= 2 (n - 1) T
 *
 * 128 servers of 8 uplinks of 25 GB/s: 4 trees of 25 GB/s take 1016 of 1024 places: 100 GB/s of at most 100.79.
 *
 * What rounding leaves is used by more trees of another rate: in units of c / 127, uplink after uplink has 126 of one
 * of the 4 trees and 1 of 8 others, and the 8 uplinks that are left have 127 of these: 512 units, which is all.
 *
 *     trees    p of rate c (m - j) / (m k)    q of rate c / m      an uplink: k of the first and j of the others
 *
 * Places are taken by as few hubs as suffice, since trees are shallow then. With more trees there are more places at
 * each server, so there are fewer hubs: of choices with nearly the highest rate that with the fewest hubs is taken.
 * Where networks are not joined, as rails, there are two kinds of trees, and the better is taken. Of the one, a tree
 * has one of the rails, and servers that miss it hang on another one. Of the other, places of all rails count the same,
 * and which one an edge takes follows (rails.c): 4 trees of 25 GB/s fit 8 rails, too. Where more than MANY
 * trees for each rail are allowed, only the first kind is tried: it fills the rails, and is shallower. */
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/places.h"

#include <string.h>

enum {
	MOST_WORK = 1 << 26,	/* servers that are visited: a second */
	MOST_K = 1 << 12,	/* of those of the first: c / k */
	MOST_M = 1 << 15,	/* of the rates of the second trees: c / m */
	NEAR = 1000,		/* rates that differ by less than this part are near */
	FAR = 4,		/* those of first trees alone that differ by more are of no use */
	MOST_CAPACITIES = 4,	/* of uplinks that k and m are counted for */
	CHOICES = 6		/* numbers of first trees that are tried */
};

/* Uplinks of hubs, or, where these use all planes, servers: uplinks of one come together. */
static int
count_hubs(const struct few *f, int t)
{
	int n = 0, before = -1;
	for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++) {
		int s = f->c.of[f->c.uplink[0][f->extra[i].uplink].rank];
		n += !f->mixed || s != before;
		before = s;
	}
	return n;
}

/* As places_take; nothing stays but the number of hubs. */
static Status
try_choice(struct few *f, struct choice *choice, bool *good)
{
	ArenaMark mark = arena_mark(&f->ctx->scratch);
	TRY(places_take(f, choice, good));
	for (int t = 0; t < choice->p + choice->q && *good; t++) {
		int n = count_hubs(f, t);
		choice->hubs = n > choice->hubs ? n : choice->hubs;
	}
	arena_release(&f->ctx->scratch, mark);
	return OK;
}

/* ---- the search ---- */

/* The order of their rates, of a's less one part of `parts`; 0: of all of it. */
static int
compare_rates(const struct choice *a, int parts, const struct choice *b)
{
	Wide rate = (Wide)(a->p * a->first + a->q * a->second) * a->unit;
	rate = parts ? rate * (parts - 1) : rate;
	return ratio_cmp(rate, (Wide)a->scale * (parts ? parts : 1),
	    (Wide)(b->p * b->first + b->q * b->second) * b->unit, b->scale);
}

/* Is the rate far below the highest? */
static bool
is_lower(const struct few *f, const struct choice *choice)
{
	return f->top.p > 0 && compare_rates(&f->top, NEAR, choice) > 0;
}

static void
keep(struct few *f, const struct choice *choice)
{
	if (f->top.p == 0 || compare_rates(choice, 0, &f->top) > 0)
		f->top = *choice;
	if (f->best.p == 0 || is_lower(f, &f->best) || (!is_lower(f, choice) && (choice->hubs < f->best.hubs
	    || (choice->hubs == f->best.hubs && compare_rates(choice, 0, &f->best) > 0))))
		f->best = *choice;
}

/* p trees of one rate, k at an uplink of capacity `unit`; q of another, j at each uplink that has k. */
struct search {
	struct few *f;
	int p, q, k, j;
	int64_t unit;
};

static struct choice
choice_of(const struct search *s, int64_t x)
{
	if (s->q == 0)
		return (struct choice){ s->p, 0, 1, 0, x, s->unit, 0, s->f->mixed };
	return (struct choice){ s->p, s->q, x - s->j, s->k, x * s->k, s->unit, 0, s->f->mixed };
}

/* The least x from `low` to `high` with which they fit; none, where *out has p = 0. */
static Status
find_least(const struct search *s, int64_t low, int64_t high, struct choice *out)
{
	struct few *f = s->f;
	out->p = 0;
	for (int64_t at = low; low <= high && f->work < MOST_WORK; at = low + (high - low) / 2) {
		struct choice choice = choice_of(s, at);
		bool good, lower = is_lower(f, &choice);
		if (lower) {
			high = at - 1;
			continue;
		}
		TRY(try_choice(f, &choice, &good));
		if (good)
			*out = choice;
		low = good ? low : at + 1;
		high = good ? at - 1 : high;
	}
	if (out->p > 0)
		keep(f, out);
	return OK;
}

/* How many trees there are at most, if an uplink of capacity `unit` has k places. */
static int64_t
count_trees(struct few *f, int64_t unit, int64_t k)
{
	const Cluster *c = &f->c;
	int64_t trees = 0, least = f->most;
	memset(f->left, 0, (size_t)f->n_planes * sizeof *f->left);
	for (int s = 0; s < c->n_servers; s++) {
		int64_t sum = 0;
		for (int i = 0; i < c->server[s].n_uplinks[0]; i++) {
			int w = c->server[s].first_uplink[0] + i;
			int64_t n = (int64_t)((Wide)c->uplink[0][w].capacity * k / unit);
			sum += n;
			f->left[places_plane(f, w)] += n;
		}
		least = sum < least ? sum : least;
	}
	for (int g = 0; g < f->n_planes; g++)
		trees += f->left[g] / (2 * (f->servers[g] - 1));
	return trees < least ? trees : least;
}

/* Numbers of trees of one rate, with k places at an uplink: the highest rates first, and more trees first. */
static int
list_numbers(struct few *f, int64_t unit, int number[CHOICES], int k[CHOICES])
{
	int n = 0, p = 0;
	for (int i = 1; p < f->most && i <= MOST_K; i++) {
		p = (int)count_trees(f, unit, i);
		int at = n < CHOICES ? n++ : CHOICES;
		for (; at > 0 && (int64_t)p * k[at - 1] >= (int64_t)number[at - 1] * i; at--)
			if (at < CHOICES) {
				number[at] = number[at - 1];
				k[at] = k[at - 1];
			}
		if (at < CHOICES) {
			number[at] = p;
			k[at] = i;
		}
	}
	while (n > 0 && number[n - 1] == 0)
		n--;
	return n;
}

/* More trees in what those of one rate leave. */
static Status
search_second(struct search *s, int i)
{
	struct choice unused;
	int rest = s->f->most - s->p, uplinks = s->f->c.n_uplinks[0] / s->f->c.n_servers * s->j;
	const int number[] = { uplinks < rest ? uplinks : rest, rest, rest / 2 };
	s->q = number[i];
	/* Else they are worth less than what the others give. */
	if ((int64_t)s->q * s->k > (int64_t)s->p * s->j)
		TRY(find_least(s, s->j + 1, MOST_M, &unused));
	s->q = 0;
	return OK;
}

/* The most trees of one rate with k places at an uplink, of at most s->p. *out: p 0: none fit. */
static Status
find_most(struct search *s, int k, struct choice *out)
{
	int low = 1, high = s->p;
	out->p = 0;
	for (; low <= high; s->p = low + (high - low) / 2) {
		struct choice choice = choice_of(s, k);
		bool good;
		TRY(try_choice(s->f, &choice, &good));
		*out = good ? choice : *out;
		low = good ? s->p + 1 : low;
		high = good ? high : s->p - 1;
	}
	if (out->p > 0)
		keep(s->f, out);
	return OK;
}

/* Trees of one rate. one: room for 2 * CHOICES. */
static Status
search_first(struct search *s, struct choice *one, int *n)
{
	struct few *f = s->f;
	int number[CHOICES], k[CHOICES], n_numbers = list_numbers(f, s->unit, number, k);
	*n = 0;
	for (int i = 0; i < n_numbers; i++) {
		/* Servers that miss a network take places of others: there may be fewer trees, or lower rates. */
		s->p = number[i];
		TRY(find_most(s, k[i], &one[*n]));
		bool fewer = one[*n].p < number[i];
		*n += one[*n].p > 0;
		s->p = number[i];
		if (fewer)
			TRY(find_least(s, k[i], 4 * (int64_t)k[i], &one[*n]));
		*n += fewer && one[*n].p > 0;
	}
	return OK;
}

/* Trees with one hub: with few of them more places are left for each. */
static Status
search_shallow(struct search *s)
{
	struct choice unused;
	for (s->p = s->f->most; s->p > 0; s->p /= 2)
		TRY(find_least(s, 1, 4 * (int64_t)(s->f->c.n_servers + s->p), &unused));
	return OK;
}

static Status
search_unit(struct few *f, int64_t unit)
{
	struct search s = { .f = f, .unit = unit };
	struct choice one[2 * CHOICES];
	int n;
	if (f->hubs != ANY_HUBS)
		return search_shallow(&s);
	TRY(search_first(&s, one, &n));
	for (int at = 0; at < 9; at++)
		for (int i = 0; i < n; i++) {
			s = (struct search){ f, one[i].p, 0, (int)one[i].scale, 1 + at / 3, unit };
			if (compare_rates(&f->top, FAR, &one[i]) <= 0)
				TRY(search_second(&s, at % 3));
		}
	return OK;
}

static Status
search_kind(struct few *f)
{
	int64_t unit[MOST_CAPACITIES];
	int n = 0;
	for (int w = 0; w < f->c.n_uplinks[0] && n < MOST_CAPACITIES; w++) {
		int i = 0;
		while (i < n && unit[i] != f->c.uplink[0][w].capacity)
			i++;
		if (i == n)
			unit[n++] = f->c.uplink[0][w].capacity;
	}
	f->work = 0;
	for (int i = 0; i < n; i++)
		TRY(search_unit(f, unit[i]));
	return OK;
}

static Status
search_all(struct few *f)
{
	enum { MANY = 4 };	/* trees for each rail: those of one rail each fill it, and are shallower */
	places_set_kind(f, false);
	TRY(search_kind(f));
	if (f->n_rails == 1 || f->hubs == ONE_WAY || f->most > MANY * f->n_rails)
		return OK;
	places_set_kind(f, true);
	return search_kind(f);
}

/* Trees of one server each that leads to all others, or whose uplink does, where trees are to be shallow. */
static Hubs
hubs_for(int depth)
{
	enum { OF_ONE_HUB = 6, OF_TWO_LEVELS = 10 };
	return depth == 0 || depth >= OF_TWO_LEVELS ? ANY_HUBS : depth >= OF_ONE_HUB ? ONE_HUB : ONE_WAY;
}

Status
pack_cluster_few(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct few f = { .ctx = ctx, .hubs = hubs_for(ask->max_depth) };
	int64_t each = 2 * (int64_t)(topo->n_ranks - 1);
	bool good = ask->coll == ALLREDUCE && !topo->route && !tree_shares(topo, ask->coll);
	*out = NULL;
	if (good)
		TRY(cluster_read(ctx, topo, &f.c, &good));
	if (good)
		TRY(TEMP(ctx, f.plane, f.c.n_networks));
	if (good && cluster_sides_agree(&f.c) && cluster_find_planes(&f.c, f.plane, &f.n_planes)) {
		f.most = ask->max_trees && ask->max_trees < f.c.n_uplinks[0] ? ask->max_trees : f.c.n_uplinks[0];
		bool too_large = f.most > LIMIT_TREE_EDGES / each;
		f.most = too_large ? (int)(LIMIT_TREE_EDGES / each) : f.most;
		TRY(places_new(&f));
		TRY(search_all(&f));
		if (f.best.p > 0)
			TRY(places_trees(&f, &f.best, out));
		if (*out)
			(*out)->too_large = too_large;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
