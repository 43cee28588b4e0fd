/* Leaf switches that have less to the spine than servers below them (rooted.c has the idea): trees in two levels. In
 * each tree hops lead from leaf to leaf, as few as there may be, since these pass the spine, and in each leaf servers
 * send to the others. A leaf sends to others in few trees, as often as its links and its servers have room for, as
 * servers do where there are no leaves: so trees are as shallow as the spine allows.
 *
 *     leaf 0: root, a     leaf 1: b, c     leaf 2: d, e      root -> a -> b, d     b -> c     d -> e
 *
 * A leaf is entered more than once by a tree where its servers cannot send to each other as often as each has to be
 * entered. A server alone at a leaf switch enters itself over it, from one of its ranks to another. */
#include "base/disjoint.h"
#include "plan/pack/cluster/rooted_parts.h"

#include <string.h>

/* ---- which there are ---- */

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

/* Of each leaf, of the links that lead on from its switches on a plane, or there, the lesser sum. */
static Status
sum_capacities(struct rooted *p)
{
	const Cluster *c = &p->c;
	size_t cells = (size_t)p->n_planes * (size_t)p->n_leaves;
	int64_t *sum[2];
	int *leaf_of;
	bool *seen[2];
	TRY(TEMP(p->ctx, leaf_of, c->n_ends));
	TRY(TEMP_EACH(p->ctx, cells, sum[0], sum[1], p->leaf_capacity));
	TRY(TEMP_EACH(p->ctx, p->topo->n_links, seen[0], seen[1]));
	for (int i = 0; i < c->n_uplinks[0]; i++)
		leaf_of[c->uplink[0][i].end] = p->leaf[c->of[c->uplink[0][i].rank]];
	for (int i = 0; i < c->n_ends * c->n_ends; i++) {
		const int end[2] = { i / c->n_ends, i % c->n_ends };
		const struct uplink *way = cluster_between_ends(c, end[0], end[1]);
		for (int side = 0; side < 2 && way->n > 0 && leaf_of[end[0]] != leaf_of[end[1]]; side++) {
			int l = way->link[side ? way->n - 1 : 0], plane = p->plane[end[side]];
			int64_t capacity = seen[side][l] ? 0 : p->topo->link[l].capacity;
			sum[side][plane * p->n_leaves + leaf_of[end[side]]] += capacity;
			seen[side][l] = true;
		}
	}
	for (size_t i = 0; i < cells; i++)
		p->leaf_capacity[i] = sum[0][i] < sum[1][i] ? sum[0][i] : sum[1][i];
	return OK;
}

Status
rooted_find_leaves(struct rooted *p, bool apart)
{
	const Cluster *c = &p->c;
	int *number, *set;
	p->n_leaves = 0;
	TRY(TEMP(p->ctx, p->leaf, c->n_servers));
	TRY(TEMP(p->ctx, p->alone, c->n_servers));
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
	if (p->n_leaves == 1)
		return OK;
	for (int s = 0; s < c->n_servers; s++) {
		int n = 0;
		for (int other = 0; other < c->n_servers; other++)
			n += p->leaf[other] == p->leaf[s];
		p->alone[s] = n == 1;
	}
	TRY(split_planes(p, set));
	return sum_capacities(p);
}

/* ---- hops between leaves ---- */

/* Of each leaf. */
struct leaf {
	int n;			/* servers */
	int64_t sends, entries;	/* that its servers have room for; hops of all trees that enter them */
	int64_t more;		/* of these, those from other leaves, but the first of each tree */
	int64_t outs;		/* hops to other leaves that it has room for */
};

static void
measure_leaf(const struct rooted *p, int at, struct leaf *leaf)
{
	*leaf = (struct leaf){ 0 };
	for (int s = 0; s < p->c.n_servers; s++) {
		if (p->leaf[s] != at)
			continue;
		leaf->n++;
		leaf->sends += p->n_sends[s];
		leaf->entries += p->n_entries[s];
	}
	bool home = at == p->leaf[p->home];
	int64_t inside = leaf->entries - (home ? 0 : p->n_trees);
	/* All trees leave that of the root. */
	int64_t room = leaf->sends - (home ? p->n_trees : 0), links = 0;
	for (int g = 0; g < p->n_planes; g++)
		links += rooted_fitting(p, p->leaf_capacity[(size_t)g * (size_t)p->n_leaves + (size_t)at]);
	leaf->more = inside > room ? inside - (room < 0 ? 0 : room) : 0;
	leaf->outs = leaf->sends - (inside - leaf->more);
	if (links < leaf->outs)
		leaf->outs = links < p->n_trees && p->loose > 1 ? p->n_trees : links;
}

int
rooted_root_sends(const struct rooted *p, int t)
{
	int64_t home = p->n_sends[p->home] - p->n_direct, others = p->n_trees - p->n_direct;
	int other = p->c.n_servers == 2 ? *rooted_at(p, p->entries, t, !p->home) : 0;
	if (p->direct[t] || other > 0)
		return other > 0 ? other : 1;
	return (int)(home / others + (t - p->n_direct < home % others));
}

/* Of the root's leaf in tree t. */
static int64_t
root_outs(const struct rooted *p, int t, const struct leaf *leaf)
{
	int64_t n = leaf->outs * (t + 1) / p->n_trees - leaf->outs * t / p->n_trees, own = rooted_root_sends(p, t);
	return leaf->n > 1 || n < own ? n : own;
}

/* Of one tree. guess: entries of servers are not known yet. */
static int
count_ins(const struct rooted *p, int t, int at, const struct leaf *leaf, bool guess)
{
	bool home = at == p->leaf[p->home];
	int64_t n = !home + leaf->more * (t + 1) / p->n_trees - leaf->more * t / p->n_trees;
	int entries = 0;
	if (guess)
		return (int)n;
	for (int s = 0; s < p->c.n_servers; s++)
		entries += p->leaf[s] == at ? *rooted_at(p, p->entries, t, s) : 0;
	/* What the root's server, if it is alone, does not send to itself. */
	if (home && leaf->n == 1)
		n = entries + root_outs(p, t, leaf) - rooted_root_sends(p, t);
	return n < 0 ? 0 : n < entries ? (int)n : entries;
}

/* Leaves but the root's, in the order of their servers. */
static int
order_leaves(const struct rooted *p, const int *order, int *leaves)
{
	int n = 0;
	for (int i = 0; i < p->c.n_servers - 1; i++) {
		int k = 0;
		while (k < n && leaves[k] != p->leaf[order[i]])
			k++;
		if (k == n && p->leaf[order[i]] != p->leaf[p->home])
			leaves[n++] = p->leaf[order[i]];
	}
	return n;
}

Status
rooted_cross_leaves(struct rooted *p, const int *order, bool guess, bool *good)
{
	struct leaf *leaf;
	int *leaves, n, home = p->leaf[p->home];
	*good = true;
	if (p->n_leaves == 1)
		return OK;
	TRY(TEMP(p->ctx, leaf, p->n_leaves));
	TRY(TEMP(p->ctx, leaves, p->n_leaves));
	n = order_leaves(p, order, leaves);
	for (int i = 0; i < p->n_leaves; i++)
		measure_leaf(p, i, &leaf[i]);
	for (int t = 0; t < p->n_trees && *good; t++) {
		int64_t all = 0, need;
		for (int i = 0; i < p->n_leaves; i++)
			all += *rooted_of_leaf(p, p->ins, t, i) = count_ins(p, t, i, &leaf[i], guess);
		int64_t own = root_outs(p, t, &leaf[home]);
		own = own < all ? own : all;
		*rooted_of_leaf(p, p->outs, t, home) = (int)own;
		need = all - own;
		for (int i = 0; i < n; i++) {
			int64_t most = all - *rooted_of_leaf(p, p->ins, t, leaves[i]);
			most = most < leaf[leaves[i]].outs ? most : leaf[leaves[i]].outs;
			most = most < 0 ? 0 : most < need ? most : need;
			*rooted_of_leaf(p, p->outs, t, leaves[i]) = (int)most;
			leaf[leaves[i]].outs -= most;
			need -= most;
		}
		*good = own > 0 && need == 0;
	}
	return OK;
}
