/* Three-phase trees (Blink 3.5, figure 10), for several servers: within a server data moves over links of that server
 * only, and between servers in one hop.
 *
 *     server 0      w <- a <- b        1. each server reduces to a local root, over links of its own
 *                  ^ ^                 2. one hop from each local root to w, the global root, and one hop back
 *                 /   \                3. each local root broadcasts, over links of its own
 *     server 1   v     v'  server 2
 *
 * Which rank is a server's local root differs from tree to tree, as the linear program chooses, so that all NICs are
 * used. The search for the cheapest tree separates: for each w every other server chooses its v independently,
 *
 *     local(w) + sum over other servers of min over v of  local(v) + hop(v, w) + hop(w, v)
 *
 * where local(v) is the cost of the cheapest arborescence into v over links of its server, and of the cheapest one
 * out of it. A path crosses one server, takes one hop, and crosses the other server. Each server is a subproblem with
 * a search of its own (servers.c); of each orbit of ranks only one is searched from.
 *
 * A broadcast from r has an arborescence of r's server, out of r. Any rank w of it sends to the local roots of the
 * other servers; or w sends to a local root v of one other server, and v to those of the rest:
 *
 *     r's server           other servers         r's server     one other server       the rest
 *     r -> a -> w ------>  v -> ...              r -> a -> w -> v -> ... ------------> v' -> ...
 *                 \---->  v' -> ...                             \------------------>  v'' -> ...
 *
 * With n servers, the NICs of the first send everything n - 1 times in the first case, and once in the second: then
 * each other server forwards a share. rest(v) is the cost of the branches from v to all servers but its own. It
 * depends on r only through the server that v may skip, so it is found once for each orbit of v,
 *
 *     rest(w)      or      min over w of hop(w, v)  +  local(v)  +  rest(v)  -  the branch from v to r's server
 *
 * and a demand takes as many steps as there are pairs of a rank with one of r's server. A reduction is the same with
 * all hops reversed. */
#include "graph/graph.h"
#include "plan/family.h"
#include "plan/servers.h"

#include <string.h>

enum { UNKNOWN = -2 };

/* What a rank's server looks like from it under the current prices; each found when it is first needed. Hops are
 * those of the server's subproblem. Arrays by direction: [false] from the rank, [true] into it. */
struct view {
	int64_t cost[2];	/* of the cheapest arborescence in the server; -1: none; UNKNOWN */
	int *tree[2];		/* its hops, one for each rank of the server */
	int64_t rest[2];	/* of the cheapest branches to (from) the other servers it has hops to; UNKNOWN */
	int n_disconnected[2];	/* servers that it has no hop to, or from */
	bool has_paths;
	int64_t *distance;	/* of shortest paths to the ranks of the server; -1: none */
	int *path;
};

struct threephase {
	struct servers servers;
	int *representative;	/* of a rank: the first of its orbit */
	struct view *view;	/* of a rank */
	int64_t *price;		/* work space */
	int *pick, *best;	/* of each server: its local root, the current one and that of the least cost */
};

/* The server of rank v. */
static struct subproblem *
server_of(const struct threephase *t, int v)
{
	return &t->servers.subproblem[t->servers.of[v]];
}

static int
ranks_of(const struct threephase *t, int s)
{
	return t->servers.subproblem[s].topo.n_ranks;
}

/* ---- views ---- */

static int64_t
view_cost(Cheapest *c, int v, bool into)
{
	struct threephase *t = c->family_state;
	struct view *view = &t->view[v];
	if (view->cost[into] == UNKNOWN)
		view->cost[into] = search_arborescence(&server_of(t, v)->search, t->servers.place[v], into,
		    view->tree[into]);
	return view->cost[into];
}

/* The ranks of an orbit have the same cost. */
static int64_t
local_cost(Cheapest *c, int v, bool into)
{
	const struct threephase *t = c->family_state;
	return view_cost(c, t->representative[v], into);
}

static const struct view *
path_view(Cheapest *c, int v)
{
	struct threephase *t = c->family_state;
	struct view *view = &t->view[v];
	if (!view->has_paths)
		search_shortest_paths(&server_of(t, v)->search, t->servers.place[v], false, view->distance, view->path);
	view->has_paths = true;
	return view;
}

static void
threephase_price(Cheapest *c, const int64_t *price)
{
	struct threephase *t = c->family_state;
	for (int s = 0; s < t->servers.n; s++) {
		struct subproblem *sub = &t->servers.subproblem[s];
		for (int l = 0; l < sub->topo.n_links; l++)
			t->price[l] = price[sub->link[l]];
		search_price(&sub->search, t->price);
	}
	for (int v = 0; v < c->topo->n_ranks; v++) {
		t->view[v].cost[false] = t->view[v].cost[true] = UNKNOWN;
		t->view[v].rest[false] = t->view[v].rest[true] = UNKNOWN;
		t->view[v].has_paths = false;
	}
}

/* ---- trees ---- */

static int64_t
cross_cost(const Cheapest *c, int src, int dst)
{
	int hop = search_cheapest_hop(&c->search, src, dst);
	return hop < 0 ? -1 : c->search.hop[hop].cost;
}

/* out: the cost of the branch from w to v and on to the ranks of v's server; into: from them to v and on to w; the
 * sum of both where both are wanted. -1: v and w have no hop, or v is disconnected from a rank of its server. */
static int64_t
branch_cost(Cheapest *c, int w, int v, bool out, bool into)
{
	int64_t cost = 0, hop, local;
	for (int up = 0; up < 2; up++) {
		if (up ? !into : !out)
			continue;
		hop = up ? cross_cost(c, v, w) : cross_cost(c, w, v);
		local = hop < 0 ? -1 : local_cost(c, v, up);
		if (local < 0)
			return -1;
		cost += hop + local;
	}
	return cost;
}

/* Server s chooses its local root for w, in t->pick[s]. -1: no rank of it can. */
static int64_t
server_cost(Cheapest *c, int w, int s, bool out, bool into)
{
	struct threephase *t = c->family_state;
	int64_t least = -1;
	for (int i = 0; i < ranks_of(t, s); i++) {
		int64_t cost = branch_cost(c, w, t->servers.subproblem[s].rank[i], out, into);
		if (cost < 0 || (least >= 0 && cost >= least))
			continue;
		least = cost;
		t->pick[s] = t->servers.subproblem[s].rank[i];
	}
	return least;
}

/* All servers but w's choose; stops above `most`, if that is not below 0. -1: one of them, *lost, has none. */
static int64_t
branches_cost(Cheapest *c, int w, int64_t most, int *lost)
{
	struct threephase *t = c->family_state;
	int64_t sum = 0;
	for (int s = 0; s < t->servers.n && (most < 0 || sum < most); s++) {
		int64_t least = s == t->servers.of[w] ? 0 : server_cost(c, w, s, true, true);
		if (least < 0) {
			*lost = s;
			return -1;
		}
		sum += least;
	}
	return sum;
}

/* The arborescence of v's server, as hops of its ranks. */
static void
put_local(Cheapest *c, int v, bool into, int *hop)
{
	struct threephase *t = c->family_state;
	const struct subproblem *sub = server_of(t, v);
	view_cost(c, v, into);
	for (int i = 0; i < sub->topo.n_ranks; i++)
		if (i != t->servers.place[v])
			hop[sub->rank[i]] = sub->first_hop + t->view[v].tree[into][i];
}

static void
put_branch(Cheapest *c, int w, int v, bool into, int *hop)
{
	put_local(c, v, into, hop);
	hop[v] = into ? search_cheapest_hop(&c->search, v, w) : search_cheapest_hop(&c->search, w, v);
}

static void
put_branches(Cheapest *c, int w, bool into, int *hop)
{
	struct threephase *t = c->family_state;
	for (int s = 0; s < t->servers.n; s++)
		if (s != t->servers.of[w])
			put_branch(c, w, t->best[s], into, hop);
}

static Status
no_tree(Cheapest *c, int w, int lost)
{
	const struct threephase *t = c->family_state;
	const Topology *topo = c->topo, *own = &t->servers.subproblem[lost].topo;
	TRY(servers_check(c, &t->servers));
	return fail(c->ctx, INFEASIBLE,
	    "%s: %s: no hop between %s of %s and any GPU of %s: want servers that are one hop apart",
	    topo->name, c->family->trees, topo->vertex[w].id, topo->node[topo->vertex[w].node],
	    topo->node[own->vertex[0].node]);
}

/* ---- from one rank, or to one ---- */

/* The view of the representative of v. */
static const struct view *
rest_view(Cheapest *c, int v, bool into)
{
	struct threephase *t = c->family_state;
	struct view *view = &t->view[t->representative[v]];
	if (view->rest[into] != UNKNOWN)
		return view;
	view->rest[into] = view->n_disconnected[into] = 0;
	for (int s = 0; s < t->servers.n; s++) {
		int64_t cost = s == t->servers.of[t->representative[v]] ? 0
		    : server_cost(c, t->representative[v], s, !into, into);
		view->rest[into] += cost < 0 ? 0 : cost;
		view->n_disconnected[into] += cost < 0;
	}
	return view;
}

/* Branches from v to all servers but its own and the first. -1: it has no hop to one of them. */
static int64_t
relay_cost(Cheapest *c, int v, int first, bool into)
{
	const struct view *view = rest_view(c, v, into);
	int64_t back = view->n_disconnected[into] > 1 ? -1 : server_cost(c, v, first, !into, into);
	if (view->n_disconnected[into] > (back < 0))
		return -1;
	return view->rest[into] - (back < 0 ? 0 : back);
}

/* How a broadcast leaves the first server, r's: its rank w sends to all others (v = -1), or to v only, which sends to
 * the rest. */
struct route {
	int w, v;
	int64_t cost;		/* -1: none yet */
};

static void
better_route(struct route *best, int w, int v, int64_t cost)
{
	if (best->cost < 0 || cost < best->cost)
		*best = (struct route){ w, v, cost };
}

static void
try_relay(Cheapest *c, int r, int v, bool into, struct route *best)
{
	struct threephase *t = c->family_state;
	const struct subproblem *first = server_of(t, r);
	int64_t rest = relay_cost(c, v, t->servers.of[r], into);
	for (int i = -1; i < first->topo.n_ranks && rest >= 0; i++) {
		int w = i < 0 ? r : first->rank[i];
		int64_t branch = branch_cost(c, w, v, !into, into);
		if (branch >= 0)
			better_route(best, w, v, rest + branch);
	}
}

/* Of those that cost the same, r itself sends to all. */
static struct route
cheapest_route(Cheapest *c, int r, bool into)
{
	struct threephase *t = c->family_state;
	const struct subproblem *first = server_of(t, r);
	struct route best = { .cost = -1 };
	for (int i = -1; i < first->topo.n_ranks; i++) {
		int w = i < 0 ? r : first->rank[i];
		const struct view *view = rest_view(c, w, into);
		if (view->n_disconnected[into] == 0)
			better_route(&best, w, -1, view->rest[into]);
	}
	/* With two servers there is no rest. */
	for (int v = 0; v < c->topo->n_ranks && t->servers.n > 2; v++)
		if (t->servers.of[v] != t->servers.of[r])
			try_relay(c, r, v, into, &best);
	return best;
}

static Status
spread(Cheapest *c, int r, bool into, int64_t *cost)
{
	struct threephase *t = c->family_state;
	struct route route = cheapest_route(c, r, into);
	int hub = route.v < 0 ? route.w : route.v;
	if (route.cost < 0 || local_cost(c, r, into) < 0) {
		TRY(servers_check(c, &t->servers));
		return fail(c->ctx, INFEASIBLE,
		    "%s: %s: %s %s: no GPU of %s, or one hop from it, has hops %s all other servers: want one",
		    c->topo->name, c->family->trees, into ? "to" : "from", c->topo->vertex[r].id,
		    c->topo->node[c->topo->vertex[r].node], into ? "from" : "to");
	}
	put_local(c, r, into, c->there);
	if (route.v >= 0)
		put_branch(c, route.w, route.v, into, c->there);
	for (int s = 0; s < t->servers.n; s++) {
		if (s == t->servers.of[r] || s == t->servers.of[hub])
			continue;
		server_cost(c, hub, s, !into, into);
		put_branch(c, hub, t->pick[s], into, c->there);
	}
	*cost = route.cost + local_cost(c, r, into);
	return OK;
}

/* ---- from all ranks to all ---- */

static Status
both(Cheapest *c, int64_t *cost)
{
	struct threephase *t = c->family_state;
	int64_t least = -1;
	int lost = 0;
	for (int i = 0; i < c->n_roots; i++) {
		int w = c->roots ? c->roots[i] : i;
		int64_t up = local_cost(c, w, true), down = local_cost(c, w, false), own = up + down;
		if (up < 0 || down < 0 || (least >= 0 && own >= least))
			continue;
		int64_t sum = branches_cost(c, w, least < 0 ? -1 : least - own, &lost);
		if (sum < 0 || (least >= 0 && own + sum >= least))
			continue;
		least = own + sum;
		c->root = w;
		memcpy(t->best, t->pick, (size_t)t->servers.n * sizeof *t->best);
	}
	if (least < 0)
		return no_tree(c, c->roots ? c->roots[c->n_roots - 1] : c->n_roots - 1, lost);
	put_local(c, c->root, true, c->there);
	put_local(c, c->root, false, c->back);
	put_branches(c, c->root, true, c->there);
	put_branches(c, c->root, false, c->back);
	*cost = least;
	return OK;
}

/* ---- paths ---- */

/* The hops that enter the ranks from `from` to `to`, of one server. */
static void
put_path(Cheapest *c, int from, int to)
{
	struct threephase *t = c->family_state;
	const struct subproblem *sub = server_of(t, from);
	const struct view *view = path_view(c, from);
	for (int at = t->servers.place[to]; at != t->servers.place[from]; at = sub->search.hop[view->path[at]].src)
		c->there[sub->rank[at]] = sub->first_hop + view->path[at];
}

static Status
cheapest_path(Cheapest *c, int from, int to, int64_t *cost)
{
	struct threephase *t = c->family_state;
	const struct subproblem *near = server_of(t, from), *far = server_of(t, to);
	int64_t least = -1;
	int leave = from, enter = to;
	if (near == far) {
		*cost = path_view(c, from)->distance[t->servers.place[to]];
		TRY(*cost < 0 ? servers_check(c, &t->servers) : OK);
		put_path(c, from, to);
		return OK;
	}
	for (int i = 0; i < near->topo.n_ranks; i++) {
		for (int k = 0; k < far->topo.n_ranks; k++) {
			int64_t hop = cross_cost(c, near->rank[i], far->rank[k]),
			    there = path_view(c, from)->distance[i];
			int64_t on = path_view(c, far->rank[k])->distance[t->servers.place[to]], sum = there + hop + on;
			if (hop < 0 || there < 0 || on < 0 || (least >= 0 && sum >= least))
				continue;
			least = sum;
			leave = near->rank[i];
			enter = far->rank[k];
		}
	}
	if (least < 0)
		return no_tree(c, from, t->servers.of[to]);
	put_path(c, from, leave);
	c->there[enter] = search_cheapest_hop(&c->search, leave, enter);
	put_path(c, enter, to);
	*cost = least;
	return OK;
}

static Status
threephase_find(Cheapest *c, int64_t *cost)
{
	const Demand *d = &c->demand;
	if (d->kind == DEMAND_BROADCAST)
		return spread(c, d->from, false, cost);
	if (d->kind == DEMAND_REDUCE)
		return spread(c, d->to, true, cost);
	return d->kind == DEMAND_ALLREDUCE ? both(c, cost) : cheapest_path(c, d->from, d->to, cost);
}

/* ---- a family ---- */

static int
image_of_rank(const void *with, int map, int v)
{
	return ((const Symmetry *)with)->map[map].vertex[v];
}

/* representative[v]: the first rank of the orbit of v. */
static Status
group_ranks(Cheapest *c, const Symmetry *sym, int *representative)
{
	int n = c->topo->n_ranks, n_orbits = 0, *orbit, *queue, *first;
	TRY(TEMP(c->ctx, orbit, n));
	TRY(TEMP(c->ctx, queue, n));
	TRY(TEMP(c->ctx, first, n));
	symmetry_orbits(n, sym ? sym->n_maps : 0, image_of_rank, sym, orbit, queue);
	for (int v = 0; v < n; v++) {
		if (orbit[v] == n_orbits)
			first[n_orbits++] = v;
		representative[v] = first[orbit[v]];
	}
	return OK;
}

static Status
make_views(Cheapest *c, struct threephase *t)
{
	TRY(TEMP(c->ctx, t->view, c->topo->n_ranks));
	for (int v = 0; v < c->topo->n_ranks; v++) {
		struct view *view = &t->view[v];
		int n = ranks_of(t, t->servers.of[v]);
		TRY(TEMP(c->ctx, view->tree[false], n));
		TRY(TEMP(c->ctx, view->tree[true], n));
		TRY(TEMP(c->ctx, view->distance, n));
		TRY(TEMP(c->ctx, view->path, n));
	}
	return OK;
}

static Status
threephase_start(Cheapest *c, const Symmetry *sym)
{
	struct threephase *t;
	int n = c->topo->n_ranks;
	TRY(TEMP(c->ctx, t, 1));
	TRY(TEMP(c->ctx, t->representative, n));
	TRY(TEMP(c->ctx, t->price, c->topo->n_links));
	TRY(servers_split(c, &t->servers));
	TRY(group_ranks(c, sym, t->representative));
	TRY(make_views(c, t));
	TRY(TEMP(c->ctx, t->pick, t->servers.n));
	TRY(TEMP(c->ctx, t->best, t->servers.n));
	c->family_state = t;
	/* Up and down are arborescences of their own. */
	c->paired = true;
	return OK;
}

const Family threephase_family = { THREEPHASE_TREES, threephase_start, threephase_price, threephase_find };

/* ---- planning ---- */

SymmetryKind
threephase_symmetry(const Topology *topo, const Ask *ask)
{
	return trees_symmetry(topo, ask) == SYMMETRY_NONE ? SYMMETRY_NONE : SYMMETRY_SERVERS;
}

static bool
one_server(const Topology *topo)
{
	for (int v = 1; v < topo->n_ranks; v++)
		if (topo->vertex[v].node != topo->vertex[0].node)
			return false;
	return true;
}

/* Within one server there is only the first phase and the last: any tree. */
Status
plan_threephase(Ctx *ctx, const Planning *in, Plan *out)
{
	return one_server(in->topo) ? plan_trees(ctx, in, out) : plan_family(ctx, in, &threephase_family, out);
}
