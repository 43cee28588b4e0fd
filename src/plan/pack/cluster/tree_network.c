/* Switches inside of servers, and the trees of switches between them. */
#include "plan/pack/cluster/tree_network.h"

#include "base/array.h"

#include <string.h>

/* A switch that has links to ranks of one server alone. */
static bool
is_inside(const Topology *topo, int v)
{
	if (v < topo->n_ranks || topo->vertex[v].kind != VERTEX_SWITCH || topo->vertex[v].node < 0)
		return false;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
		if (topo->link[topo->out[i]].to >= topo->n_ranks)
			return false;
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++)
		if (topo->link[topo->in[i]].from >= topo->n_ranks)
			return false;
	return true;
}

/* The link of those out of v, or into v, that has no CPU at its other end; -1: there is none, -2: there are several. */
static int
only_link(const Topology *topo, int v, bool in)
{
	const int *first = in ? topo->first_in : topo->first_out, *list = in ? topo->in : topo->out;
	int only = -1;
	for (int i = first[v]; i < first[v + 1]; i++) {
		const Link *link = &topo->link[list[i]];
		if (topo->vertex[in ? link->from : link->to].kind != VERTEX_CPU)
			only = only == -1 ? list[i] : -2;
	}
	return only;
}

/* One way alone leads through v, as through the side of a NIC that sends. */
static bool
is_passed(const Topology *topo, int v)
{
	int in = only_link(topo, v, true), out = only_link(topo, v, false);
	return v >= topo->n_ranks && topo->vertex[v].kind != VERTEX_CPU && in >= 0 && out >= 0
	    && topo->link[in].from != topo->link[out].to;
}

/* Where the arc ends that begins with a link. */
static int
end_of(const TreeNetwork *t, int l)
{
	for (; t->next[l] >= 0; l = t->next[l])
		;
	return t->same[t->topo->link[t->link[l]].to];
}

/* Link i of those out of a vertex and its other side; -1: there are fewer. */
static int
link_out(const TreeNetwork *t, int v, int i)
{
	const Topology *topo = t->topo;
	int n = topo->first_out[v + 1] - topo->first_out[v], side = t->side[v];
	if (i < n)
		return topo->out[topo->first_out[v] + i];
	return side >= 0 && i - n < topo->first_out[side + 1] - topo->first_out[side]
	    ? topo->out[topo->first_out[side] + i - n] : -1;
}

/* Of an arc the opposite one; -1: none. */
static int
opposite_of(const TreeNetwork *t, int l)
{
	int from = t->same[t->topo->link[l].from], to = end_of(t, l), back;
	for (int i = 0; (back = link_out(t, to, i)) >= 0; i++)
		if (end_of(t, back) == from)
			return back;
	return -1;
}

/* Do the ranks that v has links to have one to w, and no others? */
static bool
are_sides(const Topology *topo, int v, int w)
{
	int n = topo->first_out[v + 1] - topo->first_out[v], found = 0;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
		for (int k = topo->first_in[w]; k < topo->first_in[w + 1]; k++)
			found += topo->link[topo->in[k]].from == topo->link[topo->out[i]].to;
	for (int k = topo->first_in[w]; k < topo->first_in[w + 1]; k++)
		n += topo->link[topo->in[k]].from >= topo->n_ranks
		    && topo->vertex[topo->link[topo->in[k]].from].kind != VERTEX_CPU;
	return found == n;
}

/* A switch of several ranks may be two vertices, one of which has links to the ranks, and the other from them. */
static void
join_sides(TreeNetwork *t)
{
	const Topology *topo = t->topo;
	for (int v = 0; v < topo->n_vertices; v++) {
		t->same[v] = v;
		t->side[v] = -1;
	}
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		int l = topo->first_out[v] < topo->first_out[v + 1] ? topo->out[topo->first_out[v]] : -1;
		int r = l < 0 ? v : topo->link[l].to, in = only_link(topo, v, true);
		if (r >= topo->n_ranks || in < 0 || is_inside(topo, v))
			continue;
		for (int i = topo->first_out[r]; i < topo->first_out[r + 1]; i++) {
			int w = topo->link[topo->out[i]].to;
			if (w == v || is_inside(topo, w) || only_link(topo, w, false) < 0 || !are_sides(topo, v, w))
				continue;
			t->same[v] = w;
			t->side[w] = v;
		}
	}
}

static void
join_links(TreeNetwork *t)
{
	const Topology *topo = t->topo;
	for (int l = 0; l < topo->n_links; l++) {
		int v = topo->link[l].to;
		t->link[l] = l;
		t->next[l] = is_passed(topo, v) ? only_link(topo, v, false) : -1;
	}
}

/* False: a rank has two such switches, or a link of one direction alone. */
static bool
find_servers(TreeNetwork *t, bool into)
{
	const Topology *topo = t->topo;
	bool good = true;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		if (!is_inside(topo, v))
			continue;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			int l = topo->out[i], back = opposite_of(t, l), r = topo->link[l].to;
			good &= t->server[r] < 0 && back >= 0;
			t->server[r] = t->n_servers;
			t->to_switch[r] = into ? l : back;
			t->from_switch[r] = into ? back : l;
		}
		t->n_servers++;
	}
	for (int r = 0; r < topo->n_ranks; r++)
		t->server[r] = t->server[r] < 0 ? t->n_servers++ : t->server[r];
	return good;
}

/* ---- ways up ---- */

/* Vertices from `start` on, breadth first, in queue: how many; what it came to a vertex by is above it. 0: there is a
 * cycle. Arcs of one direction alone are left out. */
static int
climb_from(TreeNetwork *t, bool into, int start, int *queue)
{
	const Topology *topo = t->topo;
	int tail = 0;
	t->above[start] = -1;
	t->level[start] = 0;
	queue[tail++] = start;
	for (int head = 0; head < tail; head++)
		for (int v = queue[head], i = 0, l; (l = link_out(t, v, i)) >= 0; i++) {
			int w = end_of(t, l), back = opposite_of(t, l);
			if (w == t->above[v] || back < 0 || topo->vertex[w].kind == VERTEX_CPU || is_inside(topo, w))
				continue;
			if (t->level[w] >= 0)
				return 0;
			t->above[w] = v;
			t->level[w] = t->level[v] + 1;
			t->rise[w] = into ? l : back;
			t->fall[w] = into ? back : l;
			queue[tail++] = w;
		}
	return tail;
}

/* The middle of a longest way comes to the top. */
static int
climb_from_middle(TreeNetwork *t, bool into, int start, int *queue)
{
	int n = climb_from(t, into, start, queue);
	for (int pass = 0; pass < 2 && n > 0; pass++) {
		int v = queue[n - 1];
		for (int up = pass * (t->level[v] / 2); up > 0; up--)
			v = t->above[v];
		for (int i = 0; i < n; i++)
			t->level[queue[i]] = -1;
		n = climb_from(t, into, v, queue);
	}
	return n;
}

/* All trees, their vertices in order, none before the one above it. *n: how many; 0: there is a cycle. */
static void
climb_all(TreeNetwork *t, bool into, int *order, int *n)
{
	const Topology *topo = t->topo;
	int reached = 1;
	*n = 0;
	memset(t->level, -1, (size_t)topo->n_vertices * sizeof *t->level);
	for (int v = 0; v < topo->n_vertices && reached > 0; v++) {
		if (t->level[v] >= 0 || t->same[v] != v || topo->vertex[v].kind == VERTEX_CPU || is_inside(topo, v)
		    || is_passed(topo, v))
			continue;
		reached = climb_from_middle(t, into, v, order + *n);
		*n = reached > 0 ? *n + reached : 0;
	}
}

/* ---- NICs that no rank has for itself ---- */

/* Work space. A search begins at a NIC's link to or from the network, inside of its server. */
struct spare {
	bool *has;		/* of each rank: its own way has something that those before it left */
	bool *passed;		/* of each link: on some rank's way up or down */
	int64_t *left;		/* of each link: what ways leave of its capacity */
	int *by_in, *by_out;	/* of each vertex that was reached: the link that leads there, or on from there; -1 */
	int *queue;		/* vertices that were reached */
	int n_steps, links, nexts;	/* steps of all arcs; the capacities of their arrays */
};

static int64_t
least_left(const TreeNetwork *t, const struct spare *w, int arc)
{
	int64_t least = INT64_MAX;
	for (int l = arc; l >= 0; l = t->next[l])
		least = w->left[t->link[l]] < least ? w->left[t->link[l]] : least;
	return least;
}

static void
use_up(const TreeNetwork *t, struct spare *w, int arc, int64_t amount)
{
	for (int l = arc; l >= 0; l = t->next[l])
		w->left[t->link[l]] -= amount;
}

/* What ranks send and receive by their own ways, as far as a vertex outside of their servers. */
static void
fill_own(const TreeNetwork *t, struct spare *w)
{
	const Topology *topo = t->topo;
	for (int l = 0; l < topo->n_links; l++)
		w->left[l] = topo->link[l].capacity;
	for (int r = 0; r < topo->n_ranks; r++) {
		int64_t least = INT64_MAX;
		for (int v = r; t->above[v] >= 0 && topo->vertex[v].node >= 0; v = t->above[v]) {
			int64_t up = least_left(t, w, t->rise[v]), down = least_left(t, w, t->fall[v]);
			least = up < least ? up : least;
			least = down < least ? down : least;
		}
		for (int v = r; t->above[v] >= 0 && topo->vertex[v].node >= 0; v = t->above[v]) {
			use_up(t, w, t->rise[v], least);
			use_up(t, w, t->fall[v], least);
		}
		w->has[r] = least > 0;
	}
	for (int v = 0; v < topo->n_vertices; v++)
		for (int side = 0; side < 2 && t->level[v] >= 0 && t->above[v] >= 0; side++)
			for (int l = side ? t->rise[v] : t->fall[v]; l >= 0; l = t->next[l])
				w->passed[l] = true;
}

/* From link l into a server, or out of it, to all ranks there, but through no rank and no switch of all. */
static int
search_inside(const TreeNetwork *t, struct spare *w, int l, bool in)
{
	const Topology *topo = t->topo;
	int *by = in ? w->by_in : w->by_out, tail = 0;
	int start = in ? topo->link[l].to : topo->link[l].from, node = topo->vertex[start].node;
	by[start] = l;
	w->queue[tail++] = start;
	for (int head = 0; head < tail; head++) {
		int v = w->queue[head], first = in ? topo->first_out[v] : topo->first_in[v];
		int end = in ? topo->first_out[v + 1] : topo->first_in[v + 1];
		for (int i = v < topo->n_ranks ? end : first; i < end; i++) {
			int k = in ? topo->out[i] : topo->in[i], u = in ? topo->link[k].to : topo->link[k].from;
			if (by[u] >= 0 || topo->vertex[u].node != node || is_inside(topo, u))
				continue;
			by[u] = k;
			w->queue[tail++] = u;
		}
	}
	return tail;
}

/* *arc: of new steps, from a rank to the NIC's last link, or to a rank from the first one. */
static Status
add_steps(Ctx *ctx, TreeNetwork *t, struct spare *w, int rank, int end, bool in, int *arc)
{
	const Topology *topo = t->topo;
	*arc = -1;
	for (int v = rank, l = -1; l != end; v = in ? topo->link[l].from : topo->link[l].to) {
		int step = w->n_steps++;
		TRY(GROW_TEMP(ctx, t->link, step, w->links));
		TRY(GROW_TEMP(ctx, t->next, step, w->nexts));
		l = in ? w->by_in[v] : w->by_out[v];
		t->link[step] = l;
		t->next[step] = in ? *arc : -1;
		if (!in && *arc >= 0)
			t->next[step - 1] = step;
		*arc = in || *arc < 0 ? step : *arc;
	}
	return OK;
}

/* What a rank has for a NIC, by the way in or out that was found. */
static int64_t
room_to(const TreeNetwork *t, const struct spare *w, int rank, int end, bool in)
{
	const int *by = in ? w->by_in : w->by_out;
	int64_t room = by[rank] < 0 ? 0 : INT64_MAX;
	for (int v = rank, l = -1; by[rank] >= 0 && l != end; v = in ? t->topo->link[l].from : t->topo->link[l].to) {
		l = by[v];
		room = w->left[l] < room ? w->left[l] : room;
	}
	return room;
}

static Status
add_way(Ctx *ctx, TreeNetwork *t, struct spare *w, bool into, int rank, int in, int out)
{
	int way = t->n_ways++, top = t->same[t->topo->link[in].from], up, down;
	TRY(add_steps(ctx, t, w, rank, out, false, &up));
	TRY(add_steps(ctx, t, w, rank, in, true, &down));
	t->rank_of[way] = rank;
	t->more[way] = t->more[rank];
	t->more[rank] = way;
	t->server[way] = t->server[rank];
	t->above[way] = top;
	t->level[way] = t->level[top] + 1;
	t->rise[way] = into ? down : up;
	t->fall[way] = into ? up : down;
	return OK;
}

/* Ways to a NIC, by its links from the network and to it: of the ranks that have most left, as many as fill it. */
static Status
add_ways_to(Ctx *ctx, TreeNetwork *t, struct spare *w, bool into, int in, int out, int *order, int *n)
{
	search_inside(t, w, out, false);
	for (int reached = search_inside(t, w, in, true), best = 0; best >= 0 && t->n_ways < 2 * t->topo->n_vertices;) {
		int64_t most = 0;
		best = -1;
		for (int i = 0; i < reached; i++) {
			int r = w->queue[i];
			if (r >= t->topo->n_ranks)
				continue;
			int64_t up = room_to(t, w, r, out, false), down = room_to(t, w, r, in, true);
			int64_t room = up < down ? up : down;
			best = room > most ? r : best;
			most = room > most ? room : most;
		}
		if (best < 0)
			break;
		order[(*n)++] = t->n_ways;
		TRY(add_way(ctx, t, w, into, best, in, out));
		use_up(t, w, t->rise[t->n_ways - 1], most);
		use_up(t, w, t->fall[t->n_ways - 1], most);
	}
	return OK;
}

/* A link from a server to v that no rank's way has; -1: there is none. */
static int
spare_link(const Topology *topo, const struct spare *w, int node, int v)
{
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++)
		if (topo->vertex[topo->link[topo->in[i]].from].node == node && !w->passed[topo->in[i]])
			return topo->in[i];
	return -1;
}

/* Ways of ranks to the NICs of lost GPUs, which stay at the CPUs of their servers, at the end of the order. */
static Status
add_ways(Ctx *ctx, TreeNetwork *t, bool into, int *order, int *n)
{
	const Topology *topo = t->topo;
	struct spare w = { .n_steps = topo->n_links, .links = topo->n_links, .nexts = topo->n_links };
	TRY(TEMP(ctx, w.has, topo->n_ranks));
	TRY(TEMP_EACH(ctx, topo->n_links, w.passed, w.left));
	TRY(TEMP_EACH(ctx, topo->n_vertices, w.by_in, w.by_out, w.queue));
	fill_own(t, &w);
	for (int l = 0; l < topo->n_links; l++) {
		int v = topo->link[l].from, node = topo->vertex[topo->link[l].to].node;
		if (w.passed[l] || node < 0 || topo->vertex[v].node >= 0 || t->level[t->same[v]] < 0)
			continue;
		int out = spare_link(topo, &w, node, v);
		if (out < 0)
			continue;
		w.passed[l] = w.passed[out] = true;
		memset(w.by_in, -1, (size_t)topo->n_vertices * sizeof *w.by_in);
		memset(w.by_out, -1, (size_t)topo->n_vertices * sizeof *w.by_out);
		TRY(add_ways_to(ctx, t, &w, into, l, out, order, n));
	}
	/* A rank whose own NIC is full by the traffic of others uses its further way alone. */
	for (int r = 0; r < topo->n_ranks; r++)
		if (t->more[r] >= 0 && !w.has[r]) {
			t->above[r] = t->rise[r] = t->fall[r] = -1;
			t->level[r] = 0;
		}
	return OK;
}

/* ---- lists ---- */

static Status
list_members(Ctx *ctx, TreeNetwork *t)
{
	const int n = t->topo->n_ranks, further = t->n_ways - t->topo->n_vertices;
	int *fill;
	TRY(TEMP_EACH(ctx, t->n_servers + 1, t->first, t->end, fill));
	TRY(TEMP(ctx, t->member, n + further));
	for (int i = 0; i < n + further; i++)
		t->first[t->server[i < n ? i : i + t->topo->n_vertices - n] + 1]++;
	for (int s = 0; s < t->n_servers; s++)
		t->first[s + 1] += t->first[s];
	memcpy(fill, t->first, (size_t)t->n_servers * sizeof *fill);
	for (int r = 0; r < n; r++)
		t->member[fill[t->server[r]]++] = r;
	memcpy(t->end, fill, (size_t)t->n_servers * sizeof *fill);
	for (int w = t->topo->n_vertices; w < t->n_ways; w++)
		t->member[fill[t->server[w]]++] = w;
	return OK;
}

static bool
is_way(const TreeNetwork *t, int v)
{
	return v < t->topo->n_ranks || v >= t->topo->n_vertices;
}

/* Of the vertices and ways in this order, none before the one above it. */
static void
list_ways(TreeNetwork *t, const int *order, int n)
{
	int n_listed = 0;
	for (int i = n - 1; i >= 0; i--) {
		int v = order[i];
		t->n_below[v] += is_way(t, v);
		if (t->above[v] >= 0)
			t->n_below[t->above[v]] += t->n_below[v];
	}
	/* at[v] is where ways below the next child of v go, until all are placed. */
	for (int i = 0; i < n; i++) {
		int v = order[i], up = t->above[v];
		t->at[v] = up < 0 ? n_listed : t->at[up];
		if (up < 0)
			n_listed += t->n_below[v];
		else
			t->at[up] += t->n_below[v];
		if (is_way(t, v)) {
			t->place[v] = t->at[v];
			t->way[t->at[v]++] = v;
		}
	}
	for (int i = 0; i < n; i++)
		t->at[order[i]] -= t->n_below[order[i]];
}

static bool
has_servers(const TreeNetwork *t, int v)
{
	for (int i = 1; i < t->n_below[v]; i++)
		if (t->server[t->way[t->at[v] + i]] != t->server[t->way[t->at[v]]])
			return true;
	return false;
}

/* child: the first of v, after each the next one. mark: of each server, the last vertex at which it is a group, plus
 * one. */
static void
add_groups(TreeNetwork *t, int v, int child, const int *next, int *mark)
{
	Group *group = t->group + t->first_group[v];
	int n_groups = 0;
	for (int c = child; c >= 0; c = next[c]) {
		if (t->n_below[c] == 0)
			continue;
		int s = t->server[t->way[t->at[c]]];
		if (has_servers(t, c))
			group[n_groups++] = (Group){ c, -1 };
		else if (mark[s] != v + 1)
			group[n_groups++] = (Group){ -1, s };
		mark[s] = has_servers(t, c) ? mark[s] : v + 1;
	}
	t->first_group[v + 1] = t->first_group[v] + n_groups;
}

/* Are hops between ranks, up and down, as short as those of a schedule have to be? */
static bool
has_short_ways(const TreeNetwork *t)
{
	for (int w = 0; w < t->n_ways; w++) {
		int n = 0;
		for (int v = w; is_way(t, w) && t->above[v] >= 0 && n <= LIMIT_ROUTE_LINKS / 2; v = t->above[v])
			for (int l = t->rise[v], k = t->fall[v]; l >= 0 || k >= 0; n++) {
				l = l < 0 ? l : t->next[l];
				k = k < 0 ? k : t->next[k];
			}
		if (n > LIMIT_ROUTE_LINKS / 2)
			return false;
	}
	return true;
}

/* All that vertices of trees have. */
static Status
climb(Ctx *ctx, TreeNetwork *t, bool into, bool *is_one)
{
	const Topology *topo = t->topo;
	int *order, *child, *next, *mark, n;
	TRY(TEMP_EACH(ctx, 2 * topo->n_vertices, order, child, next));
	TRY(TEMP(ctx, mark, t->n_servers));
	climb_all(t, into, order, &n);
	if (n == 0)
		return OK;
	TRY(add_ways(ctx, t, into, order, &n));
	TRY(list_members(ctx, t));
	list_ways(t, order, n);
	memset(child, -1, (size_t)topo->n_vertices * sizeof *child);
	for (int i = n - 1; i >= 0; i--)
		if (t->above[order[i]] >= 0) {
			next[order[i]] = child[t->above[order[i]]];
			child[t->above[order[i]]] = order[i];
		}
	for (int v = 0; v < topo->n_vertices; v++) {
		add_groups(t, v, child[v], next, mark);
		if (v < topo->n_ranks && child[v] >= 0 && (t->above[v] >= 0 || next[child[v]] >= 0))
			return OK;
		if (t->level[v] == 0 && has_servers(t, v))
			t->top[t->n_tops++] = v;
	}
	*is_one = has_short_ways(t);
	return OK;
}

Status
tree_network(Ctx *ctx, const Topology *topo, bool into, TreeNetwork *t, bool *is_one)
{
	const int most = 2 * topo->n_vertices;
	*t = (TreeNetwork){ .topo = topo, .n_ways = topo->n_vertices };
	*is_one = false;
	TRY(TEMP_EACH(ctx, most, t->rank_of, t->more, t->server, t->above, t->level, t->rise, t->fall));
	TRY(TEMP_EACH(ctx, most, t->at, t->n_below, t->way, t->place, t->group));
	TRY(TEMP_EACH(ctx, topo->n_vertices, t->to_switch, t->from_switch, t->top, t->same, t->side));
	TRY(TEMP(ctx, t->first_group, topo->n_vertices + 1));
	TRY(TEMP_EACH(ctx, topo->n_links, t->link, t->next));
	memset(t->server, -1, (size_t)most * sizeof *t->server);
	memset(t->more, -1, (size_t)most * sizeof *t->more);
	for (int v = 0; v < topo->n_vertices; v++)
		t->rank_of[v] = v;
	join_sides(t);
	join_links(t);
	return find_servers(t, into) ? climb(ctx, t, into, is_one) : OK;
}
