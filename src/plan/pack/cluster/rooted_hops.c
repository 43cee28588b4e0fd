/* Which servers send in which tree of a root, and how often a tree enters each of them (rooted.c has the idea). */
#include "base/limits.h"
#include "plan/pack/cluster/rooted_parts.h"

#include <string.h>

/* ---- counts ---- */

/* Slots of uplinks and rooms of ranks, and at which uplinks trees have to enter: those of ranks that their switch
 * brings fewer trees. */
static void
count_slots(struct rooted *p)
{
	const Cluster *c = &p->c;
	for (int v = 0; v < p->topo->n_ranks; v++) {
		int l = p->into ? c->down[v] : c->up[v];
		p->room[v] = l < 0 ? 0 : rooted_fitting(p, p->topo->link[l].capacity);
	}
	for (int s = 0; s < c->n_servers; s++)
		p->n_sends[s] = 0;
	for (int w = 0; w < c->n_uplinks[0]; w++) {
		int64_t slots = rooted_fitting(p, c->uplink[0][w].capacity * c->unit);
		p->slots[w] = slots > p->n_trees ? p->n_trees : slots < (p->loose > 1) ? 1 : (int)slots;
		p->n_sends[c->of[c->uplink[0][w].rank]] += p->slots[w];
	}
	memset(p->need, 0, (size_t)c->n_uplinks[0] * sizeof *p->need);
	for (int v = 0; v < p->topo->n_ranks; v++) {
		const struct cluster_server *server = &c->server[c->of[v]];
		int l = p->into ? c->up[v] : c->down[v];
		int64_t near = l < 0 ? 0 : rooted_fitting(p, p->topo->link[l].capacity);
		for (int i = 0; i < server->n_uplinks[0] && near < p->n_trees && v != p->root && !p->loose; i++) {
			int w = server->first_uplink[0] + i;
			int64_t missing = p->n_trees - near;
			if (c->uplink[0][w].rank != v)
				continue;
			p->need[w] = missing < p->slots[w] ? (int)missing : p->slots[w];
			near += p->need[w];
		}
	}
}

/* Where trees may enter a server, and where they have to. */
static void
sum_uplinks(const struct rooted *p, int s, int *slots, int *need)
{
	const struct cluster_server *server = &p->c.server[s];
	*slots = *need = 0;
	for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++) {
		*slots += p->c.uplink[0][w].rank == p->root ? 0 : p->slots[w];
		*need += p->need[w];
	}
}

/* Trees that leave the root over its uplinks alone, as its switch has no room for them. */
static void
count_direct(struct rooted *p)
{
	int64_t n = p->c.server[p->home].n > 1 && !p->loose ? p->n_trees - p->room[p->root] : 0;
	p->n_direct = n < 0 ? 0 : (int)n;
	for (int t = 0; t < p->n_trees; t++)
		p->direct[t] = t < p->n_direct;
}

/* Each tree enters each other server once at least, and more often where switches have no room to bring it to all. */
static bool
count_entries(struct rooted *p)
{
	int64_t entries = 0, sends = 0;
	for (int s = 0; s < p->c.n_servers; s++) {
		const struct cluster_server *server = &p->c.server[s];
		int slots, need, least = s != p->home ? p->n_trees : server->n > 1 ? p->n_direct : 0;
		int64_t near = (int64_t)p->n_trees * (server->n - (s == p->home));
		sum_uplinks(p, s, &slots, &need);
		for (int i = 0; i < server->n; i++)
			near -= p->room[p->c.rank[server->first + i]];
		int64_t n = near > need ? near : need;
		n = n < least || p->loose ? least : n;
		if (n > slots)
			return false;
		entries += p->n_entries[s] = (int)n;
		sends += p->n_sends[s];
	}
	return entries <= sends;
}

/* ---- entries ---- */

/* Has the server an uplink to a plane of the root? */
static bool
shares_plane(const struct rooted *p, int s)
{
	const Cluster *c = &p->c;
	const struct cluster_server *home = &c->server[p->home], *server = &c->server[s];
	for (int i = 0; i < home->n_uplinks[0]; i++)
		for (int k = 0; k < server->n_uplinks[0]; k++) {
			const struct uplink *a = &c->uplink[0][home->first_uplink[0] + i];
			const struct uplink *b = &c->uplink[0][server->first_uplink[0] + k];
			if (a->rank == p->root && p->plane[a->network] == p->plane[b->network])
				return true;
		}
	return false;
}

/* The others, from one on, that with the most slots first where they differ. Nobody enters the root, so that slots stay
 * free on its planes: the last has uplinks there. */
static void
order_servers(const struct rooted *p, int *order)
{
	int n = 0;
	for (int i = 0; i < p->c.n_servers; i++) {
		int s = (p->home + 1 + p->turn + i) % p->c.n_servers, at = n;
		if (s == p->home)
			continue;
		for (; at > 0 && p->n_sends[order[at - 1]] < p->n_sends[s]; at--)
			order[at] = order[at - 1];
		order[at] = s;
		n++;
	}
	for (int i = n - 1; i >= 0; i--)
		if (shares_plane(p, order[i])) {
			int last = order[i];
			for (; i < n - 1; i++)
				order[i] = order[i + 1];
			order[n - 1] = last;
			return;
		}
}

/* Marks with 1 the trees in which servers of a leaf are about to send, if trees enter each server as often: these take
 * all of their hops, one after the other. In parts of a hop, n_trees to each. */
static void
guess_leaf(struct rooted *p, const int *order, int leaf)
{
	const int n = p->c.n_servers;
	int64_t each = p->leaf[p->home] == leaf ? -p->n_sends[p->home] : 0, at = 0, end = 0;
	int first = 0;
	for (int s = 0; s < n; s++)
		each += p->leaf[s] == leaf ? p->n_entries[s] : 0;
	for (int t = 0; t < p->n_trees; t++) {
		int64_t begin = end;
		int64_t more = each + (int64_t)p->n_trees * (*rooted_of_leaf(p, p->outs, t, leaf)
		    - *rooted_of_leaf(p, p->ins, t, leaf));
		end += more > 0 ? more : 0;
		for (int64_t i = first, from = at; i < n - 1 && from < end; i++) {
			int s = order[i];
			int64_t to = from + (int64_t)p->n_sends[s] * p->n_trees;
			if (p->leaf[s] != leaf)
				continue;
			if (to > begin && to > from)
				*rooted_at(p, p->sends, t, s) = 1;
			else {
				first = (int)i + 1;
				at = to;
			}
			from = to;
		}
	}
}

/* Which trees servers are about to send in. The only other server is entered once by direct trees, as the root alone
 * leads there; and so is that of the root, if it is alone, as it enters itself in the others. */
static void
guess_senders(struct rooted *p, const int *order)
{
	memset(p->sends, 0, (size_t)p->n_trees * (size_t)p->c.n_servers * sizeof *p->sends);
	for (int t = 0; t < p->n_trees && p->c.n_servers == 2; t++)
		*rooted_at(p, p->sends, t, order[0]) = p->direct[t];
	for (int t = 0; t < p->n_direct && p->alone[p->home]; t++)
		*rooted_at(p, p->sends, t, p->home) = 1;
	for (int leaf = 0; leaf < p->n_leaves && p->c.n_servers > 2; leaf++)
		guess_leaf(p, order, leaf);
}

/* The tree that gets one more entry of server s: of fewest hops, of those that have `least` there. */
static int
poorest_tree(const struct rooted *p, const int *hops, int s, int least)
{
	int best = -1;
	for (int t = 0; t < p->n_trees; t++) {
		if (*rooted_at(p, p->entries, t, s) != least || *rooted_at(p, p->sends, t, s))
			continue;
		bool later = best >= 0 && s == p->home && p->direct[best] && !p->direct[t];
		bool sooner = best >= 0 && s == p->home && p->direct[t] && !p->direct[best];
		best = best < 0 || sooner || (!later && hops[t] < hops[best]) ? t : best;
	}
	return best;
}

/* A server is entered once in trees in which it is about to send, so that all of its ranks may, and in others as often
 * as is left. hops: of each tree, their number. */
static void
place_entries(struct rooted *p, int *hops)
{
	for (int s = 0; s < p->c.n_servers; s++) {
		int once = 0;
		for (int t = 0; t < p->n_trees; t++)
			once += *rooted_at(p, p->sends, t, s);
		for (int t = 0; t < p->n_trees && once == p->n_trees; t++)
			*rooted_at(p, p->sends, t, s) = 0;
		once = once == p->n_trees ? 0 : once;
		int n = p->n_trees - once, each = (p->n_entries[s] - once) / n;
		for (int t = 0; t < p->n_trees; t++)
			hops[t] += *rooted_at(p, p->entries, t, s) = *rooted_at(p, p->sends, t, s) ? 1 : each;
		for (int i = each * n + once; i < p->n_entries[s]; i++) {
			int t = poorest_tree(p, hops, s, each);
			++*rooted_at(p, p->entries, t, s);
			hops[t]++;
		}
	}
}

/* ---- who sends ---- */

/* Hops of tree t that servers of this leaf send. */
static int
leaf_sends(const struct rooted *p, int t, int leaf)
{
	int n = *rooted_of_leaf(p, p->outs, t, leaf) - *rooted_of_leaf(p, p->ins, t, leaf);
	for (int s = 0; s < p->c.n_servers; s++)
		n += p->leaf[s] == leaf ? *rooted_at(p, p->entries, t, s) : 0;
	return n < 0 ? 0 : n;
}

/* More hops of tree t that server s may send: not to itself, so at most `all` less those that enter it; if it is alone,
 * but the first of these. left: of each server. */
static int
sends_left(const struct rooted *p, int t, int s, int all, const int *left)
{
	int enter = p->alone[s] ? *rooted_of_leaf(p, p->ins, t, p->leaf[s]) : *rooted_at(p, p->entries, t, s);
	int most = all - enter - *rooted_at(p, p->sends, t, s);
	most = most < left[s] ? most : left[s];
	return most < 0 ? 0 : most;
}

/* Servers of a leaf, or -1: of any, in order, send `need` more hops of tree t. Returns what is still missing. */
static int
add_senders(struct rooted *p, int t, const int *order, int leaf, int all, int *left, int need)
{
	for (int i = 0; i < p->c.n_servers - 1 && need > 0; i++) {
		int s = order[i], most = leaf < 0 || p->leaf[s] == leaf ? sends_left(p, t, s, all, left) : 0;
		most = most < need ? most : need;
		*rooted_at(p, p->sends, t, s) += most;
		left[s] -= most;
		need -= most;
	}
	return need;
}

/* One more hop of tree t from a server of this leaf, which another one sends for in a tree before. */
static bool
exchange_senders(struct rooted *p, int t, int leaf, int *left)
{
	int all = leaf_sends(p, t, leaf) + *rooted_of_leaf(p, p->ins, t, leaf);
	for (int before = 0; before < t; before++) {
		int all_before = leaf_sends(p, before, leaf) + *rooted_of_leaf(p, p->ins, before, leaf);
		for (int a = 0; a < p->c.n_servers; a++) {
			if (p->leaf[a] != leaf || a == p->home || *rooted_at(p, p->sends, before, a) == 0)
				continue;
			left[a]++;
			for (int b = 0; b < p->c.n_servers && sends_left(p, t, a, all, left) > 0; b++) {
				if (p->leaf[b] != leaf || b == a || b == p->home
				    || sends_left(p, before, b, all_before, left) == 0)
					continue;
				--*rooted_at(p, p->sends, before, a);
				++*rooted_at(p, p->sends, before, b);
				++*rooted_at(p, p->sends, t, a);
				left[a]--;
				left[b]--;
				return true;
			}
			left[a]--;
		}
	}
	return false;
}

/* In each leaf trees take servers one after the other to send for them, and all of their slots: with the slots of one
 * server left over, the next tree begins. The root's server sends in all trees. left: of each server. */
static bool
choose_senders(struct rooted *p, const int *order, const int *hops, int *left)
{
	memset(p->sends, 0, (size_t)p->n_trees * (size_t)p->c.n_servers * sizeof *p->sends);
	memcpy(left, p->n_sends, (size_t)p->c.n_servers * sizeof *left);
	for (int t = 0; t < p->n_trees; t++) {
		int missing = 0;
		for (int leaf = 0; leaf < p->n_leaves; leaf++) {
			int need = leaf_sends(p, t, leaf), all = need + *rooted_of_leaf(p, p->ins, t, leaf);
			if (leaf == p->leaf[p->home]) {
				int own = rooted_root_sends(p, t), most = sends_left(p, t, p->home, all, left);
				own = own < need ? own : need;
				own = own < most ? own : most;
				*rooted_at(p, p->sends, t, p->home) = own;
				left[p->home] -= own;
				need -= own;
			}
			need = add_senders(p, t, order, leaf, all, left, need);
			while (need > 0 && exchange_senders(p, t, leaf, left))
				need--;
			missing += need;
		}
		if (missing > 0 && add_senders(p, t, order, -1, hops[t], left, missing) > 0)
			return false;
	}
	return true;
}

/* Does leaf a come before leaf b in tree t? That of the root first, then those that more hops leave; of equal ones
 * another in each tree. */
static bool
leaf_before(const struct rooted *p, int t, int a, int b)
{
	int out_a = *rooted_of_leaf(p, p->outs, t, a), out_b = *rooted_of_leaf(p, p->outs, t, b);
	if (a == b || b == p->leaf[p->home])
		return false;
	if (a == p->leaf[p->home] || out_a != out_b)
		return a == p->leaf[p->home] || out_a > out_b;
	return (a + t) % p->n_leaves < (b + t) % p->n_leaves;
}

/* Does server a, which sends in tree t, come before server b of its leaf? That of most hops, but first one that has as
 * many as all others together are to be entered by: there the tree enters the leaf. all: hops of each leaf. */
static bool
server_before(const struct rooted *p, int t, int a, int b, const int *all)
{
	int sends_a = *rooted_at(p, p->sends, t, a), sends_b = *rooted_at(p, p->sends, t, b), leaf = p->leaf[a];
	bool first_a = sends_a + *rooted_at(p, p->entries, t, a) > all[leaf];
	bool first_b = sends_b + *rooted_at(p, p->entries, t, b) > all[leaf];
	return first_a != first_b ? first_a : sends_a > sends_b;
}

/* Servers of the tree that send, the root's first, then by leaves. all: work space, of each leaf. */
static int
list_senders(const struct rooted *p, int t, const int *order, int *sender, int *all)
{
	int n = 1;
	sender[0] = p->home;
	memset(all, 0, (size_t)p->n_leaves * sizeof *all);
	for (int s = 0; s < p->c.n_servers; s++)
		all[p->leaf[s]] += *rooted_at(p, p->sends, t, s);
	for (int i = 0; i < p->c.n_servers - 1; i++) {
		int s = order[i], at = n, before;
		if (*rooted_at(p, p->sends, t, s) == 0)
			continue;
		for (; at > 1 && (leaf_before(p, t, p->leaf[s], p->leaf[before = sender[at - 1]])
		    || (p->leaf[s] == p->leaf[before] && server_before(p, t, s, before, all))); at--)
			sender[at] = before;
		sender[at] = s;
		n++;
	}
	return n;
}

static void
add_hop(struct rooted *p, int t, int from, int to, bool first, bool early)
{
	--*rooted_at(p, p->sends, t, from);
	--*rooted_at(p, p->entries, t, to);
	*rooted_of_leaf(p, p->outs, t, p->leaf[from]) -= p->leaf[from] != p->leaf[to];
	p->hop[p->n_hops++] = (struct hop){ t, from, to, -1, -1, first, early };
}

/* Who sends to a server, of the first n of those that have a hop left: the first of its leaf, or of a leaf that has one
 * left to others, or of any; -1: there is none. */
static int
choose_source(const struct rooted *p, int t, const int *sender, int n, int to)
{
	for (int far = 0; far < 3; far++)
		for (int k = 0; k < n; k++) {
			int s = sender[k], leaf = p->leaf[s];
			if ((s != to || p->alone[s]) && *rooted_at(p, p->sends, t, s) > 0 && (far > 1
			    || (far ? *rooted_of_leaf(p, p->outs, t, leaf) > 0 : leaf == p->leaf[to])))
				return s;
		}
	return -1;
}

/* A hop to a server that alone has some left: it takes the place of another that sends to a third. */
static bool
exchange_hop(struct rooted *p, int t, int server, int first_hop)
{
	for (int h = first_hop; h < p->n_hops; h++) {
		struct hop *hop = &p->hop[h];
		if (hop->first || hop->to == server || hop->from == server)
			continue;
		++*rooted_at(p, p->sends, t, hop->from);
		--*rooted_at(p, p->sends, t, server);
		add_hop(p, t, hop->from, server, false, true);
		hop->from = server;
		return true;
	}
	return false;
}

/* Where there are several leaves, servers that do not send, from those of their leaf. */
static void
list_near(struct rooted *p, int t, const int *sender, int n_senders)
{
	for (int to = 0; to < p->c.n_servers && p->n_leaves > 1; to++)
		for (int i = 0; i < n_senders && *rooted_at(p, p->entries, t, to) > 0; i++)
			while (p->leaf[sender[i]] == p->leaf[to] && *rooted_at(p, p->sends, t, sender[i]) > 0
			    && *rooted_at(p, p->entries, t, to) > 0)
				add_hop(p, t, sender[i], to, false, false);
}

/* First those that send are entered, in their order; then these and the root's server as often as they have to; and at
 * last all others. False: what is left is only from a server to itself. */
static bool
list_tree(struct rooted *p, int t, const int *sender, int n_senders)
{
	int n = p->c.n_servers, first_hop = p->n_hops;
	for (int i = 1; i < n_senders; i++) {
		int from = choose_source(p, t, sender, i, sender[i]);
		if (from < 0)
			return false;
		add_hop(p, t, from, sender[i], true, true);
	}
	for (int i = 0; i < n_senders; i++)
		while (*rooted_at(p, p->entries, t, sender[i]) > 0) {
			int from = choose_source(p, t, sender, n_senders, sender[i]);
			if (from >= 0)
				add_hop(p, t, from, sender[i], false, true);
			else if (!exchange_hop(p, t, sender[i], first_hop))
				return false;
		}
	list_near(p, t, sender, n_senders);
	for (int i = 0, to = sender[n_senders - 1]; i < n_senders; i++)
		while (*rooted_at(p, p->sends, t, sender[i]) > 0) {
			int looked = 0;
			for (to = (to + 1) % n; *rooted_at(p, p->entries, t, to) == 0 && looked < n; looked++)
				to = (to + 1) % n;
			if (looked == n)
				return true;
			add_hop(p, t, sender[i], to, false, false);
		}
	return true;
}

Status
rooted_list_hops(struct rooted *p, bool *good)
{
	Ctx *ctx = p->ctx;
	int n = p->c.n_servers, *order, *hops, *sender, *left, *all;
	int64_t n_hops = 0;
	count_slots(p);
	count_direct(p);
	*good = p->n_direct <= p->n_trees && p->n_sends[p->home] >= p->n_trees && count_entries(p);
	if (!*good)
		return OK;
	size_t cells = (size_t)p->n_trees * (size_t)n;
	TRY(TEMP_EACH(ctx, cells, p->entries, p->sends));
	TRY(TEMP_EACH(ctx, (size_t)p->n_trees * (size_t)p->n_leaves, p->ins, p->outs));
	TRY(TEMP_EACH(ctx, n, order, sender, left));
	TRY(TEMP(ctx, hops, p->n_trees));
	TRY(TEMP(ctx, all, p->n_leaves));
	for (int s = 0; s < n; s++)
		n_hops += p->n_entries[s];
	TRY(TEMP(ctx, p->hop, n_hops));
	order_servers(p, order);
	TRY(rooted_cross_leaves(p, order, true, good));
	if (*good) {
		guess_senders(p, order);
		place_entries(p, hops);
		TRY(rooted_cross_leaves(p, order, false, good));
	}
	*good = *good && choose_senders(p, order, hops, left);
	for (int t = 0; t < p->n_trees && *good; t++)
		*good = list_tree(p, t, sender, list_senders(p, t, order, sender, all));
	return OK;
}
