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
 * flow finds for all trees of a server (unequal_helpers.c), so that no others send, and trees are not deep. */
#include "plan/pack/cluster/unequal_entries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Is rank v to send to another one of its server, which all have data from? */
static bool
is_due(const struct spread *m, int v)
{
	int s = m->p->c.of[v];
	return m->main[v] && m->n_entries[s] < m->p->c.server[s].n;
}

static void
set_due(struct spread *m, const struct slot *slot)
{
	const struct plan *p = m->p;
	const int *first = m->first_entry + (size_t)slot->number * (size_t)p->c.n_servers;
	for (int v = 0; v < p->topo->n_ranks; v++)
		m->due_now[v] = is_due(m, v) ? m->weight : 0;
	for (int s = 0; s < p->c.n_servers; s++)
		for (int i = first[s]; i < first[s + 1] && m->counted[s]; i++)
			m->due_now[m->entry[i].rank] = m->entry[i].count * m->weight;
}

static Status
make_slot(struct spread *m, const struct slot *slot)
{
	const struct plan *p = m->p;
	m->weight = slot->end - slot->begin;
	unequal_find_entries(m, slot);
	set_due(m, slot);
	plan_slot(m, slot, -1);
	m->n_trees = m->pack->n_trees + 1;
	for (int s = 0; s < p->c.n_servers; s++)
		unequal_share_server(m, s);
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
		unequal_find_entries(m, slot);
		all += weight;
		for (int s = 0; s < p->c.n_servers; s++)
			for (int k = 0; k < m->n_entries[s]; k++) {
				int v = m->member[p->c.server[s].first + k];
				inside[v] -= weight;
				m->due[v] += is_due(m, v) ? weight : 0;
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
			unequal_find_entries(m, &m->slot[i]);
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
	if (p->max_ratio > 0)
		TRY(unequal_share_slots(&m));
	qsort(m.slot, (size_t)m.n_slots, sizeof *m.slot, compare_slots);
	for (m.n_left = m.n_slots; m.n_left > 0; m.n_left--)
		TRY(make_slot(&m, &m.slot[m.n_slots - m.n_left]));
	return sort_trees(&m);
}
