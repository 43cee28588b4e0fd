/* Where trees that have several entries in a server enter it, and leave it (unequal_spread.c). */
#include "plan/pack/cluster/unequal_entries.h"

#include <string.h>

static void
put_entry(struct spread *m, int v, int own, int uplink, bool main)
{
	const Cluster *c = &m->p->c;
	int s = c->of[v], first = c->server[s].first, n = m->n_entries[s]++, i = n;
	while (m->member[first + i] != v)
		i++;
	m->member[first + i] = m->member[first + n];
	m->member[first + n] = v;
	m->own[v] = own;
	m->uplink[v] = uplink;
	m->main[v] = main;
	if (own >= 0)
		m->leaves[c->uplink[m->p->hub_side][own].rank] = true;
}

void
unequal_find_entries(struct spread *m, const struct slot *slot)
{
	const struct plan *p = m->p;
	const struct uplink *leaf = p->c.uplink[p->leaf_side];
	const struct hub *hub = &p->hub[slot->hub];
	memcpy(m->member, p->c.rank, (size_t)p->topo->n_ranks * sizeof *m->member);
	memset(m->n_entries, 0, (size_t)p->c.n_servers * sizeof *m->n_entries);
	memset(m->main, 0, (size_t)p->topo->n_ranks * sizeof *m->main);
	memset(m->leaves, 0, (size_t)p->topo->n_ranks * sizeof *m->leaves);
	put_entry(m, hub->rank, -1, -1, true);
	for (int s = 0; s < p->c.n_servers; s++) {
		const struct piece *piece = s == hub->server ? NULL : unequal_piece_at(p, slot->hub, s, slot->begin);
		if (piece)
			put_entry(m, leaf[piece->uplink].rank, piece->own, piece->uplink, true);
	}
	for (int i = p->first_copy[slot->hub]; i >= 0; i = p->copy[i].next)
		if (p->copy[i].begin <= slot->begin)
			put_entry(m, leaf[p->copy[i].uplink].rank, p->copy[i].own, p->copy[i].uplink, false);
}
