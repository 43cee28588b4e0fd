/* Do edges keep to the route of their pair? A file has no routes: they follow from its links. */
#include "schedule/schedule.h"

/* The first link of an edge that is of a class which the route of its pair has not; -1: none. */
static int
link_off_route(const Topology *topo, const unsigned char *route, const Edge *edge)
{
	size_t pair = (size_t)edge->src * (size_t)topo->n_ranks + (size_t)edge->dst;
	unsigned classes = route_classes((RouteKind)route[pair]);
	for (int i = 0; i < edge->n_links; i++)
		if (!(classes >> topo->link[edge->link[i]].class & 1))
			return edge->link[i];
	return -1;
}

/* An edge of entry i of a list of the file. */
static Status
check_route(Ctx *ctx, const char *label, const Topology *topo, const unsigned char *route, const Edge *edge,
    const char *list, int i)
{
	int l = link_off_route(topo, route, edge);
	return l < 0 ? OK : fail(ctx, BAD_INPUT, "%s: %s[%d]: %s to %s over %s: want the route of this pair, as "
	    "generator.options.routes has it", label, list, i, topo->vertex[edge->src].id, topo->vertex[edge->dst].id,
	    link_class_name(topo->link[l].class));
}

Status
sched_check_routes(Ctx *ctx, const char *label, const Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	unsigned char *route;
	TRY(topo_check_pairs(ctx, topo));
	TRY(TEMP(ctx, route, (size_t)topo->n_ranks * (size_t)topo->n_ranks));
	TRY(topo_pair_routes(ctx, topo, route));
	if (sched->n_in_trees && !sched->n_edges) {
		Schedule *all;
		TRY(sched_expand(ctx, label, sched, &all));
		sched = all;
	}
	for (int e = 0; e < sched->n_edges; e++)
		TRY(check_route(ctx, label, topo, route, &sched->edge[e], "edges", e));
	for (int s = 0; s < sched->n_segments; s++) {
		const Tree *tree = &sched->segment[s].tree;
		for (int e = 0; e < tree->n_down + tree->n_up; e++)
			TRY(check_route(ctx, label, topo, route, tree_edge(tree, e), "trees", s));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
