/* Which GPUs of a server send a tree to the others of it (unequal_spread.c): entries, as much as they are to send;
 * where these have less than that, others that have the data from an entry; and at last parts of the tree. */
#include "plan/pack/cluster/unequal_entries.h"

#include <math.h>

/* What rank v may still send for its slot. */
static int64_t
left_of(const struct spread *m, int v)
{
	return m->room[v] - m->sent[v] - m->due[v] + m->due_now[v];
}

/* What it has beyond what it is to send later. */
static double
surplus_of(const struct spread *m, int v)
{
	return (double)(m->room[v] - m->sent[v]) - m->planned[v];
}

/* Of n ranks with room for all of the slot, the one with most beyond what it is to send later; -1: none. */
static int
best_sender(const struct spread *m, const int *rank, int n)
{
	int best = -1;
	for (int i = 0; i < n; i++)
		if (left_of(m, rank[i]) >= m->weight
		    && (best < 0 || surplus_of(m, rank[i]) > surplus_of(m, best)))
			best = rank[i];
	return best;
}

/* An entry, unless that has less than it is to send later, while others have more. -1: none has room. */
static int
choose_sender(const struct spread *m, const int *member, int n, int n_entries)
{
	double few = (double)m->weight;
	int entry = best_sender(m, member, n_entries);
	if (entry >= 0 && surplus_of(m, entry) >= -few)
		return entry;
	/* One after the other, so that trees are not deep. */
	for (int i = n_entries; i < n && (m->p->turned || m->p->coll == ALLREDUCE); i++)
		if (m->count[member[i]] > 0 && left_of(m, member[i]) >= m->weight && surplus_of(m, member[i]) >= few)
			return member[i];
	int other = best_sender(m, member + n_entries, n - n_entries);
	return other >= 0 && (entry < 0 || surplus_of(m, other) >= few) ? other : entry;
}

static int
widest_sender(const struct spread *m, const int *rank, int n)
{
	int best = rank[0];
	for (int i = 1; i < n; i++)
		best = left_of(m, rank[i]) > left_of(m, best) ? rank[i] : best;
	return best;
}

static void
send_whole(struct spread *m, int v)
{
	m->count[v]++;
	m->sent[v] += m->weight;
}

/* A part of the slot, after the last such part, around. */
static void
send_part(struct spread *m, int v, int64_t part)
{
	m->arc_begin[v] = m->arc_end;
	m->arc[v] = part;
	m->sent[v] += part;
	m->arc_end = (m->arc_end + part) % m->weight;
	m->n_trees++;
}

/* Those that no later tree enters use up what they have, where entries have less than they are to send later: up to
 * `need`. Returns what is left of that. */
static int64_t
send_rests(struct spread *m, const int *member, int n, int n_entries, int64_t need)
{
	int64_t lack = need;
	for (int i = 0; i < n_entries; i++)
		lack -= surplus_of(m, member[i]) > 0 ? llround(surplus_of(m, member[i])) : 0;
	for (int i = n_entries; i < n && lack > 0; i++) {
		int v = member[i];
		int64_t part = left_of(m, v);
		if (m->due[v] > 0 || m->planned[v] >= 1 || part <= 0 || m->n_trees + m->n_left >= m->most_trees)
			continue;
		part = part > lack ? lack - lack % m->weight : part;
		for (int64_t whole = part; whole >= m->weight; whole -= m->weight)
			send_whole(m, v);
		if (part % m->weight > 0)
			send_part(m, v, part % m->weight);
		lack -= part;
		need -= part;
	}
	return need;
}

/* What is left to send when no rank has room for all of the slot: parts of it. */
static void
send_parts(struct spread *m, const int *member, int n, int64_t need)
{
	while (need > 0) {
		int v = widest_sender(m, member, n);
		int64_t part = left_of(m, v);
		part = part > need ? need : part;
		if (part <= 0 || part >= m->weight || m->arc[v] > 0 || m->n_trees + m->n_left > m->most_trees) {
			/* No link has room: that of the rank with most of it is overloaded. */
			for (; need > 0; need -= m->weight)
				send_whole(m, v);
			return;
		}
		send_part(m, v, part);
		need -= part;
	}
}

void
unequal_share_server(struct spread *m, int s)
{
	const struct cluster_server *server = &m->p->c.server[s];
	const int *member = m->member + server->first;
	int n = server->n, n_entries = m->n_entries[s], from;
	int64_t need = (n - n_entries) * m->weight;
	for (int i = 0; i < n; i++) {
		m->sent[member[i]] = m->arc[member[i]] = m->arc_begin[member[i]] = 0;
		m->count[member[i]] = 0;
	}
	for (int i = 0; i < n && m->counted[s]; i++)
		for (int64_t k = m->due_now[member[i]]; k > 0; k -= m->weight, need -= m->weight)
			send_whole(m, member[i]);
	if (need == 0)
		return;
	m->arc_end = 0;
	if (need == (n - n_entries) * m->weight) {
		from = best_sender(m, member, n_entries);
		send_whole(m, from >= 0 ? from : widest_sender(m, member, n_entries));
		need -= m->weight;
	}
	need = send_rests(m, member, n, n_entries, need);
	for (; need >= m->weight && (from = choose_sender(m, member, n, n_entries)) >= 0; need -= m->weight)
		send_whole(m, from);
	if (need > 0 && need < m->weight && (from = best_sender(m, member, n_entries)) >= 0) {
		send_part(m, from, need);
		need = 0;
	}
	send_parts(m, member, n, need);
}
