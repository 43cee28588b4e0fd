/* Edges that have too much push ranks to other parents, towards edges that have room (Goldberg and Tarjan 1988). */
#include "plan/pack/flow/parents_push.h"

#include <limits.h>
#include <string.h>

enum {
	TOO_HEAVY = 2,			/* moves that it costs to push more than there is too much */
	PUSH_NS = 2000			/* about what one takes */
};

/* ---- moves ---- */

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
		parents_add_room(p, e, p->weight[place / p->n]);
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
	parents_put(p, place, h);
	int above = above_of(p, place);
	p->children[above]++;
	if (p->children[place] > 0 && p->level[place] > p->level[above])
		return;
	p->level[place] = (short)(p->level[above] + 1);
	lower(p, place);
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

/* Has the excess fallen by a quarter in the last third of all looks? Where trees are found, it mostly has in the last
 * tenth. */
static bool
goes_on(struct parents *p)
{
	if (4 * p->excess <= 3 * p->least) {
		p->least = p->excess;
		p->at_least = p->looks;
	}
	return p->looks < p->most_looks && 2 * p->looks <= 3 * p->at_least + p->most_looks / 2
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

/* Where pushes found room for all but a little, the lightest tree is left out, which has room on many edges. */
static bool
leave_out(struct parents *p)
{
	enum { LITTLE = 2 };	/* of what the tree has on all of its edges, one part */
	const int t = p->n_trees - 1;
	const int64_t weight = p->weight[t];
	if (t == 0 || weight > p->spare || p->excess > weight * p->n / LITTLE || out_of_time(p->ctx, PUSH_NS))
		return false;
	for (int place = t * p->n; place < (t + 1) * p->n; place++)
		if (p->up[place] >= 0)
			take(p, place);
	p->spare -= weight;
	p->n_trees = t;
	return true;
}

bool
parents_push(struct parents *p)
{
	bool done = push_all(p);
	while (!done && leave_out(p))
		done = push_all(p);
	return done;
}
