/* Hops of trees of one length over the uplinks of a cluster. A server sends to each other one over every rail as often
 * as to any, in rounds of shifts; where an uplink has room for an odd number, half of the servers of its rail send to
 * the other half at last.
 *
 *     5 servers, room for 9 on each uplink    rail 0    shifts 1 2 3 4, and 0 -> 1, 2 -> 3
 *                                             rail 1    shifts 1 2 3 4, and 1 -> 2, 3 -> 4
 *
 * Each tree of a hub enters each other server, so that of n servers one with h hubs sends (n - 1) h times at least. A
 * server that lost GPUs and their uplinks has less hubs than it would have with as many hops in as out: some of its
 * hops turn, and for each it has a hub less, and the other server one more, which leaves both as many hubs and entries
 * together. Then hops of a rail exchange their ends where a server sends another one less often than it has hubs.
 *
 * A rail has an uplink of each server: those to a network, the first of each, the second of each, and so on. */
#include "plan/pack/cluster/unequal_hops.h"

#include <string.h>

enum { LOOKS_MOST = 1 << 23 };	/* at other hops, for ends to exchange: 10 ms */

/* ---- rails ---- */

/* Which uplink of its server to its network it is. */
static int
place_of(const Cluster *c, int uplink)
{
	const struct uplink *own = &c->uplink[0][uplink];
	int place = 0;
	for (int i = c->server[c->of[own->rank]].first_uplink[0]; i < uplink; i++)
		place += c->uplink[0][i].network == own->network;
	return place;
}

Status
unequal_find_rails(const struct plan *p, struct rails *out)
{
	const Cluster *c = &p->c;
	int n = c->n_uplinks[0], *key, *count, most = 0;
	TRY(TEMP(p->ctx, key, n));
	for (int i = 0; i < n; i++) {
		key[i] = place_of(c, i);
		most = key[i] >= most ? key[i] + 1 : most;
	}
	*out = (struct rails){ .n = c->n_networks * most };
	TRY(TEMP(p->ctx, count, out->n));
	TRY(TEMP(p->ctx, out->first, out->n + 1));
	TRY(TEMP_EACH(p->ctx, n, out->uplink, out->active));
	for (int i = 0; i < n; i++) {
		key[i] += c->uplink[0][i].network * most;
		out->first[key[i] + 1]++;
	}
	for (int r = 0; r < out->n; r++)
		out->first[r + 1] += out->first[r];
	for (int i = 0; i < n; i++)
		out->uplink[out->first[key[i]] + count[key[i]]++] = i;
	return OK;
}

/* Uplinks of a rail whose room is odd: every other one sends. Returns their number. */
static int
odd_uplinks(const struct rails *rails, int rail, const int64_t *room)
{
	int n = 0;
	for (int k = rails->first[rail]; k < rails->first[rail + 1]; k++)
		if (room[rails->uplink[k]] % 2)
			rails->active[n++] = rails->uplink[k];
	return n;
}

/* Pair i of n / 2: of the other half one that changes from rail to rail. */
static int
odd_sender(const struct rails *rails, int rail, int n, int i)
{
	return rails->active[(2 * i + rail) % n];
}

static int
odd_receiver(const struct rails *rails, int rail, int n, int i)
{
	return rails->active[(2 * ((i + rail / 2) % (n / 2)) + 1 + rail) % n];
}

void
unequal_rails_enter(const struct rails *rails, const int64_t *room, int64_t *enters)
{
	for (int r = 0; r < rails->n; r++) {
		int64_t most = 0, second = 0;	/* layers */
		for (int k = rails->first[r]; k < rails->first[r + 1]; k++) {
			int64_t half = room[rails->uplink[k]] / 2;
			second = half > most ? most : half > second ? half : second;
			most = half > most ? half : most;
		}
		for (int k = rails->first[r]; k < rails->first[r + 1]; k++) {
			int64_t half = room[rails->uplink[k]] / 2;
			enters[rails->uplink[k]] = half < second ? half : second;
		}
		int n = odd_uplinks(rails, r, room);
		for (int i = 0; i < n / 2; i++)
			enters[odd_receiver(rails, r, n, i)]++;
	}
}

/* ---- hops over them ---- */

/* From the server of one uplink to that of another one: an index of n_between. */
int
unequal_between(const struct plan *p, int from, int to)
{
	const Cluster *c = &p->c;
	return c->of[c->uplink[0][from].rank] * c->n_servers + c->of[c->uplink[0][to].rank];
}

static void
put(struct hops *x, int rail, int from, int to)
{
	x->hop[x->n++] = (struct hop){ from, to, rail, -1 };
	x->n_between[unequal_between(x->p, from, to)]++;
}

/* Round `round` of a rail: each shift once, of the uplinks that have room. Returns whether there may be another one. */
static bool
put_round(struct hops *x, int rail, int round)
{
	const int *uplink = x->rails->uplink + x->rails->first[rail];
	int n = x->rails->first[rail + 1] - x->rails->first[rail], n_active = n, *active = x->rails->active;
	for (int i = 0; i + 1 < n && n_active > 1; i++) {
		n_active = 0;
		for (int k = 0; k < n; k++)
			if (x->room[uplink[k]] / 2 > (int64_t)round * (n - 1) + i)
				active[n_active++] = uplink[k];
		for (int k = 0; k < n_active && n_active > 1; k++)
			put(x, rail, active[k], active[(k + 1 + (i + n / 2 * rail) % (n_active - 1)) % n_active]);
	}
	return n > 1 && n_active > 1;
}

/* Rounds of all rails, one after the other. */
static void
put_all(struct hops *x)
{
	bool more = true;
	for (int round = 0; more; round++) {
		more = false;
		for (int r = 0; r < x->rails->n; r++)
			more |= put_round(x, r, round);
	}
	for (int r = 0; r < x->rails->n; r++) {
		int n = odd_uplinks(x->rails, r, x->room);
		for (int i = 0; i < n / 2; i++)
			put(x, r, odd_sender(x->rails, r, n, i), odd_receiver(x->rails, r, n, i));
	}
}

Status
unequal_put_hops(const struct plan *p, const struct rails *rails, const int64_t *room, struct hops *out)
{
	size_t n_pairs = (size_t)p->c.n_servers * (size_t)p->c.n_servers;
	int64_t n = 0;
	*out = (struct hops){ .p = p, .rails = rails, .room = room };
	for (int i = 0; i < p->c.n_uplinks[0]; i++)
		n += (room[i] + 1) / 2;
	TRY(TEMP(p->ctx, out->hop, n));
	TRY(TEMP(p->ctx, out->n_between, n_pairs));
	put_all(out);
	return OK;
}

/* ---- turns ---- */

/* By how many hops server s sends less often than its hubs need. */
static int64_t
lack_of(const struct hops *x, const int64_t *hubs, int s)
{
	int n_servers = x->p->c.n_servers;
	int64_t lack = (n_servers - 1) * hubs[s];
	for (int to = 0; to < n_servers; to++)
		lack -= x->n_between[s * n_servers + to];
	return lack;
}

/* Of the hops of server s the one to turn: over the uplink of which fewest are turned, to the server that lacks least
 * and can have a hub more. -1: none. */
static int
hop_to_turn(const struct hops *x, const int64_t *lack, const int *n_turned, int s)
{
	int n_servers = x->p->c.n_servers, best = -1;
	for (int i = 0; i < x->n; i++) {
		int at = unequal_between(x->p, x->hop[i].from, x->hop[i].to), to = at % n_servers;
		if (at / n_servers != s || lack[to] + n_servers - 2 > 0)
			continue;
		int less = best < 0 ? 1 : n_turned[x->hop[best].from] - n_turned[x->hop[i].from];
		int other = best < 0 ? 0 : unequal_between(x->p, x->hop[best].from, x->hop[best].to) % n_servers;
		if (less > 0 || (less == 0 && lack[to] < lack[other]))
			best = i;
	}
	return best;
}

Status
unequal_turn_hops(struct hops *x, int64_t *hubs)
{
	const struct plan *p = x->p;
	int n_servers = p->c.n_servers, *n_turned, i;
	int64_t *lack;
	TRY(TEMP(p->ctx, n_turned, p->c.n_uplinks[0]));
	TRY(TEMP(p->ctx, lack, n_servers));
	for (int s = 0; s < n_servers; s++)
		lack[s] = lack_of(x, hubs, s);
	for (int s = 0; s < n_servers && n_servers > 2; s++)
		while (lack[s] > 0 && hubs[s] > 0 && (i = hop_to_turn(x, lack, n_turned, s)) >= 0) {
			struct hop *hop = &x->hop[i];
			int from = hop->from, to = p->c.of[p->c.uplink[0][hop->to].rank];
			x->n_between[s * n_servers + to]--;
			x->n_between[to * n_servers + s]++;
			n_turned[from]++;
			hop->from = hop->to;
			hop->to = from;
			hubs[s]--;
			hubs[to]++;
			lack[s] -= n_servers - 2;
			lack[to] += n_servers - 2;
		}
	return OK;
}

void
unequal_hops_enter(const struct hops *x, int64_t *enters)
{
	memset(enters, 0, (size_t)x->p->c.n_uplinks[0] * sizeof *enters);
	for (int i = 0; i < x->n; i++)
		enters[x->hop[i].to]++;
}

/* ---- exchanges ---- */

/* How many hops more than hubs there are between two servers. */
static int64_t
spare(const struct hops *x, const int64_t *hubs, int at)
{
	return x->n_between[at] - hubs[at / x->p->c.n_servers];
}

/* Two hops of a rail exchange their ends, if that leaves both pairs of servers as many as they have hubs: then one more
 * leads from server `own` to s. */
static bool
exchange_ends(struct hops *x, const int64_t *hubs, struct hop *hop, int own, int s)
{
	int n_servers = x->p->c.n_servers, to = unequal_between(x->p, hop->from, hop->to) % n_servers;
	if (spare(x, hubs, own * n_servers + to) <= 0)
		return false;
	x->looks += x->n;
	for (int i = 0; i < x->n; i++) {
		struct hop *other = &x->hop[i];
		int at = unequal_between(x->p, other->from, other->to), from = at / n_servers, end = other->to;
		if (other->rail != hop->rail || at % n_servers != s || from == own || from == to
		    || spare(x, hubs, at) <= 0)
			continue;
		x->n_between[own * n_servers + to]--;
		x->n_between[at]--;
		other->to = hop->to;
		hop->to = end;
		x->n_between[from * n_servers + to]++;
		x->n_between[own * n_servers + s]++;
		return true;
	}
	return false;
}

void
unequal_exchange_hops(struct hops *x, const int64_t *hubs)
{
	int n_servers = x->p->c.n_servers;
	for (int at = 0; at < n_servers * n_servers; at++) {
		int own = at / n_servers, s = at % n_servers;
		for (int i = 0; i < x->n && x->looks < LOOKS_MOST && own != s && spare(x, hubs, at) < 0; i++)
			if (unequal_between(x->p, x->hop[i].from, x->hop[i].to) / n_servers == own)
				exchange_ends(x, hubs, &x->hop[i], own, s);
	}
}
