/* The topology of a job, from its machine or from the index of a batch. */
#include "topology/topology.h"

#include <string.h>

Status
topo_of_job(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned classes, Routes routes, bool hosts,
    JobLinks *links, Topology **out)
{
	if (!classes)
		TRY(topo_choose_links(ctx, machine, gpu, n, routes, links));
	else if (routes == ROUTES_PAIR)
		*links = (JobLinks){ .classes = classes, .pairs = true };
	else
		TRY(topo_nic_paths(ctx, machine, gpu, n, classes, NULL, links));
	links->hosts = hosts;
	return links->pairs ? topo_induce_pairs(ctx, machine, gpu, n, links->classes, out)
	    : topo_induce(ctx, machine, gpu, n, links, out);
}

static int
gpu_by_id(const Topology *machine, const char *id)
{
	for (int g = 0; g < machine->n_ranks; g++)
		if (strcmp(machine->vertex[g].id, id) == 0)
			return g;
	return -1;
}

Status
topo_of_index_job(Ctx *ctx, const Index *index, const Topology *machine, const int *gpu, int n, Topology **out)
{
	JobLinks links;
	int *own;
	TRY(NEW(ctx, own, n));
	for (int i = 0; i < n; i++)
		if ((own[i] = gpu_by_id(machine, index->gpu[gpu[i]])) < 0)
			return fail(ctx, INFEASIBLE, "%s: %s is lost", machine->name, index->gpu[gpu[i]]);
	return topo_of_job(ctx, machine, own, n, index->links, index->routes, false, &links, out);
}
