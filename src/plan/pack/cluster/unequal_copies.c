/* Servers that a tree enters over several uplinks. Where a switch, and not the network, limits the trees of unequal.c,
 * uplinks have room for more than one entry of a tree:
 *
 *     8 servers of 72 GPUs, one of which lost a GPU, with 900 GB/s of each GPU to the switch of its server and 50 GB/s
 *     to the network: a GPU receives 574 parts of the buffer at 950 GB/s, so that of each part 50 / 950 of the GPUs
 *     of a server, 3.8, have it from the network, and send it to 18 others each
 *
 * What a GPU must receive beyond the room of its switch comes from the network, and of an allreduce, for which links
 * count in both directions, what a server cannot pass on inside, too. Such quotas are filled uplink by uplink, each
 * from the hubs whose own uplinks have most room left, in whole trees: the largest first, as in a matrix of zeros and
 * ones with given sums (Gale 1957, Ryser 1957). What is left of a whole tree goes first, between uplinks that have as
 * much of it left. An uplink that its own hub cannot use, as those of other rails, has the data of others of its
 * server. */
#include "base/array.h"
#include "plan/pack/cluster/unequal_pieces.h"

#include <string.h>

enum { MOST_TRIES = 1 << 21 };	/* to exchange a copy for an uplink */

struct quotas {
	struct plan *p;
	int64_t all, whole;	/* weight of all hubs; of the longest */
	int64_t *length;	/* of each rank: of its own hub */
	int *hub_of;		/* of each rank; -1: none */
	int *first_hub, *hub;	/* by server */
	int64_t *enters;	/* of each rank: what it has from the network */
	int64_t *quota;		/* of each uplink to the leaves: what else is to enter there */
	int *plane;		/* of each switch of a network */
	int64_t *out;		/* room of each uplink of the hubs */
	bool *taken;		/* hub * n_ranks + rank: it enters there */
	int *n_copies;		/* of each hub */
	/* Below narrow leaf switches, of servers [from * n_servers + to]: hubs of which copies may lead from one to the
	 * other; those that were added so. */
	int *first_of, *hub_of_pair, *n_added;
};

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
above_zero(int64_t a)
{
	return a > 0 ? a : 0;
}

int64_t
unequal_switch_room(const struct plan *p, int rank, bool out)
{
	const Cluster *c = &p->c;
	if (p->turned)
		return p->switch_room[out ? UPLINK_OUT : UPLINK_IN][rank];
	if (c->up[rank] < 0)
		return 0;
	int64_t up = p->topo->link[c->up[rank]].capacity, down = p->topo->link[c->down[rank]].capacity;
	int64_t capacity = p->coll == ALLREDUCE ? least(up, down) : out == (p->coll != REDUCESCATTER) ? up : down;
	Wide room = (Wide)capacity * p->times / c->unit;
	return room >> 60 != 0 ? INT64_C(1) << 60 : (int64_t)room;
}

/* ---- what is known of hubs and pieces ---- */

static Status
list_hubs(struct quotas *q)
{
	const struct plan *p = q->p;
	int n = p->topo->n_ranks, n_servers = p->c.n_servers;
	TRY(TEMP(p->ctx, q->length, n));
	TRY(TEMP(p->ctx, q->hub_of, n));
	TRY(TEMP(p->ctx, q->first_hub, n_servers + 1));
	TRY(TEMP(p->ctx, q->hub, p->n_hubs));
	TRY(TEMP(p->ctx, q->n_copies, p->n_hubs));
	memset(q->hub_of, -1, (size_t)n * sizeof *q->hub_of);
	for (int h = 0; h < p->n_hubs; h++) {
		q->all += p->hub[h].length;
		q->whole = q->whole > p->hub[h].length ? q->whole : p->hub[h].length;
		q->length[p->hub[h].rank] += p->hub[h].length;
		q->hub_of[p->hub[h].rank] = h;
		q->first_hub[p->hub[h].server + 1]++;
	}
	for (int s = 0; s < n_servers; s++)
		q->first_hub[s + 1] += q->first_hub[s];
	for (int h = p->n_hubs - 1; h >= 0; h--)
		q->hub[--q->first_hub[p->hub[h].server + 1]] = h;
	for (int s = 0; s < n_servers; s++)
		q->first_hub[s] = q->first_hub[s + 1];
	q->first_hub[n_servers] = p->n_hubs;
	return OK;
}

/* Hubs by pairs of servers. */
static Status
list_pairs(struct quotas *q)
{
	const struct plan *p = q->p;
	int n = p->c.n_servers, n_pairs = n * n;
	TRY(TEMP(p->ctx, q->first_of, n_pairs + 1));
	TRY(TEMP(p->ctx, q->n_added, n_pairs));
	for (int h = 0; h < p->n_hubs; h++)
		for (int at = 0; at < n_pairs; at++)
			q->first_of[at] += unequal_servers_send(p, h, at / n, at % n);
	for (int at = 0; at < n_pairs; at++)
		q->first_of[at + 1] += q->first_of[at];
	TRY(TEMP(p->ctx, q->hub_of_pair, q->first_of[n_pairs]));
	for (int h = p->n_hubs - 1; h >= 0; h--)
		for (int at = 0; at < n_pairs; at++)
			if (unequal_servers_send(p, h, at / n, at % n))
				q->hub_of_pair[--q->first_of[at]] = h;
	return OK;
}

static Status
list_pieces(struct quotas *q)
{
	const struct plan *p = q->p;
	const struct uplink *leaf = p->c.uplink[p->leaf_side];
	size_t n = (size_t)p->topo->n_ranks, n_pairs = (size_t)p->n_hubs * (size_t)p->c.n_servers;
	TRY(TEMP(p->ctx, q->enters, n));
	TRY(TEMP(p->ctx, q->taken, n * (size_t)p->n_hubs));
	for (size_t at = 0; at < n_pairs; at++) {
		int64_t begin = 0;
		for (int i = p->first[at]; i >= 0; begin = p->piece[i].end, i = p->piece[i].next) {
			int rank = leaf[p->piece[i].uplink].rank;
			q->enters[rank] += p->piece[i].end - begin;
			q->taken[at / (size_t)p->c.n_servers * n + (size_t)rank] = true;
		}
	}
	for (int h = 0; h < p->n_hubs; h++)
		q->taken[(size_t)h * n + (size_t)p->hub[h].rank] = true;
	return OK;
}

/* ---- quotas ---- */

/* What rank v must have from the network, beyond what enters there. */
static int64_t
need_of(const struct quotas *q, int v)
{
	return above_zero(q->all - q->length[v] - q->enters[v] - unequal_switch_room(q->p, v, false));
}

/* What a server must have from the network besides, as it cannot pass it on over its switch. */
static int64_t
lack_of(const struct quotas *q, const struct cluster_server *server)
{
	const struct plan *p = q->p;
	Wide inside = 0, room = 0, lack;
	for (int i = 0; i < server->n; i++) {
		int v = p->c.rank[server->first + i];
		inside += q->all - q->length[v] - q->enters[v];
		room += unequal_switch_room(p, v, true);
	}
	lack = inside - (p->coll == ALLREDUCE ? room / 2 : room);
	return lack > 0 && lack >> 60 == 0 ? (int64_t)lack : 0;
}

/* Room of an uplink for what enters. */
static int64_t
room_of(const struct plan *p, int uplink)
{
	return above_zero(p->room[p->leaf_side][uplink]);
}

/* Up to `more` for the uplinks of a server, in proportion to their rooms. */
static void
divide_quota(struct quotas *q, const struct cluster_server *server, int64_t more)
{
	const struct plan *p = q->p;
	int first = server->first_uplink[p->leaf_side], n = server->n_uplinks[p->leaf_side];
	Wide room = 0;
	for (int i = first; i < first + n; i++)
		room += room_of(p, i) - q->quota[i];
	for (int i = first; i < first + n && room > 0; i++) {
		int64_t left = room_of(p, i) - q->quota[i];
		int64_t part = least(left, (int64_t)(((Wide)more * left + room - 1) / room));
		q->quota[i] += part;
		more -= part;
		room -= left;
	}
}

/* Of an allreduce: half of each uplink, as the other half sends, but no more than is wanted in all; false: this is
 * less. */
static bool
take_halves(struct quotas *q, const struct cluster_server *server, int64_t want)
{
	const struct plan *p = q->p;
	int first = server->first_uplink[p->leaf_side], n = server->n_uplinks[p->leaf_side];
	int64_t sum = 0;
	for (int i = first; i < first + n; i++) {
		int64_t entered = q->enters[p->c.uplink[p->leaf_side][i].rank];
		int64_t half = p->c.uplink[p->leaf_side][i].capacity * p->times / 2 - entered;
		q->quota[i] = above_zero(least(half, room_of(p, i)));
		sum += q->quota[i];
	}
	if (sum < want)
		memset(q->quota + first, 0, (size_t)n * sizeof *q->quota);
	for (int whole = 0; whole < 2 && sum > want; whole++)
		for (int i = first; i < first + n && sum > want; i++) {
			int64_t part = whole ? q->quota[i] : q->quota[i] % q->whole;
			part = least(part, sum - want);
			q->quota[i] -= part;
			sum -= part;
		}
	return sum == want;
}

static Status
set_quotas(struct quotas *q)
{
	const struct plan *p = q->p;
	TRY(TEMP(p->ctx, q->quota, p->c.n_uplinks[p->leaf_side]));
	for (int s = 0; s < p->c.n_servers; s++) {
		const struct cluster_server *server = &p->c.server[s];
		int64_t lack = lack_of(q, server), sum = 0;
		if (p->coll == ALLREDUCE && take_halves(q, server, lack))
			continue;
		for (int i = 0; i < server->n_uplinks[p->leaf_side]; i++) {
			int at = server->first_uplink[p->leaf_side] + i;
			int v = p->c.uplink[p->leaf_side][at].rank;
			int64_t part = least(need_of(q, v), room_of(p, at));
			q->quota[at] = part;
			q->enters[v] += part;
			sum += part;
		}
		divide_quota(q, server, above_zero(lack - sum));
	}
	return OK;
}

/* From uplink `from` to uplink `to` of its server, until plane `from` has no more quotas than room to leave, or `to` no
 * more room, in multiples of `unit`: of an allreduce, where what does not enter has room to leave. */
static void
move_quota(struct quotas *q, int64_t *excess, int from, int to, int64_t unit)
{
	const struct uplink *uplink = q->p->c.uplink[q->p->leaf_side];
	int64_t *over = &excess[q->plane[uplink[from].end]], *under = &excess[q->plane[uplink[to].end]];
	if (*over <= 0 || *under >= 0)
		return;
	int64_t part = least(q->quota[from], room_of(q->p, to) - q->quota[to]);
	part = least(part, least((*over + 1) / 2, -*under / 2));
	part -= part % unit;
	if (part <= 0)
		return;
	q->quota[from] -= part;
	q->out[from] += part;
	*over -= 2 * part;
	q->quota[to] += part;
	q->out[to] -= part;
	*under += 2 * part;
}

/* Copies enter and leave on one plane: quotas of a plane that has less room to leave go to others of the server, in
 * whole trees first. */
static Status
balance_planes(struct quotas *q)
{
	const struct plan *p = q->p;
	const Cluster *c = &p->c;
	const struct uplink *uplink = c->uplink[p->leaf_side];
	const int64_t units[] = { q->whole, 1 };
	int n_planes;
	int64_t *excess;
	TRY(TEMP(p->ctx, q->plane, c->n_ends));
	TRY(TEMP(p->ctx, excess, c->n_ends));
	if (!cluster_find_planes(c, q->plane, &n_planes))
		return OK;
	for (int i = 0; i < c->n_uplinks[0]; i++)
		excess[q->plane[uplink[i].end]] += q->quota[i] - above_zero(q->out[i]);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < c->n_uplinks[0]; i++) {
			const struct cluster_server *server = &c->server[c->of[uplink[i].rank]];
			for (int j = 0; j < server->n_uplinks[0]; j++)
				move_quota(q, excess, i, server->first_uplink[0] + j, units[k]);
		}
	return OK;
}

/* ---- copies ---- */

/* From the server of one uplink to that of another: an index of first_of. */
static size_t
pair_of(const struct plan *p, int own, int uplink)
{
	const Cluster *c = &p->c;
	int from = c->of[c->uplink[p->hub_side][own].rank], to = c->of[c->uplink[p->leaf_side][uplink].rank];
	return (size_t)from * (size_t)c->n_servers + (size_t)to;
}

static Status
add_copy(struct quotas *q, int h, int own, int uplink, int64_t weight)
{
	struct plan *p = q->p;
	int64_t end = p->hub[h].length;
	TRY(GROW_TEMP(p->ctx, p->copy, p->n_copies, p->copy_room));
	p->copy[p->n_copies] = (struct copy){ .hub = h, .begin = end - weight, .uplink = uplink, .own = own,
	    .next = p->first_copy[h] };
	p->first_copy[h] = p->n_copies++;
	q->taken[(size_t)h * (size_t)p->topo->n_ranks + (size_t)p->c.uplink[p->leaf_side][uplink].rank] = true;
	q->n_copies[h]++;
	if (p->leaf)
		q->n_added[pair_of(p, own, uplink)]++;
	unequal_take_between(p, own, uplink, weight);
	q->quota[uplink] -= weight;
	q->out[own] -= weight;
	return OK;
}

/* Or without trees. */
static bool
is_taken(const struct quotas *q, int h, int uplink)
{
	const struct plan *p = q->p;
	return p->hub[h].length == 0 || q->taken[(size_t)h * (size_t)p->topo->n_ranks
	    + (size_t)p->c.uplink[p->leaf_side][uplink].rank];
}

/* May trees of hub h, which are no shorter than `length`, have a copy that goes over uplink `own` to `uplink`? */
static bool
may_go(const struct quotas *q, int h, int own, int uplink, int64_t length)
{
	return q->p->hub[h].length >= length && !is_taken(q, h, uplink)
	    && (!q->p->leaf || unequal_may_send(q->p, h, own, uplink));
}

/* Below narrow leaf switches: one hub after the other, so that trees have about as many copies between two servers. */
static int
next_hub(const struct quotas *q, int own, int uplink, int64_t length)
{
	size_t at = pair_of(q->p, own, uplink);
	int n = q->first_of[at + 1] - q->first_of[at];
	for (int i = 0; i < n; i++) {
		int h = q->hub_of_pair[q->first_of[at] + (q->n_added[at] + i) % n];
		if (may_go(q, h, own, uplink, length))
			return h;
	}
	return -1;
}

/* The hub whose data goes over this uplink of its server: that of its rank, else the one with the fewest copies; of
 * those that are no shorter than `length`. -1: none. */
static int
hub_over(const struct quotas *q, int own, int uplink, int64_t length, bool relays)
{
	const struct plan *p = q->p;
	int v = p->c.uplink[p->hub_side][own].rank, s = p->c.of[v], best = -1;
	int direct = q->hub_of[v];
	if (direct >= 0 && may_go(q, direct, own, uplink, length))
		return direct;
	if (p->leaf)
		return relays ? next_hub(q, own, uplink, length) : -1;
	if (!relays || s == p->c.of[p->c.uplink[p->leaf_side][uplink].rank])
		return -1;
	for (int i = q->first_hub[s]; i < q->first_hub[s + 1]; i++) {
		int h = q->hub[i];
		if (may_go(q, h, own, uplink, length) && (best < 0 || q->n_copies[h] < q->n_copies[best]))
			best = h;
	}
	return best;
}

static bool
is_below(const struct plan *p, int own, int uplink)
{
	return p->c.uplink[p->hub_side][own].end == p->c.uplink[p->leaf_side][uplink].end;
}

/* The uplink with most room for copies, with just this beyond whole trees; 0: with any. *h: of what hub. */
static int
widest_out(const struct quotas *q, int uplink, int64_t weight, bool relays, bool below, int *h)
{
	const struct plan *p = q->p;
	int64_t best = 0;
	int own = -1, n = p->c.n_uplinks[p->hub_side];
	for (int i = 0; i < n; i++) {
		int o = (uplink + 1 + i) % n;
		if (q->out[o] <= best || !unequal_joined(p, o, uplink) || unequal_room_between(p, o, uplink) <= 0
		    || (below && !is_below(p, o, uplink)))
			continue;
		int hub = hub_over(q, o, uplink, weight, relays);
		if (hub < 0 || (weight > 0 && q->out[o] % p->hub[hub].length != weight % p->hub[hub].length))
			continue;
		best = q->out[o];
		own = o;
		*h = hub;
	}
	return own;
}

/* One more copy into the uplink, of at most `most`: exact: of just that and what is left of an uplink of the hubs; else
 * of what there is, over uplinks of hubs first. *found: false: there is none. */
static Status
fill_quota(struct quotas *q, int uplink, int64_t most, bool exact, bool *found)
{
	int h = -1, own = -1;
	for (int below = q->p->leaf != NULL; below >= 0 && own < 0; below--) {
		if (exact)
			own = widest_out(q, uplink, most, false, below, &h);
		for (int relays = 0; relays < 2 && own < 0; relays++)
			own = widest_out(q, uplink, 0, relays, below, &h);
	}
	*found = own >= 0;
	if (own < 0)
		return OK;
	most = least(most, unequal_room_between(q->p, own, uplink));
	return add_copy(q, h, own, uplink, least(most, least(q->p->hub[h].length, q->out[own])));
}

/* Uplinks own and uplink have room, but not for each other: another copy, k, makes room for both.
 *
 *     own ->         copy.uplink          own -> copy.uplink
 *     copy.own -> copy.uplink             copy.own -> uplink
 *
 * *found: false: it cannot. */
static Status
exchange(struct quotas *q, int own, int uplink, int k, bool *found)
{
	struct plan *p = q->p;
	const struct copy copy = p->copy[k];
	const int64_t weight = p->hub[copy.hub].length - copy.begin;
	int64_t part = least(least(q->quota[uplink], q->out[own]), weight);
	int from, to;
	*found = part > 0 && copy.own != own && copy.uplink != uplink && unequal_joined(p, own, copy.uplink)
	    && unequal_joined(p, copy.own, uplink) && (from = hub_over(q, own, copy.uplink, 0, true)) >= 0
	    && (to = hub_over(q, copy.own, uplink, 0, true)) >= 0;
	if (!*found)
		return OK;
	part = least(part, least(p->hub[from].length, p->hub[to].length));
	unequal_take_between(p, copy.own, copy.uplink, -part);
	*found = unequal_room_between(p, own, copy.uplink) >= part;
	unequal_take_between(p, own, copy.uplink, part);
	*found = *found && unequal_room_between(p, copy.own, uplink) >= part;
	unequal_take_between(p, own, copy.uplink, -part);
	if (!*found) {
		unequal_take_between(p, copy.own, copy.uplink, part);
		return OK;
	}
	p->copy[k].begin += part;
	q->quota[copy.uplink] += part;
	q->out[copy.own] += part;
	TRY(add_copy(q, from, own, copy.uplink, part));
	return add_copy(q, to, copy.own, uplink, part);
}

/* What the last uplinks miss, when what is left is at uplinks of their own servers. */
static Status
exchange_all(struct quotas *q, int uplink)
{
	const struct plan *p = q->p;
	int n_tries = 0;
	bool found = true;
	while (q->quota[uplink] > 0 && found) {
		found = false;
		for (int own = 0, n = p->n_copies; own < p->c.n_uplinks[p->hub_side] && !found; own++)
			for (int k = 0; k < n && q->out[own] > 0 && !found && n_tries < MOST_TRIES; k++, n_tries++)
				TRY(exchange(q, own, uplink, k, &found));
	}
	return OK;
}

/* By which part of the rate quotas are more than what hubs have room for, about: rooms are in proportion to it. */
static double
excess_of(const struct quotas *q)
{
	const struct plan *p = q->p;
	double excess = 0, room = 0;
	for (int i = 0; i < p->c.n_uplinks[p->leaf_side]; i++)
		excess += (double)q->quota[i];
	for (int o = 0; o < p->c.n_uplinks[p->hub_side]; o++) {
		excess -= q->out[o] > 0 ? (double)q->out[o] : 0;
		room += (double)p->c.uplink[p->hub_side][o].capacity * (double)p->times;
	}
	for (int v = 0; v < p->topo->n_ranks; v++)
		room += (double)unequal_switch_room(p, v, true);
	return excess / room;
}

Status
unequal_add_copies(struct plan *p, double *excess)
{
	struct quotas q = { .p = p };
	int n = p->c.n_uplinks[p->leaf_side];
	bool found;
	p->n_copies = 0;
	TRY(TEMP(p->ctx, p->first_copy, p->n_hubs));
	memset(p->first_copy, -1, (size_t)p->n_hubs * sizeof *p->first_copy);
	*excess = 0;
	TRY(list_hubs(&q));
	if (q.whole == 0)
		return OK;
	TRY(list_pieces(&q));
	if (p->leaf)
		TRY(list_pairs(&q));
	TRY(set_quotas(&q));
	TRY(TEMP(p->ctx, q.out, p->c.n_uplinks[p->hub_side]));
	for (int o = 0; o < p->c.n_uplinks[p->hub_side]; o++)
		q.out[o] = p->room[p->hub_side][o] - (p->coll == ALLREDUCE ? q.quota[o] : 0);
	*excess = excess_of(&q);
	if (p->even)
		TRY(balance_planes(&q));
	for (int i = 0; i < n; i++)
		if (q.quota[i] % q.whole > 0)
			TRY(fill_quota(&q, i, q.quota[i] % q.whole, true, &found));
	for (int i = 0; i < n; i++)
		for (found = true; q.quota[i] > 0 && found;)
			TRY(fill_quota(&q, i, q.quota[i], false, &found));
	for (int i = 0; i < n; i++)
		TRY(exchange_all(&q, i));
	return OK;
}
