/* Clusters as servers and networks. The uplinks of a server come from a maximum flow between its GPUs and the networks:
 * as equal for all GPUs as may be, then as much as there is, taken apart into paths:
 *
 *     gpu0 -- plx0 -- nic0 -- rail 0        gpu0: 24 GB/s to rail 0
 *     gpu1 --/    \-- nic1 -- rail 1        gpu1: 24 GB/s to rail 1
 */
#include "base/array.h"
#include "plan/pack/cluster/servers.h"

#include <string.h>

enum { MOST_NETWORKS = 256 };	/* between each two of which a route is kept */

/* ---- servers ---- */

/* Ranks in the order of their servers. */
static Status
list_servers(Cluster *c)
{
	const Topology *topo = c->topo;
	int n = 0;
	c->n_servers = topo->n_nodes;
	TRY(TEMP(c->ctx, c->server, topo->n_nodes));
	TRY(TEMP(c->ctx, c->rank, topo->n_ranks));
	TRY(TEMP(c->ctx, c->of, topo->n_ranks));
	for (int v = 0; v < topo->n_ranks; v++)
		c->server[topo->vertex[v].node].n++;
	for (int s = 0; s < topo->n_nodes; n += c->server[s].n, c->server[s++].n = 0)
		c->server[s].first = n;
	for (int v = 0; v < topo->n_ranks; v++) {
		struct cluster_server *server = &c->server[c->of[v] = topo->vertex[v].node];
		c->rank[server->first + server->n++] = v;
	}
	return OK;
}

/* A switch with links of a network from ranks. wide: it has as much on, or back from there, as these have. */
static bool
is_leaf(const Topology *topo, int v, bool wide)
{
	int64_t below = 0, on = 0;
	bool net = false;
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
		const Link *link = &topo->link[topo->in[i]];
		*(link->from < topo->n_ranks ? &below : &on) += link->capacity;
		net |= link->from < topo->n_ranks && link->class == LINK_NET;
	}
	return net && (!wide || on >= below);
}

/* The server of each vertex, -1: none. A switch that the file has in no server is in that of the GPUs on it, if these
 * are several of one server; but it is a network, if it is a leaf switch. wide: that limits nothing. */
static Status
find_homes(Cluster *c, bool wide)
{
	const Topology *topo = c->topo;
	TRY(TEMP(c->ctx, c->home, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		int n = 0, home = -1;
		c->home[v] = topo->vertex[v].node;
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
			int from = topo->link[topo->in[i]].from;
			if (from >= topo->n_ranks)
				continue;
			home = n++ == 0 || home == topo->vertex[from].node ? topo->vertex[from].node : -1;
		}
		if (v < topo->n_ranks || c->home[v] >= 0 || n < 2)
			continue;
		c->has_single |= home >= 0 && is_leaf(topo, v, false) && !is_leaf(topo, v, true);
		if (!is_leaf(topo, v, wide))
			c->home[v] = home;
	}
	return OK;
}

/* One of both is a rank, which has few links. -1: there is none. */
static int
link_between(const Topology *topo, int from, int to)
{
	bool out = from < topo->n_ranks;
	const int *first = out ? &topo->first_out[from] : &topo->first_in[to];
	for (int i = first[0]; i < first[1]; i++) {
		int l = out ? topo->out[i] : topo->in[i];
		if (topo->link[l].from == from && topo->link[l].to == to)
			return l;
	}
	return -1;
}

/* Is this the switch of all GPUs of the server, and no leaf switch? */
static bool
joins(Cluster *c, const struct cluster_server *server, int sw)
{
	bool all = sw >= c->topo->n_ranks && c->home[sw] >= 0;
	for (int i = 0; i < server->n && all; i++) {
		int v = c->rank[server->first + i];
		c->up[v] = link_between(c->topo, v, sw);
		c->down[v] = link_between(c->topo, sw, v);
		all = c->up[v] >= 0 && c->down[v] >= 0 && c->topo->link[c->up[v]].class != LINK_NET;
	}
	return all;
}

static Status
find_switches(Cluster *c, bool *good)
{
	const Topology *topo = c->topo;
	TRY(TEMP(c->ctx, c->up, topo->n_ranks));
	TRY(TEMP(c->ctx, c->down, topo->n_ranks));
	for (int s = 0; s < c->n_servers && *good; s++) {
		const struct cluster_server *server = &c->server[s];
		bool found = server->n == 1;
		int v = server->n > 0 ? c->rank[server->first] : 0;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1] && !found; i++)
			found = joins(c, server, topo->link[topo->out[i]].to);
		*good = found && server->n > 0;
		if (server->n == 1)
			c->up[v] = c->down[v] = -1;
	}
	return OK;
}

/* ---- networks ---- */

/* Switches of no server that have a link from a vertex of a server. */
static Status
find_networks(Cluster *c)
{
	const Topology *topo = c->topo;
	TRY(TEMP(c->ctx, c->network, topo->n_vertices));
	TRY(TEMP(c->ctx, c->network_of, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		bool joined = false;
		c->network_of[v] = -1;
		for (int i = topo->first_in[v]; i < topo->first_in[v + 1] && !joined; i++)
			joined = c->home[topo->link[topo->in[i]].from] >= 0;
		if (v < topo->n_ranks || c->home[v] >= 0 || !joined)
			continue;
		c->network_of[v] = c->n_ends;
		c->network[c->n_ends++] = v;
	}
	c->n_networks = c->n_ends;
	return OK;
}

/* From one switch of a network to all others. by: work space of n_vertices. */
static Status
find_routes(Cluster *c, int from, int *by, int *queue)
{
	const Topology *topo = c->topo;
	int n = 1, start = c->network[from];
	memset(by, -1, (size_t)topo->n_vertices * sizeof *by);
	queue[0] = start;
	for (int i = 0; i < n; i++)
		for (int k = topo->first_out[queue[i]]; k < topo->first_out[queue[i] + 1]; k++) {
			int l = topo->out[k], w = topo->link[l].to;
			if (w < topo->n_ranks || c->home[w] >= 0 || w == start || by[w] >= 0)
				continue;
			by[w] = l;
			queue[n++] = w;
		}
	for (int k = 0; k < c->n_ends; k++) {
		struct uplink *uplink = &c->between[(size_t)from * (size_t)c->n_ends + (size_t)k];
		int w = c->network[k];
		uplink->n = w == start || by[w] >= 0 ? 0 : -1;
		for (; w != start && uplink->n >= 0; w = topo->link[by[w]].from)
			uplink->n++;
		if (uplink->n <= 0)
			continue;
		TRY(TEMP(c->ctx, uplink->link, uplink->n));
		w = c->network[k];
		for (int i = uplink->n; i > 0; w = topo->link[by[w]].from)
			uplink->link[--i] = by[w];
	}
	return OK;
}

static Status
join_networks(Cluster *c)
{
	int *by, *queue;
	TRY(TEMP(c->ctx, c->between, (size_t)c->n_ends * (size_t)c->n_ends));
	TRY(TEMP(c->ctx, by, c->topo->n_vertices));
	TRY(TEMP(c->ctx, queue, c->topo->n_vertices));
	for (int k = 0; k < c->n_ends; k++)
		TRY(find_routes(c, k, by, queue));
	return OK;
}

/* ---- uplinks ---- */

/* A flow out of the GPUs of a server, or, UPLINK_IN, with all links reversed. */
struct flow {
	Cluster *c;
	Side side;
	int node;
	int64_t *room, *amount;	/* of each link */
	int *by, *mark, *queue;	/* of each vertex: the link that leads to it, during search `round` */
	int round;
	int64_t *left;		/* of each rank: what of its share is not used */
};

static int
tail_of(const struct flow *f, int l)
{
	return f->side == UPLINK_OUT ? f->c->topo->link[l].from : f->c->topo->link[l].to;
}

static int
head_of(const struct flow *f, int l)
{
	return f->side == UPLINK_OUT ? f->c->topo->link[l].to : f->c->topo->link[l].from;
}

static bool
is_inside(const struct flow *f, int v)
{
	return v >= f->c->topo->n_ranks && f->c->home[v] == f->node;
}

/* Links at v, by their tails; ahead: those that leave it. */
static const int *
links_at(const struct flow *f, int v, bool ahead, int *n)
{
	const Topology *topo = f->c->topo;
	bool out = ahead == (f->side == UPLINK_OUT);
	const int *first = out ? topo->first_out : topo->first_in;
	*n = first[v + 1] - first[v];
	return (out ? topo->out : topo->in) + first[v];
}

/* A network that more can flow to, from rank g, -1: none. */
static int
search_network(struct flow *f, int g)
{
	int n = 1, n_links;
	f->round++;
	f->mark[g] = f->round;
	f->queue[0] = g;
	for (int i = 0; i < n; i++) {
		int v = f->queue[i];
		const int *link = links_at(f, v, true, &n_links);
		for (int k = 0; k < n_links; k++) {
			int w = head_of(f, link[k]);
			bool network = f->c->network_of[w] >= 0;
			if ((!network && !is_inside(f, w)) || f->mark[w] == f->round
			    || f->amount[link[k]] >= f->room[link[k]])
				continue;
			f->mark[w] = f->round;
			f->by[w] = link[k];
			f->queue[n++] = w;
			if (network)
				return w;
		}
		link = links_at(f, v, false, &n_links);
		for (int k = 0; k < n_links && v != g; k++) {
			int w = tail_of(f, link[k]);
			if (!is_inside(f, w) || f->mark[w] == f->round || f->amount[link[k]] == 0)
				continue;
			f->mark[w] = f->round;
			f->by[w] = link[k];
			f->queue[n++] = w;
		}
	}
	return -1;
}

/* One more path of at most `most` out of rank g. Returns what it carries. */
static int64_t
augment(struct flow *f, int g, int64_t most)
{
	int end = search_network(f, g);
	if (end < 0)
		return 0;
	for (int v = end, w; v != g; v = w) {
		int l = f->by[v];
		bool ahead = head_of(f, l) == v;
		int64_t room = ahead ? f->room[l] - f->amount[l] : f->amount[l];
		most = room < most ? room : most;
		w = ahead ? tail_of(f, l) : head_of(f, l);
	}
	for (int v = end, w; v != g; v = w) {
		int l = f->by[v];
		bool ahead = head_of(f, l) == v;
		f->amount[l] += ahead ? most : -most;
		w = ahead ? tail_of(f, l) : head_of(f, l);
	}
	return most;
}

/* As much as flows from all ranks of the server, each at most `share` in all. */
static int64_t
flow_from_ranks(struct flow *f, const struct cluster_server *server, int64_t share)
{
	int64_t sum = 0, more;
	for (int i = 0; i < server->n; i++) {
		int g = f->c->rank[server->first + i];
		f->left[g] = share;
		while (f->left[g] > 0 && (more = augment(f, g, f->left[g])) > 0) {
			f->left[g] -= more;
			sum += more;
		}
	}
	return sum;
}

static void
clear_flow(struct flow *f, const struct cluster_server *server)
{
	const Topology *topo = f->c->topo;
	int n;
	/* Links that carry some begin at a rank, or at a vertex that one led to. */
	for (int i = 0; i < server->n; i++) {
		int head = 0, tail = 1;
		f->round++;
		f->queue[0] = f->c->rank[server->first + i];
		while (head < tail) {
			const int *link = links_at(f, f->queue[head++], true, &n);
			for (int k = 0; k < n; k++) {
				int w = head_of(f, link[k]);
				f->amount[link[k]] = 0;
				if (w < topo->n_ranks || !is_inside(f, w) || f->mark[w] == f->round)
					continue;
				f->mark[w] = f->round;
				f->queue[tail++] = w;
			}
		}
	}
}

/* A path of the flow from rank g, which is taken out of it. *n: 0: there is no more. */
static int64_t
take_path(struct flow *f, int g, int link[LIMIT_ROUTE_LINKS], int *n)
{
	int64_t least = INT64_MAX;
	int v = g, n_links;
	*n = 0;
	while (*n < LIMIT_ROUTE_LINKS && f->c->network_of[v] < 0) {
		const int *at = links_at(f, v, true, &n_links);
		int k = 0;
		while (k < n_links && f->amount[at[k]] == 0)
			k++;
		if (k == n_links) {
			*n = 0;
			return 0;
		}
		least = f->amount[at[k]] < least ? f->amount[at[k]] : least;
		v = head_of(f, at[k]);
		link[(*n)++] = at[k];
	}
	for (int i = 0; i < *n; i++)
		f->amount[link[i]] -= least;
	return least;
}

static Status
add_uplink(struct flow *f, int g, const int *link, int n, int64_t capacity)
{
	Cluster *c = f->c;
	struct uplink *uplink;
	TRY(GROW_TEMP(c->ctx, c->uplink[f->side], c->n_uplinks[f->side], c->room[f->side]));
	uplink = &c->uplink[f->side][c->n_uplinks[f->side]++];
	int end = c->network_of[head_of(f, link[n - 1])];
	*uplink = (struct uplink){ .rank = g, .network = end, .end = end, .capacity = capacity, .n = n };
	TRY(TEMP(c->ctx, uplink->link, n));
	for (int i = 0; i < n; i++)
		uplink->link[f->side == UPLINK_OUT ? i : n - 1 - i] = link[i];
	c->unit = gcd64(capacity, c->unit);
	return OK;
}

static Status
find_uplinks(struct flow *f, int s, bool *good)
{
	Cluster *c = f->c;
	struct cluster_server *server = &c->server[s];
	int link[LIMIT_ROUTE_LINKS], n;
	f->node = s;
	server->first_uplink[f->side] = c->n_uplinks[f->side];
	int64_t all = flow_from_ranks(f, server, LIMIT_CAPACITY_SUM), capacity;
	clear_flow(f, server);
	flow_from_ranks(f, server, all / server->n);
	flow_from_ranks(f, server, LIMIT_CAPACITY_SUM);
	for (int i = 0; i < server->n; i++) {
		int g = c->rank[server->first + i];
		while ((capacity = take_path(f, g, link, &n)) > 0 && n <= LIMIT_ROUTE_LINKS / 4)
			TRY(add_uplink(f, g, link, n, capacity));
	}
	server->n_uplinks[f->side] = c->n_uplinks[f->side] - server->first_uplink[f->side];
	*good = server->n_uplinks[f->side] > 0;
	return OK;
}

/* slot: FRAC_ZERO, or capacities are whole numbers of these. */
static Status
find_all_uplinks(Cluster *c, Frac slot, bool *good)
{
	struct flow f = { .c = c };
	TRY(TEMP_EACH(c->ctx, c->topo->n_links, f.room, f.amount));
	TRY(TEMP(c->ctx, f.by, c->topo->n_vertices));
	TRY(TEMP(c->ctx, f.mark, c->topo->n_vertices));
	TRY(TEMP(c->ctx, f.queue, c->topo->n_vertices));
	TRY(TEMP(c->ctx, f.left, c->topo->n_ranks));
	for (int l = 0; l < c->topo->n_links; l++) {
		int64_t capacity = c->topo->link[l].capacity;
		f.room[l] = slot.num > 0 ? (int64_t)((Wide)capacity * slot.den / slot.num) : capacity;
	}
	c->unit = c->n_uplinks[0] = c->n_uplinks[1] = 0;
	for (f.side = UPLINK_OUT; f.side <= UPLINK_IN && *good; f.side++)
		for (int s = 0; s < c->n_servers && *good; s++)
			TRY(find_uplinks(&f, s, good));
	for (int side = 0; side < 2 && *good; side++)
		for (int s = 0; s < c->n_servers; s++) {
			c->server[s].capacity[side] = 0;
			for (int i = 0; i < c->server[s].n_uplinks[side]; i++) {
				struct uplink *uplink = &c->uplink[side][c->server[s].first_uplink[side] + i];
				uplink->capacity /= c->unit;
				c->server[s].capacity[side] += uplink->capacity;
			}
		}
	return OK;
}

Status
cluster_round_uplinks(Cluster *c, Frac slot, bool *good)
{
	*good = true;
	TRY(find_all_uplinks(c, slot, good));
	/* In bytes/s, rounded up: no more than a slot in all. */
	c->unit *= slot.num / slot.den + (slot.num % slot.den > 0);
	return OK;
}

/* ---- types ---- */

static int
place_of(const Cluster *c, int s, int rank)
{
	int i = 0;
	while (c->rank[c->server[s].first + i] != rank)
		i++;
	return i;
}

static bool
same_type(const Cluster *c, int s, int t)
{
	const struct cluster_server *a = &c->server[s], *b = &c->server[t];
	bool same = a->n == b->n && a->n_uplinks[0] == b->n_uplinks[0] && a->n_uplinks[1] == b->n_uplinks[1];
	for (int side = 0; side < 2; side++)
		for (int i = 0; same && i < a->n_uplinks[side]; i++) {
			const struct uplink *x = &c->uplink[side][a->first_uplink[side] + i];
			const struct uplink *y = &c->uplink[side][b->first_uplink[side] + i];
			same = x->network == y->network && x->capacity == y->capacity
			    && place_of(c, s, x->rank) == place_of(c, t, y->rank);
		}
	return same;
}

Status
cluster_find_types(Cluster *c)
{
	int *first;
	TRY(TEMP(c->ctx, first, c->n_servers));
	c->n_types = 0;
	for (int s = 0; s < c->n_servers; s++) {
		int t = 0;
		while (t < c->n_types && !same_type(c, s, first[t]))
			t++;
		if (t == c->n_types)
			first[c->n_types++] = s;
		c->server[s].type = t;
	}
	return OK;
}

static Status
read_cluster(Ctx *ctx, const Topology *topo, bool wide, Cluster *out, bool *good)
{
	*out = (Cluster){ .ctx = ctx, .topo = topo };
	*good = topo->n_nodes > 1;
	for (int v = 0; v < topo->n_ranks && *good; v++)
		*good = topo->vertex[v].node >= 0;
	if (!*good)
		return OK;
	TRY(list_servers(out));
	TRY(find_homes(out, wide));
	TRY(find_switches(out, good));
	if (!*good)
		return OK;
	TRY(find_networks(out));
	*good = out->n_ends > 0 && out->n_ends <= MOST_NETWORKS;
	if (!*good)
		return OK;
	TRY(join_networks(out));
	TRY(find_all_uplinks(out, FRAC_ZERO, good));
	return *good ? cluster_find_types(out) : OK;
}

Status
cluster_read(Ctx *ctx, const Topology *topo, Cluster *out, bool *good)
{
	return read_cluster(ctx, topo, true, out, good);
}

Status
cluster_read_leaves(Ctx *ctx, const Topology *topo, Cluster *out, bool *good)
{
	return read_cluster(ctx, topo, false, out, good);
}

/* ---- edges ---- */

Status
cluster_near_edge(const Cluster *c, int src, int dst, Edge *out)
{
	int *link;
	TRY(NEW(c->ctx, link, 2));
	link[0] = c->up[src];
	link[1] = c->down[dst];
	*out = (Edge){ src, dst, 2, link };
	return OK;
}

Status
cluster_far_edge(const Cluster *c, int out_uplink, int in_uplink, Edge *out)
{
	const struct uplink *from = &c->uplink[UPLINK_OUT][out_uplink], *to = &c->uplink[UPLINK_IN][in_uplink];
	const struct uplink *uplink[3] = { from, cluster_between(c, from, to), to };
	int *link, n = 0;
	TRY(NEW(c->ctx, link, from->n + uplink[1]->n + to->n));
	for (int i = 0; i < 3; n += uplink[i++]->n)
		if (uplink[i]->n > 0)
			memcpy(link + n, uplink[i]->link, (size_t)uplink[i]->n * sizeof *link);
	*out = (Edge){ from->rank, to->rank, n, link };
	return OK;
}

bool
cluster_sides_agree(const Cluster *c)
{
	bool same = c->n_uplinks[0] == c->n_uplinks[1];
	for (int i = 0; same && i < c->n_uplinks[0]; i++)
		same = c->uplink[0][i].rank == c->uplink[1][i].rank
		    && c->uplink[0][i].network == c->uplink[1][i].network
		    && c->uplink[0][i].capacity == c->uplink[1][i].capacity;
	return same;
}

/* ---- near uplinks ---- */

static int
network_link(const Cluster *c, int side, int uplink)
{
	const struct uplink *own = &c->uplink[side][uplink];
	return own->link[side == UPLINK_OUT ? own->n - 1 : 0];
}

bool
cluster_share_link(const Cluster *c, int a, int b)
{
	return network_link(c, UPLINK_OUT, a) == network_link(c, UPLINK_OUT, b);
}

/* Capacities of a server's uplinks that share the link of one of them to a network. */
static void
level_group(const Cluster *c, int side, const struct cluster_server *server, int uplink)
{
	struct uplink *own = &c->uplink[side][server->first_uplink[side]];
	int64_t sum = 0, least = LIMIT_ROUTE_LINKS, n = 0, i = 0;
	int link = network_link(c, side, uplink);
	for (int k = 0; k < server->n_uplinks[side]; k++) {
		if (network_link(c, side, server->first_uplink[side] + k) != link)
			continue;
		sum += own[k].capacity;
		n = own[k].n < least ? 1 : n + (own[k].n == least);
		least = own[k].n < least ? own[k].n : least;
	}
	for (int k = 0; k < server->n_uplinks[side]; k++) {
		if (network_link(c, side, server->first_uplink[side] + k) != link)
			continue;
		bool near = own[k].n == least;
		own[k].capacity = near ? sum * (i + 1) / n - sum * i / n : 0;
		i += near;
	}
}

/* Do links have room for them? */
static Status
uplinks_fit(const Cluster *c, int side, bool *good)
{
	int64_t *load;
	TRY(TEMP(c->ctx, load, c->topo->n_links));
	for (int i = 0; i < c->n_uplinks[side]; i++)
		for (int k = 0; k < c->uplink[side][i].n; k++)
			load[c->uplink[side][i].link[k]] += c->uplink[side][i].capacity * c->unit;
	for (int l = 0; l < c->topo->n_links; l++)
		*good = *good && load[l] <= c->topo->link[l].capacity;
	return OK;
}

/* Those without capacity go. */
static void
drop_uplinks(Cluster *c, int side)
{
	int n = 0;
	for (int s = 0; s < c->n_servers; s++) {
		struct cluster_server *server = &c->server[s];
		int first = server->first_uplink[side];
		server->first_uplink[side] = n;
		for (int i = first; i < first + server->n_uplinks[side]; i++)
			if (c->uplink[side][i].capacity > 0)
				c->uplink[side][n++] = c->uplink[side][i];
		server->n_uplinks[side] = n - server->first_uplink[side];
	}
	c->n_uplinks[side] = n;
}

Status
cluster_near_uplinks(Cluster *c)
{
	bool good = true;
	struct uplink *before[2];
	for (int side = 0; side < 2; side++) {
		TRY(TEMP(c->ctx, before[side], c->n_uplinks[side]));
		memcpy(before[side], c->uplink[side], (size_t)c->n_uplinks[side] * sizeof *before[side]);
		for (int s = 0; s < c->n_servers; s++)
			for (int i = 0; i < c->server[s].n_uplinks[side]; i++)
				level_group(c, side, &c->server[s], c->server[s].first_uplink[side] + i);
		TRY(uplinks_fit(c, side, &good));
	}
	for (int side = 0; side < 2; side++)
		if (good)
			drop_uplinks(c, side);
		else
			c->uplink[side] = before[side];
	return OK;
}
