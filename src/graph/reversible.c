/* Can every tree be reversed? Capacities are compared with those of the opposite direction. */
#include "base/hash.h"
#include "graph/reversible.h"

/* Is the capacity from v to w that from the twin of w to the twin of v, for all pairs? The twin of a twin is the
 * vertex itself. */
static bool
mirrored_by(const Topology *topo, const int *twin, int64_t *net)
{
	bool same = true;
	for (int v = 0; v < topo->n_vertices; v++) {
		int w = twin[v];
		/* net: capacity from v to each vertex, less that in the other direction between their twins. */
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
			net[topo->link[topo->out[i]].to] += topo->link[topo->out[i]].capacity;
		for (int i = topo->first_in[w]; i < topo->first_in[w + 1]; i++)
			net[twin[topo->link[topo->in[i]].from]] -= topo->link[topo->in[i]].capacity;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			same = same && net[topo->link[topo->out[i]].to] == 0;
			net[topo->link[topo->out[i]].to] = 0;
		}
		for (int i = topo->first_in[w]; i < topo->first_in[w + 1]; i++) {
			same = same && net[twin[topo->link[topo->in[i]].from]] == 0;
			net[twin[topo->link[topo->in[i]].from]] = 0;
		}
	}
	return same;
}

Status
topo_mirrored(Ctx *ctx, const Topology *topo, bool *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *net;
	int *self;
	TRY(TEMP_EACH(ctx, topo->n_vertices, net, self));
	for (int v = 0; v < topo->n_vertices; v++)
		self[v] = v;
	*out = mirrored_by(topo, self, net);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Switches in order of their colours; reversed: of the topology with all links reversed. Ranks have different
 * colours. */
static void
order_switches(const Topology *topo, bool reversed, const uint64_t *link_colour, uint64_t *colour, uint64_t *next,
    ColouredVertex *order)
{
	for (int v = 0; v < topo->n_vertices; v++)
		colour[v] = v < topo->n_ranks ? hash64((uint64_t)v + 1) : 0;
	symmetry_refine(topo, link_colour, reversed, topo->n_ranks, SYMMETRY_ROUNDS, colour, next);
	symmetry_sort_switches(topo, colour, order);
}

Status
topo_twins(Ctx *ctx, const Topology *topo, int *twin, bool *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	ColouredVertex *forward, *reverse;
	uint64_t *colour, *next, *link_colour;
	int64_t *net;
	TRY(TEMP_EACH(ctx, topo->n_vertices, forward, reverse));
	TRY(TEMP(ctx, link_colour, topo->n_links));
	TRY(TEMP_EACH(ctx, topo->n_vertices, colour, next, net));
	for (int l = 0; l < topo->n_links; l++)
		link_colour[l] = hash64((uint64_t)topo->link[l].capacity);
	order_switches(topo, false, link_colour, colour, next, forward);
	order_switches(topo, true, link_colour, colour, next, reverse);
	*out = !topo_active(topo);
	for (int v = 0; v < topo->n_vertices; v++) {
		int i = v - topo->n_ranks;
		twin[i < 0 ? v : forward[i].v] = i < 0 ? v : reverse[i].v;
	}
	for (int v = 0; v < topo->n_vertices; v++)
		*out = *out && twin[twin[v]] == v;
	*out = *out && mirrored_by(topo, twin, net);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
topo_twinned(Ctx *ctx, const Topology *topo, bool *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *twin;
	TRY(TEMP(ctx, twin, topo->n_vertices));
	TRY(topo_twins(ctx, topo, twin, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
