/* Over which uplinks the hops of trees go (rooted.c has the idea): plane by plane, those of few uplinks first. On each,
 * a flow leads from servers that send to entries, of a tree into a server, and from these to that server. It takes as
 * many hops as there are slots, of each entry at most the ranks there, and at each server and entry at least those that
 * later planes have no room for. Of equal planes such a flow always is, for each after the others (de Werra 1971:
 * equitable edge colourings). Then ranks are chosen so that none has a tree twice, or from itself; where the only ones
 * left are such, that hop is left to later planes. On the last plane such a hop h changes places with one of the same
 * servers on another plane; or with a and c there, and b goes along:
 *
 *     last plane     h: s -> t, without ranks     b: u -> v     then     a: s -> v     c: u -> t
 *     another        a: s -> v                    c: u -> t              h: s -> t     b: u -> v */
#include "plan/pack/cluster/rooted_hops.h"

#include <string.h>

/* A tree enters a server; by the ranks of a plane, as often as there are. */
struct entry {
	int to;
	int left;		/* hops without a plane */
	int degree, least, most;	/* hops on this plane */
};

/* All hops of a tree from one server to another. */
struct pair {
	int from, entry, first, n;	/* in `hop` */
	int left, used;			/* that have no plane yet; of these, on this one */
};

struct uplinks {
	struct rooted *p;
	int n_pairs, n_entries;
	struct pair *pair;
	struct entry *entry;		/* by server */
	int *hop;			/* by pair */
	int *entry_of;			/* [tree * servers + server] */
	int *first_pair[2], *list;	/* pairs of a server that sends; of an entry, in `list` */
	int *first_entry;		/* of a server */
	/* [plane * servers + server], of side 0, that sends, and 1, that is entered: free slots; entries that ranks
	 * need; ranks that may be entered */
	int *slots[2], *need, *ranks;
	int *left[2];			/* hops without a plane */
	int *degree[2], *least[2], *most[2];	/* hops on this plane */
	int *free[2], *needed;		/* of each uplink: slots to send and to be entered; entries needed there */
	bool *done, last;		/* of each plane; this is the last one */
	int *queue, *from, *by;		/* of nodes; the pair that leads there */
	int n_taken, *taken;		/* hops on this plane */
	struct hop **listed[3];		/* scratch: hops of a server on a plane */
};

/* ---- pairs ---- */

static int
entry_at(const struct uplinks *q, const struct hop *hop)
{
	return *rooted_at(q->p, q->entry_of, hop->tree, hop->to);
}

/* Hops by the servers that send them, of each by those that they enter, and of these by trees. */
static Status
sort_hops(struct uplinks *q)
{
	struct rooted *p = q->p;
	int n = p->c.n_servers, *by_to, *first;
	TRY(TEMP_EACH(p->ctx, p->n_hops + 1, by_to, q->hop));
	TRY(TEMP(p->ctx, first, n + 1));
	/* By counting, first by the one end, then by the other: hops are listed by trees. */
	for (int side = 1; side >= 0; side--) {
		int *in = side ? NULL : by_to, *out = side ? by_to : q->hop;
		memset(first, 0, ((size_t)n + 1) * sizeof *first);
		for (int h = 0; h < p->n_hops; h++)
			first[(side ? p->hop[h].to : p->hop[h].from) + 1]++;
		for (int s = 0; s < n; s++)
			first[s + 1] += first[s];
		for (int i = 0; i < p->n_hops; i++) {
			int h = in ? in[i] : i;
			out[first[side ? p->hop[h].to : p->hop[h].from]++] = h;
		}
	}
	return OK;
}

static Status
list_entries(struct uplinks *q)
{
	struct rooted *p = q->p;
	int n = p->c.n_servers;
	TRY(TEMP(p->ctx, q->entry_of, (size_t)p->n_trees * (size_t)n));
	TRY(TEMP(p->ctx, q->entry, p->n_hops + 1));
	TRY(TEMP(p->ctx, q->first_entry, n + 1));
	for (int h = 0; h < p->n_hops; h++)
		++*rooted_at(p, q->entry_of, p->hop[h].tree, p->hop[h].to);
	for (int s = 0; s < n; s++) {
		q->first_entry[s] = q->n_entries;
		for (int t = 0; t < p->n_trees; t++) {
			int *at = rooted_at(p, q->entry_of, t, s);
			if (*at == 0)
				continue;
			q->entry[q->n_entries] = (struct entry){ .to = s, .left = *at };
			*at = q->n_entries++;
		}
	}
	q->first_entry[n] = q->n_entries;
	return OK;
}

static Status
list_pairs(struct uplinks *q)
{
	struct rooted *p = q->p;
	Ctx *ctx = p->ctx;
	int n = p->c.n_servers;
	TRY(sort_hops(q));
	TRY(list_entries(q));
	TRY(TEMP_EACH(ctx, p->n_hops + 1, q->pair, q->list, q->taken));
	TRY(TEMP_EACH(ctx, p->n_hops + 1, q->listed[0], q->listed[1], q->listed[2]));
	TRY(TEMP(ctx, q->first_pair[0], n + 1));
	TRY(TEMP(ctx, q->first_pair[1], q->n_entries + 2));
	TRY(TEMP_EACH(ctx, 2 * n + 1 + q->n_entries, q->queue, q->from, q->by));
	for (int i = 0; i < p->n_hops; i++) {
		const struct hop *hop = &p->hop[q->hop[i]];
		struct pair *last = &q->pair[q->n_pairs - 1];
		if (q->n_pairs == 0 || last->from != hop->from || last->entry != entry_at(q, hop)) {
			last = &q->pair[q->n_pairs++];
			*last = (struct pair){ .from = hop->from, .entry = entry_at(q, hop), .first = i };
		}
		last->n++;
	}
	for (int i = 0; i < q->n_pairs; i++) {
		q->first_pair[0][q->pair[i].from + 1]++;
		q->first_pair[1][q->pair[i].entry + 2]++;
	}
	for (int s = 0; s < n; s++)
		q->first_pair[0][s + 1] += q->first_pair[0][s];
	for (int e = 0; e < q->n_entries; e++)
		q->first_pair[1][e + 2] += q->first_pair[1][e + 1];
	for (int i = 0; i < q->n_pairs; i++)
		q->list[q->first_pair[1][q->pair[i].entry + 1]++] = i;
	return OK;
}

static int *
cell(const struct uplinks *q, int *table, int plane, int server)
{
	return &table[(size_t)plane * (size_t)q->p->c.n_servers + (size_t)server];
}

static int
plane_of(const struct rooted *p, int uplink)
{
	return p->plane[p->c.uplink[0][uplink].network];
}

/* ---- ranks of a hop ---- */

static bool
may_enter(const struct rooted *p, const struct hop *hop, int uplink)
{
	int part = *rooted_part(p, p->c.uplink[0][uplink].rank, hop->tree);
	return !(part & (FIRST_ENTRY | ENTRY)) && (hop->first || !(part & EARLY_SOURCE));
}

/* The uplink by which it may enter, of most needs, then of most slots; -1: there is none. */
static int
choose_entry(const struct uplinks *q, const struct hop *hop, int plane)
{
	const struct rooted *p = q->p;
	const struct cluster_server *server = &p->c.server[hop->to];
	int best = -1;
	for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++) {
		if (q->free[1][w] <= 0 || plane_of(p, w) != plane || !may_enter(p, hop, w))
			continue;
		if (best < 0 || q->needed[w] > q->needed[best]
		    || (q->needed[w] == q->needed[best] && q->free[1][w] > q->free[1][best]))
			best = w;
	}
	return best;
}

/* The uplink by which it leaves: best of a rank that has the data first. A direct tree leaves the root's own. */
static int
choose_exit(const struct uplinks *q, const struct hop *hop, int plane)
{
	const struct rooted *p = q->p;
	const struct cluster_server *server = &p->c.server[hop->from];
	int best = -1, best_part = 0;
	for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++) {
		int rank = p->c.uplink[0][w].rank, part = *rooted_part(p, rank, hop->tree);
		if (q->free[0][w] <= 0 || plane_of(p, w) != plane || (hop->early && (part & ENTRY))
		    || (hop->from == p->home && p->direct[hop->tree] && rank != p->root))
			continue;
		part &= FIRST_ENTRY | ENTRY;
		part = part == 0 ? 3 : part;
		if (best < 0 || part < best_part || (part == best_part && q->free[0][w] > q->free[0][best])) {
			best = w;
			best_part = part;
		}
	}
	return best;
}

static void
enter(struct uplinks *q, struct hop *hop, int uplink)
{
	hop->in = uplink;
	q->free[1][uplink]--;
	q->needed[uplink]--;
	*rooted_part(q->p, q->p->c.uplink[0][uplink].rank, hop->tree) |= hop->first ? FIRST_ENTRY : ENTRY;
}

static void
leave_entry(struct uplinks *q, const struct hop *hop)
{
	q->free[1][hop->in]++;
	q->needed[hop->in]++;
	*rooted_part(q->p, q->p->c.uplink[0][hop->in].rank, hop->tree) &= EARLY_SOURCE;
}

/* The same, where another hop of the plane leaves its own for a free one. */
static int
exchange_entry(struct uplinks *q, const struct hop *hop, int plane)
{
	const struct rooted *p = q->p;
	const struct cluster_server *server = &p->c.server[hop->to];
	for (int i = 0; i < q->n_taken; i++) {
		struct hop *other = &p->hop[q->taken[i]];
		int own = other->in;
		if (other->to != hop->to)
			continue;
		leave_entry(q, other);
		for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++)
			if (w != own && q->free[1][w] > 0 && plane_of(p, w) == plane && may_enter(p, other, w)
			    && may_enter(p, hop, own)) {
				enter(q, other, w);
				return own;
			}
		enter(q, other, own);
	}
	return -1;
}

static void
put(struct uplinks *q, struct hop *hop, int out, int in)
{
	struct rooted *p = q->p;
	enter(q, hop, in);
	hop->out = out;
	q->free[0][out]--;
	if (hop->early)
		*rooted_part(p, p->c.uplink[0][out].rank, hop->tree) |= EARLY_SOURCE;
	q->left[0][hop->from]--;
	q->left[1][hop->to]--;
	q->entry[entry_at(q, hop)].left--;
}

static void
withdraw(struct uplinks *q, struct hop *hop)
{
	struct rooted *p = q->p;
	int rank = p->c.uplink[0][hop->out].rank;
	q->free[0][hop->out]++;
	leave_entry(q, hop);
	q->left[0][hop->from]++;
	q->left[1][hop->to]++;
	q->entry[entry_at(q, hop)].left++;
	hop->in = hop->out = -1;
	/* Its rank may send others of the tree. */
	unsigned char *part = rooted_part(p, rank, hop->tree);
	*part &= (unsigned char)~EARLY_SOURCE;
	const struct hop *end = p->hop + p->n_hops;
	for (int side = -1; side <= 1; side += 2)
		for (const struct hop *h = hop; h >= p->hop && h < end && h->tree == hop->tree; h += side)
			if (h->early && h->out >= 0 && p->c.uplink[0][h->out].rank == rank)
				*part |= EARLY_SOURCE;
}

static bool
take(struct uplinks *q, int h, int plane)
{
	struct hop *hop = &q->p->hop[h];
	int out = choose_exit(q, hop, plane), in = out < 0 ? -1 : choose_entry(q, hop, plane);
	in = out < 0 || in >= 0 ? in : exchange_entry(q, hop, plane);
	if (in < 0)
		return false;
	put(q, hop, out, in);
	q->taken[q->n_taken++] = h;
	return true;
}

/* All of this plane. */
static void
give_back(struct uplinks *q)
{
	while (q->n_taken > 0)
		withdraw(q, &q->p->hop[q->taken[--q->n_taken]]);
}

/* ---- exchanges of the last plane with others ---- */

/* Direct hops stay where they are. */
static bool
is_on(const struct uplinks *q, const struct hop *hop, int plane)
{
	return hop->out >= 0 && plane_of(q->p, hop->out) == plane
	    && !(hop->from == q->p->home && q->p->direct[hop->tree]);
}

/* Hops that server s sends, of side 0, or by which it is entered, on this plane. */
static int
list_hops(const struct uplinks *q, int side, int s, int plane, struct hop **list)
{
	const int *first = q->first_pair[side];
	int n = 0, from = side ? q->first_entry[s] : s, end = side ? q->first_entry[s + 1] : s + 1;
	for (int i = first[from]; i < first[end]; i++) {
		const struct pair *pair = &q->pair[side ? q->list[i] : i];
		for (int k = pair->first; k < pair->first + pair->n; k++) {
			struct hop *hop = &q->p->hop[q->hop[k]];
			if (is_on(q, hop, plane))
				list[n++] = hop;
		}
	}
	return n;
}

/* Of n hops, 2 or 4, hop[0], which has no uplinks yet, and hop[2] go to plane `other`, the others to `plane`. */
static bool
move_hops(struct uplinks *q, struct hop *const *hop, int n, int plane, int other)
{
	int was_out[4], was_in[4], placed = 0;
	for (int i = 1; i < n; i++) {
		was_out[i] = hop[i]->out;
		was_in[i] = hop[i]->in;
		withdraw(q, hop[i]);
	}
	for (; placed < n; placed++) {
		int to = placed % 2 ? plane : other;
		int out = choose_exit(q, hop[placed], to), in = choose_entry(q, hop[placed], to);
		if (out < 0 || in < 0)
			break;
		put(q, hop[placed], out, in);
	}
	if (placed == n)
		return true;
	while (placed > 0)
		withdraw(q, hop[--placed]);
	for (int i = 1; i < n; i++)
		put(q, hop[i], was_out[i], was_in[i]);
	return false;
}

static bool
exchange_with(struct uplinks *q, struct hop *h, int plane, int other)
{
	struct hop **a = q->listed[0], **b = q->listed[1], **c = q->listed[2];
	int n_a = list_hops(q, 0, h->from, other, a), n_c = list_hops(q, 1, h->to, other, c);
	for (int i = 0; i < n_a; i++) {
		int n_b = a[i]->to == h->to ? 0 : list_hops(q, 1, a[i]->to, plane, b);
		if (a[i]->to == h->to && move_hops(q, (struct hop *[]){ h, a[i] }, 2, plane, other))
			return true;
		q->p->work -= n_b * n_c;
		for (int k = 0; k < n_b * n_c; k++) {
			struct hop *moved[] = { h, a[i], b[k / n_c], c[k % n_c] };
			if (moved[2]->from == moved[3]->from && move_hops(q, moved, 4, plane, other))
				return true;
		}
	}
	return false;
}

static void
list_taken(struct uplinks *q, int plane)
{
	const struct rooted *p = q->p;
	q->n_taken = 0;
	for (int h = 0; h < p->n_hops; h++)
		if (is_on(q, &p->hop[h], plane))
			q->taken[q->n_taken++] = h;
}

/* One more hop of a pair, where no later plane has room for it. */
static bool
exchange_planes(struct uplinks *q, const struct pair *pair, int plane)
{
	struct rooted *p = q->p;
	for (int k = pair->first; k < pair->first + pair->n; k++)
		for (int g = 0; g < p->n_planes && p->hop[q->hop[k]].out < 0 && p->work > 0; g++) {
			p->work -= p->n_hops;
			if (g == plane || !exchange_with(q, &p->hop[q->hop[k]], plane, g))
				continue;
			list_taken(q, plane);
			return true;
		}
	return false;
}

/* Hops of direct trees out of the root's server, before all others. */
static bool
take_direct(struct uplinks *q)
{
	const struct rooted *p = q->p;
	const struct cluster_server *home = &p->c.server[p->home];
	bool good = true;
	for (int h = 0; h < p->n_hops && good; h++) {
		if (p->hop[h].from != p->home || !p->direct[p->hop[h].tree])
			continue;
		good = false;
		for (int w = home->first_uplink[0]; w < home->first_uplink[0] + home->n_uplinks[0] && !good; w++) {
			int g = plane_of(p, w);
			good = p->c.uplink[0][w].rank == p->root && take(q, h, g);
			*cell(q, q->slots[0], g, p->home) -= good;
			*cell(q, q->slots[1], g, p->hop[h].to) -= good;
			if (good && *cell(q, q->need, g, p->hop[h].to) > 0)
				--*cell(q, q->need, g, p->hop[h].to);
		}
	}
	q->n_taken = 0;
	return good;
}

/* ---- the flow of a plane ---- */

/* Hops flow from a node 0 to the servers that send them, to entries of trees, to the servers that these enter, and back
 * to node 0. Bounds are those of servers and of entries. */
static int
sender_node(int s)
{
	return 1 + s;
}

static int
server_node(const struct uplinks *q, int s)
{
	return 1 + q->p->c.n_servers + s;
}

static int
entry_node(const struct uplinks *q, int e)
{
	return 1 + 2 * q->p->c.n_servers + e;
}

/* A node to look from next, which one more, or one less, hop over this pair, or none, leads to. */
static void
reach(struct uplinks *q, int *n, int at, int node, int pair)
{
	if (q->from[node] >= 0)
		return;
	q->from[node] = at;
	q->by[node] = pair;
	q->queue[(*n)++] = node;
}

static void
look_from_servers(struct uplinks *q, int *n)
{
	for (int s = 0; s < q->p->c.n_servers; s++) {
		if (q->degree[0][s] < q->most[0][s])
			reach(q, n, 0, sender_node(s), -1);
		if (q->degree[1][s] > q->least[1][s])
			reach(q, n, 0, server_node(q, s), -1);
	}
}

static void
look_from_sender(struct uplinks *q, int *n, int s)
{
	for (int i = q->first_pair[0][s]; i < q->first_pair[0][s + 1]; i++)
		if (q->pair[i].used < q->pair[i].left)
			reach(q, n, sender_node(s), entry_node(q, q->pair[i].entry), i);
	if (q->degree[0][s] > q->least[0][s])
		reach(q, n, sender_node(s), 0, -1);
}

static void
look_from_entry(struct uplinks *q, int *n, int e)
{
	for (int i = q->first_pair[1][e]; i < q->first_pair[1][e + 1]; i++)
		if (q->pair[q->list[i]].used > 0)
			reach(q, n, entry_node(q, e), sender_node(q->pair[q->list[i]].from), q->list[i]);
	if (q->entry[e].degree < q->entry[e].most)
		reach(q, n, entry_node(q, e), server_node(q, q->entry[e].to), -1);
}

static void
look_from_server(struct uplinks *q, int *n, int s)
{
	for (int e = q->first_entry[s]; e < q->first_entry[s + 1]; e++)
		if (q->entry[e].degree > q->entry[e].least)
			reach(q, n, server_node(q, s), entry_node(q, e), -1);
	if (q->degree[1][s] < q->most[1][s])
		reach(q, n, server_node(q, s), 0, -1);
}

/* One more from `at` to `node`, or, where it is the other way round, one less. */
static void
change(struct uplinks *q, int at, int node)
{
	int n = q->p->c.n_servers, low = at < node ? at : node, high = at < node ? node : at;
	int more = at < node ? 1 : -1;
	if (low == 0 && high <= n)
		q->degree[0][high - 1] += more;
	else if (low == 0)
		q->degree[1][high - 1 - n] -= more;
	else if (low <= n)
		q->pair[q->by[node]].used += more;
	else
		q->entry[high - 1 - 2 * n].degree -= more;
}

/* One more hop over the way from node `end` to node `start`, by a path from there to here of ways that have one more,
 * or one less. */
static bool
augment(struct uplinks *q, int start, int end)
{
	int n = 0, servers = q->p->c.n_servers, nodes = 1 + 2 * servers + q->n_entries;
	memset(q->from, -1, (size_t)nodes * sizeof *q->from);
	reach(q, &n, start, start, -1);
	for (int i = 0; i < n && q->from[end] < 0 && q->p->work > 0; i++) {
		int at = q->queue[i], before = n;
		if (at == 0)
			look_from_servers(q, &n);
		else if (at <= servers)
			look_from_sender(q, &n, at - 1);
		else if (at <= 2 * servers)
			look_from_server(q, &n, at - 1 - servers);
		else
			look_from_entry(q, &n, at - 1 - 2 * servers);
		q->p->work -= 1 + n - before;
	}
	q->p->work -= nodes / 8;
	if (q->from[end] < 0)
		return false;
	for (int node = end; node != start; node = q->from[node])
		change(q, q->from[node], node);
	change(q, end, start);
	return true;
}

/* Hops of pairs whose servers and trees have room, if needed: where one of these has less than its least. */
static void
fill_pairs(struct uplinks *q, bool needed)
{
	for (int i = 0; i < q->n_pairs; i++) {
		struct pair *pair = &q->pair[i];
		struct entry *entry = &q->entry[pair->entry];
		int *from = &q->degree[0][pair->from], *to = &q->degree[1][entry->to];
		for (; pair->used < pair->left && *from < q->most[0][pair->from] && *to < q->most[1][entry->to]
		    && entry->degree < entry->most && (!needed || *from < q->least[0][pair->from]
		    || *to < q->least[1][entry->to] || entry->degree < entry->least); ++*from, ++*to) {
			entry->degree++;
			pair->used++;
		}
	}
}

/* False: some have less hops than they need on this plane. */
static bool
meet_least(struct uplinks *q)
{
	for (int e = 0; e < q->n_entries; e++)
		while (q->entry[e].degree < q->entry[e].least)
			if (!augment(q, server_node(q, q->entry[e].to), entry_node(q, e)))
				return false;
	for (int s = 0; s < q->p->c.n_servers; s++) {
		while (q->degree[0][s] < q->least[0][s])
			if (!augment(q, sender_node(s), 0))
				return false;
		while (q->degree[1][s] < q->least[1][s])
			if (!augment(q, 0, server_node(q, s)))
				return false;
	}
	return true;
}

static bool
find_flow(struct uplinks *q)
{
	for (int side = 0; side < 2; side++)
		memset(q->degree[side], 0, (size_t)q->p->c.n_servers * sizeof *q->degree[side]);
	for (int e = 0; e < q->n_entries; e++)
		q->entry[e].degree = 0;
	for (int i = 0; i < q->n_pairs; i++)
		q->pair[i].used = 0;
	fill_pairs(q, true);
	if (!meet_least(q))
		return false;
	fill_pairs(q, false);
	return true;
}

/* One hop less of this pair, and no more. */
static bool
leave_out(struct uplinks *q, struct pair *pair)
{
	pair->left = --pair->used;
	q->degree[0][pair->from]--;
	q->degree[1][q->entry[pair->entry].to]--;
	q->entry[pair->entry].degree--;
	return meet_least(q);
}

/* Bounds of the hops of each server on this plane. False: it has more left than all planes have room for. */
static bool
set_bounds(struct uplinks *q, int plane)
{
	bool good = true;
	for (int side = 0; side < 2; side++)
		for (int s = 0; s < q->p->c.n_servers; s++) {
			int later = 0, later_need = 0, slots = *cell(q, q->slots[side], plane, s);
			int need = side ? *cell(q, q->need, plane, s) : 0;
			for (int g = 0; g < q->p->n_planes; g++) {
				later += g == plane || q->done[g] ? 0 : *cell(q, q->slots[side], g, s);
				later_need += g == plane || q->done[g] || !side ? 0 : *cell(q, q->need, g, s);
			}
			int left = q->left[side][s], most = left - later_need;
			q->most[side][s] = most < slots ? most : slots;
			q->least[side][s] = left - later > need ? left - later : need;
			good = good && q->least[side][s] <= q->most[side][s];
		}
	for (int e = 0; e < q->n_entries; e++) {
		struct entry *entry = &q->entry[e];
		int ranks = q->last ? entry->left : *cell(q, q->ranks, plane, entry->to), later = 0;
		for (int g = 0; g < q->p->n_planes; g++)
			later += g == plane || q->done[g] ? 0 : *cell(q, q->ranks, g, entry->to);
		entry->most = entry->left < ranks ? entry->left : ranks;
		entry->least = entry->left > later ? entry->left - later : 0;
		good = good && entry->least <= entry->most;
	}
	return good;
}

/* One more hop of a pair, which all have the same tree. */
static bool
take_one(struct uplinks *q, const struct pair *pair, int plane)
{
	for (int k = pair->first; k < pair->first + pair->n; k++)
		if (q->p->hop[q->hop[k]].out < 0 && take(q, q->hop[k], plane))
			return true;
	return false;
}

/* The pair of which a hop had no ranks; -1: all have. */
static int
take_flow(struct uplinks *q, int plane)
{
	for (int i = 0; i < q->n_pairs; i++)
		for (int n = 0; n < q->pair[i].used; n++)
			if (!take_one(q, &q->pair[i], plane) && !(q->last && exchange_planes(q, &q->pair[i], plane)))
				return i;
	return -1;
}

/* Hops of each pair that have no plane yet. */
static void
count_left(struct uplinks *q)
{
	for (int i = 0; i < q->n_pairs; i++) {
		struct pair *pair = &q->pair[i];
		pair->left = 0;
		for (int k = pair->first; k < pair->first + pair->n; k++)
			pair->left += q->p->hop[q->hop[k]].out < 0;
	}
}

static bool
fill_plane(struct uplinks *q, int plane)
{
	count_left(q);
	q->n_taken = 0;
	bool good = set_bounds(q, plane) && find_flow(q);
	for (int i = 0; good && (i = take_flow(q, plane)) >= 0;) {
		q->p->work -= q->p->n_hops;
		give_back(q);
		good = q->p->work > 0 && leave_out(q, &q->pair[i]);
	}
	return good;
}

/* ---- all planes ---- */

static Status
count_slots(struct uplinks *q)
{
	const struct rooted *p = q->p;
	Ctx *ctx = p->ctx;
	size_t cells = (size_t)p->n_planes * (size_t)p->c.n_servers;
	int n = p->c.n_servers;
	TRY(TEMP_EACH(ctx, cells, q->slots[0], q->slots[1], q->need, q->ranks));
	TRY(TEMP_EACH(ctx, p->c.n_uplinks[0], q->free[0], q->free[1], q->needed));
	TRY(TEMP_EACH(ctx, n, q->left[0], q->left[1], q->degree[0], q->degree[1], q->least[0], q->least[1], q->most[0],
	    q->most[1]));
	TRY(TEMP(ctx, q->done, p->n_planes));
	for (int w = 0; w < p->c.n_uplinks[0]; w++) {
		int rank = p->c.uplink[0][w].rank, s = p->c.of[rank];
		q->free[0][w] = p->slots[w];
		q->free[1][w] = rank == p->root ? 0 : p->slots[w];
		q->needed[w] = p->need[w];
		for (int side = 0; side < 2; side++)
			*cell(q, q->slots[side], plane_of(p, w), s) += q->free[side][w];
		*cell(q, q->need, plane_of(p, w), s) += p->need[w];
		*cell(q, q->ranks, plane_of(p, w), s) += q->free[1][w] > 0;
	}
	for (int h = 0; h < p->n_hops; h++) {
		q->left[0][p->hop[h].from]++;
		q->left[1][p->hop[h].to]++;
	}
	return OK;
}

/* The next: of least slots. */
static int
next_plane(const struct uplinks *q)
{
	int best = -1;
	int64_t least = 0;
	for (int g = 0; g < q->p->n_planes; g++) {
		int64_t slots = 0;
		for (int s = 0; s < q->p->c.n_servers && !q->done[g]; s++)
			slots += *cell(q, q->slots[1], g, s);
		if (!q->done[g] && (best < 0 || slots < least)) {
			best = g;
			least = slots;
		}
	}
	return best;
}

Status
rooted_choose_uplinks(struct rooted *p, bool *good)
{
	struct uplinks q = { .p = p };
	TRY(TEMP(p->ctx, p->part, (size_t)p->topo->n_ranks * (size_t)p->n_trees));
	for (int t = 0; t < p->n_trees; t++)
		*rooted_part(p, p->root, t) = FIRST_ENTRY;
	TRY(count_slots(&q));
	TRY(list_pairs(&q));
	*good = take_direct(&q);
	for (int i = 0; i < p->n_planes && *good; i++) {
		int g = next_plane(&q);
		q.last = i == p->n_planes - 1;
		*good = fill_plane(&q, g);
		q.done[g] = true;
	}
	for (int h = 0; h < p->n_hops && *good; h++)
		*good = p->hop[h].out >= 0;
	return OK;
}
