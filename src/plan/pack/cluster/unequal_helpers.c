/* What entries of trees of one length send (unequal_spread.c), by a flow over all trees of a server (unequal_counts.c).
 * The hub of a tree is its only entry in its own server. Where that is too much for it, others there help. */
#include "plan/pack/cluster/unequal_entries.h"

enum { MOST_HELPERS = 8 };

/* A hub whose own trees are too many for its room, as one without an uplink, has others of its server send for it in
 * each: as many as it takes, one after the other, or more. It sends to these itself, and to those that pass data on to
 * other servers. *end: of the entries so far. */
static void
add_helpers(struct spread *m, const struct slot *slot, int n_own, int room, int least, int *end)
{
	const struct plan *p = m->p;
	const struct cluster_server *server = &p->c.server[p->hub[slot->hub].server];
	struct entry *hub = &m->entry[*end - 1];
	int64_t n = (int64_t)n_own * (server->n - 1) / (room + 1);
	n = n < least ? least : n;
	for (int i = 0; i < server->n; i++)
		hub->least += m->leaves[p->c.rank[server->first + i]] && p->c.rank[server->first + i] != hub->rank;
	for (int k = 0; k < n && n <= MOST_HELPERS && n < server->n; k++) {
		int v = p->c.rank[server->first + (slot->number * n + k) % server->n];
		if (v == hub->rank)
			continue;
		hub->least += !m->leaves[v];
		m->entry[(*end)++] = (struct entry){ .rank = v, .helps = true };
	}
}

/* Entries by slots and servers. need: of each of these; room: of each rank, in counts; helpers: of a hub at least. */
static Status
list_entries(struct spread *m, int *need, const int *room, int helpers)
{
	const struct plan *p = m->p;
	int *n_own, n_servers = p->c.n_servers;
	TRY(TEMP(p->ctx, n_own, p->topo->n_ranks));
	TRY(TEMP(p->ctx, m->entry, p->n_pieces + p->n_copies + (1 + MOST_HELPERS) * m->n_slots));
	for (int i = 0; i < m->n_slots; i++)
		n_own[p->hub[m->slot[i].hub].rank]++;
	for (int g = 0; g < m->n_slots * n_servers; g++) {
		const struct slot *slot = &m->slot[g / n_servers];
		const struct hub *hub = &p->hub[slot->hub];
		int s = g % n_servers, *end = &m->first_entry[g + 1];
		if (s == 0)
			unequal_find_entries(m, slot);
		*end = m->first_entry[g];
		for (int k = 0; k < m->n_entries[s]; k++)
			m->entry[(*end)++] = (struct entry){ .rank = m->member[p->c.server[s].first + k] };
		need[g] = p->c.server[s].n - m->n_entries[s];
		if (s == hub->server && m->n_entries[s] == 1)
			add_helpers(m, slot, n_own[hub->rank], room[hub->rank], helpers, end);
	}
	return OK;
}

/* How many others entries send to in each slot, in servers where that fits. *all: in all of them. */
static Status
count_sends(struct spread *m, int helpers, bool *all)
{
	const struct plan *p = m->p;
	const int64_t weight = m->slot[0].end - m->slot[0].begin;
	int n = p->topo->n_ranks, n_groups = m->n_slots * p->c.n_servers, *need, *room;
	TRY(TEMP(p->ctx, need, n_groups));
	TRY(TEMP(p->ctx, room, n));
	for (int v = 0; v < n; v++)
		room[v] = (int)(m->room[v] / weight);
	TRY(list_entries(m, need, room, helpers));
	TRY(unequal_count_sends(p->ctx, n_groups, m->first_entry, need, n, room, m->entry));
	for (int s = 0; s < p->c.n_servers; s++)
		m->counted[s] = true;
	for (int v = 0; v < n; v++)
		m->counted[p->c.of[v]] &= room[v] >= 0;
	/* Helpers have it from their hub. */
	for (int i = 0; i < m->n_slots; i++) {
		int s = p->hub[m->slot[i].hub].server, g = i * p->c.n_servers + s;
		m->counted[s] &= need[g] == 0 || m->entry[m->first_entry[g]].count > 0;
	}
	*all = true;
	for (int s = 0; s < p->c.n_servers; s++)
		*all &= m->counted[s];
	return OK;
}

/* What they send to later. */
static void
set_counted(struct spread *m)
{
	const struct plan *p = m->p;
	const int64_t weight = m->slot[0].end - m->slot[0].begin;
	int n = p->topo->n_ranks;
	for (int v = 0; v < n; v++)
		m->due[v] = m->counted[p->c.of[v]] ? 0 : m->due[v];
	for (int i = 0; i < m->first_entry[m->n_slots * p->c.n_servers]; i++)
		if (m->counted[p->c.of[m->entry[i].rank]])
			m->due[m->entry[i].rank] += m->entry[i].count * weight;
}

Status
unequal_share_slots(struct spread *m)
{
	bool all = false;
	for (int helpers = 0; helpers <= MOST_HELPERS && !all; helpers += 1 + helpers)
		TRY(count_sends(m, helpers, &all));
	set_counted(m);
	return OK;
}
