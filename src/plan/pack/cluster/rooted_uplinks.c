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
#include "plan/pack/cluster/rooted_flow.h"

#include <string.h>

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
	TRY(TEMP_EACH(ctx, 2 * n + 1 + q->n_entries + 2 * p->n_leaves, q->queue, q->from, q->by));
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

static int
plane_of(const struct rooted *p, int uplink)
{
	return p->plane[p->c.uplink[0][uplink].network];
}

/* ---- ranks of a hop ---- */

/* out: where it leaves. */
static bool
may_enter(const struct rooted *p, const struct hop *hop, int out, int uplink)
{
	int rank = p->c.uplink[0][uplink].rank, part = *rooted_part(p, rank, hop->tree);
	bool free = !(part & (FIRST_ENTRY | ENTRY)) && (hop->first || !(part & EARLY_SOURCE));
	return free && rank != p->c.uplink[0][out].rank;
}

/* The uplink by which it may enter, of most needs, then of most slots; -1: there is none. */
static int
choose_entry(const struct uplinks *q, const struct hop *hop, int out, int plane)
{
	const struct rooted *p = q->p;
	const struct cluster_server *server = &p->c.server[hop->to];
	int best = -1;
	for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++) {
		if (q->free[1][w] <= 0 || plane_of(p, w) != plane || !may_enter(p, hop, out, w))
			continue;
		if (best < 0 || q->needed[w] > q->needed[best]
		    || (q->needed[w] == q->needed[best] && q->free[1][w] > q->free[1][best]))
			best = w;
	}
	return best;
}

/* A direct tree leaves by the root's own. */
static bool
may_leave(const struct rooted *p, const struct hop *hop, int uplink)
{
	int rank = p->c.uplink[0][uplink].rank;
	bool entry = *rooted_part(p, rank, hop->tree) & ENTRY, direct = hop->from == p->home && p->direct[hop->tree];
	return !(hop->early && entry) && (!direct || rank == p->root);
}

/* The uplink by which it leaves: best of a rank that has the data first. */
static int
choose_exit(const struct uplinks *q, const struct hop *hop, int plane)
{
	const struct rooted *p = q->p;
	const struct cluster_server *server = &p->c.server[hop->from];
	int best = -1, best_part = 0;
	for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++) {
		int part = *rooted_part(p, p->c.uplink[0][w].rank, hop->tree);
		if (q->free[0][w] <= 0 || plane_of(p, w) != plane || !may_leave(p, hop, w))
			continue;
		part = part & FIRST_ENTRY ? 0 : part == ENTRY || (hop->early && part == EARLY_SOURCE) ? 1 : 2;
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
exchange_entry(struct uplinks *q, const struct hop *hop, int out, int plane)
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
			if (w != own && q->free[1][w] > 0 && plane_of(p, w) == plane
			    && may_enter(p, other, other->out, w) && may_enter(p, hop, out, own)) {
				enter(q, other, w);
				return own;
			}
		enter(q, other, own);
	}
	return -1;
}

/* More hops, or less, that have no plane. */
static void
change_left(struct uplinks *q, const struct hop *hop, int more)
{
	int from = q->p->leaf[hop->from], to = q->p->leaf[hop->to];
	q->left[0][hop->from] += more;
	q->left[1][hop->to] += more;
	q->entry[entry_at(q, hop)].left += more;
	q->leaf_left[0][from] += from != to ? more : 0;
	q->leaf_left[1][to] += from != to ? more : 0;
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
	change_left(q, hop, -1);
}

static void
withdraw(struct uplinks *q, struct hop *hop)
{
	struct rooted *p = q->p;
	int rank = p->c.uplink[0][hop->out].rank;
	q->free[0][hop->out]++;
	leave_entry(q, hop);
	change_left(q, hop, 1);
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

/* The uplink by which it leaves, where another hop of the plane leaves its own for a free one. */
static int
exchange_exit(struct uplinks *q, const struct hop *hop, int plane)
{
	const struct rooted *p = q->p;
	const struct cluster_server *server = &p->c.server[hop->from];
	for (int i = 0; i < q->n_taken; i++) {
		struct hop *other = &p->hop[q->taken[i]];
		int own = other->out, in = other->in;
		if (other->from != hop->from || !may_leave(p, hop, own))
			continue;
		withdraw(q, other);
		for (int w = server->first_uplink[0]; w < server->first_uplink[0] + server->n_uplinks[0]; w++)
			if (w != own && q->free[0][w] > 0 && plane_of(p, w) == plane && may_leave(p, other, w)
			    && p->c.uplink[0][w].rank != p->c.uplink[0][in].rank) {
				put(q, other, w, in);
				return own;
			}
		put(q, other, own, in);
	}
	return -1;
}

static bool
take(struct uplinks *q, int h, int plane)
{
	struct hop *hop = &q->p->hop[h];
	int out = choose_exit(q, hop, plane);
	out = out < 0 ? exchange_exit(q, hop, plane) : out;
	int in = out < 0 ? -1 : choose_entry(q, hop, out, plane);
	in = out < 0 || in >= 0 ? in : exchange_entry(q, hop, out, plane);
	if (in < 0)
		return false;
	put(q, hop, out, in);
	q->taken[q->n_taken++] = h;
	return true;
}

/* All but the first n of this plane. */
static void
give_back(struct uplinks *q, int n)
{
	while (q->n_taken > n)
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
		int out = choose_exit(q, hop[placed], to), in = out < 0 ? -1 : choose_entry(q, hop[placed], out, to);
		if (in < 0)
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
			*uplinks_at(q, q->slots[0], g, p->home) -= good;
			*uplinks_at(q, q->slots[1], g, p->hop[h].to) -= good;
			if (good && p->leaf[p->home] != p->leaf[p->hop[h].to]) {
				--*uplinks_leaf_room(q, 0, g, p->leaf[p->home]);
				--*uplinks_leaf_room(q, 1, g, p->leaf[p->hop[h].to]);
			}
			if (good && *uplinks_at(q, q->need, g, p->hop[h].to) > 0)
				--*uplinks_at(q, q->need, g, p->hop[h].to);
		}
	}
	q->n_taken = 0;
	return good;
}

/* ---- planes ---- */

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

static bool
take_kind(struct uplinks *q, int plane, HopKind kind)
{
	int before = q->n_taken;
	bool good = uplinks_set_bounds(q, plane, kind) && uplinks_find_flow(q);
	for (int i = 0; good && (i = take_flow(q, plane)) >= 0;) {
		q->p->work -= q->p->n_hops;
		give_back(q, before);
		good = q->p->work > 0 && uplinks_leave_out(q, &q->pair[i]);
	}
	return good;
}

static bool
fill_plane(struct uplinks *q, int plane)
{
	const struct rooted *p = q->p;
	q->n_taken = 0;
	for (int side = 0; side < 2; side++)
		memset(q->taken_of[side], 0, (size_t)p->c.n_servers * sizeof *q->taken_of[side]);
	if (p->n_leaves == 1 || p->overload)
		return take_kind(q, plane, ALL_HOPS);
	if (!take_kind(q, plane, BETWEEN_LEAVES))
		return false;
	for (int i = 0; i < q->n_taken; i++) {
		q->taken_of[0][p->hop[q->taken[i]].from]++;
		q->taken_of[1][p->hop[q->taken[i]].to]++;
	}
	return take_kind(q, plane, INSIDE_LEAVES);
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
	size_t leaf_cells = (size_t)p->n_planes * (size_t)p->n_leaves;
	TRY(TEMP_EACH(ctx, leaf_cells, q->leaf_room[0], q->leaf_room[1]));
	for (int side = 0; side < 2; side++)
		TRY(TEMP(ctx, q->taken_of[side], n));
	for (int side = 0; side < 2; side++)
		TRY(TEMP_EACH(ctx, p->n_leaves, q->leaf_left[side], q->leaf_degree[side], q->leaf_least[side],
		    q->leaf_most[side]));
	for (size_t i = 0; i < leaf_cells; i++)
		q->leaf_room[0][i] = q->leaf_room[1][i] = p->n_leaves == 1 ? p->n_hops
		    : (int)rooted_fitting(p, p->leaf_capacity[i]);
	for (int w = 0; w < p->c.n_uplinks[0]; w++) {
		int rank = p->c.uplink[0][w].rank, s = p->c.of[rank];
		q->free[0][w] = p->slots[w];
		q->free[1][w] = rank == p->root ? 0 : p->slots[w];
		q->needed[w] = p->need[w];
		for (int side = 0; side < 2; side++)
			*uplinks_at(q, q->slots[side], plane_of(p, w), s) += q->free[side][w];
		*uplinks_at(q, q->need, plane_of(p, w), s) += p->need[w];
		*uplinks_at(q, q->ranks, plane_of(p, w), s) += q->free[1][w] > 0;
	}
	for (int h = 0; h < p->n_hops; h++) {
		int from = p->leaf[p->hop[h].from], to = p->leaf[p->hop[h].to];
		q->left[0][p->hop[h].from]++;
		q->left[1][p->hop[h].to]++;
		q->leaf_left[0][from] += from != to;
		q->leaf_left[1][to] += from != to;
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
			slots += *uplinks_at(q, q->slots[1], g, s);
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
