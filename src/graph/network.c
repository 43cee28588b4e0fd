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
	TRY(TEMP(ctx, out->level, vertices));
	TRY(TEMP(ctx, out->next, vertices));
	TRY(TEMP(ctx, out->queue, vertices));
	TRY(TEMP(ctx, out->changed, 2 * (size_t)arcs));
	return TEMP(ctx, out->was, 2 * (size_t)arcs);
}

void
network_build(Network *net, int n, int n_arcs, const int *tail, const int *head, int *at)
{
	net->n = n;
	net->n_arcs = 2 * n_arcs;
	memset(net->first, 0, ((size_t)n + 1) * sizeof *net->first);
	for (int i = 0; i < n_arcs; i++) {
		net->first[tail[i] + 1]++;
		net->first[head[i] + 1]++;
	}
	for (int v = 0; v < n; v++)
		net->first[v + 1] += net->first[v];
	memcpy(net->next, net->first, (size_t)n * sizeof *net->next);
	for (int i = 0; i < n_arcs; i++) {
		int a = net->next[tail[i]]++, back = net->next[head[i]]++;
		net->arc[a] = (struct network_arc){ head[i], back, 0 };
		net->arc[back] = (struct network_arc){ tail[i], a, 0 };
		at[i] = a;
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

/* All paths along the levels, with at most `enough` on them. `queue` has the arcs of the current one. */
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
		if (arc->room > 0 && net->level[arc->to] == net->level[v] + 1) {
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

int64_t
network_flow(Network *net, int from, int to, int64_t enough)
{
	int64_t total = network_send(net, from, to, enough);
	for (; net->n_changed > 0; net->n_changed--) {
		int a = net->changed[net->n_changed - 1];
		net->arc[a].room = net->was[a];
		net->was[a] = -1;
	}
	return total;
}
