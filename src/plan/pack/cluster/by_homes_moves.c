/* Trees over homes whose routes have too many: moves to other routes, chains of these, and less depth (by_homes.c). */
#include "plan/pack/cluster/by_homes_moves.h"

#include <string.h>

enum {
	MOST_SWEEPS = 64,
	MOST_FAILED = 3		/* chains of moves, one after the other, that are not found or in their own way */
};

/* ---- routes ---- */

void
by_homes_use(struct by_homes *s, int route, int64_t parts)
{
	const HomeRoute *r = &s->net.route[route];
	for (int i = 0; i < r->n_links; i++)
		s->room[s->net.links[r->first + i]] -= parts;
	s->sends[r->from] -= parts;
}

/* Parts left on the route and at its home: the least. */
int64_t
by_homes_left(const struct by_homes *s, int route)
{
	const HomeRoute *r = &s->net.route[route];
	int64_t least = s->sends[r->from];
	for (int i = 0; i < r->n_links; i++) {
		int64_t left = s->room[s->net.links[r->first + i]];
		least = left < least ? left : least;
	}
	return least;
}

/* Of its links, as a part of all that there is. */
double
by_homes_ease_of_links(const struct by_homes *s, int route)
{
	const HomeRoute *r = &s->net.route[route];
	double least = 1;
	for (int i = 0; i < r->n_links; i++) {
		int l = s->net.links[r->first + i];
		double left = (double)s->room[l] / (double)s->all[l];
		least = left < least ? left : least;
	}
	return least;
}

/* And of its home. */
double
by_homes_ease(const struct by_homes *s, int route)
{
	int from = s->net.route[route].from;
	double links = by_homes_ease_of_links(s, route), sends = (double)s->sends[from] / (double)s->all_sends[from];
	return sends < links ? sends : links;
}

/* ---- moves ---- */

/* How deep a home is, in hops over homes; -1: below home h. */
static int
depth_of(const struct by_homes *s, const struct home_tree *tree, int from, int h)
{
	int depth = 0;
	for (; tree->enter[from] >= 0; from = s->net.route[tree->enter[from]].from) {
		if (from == h)
			return -1;
		depth++;
	}
	return from == h ? -1 : depth;
}

/* Another route into home h, with room: the least deep one, of these the one with most; -1: none. The tree has none
 * there now. */
static int
find_other(const struct by_homes *s, const struct home_tree *tree, int h)
{
	const HomeNetwork *net = &s->net;
	int best = -1, least = 0;
	double most = 0;
	for (int i = net->first_route[h]; i < net->first_route[h + 1]; i++) {
		if (by_homes_left(s, i) < tree->weight)
			continue;
		int depth = depth_of(s, tree, net->route[i].from, h);
		double has = depth < 0 ? 0 : by_homes_ease(s, i);
		if (depth < 0 || (best >= 0 && (depth > least || (depth == least && has <= most))))
			continue;
		best = i;
		least = depth;
		most = has;
	}
	return best;
}

/* Each home of each tree whose route has too many is entered by another. Returns how many were. */
static int64_t
sweep(struct by_homes *s)
{
	int64_t moved = 0;
	for (int t = 0; t < s->n_trees && !out_of_time(s->ctx, (int64_t)BY_HOMES_HOP_NS * s->net.n_homes); t++) {
		struct home_tree *tree = &s->tree[t];
		for (int h = 0; h < s->net.n_homes; h++) {
			int now = tree->enter[h];
			if (now < 0 || by_homes_left(s, now) >= 0)
				continue;
			by_homes_use(s, now, -tree->weight);
			int other = find_other(s, tree, h);
			moved += other >= 0;
			tree->enter[h] = other >= 0 ? other : now;
			by_homes_use(s, tree->enter[h], tree->weight);
		}
	}
	return moved;
}

/* ---- chains of moves ---- */

/* What can have too many: links, and then homes. */
static int64_t
left_of(const struct by_homes *s, int x)
{
	int n_links = s->net.topo->n_links;
	return x < n_links ? s->room[x] : s->sends[x - n_links];
}

/* Number i of what a route uses. */
static int
used_by(const struct by_homes *s, int route, int i)
{
	const HomeRoute *r = &s->net.route[route];
	return i < r->n_links ? s->net.links[r->first + i] : s->net.topo->n_links + r->from;
}

/* Routes that use each: s->user[s->first_user[x]] to s->user[s->first_user[x + 1] - 1]. */
Status
by_homes_users(struct by_homes *s)
{
	const HomeNetwork *net = &s->net;
	int n = net->topo->n_links + net->n_homes, all = 0;
	for (int i = 0; i < net->n_routes; i++)
		all += net->route[i].n_links + 1;
	TRY(TEMP(s->ctx, s->first_user, n + 2));
	TRY(TEMP(s->ctx, s->user, all));
	TRY(TEMP(s->ctx, s->into, net->n_routes));
	TRY(TEMP(s->ctx, s->step, n));
	TRY(TEMP(s->ctx, s->line, n));
	for (int pass = 0; pass < 2; pass++) {
		for (int h = 0; h < net->n_homes; h++)
			for (int i = net->first_route[h]; i < net->first_route[h + 1]; i++)
				for (int k = 0; k <= net->route[i].n_links; k++) {
					int x = used_by(s, i, k);
					s->into[i] = h;
					if (pass == 0)
						s->first_user[x + 2]++;
					else
						s->user[s->first_user[x + 1]++] = i;
				}
		for (int x = 0; x < n && pass == 0; x++)
			s->first_user[x + 2] += s->first_user[x + 1];
	}
	return OK;
}

/* What keeps a tree from having `route` in place of `now`: -1: nothing; -2: more than one. */
static int
find_block(const struct by_homes *s, int now, int route, int weight)
{
	int block = -1;
	for (int i = 0; i <= s->net.route[route].n_links; i++) {
		int x = used_by(s, route, i), back = 0;
		for (int k = 0; k <= s->net.route[now].n_links; k++)
			back |= used_by(s, now, k) == x;
		if (back || left_of(s, x) >= weight)
			continue;
		if (block >= 0)
			return -2;
		block = x;
	}
	return block;
}

/* Homes that a tree has by a route that uses x could have others: what these lack is looked at next. *end: what has a
 * move that lacks nothing; -1: none. */
static int
look_from(struct by_homes *s, int x, int weight, int n, int *end)
{
	const HomeNetwork *net = &s->net;
	for (int u = s->first_user[x]; u < s->first_user[x + 1]; u++) {
		int now = s->user[u], h = s->into[now];
		for (int k = 0; k < s->n_trees; k++) {
			int t = (k + s->turn) % s->n_trees;
			const struct home_tree *tree = &s->tree[t];
			if (tree->enter[h] != now || tree->weight != weight)
				continue;
			for (int i = net->first_route[h]; i < net->first_route[h + 1]; i++) {
				int block = i == now ? -2 : find_block(s, now, i, weight);
				s->looks++;
				if (block == -2 || (block >= 0 && s->step[block].mark == s->mark)
				    || depth_of(s, tree, net->route[i].from, h) < 0)
					continue;
				struct home_step step = { s->mark, x, t, h, now, i };
				if (block < 0) {
					s->last = step;
					*end = x;
					return n;
				}
				s->step[block] = step;
				s->line[n++] = block;
			}
		}
	}
	return n;
}

/* False: an earlier move of the same chain took the room, or made a cycle of it. */
static bool
take_step(struct by_homes *s, const struct home_step *step)
{
	struct home_tree *tree = &s->tree[step->tree];
	if (tree->enter[step->home] != step->now
	    || depth_of(s, tree, s->net.route[step->route].from, step->home) < 0)
		return false;
	by_homes_use(s, step->now, -tree->weight);
	bool room = by_homes_left(s, step->route) >= tree->weight;
	tree->enter[step->home] = room ? step->route : step->now;
	by_homes_use(s, tree->enter[step->home], tree->weight);
	return room;
}

/* A move from what has too many to what has enough, that moves on, and so on to what has room. Returns whether there is
 * one. */
static bool
move_chain(struct by_homes *s, int x, int weight)
{
	int n = 0, end = -1;
	s->mark++;
	s->turn += 7;
	s->step[x] = (struct home_step){ s->mark, -1, 0, 0, 0, 0 };
	s->line[n++] = x;
	for (int head = 0; head < n && end < 0 && s->looks < s->most_looks; head++)
		n = look_from(s, s->line[head], weight, n, &end);
	if (end < 0)
		return false;
	bool good = take_step(s, &s->last);
	for (int y = end; good && s->step[y].from >= 0; y = s->step[y].from)
		good = take_step(s, &s->step[y]);
	return good;
}

/* Single moves, then chains. Returns whether nothing has too many. */
bool
by_homes_move(struct by_homes *s, int weight)
{
	int n = s->net.topo->n_links + s->net.n_homes;
	bool good = true;
	for (int i = 0; i < MOST_SWEEPS && sweep(s) > 0; i++)
		;
	for (int x = 0; x < n && !s->ctx->late; x++) {
		for (int failed = 0; left_of(s, x) < 0 && s->looks < s->most_looks && failed < MOST_FAILED;)
			failed += !move_chain(s, x, weight);
		good &= left_of(s, x) >= 0;
	}
	return good && !s->ctx->late;
}

/* ---- less depth ---- */

/* s->queue: homes in the order in which they are reached; s->depth. */
static void
measure(struct by_homes *s, const struct home_tree *tree)
{
	const HomeNetwork *net = &s->net;
	int n = 0;
	memset(s->child, -1, (size_t)net->n_homes * sizeof *s->child);
	for (int h = net->n_homes - 1; h >= 0; h--) {
		int from = tree->enter[h] < 0 ? -1 : net->route[tree->enter[h]].from;
		if (from < 0) {
			s->depth[h] = 0;
			s->queue[n++] = h;
			continue;
		}
		s->sibling[h] = s->child[from];
		s->child[from] = h;
	}
	for (int head = 0; head < n; head++)
		for (int h = s->child[s->queue[head]]; h >= 0; h = s->sibling[h]) {
			s->depth[h] = s->depth[s->queue[head]] + 1;
			s->queue[n++] = h;
		}
}

int
by_homes_depth(struct by_homes *s)
{
	int most = 0;
	for (int t = 0; t < s->n_trees; t++) {
		measure(s, &s->tree[t]);
		int depth = s->depth[s->queue[s->net.n_homes - 1]];
		most = depth > most ? depth : most;
	}
	return most;
}

/* Another route into home h with room, from a home that is at most `depth` deep: the least deep one; -1: none. */
static int
find_higher(const struct by_homes *s, int h, int now, int depth, int weight)
{
	const HomeNetwork *net = &s->net;
	int best = -1;
	for (int i = net->first_route[h]; i < net->first_route[h + 1]; i++) {
		int is = s->depth[net->route[i].from];
		if (is > depth || i == now || find_block(s, now, i, weight) != -1)
			continue;
		best = i;
		depth = is - 1;
	}
	return best;
}

/* Homes deeper than `most` are entered from higher ones, as far as these have room: what is above them comes first.
 * Returns whether any was. */
bool
by_homes_lift(struct by_homes *s, int most)
{
	bool lifted = false;
	for (int t = 0; t < s->n_trees && !out_of_time(s->ctx, (int64_t)BY_HOMES_HOP_NS * s->net.n_homes); t++) {
		struct home_tree *tree = &s->tree[t];
		measure(s, tree);
		if (s->depth[s->queue[s->net.n_homes - 1]] <= most)
			continue;
		for (int k = 1; k < s->net.n_homes; k++) {
			int h = s->queue[k], now = tree->enter[h];
			s->depth[h] = s->depth[s->net.route[now].from] + 1;
			if (s->depth[h] <= most)
				continue;
			int route = find_higher(s, h, now, s->depth[h] - 2, tree->weight);
			if (route < 0)
				continue;
			by_homes_use(s, now, -tree->weight);
			by_homes_use(s, route, tree->weight);
			tree->enter[h] = route;
			s->depth[h] = s->depth[s->net.route[route].from] + 1;
			lifted = true;
		}
	}
	return lifted;
}
