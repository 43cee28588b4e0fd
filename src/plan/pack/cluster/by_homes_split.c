/* Trees over homes (by_homes.c) in which few send to many, and other homes in each tree, where what homes can send is
 * short: as in SplitStream (Castro et al. 2003). One tree at the rate of all ports would be a path. Of K trees of a
 * root, by ranks that can send once each, at most 2 + K + ... + K^(d - 1) ranks are within d hops: of 574 some are 4
 * hops away where K is 8.
 *
 * Each tree is built from its root, level by level. A home that has the data sends as often as it can: first into
 * parts of the network that the tree has not entered yet, then to homes near it. It sends to the homes that can send
 * most, as these come next. The home of the root divides what it has among its trees; what others have left at the end
 * is for later trees. A link by which data enter a part of the network has more homes before it than behind it; each
 * tree has its part of it, as each enters all homes. */
#include "plan/pack/cluster/by_homes_moves.h"

#include <string.h>

enum pass {
	PARTS,			/* of links into parts of the network, of the root's home, and of its ways out */
	ROOM,			/* what later trees do not need */
	ANY
};

struct split {
	struct by_homes *s;
	bool *inward;		/* of each link: into a part of the network */
	int *uses;		/* of each link, and of each home: in the tree at work */
	int64_t *need;		/* likewise: what roots of later trees have to send */
	int *far;		/* of each home: a route from it of most links; -1 */
	int later;		/* trees after this one */
};

static int
home_of(const struct split *p, int h)
{
	return p->s->net.topo->n_links + h;
}

static int64_t
left_of(const struct split *p, int x)
{
	int n_links = p->s->net.topo->n_links;
	return x < n_links ? p->s->room[x] : p->s->sends[x - n_links];
}

/* The root of a tree of this weight needs the ways out of its home. */
static void
add_need(struct split *p, int h, int64_t weight)
{
	const HomeNetwork *net = &p->s->net;
	p->need[home_of(p, h)] += weight;
	if (p->far[h] < 0)
		return;
	const HomeRoute *r = &net->route[p->far[h]];
	for (int i = 0; i < r->n_links; i++)
		if (!p->inward[net->links[r->first + i]])
			p->need[net->links[r->first + i]] += weight;
}

/* Links by their homes before and behind them. */
static Status
find_inward(struct split *p)
{
	const struct by_homes *s = p->s;
	const HomeNetwork *net = &s->net;
	int *before, *behind;
	TRY(TEMP_EACH(s->ctx, net->n_homes, before, behind));
	for (int l = 0; l < net->topo->n_links; l++) {
		int n_before = 0, n_behind = 0;
		for (int u = s->first_user[l]; u < s->first_user[l + 1]; u++) {
			int from = net->route[s->user[u]].from, to = s->into[s->user[u]];
			n_before += before[from] != l + 1;
			n_behind += behind[to] != l + 1;
			before[from] = behind[to] = l + 1;
		}
		p->inward[l] = n_before > n_behind;
	}
	memset(p->far, -1, (size_t)net->n_homes * sizeof *p->far);
	for (int i = 0; i < net->n_routes; i++) {
		int *far = &p->far[net->route[i].from];
		*far = *far < 0 || net->route[i].n_links > net->route[*far].n_links ? i : *far;
	}
	return OK;
}

/* What of link or home x this tree may use still. own: it is on a way out of the root's home. */
static int64_t
may_use(const struct split *p, int x, bool own, int64_t weight, enum pass pass)
{
	int64_t left = left_of(p, x), all = left + p->uses[x] * weight, part;
	if (pass == ANY)
		return INT64_MAX;
	if (pass == PARTS && (own || (x < p->s->net.topo->n_links && p->inward[x]))) {
		int64_t trees = own ? p->need[x] / weight + 1 : p->later + 1;
		part = all / (trees * weight) * weight;
		part = part > weight ? part : weight;
		return (part < all ? part : all) - p->uses[x] * weight;
	}
	return left - p->need[x];
}

static int
used_by(const struct by_homes *s, int route, int i)
{
	const HomeRoute *r = &s->net.route[route];
	return i < r->n_links ? s->net.links[r->first + i] : s->net.topo->n_links + r->from;
}

/* What a home can send, near and far. */
static int64_t
strength(const struct split *p, int h)
{
	const struct by_homes *s = p->s;
	if (p->far[h] < 0)
		return 0;
	const HomeRoute *r = &s->net.route[p->far[h]];
	int64_t near = 0, far = left_of(p, home_of(p, h)) - p->need[home_of(p, h)];
	for (int i = 0; i < r->n_links; i++) {
		int l = s->net.links[r->first + i];
		int64_t left = p->inward[l] ? INT64_MAX : s->room[l] - p->need[l];
		far = left < far ? left : far;
		near = i == 0 ? far : near;
	}
	return near + far;
}

/* The best route from a home to one that the tree has not; -1: none. */
static int
choose_next(const struct split *p, int from, bool own, int64_t weight, enum pass pass)
{
	const struct by_homes *s = p->s;
	const HomeNetwork *net = &s->net;
	int best = -1, most_new = 0, least_links = 0, x = home_of(p, from);
	int64_t strongest = 0;
	for (int u = s->first_user[x]; u < s->first_user[x + 1]; u++) {
		int route = s->user[u], to = s->into[route], n_new = 0;
		const HomeRoute *r = &net->route[route];
		if (s->depth[to] >= 0)
			continue;
		bool room = true;
		for (int i = 0; i <= r->n_links && room; i++) {
			int y = used_by(s, route, i);
			bool in = i < r->n_links && p->inward[y];
			room = may_use(p, y, own && !in, weight, pass) >= weight;
			n_new += in && p->uses[y] == 0;
		}
		if (!room || (best >= 0 && (n_new < most_new || (n_new == most_new && r->n_links > least_links))))
			continue;
		int64_t can = strength(p, to);
		if (best >= 0 && n_new == most_new && r->n_links == least_links && can <= strongest)
			continue;
		best = route;
		most_new = n_new;
		least_links = r->n_links;
		strongest = can;
	}
	return best;
}

/* Returns whether all homes are reached. */
static bool
grow(struct split *p, struct home_tree *tree)
{
	struct by_homes *s = p->s;
	const HomeNetwork *net = &s->net;
	int root = net->of[tree->root], n = 1;
	memset(s->depth, -1, (size_t)net->n_homes * sizeof *s->depth);
	memset(p->uses, 0, (size_t)(net->topo->n_links + net->n_homes) * sizeof *p->uses);
	s->depth[root] = 0;
	s->queue[0] = root;
	tree->enter[root] = -1;
	for (enum pass pass = PARTS; pass <= ANY && n < net->n_homes; pass++)
		for (int head = 0; head < n && n < net->n_homes; head++) {
			int from = s->queue[head], route;
			while (n < net->n_homes
			    && (route = choose_next(p, from, from == root, tree->weight, pass)) >= 0) {
				int to = s->into[route];
				for (int i = 0; i <= net->route[route].n_links; i++)
					p->uses[used_by(s, route, i)]++;
				by_homes_use(s, route, tree->weight);
				tree->enter[to] = route;
				s->depth[to] = s->depth[from] + 1;
				s->queue[n++] = to;
			}
		}
	return n == net->n_homes;
}

Status
by_homes_split(struct by_homes *s, bool *good)
{
	struct split p = { .s = s, .later = s->n_trees };
	int n = s->net.topo->n_links + s->net.n_homes;
	TRY(TEMP(s->ctx, p.inward, s->net.topo->n_links));
	TRY(TEMP(s->ctx, p.far, s->net.n_homes));
	TRY(TEMP_EACH(s->ctx, n, p.uses, p.need));
	TRY(find_inward(&p));
	for (int t = 0; t < s->n_trees; t++)
		add_need(&p, s->net.of[s->tree[t].root], s->tree[t].weight);
	*good = true;
	for (int t = 0; t < s->n_trees && *good; t++) {
		p.later--;
		add_need(&p, s->net.of[s->tree[t].root], -s->tree[t].weight);
		*good = !out_of_time(s->ctx, (int64_t)BY_HOMES_HOP_NS * s->net.n_routes) && grow(&p, &s->tree[t]);
	}
	return OK;
}
