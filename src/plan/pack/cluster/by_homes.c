/* Collectives over networks in which ranks have a link each to a switch, as fat trees and dragonflies, or links to
 * others and to switches, as a HammingMesh: trees that enter each home of ranks once (home_network.h).
 *
 *     leaf 0: ranks 0, 1, 2    leaf 1: ranks 3, 4, 5    leaf 2: ranks 6, 7     each tree enters each leaf by one rank
 *
 * Each rank receives a block once, over a link of its own, so what ranks can send is what is short: together they send
 * as often. A home has as many hops to others, in all trees, as its ranks can send beyond those to each other.
 * First each tree is one of shortest ways over homes, by routes with most room. Then homes that are entered over a
 * link, or from a home, that has too many are entered from others that have room: whole trees, then parts of a few,
 * where a block is m parts so that what links have for it are whole numbers. Then each home chooses ranks: of its own
 * roots first, of others the rank that can send most still, and one more where that one can't send all.
 *
 * Where that leaves deep trees, and for a few trees of one rate, as those of a broadcast, the first trees are others:
 * few homes send to many, other ones in each tree (by_homes_split.c). */
#include "plan/pack/cluster/by_homes_ranks.h"
#include "plan/pack/cluster/cluster.h"

#include <limits.h>
#include <string.h>

#define LUMP (1.0 / 16)	/* of what a route has, that a few trees may use before their turn */
enum {
	MOST_PARTS = 720,	/* m, where trees are listed */
	MOST_CELLS = 3 << 23,	/* trees times homes */
	AHEAD = 4,		/* trees by which links into homes may be used faster than in the mean */
	MOST_LOOKS = 1 << 28,	/* at routes, for chains of moves; */
	FEW_LOOKS = 1 << 26,	/* of a few trees, of which there are some numbers */
	MOST_LIFTS = 8,
	MORE_HOPS = 1		/* than the least depth of all trees */
};

/* ---- what there is ---- */

/* Parts of a block of this rate that a capacity has room for. */
static int64_t
parts_in(int64_t capacity, Frac rate, int m)
{
	return (int64_t)((Wide)capacity * rate.den * m / rate.num);
}

/* As few parts as make them whole numbers; where these are too many, the rest is rounded down. */
static int
count_parts(const Topology *topo, Frac rate, int most)
{
	int m = 1;
	int64_t last = 0;
	for (int l = 0; l < topo->n_links; l++) {
		const Frac capacity = { topo->link[l].capacity, 1 };
		Frac times;
		if (topo->link[l].capacity == last || !frac_div(capacity, rate, &times))
			continue;
		last = topo->link[l].capacity;
		int64_t more = (int64_t)times.den / gcd64((int64_t)times.den, m);
		m = more <= most / m ? m * (int)more : m;
	}
	return m;
}

/* *good: ranks at switches can receive all blocks. */
static void
set_rooms(struct by_homes *s, Frac rate, bool *good)
{
	const HomeNetwork *net = &s->net;
	const Topology *topo = net->topo;
	const int64_t block = s->m, n = topo->n_ranks, own = s->n_blocks > 1;
	*good = true;
	for (int l = 0; l < topo->n_links; l++)
		s->all[l] = s->room[l] = parts_in(topo->link[l].capacity, rate, s->m);
	for (int h = 0; h < net->n_homes; h++) {
		int64_t ranks = net->first[h + 1] - net->first[h];
		s->sends[h] = net->vertex[h] < topo->n_ranks ? INT64_MAX / 2 : -s->n_blocks * block * (ranks - 1);
	}
	for (int r = 0; r < n; r++)
		if (net->out[r] >= 0) {
			s->left[r] = s->all[net->out[r]];
			s->sends[net->of[r]] += s->left[r];
			*good &= s->all[net->in[r]] >= (s->n_blocks - own) * block;
		}
	for (int h = 0; h < net->n_homes; h++)
		s->all_sends[h] = s->sends[h];
}

/* Homes that routes lead to, each once. */
static Status
list_next(struct by_homes *s)
{
	const HomeNetwork *net = &s->net;
	int *last;
	TRY(TEMP(s->ctx, s->first_to, net->n_homes + 2));
	TRY(TEMP(s->ctx, s->to, net->n_routes));
	TRY(TEMP(s->ctx, last, net->n_homes));
	for (int pass = 0; pass < 2; pass++) {
		memset(last, -1, (size_t)net->n_homes * sizeof *last);
		for (int h = 0; h < net->n_homes; h++)
			for (int i = net->first_route[h]; i < net->first_route[h + 1]; i++) {
				int from = net->route[i].from;
				if (last[from] == h)
					continue;
				last[from] = h;
				if (pass == 0)
					s->first_to[from + 2]++;
				else
					s->to[s->first_to[from + 1]++] = h;
			}
		for (int h = 0; h < net->n_homes && pass == 0; h++)
			s->first_to[h + 2] += s->first_to[h + 1];
	}
	return OK;
}

/* ---- shortest ways ---- */

/* Hops of all homes from one. Returns how many are reached. */
static int
find_hops(struct by_homes *s, int from)
{
	int n = 0;
	memset(s->hops, -1, (size_t)s->net.n_homes * sizeof *s->hops);
	s->hops[from] = 0;
	s->queue[n++] = from;
	for (int head = 0; head < n; head++) {
		int h = s->queue[head];
		for (int i = s->first_to[h]; i < s->first_to[h + 1]; i++)
			if (s->hops[s->to[i]] < 0) {
				s->hops[s->to[i]] = s->hops[h] + 1;
				s->farthest = s->hops[h] + 1 > s->farthest ? s->hops[h] + 1 : s->farthest;
				s->queue[n++] = s->to[i];
			}
	}
	return n;
}

/* What is left of the last link of a route, as a part of all: no tree has it twice. */
static double
left_at_end(const struct by_homes *s, int route)
{
	const HomeRoute *r = &s->net.route[route];
	int l = s->net.links[r->first + r->n_links - 1];
	return (double)s->room[l] / (double)s->all[l];
}

/* A route into home h from one that the tree has, of those with `pace` left at their end the least deep one, else the
 * one with most left; -1: none. nearer: only from homes one hop nearer to the root, with that much left. */
static int
choose_route(const struct by_homes *s, int h, bool nearer, double pace)
{
	const HomeNetwork *net = &s->net;
	int best = -1, least = 0;
	double most = 0;
	for (int i = net->first_route[h]; i < net->first_route[h + 1]; i++) {
		int from = net->route[i].from;
		if (s->depth[from] < 0 || (nearer && s->hops[from] != s->hops[h] - 1))
			continue;
		double has = by_homes_ease(s, i);
		bool late = left_at_end(s, i) < pace || by_homes_ease_of_links(s, i) < pace - LUMP;
		int depth = late ? INT_MAX : s->depth[from];
		if ((nearer && late)
		    || (best >= 0 && (depth > least || (depth == least && has <= most))))
			continue;
		best = i;
		least = depth;
		most = has;
	}
	return best;
}

static void
enter(struct by_homes *s, struct home_tree *tree, int h, int route)
{
	tree->enter[h] = route;
	s->depth[h] = s->depth[s->net.route[route].from] + 1;
	by_homes_use(s, route, tree->weight);
}

/* Shortest ways, as far as no link into a home is used faster than it lasts for all trees; what is left then comes
 * behind others. s->queue: homes by their hops. */
static void
enter_all(struct by_homes *s, struct home_tree *tree)
{
	const HomeNetwork *net = &s->net;
	const double pace = 1 - (double)(s->n_trees + AHEAD) / net->topo->n_ranks;
	int n = 0;
	memset(s->depth, -1, (size_t)net->n_homes * sizeof *s->depth);
	s->depth[s->queue[0]] = 0;
	tree->enter[s->queue[0]] = -1;
	for (int k = 1; k < net->n_homes; k++) {
		int h = s->queue[k], route = choose_route(s, h, true, pace);
		if (route >= 0)
			enter(s, tree, h, route);
		else
			s->queue[n++] = h;
	}
	while (n > 0) {
		int wait = 0;
		for (int k = 0; k < n; k++) {
			int h = s->queue[k], route = choose_route(s, h, false, pace);
			if (route >= 0)
				enter(s, tree, h, route);
			else
				s->queue[wait++] = h;
		}
		n = wait;
	}
}

static Status
new_tree(struct by_homes *s, int root, int weight, struct home_tree **out)
{
	*out = &s->tree[s->n_trees++];
	**out = (struct home_tree){ .root = root, .weight = weight };
	return TEMP(s->ctx, (*out)->enter, s->net.n_homes);
}

/* A number without a common divisor with n, and far from small parts of it. */
static int
find_stride(int n)
{
	int stride = (int)(n * 0.618) | 1;
	while (gcd64(stride, n) > 1)
		stride += 2;
	return stride;
}

/* The first ranks of homes far from each other, then the second ones, and so on, since homes near a root have the most
 * hops of its tree. *good: all homes are reached from each. */
static Status
first_trees(struct by_homes *s, bool *good)
{
	const HomeNetwork *net = &s->net;
	int stride = find_stride(net->n_homes), n = net->topo->n_ranks;
	struct home_tree *tree;
	for (int k = 0; s->n_trees < n && *good; k++)
		for (int i = 0; i < net->n_homes && *good; i++) {
			int h = (int)((int64_t)i * stride % net->n_homes);
			if (net->first[h] + k >= net->first[h + 1])
				continue;
			*good = find_hops(s, h) == net->n_homes
			    && !out_of_time(s->ctx, (int64_t)BY_HOMES_HOP_NS * net->n_routes);
			if (!*good)
				return OK;
			TRY(new_tree(s, net->member[net->first[h] + k], s->m, &tree));
			enter_all(s, tree);
		}
	return OK;
}

/* ---- whole trees and parts ---- */

/* The tree of a root becomes one of each part. */
static Status
divide_tree(struct by_homes *s, int t)
{
	struct home_tree *part;
	int n = s->tree[t].weight;
	for (int i = 1; i < n; i++) {
		TRY(new_tree(s, s->tree[t].root, 1, &part));
		memcpy(part->enter, s->tree[t].enter, (size_t)s->net.n_homes * sizeof *part->enter);
	}
	s->tree[t].weight = 1;
	return OK;
}

/* Whole trees, then parts of as few as do. *good: nothing has too many. */
static Status
level(struct by_homes *s, bool *good)
{
	int n = s->net.topo->n_ranks;
	*good = by_homes_move(s, s->m);
	for (int open = 0, more = 1; !*good && s->m > 1 && open < n && !s->ctx->late; more += more / 2 + 1) {
		for (int i = 0; i < more && open < n && s->n_trees + s->m <= s->most; i++, open++)
			TRY(divide_tree(s, open));
		if (s->n_trees + s->m > s->most)
			open = n;
		*good = by_homes_move(s, 1);
	}
	return OK;
}

static void
lift(struct by_homes *s)
{
	for (int i = 0; i < MOST_LIFTS && by_homes_lift(s, s->farthest + MORE_HOPS); i++)
		;
}

/* ---- all of it ---- */

/* n_few: trees, each a part of one block; 0: whole blocks of each rank. */
static Status
new_trees(struct by_homes *s, Frac rate, bool listed, int n_few, bool *good)
{
	const HomeNetwork *net = &s->net;
	int n = net->topo->n_ranks, edges = listed ? LIMIT_TREE_EDGES : LIMIT_IN_LINKS;
	s->m = n_few ? n_few : count_parts(net->topo, rate, listed ? MOST_PARTS : LIMIT_IN_TREES);
	s->n_blocks = n_few ? 1 : n;
	s->most = MOST_CELLS / net->n_homes;
	s->most = edges / n < s->most ? edges / n : s->most;
	*good = (n_few ? n_few : n) <= s->most;
	if (!*good)
		return OK;
	TRY(TEMP(s->ctx, s->tree, s->most));
	TRY(TEMP_EACH(s->ctx, net->topo->n_links, s->room, s->all));
	TRY(TEMP_EACH(s->ctx, net->n_homes, s->sends, s->all_sends, s->hops, s->depth, s->queue, s->child, s->sibling));
	TRY(TEMP(s->ctx, s->left, n));
	set_rooms(s, rate, good);
	if (!*good)
		return OK;
	TRY(by_homes_users(s));
	return list_next(s);
}

/* Trees by their roots; of one root in the order in which they were made. */
static Status
sort_trees(struct by_homes *s)
{
	int n = s->net.topo->n_ranks, *at;
	struct home_tree *by_root;
	TRY(TEMP(s->ctx, at, n + 1));
	TRY(TEMP(s->ctx, by_root, s->n_trees));
	for (int t = 0; t < s->n_trees; t++)
		at[s->tree[t].root + 1]++;
	for (int r = 0; r < n; r++)
		at[r + 1] += at[r];
	for (int t = 0; t < s->n_trees; t++)
		by_root[at[s->tree[t].root]++] = s->tree[t];
	s->tree = by_root;
	return OK;
}

/* Roots of a few trees are at homes far from each other. */
static Status
add_few(struct by_homes *s, int n, int root)
{
	const HomeNetwork *net = &s->net;
	int stride = find_stride(net->n_homes);
	struct home_tree *tree;
	for (int t = 0; t < n; t++) {
		int h = (int)((int64_t)t * stride % net->n_homes), ranks = net->first[h + 1] - net->first[h];
		int rank = net->member[net->first[h] + t / net->n_homes % ranks];
		TRY(new_tree(s, root >= 0 ? root : rank, 1, &tree));
	}
	return OK;
}

/* Trees of few that send to many instead of shortest ways: where these find no room, or are deeper. */
static Status
split_again(struct by_homes *s, Frac rate, bool *good)
{
	const HomeNetwork *net = &s->net;
	struct home_tree *first = s->tree, *tree;
	int n_first = s->n_trees, n = net->topo->n_ranks, depth = *good ? by_homes_depth(s) : INT_MAX;
	bool again;
	TRY(TEMP(s->ctx, s->tree, s->most));
	set_rooms(s, rate, &again);
	s->n_trees = 0;
	for (int t = 0; t < n; t++)
		TRY(new_tree(s, first[t].root, s->m, &tree));
	TRY(by_homes_split(s, &again));
	if (again)
		TRY(level(s, &again));
	if (again)
		lift(s);
	if (!again || by_homes_depth(s) >= depth) {
		s->tree = first;
		s->n_trees = n_first;
		return OK;
	}
	*good = true;
	return OK;
}

static Status
shape(struct by_homes *s, Frac rate, bool *good)
{
	TRY(level(s, good));
	if (*good)
		lift(s);
	if (!*good || by_homes_depth(s) > s->farthest + MORE_HOPS + 1)
		TRY(split_again(s, rate, good));
	return OK;
}

Status
pack_by_homes(Ctx *ctx, const Topology *topo, Collective coll, Frac rate, bool listed, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct by_homes s = { .ctx = ctx, .most_looks = MOST_LOOKS };
	bool good = false;
	*out = NULL;
	if (!topo->route && topo->n_ranks <= LIMIT_PAIR_RANKS)
		TRY(home_network(ctx, topo, coll == REDUCESCATTER, topo->n_ranks, &s.net, &good));
	if (good)
		TRY(new_trees(&s, rate, listed, 0, &good));
	if (good)
		TRY(first_trees(&s, &good));
	if (good)
		TRY(shape(&s, rate, &good));
	if (good) {
		TRY(sort_trees(&s));
		TRY(listed ? by_homes_list(&s, rate, out) : by_homes_number(&s, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
pack_by_homes_few(Ctx *ctx, const Topology *topo, bool into, int root, Frac rate, int n_trees, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct by_homes s = { .ctx = ctx, .most_looks = FEW_LOOKS };
	bool good = false;
	*out = NULL;
	if (!topo->route && topo->n_ranks <= LIMIT_PAIR_RANKS)
		TRY(home_network(ctx, topo, into, n_trees, &s.net, &good));
	if (good)
		TRY(new_trees(&s, rate, true, n_trees, &good));
	if (good) {
		TRY(add_few(&s, n_trees, root));
		TRY(by_homes_split(&s, &good));
	}
	if (good && by_homes_move(&s, 1)) {
		lift(&s);
		TRY(by_homes_list(&s, rate, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
