/* Which servers send in which tree of a root, and how often a tree enters each of them (rooted.c has the idea). */
#include "base/disjoint.h"
#include "base/limits.h"
#include "plan/pack/cluster/rooted_hops.h"

#include <string.h>

int64_t
rooted_fitting(const struct rooted *p, int64_t capacity)
{
	Wide most = (Wide)capacity * p->n_trees / p->bound.num;
	return most > LIMIT_TREES ? LIMIT_TREES
	    : (int64_t)((Wide)capacity * p->n_trees * p->bound.den / p->bound.num);
}

/* ---- leaves ---- */

/* Where servers are at as many networks of a joined plane each, as at leaf switches of several rails, those of the same
 * number are a plane of their own. set: networks that have servers in common. */
static Status
split_planes(struct rooted *p, int *set)
{
	int n = p->c.n_networks, n_planes = 0, *split;
	TRY(TEMP(p->ctx, split, n));
	for (int g = 0; g < p->n_planes; g++) {
		int least = n, most = 0;
		for (int i = 0; i < n; i++) {
			int same = 0;
			for (int k = 0; k < n && p->plane[i] == g; k++) {
				bool near = p->plane[k] == g && set_root(set, k) == set_root(set, i);
				split[i] = k == i ? n_planes + same : split[i];
				same += near;
			}
			least = p->plane[i] == g && same < least ? same : least;
			most = same > most ? same : most;
		}
		for (int i = 0; i < n; i++)
			split[i] = p->plane[i] == g && least < most ? n_planes : split[i];
		n_planes += least < most ? 1 : most;
	}
	memcpy(p->plane, split, (size_t)n * sizeof *split);
	p->n_planes = n_planes;
	return OK;
}

Status
rooted_find_leaves(struct rooted *p, bool apart)
{
	const Cluster *c = &p->c;
	int *number, *set;
	p->n_leaves = 0;
	TRY(TEMP(p->ctx, p->leaf, c->n_servers));
	TRY(TEMP_EACH(p->ctx, c->n_networks + 1, p->of_leaf, p->out_of_leaf));
	TRY(TEMP_EACH(p->ctx, c->n_networks + 1, number, set));
	cluster_find_planes(c, p->plane, &p->n_planes);
	for (int i = 0; i < c->n_networks; i++)
		set[i] = i;
	for (int i = 1; i < c->n_uplinks[0]; i++)
		if (c->of[c->uplink[0][i].rank] == c->of[c->uplink[0][i - 1].rank])
			set_join(set, c->uplink[0][i].network, c->uplink[0][i - 1].network);
	for (int s = 0; s < c->n_servers; s++) {
		int network = c->uplink[0][c->server[s].first_uplink[0]].network, joined = 0;
		for (int i = 0; i < c->n_networks; i++)
			joined += p->plane[i] == p->plane[network];
		network = apart && joined > 1 ? set_root(set, network) : c->n_networks;
		number[network] = number[network] ? number[network] : ++p->n_leaves;
		p->leaf[s] = number[network] - 1;
	}
	return apart && p->n_leaves > 1 ? split_planes(p, set) : OK;
}

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
static int
count_direct(struct rooted *p)
{
	int64_t n = p->c.server[p->home].n > 1 && !p->loose ? p->n_trees - p->room[p->root] : 0;
	int n_direct = n < 0 ? 0 : (int)n;
	for (int t = 0; t < p->n_trees; t++)
		p->direct[t] = t < n_direct;
	return n_direct;
}

/* Each tree enters each other server once at least, and more often where switches have no room to bring it to all. */
static bool
count_entries(struct rooted *p, int n_direct)
{
	int64_t entries = 0, sends = 0;
	for (int s = 0; s < p->c.n_servers; s++) {
		const struct cluster_server *server = &p->c.server[s];
		int slots, need, least = s != p->home ? p->n_trees : server->n > 1 ? n_direct : 0;
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

/* The sends of each leaf, and those of all together. */
static int64_t
sum_leaves(struct rooted *p)
{
	int64_t all = 0;
	memset(p->of_leaf, 0, (size_t)p->n_leaves * sizeof *p->of_leaf);
	for (int s = 0; s < p->c.n_servers; s++) {
		p->of_leaf[p->leaf[s]] += s == p->home ? 0 : p->n_sends[s];
		all += s == p->home ? 0 : p->n_sends[s];
	}
	return all;
}

/* Marks with 1 which trees each server is about to send in, if all trees have as many hops, and each leaf sends its
 * part. The only other server is entered once by direct trees, as the root alone leads there. */
static void
guess_senders(struct rooted *p, const int *order)
{
	int64_t all = sum_leaves(p), need = -p->n_sends[p->home];
	for (int s = 0; s < p->c.n_servers; s++)
		need += p->n_entries[s];
	memset(p->sends, 0, (size_t)p->n_trees * (size_t)p->c.n_servers * sizeof *p->sends);
	for (int t = 0; t < p->n_trees && p->c.n_servers == 2; t++)
		*rooted_at(p, p->sends, t, order[0]) = p->direct[t];
	for (int leaf = 0; leaf < p->n_leaves && p->c.n_servers > 2; leaf++) {
		int64_t sum = all > 0 ? need * p->of_leaf[leaf] / all : 0, at = 0;
		for (int i = 0; i < p->c.n_servers - 1 && at < sum; i++) {
			if (p->leaf[order[i]] != leaf)
				continue;
			for (int64_t t = at * p->n_trees / sum; t < p->n_trees && t * sum
			    < (at + p->n_sends[order[i]]) * p->n_trees; t++)
				*rooted_at(p, p->sends, (int)t, order[i]) = 1;
			at += p->n_sends[order[i]];
		}
	}
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

/* Hops that server s sends in tree t: at most as many as it has left, and no more than lead to other servers. */
static int
senders_share(const struct rooted *p, int t, int s, const int *hops, int left, int need)
{
	int most = hops[t] - *rooted_at(p, p->entries, t, s);
	most = most < left ? most : left;
	return most < need ? most : need;
}

/* Servers of a leaf, or -1: of any, in order, send `need` more hops of tree t. left: of each server. Returns what is
 * still missing. */
static int
add_senders(struct rooted *p, int t, const int *order, int leaf, const int *hops, int *left, int need)
{
	for (int i = 0; i < p->c.n_servers - 1 && need > 0; i++) {
		if (leaf >= 0 && p->leaf[order[i]] != leaf)
			continue;
		int take = senders_share(p, t, order[i], hops, left[order[i]], need);
		*rooted_at(p, p->sends, t, order[i]) += take;
		left[order[i]] -= take;
		need -= take;
	}
	return need;
}

/* The root's server sends in all trees, the same number of hops but for direct ones, or all that enter the only other
 * server. Then trees take servers one after the other to send for them, of each leaf its part, and all of their slots:
 * with the slots of one server left over, the next tree begins. left: of each server. */
static bool
choose_senders(struct rooted *p, const int *order, const int *hops, int n_direct, int *left)
{
	int others = p->n_trees - n_direct, home = p->n_sends[p->home] - n_direct;
	int64_t all = sum_leaves(p), sum = 0;
	memset(p->sends, 0, (size_t)p->n_trees * (size_t)p->c.n_servers * sizeof *p->sends);
	memcpy(left, p->n_sends, (size_t)p->c.n_servers * sizeof *left);
	if (home < others)
		return false;
	for (int t = 0; t < p->n_trees; t++) {
		int own = p->c.n_servers == 2 ? *rooted_at(p, p->entries, t, order[0])
		    : p->direct[t] ? 1 : home / others + (t - n_direct < home % others);
		int need = hops[t] - (own < hops[t] ? own : hops[t]);
		int64_t to = sum + need;
		*rooted_at(p, p->sends, t, p->home) = hops[t] - need;
		for (int i = 0; i < p->n_leaves && p->n_leaves > 1 && all > 0; i++) {
			int leaf = (i + t) % p->n_leaves;
			int64_t part = to * p->of_leaf[leaf] / all - sum * p->of_leaf[leaf] / all;
			int most = part < need ? (int)part : need;
			need -= most - add_senders(p, t, order, leaf, hops, left, most);
		}
		sum = to;
		if (add_senders(p, t, order, -1, hops, left, need) > 0)
			return false;
	}
	return true;
}

/* Servers of the tree that send, the root's first, then those of most hops, of equal ones those of another leaf in each
 * tree. */
static int
list_senders(const struct rooted *p, int t, const int *order, int *sender)
{
	int n = 1, leaves = p->n_leaves;
	sender[0] = p->home;
	for (int i = 0; i < p->c.n_servers - 1; i++) {
		int s = order[i], at = n, sends = *rooted_at(p, p->sends, t, s), turn = (p->leaf[s] + t) % leaves;
		if (sends == 0)
			continue;
		for (; at > 1; at--) {
			int before = sender[at - 1], more = sends - *rooted_at(p, p->sends, t, before);
			if (more < 0 || (more == 0 && (p->leaf[before] + t) % leaves <= turn))
				break;
			sender[at] = before;
		}
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
	p->out_of_leaf[p->leaf[from]] += p->leaf[from] != p->leaf[to];
	p->hop[p->n_hops++] = (struct hop){ t, from, to, -1, -1, first, early };
}

/* Who sends to sender i, of those from `from`, which has a hop left, to i: the first of its leaf, or else of the leaf
 * that hops left least. */
static int
choose_source(const struct rooted *p, int t, const int *sender, int from, int i)
{
	int best = sender[from], to = p->leaf[sender[i]];
	for (int k = from + 1; k < i && p->leaf[best] != to; k++) {
		int leaf = p->leaf[sender[k]];
		if (*rooted_at(p, p->sends, t, sender[k]) > 0
		    && (leaf == to || p->out_of_leaf[leaf] < p->out_of_leaf[p->leaf[best]]))
			best = sender[k];
	}
	return best;
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
	for (int i = 1, from = 0; i < n_senders; i++) {
		while (*rooted_at(p, p->sends, t, sender[from]) == 0)
			from++;
		add_hop(p, t, choose_source(p, t, sender, from, i), sender[i], true, true);
	}
	for (int i = 0; i < n_senders; i++)
		for (int from = 0; *rooted_at(p, p->entries, t, sender[i]) > 0; ) {
			if (from == n_senders && !exchange_hop(p, t, sender[i], first_hop))
				return false;
			if (from < n_senders && from != i && *rooted_at(p, p->sends, t, sender[from]) > 0)
				add_hop(p, t, sender[from], sender[i], false, true);
			else if (from < n_senders)
				from++;
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
	int n = p->c.n_servers, *order, *hops, *sender, *left;
	int64_t n_hops = 0;
	count_slots(p);
	int n_direct = count_direct(p);
	*good = n_direct <= p->n_trees && count_entries(p, n_direct);
	if (!*good)
		return OK;
	size_t cells = (size_t)p->n_trees * (size_t)n;
	TRY(TEMP_EACH(ctx, cells, p->entries, p->sends));
	TRY(TEMP_EACH(ctx, n, order, sender, left));
	TRY(TEMP(ctx, hops, p->n_trees));
	for (int s = 0; s < n; s++)
		n_hops += p->n_entries[s];
	TRY(TEMP(ctx, p->hop, n_hops));
	order_servers(p, order);
	guess_senders(p, order);
	place_entries(p, hops);
	*good = choose_senders(p, order, hops, n_direct, left);
	memset(p->out_of_leaf, 0, (size_t)p->n_leaves * sizeof *p->out_of_leaf);
	for (int t = 0; t < p->n_trees && *good; t++)
		*good = list_tree(p, t, sender, list_senders(p, t, order, sender));
	return OK;
}
