/* Pieces of the trees of hubs, and the ways that they take. */
#include "base/array.h"
#include "plan/pack/cluster/unequal_pieces.h"

int
unequal_like_way(const struct plan *p, int own, int own_server, int s)
{
	const Cluster *c = &p->c;
	const struct cluster_server *server = &c->server[s];
	const struct way *way = c->way[p->leaf_side];
	int network = c->way[p->hub_side][own].network, first = server->first_way[p->leaf_side];
	int place = own - c->server[own_server].first_way[p->hub_side];
	if (place < server->n_ways[p->leaf_side] && way[first + place].network == network)
		return first + place;
	for (int i = 0; i < server->n_ways[p->leaf_side] && c->n_networks > 1; i++)
		if (way[first + i].network == network)
			return first + i;
	return -1;
}

Status
unequal_add_piece(struct plan *p, int h, int s, int way, int own, int64_t length)
{
	const struct hub *hub = &p->hub[h];
	size_t at = (size_t)h * (size_t)p->c.n_servers + (size_t)s;
	int64_t begin = p->first[at] < 0 ? 0 : p->piece[p->last[at]].end;
	TRY(GROW_TEMP(p->ctx, p->piece, p->n_pieces, p->piece_room));
	p->piece[p->n_pieces] = (struct piece){ begin + length, way, own, -1 };
	if (p->first[at] < 0)
		p->first[at] = p->n_pieces;
	else
		p->piece[p->last[at]].next = p->n_pieces;
	p->last[at] = p->n_pieces++;
	p->room[p->leaf_side][way] -= length;
	if (p->coll == ALLREDUCE && own == hub->way && p->reserved[own] >= length)
		p->reserved[own] -= length;
	else
		p->room[p->hub_side][own] -= length;
	return OK;
}
