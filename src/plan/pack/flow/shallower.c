/* Less depth at the same rate: trees of a packing exchange edges.
 *
 * In each tree every rank but the root hangs from another one, by an edge into it, or out of it on the way up. Two
 * trees of equal weight that exchange the edges by which they hold one rank leave the load of every link as it was: if
 * v hangs from a in one and from b in the other, and then from b and from a. So the rate stays the same, and what is
 * proven of it. Both remain trees where v is neither above b in the first nor above a in the second. Trees whose
 * weights differ exchange edges several for several, or where links have room. A rank may hang by any edge that some
 * tree has there, and by any link between GPUs. Mostly none of these leads a rank nearer to the root, and other trees
 * are not looked at.
 *
 * An exchange is made where it lowers the sum of 4^depth over the ranks of all trees, in which the deepest count most;
 * so this ends. A tree keeps the sum below each rank, relative to that rank, so that a change is known at once: that
 * sum times the difference of two powers. */
#include "base/sort.h"
#include "plan/pack/flow/exchange.h"
#include "plan/pack/flow/flow.h"

enum {
	MOST_HANGING = 1 << 20,	/* trees times ranks */
	MOST_STEPS = 1 << 27,	/* looks at an edge: about a second */
	MOST_OTHERS = 8		/* ways of a rank for which several trees are exchanged */
};

/* A half of which the rank in question would hang by another edge, and what that adds to the sum of all. */
struct move {
	struct half *half;
	double cost;
};

/* ---- costs ---- */

/* What it adds to the sum of all that v hangs from `up`. */
static double
cost(const struct exchange *x, const struct half *h, int v, int up)
{
	return h->sum[v] * (x->power[h->depth[up] + 1] - x->power[h->depth[v]]);
}

static int64_t
room_of(const struct exchange *x, int way)
{
	const Edge *edge = x->way[way].edge;
	int64_t room = INT64_MAX;
	for (int k = 0; k < edge->n_links; k++)
		room = x->room[edge->link[k]] < room ? x->room[edge->link[k]] : room;
	return room;
}

/* Ways by which v would be nearer to the root of h have their gain. Returns whether there are any. */
static bool
find_ways(struct exchange *x, const struct half *h, int v)
{
	bool some = false;
	for (int w = x->first_way[v]; w < x->first_way[v + 1]; w++) {
		struct way *way = &x->way[w];
		bool nearer = way->up == h->up && h->depth[way->to] + 1 < h->depth[v];
		way->gain = nearer ? cost(x, h, v, way->to) : 0;
		some |= nearer;
	}
	x->steps += x->first_way[v + 1] - x->first_way[v];
	return some;
}

/* ---- one tree for another ---- */

/* The best of the ways found for v in h: another tree gives its own for it, or its links have room. */
static bool
exchange_one(struct exchange *x, struct half *h, int v)
{
	const int *at = x->held + (size_t)v * (size_t)x->n_halves;
	int own = *exchange_held(x, h, v), from = h->above[v], to = -1;
	int64_t own_room = room_of(x, own);
	struct half *with = NULL;
	double best = 0;
	for (int w = x->first_way[v]; w < x->first_way[v + 1]; w++)
		if (x->way[w].gain < best && room_of(x, w) >= h->weight) {
			best = x->way[w].gain;
			to = w;
		}
	x->steps += x->n_halves;
	for (int i = 0; i < x->n_halves; i++) {
		struct half *o = &x->half[i];
		if (at[i] < 0 || x->way[at[i]].gain >= best)
			continue;
		double gain = x->way[at[i]].gain, both = gain + cost(x, o, v, from);
		if (both >= best || both > EXCHANGE_LEAST_GAIN * gain || exchange_is_below(o, from, v)
		    || (h->weight > o->weight && room_of(x, at[i]) < h->weight - o->weight)
		    || (h->weight < o->weight && own_room < o->weight - h->weight))
			continue;
		best = both;
		to = at[i];
		with = o;
	}
	if (to < 0)
		return false;
	exchange_hang(x, h, v, to);
	if (with)
		exchange_hang(x, with, v, own);
	return true;
}

/* ---- several ---- */

static int
compare_moves(const void *a, const void *b)
{
	const struct move *s = a, *t = b;
	double x = s->cost / (double)s->half->weight, y = t->cost / (double)t->half->weight;
	return x != y ? (x > y) - (x < y) : (s->half > t->half) - (s->half < t->half);
}

/* Of the other halves that hold v by `from`, what it costs to hold it by `to`, the cheapest first. */
static int
list_moves(struct exchange *x, const struct half *h, int v, int from, int to, struct move *out)
{
	int n = 0, up = x->way[to].to;
	const int *at = x->held + (size_t)v * (size_t)x->n_halves;
	x->steps += x->n_halves;
	for (int i = 0; i < x->n_halves; i++) {
		struct half *o = &x->half[i];
		if (at[i] == from && o != h && !exchange_is_below(o, up, v))
			out[n++] = (struct move){ o, cost(x, o, v, up) };
	}
	sort_array(out, n, sizeof *out, compare_moves);
	return n;
}

/* v goes over to the way `to` in h; of the halves that have that way the cheapest make room, and where they are more
 * than h is, others follow h. moves: *n_way that make room, of *n. Returns what it all costs; 0: it does not fit. */
static double
weigh_several(struct exchange *x, struct half *h, int v, int to, int *n_way, int *n)
{
	int own = *exchange_held(x, h, v);
	double all = x->way[to].gain;
	int64_t room = room_of(x, to), away = 0, more = h->weight;
	int known = list_moves(x, h, v, to, own, x->move);
	for (*n = 0; *n < known && room + away < h->weight && all < 0; (*n)++) {
		all += x->move[*n].cost;
		away += x->move[*n].half->weight;
	}
	*n_way = *n;
	int64_t over = away - h->weight - room_of(x, own);
	if (room + away < h->weight || all >= 0 || over <= 0)
		return room + away < h->weight || all >= 0 ? 0 : all;
	known = list_moves(x, h, v, own, to, x->move + *n_way);
	for (int i = 0; i < known && over > 0; i++) {
		struct move follows = x->move[*n_way + i];
		if (more + follows.half->weight > room + away)
			continue;
		more += follows.half->weight;
		over -= follows.half->weight;
		all += follows.cost;
		x->move[(*n)++] = follows;
	}
	return over > 0 ? 0 : all;
}

/* The best exchange of v's edge in h, of the ways found, with several trees. */
static bool
exchange_several(struct exchange *x, struct half *h, int v)
{
	int own = *exchange_held(x, h, v), to = -1, n_seen = 0, n, n_way, best_way = 0, n_best = 0;
	double best = 0;
	for (int w = x->first_way[v]; w < x->first_way[v + 1] && n_seen < MOST_OTHERS; w++) {
		if (x->way[w].gain >= 0)
			continue;
		n_seen++;
		double all = weigh_several(x, h, v, w, &n_way, &n);
		if (all >= best || all > EXCHANGE_LEAST_GAIN * x->way[w].gain)
			continue;
		best = all;
		best_way = n_way;
		n_best = n;
		to = w;
		memcpy(x->best, x->move, (size_t)n * sizeof *x->best);
	}
	if (to < 0)
		return false;
	for (int i = 0; i < n_best; i++)
		exchange_hang(x, x->best[i].half, v, i < best_way ? own : to);
	exchange_hang(x, h, v, to);
	return true;
}

/* ---- all trees ---- */

/* A tree's other half is beside it. */
static int
depth_of(const struct exchange *x, const struct half *h)
{
	int depth = h->height[h->root];
	if (h > x->half && h[-1].tree == h->tree)
		depth += h[-1].height[h[-1].root];
	if (h + 1 < x->half + x->n_halves && h[1].tree == h->tree)
		depth += h[1].height[h[1].root];
	return depth;
}

static int
depth_of_all(const struct exchange *x)
{
	int depth = 0;
	for (int i = 0; i < x->n_halves; i++)
		depth = depth_of(x, &x->half[i]) > depth ? depth_of(x, &x->half[i]) : depth;
	return depth;
}

/* Of all trees, and of those ranks alone on paths that are too long; or of all ranks, after such a sweep that found
 * nothing: until an exchange is found it would find nothing again, and counts as if it were made again. crossing: also
 * of edges that meet. *some: there were exchanges. *ends: it takes too long. */
static Status
sweep(Ctx *ctx, struct exchange *x, bool crossing, bool long_paths, bool *some, bool *ends)
{
	int64_t before = x->steps;
	*some = false;
	if (!long_paths)
		x->steps += x->last_steps;
	for (struct half *h = x->half; h < x->half + x->n_halves; h++)
		for (int v = 0; v < x->n; v++) {
			int over = depth_of(x, h) - x->goal;
			if (long_paths && over <= 0)
				break;
			bool is_long = over > 0 && h->depth[v] + h->height[v] > h->height[h->root] - over;
			if (v == h->root || (long_paths ? !is_long : is_long && !*some))
				continue;
			*ends = x->steps > MOST_STEPS || out_of_time(ctx, x->n_halves);
			if (*ends)
				return OK;
			bool done = find_ways(x, h, v) && (exchange_one(x, h, v) || exchange_several(x, h, v));
			if (!done && crossing)
				TRY(exchange_cross(ctx, x, h, v, &done));
			*some |= done;
		}
	x->last_steps = x->steps - before;
	return OK;
}

/* Until no tree is too deep, or no exchange is of use. Most are of no use but on long paths; those of edges that meet
 * take the longest to find. */
static Status
exchange_all(Ctx *ctx, struct exchange *x)
{
	bool ends = false;
	for (int crossing = 0; crossing < 2; crossing++)
		for (bool some = true; some && !ends && depth_of_all(x) > x->goal;) {
			while (some && !ends)
				TRY(sweep(ctx, x, crossing, true, &some, &ends));
			if (!ends && depth_of_all(x) > x->goal)
				TRY(sweep(ctx, x, crossing, false, &some, &ends));
		}
	return OK;
}

/* Hops to the farthest rank over links that nobody else uses. Switches are looked at before the ranks that wait.
 * hops: n_vertices; line: twice as many. */
static int
least_depth(const Topology *topo, int root, bool into, int *hops, int *line)
{
	const int *first = into ? topo->first_in : topo->first_out, *list = into ? topo->in : topo->out;
	int head = topo->n_vertices, tail = head, most = 0;
	memset(hops, -1, (size_t)topo->n_vertices * sizeof *hops);
	hops[root] = 0;
	line[tail++] = root;
	while (head < tail) {
		int v = line[head++];
		most = hops[v];
		for (int i = first[v]; i < first[v + 1]; i++) {
			const Link *link = &topo->link[list[i]];
			int w = into ? link->from : link->to;
			if (hops[w] >= 0)
				continue;
			hops[w] = hops[v] + (w < topo->n_ranks);
			line[w < topo->n_ranks ? tail++ : --head] = w;
		}
	}
	return most;
}

static Status
find_goal(Ctx *ctx, struct exchange *x)
{
	int *hops, *line, root = -1, least[2] = { -1, -1 };
	TRY(TEMP(ctx, hops, x->topo->n_vertices));
	TRY(TEMP(ctx, line, 2 * (size_t)x->topo->n_vertices));
	for (int i = 0; i < x->n_halves; i++) {
		const struct half *h = &x->half[i];
		if (h->root != root)
			least[0] = least[1] = -1;
		root = h->root;
		if (least[h->up] < 0)
			least[h->up] = least_depth(x->topo, root, h->up, hops, line);
		int other = i > 0 && h[-1].tree == h->tree ? least[!h->up] : 0;
		x->goal = least[h->up] + other > x->goal ? least[h->up] + other : x->goal;
	}
	return OK;
}

/* ---- the packing ---- */

/* All ways down, or up, or both: of all ranks, over links that no two edges of a tree share. */
static bool
is_served(const Topology *topo, const Packing *pack, int depth)
{
	int n = topo->n_ranks - 1, up = pack->tree[0].n_up, down = pack->tree[0].n_down;
	int64_t hanging = (int64_t)pack->n_trees * n * ((up > 0) + (down > 0));
	for (int t = 0; t < pack->n_trees; t++)
		if (pack->tree[t].n_up != up || pack->tree[t].n_down != down)
			return false;
	return (up == n || up == 0) && (down == n || down == 0) && hanging <= MOST_HANGING
	    && depth <= EXCHANGE_MOST_DEPTH && pack->n_trees > 1 && !topo_active(topo) && !pack->symmetry
	    && pack->n_parts == 0;
}

/* The tree with these edges instead. edge: n_ranks - 1. */
static Status
arrange_half(Ctx *ctx, const struct exchange *x, const struct half *h, Edge *edge, Tree *tree)
{
	Tree half;
	int n = 0;
	for (int v = 0; v < x->n; v++)
		if (v != h->root)
			edge[n++] = *x->way[*exchange_held(x, h, v)].edge;
	TRY(tree_arrange(ctx, x->n, h->up ? REDUCE : BROADCAST, h->root, edge, NULL, n, &half));
	*(h->up ? &tree->up : &tree->down) = h->up ? half.up : half.down;
	return OK;
}

Status
pack_shallower(Ctx *ctx, const Topology *topo, const Packing *pack, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct exchange x;
	Packing *less;
	Edge *edge;
	int *work;
	*out = NULL;
	TRY(TEMP(ctx, work, topo->n_ranks));
	TRY(TEMP(ctx, edge, topo->n_ranks));
	int depth = pack_depth(pack, work), now;
	if (!is_served(topo, pack, depth))
		return OK;
	TRY(exchange_new(ctx, topo, pack, &x));
	TRY(find_goal(ctx, &x));
	if (depth > x.goal) {
		TRY(TEMP_EACH(ctx, 2 * (size_t)x.n_halves, x.move, x.best));
		TRY(exchange_take(ctx, &x, pack));
		TRY(exchange_all(ctx, &x));
	}
	if (depth > x.goal && (now = depth_of_all(&x)) < depth) {
		TRY(NEW(ctx, less, 1));
		*less = *pack;
		TRY(NEW(ctx, less->tree, pack->n_trees));
		memcpy(less->tree, pack->tree, (size_t)pack->n_trees * sizeof *pack->tree);
		for (int i = 0; i < x.n_halves; i++)
			if (x.half[i].changed)
				TRY(arrange_half(ctx, &x, &x.half[i], edge, &less->tree[x.half[i].tree]));
		less->other_trees = less->other_depth > 0 && less->other_depth < now ? less->other_trees : 0;
		less->other_depth = less->other_trees ? less->other_depth : 0;
		TRY(pack_check(ctx, topo, less));
		*out = less;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
