/* An allreduce over a cluster with few trees, or with shallow ones. Seen from the servers, a tree over n of them has
 * n - 1 edges, so it ends 2 (n - 1) times at a way of a server, and at each server at least once. Any numbers of ends
 * with this sum are those of some tree: servers with more than one are hubs, which lead to each other and to the rest.
 * So T trees of rate x fit where each way of capacity c has c / x places, rounded down, and
 *
 *     places of each server >= T        places of all servers >= 2 (n - 1) T
 *
 * 128 servers of 8 ways of 25 GB/s: 4 trees of 25 GB/s take 1016 of 1024 places: 100 GB/s of at most 100.79.
 *
 * What rounding leaves is used by more trees of another rate: in units of c / 127, way after way has 126 of one of the
 * 4 trees and 1 of 8 others, and the 8 ways that are left have 127 of these: 512 units, which is all.
 *
 *     trees    p of rate c (m - j) / (m k)    q of rate c / m      a way: k of the first and j of the others
 *
 * Places are taken by as few hubs as suffice, since trees are shallow then. With more trees there are more places at
 * each server, so there are fewer hubs: of choices with nearly the highest rate that with the fewest hubs is taken.
 * Where networks are not joined, as rails, there are two kinds of trees, and the better is taken. Of the one, a tree
 * has one of the rails, and servers that miss it hang on another one. Of the other, places of all rails count the same,
 * and which one an edge takes follows (rails.c): 4 trees of 25 GB/s fit 8 rails, too. Where more than MANY
 * trees for each rail are allowed, only the first kind is tried: it fills the rails, and is shallower. */
#include "base/array.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/rails.h"

#include <string.h>

enum {
	MOST_WORK = 1 << 26,	/* servers that are looked at: a second */
	MOST_K = 1 << 12,	/* of those of the first: c / k */
	MOST_M = 1 << 15,	/* of the rates of the second trees: c / m */
	NEAR = 1000,		/* rates that differ by less than this part are near */
	FAR = 4,		/* those of first trees alone that differ by more are of no use */
	MOST_CAPACITIES = 4,	/* of ways that k and m are counted for */
	CHOICES = 6		/* numbers of first trees that are looked at */
};

/* How far from its root a tree has other servers. */
typedef enum { ANY_HUBS, ONE_HUB, ONE_WAY } Hubs;

/* p trees of weight `first`, q of `second`; a way of capacity c has room for c * scale / unit. */
struct choice {
	int p, q;
	int64_t first, second, scale, unit;
	int hubs;		/* of the tree with most */
	bool mixed;		/* each tree may use all planes */
};

/* A place at a way, n times, besides the one by which the tree enters the server. */
struct extra {
	int way, n;
};

struct few {
	Ctx *ctx;
	Cluster c;
	Hubs hubs;
	int most;		/* trees */
	int n_planes, *plane;	/* of networks: those that are joined are one */
	/* Do trees use all planes? Then these are one while places are counted, and for edges they are n_rails. */
	bool mixed;
	int n_rails, *rail;
	int *servers;		/* of each plane: those with ways there, 2 at least */
	bool *alone;		/* ways that lead to no other server */
	int64_t *capacity;	/* of each way, in weights, what is left */
	int64_t *room;		/* of each way: places */
	int64_t *left;		/* of each plane: places that no tree needs yet */
	int64_t *sum;		/* [plane * n_servers + server]: places */
	int *reach;		/* of each plane: servers with some */
	int *way;		/* [tree * n_servers + server]: the way by which it enters */
	int *partner;		/* likewise: of servers that are on another plane than their tree: the other way */
	int *parent, *from;	/* likewise, mixed: the server that it hangs on, -1: none, and the way there */
	int *main;		/* of each tree: its plane */
	int *first_extra;	/* of each tree, and one more */
	int n_extras, extra_room;
	struct extra *extra;
	int64_t work;
	struct choice top, best;	/* with the highest rate; of those near it, with the fewest hubs */
};

static int
plane_of(const struct few *f, int way)
{
	return f->plane[f->c.way[0][way].network];
}

/* False: some networks lead to others that do not lead back, or not to all that these lead to. */
static bool
find_planes(struct few *f)
{
	const Cluster *c = &f->c;
	int n = c->n_networks;
	for (int a = 0; a < n; a++) {
		int b = 0;
		while (b < a && c->between[(size_t)a * (size_t)n + (size_t)b].n < 0)
			b++;
		f->plane[a] = b < a ? f->plane[b] : f->n_planes++;
	}
	bool good = true;
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n && good; b++)
			good = (c->between[(size_t)a * (size_t)n + (size_t)b].n >= 0) == (f->plane[a] == f->plane[b]);
	return good;
}

/* ---- places ---- */

/* The way of server s on this plane with most places; -1: none has one. */
static int
roomy_way(const struct few *f, int s, int plane)
{
	const struct cluster_server *server = &f->c.server[s];
	int best = -1;
	for (int i = 0; i < server->n_ways[0]; i++) {
		int w = server->first_way[0] + i;
		if (plane_of(f, w) == plane && f->room[w] > 0 && (best < 0 || f->room[w] > f->room[best]))
			best = w;
	}
	return best;
}

/* The way of server s with places on the plane that has most left. */
static int
other_way(const struct few *f, int s, int plane)
{
	const struct cluster_server *server = &f->c.server[s];
	int best = -1;
	for (int i = 0; i < server->n_ways[0]; i++) {
		int w = server->first_way[0] + i;
		if (plane_of(f, w) != plane && f->room[w] > 0
		    && (best < 0 || f->left[plane_of(f, w)] > f->left[plane_of(f, best)]))
			best = w;
	}
	return best;
}

static void
use_places(struct few *f, int way, int64_t n)
{
	int s = f->c.of[f->c.way[0][way].rank], plane = plane_of(f, way);
	int64_t *sum = &f->sum[(size_t)plane * (size_t)f->c.n_servers + (size_t)s];
	f->reach[plane] += (*sum - n > 0) - (*sum > 0);
	f->room[way] -= n;
	*sum -= n;
}

/* A place at each server. *others: of servers that are on another plane. False: some server has none. */
static bool
enter_servers(struct few *f, int t, int *others)
{
	int n = f->c.n_servers, *way = f->way + (size_t)t * (size_t)n, plane = f->main[t];
	*others = 0;
	for (int s = 0; s < n; s++) {
		way[s] = roomy_way(f, s, plane);
		if (way[s] < 0) {
			way[s] = other_way(f, s, plane);
			++*others;
		}
		if (way[s] < 0)
			return false;
		use_places(f, way[s], 1);
		int at = plane_of(f, way[s]);
		f->left[at] -= at == plane ? 1 : 2;
	}
	f->left[plane] -= n - *others - 2;
	return n - *others >= 2 && f->left[plane] >= 0;
}

static Status
take(struct few *f, int way, int64_t n)
{
	TRY(GROW_TEMP(f->ctx, f->extra, f->n_extras, f->extra_room));
	f->extra[f->n_extras++] = (struct extra){ way, (int)n };
	use_places(f, way, n);
	return OK;
}

/* The server on the tree's plane with most places there. -1: none has one. */
static int
roomy_server(struct few *f, int t, int plane, int64_t *most)
{
	int n = f->c.n_servers, best = -1;
	const int *way = f->way + (size_t)t * (size_t)n;
	*most = 0;
	for (int s = 0; s < n; s++) {
		int64_t room = f->sum[(size_t)plane * (size_t)n + (size_t)s];
		if (room <= *most || plane_of(f, way[s]) != f->main[t])
			continue;
		*most = room;
		best = s;
	}
	f->work += n;
	return best;
}

/* Hubs of a tree, those with most places first. */
static Status
take_hubs(struct few *f, int t, int64_t need, bool *good)
{
	int64_t most;
	while (need > 0 && *good) {
		int s = roomy_server(f, t, f->main[t], &most), w;
		*good = s >= 0 && (f->hubs == ANY_HUBS || most >= need);
		while (*good && need > 0 && (w = roomy_way(f, s, f->main[t])) >= 0) {
			int64_t n = f->room[w] < need ? f->room[w] : need;
			TRY(take(f, w, n));
			need -= n;
		}
	}
	return OK;
}

/* All of its edges leave one way. */
static Status
take_way(struct few *f, int t, int64_t need, bool *good)
{
	int n = f->c.n_servers, *way = f->way + (size_t)t * (size_t)n, best = -1;
	for (int w = 0; w < f->c.n_ways[0]; w++)
		if (plane_of(f, w) == f->main[t] && (best < 0 || f->room[w] > f->room[best]))
			best = w;
	int *at = best < 0 ? NULL : &way[f->c.of[f->c.way[0][best].rank]];
	*good = at && plane_of(f, *at) == f->main[t];
	if (!*good)
		return OK;
	use_places(f, *at, -1);
	*good = f->room[best] > need;
	use_places(f, best, 1);
	*at = best;
	return *good && need > 0 ? take(f, best, need) : OK;
}

/* Servers on other planes hang on a way there of some server of the tree: of its hub, if that has one. */
static void
join_others(struct few *f, int t, bool *good)
{
	int n = f->c.n_servers, *partner = f->partner + (size_t)t * (size_t)n;
	const int *way = f->way + (size_t)t * (size_t)n;
	int hub = f->first_extra[t] < f->n_extras ? f->c.of[f->c.way[0][f->extra[f->first_extra[t]].way].rank] : -1;
	for (int s = 0; s < n && *good; s++) {
		int64_t most;
		int plane = plane_of(f, way[s]), from;
		partner[s] = -1;
		if (plane == f->main[t])
			continue;
		partner[s] = hub < 0 ? -1 : roomy_way(f, hub, plane);
		from = partner[s] < 0 ? roomy_server(f, t, plane, &most) : -1;
		if (from >= 0)
			partner[s] = roomy_way(f, from, plane);
		*good = partner[s] >= 0;
		if (*good)
			use_places(f, partner[s], 1);
	}
}

static Status
finish_tree(struct few *f, int t, int others, bool *good)
{
	int64_t need = f->c.n_servers - others - 2;
	f->first_extra[t] = f->n_extras;
	TRY((f->hubs == ONE_WAY ? take_way : take_hubs)(f, t, need, good));
	if (*good)
		join_others(f, t, good);
	f->first_extra[t + 1] = f->n_extras;
	return OK;
}

/* The plane that reaches most servers, of those with places for a tree, and then that with most left. */
static int
widest_plane(const struct few *f)
{
	int best = -1;
	for (int g = 0; g < f->n_planes; g++) {
		if (f->left[g] < 2 * (int64_t)(f->reach[g] - 1))
			continue;
		if (best < 0 || f->reach[g] > f->reach[best]
		    || (f->reach[g] == f->reach[best] && f->left[g] > f->left[best]))
			best = g;
	}
	return best < 0 ? 0 : best;
}

/* What trees take from the capacity of ways. */
static void
take_capacity(struct few *f, int from, int to, int64_t weight)
{
	for (int t = from; t < to; t++) {
		for (int s = 0; s < f->c.n_servers; s++) {
			size_t at = (size_t)t * (size_t)f->c.n_servers + (size_t)s;
			f->capacity[f->way[at]] -= weight;
			if (f->partner[at] >= 0)
				f->capacity[f->partner[at]] -= weight;
		}
		for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++)
			f->capacity[f->extra[i].way] -= weight * f->extra[i].n;
	}
}

/* The same where trees use all planes: edges for the places that they have at servers. */
static Status
join_places(struct few *f, int from, int to, int64_t weight, bool *good)
{
	int n = f->c.n_servers, *places;
	size_t first = (size_t)from * (size_t)n;
	TRY(TEMP(f->ctx, places, (size_t)(to - from) * (size_t)n));
	for (int t = from; t < to; t++) {
		int *of = places + (size_t)(t - from) * (size_t)n;
		for (int s = 0; s < n; s++)
			of[s] = 1;
		for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++)
			of[f->c.of[f->c.way[0][f->extra[i].way].rank]] += f->extra[i].n;
	}
	for (int w = 0; w < f->c.n_ways[0]; w++)
		f->room[w] = f->capacity[w] / weight;
	struct rail_trees r = { .ctx = f->ctx, .c = &f->c, .n_planes = f->n_rails, .plane = f->rail,
		.n_trees = to - from, .places = places, .room = f->room, .parent = f->parent + first,
		.from = f->from + first, .way = f->way + first };
	TRY(cluster_over_rails(&r, good));
	f->work += r.work;
	for (int w = 0; w < f->c.n_ways[0] && *good; w++)
		f->capacity[w] = f->capacity[w] % weight + f->room[w] * weight;
	return OK;
}

/* Trees `from` to `to` of one weight in what capacity is left, which they take. */
static Status
place(struct few *f, int from, int to, int64_t weight, bool *good)
{
	int64_t sum = 0;
	int *others;
	TRY(TEMP(f->ctx, others, to - from + 1));
	size_t servers = (size_t)f->c.n_servers;
	memset(f->left, 0, (size_t)f->n_planes * sizeof *f->left);
	memset(f->reach, 0, (size_t)f->n_planes * sizeof *f->reach);
	memset(f->sum, 0, (size_t)f->n_planes * servers * sizeof *f->sum);
	for (int w = 0; w < f->c.n_ways[0]; w++) {
		f->room[w] = 0;
		use_places(f, w, -(f->capacity[w] / weight));
		f->left[plane_of(f, w)] += f->room[w];
		sum += f->room[w];
	}
	*good = sum >= 2 * (int64_t)(f->c.n_servers - 1) * (to - from);
	for (int t = from; t < to && *good; t++) {
		f->main[t] = widest_plane(f);
		*good = enter_servers(f, t, &others[t - from]);
		if (*good && f->hubs != ANY_HUBS)
			TRY(finish_tree(f, t, others[t - from], good));
	}
	for (int t = from; t < to && *good && f->hubs == ANY_HUBS; t++)
		TRY(finish_tree(f, t, others[t - from], good));
	if (*good && f->mixed)
		TRY(join_places(f, from, to, weight, good));
	else if (*good)
		take_capacity(f, from, to, weight);
	f->work += (int64_t)f->c.n_ways[0] + 2 * (int64_t)f->c.n_servers * (to - from);
	return OK;
}

static Status
place_all(struct few *f, const struct choice *choice, bool *good)
{
	f->extra = NULL;
	f->n_extras = f->extra_room = 0;
	for (int w = 0; w < f->c.n_ways[0]; w++) {
		Wide room = (Wide)f->c.way[0][w].capacity * choice->scale / choice->unit;
		f->capacity[w] = room >> 60 ? (int64_t)1 << 60 : f->mixed && f->alone[w] ? 0 : (int64_t)room;
	}
	TRY(place(f, 0, choice->p, choice->first, good));
	if (*good && choice->q > 0)
		TRY(place(f, choice->p, choice->p + choice->q, choice->second, good));
	return OK;
}

/* Ways of hubs, or, where these use all planes, servers: ways of one come together. */
static int
count_hubs(const struct few *f, int t)
{
	int n = 0, before = -1;
	for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++) {
		int s = f->c.of[f->c.way[0][f->extra[i].way].rank];
		n += !f->mixed || s != before;
		before = s;
	}
	return n;
}

/* As place_all; nothing stays but the number of hubs. */
static Status
try_choice(struct few *f, struct choice *choice, bool *good)
{
	ArenaMark mark = arena_mark(&f->ctx->scratch);
	TRY(place_all(f, choice, good));
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

/* p trees of one rate, k at a way of capacity `unit`; q of another, j at each way that has k. */
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

/* How many trees there are at most, if a way of capacity `unit` has k places. */
static int64_t
count_trees(struct few *f, int64_t unit, int64_t k)
{
	const Cluster *c = &f->c;
	int64_t trees = 0, least = f->most;
	memset(f->left, 0, (size_t)f->n_planes * sizeof *f->left);
	for (int s = 0; s < c->n_servers; s++) {
		int64_t sum = 0;
		for (int i = 0; i < c->server[s].n_ways[0]; i++) {
			int w = c->server[s].first_way[0] + i;
			int64_t n = (int64_t)((Wide)c->way[0][w].capacity * k / unit);
			sum += n;
			f->left[plane_of(f, w)] += n;
		}
		least = sum < least ? sum : least;
	}
	for (int g = 0; g < f->n_planes; g++)
		trees += f->left[g] / (2 * (f->servers[g] - 1));
	return trees < least ? trees : least;
}

/* Numbers of trees of one rate, with k places at a way: the highest rates first, and more trees first. */
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
	int rest = s->f->most - s->p, ways = s->f->c.n_ways[0] / s->f->c.n_servers * s->j;
	const int number[] = { ways < rest ? ways : rest, rest, rest / 2 };
	s->q = number[i];
	/* Else they are worth less than what the others give. */
	if ((int64_t)s->q * s->k > (int64_t)s->p * s->j)
		TRY(find_least(s, s->j + 1, MOST_M, &unused));
	s->q = 0;
	return OK;
}

/* The most trees of one rate with k places at a way, of at most s->p. *out: p 0: none fit. */
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

/* Trees of one plane each, or of all. */
static void
set_kind(struct few *f, bool mixed)
{
	const Cluster *c = &f->c;
	f->mixed = mixed;
	f->n_planes = mixed ? 1 : f->n_rails;
	for (int k = 0; k < c->n_networks; k++)
		f->plane[k] = mixed ? 0 : f->rail[k];
	memset(f->servers, 0, (size_t)f->n_rails * sizeof *f->servers);
	for (int s = 0; s < c->n_servers; s++)
		for (int i = 0; i < c->server[s].n_ways[0]; i++) {
			int w = c->server[s].first_way[0] + i, before = 0;
			while (before < i && plane_of(f, w - i + before) != plane_of(f, w))
				before++;
			f->servers[plane_of(f, w)] += before == i;
		}
	for (int w = 0; w < c->n_ways[0] && !mixed; w++)
		f->alone[w] = f->servers[plane_of(f, w)] < 2;
	for (int g = 0; g < f->n_planes; g++)
		f->servers[g] = f->servers[g] < 2 ? 2 : f->servers[g];
}

static Status
search_kind(struct few *f)
{
	int64_t unit[MOST_CAPACITIES];
	int n = 0;
	for (int w = 0; w < f->c.n_ways[0] && n < MOST_CAPACITIES; w++) {
		int i = 0;
		while (i < n && unit[i] != f->c.way[0][w].capacity)
			i++;
		if (i == n)
			unit[n++] = f->c.way[0][w].capacity;
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
	set_kind(f, false);
	TRY(search_kind(f));
	if (f->n_rails == 1 || f->hubs == ONE_WAY || f->most > MANY * f->n_rails)
		return OK;
	set_kind(f, true);
	return search_kind(f);
}

/* ---- trees ---- */

struct maker {
	struct few *f;
	int *places;		/* of each server: extra ones */
	int *order;		/* servers of the tree's plane: those with most places first */
	int *from;		/* ways with places, in the order of the servers */
	Edge *there, *back;
	int n_edges;
};

static Status
add_server(struct maker *m, int s, int entry)
{
	const Cluster *c = &m->f->c;
	for (int i = 0; i < c->server[s].n; i++) {
		int v = c->rank[c->server[s].first + i];
		if (v == entry)
			continue;
		TRY(cluster_near_edge(c, entry, v, &m->there[m->n_edges]));
		TRY(cluster_near_edge(c, v, entry, &m->back[m->n_edges++]));
	}
	return OK;
}

static Status
add_far(struct maker *m, int from, int to)
{
	const Cluster *c = &m->f->c;
	TRY(cluster_far_edge(c, from, to, &m->there[m->n_edges]));
	return cluster_far_edge(c, to, from, &m->back[m->n_edges++]);
}

/* Servers of the tree's plane, those with most places first. */
static int
order_servers(struct maker *m, int t)
{
	const struct few *f = m->f;
	int n = 0;
	memset(m->places, 0, (size_t)f->c.n_servers * sizeof *m->places);
	for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++)
		m->places[f->c.of[f->c.way[0][f->extra[i].way].rank]] += f->extra[i].n;
	for (int s = 0; s < f->c.n_servers; s++) {
		int at = n;
		if (f->partner[(size_t)t * (size_t)f->c.n_servers + (size_t)s] >= 0)
			continue;
		for (; at > 0 && m->places[m->order[at - 1]] < m->places[s]; at--)
			m->order[at] = m->order[at - 1];
		m->order[at] = s;
		n++;
	}
	return n;
}

/* A tree that uses all planes. */
static Status
make_mixed(struct maker *m, int t, Tree *out)
{
	const struct few *f = m->f;
	size_t first = (size_t)t * (size_t)f->c.n_servers;
	int root = -1;
	m->n_edges = 0;
	for (int s = 0; s < f->c.n_servers; s++) {
		size_t at = first + (size_t)s;
		int entry = f->c.way[0][f->way[at]].rank;
		if (f->parent[at] < 0)
			root = entry;
		else
			TRY(add_far(m, f->from[at], f->way[at]));
		TRY(add_server(m, s, entry));
	}
	return tree_arrange(f->ctx, f->c.topo->n_ranks, ALLREDUCE, root, m->there, m->back, m->n_edges, out);
}

static Status
make_tree(struct maker *m, int t, Tree *out)
{
	const struct few *f = m->f;
	if (f->mixed)
		return make_mixed(m, t, out);
	const int *way = f->way + (size_t)t * (size_t)f->c.n_servers;
	const int *partner = f->partner + (size_t)t * (size_t)f->c.n_servers;
	int n = order_servers(m, t), n_from = 0, at = 0;
	m->n_edges = 0;
	m->from[n_from++] = way[m->order[0]];
	for (int i = 0; i < n; i++) {
		int s = m->order[i];
		if (i > 0)
			TRY(add_far(m, m->from[at++], way[s]));
		for (int k = f->first_extra[t]; k < f->first_extra[t + 1] && m->places[s] > 0; k++)
			if (f->c.of[f->c.way[0][f->extra[k].way].rank] == s)
				for (int e = 0; e < f->extra[k].n; e++)
					m->from[n_from++] = f->extra[k].way;
	}
	for (int s = 0; s < f->c.n_servers; s++) {
		if (partner[s] >= 0)
			TRY(add_far(m, partner[s], way[s]));
		TRY(add_server(m, s, f->c.way[0][way[s]].rank));
	}
	return tree_arrange(f->ctx, f->c.topo->n_ranks, ALLREDUCE, f->c.way[0][way[m->order[0]]].rank, m->there,
	    m->back, m->n_edges, out);
}

static Status
make_trees(struct few *f, const struct choice *choice, Packing **out)
{
	const Topology *topo = f->c.topo;
	struct maker m = { .f = f };
	Packing *pack;
	int64_t *load;
	int n = choice->p + choice->q;
	bool good;
	set_kind(f, choice->mixed);
	TRY(place_all(f, choice, &good));
	if (!good)
		return fail(f->ctx, INTERNAL, "%s: few trees: places do not suffice", topo->name);
	TRY(TEMP(f->ctx, m.places, f->c.n_servers));
	TRY(TEMP(f->ctx, m.order, f->c.n_servers));
	TRY(TEMP(f->ctx, m.from, f->c.n_servers + 1));
	TRY(TEMP(f->ctx, m.there, topo->n_ranks));
	TRY(TEMP(f->ctx, m.back, topo->n_ranks));
	TRY(TEMP(f->ctx, load, topo->n_links));
	TRY(NEW(f->ctx, pack, 1));
	TRY(NEW(f->ctx, pack->tree, n));
	TRY(NEW(f->ctx, pack->demand, n));
	TRY(NEW(f->ctx, pack->weight, n));
	int64_t common = choice->q > 0 ? gcd64(choice->first, choice->second) : choice->first;
	for (int t = 0; t < n; t++) {
		pack->weight[t] = (t < choice->p ? choice->first : choice->second) / common;
		TRY(make_tree(&m, t, &pack->tree[pack->n_trees++]));
	}
	if (pack_widest_unit(topo, pack, load, &pack->unit))
		*out = pack;
	return OK;
}

static Status
new_few(struct few *f)
{
	Ctx *ctx = f->ctx;
	size_t n = (size_t)f->most * (size_t)f->c.n_servers;
	TRY(TEMP(ctx, f->capacity, f->c.n_ways[0]));
	TRY(TEMP(ctx, f->room, f->c.n_ways[0]));
	TRY(TEMP(ctx, f->left, f->n_planes));
	TRY(TEMP(ctx, f->reach, f->n_planes));
	TRY(TEMP(ctx, f->servers, f->n_planes));
	TRY(TEMP(ctx, f->alone, f->c.n_ways[0]));
	TRY(TEMP(ctx, f->rail, f->c.n_networks));
	memcpy(f->rail, f->plane, (size_t)f->c.n_networks * sizeof *f->rail);
	f->n_rails = f->n_planes;
	TRY(TEMP(ctx, f->sum, (size_t)f->n_planes * (size_t)f->c.n_servers));
	TRY(TEMP(ctx, f->way, n));
	TRY(TEMP(ctx, f->partner, n));
	TRY(TEMP(ctx, f->parent, n));
	TRY(TEMP(ctx, f->from, n));
	TRY(TEMP(ctx, f->main, f->most));
	return TEMP(ctx, f->first_extra, f->most + 1);
}

/* Trees of one server each that leads to all others, or whose way does, where trees are to be shallow. */
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
	if (good && cluster_sides_agree(&f.c) && find_planes(&f)) {
		f.most = ask->max_trees && ask->max_trees < f.c.n_ways[0] ? ask->max_trees : f.c.n_ways[0];
		bool too_large = f.most > LIMIT_TREE_EDGES / each;
		f.most = too_large ? (int)(LIMIT_TREE_EDGES / each) : f.most;
		TRY(new_few(&f));
		TRY(search_all(&f));
		if (f.best.p > 0)
			TRY(make_trees(&f, &f.best, out));
		if (*out)
			(*out)->too_large = too_large;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
