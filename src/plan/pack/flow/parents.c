/* An allreduce over full-duplex links between ranks, or to switches of ranks alone, by trees in which each rank chooses
 * its parent, so that no link has more than its capacity.
 *
 * A tree that goes down as it came up loads a link and the opposite one equally, so that both are one edge of an
 * undirected graph, and a packing is one of spanning trees (Tutte 1961; Nash-Williams 1961). Roots and weights of the
 * trees are given: what is left is that of each tree each rank but the root takes a hop to its parent, any neighbour
 * that is not below it: over one edge, or over two with a switch between. Each rank of a tree has a level, which is
 * above that of its parent and at most the depth that is allowed; with a rank all that is below it may go to further
 * levels. So no move closes a cycle, and no tree is deep.
 *
 * Edges that have too much push ranks of trees to other hops of these ranks, towards edges that have room, as preflows
 * are pushed (Goldberg and Tarjan 1988): an edge has a label, about how many moves it is from one with room, and pushes
 * to where labels are lower. Weights of trees fall by halves: heavy trees first, each rank on the hop with most room,
 * and enough of weight one last, which fill what the others left. So a few trees have the rate of a fraction with a
 * large denominator:
 *
 *     16 x 16 x 16 torus, open in one dimension, without a rank: 12026 edges, 4094 of each tree
 *     6013 / 2047 of a link: 6013 trees of weight 1, or 158 of weights 1 to 253
 *
 * Which ranks are inner ones is chosen as trees grow, from the root: through a switch a few of those that have most
 * room, and whose other neighbours are not in the tree yet. */
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/halves.h"
#include "plan/pack/flow/orient.h"

#include <limits.h>
#include <string.h>

enum {
	ENOUGH_UNITS = 64,		/* of all trees; of fewer each tree is one, or half of it, and so on */
	MOST_UNITS = 1 << 14,		/* lighter ones than a part of that take long over their hops */
	TOO_HEAVY = 2,			/* moves that it costs to push more than there is too much */
	MOST_HOPS = 256,		/* of a rank, in the mean */
	MOST_LOOKS = 128,		/* at each hop of each tree; where these are found, half of that at most */
	FAN_OUT = 4,			/* of a rank through a switch */
	PUSH_NS = 2000			/* about what one takes */
};

struct parents {
	Ctx *ctx;
	const Topology *topo;
	const int *opposite;		/* of each link */
	int n, n_edges, n_trees, most;	/* ranks; links without the opposite ones; trees; the highest level */
	int64_t *weight;		/* of each tree, none above the one before */
	int *far;			/* of each rank: hops to the farthest, over direct links */
	int *root, *link;		/* of each tree; of each edge its link in one direction */
	int *first_edge, *edge;		/* edges at vertex v: from first_edge[v] to first_edge[v + 1] - 1 */
	int *first, *other, n_hops;	/* hops from rank v: from first[v]; where they lead; how many of all ranks */
	int (*over)[2];			/* of each hop: its edges, the nearer one first; -1: it has one */
	int64_t *room;			/* of each edge: units; below 0: it has too many */
	int64_t excess, least;		/* what edges have too much, now and at its least */
	int *label;			/* of each edge */
	/* Of each place, which is tree * n + rank: the hop to the parent, -1: the root; its level; how many have it as
	 * their parent. */
	int *up;
	short *level, *children;
	int *next, *prev;		/* of each edge of a place's hop: neighbours in that edge's list, -1: none */
	int *head;			/* of each edge: the list of 2 * place, or 2 * place + 1 of the farther edge */
	int *queue;			/* work space: edges or ranks */
	int *active, n_active, at;	/* edges that have too many: a ring, and its first */
	bool *waits;			/* of each edge: it is among these */
	int64_t looks, at_least, most_looks;	/* at hops: all; when the excess was at its least */
};

/* The vertex at the other end of an edge. */
static int
across(const struct parents *p, int v, int e)
{
	const Link *link = &p->topo->link[p->link[e]];
	return link->from == v ? link->to : link->from;
}

static void
add_room(struct parents *p, int e, int64_t units)
{
	int64_t had = p->room[e];
	p->room[e] += units;
	p->excess += (had < 0 ? had : 0) - (p->room[e] < 0 ? p->room[e] : 0);
}

static void
put(struct parents *p, int place, int h)
{
	p->up[place] = h;
	for (int k = 0, e; k < 2 && (e = p->over[h][k]) >= 0; k++) {
		int at = 2 * place + k;
		p->prev[at] = -1;
		p->next[at] = p->head[e];
		if (p->head[e] >= 0)
			p->prev[p->head[e]] = at;
		p->head[e] = at;
		add_room(p, e, -p->weight[place / p->n]);
	}
}

static void
take(struct parents *p, int place)
{
	for (int k = 0, e; k < 2 && (e = p->over[p->up[place]][k]) >= 0; k++) {
		int at = 2 * place + k;
		if (p->prev[at] >= 0)
			p->next[p->prev[at]] = p->next[at];
		else
			p->head[e] = p->next[at];
		if (p->next[at] >= 0)
			p->prev[p->next[at]] = p->prev[at];
		add_room(p, e, p->weight[place / p->n]);
	}
}

/* The place of its parent. */
static int
above_of(const struct parents *p, int place)
{
	return place - place % p->n + p->other[p->up[place]];
}

/* Is the rank at the other end of a hop of this place one of its children? */
static bool
is_child(const struct parents *p, int place, int h)
{
	int other = place - place % p->n + p->other[h];
	return p->up[other] >= 0 && above_of(p, other) == place;
}

/* Has the subtree of a place at most this many levels below it? */
static bool
is_flat(const struct parents *p, int place, int most)
{
	int v = place % p->n;
	if (p->children[place] == 0 || most == 0)
		return p->children[place] == 0;
	for (int h = p->first[v]; h < p->first[v + 1]; h++)
		if (is_child(p, place, h) && !is_flat(p, place - v + p->other[h], most - 1))
			return false;
	return true;
}

/* May a rank have that one as its parent? Not one below it, nor one by which something would be too deep. */
static bool
may_take(const struct parents *p, int place, int above)
{
	int left = p->most - p->level[above] - 1, at = above;
	if (p->level[above] < p->level[place])
		return true;
	if (left < 0 || p->children[place] == 0)
		return left >= 0;
	while (p->level[at] > p->level[place])
		at = above_of(p, at);
	return at != place && is_flat(p, place, left);
}

/* What is below a place goes to the next levels, if it is not there. */
static void
lower(struct parents *p, int place)
{
	int v = place % p->n;
	for (int h = p->first[v]; h < p->first[v + 1] && p->children[place] > 0; h++) {
		int below = place - v + p->other[h];
		if (!is_child(p, place, h) || p->level[below] > p->level[place])
			continue;
		p->level[below] = (short)(p->level[place] + 1);
		lower(p, below);
	}
}

static void
move(struct parents *p, int place, int h)
{
	p->children[above_of(p, place)]--;
	take(p, place);
	put(p, place, h);
	int above = above_of(p, place);
	p->children[above]++;
	if (p->children[place] > 0 && p->level[place] > p->level[above])
		return;
	p->level[place] = (short)(p->level[above] + 1);
	lower(p, place);
}

/* ---- the first trees ---- */

/* Of the ranks at a switch that were not reached the one with most room for others: on edges to such ranks, and to
 * switches. -1: all were reached. */
static int
roomiest(const struct parents *p, int s, const short *hops)
{
	int best = -1;
	int64_t most = 0;
	for (int i = p->first_edge[s]; i < p->first_edge[s + 1]; i++) {
		int v = across(p, s, p->edge[i]);
		int64_t room = 0;
		for (int k = p->first_edge[v]; hops[v] < 0 && k < p->first_edge[v + 1]; k++) {
			int w = across(p, v, p->edge[k]);
			room += w >= p->n || hops[w] < 0 ? p->room[p->edge[k]] : 0;
		}
		if (hops[v] < 0 && (best < 0 || room > most)) {
			best = v;
			most = room;
		}
	}
	return best;
}

/* Hops from a rank to each, where each reaches that many through a switch; p->queue has them in that order. Returns the
 * most, -1: some rank is not reached. */
static int
find_hops(struct parents *p, int root, int fan_out, short *hops)
{
	int tail = 0;
	for (int v = 0; v < p->n; v++)
		hops[v] = -1;
	hops[root] = 0;
	p->queue[tail++] = root;
	for (int head = 0; head < tail; head++)
		for (int v = p->queue[head], i = p->first_edge[v]; i < p->first_edge[v + 1]; i++) {
			int w = across(p, v, p->edge[i]), s = w;
			for (int k = 0; k < (s < p->n ? 1 : fan_out); k++) {
				w = s < p->n ? s : roomiest(p, s, hops);
				if (w < 0 || hops[w] >= 0)
					break;
				hops[w] = (short)(hops[v] + 1);
				p->queue[tail++] = w;
			}
		}
	return tail == p->n ? hops[p->queue[tail - 1]] : -1;
}

/* What all edges of a hop have. */
static int64_t
room_of(const struct parents *p, int h)
{
	int64_t near = p->room[p->over[h][0]], far = p->over[h][1] < 0 ? near : p->room[p->over[h][1]];
	return near < far ? near : far;
}

/* Each rank by the hop with most room to one of fewer hops from the root. Returns the most. */
static int
grow_tree(struct parents *p, int t, int fan_out)
{
	int base = t * p->n;
	short *level = p->level + base;
	int deepest = find_hops(p, p->root[t], fan_out, level);
	p->up[base + p->root[t]] = -1;
	for (int k = 1; k < p->n; k++) {
		int v = p->queue[k], best = -1;
		for (int h = p->first[v]; h < p->first[v + 1]; h++)
			if (level[p->other[h]] < level[v] && (best < 0 || room_of(p, h) > room_of(p, best)))
				best = h;
		put(p, base + v, best);
		p->children[base + p->other[best]]++;
	}
	return deepest;
}

/* Returns the depth of the deepest. */
static int
grow_trees(struct parents *p, int fan_out)
{
	int deepest = 0;
	memset(p->head, -1, (size_t)p->n_edges * sizeof *p->head);
	memset(p->children, 0, (size_t)p->n_trees * (size_t)p->n * sizeof *p->children);
	for (int t = 0; t < p->n_trees; t++) {
		int depth = grow_tree(p, t, fan_out);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
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
			for (int i = p->first_edge[v]; i < p->first_edge[v + 1]; i++) {
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

/* The sum of the labels of a hop's edges, but for those that the place has already. -1: edge e is one of them. */
static int
label_of(const struct parents *p, int place, int h, int e)
{
	const int *now = p->over[p->up[place]], *over = p->over[h];
	int sum = 0;
	for (int k = 0; k < 2 && over[k] >= 0; k++) {
		if (over[k] == e)
			return -1;
		if (over[k] != now[0] && over[k] != now[1] && p->room[over[k]] <= 0)
			sum += p->label[over[k]];
	}
	return sum;
}

/* A place that the edge gives, and to which hop: of the least label. False: none may go. */
static bool
find_push(struct parents *p, int e, int *place, int *to)
{
	int64_t best = 0, much = -p->room[e];
	int least = INT_MAX;
	for (int at = p->head[e]; at >= 0; at = p->next[at]) {
		int v = at / 2 % p->n, base = at / 2 - v;
		int64_t weight = p->weight[at / 2 / p->n];
		p->looks += p->first[v + 1] - p->first[v];
		for (int h = p->first[v]; h < p->first[v + 1]; h++) {
			int own = label_of(p, at / 2, h, e), label = own + (weight > much ? TOO_HEAVY : 0);
			if (own < 0 || label > least || (label == least && !is_fitter(weight, best, much))
			    || !may_take(p, at / 2, base + p->other[h]))
				continue;
			least = label;
			best = weight;
			*place = at / 2;
			*to = h;
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

/* Has the excess fallen in the last third of all looks? Where trees are found, it mostly has in the last tenth. */
static bool
goes_on(struct parents *p)
{
	if (p->excess < p->least) {
		p->least = p->excess;
		p->at_least = p->looks;
	}
	return p->looks < p->most_looks && 2 * p->looks <= 3 * p->at_least + p->most_looks / 8
	    && !out_of_time(p->ctx, PUSH_NS);
}

/* All that the edge has too much goes. Returns how many pushes that were, -1: it cannot. */
static int
push_from(struct parents *p, int e)
{
	int n = 0, place, to;
	for (; p->room[e] < 0; n++) {
		if (!goes_on(p) || !find_push(p, e, &place, &to))
			return -1;
		int label = label_of(p, place, to, e);
		p->label[e] = p->label[e] > label ? p->label[e] : label + 1;
		move(p, place, to);
		for (int k = 0; k < 2 && p->over[to][k] >= 0; k++)
			activate(p, p->over[to][k]);
	}
	return n;
}

/* Returns whether no edge has too much then. */
static bool
push_all(struct parents *p)
{
	p->looks = p->at_least = p->n_active = p->at = 0;
	p->least = p->excess;
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
	TRY(TEMP_EACH(p->ctx, topo->n_links, p->link, p->edge));
	TRY(TEMP_EACH(p->ctx, topo->n_vertices + 1, p->first_edge, fill));
	for (int l = 0; l < topo->n_links; l++) {
		p->first_edge[topo->link[l].from + 1]++;
		if (l < p->opposite[l])
			p->link[p->n_edges++] = l;
	}
	for (int v = 0; v < topo->n_vertices; v++)
		p->first_edge[v + 1] += p->first_edge[v];
	memcpy(fill, p->first_edge, (size_t)topo->n_vertices * sizeof *fill);
	for (int e = 0; e < p->n_edges; e++) {
		const Link *link = &topo->link[p->link[e]];
		p->edge[fill[link->from]++] = e;
		p->edge[fill[link->to]++] = e;
	}
	return OK;
}

static void
add_hop(struct parents *p, int to, int near, int far)
{
	p->other[p->n_hops] = to;
	p->over[p->n_hops][0] = near;
	p->over[p->n_hops++][1] = far;
}

/* p->n_hops: how many, or 0 where switches have links to each other, or there are too many. */
static Status
list_hops(struct parents *p)
{
	const int *first = p->first_edge;
	int64_t n = 0;
	for (int v = 0; v < p->topo->n_vertices; v++)
		for (int i = first[v]; i < first[v + 1]; i++) {
			int w = across(p, v, p->edge[i]);
			n += v < p->n ? w < p->n : w < p->n ? first[v + 1] - first[v] - 1 : INT32_MAX;
		}
	if (n > (int64_t)MOST_HOPS * p->n)
		return OK;
	TRY(TEMP_EACH(p->ctx, n, p->other, p->over));
	TRY(TEMP(p->ctx, p->first, p->n + 1));
	for (int v = 0; v < p->n; v++) {
		p->first[v] = p->n_hops;
		for (int i = first[v]; i < first[v + 1]; i++) {
			int e = p->edge[i], w = across(p, v, e);
			if (w < p->n)
				add_hop(p, w, e, -1);
			for (int k = first[w]; w >= p->n && k < first[w + 1]; k++)
				if (p->edge[k] != e)
					add_hop(p, across(p, w, p->edge[k]), e, p->edge[k]);
		}
	}
	p->first[p->n] = p->n_hops;
	return OK;
}

/* Over direct links: hops from each rank to the farthest, the least of which is returned. Through switches any rank is
 * near all others. */
static Status
find_farthest(struct parents *p, int *radius)
{
	short *hops;
	*radius = 0;
	TRY(TEMP_EACH(p->ctx, p->n, hops, p->far));
	for (int v = 0; v < p->n && p->topo->n_vertices == p->n; v++) {
		p->far[v] = find_hops(p, v, 1, hops);
		*radius = v == 0 || p->far[v] < *radius ? p->far[v] : *radius;
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

/* Of each hop the links from the rank to its parent, and back. */
static Status
list_links(const struct parents *p, int (**out)[2][2])
{
	int (*links)[2][2];
	TRY(NEW(p->ctx, links, p->n_hops));
	for (int v = 0; v < p->n; v++)
		for (int h = p->first[v]; h < p->first[v + 1]; h++)
			for (int k = 0, at = v; k < 2 && p->over[h][k] >= 0; k++) {
				int l = p->link[p->over[h][k]], last = p->over[h][1] >= 0 ? 1 : 0;
				l = p->topo->link[l].from == at ? l : p->opposite[l];
				links[h][0][k] = l;
				links[h][1][last - k] = p->opposite[l];
				at = p->topo->link[l].to;
			}
	*out = links;
	return OK;
}

static Status
make_trees(struct parents *p, Frac unit, Packing **out)
{
	Edge *there, *back;
	int (*links)[2][2];
	Packing *pack;
	TRY(TEMP_EACH(p->ctx, p->n, there, back));
	TRY(list_links(p, &links));
	TRY(pack_new(p->ctx, p->n_trees, false, &pack));
	pack->unit = unit;
	for (int t = 0; t < p->n_trees; t++) {
		int n = 0;
		for (int v = 0; v < p->n; v++) {
			int h = p->up[t * p->n + v];
			if (v == p->root[t])
				continue;
			int n_links = p->over[h][1] >= 0 ? 2 : 1;
			there[n] = (Edge){ p->other[h], v, n_links, links[h][1] };
			back[n++] = (Edge){ v, p->other[h], n_links, links[h][0] };
		}
		pack->weight[t] = p->weight[t];
		TRY(tree_arrange(p->ctx, p->n, ALLREDUCE, -1, there, back, n, &pack->tree[pack->n_trees++]));
	}
	TRY(pack_check(p->ctx, p->topo, pack));
	*out = pack;
	return OK;
}

/* Trees of roots that have at most this many hops to the farthest, and of as many levels, and some more. Returns
 * whether no edge has too much. */
static bool
try_levels(struct parents *p, int hops, int fan_out, int more, const int64_t *capacity)
{
	memcpy(p->room, capacity, (size_t)p->n_edges * sizeof *p->room);
	p->excess = 0;
	choose_roots(p, hops);
	int deepest = grow_trees(p, fan_out);
	p->most = (deepest > hops ? deepest : hops) + more;
	return push_all(p);
}

/* Trees of the least depth, or some more. */
static bool
find_trees(struct parents *p, int radius, const int64_t *capacity)
{
	return try_levels(p, radius, FAN_OUT, 0, capacity) || try_levels(p, radius, FAN_OUT, 1, capacity)
	    || try_levels(p, radius + 1, FAN_OUT - 1, 1, capacity)
	    || try_levels(p, radius + 1, FAN_OUT - 2, 3, capacity)
	    || try_levels(p, radius + 1 + radius / 8, FAN_OUT - 2, 1, capacity);
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
	TRY(list_hops(p));
	TRY(halves_choose(p->ctx, p->n, (int64_t)parts.num, &p->weight, &p->n_trees));
	if (p->n_hops == 0 || p->n_trees == 0 || !frac_div((Frac){ common, 1 }, (Frac){ parts.den, 1 }, &unit))
		return OK;
	TRY(find_farthest(p, &radius));
	size_t places = (size_t)p->n_trees * (size_t)p->n;
	p->most_looks = MOST_LOOKS * (int64_t)p->n_trees * p->n_hops;
	TRY(TEMP(p->ctx, p->root, p->n_trees));
	TRY(TEMP_EACH(p->ctx, places, p->up, p->level, p->children));
	TRY(TEMP_EACH(p->ctx, 2 * places, p->next, p->prev));
	TRY(TEMP_EACH(p->ctx, p->n_edges, p->room, p->label, p->head, p->active, p->waits, capacity));
	for (int e = 0; e < p->n_edges; e++)
		capacity[e] = p->topo->link[p->link[e]].capacity / common * parts.den;
	return radius >= 0 && find_trees(p, radius, capacity) ? make_trees(p, unit, out) : OK;
}

Status
pack_parents(Ctx *ctx, const Topology *topo, Frac rate, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const int *opposite;
	Frac parts;
	*out = NULL;
	if (topo->route || topo->n_ranks > LIMIT_PAIR_RANKS
	    || !frac_div(rate, (Frac){ topo_link_unit(topo), 1 }, &parts)
	    || parts.num > MOST_UNITS || parts.den > MOST_UNITS)
		return OK;
	TRY(orient_opposite(ctx, topo, &opposite));
	for (bool few = true; few && opposite && !*out; parts.num *= 2, parts.den *= 2) {
		struct parents p = { .ctx = ctx, .topo = topo, .n = topo->n_ranks, .opposite = opposite };
		few = parts.num < ENOUGH_UNITS;
		TRY(choose_parents(&p, parts, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
