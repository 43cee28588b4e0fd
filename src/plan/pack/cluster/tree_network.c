/* Switches inside of servers, and the trees of switches between them. */
#include "plan/pack/cluster/tree_network.h"

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
	return t->same[t->topo->link[l].to];
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

static Status
list_members(Ctx *ctx, TreeNetwork *t)
{
	int *fill;
	TRY(TEMP_EACH(ctx, t->n_servers + 1, t->first, fill));
	for (int r = 0; r < t->topo->n_ranks; r++)
		t->first[t->server[r] + 1]++;
	for (int s = 0; s < t->n_servers; s++)
		t->first[s + 1] += t->first[s];
	memcpy(fill, t->first, (size_t)t->n_servers * sizeof *fill);
	for (int r = 0; r < t->topo->n_ranks; r++)
		t->member[fill[t->server[r]]++] = r;
	return OK;
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

/* Of the vertices in this order, none before the one above it. */
static void
list_ranks(TreeNetwork *t, const int *order, int n, int *n_ranks)
{
	for (int i = n - 1; i >= 0; i--) {
		int v = order[i];
		t->n_below[v] += v < t->topo->n_ranks;
		if (t->above[v] >= 0)
			t->n_below[t->above[v]] += t->n_below[v];
	}
	/* at[v] is where ranks below the next child of v go, until all are placed. */
	for (int i = 0; i < n; i++) {
		int v = order[i], up = t->above[v];
		t->at[v] = up < 0 ? *n_ranks : t->at[up];
		if (up < 0)
			*n_ranks += t->n_below[v];
		else
			t->at[up] += t->n_below[v];
		if (v < t->topo->n_ranks) {
			t->place[v] = t->at[v];
			t->rank[t->at[v]++] = v;
		}
	}
	for (int i = 0; i < n; i++)
		t->at[order[i]] -= t->n_below[order[i]];
}

static bool
has_servers(const TreeNetwork *t, int v)
{
	for (int i = 1; i < t->n_below[v]; i++)
		if (t->server[t->rank[t->at[v] + i]] != t->server[t->rank[t->at[v]]])
			return true;
	return false;
}

/* mark: of each server, the last vertex at which it is a group, plus one. */
static void
add_groups(TreeNetwork *t, int v, const int *child, int n, int *mark)
{
	Group *group = t->group + t->first_group[v];
	int n_groups = 0;
	for (int i = 0; i < n; i++) {
		int c = child[i];
		if (t->n_below[c] == 0)
			continue;
		int s = t->server[t->rank[t->at[c]]];
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
	for (int r = 0; r < t->topo->n_ranks; r++) {
		int n = 0;
		for (int v = r; t->above[v] >= 0 && n <= LIMIT_ROUTE_LINKS / 2; v = t->above[v])
			for (int l = t->rise[v], k = t->fall[v]; l >= 0 || k >= 0; n++) {
				l = l < 0 ? l : t->next[l];
				k = k < 0 ? k : t->next[k];
			}
		if (n > LIMIT_ROUTE_LINKS / 2)
			return false;
	}
	return true;
}

/* All that vertices of trees have, by an order in which those below each are in a row. */
static Status
climb(Ctx *ctx, TreeNetwork *t, bool into, bool *is_one)
{
	const Topology *topo = t->topo;
	int *order, *first_child, *n_children, *mark, n = 0, n_ranks = 0, reached;
	TRY(TEMP_EACH(ctx, topo->n_vertices, order, first_child, n_children));
	TRY(TEMP(ctx, mark, t->n_servers));
	memset(t->level, -1, (size_t)topo->n_vertices * sizeof *t->level);
	for (int v = 0; v < topo->n_vertices; v++) {
		if (t->level[v] >= 0 || t->same[v] != v || topo->vertex[v].kind == VERTEX_CPU || is_inside(topo, v)
		    || is_passed(topo, v))
			continue;
		reached = climb_from_middle(t, into, v, order + n);
		if (reached == 0)
			return OK;
		list_ranks(t, order + n, reached, &n_ranks);
		n += reached;
	}
	for (int i = n - 1; i >= 0; i--)
		if (t->above[order[i]] >= 0) {
			first_child[t->above[order[i]]] = i;
			n_children[t->above[order[i]]]++;
		}
	for (int v = 0; v < topo->n_vertices; v++) {
		add_groups(t, v, order + first_child[v], n_children[v], mark);
		if (v < topo->n_ranks && n_children[v] + (t->above[v] >= 0) > 1)
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
	*t = (TreeNetwork){ .topo = topo };
	*is_one = false;
	TRY(TEMP_EACH(ctx, topo->n_ranks, t->server, t->to_switch, t->from_switch, t->member, t->rank, t->place));
	TRY(TEMP_EACH(ctx, topo->n_vertices, t->above, t->level, t->rise, t->fall));
	TRY(TEMP_EACH(ctx, topo->n_vertices, t->at, t->n_below, t->top, t->group));
	TRY(TEMP(ctx, t->first_group, topo->n_vertices + 1));
	memset(t->server, -1, (size_t)topo->n_ranks * sizeof *t->server);
	memset(t->to_switch, -1, (size_t)topo->n_ranks * sizeof *t->to_switch);
	memset(t->from_switch, -1, (size_t)topo->n_ranks * sizeof *t->from_switch);
	TRY(TEMP(ctx, t->next, topo->n_links));
	TRY(TEMP_EACH(ctx, topo->n_vertices, t->same, t->side));
	join_sides(t);
	join_links(t);
	if (!find_servers(t, into))
		return OK;
	TRY(list_members(ctx, t));
	return climb(ctx, t, into, is_one);
}
