/* The flow of a plane, for rooted_uplinks.c. Hops flow from a node 0 to leaves and their servers that send, to entries
 * of trees, to the servers and leaves that these enter, and back to node 0. Leaves, servers and entries have bounds.
 *
 * Where leaf switches have less than their servers, hops between leaves are a flow of their own, before those inside:
 * so that the bounds of leaves are those of a flow, too. Of these each plane has its part. */
#include "plan/pack/cluster/rooted_flow.h"

#include <string.h>

static int
sender_node(int s)
{
	return 1 + s;
}

static int
server_node(const struct uplinks *q, int s)
{
	return 1 + q->p->c.n_servers + s;
}

static int
entry_node(const struct uplinks *q, int e)
{
	return 1 + 2 * q->p->c.n_servers + e;
}

/* side 0: of hops that leave it; 1: that enter it. */
static int
leaf_node(const struct uplinks *q, int side, int leaf)
{
	return 1 + 2 * q->p->c.n_servers + q->n_entries + side * q->p->n_leaves + leaf;
}

/* A node to look from next, which one more, or one less, hop over this pair, or none, leads to. */
static void
reach(struct uplinks *q, int *n, int at, int node, int pair)
{
	if (q->from[node] >= 0)
		return;
	q->from[node] = at;
	q->by[node] = pair;
	q->queue[(*n)++] = node;
}

static void
look_from_root(struct uplinks *q, int *n)
{
	for (int leaf = 0; leaf < q->p->n_leaves; leaf++) {
		if (q->leaf_degree[0][leaf] < q->leaf_most[0][leaf])
			reach(q, n, 0, leaf_node(q, 0, leaf), -1);
		if (q->leaf_degree[1][leaf] > q->leaf_least[1][leaf])
			reach(q, n, 0, leaf_node(q, 1, leaf), -1);
	}
}

static void
look_from_leaf(struct uplinks *q, int *n, int side, int leaf)
{
	int node = leaf_node(q, side, leaf);
	bool root = side ? q->leaf_degree[1][leaf] < q->leaf_most[1][leaf]
	    : q->leaf_degree[0][leaf] > q->leaf_least[0][leaf];
	if (root)
		reach(q, n, node, 0, -1);
	for (int s = 0; s < q->p->c.n_servers; s++) {
		if (q->p->leaf[s] != leaf)
			continue;
		if (side ? q->degree[1][s] > q->least[1][s] : q->degree[0][s] < q->most[0][s])
			reach(q, n, node, side ? server_node(q, s) : sender_node(s), -1);
	}
}

static void
look_from_sender(struct uplinks *q, int *n, int s)
{
	for (int i = q->first_pair[0][s]; i < q->first_pair[0][s + 1]; i++)
		if (q->pair[i].used < q->pair[i].left)
			reach(q, n, sender_node(s), entry_node(q, q->pair[i].entry), i);
	if (q->degree[0][s] > q->least[0][s])
		reach(q, n, sender_node(s), leaf_node(q, 0, q->p->leaf[s]), -1);
}

static void
look_from_entry(struct uplinks *q, int *n, int e)
{
	for (int i = q->first_pair[1][e]; i < q->first_pair[1][e + 1]; i++)
		if (q->pair[q->list[i]].used > 0)
			reach(q, n, entry_node(q, e), sender_node(q->pair[q->list[i]].from), q->list[i]);
	if (q->entry[e].degree < q->entry[e].most)
		reach(q, n, entry_node(q, e), server_node(q, q->entry[e].to), -1);
}

static void
look_from_server(struct uplinks *q, int *n, int s)
{
	for (int e = q->first_entry[s]; e < q->first_entry[s + 1]; e++)
		if (q->entry[e].degree > q->entry[e].least)
			reach(q, n, server_node(q, s), entry_node(q, e), -1);
	if (q->degree[1][s] < q->most[1][s])
		reach(q, n, server_node(q, s), leaf_node(q, 1, q->p->leaf[s]), -1);
}

static void
look_from(struct uplinks *q, int *n, int node)
{
	int servers = q->p->c.n_servers, leaf = node - leaf_node(q, 0, 0);
	if (node == 0)
		look_from_root(q, n);
	else if (node <= servers)
		look_from_sender(q, n, node - 1);
	else if (node <= 2 * servers)
		look_from_server(q, n, node - 1 - servers);
	else if (leaf < 0)
		look_from_entry(q, n, node - 1 - 2 * servers);
	else
		look_from_leaf(q, n, leaf >= q->p->n_leaves, leaf % q->p->n_leaves);
}

/* One more from `at` to `node`, or, where it is the other way round, one less. */
static void
change(struct uplinks *q, int at, int node)
{
	int n = q->p->c.n_servers, low = at < node ? at : node, high = at < node ? node : at;
	int more = at < node ? 1 : -1, leaf = high - leaf_node(q, 0, 0), side = leaf >= q->p->n_leaves;
	if (leaf >= 0 && low == 0)
		q->leaf_degree[side][leaf % q->p->n_leaves] += side ? -more : more;
	else if (leaf >= 0)
		q->degree[side][side ? low - 1 - n : low - 1] += side ? more : -more;
	else if (low <= n)
		q->pair[q->by[node]].used += more;
	else
		q->entry[high - 1 - 2 * n].degree -= more;
}

/* One more hop over the way from node `end` to node `start`, by a path from there to here of ways that have one more,
 * or one less. */
static bool
augment(struct uplinks *q, int start, int end)
{
	int n = 0, nodes = leaf_node(q, 1, q->p->n_leaves);
	memset(q->from, -1, (size_t)nodes * sizeof *q->from);
	reach(q, &n, start, start, -1);
	for (int i = 0; i < n && q->from[end] < 0 && q->p->work > 0; i++) {
		int before = n;
		look_from(q, &n, q->queue[i]);
		q->p->work -= 1 + n - before;
	}
	q->p->work -= nodes / 8;
	if (q->from[end] < 0)
		return false;
	for (int node = end; node != start; node = q->from[node])
		change(q, q->from[node], node);
	change(q, end, start);
	return true;
}

/* Has one of its ends, or their leaves, less hops than it needs? */
static bool
is_needed(const struct uplinks *q, const struct pair *pair)
{
	const struct entry *entry = &q->entry[pair->entry];
	int from = q->p->leaf[pair->from], to = q->p->leaf[entry->to];
	return q->degree[0][pair->from] < q->least[0][pair->from] || q->degree[1][entry->to] < q->least[1][entry->to]
	    || entry->degree < entry->least || q->leaf_degree[0][from] < q->leaf_least[0][from]
	    || q->leaf_degree[1][to] < q->leaf_least[1][to];
}

/* Hops of pairs whose servers, leaves and trees have room, if needed: where one of these has less than its least. */
static void
fill_pairs(struct uplinks *q, bool needed)
{
	for (int i = 0; i < q->n_pairs; i++) {
		struct pair *pair = &q->pair[i];
		struct entry *entry = &q->entry[pair->entry];
		int a = q->p->leaf[pair->from], b = q->p->leaf[entry->to];
		int *from = &q->degree[0][pair->from], *to = &q->degree[1][entry->to];
		int *out = &q->leaf_degree[0][a], *in = &q->leaf_degree[1][b];
		for (; pair->used < pair->left && *from < q->most[0][pair->from] && *to < q->most[1][entry->to]
		    && entry->degree < entry->most && *out < q->leaf_most[0][a] && *in < q->leaf_most[1][b]
		    && (!needed || is_needed(q, pair)); ++*from, ++*to, ++*out, ++*in) {
			entry->degree++;
			pair->used++;
		}
	}
}

/* False: some have less hops than they need on this plane. */
static bool
meet_least(struct uplinks *q)
{
	for (int e = 0; e < q->n_entries; e++)
		while (q->entry[e].degree < q->entry[e].least)
			if (!augment(q, server_node(q, q->entry[e].to), entry_node(q, e)))
				return false;
	for (int s = 0; s < q->p->c.n_servers; s++) {
		while (q->degree[0][s] < q->least[0][s])
			if (!augment(q, sender_node(s), leaf_node(q, 0, q->p->leaf[s])))
				return false;
		while (q->degree[1][s] < q->least[1][s])
			if (!augment(q, leaf_node(q, 1, q->p->leaf[s]), server_node(q, s)))
				return false;
	}
	for (int leaf = 0; leaf < q->p->n_leaves; leaf++) {
		while (q->leaf_degree[0][leaf] < q->leaf_least[0][leaf])
			if (!augment(q, leaf_node(q, 0, leaf), 0))
				return false;
		while (q->leaf_degree[1][leaf] < q->leaf_least[1][leaf])
			if (!augment(q, 0, leaf_node(q, 1, leaf)))
				return false;
	}
	return true;
}

bool
uplinks_find_flow(struct uplinks *q)
{
	for (int side = 0; side < 2; side++) {
		memset(q->degree[side], 0, (size_t)q->p->c.n_servers * sizeof *q->degree[side]);
		memset(q->leaf_degree[side], 0, (size_t)q->p->n_leaves * sizeof *q->leaf_degree[side]);
	}
	for (int e = 0; e < q->n_entries; e++)
		q->entry[e].degree = 0;
	for (int i = 0; i < q->n_pairs; i++)
		q->pair[i].used = 0;
	fill_pairs(q, true);
	if (!meet_least(q))
		return false;
	fill_pairs(q, false);
	return true;
}

bool
uplinks_leave_out(struct uplinks *q, struct pair *pair)
{
	int to = q->entry[pair->entry].to;
	pair->left = --pair->used;
	q->degree[0][pair->from]--;
	q->degree[1][to]--;
	q->leaf_degree[0][q->p->leaf[pair->from]]--;
	q->leaf_degree[1][q->p->leaf[to]]--;
	q->entry[pair->entry].degree--;
	return meet_least(q);
}

/* ---- bounds ---- */

/* Hops of each pair of this kind that have no plane yet. */
static void
count_left(struct uplinks *q, HopKind kind)
{
	for (int i = 0; i < q->n_pairs; i++) {
		struct pair *pair = &q->pair[i];
		bool between = q->p->leaf[pair->from] != q->p->leaf[q->entry[pair->entry].to];
		bool counts = kind == ALL_HOPS || between == (kind == BETWEEN_LEAVES);
		pair->left = 0;
		for (int k = pair->first; k < pair->first + pair->n && counts; k++)
			pair->left += q->p->hop[q->hop[k]].out < 0;
	}
}

/* The part of n that this plane has, for its room and that of later ones: rounded down, and up. */
static void
set_part(int n, int room, int64_t later, int *least, int *most)
{
	int64_t all = room + later;
	*least = all > 0 ? (int)((int64_t)n * room / all) : n;
	*most = all > 0 ? (int)(((int64_t)n * room + all - 1) / all) : 0;
	*most = *most < room ? *most : room;
}

/* False: links have no room for all hops between leaves. */
static bool
set_leaf_bounds(struct uplinks *q, int plane, HopKind kind)
{
	bool good = true;
	for (int side = 0; side < 2; side++)
		for (int leaf = 0; leaf < q->p->n_leaves; leaf++) {
			int *least = &q->leaf_least[side][leaf], *most = &q->leaf_most[side][leaf];
			int64_t later = 0;
			*least = 0;
			*most = q->p->n_hops;
			if (kind != BETWEEN_LEAVES)
				continue;
			for (int g = 0; g < q->p->n_planes; g++)
				later += g == plane || q->done[g] ? 0 : *uplinks_leaf_room(q, side, g, leaf);
			set_part(q->leaf_left[side][leaf], *uplinks_leaf_room(q, side, plane, leaf), later, least,
			    most);
			good = good && *least <= *most;
		}
	return good;
}

/* Of each server, hops between leaves that have no plane yet. */
static void
count_between(const struct uplinks *q, int side, int *n)
{
	memset(n, 0, (size_t)q->p->c.n_servers * sizeof *n);
	for (int i = 0; i < q->n_pairs; i++)
		n[side ? q->entry[q->pair[i].entry].to : q->pair[i].from] += q->pair[i].left;
}

static bool
set_server_bounds(struct uplinks *q, int plane, HopKind kind)
{
	bool good = true;
	for (int side = 0; side < 2; side++) {
		if (kind == BETWEEN_LEAVES)
			count_between(q, side, q->degree[side]);
		for (int s = 0; s < q->p->c.n_servers; s++) {
			int later = 0, later_need = 0, slots = *uplinks_at(q, q->slots[side], plane, s);
			int need = side ? *uplinks_at(q, q->need, plane, s) : 0;
			int *least = &q->least[side][s], *most = &q->most[side][s];
			for (int g = 0; g < q->p->n_planes; g++) {
				later += g == plane || q->done[g] ? 0 : *uplinks_at(q, q->slots[side], g, s);
				later_need += g == plane || q->done[g] || !side ? 0 : *uplinks_at(q, q->need, g, s);
			}
			int left = q->left[side][s];
			if (kind == BETWEEN_LEAVES)
				set_part(q->degree[side][s], slots, later, least, most);
			else {
				slots -= q->taken_of[side][s];
				need -= q->taken_of[side][s];
				*most = left - later_need < slots ? left - later_need : slots;
				*least = left - later > need ? left - later : need;
				*least = *least < 0 ? 0 : *least;
			}
			good = good && *least <= *most;
		}
	}
	return good;
}

static bool
set_entry_bounds(struct uplinks *q, int plane, HopKind kind)
{
	bool good = true;
	for (int e = 0; e < q->n_entries; e++) {
		struct entry *entry = &q->entry[e];
		int ranks = q->last ? entry->left : *uplinks_at(q, q->ranks, plane, entry->to), later = 0;
		for (int g = 0; g < q->p->n_planes; g++)
			later += g == plane || q->done[g] ? 0 : *uplinks_at(q, q->ranks, g, entry->to);
		entry->most = entry->left < ranks ? entry->left : ranks;
		entry->least = entry->left > later && kind != BETWEEN_LEAVES ? entry->left - later : 0;
		good = good && entry->least <= entry->most;
	}
	return good;
}

bool
uplinks_set_bounds(struct uplinks *q, int plane, HopKind kind)
{
	count_left(q, kind);
	bool good = set_leaf_bounds(q, plane, kind);
	good = set_server_bounds(q, plane, kind) && good;
	return set_entry_bounds(q, plane, kind) && good;
}
