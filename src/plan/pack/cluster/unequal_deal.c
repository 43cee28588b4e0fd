/* Entries of trees of one length. A server sends to each other one over every rail as often as to any, in rounds of
 * shifts; where an uplink has room for an odd number, half of the servers of its rail send to the other half at last.
 * What a server sends to another one is dealt to its hubs in order: each enters over a few rails, the same in all
 * servers, so that few GPUs of its own server pass its data on.
 *
 *     5 servers, room for 9 on each uplink    rail 0    shifts 1 2 3 4, and 0 -> 1, 2 -> 3
 *                                             rail 1    shifts 1 2 3 4, and 1 -> 2, 3 -> 4
 *     server 0 to 1, two hubs                 rails 0 1 | 0
 *
 * A rail has an uplink of each server: those to a network, the first of each, the second of each, and so on. */
#include "base/array.h"
#include "plan/pack/cluster/unequal_deal.h"

#include <string.h>

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

struct deal {
	struct plan *p;
	const struct rails *rails;
	const int64_t *room;	/* of each uplink, both directions */
	int n_hops;
	struct hop { int from, to, next; } *hop;
	int *first, *last;	/* from server h to s [h * n_servers + s]; -1: none */
	int *n_between;
	int *first_hub;		/* of each server */
};

static void
put(struct deal *d, int from, int to)
{
	const Cluster *c = &d->p->c;
	int at = c->of[c->uplink[0][from].rank] * c->n_servers + c->of[c->uplink[0][to].rank];
	d->hop[d->n_hops] = (struct hop){ from, to, -1 };
	if (d->first[at] < 0)
		d->first[at] = d->n_hops;
	else
		d->hop[d->last[at]].next = d->n_hops;
	d->last[at] = d->n_hops++;
	d->n_between[at]++;
}

/* Round `round` of a rail: each shift once, of the uplinks that have room. Returns whether there may be another one. */
static bool
put_round(struct deal *d, int rail, int round)
{
	const int *uplink = d->rails->uplink + d->rails->first[rail];
	int n = d->rails->first[rail + 1] - d->rails->first[rail], n_active = n, *active = d->rails->active;
	for (int i = 0; i + 1 < n && n_active > 1; i++) {
		n_active = 0;
		for (int k = 0; k < n; k++)
			if (d->room[uplink[k]] / 2 > (int64_t)round * (n - 1) + i)
				active[n_active++] = uplink[k];
		for (int k = 0; k < n_active && n_active > 1; k++)
			put(d, active[k], active[(k + 1 + (i + n / 2 * rail) % (n_active - 1)) % n_active]);
	}
	return n > 1 && n_active > 1;
}

/* Rounds of all rails, one after the other. */
static void
put_all(struct deal *d)
{
	bool more = true;
	for (int round = 0; more; round++) {
		more = false;
		for (int r = 0; r < d->rails->n; r++)
			more |= put_round(d, r, round);
	}
	for (int r = 0; r < d->rails->n; r++) {
		int n = odd_uplinks(d->rails, r, d->room);
		for (int i = 0; i < n / 2; i++)
			put(d, odd_sender(d->rails, r, n, i), odd_receiver(d->rails, r, n, i));
	}
}

/* ---- the deal ---- */

static Status
add_entry(struct plan *p, int h, int s, const struct hop *hop)
{
	if (p->first[(size_t)h * (size_t)p->c.n_servers + (size_t)s] < 0)
		return unequal_add_piece(p, h, s, hop->to, hop->from, 1);
	TRY(GROW_TEMP(p->ctx, p->copy, p->n_copies, p->copy_room));
	p->copy[p->n_copies] = (struct copy){ .hub = h, .uplink = hop->to, .own = hop->from, .next = p->first_copy[h] };
	p->first_copy[h] = p->n_copies++;
	return OK;
}

/* Do trees of hub h enter server s at this rank? */
static bool
enters_at(const struct plan *p, int h, int s, int rank)
{
	const struct uplink *uplink = p->c.uplink[0];
	int first = p->first[(size_t)h * (size_t)p->c.n_servers + (size_t)s];
	bool enters = first >= 0 && uplink[p->piece[first].uplink].rank == rank;
	for (int i = p->first_copy[h]; i >= 0 && !enters; i = p->copy[i].next)
		enters = uplink[p->copy[i].uplink].rank == rank;
	return enters;
}

/* What server `own` sends to server s, to its hubs one after the other, about as much to each. */
static Status
deal_between(struct deal *d, int own, int s, bool *good)
{
	struct plan *p = d->p;
	int at = own * p->c.n_servers + s, n = d->n_between[at], i = 0;
	int first = d->first_hub[own], n_hubs = d->first_hub[own + 1] - first;
	/* Not all servers have the same rails together. */
	int turn = n_hubs > 0 ? own % (n / n_hubs + 1) : 0;
	*good = *good && (n_hubs == 0 || n >= n_hubs);
	for (int k = d->first[at]; k >= 0 && n_hubs > 0 && *good; k = d->hop[k].next, i++) {
		int rank = p->c.uplink[0][d->hop[k].to].rank, tries = 0;
		int h = (int)((int64_t)((i + n - turn) % n) * n_hubs / n);
		for (; tries < n_hubs && enters_at(p, first + h, s, rank); tries++)
			h = (h + 1) % n_hubs;
		*good = tries < n_hubs;
		if (*good)
			TRY(add_entry(p, first + h, s, &d->hop[k]));
	}
	return OK;
}

static Status
new_deal(struct plan *p, struct deal *d)
{
	const Cluster *c = &p->c;
	size_t n_pairs = (size_t)c->n_servers * (size_t)c->n_servers;
	size_t n_pieces = (size_t)p->n_hubs * (size_t)c->n_servers;
	int64_t n = 0;
	for (int i = 0; i < c->n_uplinks[0]; i++)
		n += (d->room[i] + 1) / 2;
	TRY(TEMP(p->ctx, d->hop, n));
	TRY(TEMP_EACH(p->ctx, n_pairs, d->first, d->last, d->n_between));
	TRY(TEMP(p->ctx, d->first_hub, c->n_servers + 1));
	TRY(TEMP_EACH(p->ctx, n_pieces, p->first, p->last));
	TRY(TEMP(p->ctx, p->first_copy, p->n_hubs));
	memset(d->first, -1, n_pairs * sizeof *d->first);
	memset(p->first, -1, n_pieces * sizeof *p->first);
	memset(p->first_copy, -1, (size_t)p->n_hubs * sizeof *p->first_copy);
	for (int h = 0; h < p->n_hubs; h++)
		d->first_hub[p->hub[h].server + 1]++;
	for (int s = 0; s < c->n_servers; s++)
		d->first_hub[s + 1] += d->first_hub[s];
	return OK;
}

/* ---- which uplinks they leave by ---- */

/* Those of a network lead to all uplinks of it: trees of a hub leave over its own one while that has room, and else
 * over one after the other, so that few GPUs pass them on. left: of each uplink, hops that leave over it. */
static void
leave(struct plan *p, int h, int to, int *own, int64_t *left, bool direct)
{
	const Cluster *c = &p->c;
	const struct uplink *uplink = c->uplink[0];
	const struct cluster_server *server = &c->server[p->hub[h].server];
	if (*own >= 0)
		return;
	for (int i = server->first_uplink[0]; i < server->first_uplink[0] + server->n_uplinks[0]; i++)
		if (left[i] > 0 && uplink[i].network == uplink[to].network
		    && (!direct || uplink[i].rank == p->hub[h].rank)) {
			*own = i;
			left[i]--;
			return;
		}
}

static Status
leave_directly(struct plan *p)
{
	int64_t *left;
	TRY(TEMP(p->ctx, left, p->c.n_uplinks[0]));
	for (int i = 0; i < p->n_pieces; i++) {
		left[p->piece[i].own]++;
		p->piece[i].own = -1;
	}
	for (int i = 0; i < p->n_copies; i++) {
		left[p->copy[i].own]++;
		p->copy[i].own = -1;
	}
	for (int direct = 1; direct >= 0; direct--)
		for (int h = 0; h < p->n_hubs; h++) {
			for (int s = 0; s < p->c.n_servers; s++) {
				int i = p->first[(size_t)h * (size_t)p->c.n_servers + (size_t)s];
				if (i >= 0)
					leave(p, h, p->piece[i].uplink, &p->piece[i].own, left, direct);
			}
			for (int i = p->first_copy[h]; i >= 0; i = p->copy[i].next)
				leave(p, h, p->copy[i].uplink, &p->copy[i].own, left, direct);
		}
	return OK;
}

Status
unequal_deal(struct plan *p, const struct rails *rails, const int64_t *room, bool *good)
{
	struct deal d = { .p = p, .rails = rails, .room = room };
	TRY(new_deal(p, &d));
	p->n_pieces = p->n_copies = 0;
	put_all(&d);
	*good = true;
	for (int own = 0; own < p->c.n_servers; own++)
		for (int s = 0; s < p->c.n_servers && *good; s++)
			if (s != own)
				TRY(deal_between(&d, own, s, good));
	return *good ? leave_directly(p) : OK;
}
