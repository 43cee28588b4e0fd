/* Three-phase trees (Blink 3.5, figure 10), for several servers: within a server data moves over links of that server only, and
 * between servers in one hop.
 *
 *     server 0      w <- a <- b        1. each server reduces to a local root, over links of its own
 *                  ^ ^                 2. one hop from each local root to w, the root of all, and one hop back
 *                 /   \                3. each local root broadcasts, over links of its own
 *     server 1   v     v'  server 2
 *
 * Which rank is a server's local root differs from tree to tree, as the linear program likes it, so that all NICs work. The
 * cheapest tree falls apart: for each w every other server chooses its v alone,
 *
 *     local(w) + sum over other servers of min over v of  local(v) + hop(v, w) + hop(w, v)
 *
 * where local(v) is the cheapest arborescence into v over links of its server, and the cheapest one out of it. A path goes over
 * one server, one hop, and the other server. Each server is a topology of its own with a search of its own; what is alike under
 * the symmetry is searched once.
 *
 * A broadcast from r has an arborescence of r's server, out of r. Any rank w of it sends to the local roots of the other servers;
 * or w sends to a local root v of one other server, and v to those of the rest:
 *
 *     r's server           other servers         r's server     one other server       the rest
 *     r -> a -> w ------>  v -> ...              r -> a -> w -> v -> ... ------------> v' -> ...
 *                 \---->  v' -> ...                             \------------------>  v'' -> ...
 *
 * Of n servers, the NICs of the first send everything n - 1 times in the first way, and once in the second: then each other
 * server passes on a share. rest(v) is what it costs to lead from v to all servers but its own. Other than which of them v has
 * not to lead to, nothing of it depends on r, so it is found once for each v, or each that is not alike,
 *
 *     rest(w)      or      min over w of hop(w, v)  +  local(v)  +  rest(v)  -  what leads from v to r's server
 *
 * and a demand takes as many steps as there are pairs of a rank with one of r's server. A reduction is the same against the
 * arrows. */
#include "family.h"

#include <string.h>

enum { UNKNOWN = -2 };

/* What a rank's server looks like from it under the prices at hand; found when it is asked for. Hops are those of the piece. */
struct view {
	int64_t cost[2];	/* of the cheapest arborescence out of it, and into it; -1: none; UNKNOWN */
	int *tree[2];		/* its hops, one for each rank of the server */
	int64_t rest[2];	/* what leads from it to the other servers, or from them to it, as far as it has hops; UNKNOWN */
	int n_apart[2];		/* servers that it has no hop to, or from */
	bool walked;
	int64_t *distance;	/* of shortest paths to the ranks of the server; -1: none */
	int *path;
};

struct threephase {
	int n_servers;		/* that have ranks */
	struct piece *piece;
	int *server, *place;	/* of a rank, and its number among the ranks of it */
	int *alike;		/* the first rank of its orbit */
	struct view *view;	/* of a rank */
	int64_t *price;		/* work space */
	int *pick, *best;	/* of each server: its local root, at work and of the least cost */
};

/* ---- pieces ---- */

static int
ranks_of(const struct threephase *t, int s)
{
	return t->piece[s].topo.n_ranks;
}

/* Numbers of servers with ranks, in the order of nodes; piece[s].topo counts what is in each. */
static Status
count_pieces(Cheapest *c, struct threephase *t, int *of_node)
{
	const Topology *topo = c->topo;
	for (int s = 0; s < topo->n_nodes; s++)
		of_node[s] = -1;
	for (int v = 0; v < topo->n_ranks; v++) {
		int node = topo->vertex[v].node;
		if (node < 0)
			return fail(c->ctx, INFEASIBLE, "%s: %s: %s is in no server: want every GPU in one", topo->name,
			    algorithm_trees(ALGORITHM_THREEPHASE), topo->vertex[v].id);
		if (of_node[node] < 0)
			of_node[node] = t->n_servers++;
	}
	TRY(TEMP(c->ctx, t->piece, t->n_servers));
	for (int v = 0; v < topo->n_vertices; v++) {
		int s = topo->vertex[v].node < 0 ? -1 : of_node[topo->vertex[v].node];
		if (s < 0)
			continue;
		t->piece[s].topo.n_vertices++;
		t->piece[s].topo.n_ranks += v < topo->n_ranks;
	}
	return OK;
}

/* The piece of a link, if both ends are in it. */
static int
link_piece(const Topology *topo, const Link *link, const int *of_node)
{
	int node = topo->vertex[link->from].node;
	return node < 0 || topo->vertex[link->to].node != node ? -1 : of_node[node];
}

/* Room for what count_pieces and the links say; both are counted anew as they are filled in. */
static Status
size_pieces(Cheapest *c, struct threephase *t, const int *of_node, int **rank, int **link)
{
	const Topology *topo = c->topo;
	for (int l = 0; l < topo->n_links; l++) {
		int s = link_piece(topo, &topo->link[l], of_node);
		if (s >= 0)
			t->piece[s].topo.n_links++;
	}
	for (int s = 0; s < t->n_servers; s++) {
		Topology *own = &t->piece[s].topo;
		own->name = topo->name;
		TRY(TEMP(c->ctx, own->vertex, own->n_vertices));
		TRY(TEMP(c->ctx, own->link, own->n_links));
		TRY(TEMP(c->ctx, rank[s], own->n_ranks));
		TRY(TEMP(c->ctx, link[s], own->n_links));
		t->piece[s].rank = rank[s];
		t->piece[s].link = link[s];
		own->n_vertices = own->n_links = 0;
	}
	return OK;
}

/* inner: numbers of vertices in their pieces. Ranks come first there, too. */
static void
place_vertices(const Topology *topo, struct threephase *t, const int *of_node, int *inner, int **rank)
{
	for (int v = 0; v < topo->n_vertices; v++) {
		int s = topo->vertex[v].node < 0 ? -1 : of_node[topo->vertex[v].node];
		if (s < 0)
			continue;
		inner[v] = t->piece[s].topo.n_vertices++;
		t->piece[s].topo.vertex[inner[v]] = topo->vertex[v];
		if (v >= topo->n_ranks)
			continue;
		t->server[v] = s;
		t->place[v] = inner[v];
		rank[s][inner[v]] = v;
	}
}

static void
place_links(const Topology *topo, struct threephase *t, const int *of_node, const int *inner, int **link)
{
	for (int l = 0; l < topo->n_links; l++) {
		int s = link_piece(topo, &topo->link[l], of_node);
		if (s < 0)
			continue;
		Topology *own = &t->piece[s].topo;
		link[s][own->n_links] = l;
		own->link[own->n_links] = topo->link[l];
		own->link[own->n_links].from = inner[topo->link[l].from];
		own->link[own->n_links++].to = inner[topo->link[l].to];
	}
}

static Status
fill_pieces(Cheapest *c, struct threephase *t, const int *of_node)
{
	int *inner, **rank, **link;
	TRY(TEMP(c->ctx, inner, c->topo->n_vertices));
	TRY(TEMP(c->ctx, rank, t->n_servers));
	TRY(TEMP(c->ctx, link, t->n_servers));
	TRY(size_pieces(c, t, of_node, rank, link));
	place_vertices(c->topo, t, of_node, inner, rank);
	place_links(c->topo, t, of_node, inner, link);
	return OK;
}

static Status
make_pieces(Cheapest *c, struct threephase *t)
{
	int *of_node, first_hop = c->search.n_hops;
	TRY(TEMP(c->ctx, of_node, c->topo->n_nodes + 1));
	TRY(count_pieces(c, t, of_node));
	TRY(fill_pieces(c, t, of_node));
	for (int s = 0; s < t->n_servers; s++) {
		struct piece *piece = &t->piece[s];
		TRY(topo_index(c->ctx, &piece->topo));
		TRY(search_new(c->ctx, &piece->topo, &piece->search));
		piece->first_hop = first_hop;
		first_hop += piece->search.n_hops;
	}
	c->piece = t->piece;
	c->n_pieces = t->n_servers;
	return OK;
}

/* A rank of the piece that its first rank does not reach (into: that does not reach it); -1: there is none. */
static int
lost_rank(struct piece *piece, bool into, int *hops)
{
	search_hops(&piece->search, 0, into, hops);
	for (int v = 0; v < piece->topo.n_ranks; v++)
		if (hops[v] < 0)
			return v;
	return -1;
}

/* Where there is no tree: do the ranks of each server reach each other over its links? If not, that may be why. */
static Status
check_pieces(Cheapest *c)
{
	const struct threephase *t = c->family;
	int *hops;
	TRY(TEMP(c->ctx, hops, c->topo->n_ranks));
	for (int i = 0; i < 2 * t->n_servers; i++) {
		struct piece *piece = &t->piece[i / 2];
		const Vertex *vertex = piece->topo.vertex;
		int lost = lost_rank(piece, i % 2, hops), from = i % 2 ? lost : 0, to = i % 2 ? 0 : lost;
		if (lost >= 0)
			return fail(c->ctx, INFEASIBLE, "%s: %s: no path from %s to %s over links of %s: want ranks of one server that its own "
			    "links connect", c->topo->name, algorithm_trees(ALGORITHM_THREEPHASE), vertex[from].id, vertex[to].id,
			    c->topo->node[vertex[0].node]);
	}
	return OK;
}

/* ---- views ---- */

static int64_t
view_cost(Cheapest *c, int v, bool into)
{
	struct threephase *t = c->family;
	struct view *view = &t->view[v];
	if (view->cost[into] == UNKNOWN)
		view->cost[into] = search_arborescence(&t->piece[t->server[v]].search, t->place[v], into, view->tree[into]);
	return view->cost[into];
}

/* What is alike costs the same. */
static int64_t
local_cost(Cheapest *c, int v, bool into)
{
	const struct threephase *t = c->family;
	return view_cost(c, t->alike[v], into);
}

static const struct view *
walked_view(Cheapest *c, int v)
{
	struct threephase *t = c->family;
	struct view *view = &t->view[v];
	if (!view->walked)
		search_paths(&t->piece[t->server[v]].search, t->place[v], view->distance, view->path);
	view->walked = true;
	return view;
}

static void
threephase_price(Cheapest *c, const int64_t *price)
{
	struct threephase *t = c->family;
	for (int s = 0; s < t->n_servers; s++) {
		struct piece *piece = &t->piece[s];
		for (int l = 0; l < piece->topo.n_links; l++)
			t->price[l] = price[piece->link[l]];
		search_price(&piece->search, t->price);
	}
	for (int v = 0; v < c->topo->n_ranks; v++) {
		t->view[v].cost[false] = t->view[v].cost[true] = UNKNOWN;
		t->view[v].rest[false] = t->view[v].rest[true] = UNKNOWN;
		t->view[v].walked = false;
	}
}

/* ---- trees ---- */

static int64_t
cross_cost(const Cheapest *c, int src, int dst)
{
	int hop = search_cheapest_hop(&c->search, src, dst);
	return hop < 0 ? -1 : c->search.hop[hop].cost;
}

/* What it takes to lead from w to v and on to the ranks of v's server (into: from them to v and on to w; both: either). -1: v and
 * w have no hop, or there is no way between v and a rank of its server. */
static int64_t
branch_cost(Cheapest *c, int w, int v, bool out, bool into)
{
	int64_t cost = 0, hop, local;
	for (int way = 0; way < 2; way++) {
		if (way ? !into : !out)
			continue;
		hop = way ? cross_cost(c, v, w) : cross_cost(c, w, v);
		local = hop < 0 ? -1 : local_cost(c, v, way);
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
	struct threephase *t = c->family;
	int64_t least = -1;
	for (int i = 0; i < ranks_of(t, s); i++) {
		int64_t cost = branch_cost(c, w, t->piece[s].rank[i], out, into);
		if (cost < 0 || (least >= 0 && cost >= least))
			continue;
		least = cost;
		t->pick[s] = t->piece[s].rank[i];
	}
	return least;
}

/* All servers but w's choose; stops above `most`, if that is not below 0. -1: one of them, *lost, has none. */
static int64_t
branches_cost(Cheapest *c, int w, int64_t most, int *lost)
{
	struct threephase *t = c->family;
	int64_t sum = 0;
	for (int s = 0; s < t->n_servers && (most < 0 || sum < most); s++) {
		int64_t least = s == t->server[w] ? 0 : server_cost(c, w, s, true, true);
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
	struct threephase *t = c->family;
	const struct piece *piece = &t->piece[t->server[v]];
	view_cost(c, v, into);
	for (int i = 0; i < piece->topo.n_ranks; i++)
		if (i != t->place[v])
			hop[piece->rank[i]] = piece->first_hop + t->view[v].tree[into][i];
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
	struct threephase *t = c->family;
	for (int s = 0; s < t->n_servers; s++)
		if (s != t->server[w])
			put_branch(c, w, t->best[s], into, hop);
}

static Status
no_tree(Cheapest *c, int w, int lost)
{
	const struct threephase *t = c->family;
	const Topology *topo = c->topo, *own = &t->piece[lost].topo;
	TRY(check_pieces(c));
	return fail(c->ctx, INFEASIBLE, "%s: %s: no hop between %s of %s and any GPU of %s: want servers that are one hop apart",
	    topo->name, algorithm_trees(ALGORITHM_THREEPHASE), topo->vertex[w].id, topo->node[topo->vertex[w].node],
	    topo->node[own->vertex[0].node]);
}

/* ---- from one rank, or to one ---- */

/* The view of what is alike. */
static const struct view *
rest_view(Cheapest *c, int v, bool into)
{
	struct threephase *t = c->family;
	struct view *view = &t->view[t->alike[v]];
	if (view->rest[into] != UNKNOWN)
		return view;
	view->rest[into] = view->n_apart[into] = 0;
	for (int s = 0; s < t->n_servers; s++) {
		int64_t cost = s == t->server[t->alike[v]] ? 0 : server_cost(c, t->alike[v], s, !into, into);
		view->rest[into] += cost < 0 ? 0 : cost;
		view->n_apart[into] += cost < 0;
	}
	return view;
}

/* v leads to all servers but its own and the first. -1: it has no hop to one of them. */
static int64_t
relay_cost(Cheapest *c, int v, int first, bool into)
{
	const struct view *view = rest_view(c, v, into);
	int64_t back = view->n_apart[into] > 1 ? -1 : server_cost(c, v, first, !into, into);
	if (view->n_apart[into] > (back < 0))
		return -1;
	return view->rest[into] - (back < 0 ? 0 : back);
}

/* How the first server, r's, leads on: one of its ranks, w, to all others, or to v, which leads to the rest (-1: none). */
struct way {
	int w, v;
	int64_t cost;		/* -1: none yet */
};

static void
better_way(struct way *best, int w, int v, int64_t cost)
{
	if (best->cost < 0 || cost < best->cost)
		*best = (struct way){ w, v, cost };
}

static void
try_relay(Cheapest *c, int r, int v, bool into, struct way *best)
{
	struct threephase *t = c->family;
	const struct piece *first = &t->piece[t->server[r]];
	int64_t rest = relay_cost(c, v, t->server[r], into);
	for (int i = -1; i < first->topo.n_ranks && rest >= 0; i++) {
		int w = i < 0 ? r : first->rank[i];
		int64_t branch = branch_cost(c, w, v, !into, into);
		if (branch >= 0)
			better_way(best, w, v, rest + branch);
	}
}

/* Of those that cost the same, r itself sends to all. */
static struct way
cheapest_way(Cheapest *c, int r, bool into)
{
	struct threephase *t = c->family;
	const struct piece *first = &t->piece[t->server[r]];
	struct way best = { .cost = -1 };
	for (int i = -1; i < first->topo.n_ranks; i++) {
		int w = i < 0 ? r : first->rank[i];
		const struct view *view = rest_view(c, w, into);
		if (view->n_apart[into] == 0)
			better_way(&best, w, -1, view->rest[into]);
	}
	/* Of two servers the other one has no rest to lead to. */
	for (int v = 0; v < c->topo->n_ranks && t->n_servers > 2; v++)
		if (t->server[v] != t->server[r])
			try_relay(c, r, v, into, &best);
	return best;
}

static Status
spread(Cheapest *c, int r, bool into, int64_t *cost)
{
	struct threephase *t = c->family;
	struct way way = cheapest_way(c, r, into);
	int hub = way.v < 0 ? way.w : way.v;
	if (way.cost < 0 || local_cost(c, r, into) < 0) {
		TRY(check_pieces(c));
		return fail(c->ctx, INFEASIBLE, "%s: %s: %s %s: no GPU of %s, or one hop from it, has hops %s all other servers: want one",
		    c->topo->name, algorithm_trees(ALGORITHM_THREEPHASE), into ? "to" : "from", c->topo->vertex[r].id,
		    c->topo->node[c->topo->vertex[r].node], into ? "from" : "to");
	}
	put_local(c, r, into, c->there);
	if (way.v >= 0)
		put_branch(c, way.w, way.v, into, c->there);
	for (int s = 0; s < t->n_servers; s++) {
		if (s == t->server[r] || s == t->server[hub])
			continue;
		server_cost(c, hub, s, !into, into);
		put_branch(c, hub, t->pick[s], into, c->there);
	}
	*cost = way.cost + local_cost(c, r, into);
	return OK;
}

/* ---- from all ranks to all ---- */

static Status
both(Cheapest *c, int64_t *cost)
{
	struct threephase *t = c->family;
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
		memcpy(t->best, t->pick, (size_t)t->n_servers * sizeof *t->best);
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
	struct threephase *t = c->family;
	const struct piece *piece = &t->piece[t->server[from]];
	const struct view *view = walked_view(c, from);
	for (int at = t->place[to]; at != t->place[from]; at = piece->search.hop[view->path[at]].src)
		c->there[piece->rank[at]] = piece->first_hop + view->path[at];
}

static Status
carry(Cheapest *c, int from, int to, int64_t *cost)
{
	struct threephase *t = c->family;
	const struct piece *near = &t->piece[t->server[from]], *far = &t->piece[t->server[to]];
	int64_t least = -1;
	int leave = from, enter = to;
	if (near == far) {
		*cost = walked_view(c, from)->distance[t->place[to]];
		TRY(*cost < 0 ? check_pieces(c) : OK);
		put_path(c, from, to);
		return OK;
	}
	for (int i = 0; i < near->topo.n_ranks; i++) {
		for (int k = 0; k < far->topo.n_ranks; k++) {
			int64_t hop = cross_cost(c, near->rank[i], far->rank[k]), there = walked_view(c, from)->distance[i];
			int64_t on = walked_view(c, far->rank[k])->distance[t->place[to]], sum = there + hop + on;
			if (hop < 0 || there < 0 || on < 0 || (least >= 0 && sum >= least))
				continue;
			least = sum;
			leave = near->rank[i];
			enter = far->rank[k];
		}
	}
	if (least < 0)
		return no_tree(c, from, t->server[to]);
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
	if (d->kind == DEMAND_SPREAD)
		return spread(c, d->from, false, cost);
	if (d->kind == DEMAND_COLLECT)
		return spread(c, d->to, true, cost);
	return d->kind == DEMAND_BOTH ? both(c, cost) : carry(c, d->from, d->to, cost);
}

/* ---- a family ---- */

/* Ranks by orbit, from the first of each on. */
static Status
group_ranks(Cheapest *c, const Symmetry *sym, int *alike)
{
	int *queue, n = c->topo->n_ranks;
	TRY(TEMP(c->ctx, queue, n));
	memset(alike, -1, (size_t)n * sizeof *alike);
	for (int first = 0; first < n; first++) {
		int head = 0, tail = 0;
		if (alike[first] >= 0)
			continue;
		alike[first] = first;
		queue[tail++] = first;
		while (head < tail) {
			int at = queue[head++];
			for (int i = 0; sym && i < sym->n_maps; i++) {
				int to = sym->map[i].vertex[at];
				if (alike[to] >= 0)
					continue;
				alike[to] = first;
				queue[tail++] = to;
			}
		}
	}
	return OK;
}

static Status
make_views(Cheapest *c, struct threephase *t)
{
	TRY(TEMP(c->ctx, t->view, c->topo->n_ranks));
	for (int v = 0; v < c->topo->n_ranks; v++) {
		struct view *view = &t->view[v];
		int n = ranks_of(t, t->server[v]);
		TRY(TEMP(c->ctx, view->tree[false], n));
		TRY(TEMP(c->ctx, view->tree[true], n));
		TRY(TEMP(c->ctx, view->distance, n));
		TRY(TEMP(c->ctx, view->path, n));
	}
	return OK;
}

Status
threephase_use(Cheapest *c, const Symmetry *sym)
{
	struct threephase *t;
	int n = c->topo->n_ranks;
	TRY(TEMP(c->ctx, t, 1));
	TRY(TEMP(c->ctx, t->server, n));
	TRY(TEMP(c->ctx, t->place, n));
	TRY(TEMP(c->ctx, t->alike, n));
	TRY(TEMP(c->ctx, t->price, c->topo->n_links));
	TRY(make_pieces(c, t));
	TRY(group_ranks(c, sym, t->alike));
	TRY(make_views(c, t));
	TRY(TEMP(c->ctx, t->pick, t->n_servers));
	TRY(TEMP(c->ctx, t->best, t->n_servers));
	c->family = t;
	c->family_price = threephase_price;
	c->family_find = threephase_find;
	/* Up and down a server by ways of their own. */
	c->paired = true;
	return OK;
}
