/* Trees along shortest paths, with links chosen so that none has more than its part. Where links lead from GPU to GPU,
 * one link into each rank, from a rank that is one hop nearer to the root, is a tree, whichever they are, and none is
 * less deep. So ranks choose alone, and the trees of all roots are an assignment:
 *
 *     pairs of a root and a rank    each takes one of few links, or several in parts of 1 / m
 *     links                         each is taken capacity / (rate of a root's trees) times
 *
 *     16 x 16 x 4 torus             1023 pairs of a root, over 6 directions: each 170.5 times, so m = 2
 *
 * Augmenting paths find it (Koenig 1916; Ford and Fulkerson 1956): a pair leaves a link that has too many for another,
 * a pair leaves that one, and so on, until a link has room; whole pairs first, since what is divided makes more trees.
 * With a group that moves all ranks, roots are one of each orbit, and links are orbits. */
#include "plan/pack/flow/flow.h"

#include <string.h>

enum {
	MOST_PARTS = 720,	/* m */
	UNSEEN = 0xffff,	/* hops */
	MOST_LOOKS = 1 << 30,	/* at links of pairs: a few seconds */
	MOST_PAIRS = 1 << 27	/* of a root and a link: 2 bytes each */
};

struct balance {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	bool into;		/* trees lead into their roots, over links backwards */
	bool listed;
	int n_open, stride;	/* roots whose pairs may move: as many, each so far after the last, around */
	int m;
	uint16_t *hops;		/* [root * n_ranks + rank] */
	uint16_t *parts;	/* [root * n_links + link]: of the rank that the link leads to */
	int64_t *room, looks;	/* of each orbit: parts; below 0: it has too many */
	int *first, *link;	/* links by orbits */
	/* Of each orbit that a search has seen: a pair's root, the link that it leaves, the one that it takes. */
	int *root, *left, *taken, *queue;
};

static int
tail_of(const struct balance *b, int l)
{
	return b->into ? b->topo->link[l].to : b->topo->link[l].from;
}

static int
head_of(const struct balance *b, int l)
{
	return b->into ? b->topo->link[l].from : b->topo->link[l].to;
}

/* Links that trees may have into a rank, or out of it. */
static const int *
links_of(const struct balance *b, int v, bool enter, int *n)
{
	bool in = enter != b->into;
	const int *first = in ? b->topo->first_in : b->topo->first_out;
	*n = first[v + 1] - first[v];
	return (in ? b->topo->in : b->topo->out) + first[v];
}

/* Hops from root number i. False: some rank is not reached. */
static bool
find_hops(struct balance *b, int i)
{
	int n = b->topo->n_ranks, tail = 0, n_links;
	uint16_t *hops = b->hops + (size_t)i * (size_t)n;
	memset(hops, 0xff, (size_t)n * sizeof *hops);
	hops[b->sym->representative[i]] = 0;
	b->queue[tail++] = b->sym->representative[i];
	for (int head = 0; head < tail; head++) {
		const int *link = links_of(b, b->queue[head], false, &n_links);
		for (int k = 0; k < n_links; k++) {
			int v = head_of(b, link[k]);
			if (hops[v] != UNSEEN)
				continue;
			hops[v] = (uint16_t)(hops[b->queue[head]] + 1);
			b->queue[tail++] = v;
		}
	}
	return tail == n;
}

/* May the rank that the link leads to have the data of root number i over it? */
static bool
is_nearer(const struct balance *b, int i, int l)
{
	const uint16_t *hops = b->hops + (size_t)i * (size_t)b->topo->n_ranks;
	return hops[tail_of(b, l)] + 1 == hops[head_of(b, l)];
}

static uint16_t *
parts_of(const struct balance *b, int i, int l)
{
	return &b->parts[(size_t)i * (size_t)b->topo->n_links + (size_t)l];
}

/* Rooms in parts, as few as divide each tree so that all rooms are whole numbers; where these are too many, the rest
 * is rounded down. Each tree of a root number has one image on each link of an orbit, as the group moves its ends.
 * rate: of a demand. *good: false: numbers are too large. */
static Status
set_rooms(struct balance *b, Frac rate, bool *good)
{
	const Symmetry *sym = b->sym;
	Frac *times;
	b->m = 1;
	*good = true;
	TRY(TEMP(b->ctx, times, sym->n_orbits));
	for (int o = 0; o < sym->n_orbits && *good; o++) {
		const Frac capacity = { b->topo->link[b->link[b->first[o]]].capacity, 1 };
		*good = frac_div(capacity, rate, &times[o]);
		int64_t more = *good ? times[o].den / gcd64(times[o].den, b->m) : 1;
		b->m = more <= MOST_PARTS / b->m ? b->m * (int)more : b->m;
	}
	for (int o = 0; o < sym->n_orbits && *good; o++) {
		Wide room = times[o].num / times[o].den;
		*good = room >> 32 == 0;
		b->room[o] = (int64_t)(times[o].num * b->m / times[o].den);
	}
	return OK;
}

/* The link with most room by which a rank may have the data of root number i; *n: how many there are. */
static int
widest_link(const struct balance *b, int i, int v, int *n)
{
	int n_links, best = -1;
	const int *link = links_of(b, v, true, &n_links);
	*n = 0;
	for (int k = 0; k < n_links; k++) {
		int l = link[k];
		if (!is_nearer(b, i, l))
			continue;
		++*n;
		if (best < 0 || b->room[b->sym->link_orbit[l]] > b->room[b->sym->link_orbit[best]])
			best = l;
	}
	return best;
}

/* Those first that have no choice; of a whole machine without symmetry also those that have few before the others, as
 * each that has too many has to be moved. */
static void
choose_links(struct balance *b)
{
	const int steps = b->listed ? 2 : 4;
	for (int step = 1; step <= steps; step++)
		for (int i = 0; i < b->sym->n_representatives; i++)
			for (int v = 0; v < b->topo->n_ranks; v++) {
				int n, l = widest_link(b, i, v, &n);
				if (l < 0 || (n < steps ? n : steps) != step)
					continue;
				*parts_of(b, i, l) = (uint16_t)b->m;
				b->room[b->sym->link_orbit[l]] -= b->m;
			}
}

/* ---- augmenting paths ---- */

/* Pairs that have at least `step` parts of this link may take others: orbits that are seen for the first time are in
 * the queue then. Returns its length. */
static int
look_from(struct balance *b, int l, int step, int tail)
{
	int n_links;
	const int *link = links_of(b, head_of(b, l), true, &n_links);
	for (int at = 0; at < b->n_open; at++) {
		int i = (int)((int64_t)at * b->stride % b->sym->n_representatives);
		if (*parts_of(b, i, l) < step)
			continue;
		b->looks += n_links;
		for (int k = 0; k < n_links; k++) {
			int o = b->sym->link_orbit[link[k]];
			if (b->root[o] != -1 || !is_nearer(b, i, link[k]))
				continue;
			b->root[o] = i;
			b->left[o] = l;
			b->taken[o] = link[k];
			b->queue[tail++] = o;
		}
	}
	return tail;
}

/* An orbit with room for `step` to which parts of this one, which has too many, can go; -1: none. */
static int
find_room(struct balance *b, int from, int step)
{
	memset(b->root, -1, (size_t)b->sym->n_orbits * sizeof *b->root);
	b->root[from] = -2;
	b->queue[0] = from;
	for (int head = 0, tail = 1; head < tail; head++) {
		int o = b->queue[head];
		if (b->room[o] >= step)
			return o;
		for (int k = b->first[o]; k < b->first[o + 1]; k++)
			tail = look_from(b, b->link[k], step, tail);
		b->looks += (int64_t)(b->first[o + 1] - b->first[o]) * b->n_open;
	}
	return -1;
}

/* Along the path that ends at this orbit. */
static void
move_parts(struct balance *b, int to, int64_t step)
{
	b->room[to] -= step;
	while (b->root[to] >= 0) {
		*parts_of(b, b->root[to], b->taken[to]) += (uint16_t)step;
		*parts_of(b, b->root[to], b->left[to]) -= (uint16_t)step;
		to = b->sym->link_orbit[b->left[to]];
	}
	b->room[to] += step;
}

/* Where pairs of n_open roots move `step` parts. Returns whether no link has too many then. */
static bool
move_all(struct balance *b, int step)
{
	bool done = true;
	for (int o = 0; o < b->sym->n_orbits; o++)
		for (int to = 0; b->room[o] < 0 && to >= 0;) {
			to = b->looks < MOST_LOOKS ? find_room(b, o, step) : -1;
			if (to >= 0)
				move_parts(b, to, step);
			done &= to >= 0;
		}
	return done;
}

/* Whole pairs, and then parts of those of as few roots as do. Returns whether no link has too many. */
static bool
balance_links(struct balance *b)
{
	int all = b->sym->n_representatives;
	b->n_open = all;
	b->stride = (int)(all * 0.618) | 1;
	while (gcd64(b->stride, all) > 1)
		b->stride += 2;
	bool done = move_all(b, b->m);
	for (int n = 1; !done && b->m > 1; n += n / 4 + 1) {
		b->n_open = n < all ? n : all;
		done = move_all(b, 1);
		if (n >= all)
			break;
	}
	return done;
}

/* ---- trees ---- */

/* The link over which the rank has part number `at` of the trees of root number i, that of most parts first, so that
 * ranks have few different parts; *end: where the next one begins, if that is earlier. */
static int
link_at(const struct balance *b, int i, int v, int at, int *end)
{
	int n_links, most = 0;
	const int *link = links_of(b, v, true, &n_links);
	for (int k = 1; k < n_links; k++)
		most = *parts_of(b, i, link[k]) > *parts_of(b, i, link[most]) ? k : most;
	int sum = *parts_of(b, i, link[most]), at_link = most;
	for (int k = 0; sum <= at; k++) {
		at_link = k;
		sum += k == most ? 0 : *parts_of(b, i, link[k]);
	}
	*end = sum < *end ? sum : *end;
	return link[at_link];
}

/* The trees of root number i. number: of each link its own. */
static Status
add_trees(struct balance *b, int i, const int *number, Edge *edge, Packing *pack)
{
	int n = b->topo->n_ranks, root = b->sym->representative[i];
	for (int at = 0, end; at < b->m; at = end) {
		int n_edges = 0;
		end = b->m;
		for (int v = 0; v < n; v++) {
			if (v == root)
				continue;
			int l = link_at(b, i, v, at, &end);
			edge[n_edges++] = (Edge){ b->topo->link[l].from, b->topo->link[l].to, 1, &number[l] };
		}
		pack->demand[pack->n_trees] = root;
		pack->weight[pack->n_trees] = end - at;
		TRY(tree_arrange(b->ctx, n, b->into ? REDUCE : BROADCAST, root, edge, NULL, n_edges,
		    &pack->tree[pack->n_trees++]));
	}
	return OK;
}

static int
count_trees(const struct balance *b, int i)
{
	bool begins[MOST_PARTS + 1] = { false };
	int n = 0;
	for (int v = 0; v < b->topo->n_ranks; v++)
		for (int at = 0, end; at < b->m && v != b->sym->representative[i]; at = end) {
			end = b->m;
			link_at(b, i, v, at, &end);
			begins[end] = true;
		}
	for (int at = 1; at <= b->m; at++)
		n += begins[at];
	return n;
}

/* The trees of root number i, as numbers of edges, which are those of links. work: 2 n_ranks. *good: they have room. */
static Status
add_numbers(struct balance *b, int i, int *work, int64_t *room, Packing *pack, bool *good)
{
	int n = b->topo->n_ranks, root = b->sym->representative[i], *last = work, *link = work + n;
	for (int at = 0, end; at < b->m && *good; at = end) {
		Frac length;
		end = b->m;
		for (int v = 0; v < n; v++)
			link[v] = v == root ? -1 : link_at(b, i, v, at, &end);
		if (!frac_make(end - at, b->m, &length))
			return fail(b->ctx, INTERNAL, "%s: a part of a block", b->topo->name);
		TRY(pack_add_numbers(b->ctx, pack, root, n, link, length, last, room, good));
	}
	return OK;
}

/* Trees of each rank, n of them, where a list would be too long. */
static Status
make_numbers(struct balance *b, const int *number, int64_t n, bool whole, Packing **out)
{
	int64_t room = LIMIT_IN_LINKS;
	int *work;
	Packing *pack;
	bool good = n <= LIMIT_TREES;
	TRY(NEW(b->ctx, pack, 1));
	TRY(NEW(b->ctx, pack->in_tree, good ? n : 0));
	TRY(NEW(b->ctx, pack->edge, b->topo->n_links));
	TRY(TEMP(b->ctx, work, 2 * b->topo->n_ranks));
	for (int l = 0; l < b->topo->n_links; l++)
		pack->edge[l] = (Edge){ b->topo->link[l].from, b->topo->link[l].to, 1, &number[l] };
	pack->n_edges = b->topo->n_links;
	pack->highest = whole;
	for (int i = 0; good && i < b->sym->n_representatives; i++)
		TRY(add_numbers(b, i, work, &room, pack, &good));
	*out = good ? pack : NULL;
	return OK;
}

static Status
make_trees(struct balance *b, Frac unit, bool whole, Packing **out)
{
	int64_t n = 0;
	int *number;
	Edge *edge;
	Packing *pack;
	for (int i = 0; i < b->sym->n_representatives; i++)
		n += count_trees(b, i);
	if (n * b->sym->size > LIMIT_IMAGES && b->sym->size > 1)
		return OK;
	TRY(NEW(b->ctx, number, b->topo->n_links));
	for (int l = 0; l < b->topo->n_links; l++)
		number[l] = l;
	if (b->sym->size == 1 && n * (b->topo->n_ranks - 1) > LIMIT_TREE_EDGES)
		return b->listed ? OK : make_numbers(b, number, n, whole, out);
	TRY(TEMP(b->ctx, edge, b->topo->n_ranks));
	TRY(pack_new(b->ctx, (size_t)n, true, &pack));
	pack->unit = unit;
	pack->symmetry = b->sym->size > 1 ? b->sym : NULL;
	for (int i = 0; i < b->sym->n_representatives; i++)
		TRY(add_trees(b, i, number, edge, pack));
	*out = pack;
	return OK;
}

/* ---- all of it ---- */

static Status
new_balance(struct balance *b)
{
	const Symmetry *sym = b->sym;
	size_t roots = (size_t)sym->n_representatives;
	int most = sym->n_orbits > b->topo->n_ranks ? sym->n_orbits : b->topo->n_ranks;
	TRY(TEMP(b->ctx, b->hops, roots * (size_t)b->topo->n_ranks));
	TRY(TEMP(b->ctx, b->parts, roots * (size_t)b->topo->n_links));
	TRY(TEMP_EACH(b->ctx, sym->n_orbits, b->room, b->root, b->left, b->taken));
	TRY(TEMP(b->ctx, b->queue, most));
	TRY(TEMP(b->ctx, b->first, sym->n_orbits + 2));
	TRY(TEMP(b->ctx, b->link, b->topo->n_links));
	for (int l = 0; l < b->topo->n_links; l++)
		b->first[sym->link_orbit[l] + 2]++;
	for (int o = 0; o < sym->n_orbits; o++)
		b->first[o + 2] += b->first[o + 1];
	for (int l = 0; l < b->topo->n_links; l++)
		b->link[b->first[sym->link_orbit[l] + 1]++] = l;
	return OK;
}

static Status
balance(struct balance *b, Frac rate, Packing **out)
{
	bool good;
	Frac unit;
	TRY(new_balance(b));
	for (int i = 0; i < b->sym->n_representatives; i++)
		if (!find_hops(b, i))
			return OK;
	TRY(set_rooms(b, rate, &good));
	if (!good || !frac_div(rate, (Frac){ b->m, 1 }, &unit))
		return OK;
	choose_links(b);
	bool whole = balance_links(b);
	if (whole || !b->listed)
		TRY(make_trees(b, unit, whole, out));
	return OK;
}

bool
pack_balanced_serves(const Topology *topo, const Symmetry *sym, Collective coll)
{
	return (coll == ALLGATHER || coll == REDUCESCATTER) && topo->n_vertices == topo->n_ranks && !topo->route
	    && (int64_t)sym->n_representatives * sym->size == topo->n_ranks && topo->n_ranks < UNSEEN
	    && (int64_t)sym->n_representatives * topo->n_links <= MOST_PAIRS;
}

Status
pack_balanced(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound, bool listed,
    Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct balance b = { .ctx = ctx, .topo = topo, .sym = sym, .into = coll == REDUCESCATTER, .listed = listed };
	Frac rate;
	*out = NULL;
	if (!pack_balanced_serves(topo, sym, coll)
	    || !frac_div(bound->rate, (Frac){ collective_shares(coll, topo->n_ranks), 1 }, &rate))
		return OK;
	TRY(balance(&b, rate, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
