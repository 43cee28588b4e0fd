/* Maximum flow: Dinic's algorithm with an explicit stack. A flow ends when it is large enough, so that it often sees a
 * few arcs alone; these are what is put back afterwards. */
#include "graph/network.h"

#include <string.h>

Status
network_new(Ctx *ctx, int vertices, int arcs, Network *out)
{
	*out = (Network){ 0 };
	TRY(TEMP(ctx, out->first, vertices + 1));
	TRY(TEMP(ctx, out->arc, 2 * (size_t)arcs));
	TRY(TEMP_EACH(ctx, vertices, out->level, out->next, out->queue));
	TRY(TEMP_EACH(ctx, 2 * (size_t)arcs, out->changed, out->index));
	TRY(TEMP(ctx, out->excess, vertices));
	return TEMP(ctx, out->was, 2 * (size_t)arcs);
}

void
network_build(Network *net, int n, int n_arcs, const int *tail, const int *head, int *at)
{
	net->n = n;
	net->n_arcs = 2 * n_arcs;
	memset(net->first, 0, ((size_t)n + 1) * sizeof *net->first);
	for (int i = 0; i < n_arcs; i++) {
		if (tail[i] < 0)
			continue;
		net->first[tail[i] + 1]++;
		net->first[head[i] + 1]++;
	}
	for (int v = 0; v < n; v++)
		net->first[v + 1] += net->first[v];
	memcpy(net->next, net->first, (size_t)n * sizeof *net->next);
	for (int i = 0; i < n_arcs; i++) {
		at[i] = -1;
		if (tail[i] < 0)
			continue;
		int a = net->next[tail[i]]++, back = net->next[head[i]]++;
		net->arc[a] = (struct network_arc){ head[i], back, 0 };
		net->arc[back] = (struct network_arc){ tail[i], a, 0 };
		at[i] = a;
		net->index[a] = i;
		net->index[back] = -1;
	}
	memset(net->was, -1, (size_t)net->n_arcs * sizeof *net->was);
}

/* Levels from the source; false: the sink is not reached, and level is -1 beyond the cut alone. */
static bool
find_levels(Network *net, int from, int to)
{
	int head = 0, tail = 0;
	memset(net->level, -1, (size_t)net->n * sizeof *net->level);
	net->level[from] = 0;
	net->queue[tail++] = from;
	while (head < tail) {
		int v = net->queue[head++];
		net->next[v] = net->first[v];
		for (int a = net->first[v]; a < net->first[v + 1]; a++) {
			int w = net->arc[a].to;
			if (net->arc[a].room <= 0 || net->level[w] >= 0)
				continue;
			net->level[w] = net->level[v] + 1;
			if (w == to)
				goto reached;
			net->queue[tail++] = w;
		}
	}
	return false;
reached:
	for (; head < tail; head++)
		net->next[net->queue[head]] = net->first[net->queue[head]];
	return true;
}

static void
change(Network *net, int a, int64_t by)
{
	if (net->arc[a].room == NETWORK_INFINITE)
		return;
	if (net->was[a] < 0) {
		net->was[a] = net->arc[a].room;
		net->changed[net->n_changed++] = a;
	}
	net->arc[a].room += by;
}

/* What the arcs of a path still carry, at most `most`, goes over all of them. Returns how many arcs are before the
 * first that is full then. */
static int
push(Network *net, const int *path, int n, int64_t most, int64_t *pushed)
{
	int full = 0;
	for (int i = 0; i < n; i++)
		most = net->arc[path[i]].room < most ? net->arc[path[i]].room : most;
	for (int i = n - 1; i >= 0; i--) {
		change(net, path[i], -most);
		change(net, net->arc[path[i]].back, most);
		full = net->arc[path[i]].room == 0 ? i : full;
	}
	*pushed = most;
	return full;
}

/* All paths along the levels, with at most `enough` on them; others as far away as `to` lead nowhere. `queue` has the
 * arcs of the current one. */
static int64_t
block(Network *net, int from, int to, int64_t enough)
{
	int depth = 0, v = from;
	int64_t total = 0, more;
	while (total < enough) {
		if (v == to) {
			depth = push(net, net->queue, depth, enough - total, &more);
			total += more;
			v = net->arc[net->arc[net->queue[depth]].back].to;
			continue;
		}
		if (net->next[v] == net->first[v + 1]) {
			if (depth == 0)
				break;
			v = net->arc[net->arc[net->queue[--depth]].back].to;
			net->next[v]++;
			continue;
		}
		const struct network_arc *arc = &net->arc[net->next[v]];
		bool leads = net->level[arc->to] < net->level[to] || arc->to == to;
		if (arc->room > 0 && leads && net->level[arc->to] == net->level[v] + 1) {
			net->queue[depth++] = net->next[v];
			v = arc->to;
		} else {
			net->next[v]++;
		}
	}
	return total;
}

int64_t
network_send(Network *net, int from, int to, int64_t enough)
{
	int64_t total = 0;
	while (total < enough && find_levels(net, from, to))
		total += block(net, from, to, enough - total);
	return total;
}

/* Each arc has its room again. */
static void
put_back(Network *net)
{
	for (; net->n_changed > 0; net->n_changed--) {
		int a = net->changed[net->n_changed - 1];
		net->arc[a].room = net->was[a];
		net->was[a] = -1;
	}
}

int64_t
network_flow(Network *net, int from, int to, int64_t enough)
{
	int64_t total = network_send(net, from, to, enough);
	put_back(net);
	return total;
}

/* ---- flows that begin with an earlier one ---- */

static void
carry(Network *net, int a, int64_t units)
{
	change(net, a, -units);
	change(net, net->arc[a].back, units);
}

/* What the arc carries now; below 0: what its opposite carries. */
static int64_t
carried(const Network *net, int a)
{
	return net->was[a] < 0 ? 0 : net->was[a] - net->arc[a].room;
}

/* What was kept, as far as there is room; `excess` of a vertex is what enters it and does not leave it. */
static void
load(Network *net, int from, const int *at, const struct network_kept *kept)
{
	for (int i = 0; i < kept->n; i++) {
		int a = at[kept->load[i].index];
		if (a < 0)
			continue;
		int to = net->arc[a].to;
		int64_t units = kept->load[i].units < net->arc[a].room ? kept->load[i].units : net->arc[a].room;
		if (units <= 0 || to == from)
			continue;
		carry(net, a, units);
		net->excess[to] += units;
		net->excess[net->arc[net->arc[a].back].to] -= units;
	}
}

/* Where more leaves a vertex than enters it, less leaves it. False: that takes too long, as where a little goes around
 * on a cycle that carries much. */
static bool
fill_gaps(Network *net, int from)
{
	int n = 0, *queue = net->queue, steps = 0;
	for (int v = 0; v < net->n; v++)
		if (net->excess[v] < 0 && v != from)
			queue[n++] = v;
	while (n > 0) {
		int v = queue[--n];
		if (++steps > net->n_arcs)
			return false;
		for (int a = net->first[v]; net->excess[v] < 0; a++) {
			int64_t units = carried(net, a), gap = -net->excess[v];
			int to = net->arc[a].to;
			if (units <= 0)
				continue;
			units = units < gap ? units : gap;
			carry(net, a, -units);
			if (net->excess[to] >= 0 && net->excess[to] < units)
				queue[n++] = to;
			net->excess[to] -= units;
			net->excess[v] += units;
		}
	}
	return true;
}

/* As much of the excess of v as can go to `to` at once, or through one vertex after it. */
static void
drain(Network *net, int v, int to)
{
	for (int a = net->first[v]; a < net->first[v + 1] && net->excess[v] > 0; a++) {
		int w = net->arc[a].to, last = net->first[w];
		int64_t units = net->excess[v] < net->arc[a].room ? net->excess[v] : net->arc[a].room;
		if (w < to || units <= 0)
			continue;
		if (w > to)
			units = units < net->arc[last].room ? units : net->arc[last].room;
		carry(net, a, units);
		if (w > to)
			carry(net, last, units);
		net->excess[v] -= units;
	}
}

/* What enters a vertex goes to `to`, or does not enter it; false as in fill_gaps. */
static bool
drain_all(Network *net, int from, int to)
{
	int n = 0, *queue = net->queue, steps = 0;
	for (int v = 0; v < net->n; v++)
		if (net->excess[v] > 0 && v != from)
			queue[n++] = v;
	while (n > 0) {
		int v = queue[--n];
		if (++steps > net->n_arcs)
			return false;
		drain(net, v, to);
		for (int a = net->first[v]; net->excess[v] > 0; a++) {
			int64_t units = -carried(net, a);
			int u = net->arc[a].to;
			if (units <= 0)
				continue;
			units = units < net->excess[v] ? units : net->excess[v];
			carry(net, a, units);
			if (net->excess[u] == 0 && u != from)
				queue[n++] = u;
			net->excess[u] += units;
			net->excess[v] -= units;
		}
	}
	return true;
}

/* Paths of three arcs at most, as a search by levels would look at many arcs. Returns what goes over them. */
static int64_t
short_paths(Network *net, int from, int to, int64_t enough)
{
	int *first_hop = net->level, path[3];
	int64_t total = 0, more;
	memset(first_hop, -1, (size_t)net->n * sizeof *first_hop);
	for (int a = net->first[from]; a < net->first[from + 1]; a++)
		if (net->arc[a].room > 0 && net->arc[a].to < to)
			first_hop[net->arc[a].to] = a;
	for (int i = net->first[to]; i < net->first[to + 1]; i++) {
		int v = net->arc[i].to, last = net->arc[i].back;
		if (v > to || v == from || net->arc[last].room <= 0)
			continue;
		path[2] = last;
		path[0] = first_hop[v];
		path[1] = last;
		if (path[0] >= 0 && net->arc[path[0]].room > 0 && total < enough) {
			push(net, path, 2, enough - total, &more);
			total += more;
		}
		for (int a = net->first[v]; a < net->first[v + 1] && net->arc[last].room > 0 && total < enough; a++) {
			path[0] = first_hop[net->arc[a].to];
			path[1] = net->arc[a].back;
			if (path[0] < 0 || net->arc[path[0]].room <= 0 || net->arc[path[1]].room <= 0)
				continue;
			push(net, path, 3, enough - total, &more);
			total += more;
		}
	}
	return total;
}

int64_t
network_flow_again(Network *net, int from, int to, int64_t enough, const int *at, int n, struct network_kept *kept)
{
	load(net, from, at, kept);
	if (!fill_gaps(net, from) || !drain_all(net, from, to)) {
		put_back(net);
		memset(net->excess, 0, (size_t)net->n * sizeof *net->excess);
	}
	int64_t total = -net->excess[from];
	net->excess[from] = 0;
	if (total < enough)
		total += short_paths(net, from, to, enough - total);
	total += network_send(net, from, to, enough - total);
	kept->n = 0;
	for (int i = 0; i < net->n_changed && kept->n < kept->room; i++) {
		int a = net->changed[i];
		if (net->index[a] >= 0 && net->index[a] < n && carried(net, a) > 0)
			kept->load[kept->n++] = (struct network_load){ net->index[a], carried(net, a) };
	}
	put_back(net);
	return total;
}
