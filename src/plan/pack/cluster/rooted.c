/* Collectives with a root over clusters of any size: servers with a switch each, and uplinks to networks (servers.c).
 * The root breaks the symmetry of servers, so such trees are no images of a few; but a few trees of all ranks are a
 * list that a schedule may have, and no table of all pairs of ranks is needed to choose them.
 *
 * Broadcast: K trees of rate bound / K. An uplink has floor(capacity * K / bound) slots, to send and to receive. Few
 * trees are tried first. Where these miss the bound, K is the least number for which capacity * K / bound is an
 * integer on every link: with 720 GB/s over a switch, 50 over an uplink and a bound of 770, K = 77, of 72 and 5 slots.
 * Each tree enters each server once, and more often where the switch has no room to bring it to all ranks: where both
 * limit the rate, no link is idle. A tree is sent from few servers, over all slots of these (as in SplitStream, Castro
 * et al. 2003): so trees are as shallow as the slots allow (rooted_hops.c).
 *
 *     2 uplinks, K = 2      tree 0    root -> a -> b, c    b -> d, e        c, d, e only receive
 *                        tree 1    root -> c -> d, e    d -> a, b        a, b, e only receive
 *
 * Both ends of a hop are on one rail, or on rails that are joined: an edge colouring of a bipartite graph, of senders
 * and receivers, which equal servers always have (Koenig 1916); where some lack a rail it is looked for by flows
 * (rooted_uplinks.c, rooted_flow.c). In its server a tree goes from the rank of the uplink over the switch to the
 * others, straight if that rank's link has room for it, else over some that pass it on (rooted_trees.c). A reduce is
 * the same backwards.
 *
 * Where ranks share a NIC, as that of a lost one, each has a whole number of its slots, for a K of which there are
 * enough.
 *
 * Where servers are at leaf switches that have less to the spine, trees have two levels, of leaves and of the servers
 * of each (rooted_leaves.c), and hops keep to a rail, as others pass the spine.
 *
 * Scatter, gather, over equal servers: of each rank a path, over the uplink of the root's server that has the least to
 * do for its capacity. */
#include "base/limits.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/rooted_parts.h"

#include <string.h>

enum {
	LEAST_TREES = 8,
	MOST_TREES = 64,
	MOST_WHOLE = 256,	/* where each link has an integral number of slots */
	TRIES = 3,
	TURNS = 16,
	MOST_WORK = 1 << 29	/* about a second */
};

/* Trees at the rate of the bound, or as fast as they fit. */
static Status
set_unit(const struct rooted *p, int each, Packing *pack)
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

/* ---- trees ---- */

/* *out: NULL: hops or their uplinks were not found. */
static Status
try_trees(struct rooted *p, Packing **out)
{
	Ctx *ctx = p->ctx;
	int n = p->topo->n_ranks;
	bool good;
	*out = NULL;
	p->overload = p->turn >= TURNS / 2;
	TRY(TEMP_EACH(ctx, p->c.n_uplinks[0], p->slots, p->need));
	TRY(TEMP(ctx, p->room, n));
	TRY(TEMP_EACH(ctx, p->c.n_servers, p->n_entries, p->n_sends));
	TRY(TEMP(ctx, p->direct, p->n_trees));
	p->n_hops = 0;
	TRY(rooted_list_hops(p, &good));
	if (good)
		TRY(rooted_choose_uplinks(p, &good));
	if (!good)
		return OK;
	TRY(pack_new(ctx, (size_t)p->n_trees, false, out));
	(*out)->n_trees = p->n_trees;
	TRY(rooted_make_trees(p, *out));
	return set_unit(p, p->n_trees, *out);
}

/* The least multiple of a number of trees for which a link has an integral number of slots; above MOST_WHOLE: too
 * many. */
static int64_t
make_whole(const struct rooted *p, int64_t trees, int64_t capacity)
{
	Frac part;
	if (!frac_div((Frac){ capacity, 1 }, p->bound, &part) || trees > MOST_WHOLE || part.den > MOST_WHOLE)
		return MOST_WHOLE + 1;
	return part.num >= part.den ? trees : trees / gcd64(trees, part.den) * part.den;
}

/* The fewest trees for which all uplinks and links between ranks and switches have integral numbers of slots; 0: too
 * many. */
static int64_t
count_whole(const struct rooted *p)
{
	const Cluster *c = &p->c;
	const int *near = p->into ? c->down : c->up;
	int64_t trees = 1;
	for (int w = 0; w < c->n_uplinks[0]; w++)
		trees = make_whole(p, trees, c->uplink[0][w].capacity * c->unit);
	for (int v = 0; v < p->topo->n_ranks; v++)
		trees = near[v] < 0 ? trees : make_whole(p, trees, p->topo->link[near[v]].capacity);
	return trees > MOST_WHOLE ? 0 : trees;
}

/* The first numbers of trees for which there are slots, and the one with integral numbers of these, until the rate is
 * the bound. */
static Status
plan_best(struct rooted *p, Packing **out)
{
	Ctx *ctx = p->ctx;
	int uplinks = p->c.server[p->home].n_uplinks[UPLINK_OUT];
	int most = uplinks > MOST_TREES ? uplinks : MOST_TREES, tries = 0;
	int64_t whole = count_whole(p), last = whole > most ? whole : most;
	Frac rate, best = FRAC_ZERO;
	for (int loose = 0; loose < 3 && tries == 0; loose++) {
		p->loose = loose;
		p->work = MOST_WORK;
		for (p->n_trees = LEAST_TREES; p->n_trees <= last; p->n_trees++) {
			Packing *pack = NULL;
			if ((tries >= TRIES || p->n_trees > most) && p->n_trees != whole)
				continue;
			if (frac_cmp(best, p->bound) >= 0 || p->n_trees > LIMIT_TREE_EDGES / (p->topo->n_ranks - 1)
			    || (tries > 0 && out_of_time(ctx, (int64_t)p->n_trees * p->topo->n_ranks * 100)))
				break;
			for (p->turn = 0; p->turn < TURNS && !pack; p->turn++) {
				ArenaMark mark = arena_mark(&ctx->scratch);
				TRY(try_trees(p, &pack));
				arena_release(&ctx->scratch, mark);
			}
			tries += pack != NULL;
			if (!pack || !pack_rate(pack, p->coll, p->topo->n_ranks, &rate) || frac_cmp(rate, best) <= 0)
				continue;
			best = rate;
			*out = pack;
		}
	}
	return OK;
}

/* Does a link to a network have several uplinks of a server? */
static bool
ranks_share_nics(const Cluster *c)
{
	for (int s = 0; s < c->n_servers; s++) {
		const int first = c->server[s].first_uplink[0];
		for (int a = first; a < first + c->server[s].n_uplinks[0]; a++)
			for (int b = first; b < a; b++)
				if (cluster_share_link(c, a, b))
					return true;
	}
	return false;
}

/* *good: this is such a cluster; of a scatter or gather, of equal servers. leaves: leaf switches of one server are
 * networks. */
static Status
read_cluster(struct rooted *p, bool leaves, bool *good)
{
	*good = collective_rooted(p->coll) && !p->topo->route && !tree_shares(p->topo, p->coll);
	if (*good)
		TRY((leaves ? cluster_read_leaves : cluster_read)(p->ctx, p->topo, &p->c, good));
	*good = *good && cluster_sides_agree(&p->c) && (p->c.n_types == 1 || !collective_has_blocks(p->coll));
	if (*good)
		TRY(TEMP(p->ctx, p->plane, p->c.n_networks));
	*good = *good && cluster_find_planes(&p->c, p->plane, &p->n_planes);
	return OK;
}

/* Uplinks of whole slots. *good: by which each tree enters each server, and leaves that of the root. */
static Status
round_uplinks(struct rooted *p, bool *good)
{
	Frac slot;
	*good = frac_div(p->bound, (Frac){ p->n_trees, 1 }, &slot);
	if (*good)
		TRY(cluster_round_uplinks(&p->c, slot, good));
	*good = *good && cluster_sides_agree(&p->c);
	for (int s = 0; s < p->c.n_servers && *good; s++) {
		const struct uplink *uplink = p->c.uplink[0] + p->c.server[s].first_uplink[0];
		int64_t slots = 0;
		for (int i = 0; i < p->c.server[s].n_uplinks[0]; i++)
			slots += rooted_fitting(p, uplink[i].capacity * p->c.unit);
		*good = slots >= p->n_trees;
	}
	return OK;
}

/* Where ranks share NICs, as those of lost ones: uplinks by whole slots, for the first numbers of trees of which each
 * server has enough. */
static Status
plan_rounded(struct rooted *p, Packing **out)
{
	Frac rate = FRAC_ZERO, more;
	bool good;
	p->loose = 0;
	p->work = MOST_WORK;
	for (int tries = 0, n = LEAST_TREES; n <= MOST_TREES && tries < TRIES && frac_cmp(rate, p->bound) < 0; n++) {
		Packing *pack = NULL;
		p->n_trees = n;
		TRY(round_uplinks(p, &good));
		tries += good;
		for (p->turn = 0; good && p->turn < TURNS && !pack; p->turn++)
			TRY(try_trees(p, &pack));
		if (!pack || !pack_rate(pack, p->coll, p->topo->n_ranks, &more) || frac_cmp(more, rate) <= 0)
			continue;
		rate = more;
		*out = pack;
	}
	return OK;
}

/* Is it at the bound? rate: its own, or 0 of none. */
static bool
reaches(const struct rooted *p, const Packing *pack, Frac *rate)
{
	*rate = FRAC_ZERO;
	return pack && (!pack_rate(pack, p->coll, p->topo->n_ranks, rate) || frac_cmp(*rate, p->bound) >= 0);
}

/* Where leaf switches have less than such trees need of them, trees in two levels. Where ranks share NICs, both
 * again. */
static Status
plan_leaves(struct rooted *p, Packing **out)
{
	bool shared = ranks_share_nics(&p->c), good = true;
	Packing *other;
	Frac rate, more;
	for (int rounded = 0; rounded <= shared; rounded++)
		for (int apart = 0; apart < 2; apart++) {
			if (reaches(p, *out, &rate))
				return OK;
			if (apart || rounded)
				TRY(read_cluster(p, apart, &good));
			if (!good)
				break;
			TRY(rooted_find_leaves(p, apart));
			if (apart && p->n_leaves < 2)
				break;
			other = NULL;
			TRY(rounded ? plan_rounded(p, &other) : plan_best(p, &other));
			reaches(p, other, &more);
			*out = frac_cmp(more, rate) > 0 ? other : *out;
		}
	return OK;
}

/* ---- paths ---- */

/* Hops of a path from the root: to the rank of an uplink, to that of the other server, to the rank. */
static Status
make_path(struct rooted *p, int rank, int uplink, Tree *out)
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
idlest_uplink(const struct rooted *p, const int64_t *paths, int rank)
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
plan_paths(struct rooted *p, Packing **out)
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

Status
pack_rooted_serves(Ctx *ctx, const Topology *topo, Collective coll, bool *serves)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct rooted p = { .ctx = ctx, .topo = topo, .coll = coll };
	TRY(read_cluster(&p, false, serves));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
pack_rooted(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct rooted p = { .ctx = ctx, .topo = topo, .coll = coll, .root = root, .bound = bound->rate,
		.into = coll == REDUCE || coll == GATHER };
	bool good;
	*out = NULL;
	TRY(read_cluster(&p, false, &good));
	if (!good || bound->rate.num <= 0)
		return OK;
	p.home = p.c.of[root];
	TRY(collective_has_blocks(coll) ? plan_paths(&p, out) : plan_leaves(&p, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
