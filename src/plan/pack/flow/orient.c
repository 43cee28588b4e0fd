/* A direction for the trees of an allreduce, so that what is left to find are arborescences.
 *
 * A tree that goes down as it came up loads a link and the opposite one equally: one of both down, and the
 * other up. So both have one capacity c together, which is divided, f(l) + f(opposite) = c; and trees at the
 * rate R are arborescences from any one root s that fit f. With switches that only forward these exist if, for each set
 * X of vertices with a rank, but without s, f(into X) >= R, and as much enters each switch as leaves it
 * (split_off.c). Let m(v) be all of f into v. Then f(into X) = m(X) - c(within X); m of a switch is half of its links',
 * and with m(v) = half of its links' + z(v) - (R if v is s) all that is to hold is
 *
 *     z(A) >= R - d(A) / 2     for each set A of ranks; d(A): the least capacity that leaves A and any switches with it
 *     z(all ranks) = R
 *
 * d is submodular, so that the vectors z are a contrapolymatroid, of which all the smallest have the same sum: the
 * maximum over partitions into k parts of k R - sum of d(part) / 2. It is R where R is at most the bound of an
 * allreduce, sum of d(part) / (2 (k - 1)) (partition.c). So greedy finds z: start with R everywhere, and make one rank
 * after the other as small as it may be. Then f is half of each link and one flow along the links.
 *
 *     a -- w -- b	  c = 2, three ranks on a switch: R = 3/2, m(w) = 3, z = 1/2 each; with the root a, m(a) = 0,
 *          |		  m(b) = m(d) = 3/2. So f(a, w) = 2, f(w, b) = f(w, d) = 3/2, f(b, w) = f(d, w) = 1/2
 *          d
 * From: Frank 1980, On the orientation of graphs; Edmonds 1970 for the greedy method. */
#include "graph/network.h"
#include "plan/pack/flow/orient.h"

#include <limits.h>
#include <string.h>

enum { FLOW_NS = 100000 };	/* about what a flow takes */

Status
orient_opposite(Ctx *ctx, const Topology *topo, const int **out)
{
	int *opposite;
	*out = NULL;
	TRY(TEMP(ctx, opposite, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		opposite[l] = -1;
	for (int l = 0; l < topo->n_links; l++) {
		int v = topo->link[l].to;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1] && opposite[l] < 0; i++) {
			int back = topo->out[i];
			if (opposite[back] < 0 && topo->link[back].to == topo->link[l].from
			    && topo->link[back].capacity == topo->link[l].capacity) {
				opposite[l] = back;
				opposite[back] = l;
			}
		}
		if (opposite[l] < 0)
			return OK;
	}
	*out = opposite;
	return OK;
}

/* A network of arcs between these vertices. */
struct flow {
	Network net;
	int n_arcs;
	int *tail, *head, *at;
};

static Status
flow_room(Ctx *ctx, int vertices, int arcs, struct flow *f)
{
	*f = (struct flow){ 0 };
	TRY(TEMP(ctx, f->tail, arcs));
	TRY(TEMP(ctx, f->head, arcs));
	TRY(TEMP(ctx, f->at, arcs));
	return network_new(ctx, vertices, arcs, &f->net);
}

static void
add_arc(struct flow *f, int from, int to)
{
	f->tail[f->n_arcs] = from;
	f->head[f->n_arcs++] = to;
}

static void
set_room(struct flow *f, int arc, int64_t room)
{
	f->net.arc[f->at[arc]].room = room;
}

/* ---- z ---- */

/* Of d(A) / 2 + z(A): half of each link; then for each rank an arc from the source, and one to the sink. */
static Status
build_cuts(Ctx *ctx, const Supply *supply, struct flow *f)
{
	const Topology *topo = supply->topo;
	int source = topo->n_vertices, sink = source + 1;
	TRY(flow_room(ctx, sink + 1, topo->n_links + 2 * topo->n_ranks, f));
	for (int l = 0; l < topo->n_links; l++)
		add_arc(f, topo->link[l].from, topo->link[l].to);
	for (int v = 0; v < topo->n_ranks; v++)
		add_arc(f, source, v);
	for (int v = 0; v < topo->n_ranks; v++)
		add_arc(f, v, sink);
	network_build(&f->net, sink + 1, f->n_arcs, f->tail, f->head, f->at);
	for (int l = 0; l < topo->n_links; l++)
		set_room(f, l, supply->capacity[l] / 2);
	return OK;
}

/* z as small as it may be; false: their sum is not R, or time is over. Rank `last` has what others leave. */
static Status
choose_z(Ctx *ctx, const Supply *supply, int last, int64_t *z, bool *fits)
{
	const Topology *topo = supply->topo;
	int n = topo->n_ranks, source = topo->n_vertices, above = topo->n_links, below = above + n;
	int64_t negative = 0, sum = 0;
	struct flow f;
	*fits = false;
	TRY(build_cuts(ctx, supply, &f));
	for (int v = 0; v < n; v++)
		set_room(&f, below + v, supply->total);
	for (int i = 0; i < n; i++) {
		int v = i == n - 1 ? last : i < last ? i : i + 1;
		if (out_of_time(ctx, FLOW_NS))
			return OK;
		set_room(&f, above + v, NETWORK_INFINITE);
		set_room(&f, below + v, 0);
		z[v] = supply->total + negative - network_flow(&f.net, source, source + 1, INT64_MAX);
		set_room(&f, above + v, z[v] < 0 ? -z[v] : 0);
		set_room(&f, below + v, z[v] > 0 ? z[v] : 0);
		negative += z[v] < 0 ? -z[v] : 0;
		sum += z[v];
	}
	*fits = sum == supply->total;
	return OK;
}

/* ---- f ---- */

/* At first each direction has half of a link. A vertex x that has more than m(x) gives some of f(t, x) to f(x, t), so
 * that t has it: a flow along the links, from vertices that have more to those that have less. more: by how much. */
static Status
divide_links(Ctx *ctx, const Supply *supply, const int64_t *more, int64_t *down, bool *fits)
{
	const Topology *topo = supply->topo;
	int source = topo->n_vertices, sink = source + 1;
	int64_t sum = 0;
	struct flow f;
	TRY(flow_room(ctx, sink + 1, topo->n_links + topo->n_ranks, &f));
	for (int l = 0; l < topo->n_links; l++)
		add_arc(&f, topo->link[l].from, topo->link[l].to);
	for (int v = 0; v < topo->n_ranks; v++)
		add_arc(&f, more[v] > 0 ? source : v, more[v] > 0 ? v : sink);
	network_build(&f.net, sink + 1, f.n_arcs, f.tail, f.head, f.at);
	for (int l = 0; l < topo->n_links; l++)
		set_room(&f, l, supply->capacity[l] / 2);
	for (int v = 0; v < topo->n_ranks; v++) {
		set_room(&f, topo->n_links + v, more[v] > 0 ? more[v] : -more[v]);
		sum += more[v] > 0 ? more[v] : 0;
	}
	*fits = network_send(&f.net, source, sink, INT64_MAX) == sum;
	for (int l = 0; l < topo->n_links; l++)
		down[l] = supply->capacity[l] / 2 + f.net.arc[f.at[supply->opposite[l]]].room
		    - f.net.arc[f.at[l]].room;
	return OK;
}

/* Hops to the vertex that is farthest from v. hops, line: n_vertices. */
static int
farthest(const Topology *topo, int v, int *hops, int *line)
{
	int head = 0, tail = 0;
	memset(hops, -1, (size_t)topo->n_vertices * sizeof *hops);
	hops[v] = 0;
	for (line[tail++] = v; head < tail; head++)
		for (int i = topo->first_out[line[head]]; i < topo->first_out[line[head] + 1]; i++) {
			int w = topo->link[topo->out[i]].to;
			if (hops[w] < 0) {
				hops[w] = hops[line[head]] + 1;
				line[tail++] = w;
			}
		}
	return hops[line[tail - 1]];
}

Status
orient_root(Ctx *ctx, const Supply *supply, int *root)
{
	const Topology *topo = supply->topo;
	int *hops, *line, nearest = INT_MAX;
	int64_t most = 0;
	TRY(TEMP_EACH(ctx, topo->n_vertices, hops, line));
	for (int v = 0; v < topo->n_ranks; v++) {
		int far = farthest(topo, v, hops, line);
		int64_t sum = 0;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
			sum += supply->capacity[topo->out[i]];
		if (far > nearest || (far == nearest && sum <= most))
			continue;
		*root = v;
		nearest = far;
		most = sum;
	}
	return OK;
}

Status
orient_links(Ctx *ctx, const Supply *supply, int64_t *down, int *root, bool *fits)
{
	int64_t *z;
	TRY(TEMP(ctx, z, supply->topo->n_ranks));
	TRY(orient_root(ctx, supply, root));
	TRY(choose_z(ctx, supply, *root, z, fits));
	if (!*fits)
		return OK;
	for (int v = 0; v < supply->topo->n_ranks; v++)
		z[v] = (v == *root ? supply->total : 0) - z[v];
	return divide_links(ctx, supply, z, down, fits);
}
