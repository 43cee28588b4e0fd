/* Pieces of the trees of hubs, and the uplinks that they take. */
#include "base/array.h"
#include "plan/pack/cluster/unequal_pieces.h"

int
unequal_like_uplink(const struct plan *p, int own, int own_server, int s)
{
	const Cluster *c = &p->c;
	const struct cluster_server *server = &c->server[s];
	const struct uplink *uplink = c->uplink[p->leaf_side];
	int network = c->uplink[p->hub_side][own].network, first = server->first_uplink[p->leaf_side];
	int place = own - c->server[own_server].first_uplink[p->hub_side];
	if (place < server->n_uplinks[p->leaf_side] && uplink[first + place].network == network)
		return first + place;
	for (int i = 0; i < server->n_uplinks[p->leaf_side] && c->n_networks > 1; i++)
		if (uplink[first + i].network == network)
			return first + i;
	return -1;
}

Status
unequal_add_piece(struct plan *p, int h, int s, int uplink, int own, int64_t length)
{
	const struct hub *hub = &p->hub[h];
	size_t at = (size_t)h * (size_t)p->c.n_servers + (size_t)s;
	int64_t begin = p->first[at] < 0 ? 0 : p->piece[p->last[at]].end;
	TRY(GROW_TEMP(p->ctx, p->piece, p->n_pieces, p->piece_room));
	p->piece[p->n_pieces] = (struct piece){ begin + length, uplink, own, -1 };
	if (p->first[at] < 0)
		p->first[at] = p->n_pieces;
	else
		p->piece[p->last[at]].next = p->n_pieces;
	p->last[at] = p->n_pieces++;
	p->room[p->leaf_side][uplink] -= length;
	if (p->coll == ALLREDUCE && own == hub->uplink && p->reserved[own] >= length)
		p->reserved[own] -= length;
	else
		p->room[p->hub_side][own] -= length;
	return OK;
}

const struct piece *
unequal_piece_at(const struct plan *p, int h, int s, int64_t at)
{
	int i = p->first[(size_t)h * (size_t)p->c.n_servers + (size_t)s];
	while (p->piece[i].end <= at)
		i = p->piece[i].next;
	return &p->piece[i];
}

int64_t
unequal_pieces_end(const struct plan *p, int h, int64_t begin)
{
	int64_t end = p->hub[h].length;
	for (int s = 0; s < p->c.n_servers; s++)
		if (s != p->hub[h].server && unequal_piece_at(p, h, s, begin)->end < end)
			end = unequal_piece_at(p, h, s, begin)->end;
	for (int i = p->first_copy[h]; i >= 0; i = p->copy[i].next)
		if (p->copy[i].begin > begin && p->copy[i].begin < end)
			end = p->copy[i].begin;
	return end;
}

bool
unequal_joined(const struct plan *p, int own, int uplink)
{
	const Cluster *c = &p->c;
	const struct uplink *a = &c->uplink[p->hub_side][own], *b = &c->uplink[p->leaf_side][uplink];
	const struct uplink *from = p->hub_side == UPLINK_OUT ? a : b, *to = p->hub_side == UPLINK_OUT ? b : a;
	return cluster_between(c, from, to)->n >= 0
	    && (p->coll != ALLREDUCE || cluster_between(c, to, from)->n >= 0);
}
