/* Trees of hubs with several entries in a server (unequal_copies.c). Those that a tree enters send it to the others of
 * their server, each as much as its link to the switch has room for: shares of entries are scaled until all GPUs send
 * as much as they may in all trees, and trees, the heaviest first, keep to that. Where an entry has less than its share
 * by rounding, others send that have the data from an entry; and what no GPU has room for at the whole weight of a tree
 * is divided into arcs, one after the other, around:
 *
 *     weight of the tree       0 ---------------------- w
 *     a sends to two, of         +++++++++++++++++++++++    and b, which has this much room left, and c
 *     to one more                bbbbbbbbbbcccccccccccc     send it to one: two trees, of b's weight and of c's
 *
 * So there are at most as many more trees as GPUs whose room is used up. Of trees of one length entries send what a
 * flow finds for all trees of a server (unequal_counts.c), so that no others send, and trees are not deep. */
#include "plan/pack/cluster/unequal_pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HELPERS = 8 };

/* A part of the trees of a hub that has the same entries. */
struct slot {
	int hub, number;
	int64_t begin, end;
};

struct spread {
	struct plan *p;
	int n_slots;
	struct slot *slot;
	/* Of each rank, in weights: what it may still send in its server; what later trees need of that at least. */
	int64_t *room, *due;
	int64_t *due_now;	/* of that in the current slot */
	/* What it is to send in all trees that are not made; its part of what the entries of a tree send. */
	double *planned, *part;
	/* Of slots of one length: their entries, from first_entry[number * n_servers + server] on. */
	int *first_entry;
	struct entry *entry;
	bool *counted;		/* of each server: its entries send as these have it */
	/* Of the current slot: its weight; of each rank, to how many others it sends all of it, and to one an arc of
	 * it, from arc_begin on around; the sum of that. */
	int64_t weight, *sent, *arc, *arc_begin, arc_end;
	int *count;
	int *own, *uplink;	/* of an entry; -1: of the hub */
	bool *main;		/* it is the one entry that its server always has */
	bool *leaves;		/* of each rank: the tree leaves its server there */
	int *member, *n_entries;	/* by server, entries first */
	struct edges edges;
	int n_trees, n_left, most_trees;	/* made, at most; slots that are to be; of all */
	int *hub_of;		/* of each tree */
	Packing *pack;
};

/* ---- slots ---- */

static int
compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;
	int64_t v = x->end - x->begin, w = y->end - y->begin;
	return v != w ? (v < w) - (v > w) : (x->number > y->number) - (x->number < y->number);
}

static int
list_slots(struct spread *m)
{
	const struct plan *p = m->p;
	int n = 0;
	for (int h = 0; h < p->n_hubs; h++)
		for (int64_t begin = 0, end; begin < p->hub[h].length; begin = end) {
			end = unequal_pieces_end(p, h, begin);
			if (m->slot)
				m->slot[n] = (struct slot){ h, n, begin, end };
			n++;
		}
	return n;
}

/* ---- a tree ---- */

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

static void
find_entries(struct spread *m, const struct slot *slot)
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

/* ---- who sends ---- */

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

/* What each rank of server s sends to others of it. */
static void
share_server(struct spread *m, int s)
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

/* ---- trees ---- */

/* How many of its server rank v sends to in the tree that begins here. */
static int
count_at(const struct spread *m, int v, int64_t at)
{
	int64_t after = at - m->arc_begin[v];
	after += after < 0 ? m->weight : 0;
	return m->count[v] + (after < m->arc[v]);
}

/* Where the next tree begins. */
static int64_t
next_tree(const struct spread *m, int64_t at)
{
	int64_t next = m->weight;
	for (int v = 0; v < m->p->topo->n_ranks; v++) {
		int64_t begin = m->arc_begin[v], end = (begin + m->arc[v]) % m->weight;
		if (m->arc[v] > 0 && begin > at && begin < next)
			next = begin;
		if (m->arc[v] > 0 && end > at && end < next)
			next = end;
	}
	return next;
}

/* Does rank v have it before rank w? */
static bool
comes_first(const struct spread *m, int v, int w, int64_t at)
{
	int more = count_at(m, v, at) - count_at(m, w, at);
	return more > 0 || (more == 0 && m->leaves[v] && !m->leaves[w]);
}

/* Those that send to most others have it first, then those that send to other servers. Entries send to at least one, or
 * no others send: so none needs it before it has it, as what the first of n GPUs send is concave in n, and in the end
 * no less than n. */
static Status
add_server(struct spread *m, int s, int64_t at)
{
	int *member = m->member + m->p->c.server[s].first, n = m->p->c.server[s].n, n_entries = m->n_entries[s];
	for (int i = n_entries + 1; i < n; i++)
		for (int k = i; k > n_entries && comes_first(m, member[k], member[k - 1], at); k--) {
			int other = member[k];
			member[k] = member[k - 1];
			member[k - 1] = other;
		}
	for (int to = n_entries, from = 0, n_sent = 0; to < n; to++) {
		for (; n_sent == count_at(m, member[from], at); n_sent = 0)
			from++;
		TRY(unequal_add_near(&m->edges, member[from], member[to]));
		n_sent++;
	}
	return OK;
}

static Status
add_tree(struct spread *m, const struct slot *slot, int64_t at, int64_t weight)
{
	const struct plan *p = m->p;
	Packing *pack = m->pack;
	int t = pack->n_trees++;
	m->edges.n = 0;
	for (int s = 0; s < p->c.n_servers; s++) {
		for (int i = 0; i < m->n_entries[s]; i++) {
			int v = m->member[p->c.server[s].first + i];
			if (m->own[v] >= 0)
				TRY(unequal_add_far(&m->edges, m->own[v], m->uplink[v]));
		}
		TRY(add_server(m, s, at));
	}
	pack->demand[t] = p->coll == ALLREDUCE ? 0 : p->hub[slot->hub].rank;
	pack->weight[t] = weight;
	m->hub_of[t] = slot->hub;
	return unequal_arrange(&m->edges, p->hub[slot->hub].rank, &pack->tree[t]);
}

/* Entries of a slot are to send what others of their servers need, in proportion to their parts. */
static void
plan_slot(struct spread *m, const struct slot *slot, int sign)
{
	for (int s = 0; s < m->p->c.n_servers; s++) {
		const struct cluster_server *server = &m->p->c.server[s];
		double sum = 0, need = (double)(slot->end - slot->begin) * (server->n - m->n_entries[s]) * sign;
		for (int i = 0; i < m->n_entries[s]; i++)
			sum += m->part[m->member[server->first + i]];
		for (int i = 0; i < m->n_entries[s]; i++) {
			int v = m->member[server->first + i];
			m->planned[v] += need * m->part[v] / sum;
		}
	}
}

static void
set_due(struct spread *m, const struct slot *slot)
{
	const struct plan *p = m->p;
	const int *first = m->first_entry + (size_t)slot->number * (size_t)p->c.n_servers;
	for (int v = 0; v < p->topo->n_ranks; v++)
		m->due_now[v] = m->main[v] ? m->weight : 0;
	for (int s = 0; s < p->c.n_servers; s++)
		for (int i = first[s]; i < first[s + 1] && m->counted[s]; i++)
			m->due_now[m->entry[i].rank] = m->entry[i].count * m->weight;
}

static Status
make_slot(struct spread *m, const struct slot *slot)
{
	const struct plan *p = m->p;
	m->weight = slot->end - slot->begin;
	find_entries(m, slot);
	set_due(m, slot);
	plan_slot(m, slot, -1);
	m->n_trees = m->pack->n_trees + 1;
	for (int s = 0; s < p->c.n_servers; s++)
		share_server(m, s);
	for (int64_t at = 0, next; at < m->weight; at = next) {
		next = next_tree(m, at);
		TRY(add_tree(m, slot, at, next - at));
	}
	for (int v = 0; v < p->topo->n_ranks; v++) {
		m->room[v] -= m->sent[v];
		m->due[v] -= m->due_now[v];
	}
	return OK;
}

/* ---- all of them ---- */

/* How much more than their room links of switches have to carry, at least: 1, or more. Each GPU has what it must have,
 * and each server sends as much. */
static double
overload_of(const struct spread *m, const int64_t *inside)
{
	const struct plan *p = m->p;
	double most = 1;
	for (int s = 0; s < p->c.n_servers; s++) {
		double sends = 0, room = 0;
		for (int i = 0; i < p->c.server[s].n; i++) {
			int v = p->c.rank[p->c.server[s].first + i];
			double has = (double)inside[v];
			sends += p->coll == ALLREDUCE ? 2 * has : has;
			room += (double)unequal_switch_room(p, v, true);
			if (has > most * (double)unequal_switch_room(p, v, false))
				most = has / (double)unequal_switch_room(p, v, false);
		}
		if (sends > most * room)
			most = sends / room;
	}
	return most;
}

/* What each GPU may send in all: of an allreduce what it has over its switch takes from that. */
static Status
measure(struct spread *m)
{
	const struct plan *p = m->p;
	int n = p->topo->n_ranks;
	int64_t all = 0, *inside;
	TRY(TEMP(p->ctx, inside, n));
	for (int i = 0; i < m->n_slots; i++) {
		const struct slot *slot = &m->slot[i];
		int64_t weight = slot->end - slot->begin;
		find_entries(m, slot);
		all += weight;
		for (int s = 0; s < p->c.n_servers; s++)
			for (int k = 0; k < m->n_entries[s]; k++) {
				int v = m->member[p->c.server[s].first + k];
				inside[v] -= weight;
				m->due[v] += m->main[v] ? weight : 0;
			}
	}
	for (int v = 0; v < n; v++)
		inside[v] = p->c.up[v] < 0 ? 0 : inside[v] + all;
	double overload = overload_of(m, inside);
	for (int v = 0; v < n; v++) {
		int64_t room = unequal_switch_room(p, v, true);
		room = overload > 1 + 1e-12 ? (int64_t)ceil((double)room * overload) : room;
		m->room[v] = room - (p->coll == ALLREDUCE ? inside[v] : 0);
	}
	return OK;
}

/* ---- slots of one length ---- */

/* A hub whose own trees are too many for its room, as one without an uplink, has others of its server send for it in
 * each: as many as it takes, one after the other. *end: of the entries so far. */
static void
add_helpers(struct spread *m, const struct slot *slot, int n_own, int room, int *end)
{
	const struct plan *p = m->p;
	const struct cluster_server *server = &p->c.server[p->hub[slot->hub].server];
	int64_t n = (int64_t)n_own * (server->n - 1) / (room + 1);
	for (int k = 0; k < n && n <= MOST_HELPERS && n < server->n; k++) {
		int v = p->c.rank[server->first + (slot->number * n + k) % server->n];
		if (v != p->hub[slot->hub].rank)
			m->entry[(*end)++].rank = v;
	}
}

/* Entries by slots and servers. need: of each of these; room: of each rank, in counts. */
static Status
list_entries(struct spread *m, int *need, const int *room)
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
			find_entries(m, slot);
		*end = m->first_entry[g];
		for (int k = 0; k < m->n_entries[s]; k++)
			m->entry[(*end)++].rank = m->member[p->c.server[s].first + k];
		need[g] = p->c.server[s].n - m->n_entries[s];
		if (s == hub->server && m->n_entries[s] == 1)
			add_helpers(m, slot, n_own[hub->rank], room[hub->rank], end);
	}
	return OK;
}

/* How many others entries send to in each slot, in servers where that fits. */
static Status
count_sends(struct spread *m)
{
	const struct plan *p = m->p;
	const int64_t weight = m->slot[0].end - m->slot[0].begin;
	int n = p->topo->n_ranks, n_groups = m->n_slots * p->c.n_servers, *need, *room;
	TRY(TEMP(p->ctx, need, n_groups));
	TRY(TEMP(p->ctx, room, n));
	for (int v = 0; v < n; v++)
		room[v] = (int)(m->room[v] / weight);
	TRY(list_entries(m, need, room));
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
	for (int v = 0; v < n; v++)
		m->due[v] = m->counted[p->c.of[v]] ? 0 : m->due[v];
	for (int i = 0; i < m->first_entry[n_groups]; i++)
		if (m->counted[p->c.of[m->entry[i].rank]])
			m->due[m->entry[i].rank] += m->entry[i].count * weight;
	return OK;
}

/* Parts with which entries send as much as they may, or the same share of that: by scaling (Sinkhorn 1967). */
static void
balance(struct spread *m)
{
	enum { ROUNDS = 30 };
	int n = m->p->topo->n_ranks;
	for (int v = 0; v < n; v++)
		m->part[v] = 1;
	for (int round = 0; round <= ROUNDS; round++) {
		memset(m->planned, 0, (size_t)n * sizeof *m->planned);
		for (int i = 0; i < m->n_slots; i++) {
			find_entries(m, &m->slot[i]);
			plan_slot(m, &m->slot[i], 1);
		}
		for (int v = 0; v < n && round < ROUNDS; v++)
			if (m->planned[v] > 0) {
				double part = m->part[v] * (double)m->room[v] / m->planned[v];
				m->part[v] = part < 1e-6 ? 1e-6 : part > 1e6 ? 1e6 : part;
			}
	}
}

/* By hubs. */
static Status
sort_trees(struct spread *m)
{
	const struct plan *p = m->p;
	Packing *pack = m->pack, sorted = *pack;
	int *first;
	TRY(TEMP(p->ctx, first, p->n_hubs + 1));
	TRY(pack_room(p->ctx, pack->n_trees, true, &sorted));
	for (int t = 0; t < pack->n_trees; t++)
		first[m->hub_of[t] + 1]++;
	for (int h = 0; h < p->n_hubs; h++)
		first[h + 1] += first[h];
	for (int t = 0; t < pack->n_trees; t++) {
		int to = first[m->hub_of[t]]++;
		sorted.tree[to] = pack->tree[t];
		sorted.weight[to] = pack->weight[t];
		sorted.demand[to] = pack->demand[t];
	}
	*pack = sorted;
	return OK;
}

static Status
new_spread(struct spread *m)
{
	const struct plan *p = m->p;
	Ctx *ctx = p->ctx;
	int n = p->topo->n_ranks;
	TRY(TEMP(ctx, m->slot, m->n_slots));
	TRY(TEMP(ctx, m->room, n));
	TRY(TEMP(ctx, m->due, n));
	TRY(TEMP(ctx, m->due_now, n));
	TRY(TEMP(ctx, m->planned, n));
	TRY(TEMP(ctx, m->part, n));
	TRY(TEMP(ctx, m->sent, n));
	TRY(TEMP(ctx, m->arc, n));
	TRY(TEMP(ctx, m->arc_begin, n));
	TRY(TEMP(ctx, m->count, n));
	TRY(TEMP(ctx, m->own, n));
	TRY(TEMP(ctx, m->uplink, n));
	TRY(TEMP(ctx, m->main, n));
	TRY(TEMP(ctx, m->leaves, n));
	TRY(TEMP(ctx, m->member, n));
	TRY(TEMP(ctx, m->n_entries, p->c.n_servers));
	TRY(TEMP(ctx, m->counted, p->c.n_servers));
	TRY(TEMP(ctx, m->first_entry, (size_t)m->n_slots * (size_t)p->c.n_servers + 1));
	TRY(TEMP(ctx, m->hub_of, m->most_trees));
	return unequal_new_edges(m->p, &m->edges);
}

Status
unequal_spread_trees(struct plan *p, Packing *pack, bool *good)
{
	struct spread m = { .p = p, .pack = pack };
	m.n_slots = list_slots(&m);
	*good = m.n_slots > 0 && unequal_may_have(p, m.n_slots);
	if (!*good)
		return OK;
	m.most_trees = m.n_slots + 2 * p->topo->n_ranks;
	while (!unequal_may_have(p, m.most_trees))
		m.most_trees--;
	TRY(new_spread(&m));
	TRY(pack_room(p->ctx, m.most_trees, true, pack));
	list_slots(&m);
	TRY(measure(&m));
	balance(&m);
	if (p->slots)
		TRY(count_sends(&m));
	qsort(m.slot, (size_t)m.n_slots, sizeof *m.slot, compare_slots);
	for (m.n_left = m.n_slots; m.n_left > 0; m.n_left--)
		TRY(make_slot(&m, &m.slot[m.n_slots - m.n_left]));
	return sort_trees(&m);
}
