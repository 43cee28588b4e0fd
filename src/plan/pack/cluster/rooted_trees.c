/* Trees of a root from their hops between servers (rooted.c has the idea). In a server the ranks that a tree enters
 * send to the others. The number of hops that each sends, over all trees, has a limit, by its link to the switch; what
 * is missing then is sent by ranks that have room left, and come first. Where a server sends in the tree, ranks that
 * have to do so early come before them, from the first entry:
 *
 *     entries a, b, with room for two each:   a -> c, d    b -> e, f    and of c, with room for two,   c -> g, h */
#include "plan/pack/cluster/rooted_parts.h"

#include <string.h>

struct maker {
	struct rooted *p;
	int *quota;		/* [rank * n_trees + tree]: to how many others it sends */
	int *missing;		/* of each tree, in the current server: ranks that nobody sends to yet */
	int *member, n_queue, *queue;	/* of the current tree: who gets it in this order; who has it */
	int open;		/* to how many more those in the queue may send */
	Edge *edge;
	int n_edges;
};

static int *
quota(const struct maker *m, int rank, int tree)
{
	return &m->quota[(size_t)rank * (size_t)m->p->n_trees + (size_t)tree];
}

static const int *
ranks_of(const struct maker *m, int s)
{
	return m->p->c.rank + m->p->c.server[s].first;
}

static bool
enters(const struct maker *m, int rank, int tree)
{
	return *rooted_part(m->p, rank, tree) & (FIRST_ENTRY | ENTRY);
}

/* ---- who sends to how many ---- */

static void
give(struct maker *m, int rank, int tree, int64_t n)
{
	n = n < m->p->room[rank] ? n : m->p->room[rank];
	n = n < m->missing[tree] ? n : m->missing[tree];
	n = n < 0 ? 0 : n;
	*quota(m, rank, tree) += (int)n;
	m->missing[tree] -= (int)n;
	m->p->room[rank] -= n;
}

/* The first entry sends to one at least. all: and to those that send early; where it has no room for these, one of them
 * does. */
static void
give_early(struct maker *m, int s, int tree, bool all)
{
	const struct rooted *p = m->p;
	const int *rank = ranks_of(m, s);
	int early = 0, first = -1, next = -1;
	for (int i = 0; i < p->c.server[s].n; i++) {
		int part = *rooted_part(p, rank[i], tree);
		first = part & FIRST_ENTRY || (part & ENTRY && first < 0) ? rank[i] : first;
		if (part & EARLY_SOURCE && !(part & (FIRST_ENTRY | ENTRY))) {
			early++;
			next = next < 0 || p->room[rank[i]] > p->room[next] ? rank[i] : next;
		}
	}
	if (first < 0 || (first == p->root && p->direct[tree]))
		return;
	if (!all)
		give(m, first, tree, 1);
	if (!all || next < 0)
		return;
	give(m, first, tree, early - *quota(m, first, tree));
	give(m, next, tree, early - *quota(m, first, tree));
}

/* One more by each rank, in the tree that it enters in which most are missing, and again. */
static void
give_entries(struct maker *m, int s)
{
	const struct rooted *p = m->p;
	const int *rank = ranks_of(m, s);
	for (bool more = true; more;) {
		more = false;
		for (int i = 0; i < p->c.server[s].n; i++) {
			int best = -1;
			for (int t = 0; t < p->n_trees && p->room[rank[i]] > 0; t++)
				if (enters(m, rank[i], t) && m->missing[t] > 0 && !(rank[i] == p->root && p->direct[t])
				    && (best < 0 || m->missing[t] > m->missing[best]))
					best = t;
			if (best >= 0)
				give(m, rank[i], best, 1);
			more = more || best >= 0;
		}
	}
}

/* What is missing yet, by those with most room. */
static void
give_rest(struct maker *m, int s)
{
	const struct rooted *p = m->p;
	const int *rank = ranks_of(m, s);
	for (int t = 0; t < p->n_trees; t++)
		while (m->missing[t] > 0) {
			int best = -1;
			for (int i = 0; i < p->c.server[s].n; i++)
				if (rank[i] != p->root && p->room[rank[i]] > 0
				    && (best < 0 || p->room[rank[i]] > p->room[best]))
					best = rank[i];
			if (best < 0)
				break;
			give(m, best, t, p->room[best]);
		}
}

/* Where the switch has no room for all trees, all ranks overload it by the same number of hops. */
static void
widen_rooms(struct maker *m, int s)
{
	const struct rooted *p = m->p;
	int64_t n = p->c.server[s].n, missing = 0;
	for (int t = 0; t < p->n_trees; t++)
		missing += m->missing[t];
	for (int i = 0; i < n; i++)
		missing -= p->room[ranks_of(m, s)[i]];
	for (int i = 0; i < n && missing > 0; i++)
		p->room[ranks_of(m, s)[i]] += (missing + n - 1) / n;
}

static void
share_rooms(struct maker *m, int s)
{
	const struct rooted *p = m->p;
	for (int t = 0; t < p->n_trees; t++) {
		m->missing[t] = p->c.server[s].n;
		for (int i = 0; i < p->c.server[s].n; i++)
			m->missing[t] -= enters(m, ranks_of(m, s)[i], t);
	}
	widen_rooms(m, s);
	for (int t = 0; t < p->n_trees; t++)
		give_early(m, s, t, false);
	for (int t = 0; t < p->n_trees; t++)
		give_early(m, s, t, true);
	give_entries(m, s);
	give_rest(m, s);
}

/* ---- in one tree ---- */

/* Ranks that are not entered: those that send early, then the others; of each kind those first that send to most. */
static int
list_members(struct maker *m, int s, int tree, int *n_early)
{
	const struct rooted *p = m->p;
	const int *rank = ranks_of(m, s);
	int n = 0;
	*n_early = 0;
	for (int early = 1; early >= 0; early--) {
		int begin = n;
		for (int i = 0; i < p->c.server[s].n; i++) {
			int v = rank[i], at = n;
			bool is_early = *rooted_part(p, v, tree) & EARLY_SOURCE;
			if (enters(m, v, tree) || is_early != early)
				continue;
			for (; at > begin && *quota(m, m->member[at - 1], tree) < *quota(m, v, tree); at--)
				m->member[at] = m->member[at - 1];
			m->member[at] = v;
			n++;
		}
		*n_early = early ? n : *n_early;
	}
	return n;
}

/* Entries of this kind: they send first. */
static void
add_entries(struct maker *m, int s, int tree, int part)
{
	const struct rooted *p = m->p;
	for (int i = 0; i < p->c.server[s].n; i++) {
		int v = ranks_of(m, s)[i];
		if (!(*rooted_part(p, v, tree) & part) || (v == p->root && p->direct[tree]))
			continue;
		m->queue[m->n_queue++] = v;
		m->open += *quota(m, v, tree);
	}
}

/* The last that those in the queue may send to has to send on, to all others from `next` on. */
static void
move_sender(struct maker *m, int tree, int next, int n)
{
	int best = next;
	for (int i = next; i < n; i++)
		best = *quota(m, m->member[i], tree) > *quota(m, m->member[best], tree) ? i : best;
	int v = m->member[best];
	for (; best > next; best--)
		m->member[best] = m->member[best - 1];
	m->member[next] = v;
}

/* That which is overloaded least, of those that have the tree. */
static int
roomiest(const struct maker *m)
{
	int best = 0;
	for (int i = 1; i < m->n_queue; i++)
		if (m->p->room[m->queue[i]] > m->p->room[m->queue[best]])
			best = i;
	m->p->room[m->queue[best]]--;
	return m->queue[best];
}

static Status
spread(struct maker *m, int s, int tree)
{
	const struct rooted *p = m->p;
	int n_early, n = list_members(m, s, tree, &n_early), at = 0;
	m->n_queue = m->open = 0;
	add_entries(m, s, tree, FIRST_ENTRY);
	bool all = m->n_queue == 0 || n_early == 0;
	if (all)
		add_entries(m, s, tree, ENTRY);
	for (int i = 0; i < n; i++) {
		if (m->open == 1)
			move_sender(m, tree, i, n);
		while (at < m->n_queue && *quota(m, m->queue[at], tree) == 0)
			at++;
		int from = at < m->n_queue ? m->queue[at] : roomiest(m), to = m->member[i];
		m->open -= at < m->n_queue;
		*quota(m, from, tree) -= at < m->n_queue;
		TRY(cluster_near_edge(&p->c, p->into ? to : from, p->into ? from : to, &m->edge[m->n_edges++]));
		m->queue[m->n_queue++] = to;
		m->open += *quota(m, to, tree);
		n_early -= (bool)(*rooted_part(p, to, tree) & EARLY_SOURCE);
		if (n_early == 0 && !all)
			add_entries(m, s, tree, ENTRY);
		all = all || n_early == 0;
	}
	return OK;
}

static Status
add_far(struct maker *m, const struct hop *hop)
{
	bool into = m->p->into;
	return cluster_far_edge(&m->p->c, into ? hop->in : hop->out, into ? hop->out : hop->in, &m->edge[m->n_edges++]);
}

Status
rooted_make_trees(struct rooted *p, Packing *pack)
{
	struct maker m = { .p = p };
	int n = p->topo->n_ranks;
	TRY(TEMP(p->ctx, m.quota, (size_t)n * (size_t)p->n_trees));
	TRY(TEMP(p->ctx, m.missing, p->n_trees));
	TRY(TEMP_EACH(p->ctx, n, m.member, m.queue, m.edge));
	for (int s = 0; s < p->c.n_servers; s++)
		share_rooms(&m, s);
	for (int t = 0, h = 0; t < p->n_trees; t++) {
		m.n_edges = 0;
		for (; h < p->n_hops && p->hop[h].tree == t; h++)
			TRY(add_far(&m, &p->hop[h]));
		for (int s = 0; s < p->c.n_servers; s++)
			TRY(spread(&m, s, t));
		pack->weight[t] = 1;
		TRY(tree_arrange(p->ctx, n, p->coll, p->root, m.edge, NULL, m.n_edges, &pack->tree[t]));
	}
	return OK;
}
