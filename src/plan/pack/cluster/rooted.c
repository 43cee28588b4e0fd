/* Collectives with a root over clusters of any size: equal servers, each with a switch of its own, and equal uplinks to
 * networks (servers.c). The root breaks the symmetry of servers, so such trees are no images of a few; but a few trees
 * of all ranks are a list that a schedule may have, and no table of all pairs of ranks is needed to choose them.
 *
 * Broadcast: K trees of rate bound / K. An uplink has floor(capacity * K / bound) slots, a server D of them to send and
 * D to receive. Each tree enters each server once, and sends from few servers, over all slots of these (as in
 * SplitStream, Castro et al. 2003): so trees are as shallow as D allows, and no server sends over a slot twice.
 *
 *     2 uplinks, K = 2      tree 0    root -> a -> b, c    b -> d, e        c, d, e only receive
 *                        tree 1    root -> c -> d, e    d -> a, b        a, b, e only receive
 *
 * Which slot a hop takes is an edge colouring of a bipartite graph, of senders and receivers: D colours suffice
 * (Koenig 1916), and the slot is the same at both ends, so hops keep to their rail. In its server a tree goes from the
 * rank of the uplink over the switch to the others, straight if that rank's link has room for it, else over some that
 * pass it on. A reduce is the same backwards.
 *
 * Scatter, gather: of each rank a path, over the uplink of the root's server that has the least to do for its
 * capacity. */
#include "base/limits.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/servers.h"

#include <string.h>

enum { LEAST_TREES = 8, MOST_TREES = 64, TRIES = 3 };

struct plan {
	Ctx *ctx;
	const Topology *topo;
	Frac bound;
	int root, home;		/* its server */
	bool into;		/* towards the root */
	Collective coll;
	Cluster c;
	int n_trees, n_slots;	/* K, D */
	int least_slots;	/* of an uplink: 1: even where that is too much for it */
	int *uplink_of;		/* of each slot: which uplink of its server */
	/* Of a hop, [tree * servers + server that it enters]: the server that it leaves, and its slot. */
	int *parent, *slot;
	int *sent, *received;	/* [server * D + slot]: the hop; -1: none */
	int *path;		/* hops that change their slots */
	/* Of each rank, in hops of a tree over the switch: what it may still send, and entries of trees to come. */
	int64_t *room;
	int *entries;
	int *member;		/* ranks of a server that a tree has reached, in order, and then others */
	int *child;		/* of trees, servers in the order that they are reached */
	Edge *edge;
	int n_edges;
};

/* ---- servers ---- */

/* How many trees of rate bound / n_trees fit that capacity, bytes/s. */
static int64_t
fitting(const struct plan *p, int64_t capacity, int n_trees)
{
	Wide most = (Wide)capacity * n_trees / p->bound.num;
	return most > LIMIT_TREES ? LIMIT_TREES
	    : (int64_t)((Wide)capacity * n_trees * p->bound.den / p->bound.num);
}

/* Slots of a server, uplink by uplink. Returns their number; uplink_of: NULL: that alone. */
static int
list_slots(const struct plan *p, int n_trees, int *uplink_of)
{
	const struct cluster_server *server = &p->c.server[p->home];
	int n = 0;
	for (int i = 0; i < server->n_uplinks[UPLINK_OUT]; i++) {
		const struct uplink *uplink = &p->c.uplink[UPLINK_OUT][server->first_uplink[UPLINK_OUT] + i];
		int64_t slots = fitting(p, uplink->capacity * p->c.unit, n_trees);
		slots = slots < p->least_slots ? p->least_slots : slots > n_trees ? n_trees : slots;
		for (int64_t k = 0; k < slots; k++, n++)
			if (uplink_of)
				uplink_of[n] = i;
	}
	return n;
}

/* ---- who sends ---- */

/* Trees take servers one after the other to send for them, and all of their slots: with the slots of one server left
 * over, the next tree begins. */
static void
choose_parents(struct plan *p)
{
	int n = p->c.n_servers, at = p->home == 0, left = p->n_slots;
	for (int t = 0; t < p->n_trees; t++) {
		int *parent = p->parent + (size_t)t * (size_t)n, n_senders = 0;
		for (int s = 0; s < n; s++)
			parent[s] = -1;
		/* The servers that send, full ones first. slots: of the first and the last. */
		int first_slots = left, last_slots = 0;
		for (int need = n - 2; need > 0;) {
			int take = left < need ? left : need;
			p->child[n_senders++] = at;
			last_slots = take;
			need -= take;
			left -= take;
			if (left > 0)
				continue;
			left = p->n_slots;
			for (at++; at == p->home;)
				at++;
		}
		if (n_senders > 1 && first_slots < last_slots) {
			int first = p->child[0], slots = first_slots;
			p->child[0] = p->child[n_senders - 1];
			p->child[n_senders - 1] = first;
			first_slots = last_slots;
			last_slots = slots;
		}
		int n_children = n_senders;
		for (int i = 0; i < n_senders; i++)
			parent[p->child[i]] = p->home;
		for (int s = 0; s < n; s++)
			if (s != p->home && parent[s] < 0)
				p->child[n_children++] = s;
		for (int i = 1, sender = 0, used = 0; i < n_children; i++) {
			int slots = sender == 0 ? first_slots : sender == n_senders - 1 ? last_slots : p->n_slots;
			if (used == slots) {
				sender++;
				used = 0;
			}
			parent[p->child[i]] = p->child[sender];
			used++;
		}
	}
}

/* ---- slots ---- */

static void
put(struct plan *p, int hop, int slot)
{
	int s = hop % p->c.n_servers;
	p->slot[hop] = slot;
	p->sent[(size_t)p->parent[hop] * (size_t)p->n_slots + (size_t)slot] = hop;
	p->received[(size_t)s * (size_t)p->n_slots + (size_t)slot] = hop;
}

static void
drop(struct plan *p, int hop)
{
	int s = hop % p->c.n_servers;
	p->sent[(size_t)p->parent[hop] * (size_t)p->n_slots + (size_t)p->slot[hop]] = -1;
	p->received[(size_t)s * (size_t)p->n_slots + (size_t)p->slot[hop]] = -1;
}

static int
free_slot(const struct plan *p, const int *hop)
{
	int i = 0;
	while (i < p->n_slots && hop[i] >= 0)
		i++;
	return i;
}

/* Slot a is free at the sender of a hop, b at its receiver: hops that alternate between them, from the receiver on,
 * change places. They do not come to the sender, since they would by a. */
static void
free_at_receiver(struct plan *p, int receiver, int a, int b)
{
	int n = 0, hop = p->received[(size_t)receiver * (size_t)p->n_slots + (size_t)a];
	for (bool by_a = true; hop >= 0; by_a = !by_a) {
		p->path[n++] = hop;
		hop = by_a ? p->sent[(size_t)p->parent[hop] * (size_t)p->n_slots + (size_t)b]
		    : p->received[(size_t)(hop % p->c.n_servers) * (size_t)p->n_slots + (size_t)a];
	}
	for (int i = 0; i < n; i++)
		drop(p, p->path[i]);
	for (int i = 0; i < n; i++)
		put(p, p->path[i], i % 2 == 0 ? b : a);
}

static void
choose_slot(struct plan *p, int hop)
{
	int s = hop % p->c.n_servers;
	const int *sent = p->sent + (size_t)p->parent[hop] * (size_t)p->n_slots;
	const int *received = p->received + (size_t)s * (size_t)p->n_slots;
	for (int i = 0; i < p->n_slots; i++) {
		int slot = (s + i) % p->n_slots;
		if (sent[slot] < 0 && received[slot] < 0) {
			put(p, hop, slot);
			return;
		}
	}
	int a = free_slot(p, sent), b = free_slot(p, received);
	free_at_receiver(p, s, a, b);
	put(p, hop, a);
}

static void
choose_slots(struct plan *p)
{
	size_t n = (size_t)p->c.n_servers * (size_t)p->n_slots;
	memset(p->sent, -1, n * sizeof *p->sent);
	memset(p->received, -1, n * sizeof *p->received);
	for (int hop = 0; hop < p->n_trees * p->c.n_servers; hop++)
		if (p->parent[hop] >= 0)
			choose_slot(p, hop);
}

/* ---- inside servers ---- */

static const struct uplink *
uplink_at(const struct plan *p, int s, int slot)
{
	return &p->c.uplink[UPLINK_OUT][p->c.server[s].first_uplink[UPLINK_OUT] + p->uplink_of[slot]];
}

static int
entry_of(const struct plan *p, int t, int s)
{
	return s == p->home ? p->root
	    : uplink_at(p, s, p->slot[(size_t)t * (size_t)p->c.n_servers + (size_t)s])->rank;
}

static void
measure_rooms(struct plan *p)
{
	memset(p->entries, 0, (size_t)p->topo->n_ranks * sizeof *p->entries);
	for (int v = 0; v < p->topo->n_ranks; v++) {
		int l = p->into ? p->c.down[v] : p->c.up[v];
		p->room[v] = l < 0 ? 0 : fitting(p, p->topo->link[l].capacity, p->n_trees);
	}
	for (int t = 0; t < p->n_trees; t++)
		for (int s = 0; s < p->c.n_servers; s++)
			p->entries[entry_of(p, t, s)]++;
}

/* But for one hop of each tree that is still to enter there. */
static int64_t
free_room(const struct plan *p, int rank)
{
	return p->room[rank] - p->entries[rank];
}

static Status
add_near(struct plan *p, int from, int to)
{
	p->room[from]--;
	return cluster_near_edge(&p->c, p->into ? to : from, p->into ? from : to, &p->edge[p->n_edges++]);
}

/* The first of n ranks that has room; where none has, the one that is overloaded least. */
static int
choose_sender(const struct plan *p, const int *member, int n)
{
	int best = 0;
	for (int i = 0; i < n && free_room(p, member[best]) <= 0; i++)
		if (free_room(p, member[i]) > free_room(p, member[best]))
			best = i;
	return best;
}

/* The rank that the tree enters comes first; then those that can pass it on, if that rank has no room for all. */
static void
order_members(struct plan *p, const struct cluster_server *server, int entry)
{
	int *member = p->member, n = server->n;
	memcpy(member, p->c.rank + server->first, (size_t)n * sizeof *member);
	for (int i = 0; i < n; i++)
		if (member[i] == entry) {
			member[i] = member[0];
			member[0] = entry;
		}
	if (free_room(p, entry) >= n - 1)
		return;
	for (int i = 2; i < n; i++)
		for (int k = i; k > 1 && free_room(p, member[k]) > free_room(p, member[k - 1]); k--) {
			int other = member[k];
			member[k] = member[k - 1];
			member[k - 1] = other;
		}
}

/* From the rank that the tree enters to all others of the server. */
static Status
spread_in_server(struct plan *p, int s, int entry)
{
	const struct cluster_server *server = &p->c.server[s];
	p->entries[entry]--;
	order_members(p, server, entry);
	for (int i = 1; i < server->n; i++)
		TRY(add_near(p, p->member[choose_sender(p, p->member, i)], p->member[i]));
	return OK;
}

/* ---- trees ---- */

static Status
add_far(struct plan *p, int hop, int s)
{
	int from = p->into ? s : p->parent[hop], to = p->into ? p->parent[hop] : s, uplink = p->uplink_of[p->slot[hop]];
	return cluster_far_edge(&p->c, p->c.server[from].first_uplink[UPLINK_OUT] + uplink,
	    p->c.server[to].first_uplink[UPLINK_IN] + uplink, &p->edge[p->n_edges++]);
}

static Status
make_trees(struct plan *p, Packing *pack)
{
	int n = p->c.n_servers;
	measure_rooms(p);
	for (int t = 0; t < p->n_trees; t++) {
		p->n_edges = 0;
		for (int s = 0; s < n; s++) {
			if (s != p->home)
				TRY(add_far(p, t * n + s, s));
			TRY(spread_in_server(p, s, entry_of(p, t, s)));
		}
		pack->weight[t] = 1;
		TRY(tree_arrange(p->ctx, p->topo->n_ranks, p->coll, p->root, p->edge, NULL, p->n_edges,
		    &pack->tree[t]));
	}
	return OK;
}

/* Trees at the rate of the bound, or as fast as they fit. */
static Status
set_unit(struct plan *p, int each, Packing *pack)
{
	int64_t *load;
	Frac exact;
	TRY(TEMP(p->ctx, load, p->topo->n_links));
	if (!frac_div(p->bound, (Frac){ each, 1 }, &exact) || !pack_widest_unit(p->topo, pack, load, &pack->unit))
		return fail(p->ctx, LIMIT, "%s: rates need more than 64 bits", p->topo->name);
	if (frac_cmp(pack->unit, exact) > 0)
		pack->unit = exact;
	return OK;
}

static Status
plan_spanning(struct plan *p, int n_trees, Packing **out)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	size_t n = (size_t)p->c.n_servers;
	p->n_trees = n_trees;
	p->n_slots = list_slots(p, n_trees, NULL);
	size_t hops = n * (size_t)n_trees, slots = n * (size_t)p->n_slots;
	TRY(TEMP(p->ctx, p->uplink_of, p->n_slots));
	list_slots(p, n_trees, p->uplink_of);
	TRY(TEMP(p->ctx, p->parent, hops));
	TRY(TEMP(p->ctx, p->slot, hops));
	TRY(TEMP(p->ctx, p->path, hops));
	TRY(TEMP(p->ctx, p->sent, slots));
	TRY(TEMP(p->ctx, p->received, slots));
	TRY(TEMP(p->ctx, p->child, n));
	TRY(TEMP(p->ctx, p->room, p->topo->n_ranks));
	TRY(TEMP(p->ctx, p->entries, p->topo->n_ranks));
	TRY(TEMP(p->ctx, p->member, p->topo->n_ranks));
	TRY(TEMP(p->ctx, p->edge, p->topo->n_ranks));
	choose_parents(p);
	choose_slots(p);
	TRY(pack_new(p->ctx, n_trees, false, out));
	(*out)->n_trees = n_trees;
	TRY(make_trees(p, *out));
	TRY(set_unit(p, n_trees, *out));
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

static bool
may_have(const struct plan *p, int n_trees)
{
	return n_trees <= LIMIT_TREE_EDGES / (p->topo->n_ranks - 1) && list_slots(p, n_trees, NULL) >= n_trees;
}

/* The first numbers of trees for which each server has as many slots, until the rate is the bound. */
static Status
plan_best(struct plan *p, Packing **out)
{
	int uplinks = p->c.server[p->home].n_uplinks[UPLINK_OUT];
	int most = uplinks > MOST_TREES ? uplinks : MOST_TREES, tries = 0;
	Frac rate, best = FRAC_ZERO;
	for (p->least_slots = 0; p->least_slots < 2 && tries == 0; p->least_slots++)
		for (int n = LEAST_TREES; n <= most && tries < TRIES && frac_cmp(best, p->bound) < 0; n++) {
			Packing *pack;
			if (!may_have(p, n) || (tries > 0 && out_of_time(p->ctx, (int64_t)n * p->topo->n_ranks * 100)))
				continue;
			tries++;
			TRY(plan_spanning(p, n, &pack));
			if (!pack_rate(pack, p->coll, p->topo->n_ranks, &rate) || frac_cmp(rate, best) <= 0)
				continue;
			best = rate;
			*out = pack;
		}
	return OK;
}

/* ---- paths ---- */

/* Hops of a path from the root: to the rank of an uplink, to that of the other server, to the rank. */
static Status
make_path(struct plan *p, int rank, int uplink, Tree *out)
{
	const Cluster *c = &p->c;
	int s = c->of[rank], n = 0, at = p->root;
	Edge *edge;
	TRY(NEW(p->ctx, edge, 3));
	if (s != p->home) {
		int ours = c->server[p->home].first_uplink[UPLINK_OUT] + uplink;
		int theirs = c->server[s].first_uplink[UPLINK_IN] + uplink;
		int first = c->uplink[UPLINK_OUT][ours].rank;
		if (first != p->root)
			TRY(cluster_near_edge(c, p->into ? first : p->root, p->into ? p->root : first, &edge[n++]));
		TRY(cluster_far_edge(c, p->into ? theirs : ours, p->into ? ours : theirs, &edge[n++]));
		at = c->uplink[UPLINK_IN][theirs].rank;
	}
	if (at != rank)
		TRY(cluster_near_edge(c, p->into ? rank : at, p->into ? at : rank, &edge[n++]));
	for (int i = 0; i < n / 2 && p->into; i++) {
		Edge other = edge[i];
		edge[i] = edge[n - 1 - i];
		edge[n - 1 - i] = other;
	}
	*out = p->into ? (Tree){ .root = p->root, .n_up = n, .up = edge }
	    : (Tree){ .root = p->root, .n_down = n, .down = edge };
	return OK;
}

/* The uplink with the least paths for its capacity, and of those the rank's own. */
static int
idlest_uplink(const struct plan *p, const int64_t *paths, int rank)
{
	const struct cluster_server *home = &p->c.server[p->home], *server = &p->c.server[p->c.of[rank]];
	const struct uplink *ours = p->c.uplink[UPLINK_OUT] + home->first_uplink[UPLINK_OUT];
	int best = 0;
	for (int i = 1; i < home->n_uplinks[UPLINK_OUT]; i++) {
		int order = ratio_cmp(paths[i] + 1, ours[i].capacity, paths[best] + 1, ours[best].capacity);
		int there = server->first_uplink[UPLINK_IN] + i;
		if (order < 0 || (order == 0 && p->c.uplink[UPLINK_IN][there].rank == rank))
			best = i;
	}
	return best;
}

static Status
plan_paths(struct plan *p, Packing **out)
{
	int n = p->topo->n_ranks;
	int64_t *paths;
	TRY(TEMP(p->ctx, paths, p->c.server[p->home].n_uplinks[UPLINK_OUT]));
	TRY(pack_new(p->ctx, n - 1, false, out));
	(*out)->n_trees = n - 1;
	TRY(NEW(p->ctx, (*out)->demand, n - 1));
	for (int t = 0; t < n - 1; t++) {
		int rank = t + (t >= p->root), uplink = 0;
		if (p->c.of[rank] != p->home)
			paths[uplink = idlest_uplink(p, paths, rank)]++;
		(*out)->demand[t] = t;
		(*out)->weight[t] = 1;
		TRY(make_path(p, rank, uplink, &(*out)->tree[t]));
	}
	return set_unit(p, collective_shares(p->coll, n), *out);
}

static Status
read_equal(struct plan *p, bool *equal)
{
	*equal = collective_rooted(p->coll) && !p->topo->route && !tree_shares(p->topo, p->coll);
	if (*equal)
		TRY(cluster_read(p->ctx, p->topo, &p->c, equal));
	*equal = *equal && p->c.n_types == 1 && cluster_sides_agree(&p->c);
	return OK;
}

Status
pack_rooted_serves(Ctx *ctx, const Topology *topo, Collective coll, bool *serves)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct plan p = { .ctx = ctx, .topo = topo, .coll = coll };
	TRY(read_equal(&p, serves));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
pack_rooted(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct plan p = { .ctx = ctx, .topo = topo, .coll = coll, .root = root, .bound = bound->rate,
		.into = coll == REDUCE || coll == GATHER };
	bool equal;
	*out = NULL;
	TRY(read_equal(&p, &equal));
	if (!equal || bound->rate.num <= 0)
		return OK;
	p.home = p.c.of[root];
	TRY(collective_has_blocks(coll) ? plan_paths(&p, out) : plan_best(&p, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
