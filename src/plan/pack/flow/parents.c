/* An allreduce over full-duplex links between ranks, by trees in which each rank chooses its parent, so that no link
 * has more than its capacity.
 *
 * A tree that goes down as it came up loads a link and the opposite one equally, so that both are one edge of an
 * undirected graph, and a packing is one of spanning trees (Tutte 1961; Nash-Williams 1961). Roots and weights of the
 * trees are given: what is left is that of each tree each rank but the root takes the edge to its parent, any
 * neighbour that is not below it. Each rank of a tree has a level, which is above that of its parent and at most the
 * depth that is allowed; a rank without children may take any level. So no move closes a cycle, and no tree is deep.
 *
 * Edges that have too much push ranks of trees to other edges of these ranks, towards edges that have room, as preflows
 * are pushed (Goldberg and Tarjan 1988): an edge has a label, about how many moves it is from one with room, and pushes
 * to one of a lower label. Weights of trees fall by halves: heavy trees first, each rank on the edge with most room,
 * and enough of weight one last, which fill what the others left. So a few trees have the rate of a fraction with a
 * large denominator:
 *
 *     16 x 16 x 16 torus, open in one dimension, without a rank: 12026 edges, 4094 of each tree
 *     6013 / 2047 of a link: 6013 trees of weight 1, or 158 of weights 1 to 253
 */
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/halves.h"
#include "plan/pack/flow/orient.h"

#include <limits.h>
#include <string.h>

enum {
	LEAST_UNITS = 64,		/* of all trees: of fewer, flows find as many trees (branchings.c) */
	MOST_UNITS = 1 << 14,		/* likewise: lighter ones than a part of that take long over their hops */
	TOO_HEAVY = 2,			/* moves that it costs to push more than there is too much */
	MOST_LOOKS = 512,		/* at edges, of each place: where trees are found, a few hundred at most */
	PUSH_NS = 2000			/* about what one takes */
};

struct parents {
	Ctx *ctx;
	const Topology *topo;
	const int *opposite;		/* of each link */
	int n, n_edges, n_trees, most;	/* ranks; links without the opposite ones; trees; the highest level */
	int64_t *weight;		/* of each tree, none above the one before */
	int *far;			/* of each rank: hops to the farthest */
	int *root, *link;		/* of each tree; of each edge its link in one direction */
	int *first, *edge, *other;	/* edges of rank v, and where they lead: from first[v] to first[v + 1] - 1 */
	int64_t *room;			/* of each edge: units; below 0: it has too many */
	int *label;			/* of each edge */
	/* Of each place, which is tree * n + rank: the edge to the parent, -1: the root; its neighbours in the list of
	 * places on that edge, -1: none; its level; how many have it as their parent. */
	int *up, *next, *prev;
	short *level, *children;
	int *head;			/* of each edge: the list of its places */
	int *queue;			/* work space: edges or ranks */
	int *active, n_active, at;	/* edges that have too many: a ring, and its first */
	bool *waits;			/* of each edge: it is among these */
	int64_t looks, most_looks;
};

static void
put(struct parents *p, int place, int e)
{
	p->up[place] = e;
	p->prev[place] = -1;
	p->next[place] = p->head[e];
	if (p->head[e] >= 0)
		p->prev[p->head[e]] = place;
	p->head[e] = place;
	p->room[e] -= p->weight[place / p->n];
}

static void
take(struct parents *p, int place)
{
	int e = p->up[place];
	if (p->prev[place] >= 0)
		p->next[p->prev[place]] = p->next[place];
	else
		p->head[e] = p->next[place];
	if (p->next[place] >= 0)
		p->prev[p->next[place]] = p->prev[place];
	p->room[e] += p->weight[place / p->n];
}

/* The place of the rank at the other end of this edge. */
static int
across(const struct parents *p, int place, int e)
{
	const Link *link = &p->topo->link[p->link[e]];
	int v = place % p->n;
	return place - v + (link->from == v ? link->to : link->from);
}

/* May a rank have that one as its parent? */
static bool
may_take(const struct parents *p, int place, int above)
{
	return p->level[above] < p->level[place] || (p->children[place] == 0 && p->level[above] < p->most);
}

static void
move(struct parents *p, int place, int e)
{
	int above = across(p, place, e);
	p->children[across(p, place, p->up[place])]--;
	p->children[above]++;
	take(p, place);
	put(p, place, e);
	if (p->children[place] == 0)
		p->level[place] = (short)(p->level[above] + 1);
}

/* ---- the first trees ---- */

/* Hops from a rank to each; p->queue has them in that order. Returns the most, -1: some rank is not reached. */
static int
find_hops(struct parents *p, int root, short *hops)
{
	int tail = 0;
	for (int v = 0; v < p->n; v++)
		hops[v] = -1;
	hops[root] = 0;
	p->queue[tail++] = root;
	for (int head = 0; head < tail; head++) {
		int v = p->queue[head];
		for (int i = p->first[v]; i < p->first[v + 1]; i++) {
			int w = p->other[i];
			if (hops[w] >= 0)
				continue;
			hops[w] = (short)(hops[v] + 1);
			p->queue[tail++] = w;
		}
	}
	return tail == p->n ? hops[p->queue[tail - 1]] : -1;
}

/* Shortest paths, each rank by the edge with most room. */
static void
grow_tree(struct parents *p, int t)
{
	int base = t * p->n;
	short *level = p->level + base;
	find_hops(p, p->root[t], level);
	p->up[base + p->root[t]] = -1;
	for (int k = 1; k < p->n; k++) {
		int v = p->queue[k], best = -1;
		for (int i = p->first[v]; i < p->first[v + 1]; i++)
			if (level[p->other[i]] < level[v]
			    && (best < 0 || p->room[p->edge[i]] > p->room[p->edge[best]]))
				best = i;
		put(p, base + v, p->edge[best]);
		p->children[base + p->other[best]]++;
	}
}

static void
grow_trees(struct parents *p)
{
	memset(p->head, -1, (size_t)p->n_edges * sizeof *p->head);
	memset(p->children, 0, (size_t)p->n_trees * (size_t)p->n * sizeof *p->children);
	for (int t = 0; t < p->n_trees; t++)
		grow_tree(p, t);
}

/* ---- pushes ---- */

/* Moves from each edge to one with room, as if every rank could take any of its edges. */
static void
label_all(struct parents *p)
{
	int tail = 0;
	for (int e = 0; e < p->n_edges; e++) {
		p->label[e] = p->room[e] > 0 ? 0 : p->n_edges;
		if (p->room[e] > 0)
			p->queue[tail++] = e;
	}
	for (int head = 0; head < tail; head++) {
		int e = p->queue[head];
		const Link *link = &p->topo->link[p->link[e]];
		for (int k = 0; k < 2; k++) {
			int v = k ? link->to : link->from;
			for (int i = p->first[v]; i < p->first[v + 1]; i++) {
				int f = p->edge[i];
				if (p->label[f] < p->n_edges)
					continue;
				p->label[f] = p->label[e] + 1;
				p->queue[tail++] = f;
			}
		}
	}
}

/* Is a weight of more use to an edge that has this much too much? The heaviest that it has to give, or else the
 * lightest. */
static bool
is_fitter(int64_t weight, int64_t best, int64_t much)
{
	if ((weight > much) != (best > much))
		return weight <= much;
	return weight > much ? weight < best : weight > best;
}

/* A place that the edge gives, and to which one: of the least label. False: none may go. */
static bool
find_push(struct parents *p, int e, int *place, int *to)
{
	int64_t best = 0, much = -p->room[e];
	int least = INT_MAX;
	for (int at = p->head[e]; at >= 0; at = p->next[at]) {
		int v = at % p->n, base = at - v;
		int64_t weight = p->weight[at / p->n];
		p->looks += p->first[v + 1] - p->first[v];
		for (int i = p->first[v]; i < p->first[v + 1]; i++) {
			int f = p->edge[i], label = p->label[f] + (weight > much ? TOO_HEAVY : 0);
			if (f == e || label > least || (label == least && !is_fitter(weight, best, much))
			    || !may_take(p, at, base + p->other[i]))
				continue;
			least = label;
			best = weight;
			*place = at;
			*to = f;
		}
	}
	return least < INT_MAX;
}

static void
activate(struct parents *p, int e)
{
	if (p->room[e] >= 0 || p->waits[e])
		return;
	p->waits[e] = true;
	p->active[(p->at + p->n_active++) % p->n_edges] = e;
}

/* All that the edge has too much goes. Returns how many pushes that were, -1: it cannot. */
static int
push_from(struct parents *p, int e)
{
	int n = 0, place, to;
	for (; p->room[e] < 0; n++) {
		if (p->looks >= p->most_looks || out_of_time(p->ctx, PUSH_NS) || !find_push(p, e, &place, &to))
			return -1;
		p->label[e] = p->label[e] > p->label[to] ? p->label[e] : p->label[to] + 1;
		move(p, place, to);
		activate(p, to);
	}
	return n;
}

/* Returns whether no edge has too much then. */
static bool
push_all(struct parents *p)
{
	p->looks = p->n_active = p->at = 0;
	memset(p->waits, 0, (size_t)p->n_edges * sizeof *p->waits);
	for (int e = 0; e < p->n_edges; e++)
		activate(p, e);
	for (int since = p->n_edges; p->n_active > 0;) {
		int e = p->active[p->at];
		if (since >= p->n_edges) {
			label_all(p);
			since = 0;
		}
		p->at = (p->at + 1) % p->n_edges;
		p->n_active--;
		p->waits[e] = false;
		int n = push_from(p, e);
		if (n < 0)
			return false;
		since += n;
	}
	return true;
}

/* ---- what is asked for ---- */

static Status
list_edges(struct parents *p)
{
	const Topology *topo = p->topo;
	int *fill;
	TRY(TEMP_EACH(p->ctx, topo->n_links, p->link, p->edge, p->other));
	TRY(TEMP(p->ctx, p->first, p->n + 1));
	TRY(TEMP(p->ctx, fill, p->n));
	for (int l = 0; l < topo->n_links; l++) {
		p->first[topo->link[l].from + 1]++;
		if (l < p->opposite[l])
			p->link[p->n_edges++] = l;
	}
	for (int v = 0; v < p->n; v++)
		p->first[v + 1] += p->first[v];
	memcpy(fill, p->first, (size_t)p->n * sizeof *fill);
	for (int e = 0; e < p->n_edges; e++) {
		const Link *link = &topo->link[p->link[e]];
		p->other[fill[link->from]] = link->to;
		p->edge[fill[link->from]++] = e;
		p->other[fill[link->to]] = link->from;
		p->edge[fill[link->to]++] = e;
	}
	return OK;
}

/* Hops from each rank to the farthest. *radius: the least; -1: some rank is not reached. */
static Status
find_farthest(struct parents *p, int *radius)
{
	short *hops;
	*radius = INT_MAX;
	TRY(TEMP(p->ctx, hops, p->n));
	TRY(TEMP(p->ctx, p->far, p->n));
	for (int v = 0; v < p->n; v++) {
		p->far[v] = find_hops(p, v, hops);
		*radius = p->far[v] < *radius ? p->far[v] : *radius;
	}
	return OK;
}

/* Ranks with at most this many hops to the farthest, in turn. */
static void
choose_roots(struct parents *p, int most)
{
	int n = 0, *near = p->queue;
	for (int v = 0; v < p->n; v++)
		if (p->far[v] <= most)
			near[n++] = v;
	int stride = (int)(n * 0.618) | 1;
	while (gcd64(stride, n) > 1)
		stride += 2;
	for (int t = 0; t < p->n_trees; t++)
		p->root[t] = near[(int64_t)t * stride % n];
}

static Status
make_trees(struct parents *p, Frac unit, Packing **out)
{
	Edge *there, *back;
	int *number;
	Packing *pack;
	TRY(TEMP_EACH(p->ctx, p->n, there, back));
	TRY(NEW(p->ctx, number, p->topo->n_links));
	for (int l = 0; l < p->topo->n_links; l++)
		number[l] = l;
	TRY(pack_new(p->ctx, p->n_trees, false, &pack));
	pack->unit = unit;
	for (int t = 0; t < p->n_trees; t++) {
		int n = 0;
		for (int v = 0; v < p->n; v++) {
			if (v == p->root[t])
				continue;
			int l = p->link[p->up[t * p->n + v]], down = p->topo->link[l].to == v ? l : p->opposite[l];
			there[n] = (Edge){ p->topo->link[down].from, v, 1, &number[down] };
			back[n++] = (Edge){ v, p->topo->link[down].from, 1, &number[p->opposite[down]] };
		}
		pack->weight[t] = p->weight[t];
		TRY(tree_arrange(p->ctx, p->n, ALLREDUCE, -1, there, back, n, &pack->tree[pack->n_trees++]));
	}
	TRY(pack_check(p->ctx, p->topo, pack));
	*out = pack;
	return OK;
}

/* Roots and levels: of the least depth, or some more. Returns whether no edge has too much. */
static bool
try_levels(struct parents *p, int roots, const int64_t *capacity)
{
	p->most = roots + 1;
	memcpy(p->room, capacity, (size_t)p->n_edges * sizeof *p->room);
	choose_roots(p, roots);
	grow_trees(p);
	return push_all(p);
}

/* parts: the rate, in units of links. */
static Status
choose_parents(struct parents *p, Frac parts, Packing **out)
{
	const int64_t common = topo_link_unit(p->topo);
	int radius;
	int64_t *capacity;
	Frac unit;
	TRY(TEMP(p->ctx, p->queue, p->topo->n_links + p->n));
	TRY(list_edges(p));
	TRY(halves_choose(p->ctx, p->n, (int64_t)parts.num, &p->weight, &p->n_trees));
	TRY(find_farthest(p, &radius));
	if (p->n_trees == 0 || radius < 0 || !frac_div((Frac){ common, 1 }, (Frac){ parts.den, 1 }, &unit))
		return OK;
	size_t places = (size_t)p->n_trees * (size_t)p->n;
	p->most_looks = MOST_LOOKS * (int64_t)places;
	TRY(TEMP(p->ctx, p->root, p->n_trees));
	TRY(TEMP_EACH(p->ctx, places, p->up, p->next, p->prev, p->level, p->children));
	TRY(TEMP_EACH(p->ctx, p->n_edges, p->room, p->label, p->head, p->active, p->waits, capacity));
	for (int e = 0; e < p->n_edges; e++)
		capacity[e] = p->topo->link[p->link[e]].capacity / common * parts.den;
	if (try_levels(p, radius, capacity) || try_levels(p, radius + 1, capacity)
	    || try_levels(p, radius + 1 + radius / 8, capacity))
		return make_trees(p, unit, out);
	return OK;
}

Status
pack_parents(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct parents p = { .ctx = ctx, .topo = topo, .n = topo->n_ranks };
	Frac rate, parts;
	*out = NULL;
	if (topo->n_vertices > topo->n_ranks || topo->route || topo->n_ranks > LIMIT_PAIR_RANKS
	    || !branchings_rate(topo, bound, ask, &rate) || !frac_div(rate, (Frac){ topo_link_unit(topo), 1 }, &parts)
	    || parts.num < LEAST_UNITS || parts.num > MOST_UNITS)
		return OK;
	TRY(orient_opposite(ctx, topo, &p.opposite));
	if (p.opposite)
		TRY(choose_parents(&p, parts, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
