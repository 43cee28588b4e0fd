/* Hops of trees of one length (unequal_hops.c), dealt to hubs: what a server sends to another one goes to its hubs in
 * order. Each enters over a few rails, the same in all servers, so that few GPUs of its own server pass its data on:
 *
 *     server 0 to 1, over rails 0 1 0, two hubs    rails 0 1 | 0 */
#include "base/array.h"
#include "plan/pack/cluster/unequal_deal.h"

#include <string.h>

struct deal {
	struct plan *p;
	struct hops *hops;
	int *first, *last;	/* from server h to s [h * n_servers + s]; -1: none */
	int *first_hub;		/* of each server */
};

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
	int at = own * p->c.n_servers + s, n = d->hops->n_between[at], i = 0;
	int first = d->first_hub[own], n_hubs = d->first_hub[own + 1] - first;
	/* Not all servers have the same rails together. */
	int turn = n_hubs > 0 ? own % (n / n_hubs + 1) : 0;
	*good = *good && (n_hubs == 0 || n >= n_hubs);
	for (int k = d->first[at]; k >= 0 && n_hubs > 0 && *good; k = d->hops->hop[k].next, i++) {
		int rank = p->c.uplink[0][d->hops->hop[k].to].rank, tries = 0;
		int h = (int)((int64_t)((i + n - turn) % n) * n_hubs / n);
		for (; tries < n_hubs && enters_at(p, first + h, s, rank); tries++)
			h = (h + 1) % n_hubs;
		*good = tries < n_hubs;
		if (*good)
			TRY(add_entry(p, first + h, s, &d->hops->hop[k]));
	}
	return OK;
}

static Status
new_deal(struct plan *p, struct deal *d)
{
	const Cluster *c = &p->c;
	size_t n_pairs = (size_t)c->n_servers * (size_t)c->n_servers;
	size_t n_pieces = (size_t)p->n_hubs * (size_t)c->n_servers;
	TRY(TEMP_EACH(p->ctx, n_pairs, d->first, d->last));
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
	p->n_pieces = p->n_copies = 0;
	return OK;
}

static void
list_hops(struct deal *d)
{
	for (int i = 0; i < d->hops->n; i++) {
		struct hop *hop = &d->hops->hop[i];
		int at = unequal_between(d->p, hop->from, hop->to);
		if (d->first[at] < 0)
			d->first[at] = i;
		else
			d->hops->hop[d->last[at]].next = i;
		d->last[at] = i;
	}
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
unequal_deal(struct plan *p, struct hops *hops, bool *good)
{
	struct deal d = { .p = p, .hops = hops };
	TRY(new_deal(p, &d));
	list_hops(&d);
	*good = true;
	for (int own = 0; own < p->c.n_servers; own++)
		for (int s = 0; s < p->c.n_servers && *good; s++)
			if (s != own)
				TRY(deal_between(&d, own, s, good));
	return *good ? leave_directly(p) : OK;
}
