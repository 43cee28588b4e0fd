/* Over which uplinks the hops of trees go (rooted.c has the idea): plane by plane, those of few uplinks first. On one
 * plane a bipartite graph has servers that send on one side, servers that are entered on the other, and an edge for
 * all hops from one to the other. Of these a flow takes as many as there are slots, and at each server at least those
 * that later planes have no room for, and those that ranks have to get there. Then ranks are chosen so that none has a
 * tree twice, or from itself; where the only ones left are such, that edge is left to later planes. On the last plane
 * such a hop h changes places with one of the same servers on another plane; or with a and c there, and b goes along:
 *
 *     last plane     h: s -> t, without ranks     b: u -> v     then     a: s -> v     c: u -> t
 *     another        a: s -> v                    c: u -> t              h: s -> t     b: u -> v */
#include "plan/pack/cluster/rooted_hops.h"

#include <string.h>

/* All hops from one server to another. */
struct pair {
	int from, to, first, n;		/* in `hop` */
	int left, used;			/* that have no plane yet; of these, on this one */
};

struct uplinks {
	struct rooted *p;
	int n_pairs;
	struct pair *pair;
	int *hop;			/* by pair */
	/* Of side 0, servers that send, and 1, servers that are entered: */
	int *first_pair[2], *list[2];	/* their pairs */
	/* [plane * servers + server]: free ones; entries that ranks need; ranks that may be entered */
	int *slots[2], *need, *ranks;
	int *left[2];			/* hops without a plane */
	int *degree[2], *least[2], *most[2];	/* hops on this plane */
	int *free[2], *needed;		/* of each uplink: slots to send and to be entered; entries needed there */
	bool *done, last;		/* of each plane; this is the last one */
	int *queue, *from;		/* of nodes 2 * server + side */
	int n_taken, *taken;		/* hops on this plane */
	struct hop **listed[3];		/* scratch: hops of a server on a plane */
};

/* ---- pairs ---- */

static Status
list_pairs(struct uplinks *q)
{
	struct rooted *p = q->p;
	Ctx *ctx = p->ctx;
	int n = p->c.n_servers, *by_to, *first;
	TRY(TEMP_EACH(ctx, p->n_hops + 1, by_to, q->hop, q->pair, q->list[0], q->list[1], q->taken));
	TRY(TEMP_EACH(ctx, p->n_hops + 1, q->listed[0], q->listed[1], q->listed[2]));
	TRY(TEMP_EACH(ctx, n + 2, first, q->first_pair[0], q->first_pair[1]));
	/* By counting, first by the one end, then by the other. */
	for (int side = 1; side >= 0; side--) {
		int *in = side ? NULL : by_to, *out = side ? by_to : q->hop;
		memset(first, 0, ((size_t)n + 2) * sizeof *first);
		for (int h = 0; h < p->n_hops; h++)
			first[(side ? p->hop[h].to : p->hop[h].from) + 1]++;
		for (int s = 0; s < n; s++)
			first[s + 1] += first[s];
		for (int i = 0; i < p->n_hops; i++) {
			int h = in ? in[i] : i;
			out[first[side ? p->hop[h].to : p->hop[h].from]++] = h;
		}
	}
	for (int i = 0; i < p->n_hops; i++) {
		const struct hop *hop = &p->hop[q->hop[i]];
		struct pair *last = &q->pair[q->n_pairs - 1];
		if (q->n_pairs == 0 || last->from != hop->from || last->to != hop->to) {
			q->pair[q->n_pairs++] = (struct pair){ .from = hop->from, .to = hop->to, .first = i };
			last = &q->pair[q->n_pairs - 1];
		}
		last->n++;
	}
	for (int side = 0; side < 2; side++) {
		int *at = q->first_pair[side];
		for (int i = 0; i < q->n_pairs; i++)
			at[(side ? q->pair[i].to : q->pair[i].from) + 2]++;
		for (int s = 0; s < n; s++)
			at[s + 2] += at[s + 1];
		for (int i = 0; i < q->n_pairs; i++)
			q->list[side][at[(side ? q->pair[i].to : q->pair[i].from) + 1]++] = i;
	}
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
	int n = 0;
	for (int i = q->first_pair[side][s]; i < q->first_pair[side][s + 1]; i++) {
		const struct pair *pair = &q->pair[q->list[side][i]];
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

static int
other_end(const struct pair *pair, int side)
{
	return side ? pair->from : pair->to;
}

/* One more hop at a server of this side, by a path of pairs that have one more, one less, and so on, to a server of the
 * other side with room, or to one of this side that has more than its least. */
static bool
augment(struct uplinks *q, int side, int server)
{
	int n = 0, end = -1, nodes = 2 * q->p->c.n_servers;
	q->p->work -= nodes;
	memset(q->from, -1, (size_t)nodes * sizeof *q->from);
	q->queue[n++] = 2 * server + side;
	q->from[2 * server + side] = q->n_pairs;
	for (int i = 0; i < n && end < 0 && q->p->work > 0; i++) {
		int at = q->queue[i] / 2, of = q->queue[i] % 2;
		q->p->work -= q->first_pair[of][at + 1] - q->first_pair[of][at];
		for (int k = q->first_pair[of][at]; k < q->first_pair[of][at + 1] && end < 0; k++) {
			const struct pair *pair = &q->pair[q->list[of][k]];
			int to = other_end(pair, of), node = 2 * to + !of;
			if (q->from[node] >= 0 || (of == side ? pair->used >= pair->left : pair->used == 0))
				continue;
			q->from[node] = q->list[of][k];
			q->queue[n++] = node;
			if (of == side ? q->degree[!side][to] < q->most[!side][to]
			    : q->degree[side][to] > q->least[side][to])
				end = node;
		}
	}
	if (end < 0)
		return false;
	q->degree[end % 2][end / 2] += end % 2 == side ? -1 : 1;
	q->degree[side][server]++;
	for (int node = end; node != 2 * server + side;) {
		struct pair *pair = &q->pair[q->from[node]];
		pair->used += node % 2 == side ? -1 : 1;
		node = 2 * other_end(pair, node % 2) + !(node % 2);
	}
	return true;
}

/* Hops of pairs whose servers have room, if needed: where one of both has less than its least. */
static void
fill_pairs(struct uplinks *q, bool needed)
{
	for (int i = 0; i < q->n_pairs; i++) {
		struct pair *pair = &q->pair[i];
		int *from = &q->degree[0][pair->from], *to = &q->degree[1][pair->to];
		for (; pair->used < pair->left && *from < q->most[0][pair->from] && *to < q->most[1][pair->to]
		    && (!needed || *from < q->least[0][pair->from] || *to < q->least[1][pair->to]); ++*from, ++*to)
			pair->used++;
	}
}

/* False: some servers have less hops than they need on this plane. */
static bool
meet_least(struct uplinks *q)
{
	for (int side = 0; side < 2; side++)
		for (int s = 0; s < q->p->c.n_servers; s++)
			while (q->degree[side][s] < q->least[side][s])
				if (!augment(q, side, s))
					return false;
	return true;
}

static bool
find_flow(struct uplinks *q)
{
	for (int side = 0; side < 2; side++)
		memset(q->degree[side], 0, (size_t)q->p->c.n_servers * sizeof *q->degree[side]);
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
	q->degree[1][pair->to]--;
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
	return good;
}

/* Hops of a pair that have no plane yet, of the same tree from this one on. */
static int
left_of_tree(const struct uplinks *q, const struct pair *pair, int at)
{
	int n = 0, tree = q->p->hop[q->hop[at]].tree;
	for (int k = at; k < pair->first + pair->n && q->p->hop[q->hop[k]].tree == tree; k++)
		n += q->p->hop[q->hop[k]].out < 0;
	return n;
}

/* One more hop of a pair, of the tree that has most left of those that find ranks. */
static bool
take_one(struct uplinks *q, const struct pair *pair, int plane)
{
	int most = pair->n;
	for (int best = 0; most > 0; most = best, best = 0) {
		for (int k = pair->first; k < pair->first + pair->n; k++) {
			int n = q->p->hop[q->hop[k]].out < 0 ? left_of_tree(q, pair, k) : 0;
			if (n == most && take(q, q->hop[k], plane))
				return true;
			best = n < most && n > best ? n : best;
		}
	}
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

/* Hops of a pair that may be on this plane: of a tree as many as its ranks there; on the last one all that are left. */
static void
count_left(struct uplinks *q, int plane)
{
	for (int i = 0; i < q->n_pairs; i++) {
		struct pair *pair = &q->pair[i];
		int ranks = *cell(q, q->ranks, plane, pair->to), tree = -1, of_tree = 0;
		pair->left = 0;
		for (int k = pair->first; k < pair->first + pair->n; k++) {
			const struct hop *hop = &q->p->hop[q->hop[k]];
			of_tree = hop->tree == tree ? of_tree : 0;
			tree = hop->tree;
			pair->left += hop->out < 0 && (of_tree < ranks || q->last);
			of_tree += hop->out < 0;
		}
	}
}

static bool
fill_plane(struct uplinks *q, int plane)
{
	count_left(q, plane);
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
	TRY(TEMP_EACH(ctx, 2 * n, q->queue, q->from));
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
