/* Trees of hubs below leaf switches that are narrower than the uplinks of the servers below them. A tree enters the
 * servers below a leaf switch once, and one of these, another one in each tree, sends to the others there:
 *
 *     hub -> over the spine -> one server below each other leaf switch -> the other servers below it
 *     hub -> the other servers below its own leaf switch
 *
 * So a tree takes of a leaf switch what one hop takes. Where a server or its leaf switch would send more than it has
 * room for, as servers below a smaller leaf switch send less, others send instead, which have the data one hop later.
 *
 * A server has a level in a tree, by the hops that it takes to there. Other entries (unequal_copies.c) come from the
 * server of the hub, or from one of a lower level below the same leaf switch: so no rank has data from one that waits
 * for it. A server that has a leaf switch alone also sends to itself over it, from where a tree always enters it. */
#include "plan/pack/cluster/unequal_pieces.h"

#include <math.h>
#include <string.h>

/* Of an allreduce, turned, ranks of a server need not have equal parts of its NICs, as of one whose GPU is lost
 * (unequal_level.c): whole NICs make larger units. */
static Status
take_whole_nics(struct plan *p)
{
	Cluster *c = &p->c;
	int64_t unit = 0;
	bool good;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < c->n_uplinks[side]; i++)
			for (int k = 0; k < c->uplink[side][i].n; k++)
				unit = gcd64(p->topo->link[c->uplink[side][i].link[k]].capacity, unit);
	if (unit <= c->unit)
		return OK;
	TRY(cluster_round_uplinks(c, (Frac){ unit, 1 }, &good));
	return cluster_find_types(c);
}

Status
unequal_find_leaves(struct plan *p)
{
	const Cluster *c = &p->c;
	int *plane, *n_below, n_planes;
	TRY(TEMP_EACH(p->ctx, c->n_ends, plane, n_below));
	TRY(TEMP_EACH(p->ctx, c->n_servers, p->leaf, p->alone));
	bool good = c->n_networks == c->n_ends && c->n_ends > 1 && p->coll != ALLREDUCE
	    && cluster_find_planes(c, plane, &n_planes) && n_planes == 1;
	for (int s = 0; s < c->n_servers && good; s++) {
		p->leaf[s] = c->uplink[0][c->server[s].first_uplink[0]].end;
		n_below[p->leaf[s]]++;
		for (int side = 0; side < 2; side++)
			for (int i = 0; i < c->server[s].n_uplinks[side]; i++)
				good &= c->uplink[side][c->server[s].first_uplink[side] + i].end == p->leaf[s];
	}
	for (int s = 0; s < c->n_servers && good; s++)
		p->alone[s] = n_below[p->leaf[s]] == 1;
	if (!good)
		p->leaf = NULL;
	return good && p->turned && p->max_ratio == 0 ? take_whole_nics(p) : OK;
}

/* The links between the switches of two uplinks, of the hubs' side and the other. */
static const struct uplink *
route_of(const struct plan *p, int own, int uplink)
{
	const Cluster *c = &p->c;
	const struct uplink *a = &c->uplink[p->hub_side][own], *b = &c->uplink[p->leaf_side][uplink];
	return p->hub_side == UPLINK_OUT ? cluster_between(c, a, b) : cluster_between(c, b, a);
}

int64_t
unequal_room_between(const struct plan *p, int own, int uplink)
{
	int64_t room = INT64_MAX;
	const struct uplink *route = p->leaf ? route_of(p, own, uplink) : NULL;
	for (int i = 0; route && i < route->n; i++)
		room = p->link_room[route->link[i]] < room ? p->link_room[route->link[i]] : room;
	return room;
}

void
unequal_take_between(struct plan *p, int own, int uplink, int64_t weight)
{
	const struct uplink *route = p->leaf ? route_of(p, own, uplink) : NULL;
	for (int i = 0; route && i < route->n; i++)
		p->link_room[route->link[i]] -= weight;
}

/* What the links between other leaf switches and this one have room for, in units. */
static double
room_into(const struct plan *p, int s)
{
	const Cluster *c = &p->c;
	double room = 0;
	for (int t = 0; t < c->n_servers; t++) {
		const struct uplink *route = route_of(p, c->server[t].first_uplink[p->hub_side],
		    c->server[s].first_uplink[p->leaf_side]);
		double least = INFINITY;
		for (int i = 0; i < route->n; i++)
			least = fmin(least, (double)p->topo->link[route->link[i]].capacity / (double)c->unit);
		room = t != s && p->leaf[t] != p->leaf[s] ? fmax(room, least) : room;
	}
	return room;
}

bool
unequal_leaves_serve(const struct plan *p, double part)
{
	const Cluster *c = &p->c;
	const double rate = part * frac_double(p->rate), others = 1 - 1.0 / p->topo->n_ranks;
	bool have = false;
	for (int v = 0; v < p->topo->n_ranks && !have; v++) {
		int l = p->leaf_side == UPLINK_IN ? c->down[v] : c->up[v];
		have = l >= 0 && (double)p->topo->link[l].capacity < frac_double(p->rate) * others * (double)c->unit;
	}
	for (int s = 0; s < c->n_servers && have; s++) {
		double n_below = 0, room = 0;
		for (int t = 0; t < c->n_servers; t++)
			if (p->leaf[t] == p->leaf[s]) {
				n_below += c->server[t].n;
				room += (double)c->server[t].capacity[p->leaf_side];
			}
		have = fmin(room, room_into(p, s)) >= rate * (1 - n_below / p->topo->n_ranks);
	}
	return have;
}

/* Is this rank the only one of server s that trees of hub h always enter, or begin at? */
static bool
is_main(const struct plan *p, int h, int s, int rank)
{
	if (s == p->hub[h].server)
		return rank == p->hub[h].rank;
	const struct piece *piece = &p->piece[p->first[(size_t)h * (size_t)p->c.n_servers + (size_t)s]];
	return piece->next < 0 && rank == p->c.uplink[p->leaf_side][piece->uplink].rank;
}

bool
unequal_servers_send(const struct plan *p, int h, int from, int to)
{
	const int *level = p->level + (size_t)h * (size_t)p->c.n_servers;
	if (from == to)
		return p->alone[from];
	return from == p->hub[h].server || (p->leaf[from] == p->leaf[to] && level[from] < level[to]);
}

bool
unequal_may_send(const struct plan *p, int h, int own, int uplink)
{
	const Cluster *c = &p->c;
	int rank = c->uplink[p->hub_side][own].rank, from = c->of[rank];
	int to = c->of[c->uplink[p->leaf_side][uplink].rank];
	return unequal_servers_send(p, h, from, to) && (from != to || is_main(p, h, from, rank));
}

/* ---- which server sends to which ---- */

enum { MOST_LEVELS = 3 };

struct senders {
	struct plan *p;
	int *first;		/* below each leaf switch: the server that the current tree enters first */
	double *room, *load;	/* of each server: of its uplinks; what it sends, as a part of that */
};

/* From any uplink of one server to any of the other. */
static int64_t
room_to(const struct plan *p, int from, int to)
{
	return unequal_room_between(p, p->c.server[from].first_uplink[p->hub_side],
	    p->c.server[to].first_uplink[p->leaf_side]);
}

static void
take_to(struct plan *p, int from, int to, int64_t weight)
{
	unequal_take_between(p, p->c.server[from].first_uplink[p->hub_side],
	    p->c.server[to].first_uplink[p->leaf_side], weight);
}

/* Of one hop. */
static double
load_of(const struct senders *x, int h, int s)
{
	return (double)x->p->hub[h].length / x->room[s];
}

static void
set_sender(struct senders *x, int h, int s, int from)
{
	struct plan *p = x->p;
	int *sender = p->sender + (size_t)h * (size_t)p->c.n_servers;
	if (sender[s] >= 0) {
		take_to(p, sender[s], s, -p->hub[h].length);
		x->load[sender[s]] -= load_of(x, h, sender[s]);
	}
	take_to(p, from, s, p->hub[h].length);
	x->load[from] += load_of(x, h, from);
	sender[s] = from;
}

/* The server of the hub sends to one below each leaf switch, which sends to the others: that which sends least so
 * far. */
static void
choose_senders(struct senders *x, int h)
{
	const struct plan *p = x->p;
	const Cluster *c = &p->c;
	const int home = p->hub[h].server;
	memset(x->first, -1, (size_t)c->n_ends * sizeof *x->first);
	for (int s = 0; s < c->n_servers; s++) {
		int other = x->first[p->leaf[s]];
		if (other < 0 || x->load[s] < x->load[other])
			x->first[p->leaf[s]] = s;
	}
	x->first[p->leaf[home]] = home;
	for (int s = 0; s < c->n_servers; s++)
		if (s != home)
			set_sender(x, h, s, s == x->first[p->leaf[s]] ? home : x->first[p->leaf[s]]);
}

static void
set_levels(struct plan *p, int h)
{
	int *sender = p->sender + (size_t)h * (size_t)p->c.n_servers;
	int *level = p->level + (size_t)h * (size_t)p->c.n_servers;
	for (int s = 0; s < p->c.n_servers; s++) {
		level[s] = 0;
		for (int t = s; sender[t] >= 0; t = sender[t])
			level[s]++;
	}
}

/* Does server s, where its sender has too little room, or its leaf switch has, have trees of hub h from `from`
 * instead? */
static bool
may_relieve(const struct senders *x, int h, int s, int from, int height)
{
	const struct plan *p = x->p;
	const int *sender = p->sender + (size_t)h * (size_t)p->c.n_servers;
	const int *level = p->level + (size_t)h * (size_t)p->c.n_servers;
	bool may = from != sender[s] && level[from] + 1 + height <= MOST_LEVELS
	    && x->load[from] + load_of(x, h, from) <= 1 + 1e-9 && room_to(p, from, s) >= p->hub[h].length;
	for (int t = from; t >= 0 && may; t = sender[t])
		may = t != s;
	return may;
}

static void
relieve(struct senders *x, int h, int s)
{
	struct plan *p = x->p;
	const Cluster *c = &p->c;
	const int *sender = p->sender + (size_t)h * (size_t)c->n_servers;
	const int *level = p->level + (size_t)h * (size_t)c->n_servers;
	int best = -1, height = 0;
	if (sender[s] < 0 || (x->load[sender[s]] <= 1 + 1e-9 && room_to(p, sender[s], s) >= 0))
		return;
	for (int t = 0; t < c->n_servers; t++)
		for (int u = t; u >= 0; u = sender[u])
			height = u == s && level[t] - level[s] > height ? level[t] - level[s] : height;
	take_to(p, sender[s], s, -p->hub[h].length);
	for (int from = 0; from < c->n_servers; from++)
		if (may_relieve(x, h, s, from, height) && (best < 0 || level[from] < level[best]
		    || (level[from] == level[best] && x->load[from] < x->load[best])))
			best = from;
	take_to(p, sender[s], s, p->hub[h].length);
	if (best < 0)
		return;
	set_sender(x, h, s, best);
	set_levels(p, h);
}

static Status
find_senders(struct plan *p)
{
	const Cluster *c = &p->c;
	struct senders x = { .p = p };
	size_t n = (size_t)p->n_hubs * (size_t)c->n_servers;
	TRY(TEMP_EACH(p->ctx, c->n_servers, x.load, x.room));
	TRY(TEMP(p->ctx, x.first, c->n_ends));
	for (int i = 0; i < c->n_uplinks[p->hub_side]; i++)
		x.room[c->of[c->uplink[p->hub_side][i].rank]] += (double)p->room[p->hub_side][i];
	TRY(TEMP_EACH(p->ctx, n, p->sender, p->level));
	memset(p->sender, -1, n * sizeof *p->sender);
	for (int h = 0; h < p->n_hubs; h++) {
		choose_senders(&x, h);
		set_levels(p, h);
	}
	for (int h = 0; h < p->n_hubs; h++)
		for (int s = 0; s < c->n_servers && p->hub[h].length > 0; s++)
			relieve(&x, h, s);
	return OK;
}

/* ---- their entries ---- */

/* Of a server, the uplink with the most room, but one of this rank where that has room for `length`. */
static int
widest_uplink(const struct plan *p, Side side, int s, int rank, int64_t length)
{
	const struct cluster_server *server = &p->c.server[s];
	int best = server->first_uplink[side];
	for (int i = best; i < server->first_uplink[side] + server->n_uplinks[side]; i++) {
		if (p->c.uplink[side][i].rank == rank && p->room[side][i] >= length)
			return i;
		best = p->room[side][i] > p->room[side][best] ? i : best;
	}
	return best;
}

/* From server `from`, where the trees have rank `rank` as an entry. */
static Status
enter(struct plan *p, int h, int from, int rank, int s, bool *good)
{
	for (int64_t left = p->hub[h].length, part; left > 0 && *good; left -= part) {
		int own = widest_uplink(p, p->hub_side, from, rank, left);
		int uplink = widest_uplink(p, p->leaf_side, s, -1, left);
		int64_t out = p->room[p->hub_side][own], in = p->room[p->leaf_side][uplink];
		int64_t room = out < in ? out : in;
		part = room <= 0 || room > left ? left : room;
		*good = unequal_joined(p, own, uplink);
		if (*good)
			TRY(unequal_add_piece(p, h, s, uplink, own, part));
	}
	return OK;
}

static Status
enter_all(struct plan *p, int h, int level, bool *good)
{
	const struct hub *hub = &p->hub[h];
	size_t at = (size_t)h * (size_t)p->c.n_servers;
	for (int s = 0; s < p->c.n_servers && hub->length > 0 && *good; s++) {
		int from = p->sender[at + (size_t)s];
		if (p->level[at + (size_t)s] != level)
			continue;
		int rank = from == hub->server ? hub->rank
		    : p->c.uplink[p->leaf_side][p->piece[p->first[at + (size_t)from]].uplink].rank;
		TRY(enter(p, h, from, rank, s, good));
	}
	return OK;
}

Status
unequal_fill_leaves(struct plan *p, double times, bool *good)
{
	const Cluster *c = &p->c;
	const double most = ldexp(1, 60), least = 1e-9;
	size_t n = (size_t)p->n_hubs * (size_t)c->n_servers;
	TRY(TEMP_EACH(p->ctx, n, p->first, p->last));
	memset(p->first, -1, n * sizeof *p->first);
	memset(p->last, -1, n * sizeof *p->last);
	TRY(TEMP(p->ctx, p->link_room, p->topo->n_links));
	for (int l = 0; l < p->topo->n_links; l++) {
		double room = (double)p->topo->link[l].capacity * times + least;
		p->link_room[l] = (int64_t)fmin(room, most);
	}
	TRY(find_senders(p));
	for (int level = 1; level <= MOST_LEVELS; level++)
		for (int h = 0; h < p->n_hubs && *good; h++)
			TRY(enter_all(p, h, level, good));
	return OK;
}
