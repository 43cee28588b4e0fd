#include "verb/relays.h"
#include "schedule/in_trees.h"

#include <string.h>

static Status
find_alone(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, RelayGain *out)
{
	Compiled made = { 0 };
	Ask alone = *ask;
	alone.relays = NULL;
	Status status = compile(ctx, machine, gpu, n, &alone, &made);
	if (status == INFEASIBLE && alone.hybrid) {
		ctx->error = (Error){ .status = OK };
		alone.hybrid = HYBRID_NONE;
		status = compile(ctx, machine, gpu, n, &alone, &made);
	}
	text_free(&made.json);
	out->connected = status == OK;
	if (status == OK)
		out->rate = made.sched->achieved;
	if (status != INFEASIBLE)
		return status;
	ctx->error = (Error){ .status = OK };
	return OK;
}

/* Does the image of a link leave this vertex? Of a schedule that is not compact, the link itself. */
static bool
leaves(const Schedule *sched, int link, int v)
{
	const Topology *topo = sched->topo;
	if (!sched->symmetry)
		return topo->link[link].from == v;
	const int *orbit = sched->symmetry->link_orbit;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
		if (orbit[topo->out[i]] == orbit[link])
			return true;
	return false;
}

/* Does an edge lead through this vertex? */
static bool
carries(const Schedule *sched, int v)
{
	for (int t = 0; t < sched->n_segments; t++) {
		const Tree *tree = &sched->segment[t].tree;
		for (int e = 0; e < tree->n_down + tree->n_up; e++) {
			const Edge *edge = tree_edge(tree, e);
			for (int i = 0; i < edge->n_links; i++)
				if (leaves(sched, edge->link[i], v))
					return true;
		}
	}
	return false;
}

static bool
is_gpu(const Topology *machine, const char *id)
{
	for (int g = 0; g < machine->n_ranks; g++)
		if (strcmp(machine->vertex[g].id, id) == 0)
			return true;
	return false;
}

Status
relays_find(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, const Schedule *sched,
    RelayGain *out)
{
	const Topology *topo = sched->topo;
	bool *passed;
	*out = (RelayGain){ .rate = FRAC_ZERO };
	TRY(TEMP(ctx, passed, topo->n_vertices));
	TRY(in_trees_passed(ctx, sched, passed));
	TRY(NEW(ctx, out->gpu, topo->n_vertices));
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if (is_gpu(machine, topo->vertex[v].id) && (passed[v] || carries(sched, v)))
			out->gpu[out->n++] = topo->vertex[v].id;
	return find_alone(ctx, machine, gpu, n, ask, out);
}
