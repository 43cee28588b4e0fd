/* A job over two sets of links: NVLink and PCIe (Blink 3.4). Through the host, PCIe switches are split in two. */
#include "topology/topology.h"

#include <string.h>

enum { LINK_BUS = 1u << LINK_PCIE | 1u << LINK_QPI };

static bool
is_bus(const Link *link)
{
	return (unsigned)LINK_BUS >> link->class & 1;
}

/* The default classes of a machine without PCIe. */
static Status
other_classes(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned *out)
{
	Topology *rest;
	JobLinks links;
	TRY(NEW(ctx, rest, 1));
	*rest = *machine;
	rest->n_links = 0;
	TRY(NEW(ctx, rest->link, machine->n_links));
	for (int l = 0; l < machine->n_links; l++)
		if (!is_bus(&machine->link[l]))
			rest->link[rest->n_links++] = machine->link[l];
	TRY(topo_index(ctx, rest));
	TRY(topo_choose_links(ctx, rest, gpu, n, ROUTES_ANY, &links));
	*out = links.classes;
	return OK;
}

Status
hybrid_parts(Ctx *ctx, const Topology *machine, const int *gpu, int n, HybridKind kind, Part part[2])
{
	for (int i = 1; i < n; i++)
		if (machine->vertex[gpu[i]].node != machine->vertex[gpu[0]].node)
			return fail_asked(ctx, INFEASIBLE, "hybrid", "%s and %s: want GPUs of one server",
			    machine->vertex[gpu[0]].id, machine->vertex[gpu[i]].id);
	part[0] = (Part){ .setup = 0 };
	part[1] = (Part){ .classes = LINK_BUS };
	TRY(other_classes(ctx, machine, gpu, n, &part[0].classes));
	if (!part[0].classes)
		return fail_asked(ctx, INFEASIBLE, "hybrid",
		    "%s: only links of pcie and qpi: want others, too",
		    machine->name);
	if (kind == HYBRID_PEER && !topo_peer_access(machine, n, &part[1].setup))
		return fail_asked(ctx, BAD_INPUT, "hybrid",
		    "%s: no peer_accesses: want the time to switch peer access, or --hybrid=host", machine->name);
	return OK;
}

/* Hops to the nearest CPU over PCIe, by others than GPUs; -1: there is none. */
static Status
find_levels(Ctx *ctx, const Topology *topo, int *level)
{
	int *queue, head = 0, tail = 0;
	TRY(TEMP(ctx, queue, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		level[v] = topo->vertex[v].kind == VERTEX_CPU ? 0 : -1;
		if (level[v] == 0)
			queue[tail++] = v;
	}
	while (head < tail) {
		int v = queue[head++], n_out = topo->first_out[v + 1] - topo->first_out[v];
		for (int i = 0; i < n_out + topo->first_in[v + 1] - topo->first_in[v]; i++) {
			int l = i < n_out ? topo->out[topo->first_out[v] + i] : topo->in[topo->first_in[v] + i - n_out];
			int w = topo->link[l].from == v ? topo->link[l].to : topo->link[l].from;
			if (!is_bus(&topo->link[l]) || w < topo->n_ranks || level[w] >= 0)
				continue;
			level[w] = level[v] + 1;
			queue[tail++] = w;
		}
	}
	return OK;
}

/* Does a link between v, which is split, and w lead up from v, rather than down? */
static Status
leads_up(Ctx *ctx, const Topology *topo, const int *level, int v, int w, bool *up)
{
	const char *name = topo->vertex[v].id;
	if (level[v] < 0)
		return fail_asked(ctx, BAD_INPUT, "hybrid=host", "%s: %s: no CPU above it over pcie: want one to pass",
		    topo->name, name);
	if (w >= topo->n_ranks && level[w] == level[v])
		return fail_asked(ctx, BAD_INPUT, "hybrid=host",
		    "%s: %s and %s: equally far from a CPU: want one above the other",
		    topo->name, name, topo->vertex[w].id);
	*up = w >= topo->n_ranks && level[w] < level[v];
	return OK;
}

/* The copy of v that a link between v and w ends at. GPUs and CPUs have one; of another vertex copy[v] is for links of
 * other classes, copy[v] + 1 leads up, and copy[v] + 2 leads down. */
static Status
copy_of_end(Ctx *ctx, const Topology *topo, const int *level, const int *copy, int v, int w, bool leaves, int *out)
{
	bool up = false;
	*out = copy[v];
	if (v < topo->n_ranks || topo->vertex[v].kind == VERTEX_CPU)
		return OK;
	TRY(leads_up(ctx, topo, level, v, w, &up));
	*out += up == leaves ? 1 : 2;
	return OK;
}

/* Every PCIe switch split in two; PCIe links between two GPUs are dropped. */
static Status
split_switches(Ctx *ctx, const Topology *topo, Topology **out)
{
	Topology *split;
	int *level, *copy;
	TRY(NEW(ctx, split, 1));
	*split = *topo;
	TRY(TEMP(ctx, level, topo->n_vertices));
	TRY(TEMP(ctx, copy, topo->n_vertices));
	TRY(NEW(ctx, split->vertex, 3 * (size_t)topo->n_vertices));
	TRY(NEW(ctx, split->link, topo->n_links));
	TRY(find_levels(ctx, topo, level));
	split->n_vertices = split->n_links = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		bool whole = v < topo->n_ranks || topo->vertex[v].kind == VERTEX_CPU;
		copy[v] = split->n_vertices;
		for (int i = 0; i < (whole ? 1 : 3); i++) {
			Vertex *vertex = &split->vertex[split->n_vertices++];
			*vertex = topo->vertex[v];
			/* A PCIe switch could do so only to data that turns back in it. */
			if (i > 0)
				vertex->multicast = vertex->reduce = false;
		}
	}
	for (int l = 0; l < topo->n_links; l++) {
		Link link = topo->link[l];
		bool bus = is_bus(&link);
		if (bus && link.from < topo->n_ranks && link.to < topo->n_ranks)
			continue;
		link.from = copy[topo->link[l].from];
		link.to = copy[topo->link[l].to];
		if (bus) {
			TRY(copy_of_end(ctx, topo, level, copy, topo->link[l].from, topo->link[l].to, true,
			    &link.from));
			TRY(copy_of_end(ctx, topo, level, copy, topo->link[l].to, topo->link[l].from, false, &link.to));
		}
		split->link[split->n_links++] = link;
	}
	*out = split;
	return topo_index(ctx, split);
}

/* Copies merged again; links keep their numbers. */
static Status
join_switches(Ctx *ctx, const Topology *split, Topology **out)
{
	Topology *topo;
	int *whole, n = 0;
	TRY(NEW(ctx, topo, 1));
	*topo = *split;
	TRY(TEMP(ctx, whole, split->n_vertices));
	for (int v = 0; v < split->n_vertices; v++) {
		/* Copies follow each other. */
		n += v == 0 || split->vertex[v - 1].id != split->vertex[v].id;
		whole[v] = n - 1;
	}
	*out = topo;
	return topo_renumber(ctx, whole, n, topo);
}

Status
hybrid_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Part part[2], HybridKind kind,
    Topology **planning_topology, Topology **job)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	unsigned classes = part[0].classes | part[1].classes;
	Topology *split = NULL;
	JobLinks links;
	if (kind == HYBRID_HOST) {
		TRY(split_switches(ctx, machine, &split));
		TRY(topo_nic_paths(ctx, split, gpu, n, classes, NULL, &links));
		TRY(topo_induce(ctx, split, gpu, n, &links, planning_topology));
		TRY(join_switches(ctx, *planning_topology, job));
	} else {
		TRY(topo_nic_paths(ctx, machine, gpu, n, classes, NULL, &links));
		TRY(topo_induce(ctx, machine, gpu, n, &links, planning_topology));
		*job = *planning_topology;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
