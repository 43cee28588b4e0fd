/* Maximum flow: Dinic's algorithm with an explicit stack, on integers. */
#include "graph/flow.h"

#include <string.h>

static int
source_arc(const Flow *f, int v)
{
	return 2 * (f->topo->n_links + v);
}

static int
sink_arc(const Flow *f, int v)
{
	return 2 * (f->topo->n_links + f->topo->n_vertices + v);
}

Status
flow_new(Ctx *ctx, const Topology *topo, Flow *f)
{
	int n_arcs = 2 * (topo->n_links + 2 * topo->n_vertices);
	*f = (Flow){ .ctx = ctx, .topo = topo, .n = topo->n_vertices + 2,
	    .source = topo->n_vertices, .sink = topo->n_vertices + 1 };
	TRY(TEMP(ctx, f->arc, n_arcs));
	TRY(TEMP(ctx, f->first, f->n + 1));
	TRY(TEMP(ctx, f->list, n_arcs));
	TRY(TEMP_EACH(ctx, f->n, f->level, f->next, f->queue));
	for (int l = 0; l < topo->n_links; l++) {
		f->arc[2 * l].to = topo->link[l].to;
		f->arc[2 * l + 1].to = topo->link[l].from;
	}
	for (int v = 0; v < topo->n_vertices; v++) {
		f->arc[source_arc(f, v)].to = v;
		f->arc[source_arc(f, v) + 1].to = f->source;
		f->arc[sink_arc(f, v)].to = f->sink;
		f->arc[sink_arc(f, v) + 1].to = v;
	}
	for (int a = 0; a < n_arcs; a++)
		f->first[f->arc[a ^ 1].to + 1]++;
	for (int v = 0; v < f->n; v++)
		f->first[v + 1] += f->first[v];
	memcpy(f->next, f->first, (size_t)f->n * sizeof *f->next);
	for (int a = 0; a < n_arcs; a++)
		f->list[f->next[f->arc[a ^ 1].to]++] = a;
	return OK;
}

void
flow_reset(Flow *f, int64_t scale, bool reversed)
{
	const Topology *topo = f->topo;
	for (int l = 0; l < topo->n_links; l++) {
		f->arc[2 * l + reversed].capacity = (Wide)topo->link[l].capacity * scale;
		f->arc[2 * l + !reversed].capacity = 0;
	}
	for (int a = 2 * topo->n_links; a < 2 * (topo->n_links + 2 * topo->n_vertices); a++)
		f->arc[a].capacity = 0;
}

void
flow_from_source(Flow *f, int v, Wide capacity)
{
	f->arc[source_arc(f, v)].capacity = capacity;
}

void
flow_to_sink(Flow *f, int v, Wide capacity)
{
	f->arc[sink_arc(f, v)].capacity = capacity;
}

/* Breadth-first levels in the residual graph from the source, or to the sink, until the other has one too; false: it
 * has none, the flow is a maximum. */
static bool
flow_levels(Flow *f, bool to_sink)
{
	int head = 0, tail = 0, begin = to_sink ? f->sink : f->source, end = to_sink ? f->source : f->sink;
	for (int v = 0; v < f->n; v++)
		f->level[v] = -1;
	f->level[begin] = 0;
	f->queue[tail++] = begin;
	while (head < tail && f->level[end] < 0) {
		int v = f->queue[head++];
		for (int i = f->first[v]; i < f->first[v + 1]; i++) {
			int a = f->list[i], w = f->arc[a].to;
			if (f->arc[a ^ to_sink].capacity > 0 && f->level[w] < 0) {
				f->level[w] = f->level[v] + 1;
				f->queue[tail++] = w;
			}
		}
	}
	return f->level[end] >= 0;
}

/* One augmenting path along the levels, with an explicit stack in `queue`; 0: none is left. */
static Wide
flow_augment(Flow *f, bool to_sink)
{
	int depth = 0, v = f->source, step = to_sink ? -1 : 1;
	while (v != f->sink) {
		if (f->next[v] == f->first[v + 1]) {
			if (depth == 0)
				return 0;
			int a = f->queue[--depth];
			v = f->arc[a ^ 1].to;
			f->next[v]++;
			continue;
		}
		int a = f->list[f->next[v]], to = f->arc[a].to;
		if (f->arc[a].capacity > 0 && f->level[to] >= 0 && f->level[to] == f->level[v] + step) {
			f->queue[depth++] = a;
			v = to;
		} else {
			f->next[v]++;
		}
	}
	Wide least = f->arc[f->queue[0]].capacity;
	for (int i = 1; i < depth; i++)
		if (f->arc[f->queue[i]].capacity < least)
			least = f->arc[f->queue[i]].capacity;
	for (int i = 0; i < depth; i++) {
		f->arc[f->queue[i]].capacity -= least;
		f->arc[f->queue[i] ^ 1].capacity += least;
	}
	return least;
}

/* Do fewer vertices lead to the sink than come from the source? Then a search from there is shorter. */
static bool
sink_is_smaller(const Flow *f)
{
	int more = 0;
	for (int v = 0; v < f->topo->n_vertices; v++)
		more += (f->arc[source_arc(f, v)].capacity > 0) - (f->arc[sink_arc(f, v)].capacity > 0);
	return more > 0;
}

Wide
flow_max(Flow *f)
{
	Wide total = 0;
	bool to_sink = sink_is_smaller(f);
	while (flow_levels(f, to_sink)) {
		memcpy(f->next, f->first, (size_t)f->n * sizeof *f->next);
		for (Wide more; (more = flow_augment(f, to_sink)) > 0;)
			total += more;
	}
	f->sided = !to_sink;
	return total;
}

bool
flow_side(Flow *f, int v)
{
	if (!f->sided)
		flow_levels(f, false);
	f->sided = true;
	return f->level[v] >= 0;
}

int64_t
flow_past(Flow *f, const bool *in_set, int r, bool into)
{
	flow_reset(f, 1, false);
	for (int v = 0; v < f->topo->n_ranks; v++)
		if (in_set[v])
			(into ? flow_to_sink : flow_from_source)(f, v, FLOW_INFINITE);
	(into ? flow_from_source : flow_to_sink)(f, r, FLOW_INFINITE);
	return (int64_t)flow_max(f);
}
