/* Ranks of homes: which of them is entered, which one sends to which; and the trees of ranks that follow. */
#include "plan/pack/cluster/by_homes_ranks.h"

#include <string.h>

struct ranks {
	struct by_homes *s;
	int n, n_homes;
	int *entry;		/* [t * n_homes + home]: the rank by which it is entered */
	int *sender;		/* [t * n_homes + home]: the rank of another home that sends to it; -1 */
	int *parent;		/* [t * n + rank]: of a rank that is not entered from outside, in its home */
	/* Of one tree: homes that each home sends to: next home of the same parent, or -1 */
	int *first, *next;
	int *order;		/* work space: members */
	int64_t *own;		/* of each rank: parts of trees to come of which it is the root */
};

static int *
entry_at(const struct ranks *k, int t, int h)
{
	return &k->entry[(size_t)t * (size_t)k->n_homes + (size_t)h];
}

static int *
sender_at(const struct ranks *k, int t, int h)
{
	return &k->sender[(size_t)t * (size_t)k->n_homes + (size_t)h];
}

static int *
parent_at(const struct ranks *k, int t, int r)
{
	return &k->parent[(size_t)t * (size_t)k->n + (size_t)r];
}

/* Of the n members of a home place `at` gets `first`, or with -1 that one of those from there on that can send most. */
static void
choose_member(struct ranks *k, int n, int at, int first)
{
	const int64_t *left = k->s->left;
	int best = at, r;
	for (int i = at; i < n && k->order[best] != first; i++)
		if (k->order[i] == first || left[k->order[i]] > left[k->order[best]])
			best = i;
	r = k->order[best];
	k->order[best] = k->order[at];
	k->order[at] = r;
}

/* Hops of one tree from ranks of one home: to other homes, and to each other. first: the rank that has the data, or -1:
 * any. The first member sends to the others that have to send, to homes, and to the rest, as long as it can; then the
 * next one does. */
static void
choose_ranks(struct ranks *k, int t, int h, int first)
{
	const HomeNetwork *net = &k->s->net;
	int64_t *left = k->s->left, weight = k->s->tree[t].weight;
	int n = net->first[h + 1] - net->first[h], hops = n - 1, senders = 1;
	if (net->vertex[h] < net->topo->n_ranks) {
		*entry_at(k, t, h) = net->member[net->first[h]];
		for (int to = k->first[h]; to >= 0; to = k->next[to])
			*sender_at(k, t, to) = net->member[net->first[h]];
		return;
	}
	for (int to = k->first[h]; to >= 0; to = k->next[to])
		hops++;
	memcpy(k->order, &net->member[net->first[h]], (size_t)n * sizeof *k->order);
	choose_member(k, n, 0, first);
	*entry_at(k, t, h) = k->order[0];
	/* As many senders as it takes; each has one hop at least. */
	int64_t can = left[k->order[0]] / weight;
	while (senders < n && can < hops) {
		choose_member(k, n, senders, -1);
		if (left[k->order[senders]] < weight)
			break;
		can += left[k->order[senders++]] / weight;
	}
	int at = 0, member = 1, to = k->first[h];
	for (int i = 0; i < hops; i++) {
		while (at + 1 < senders && left[k->order[at]] < weight)
			at++;
		int from = k->order[at];
		left[from] -= weight;
		if (member < senders || to < 0)
			*parent_at(k, t, k->order[member++]) = from;
		else {
			*sender_at(k, t, to) = from;
			to = k->next[to];
		}
	}
}

/* Likewise, where the root has the data: each of its trees has its part of what it can send. */
static void
choose_own(struct ranks *k, int t, int h, int root)
{
	int64_t weight = k->s->tree[t].weight, *left = &k->s->left[root];
	int64_t later = *left - *left / (k->own[root] / weight);
	*left -= later;
	choose_ranks(k, t, h, root);
	*left += later;
	k->own[root] -= weight;
}

/* Homes that each home of a tree sends to. */
static void
list_children(struct ranks *k, int t)
{
	const struct home_tree *tree = &k->s->tree[t];
	memset(k->first, -1, (size_t)k->n_homes * sizeof *k->first);
	for (int h = k->n_homes - 1; h >= 0; h--) {
		int from = tree->enter[h] < 0 ? -1 : k->s->net.route[tree->enter[h]].from;
		if (from < 0)
			continue;
		k->next[h] = k->first[from];
		k->first[from] = h;
	}
}

/* Trees whose root is in the home come first: who sends there is given. */
static Status
choose_all(struct by_homes *s, struct ranks *k)
{
	const HomeNetwork *net = &s->net;
	*k = (struct ranks){ .s = s, .n = net->topo->n_ranks, .n_homes = net->n_homes };
	TRY(TEMP_EACH(s->ctx, (size_t)s->n_trees * (size_t)k->n_homes, k->entry, k->sender));
	if (k->n_homes < k->n)
		TRY(TEMP(s->ctx, k->parent, (size_t)s->n_trees * (size_t)k->n));
	TRY(TEMP_EACH(s->ctx, k->n, k->first, k->next, k->order, k->own));
	for (int t = 0; t < s->n_trees; t++)
		k->own[s->tree[t].root] += s->tree[t].weight;
	for (int own = 1; own >= 0; own--)
		for (int t = 0; t < s->n_trees; t++) {
			int root = s->tree[t].root, home = net->of[root];
			list_children(k, t);
			*sender_at(k, t, home) = -1;
			if (own)
				choose_own(k, t, home, root);
			for (int h = 0; h < k->n_homes && !own; h++)
				if (h != home)
					choose_ranks(k, t, h, -1);
		}
	return OK;
}

/* Does no rank send more than it can? */
static bool
has_sends(const struct ranks *k)
{
	for (int r = 0; r < k->n; r++)
		if (k->s->left[r] < 0)
			return false;
	return true;
}

/* ---- edges ---- */

/* The hop into a rank, with its links as data pass them. Returns how many; 0: the rank is the root. */
static int
links_into(const struct ranks *k, int t, int r, int *from, int *link)
{
	const HomeNetwork *net = &k->s->net;
	int h = net->of[r], n = 0;
	bool outside = *entry_at(k, t, h) == r;
	*from = outside ? *sender_at(k, t, h) : *parent_at(k, t, r);
	if (*from < 0)
		return 0;
	if (net->out[*from] >= 0)
		link[n++] = net->out[*from];
	if (outside) {
		const HomeRoute *route = &net->route[k->s->tree[t].enter[h]];
		memcpy(link + n, &net->links[route->first], (size_t)route->n_links * sizeof *link);
		n += route->n_links;
	}
	if (net->in[r] >= 0)
		link[n++] = net->in[r];
	for (int i = 0; i < n / 2 && net->into; i++) {
		int l = link[i];
		link[i] = link[n - 1 - i];
		link[n - 1 - i] = l;
	}
	return n;
}

static Status
make_edge(struct ranks *k, int from, int to, const int *link, int n, Edge *out)
{
	int *kept;
	bool into = k->s->net.into;
	TRY(NEW(k->s->ctx, kept, n));
	memcpy(kept, link, (size_t)n * sizeof *link);
	*out = (Edge){ into ? to : from, into ? from : to, n, kept };
	return OK;
}

Status
by_homes_list(struct by_homes *s, Frac rate, Packing **out)
{
	struct ranks k;
	Packing *pack;
	Edge *edge;
	int link[LIMIT_ROUTE_LINKS], from;
	int64_t *load;
	TRY(choose_all(s, &k));
	TRY(TEMP(s->ctx, edge, k.n));
	TRY(TEMP(s->ctx, load, s->net.topo->n_links));
	TRY(pack_new(s->ctx, (size_t)s->n_trees, s->n_blocks > 1, &pack));
	if (!frac_mul(rate, (Frac){ 1, s->m }, &pack->unit))
		return OK;
	for (int t = 0; t < s->n_trees; t++) {
		int n_edges = 0;
		for (int r = 0; r < k.n; r++) {
			int n = links_into(&k, t, r, &from, link);
			if (n > 0)
				TRY(make_edge(&k, from, r, link, n, &edge[n_edges++]));
		}
		if (s->n_blocks > 1)
			pack->demand[t] = s->tree[t].root;
		pack->weight[t] = s->tree[t].weight;
		TRY(tree_arrange(s->ctx, k.n, s->net.into ? REDUCE : BROADCAST, s->tree[t].root, edge, NULL, n_edges,
		    &pack->tree[pack->n_trees++]));
	}
	*out = pack_fits(s->net.topo, pack, load) ? pack : NULL;
	return OK;
}

/* Edges by their ends: the last one from src to dst, and the one before each; -1. */
struct table {
	int *last, *before;
	Packing *pack;
};

/* The number of an edge, which is a new one where there is none; -1: there are too many. */
static Status
number_edge(struct ranks *k, struct table *table, int from, int to, const int *link, int n, int *out)
{
	int *last = &table->last[(size_t)from * (size_t)k->n + (size_t)to];
	Packing *pack = table->pack;
	for (*out = *last; *out >= 0; *out = table->before[*out]) {
		const Edge *edge = &pack->edge[*out];
		if (edge->n_links == n && memcmp(edge->link, link, (size_t)n * sizeof *link) == 0)
			return OK;
	}
	if (pack->n_edges == LIMIT_TREE_EDGES)
		return OK;
	*out = pack->n_edges++;
	table->before[*out] = *last;
	*last = *out;
	return make_edge(k, from, to, link, n, &pack->edge[*out]);
}

Status
by_homes_number(struct by_homes *s, Packing **out)
{
	struct ranks k;
	struct table table;
	int link[LIMIT_ROUTE_LINKS], from, *now, *last;
	int64_t room = LIMIT_IN_LINKS;
	Frac length;
	bool good;
	TRY(choose_all(s, &k));
	TRY(TEMP_EACH(s->ctx, k.n, now, last));
	TRY(TEMP(s->ctx, table.last, (size_t)k.n * (size_t)k.n));
	TRY(TEMP(s->ctx, table.before, LIMIT_TREE_EDGES));
	memset(table.last, -1, (size_t)k.n * (size_t)k.n * sizeof *table.last);
	TRY(NEW(s->ctx, table.pack, 1));
	TRY(NEW(s->ctx, table.pack->edge, LIMIT_TREE_EDGES));
	TRY(NEW(s->ctx, table.pack->in_tree, s->n_trees));
	table.pack->highest = has_sends(&k);
	for (int t = 0; t < s->n_trees; t++) {
		for (int r = 0; r < k.n; r++) {
			int n = links_into(&k, t, r, &from, link);
			if (n > 0)
				TRY(number_edge(&k, &table, from, r, link, n, &now[r]));
			if (n > 0 && now[r] < 0)
				return OK;
		}
		if (!frac_make(s->tree[t].weight, s->m, &length))
			return fail(s->ctx, INTERNAL, "%s: a part of a block", s->net.topo->name);
		TRY(pack_add_numbers(s->ctx, table.pack, s->tree[t].root, k.n, now, length, last, &room, &good));
		if (!good)
			return OK;
	}
	*out = table.pack;
	return OK;
}
