/* Groups on their machine: the links of each, which of them are the same, and the symmetries that keep all groups. */
#include "workload/workload.h"
#include "topology/topology.h"
#include "workload/links.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

struct numbered {
	int shared, link;
};

static int
by_shared(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	return (x->shared > y->shared) - (x->shared < y->shared);
}

static Status
sort_links(Ctx *ctx, JoinedGroup *group)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = group->job.topo->n_links, *sorted;
	struct numbered *all;
	TRY(TEMP(ctx, all, n));
	TRY(NEW(ctx, sorted, n));
	for (int l = 0; l < n; l++)
		all[l] = (struct numbered){ group->shared[l], l };
	qsort(all, (size_t)n, sizeof *all, by_shared);
	for (int i = 0; i < n; i++)
		sorted[i] = all[i].link;
	group->sorted = sorted;
	arena_release(&ctx->scratch, mark);
	return OK;
}

int
joined_link(const JoinedGroup *group, int shared)
{
	int low = 0, high = group->job.topo->n_links;
	while (low < high) {
		int middle = (low + high) / 2;
		if (group->shared[group->sorted[middle]] < shared)
			low = middle + 1;
		else
			high = middle;
	}
	return low < group->job.topo->n_links && group->shared[group->sorted[low]] == shared ? group->sorted[low] : -1;
}

/* The links of each group, by their numbers in the machine at first. */
static Status
join_groups(Ctx *ctx, const Workload *w, const LinkNames *names, const Ask *ask, JoinedWorkload *out)
{
	TRY(NEW(ctx, out->group, w->n_kinds));
	TRY(NEW_EACH(ctx, w->n_kinds, out->group_of, out->place_of));
	for (int k = 0; k < w->n_kinds; k++) {
		const GroupKind *kind = &w->kind[k];
		TRY(NEW(ctx, out->group[k], kind->n_groups));
		TRY(NEW_EACH(ctx, w->n_ranks, out->group_of[k], out->place_of[k]));
		memset(out->group_of[k], -1, (size_t)w->n_ranks * sizeof **out->group_of);
		for (int g = 0; g < kind->n_groups; g++) {
			JoinedGroup *group = &out->group[k][g];
			const RankGroup *ranks = &kind->group[g];
			int *gpu, *of;
			group->like = g;
			for (int i = 0; i < ranks->n; i++) {
				out->group_of[k][ranks->rank[i]] = g;
				out->place_of[k][ranks->rank[i]] = i;
			}
			if (ranks->n < 2)
				continue;
			TRY(NEW(ctx, gpu, ranks->n));
			for (int i = 0; i < ranks->n; i++)
				gpu[i] = out->gpu[ranks->rank[i]];
			TRY(job_induce(ctx, out->machine, gpu, ranks->n, ask, &group->job));
			if (topo_active(group->job.topo))
				return fail(ctx, BAD_INPUT, "%s: a switch multicasts or reduces: groups at once are "
				    "not planned for such switches", out->machine->name);
			TRY(NEW(ctx, of, group->job.topo->n_links));
			TRY(link_names_find(ctx, names, group->job.topo, of));
			for (int l = 0; l < group->job.topo->n_links; l++)
				if (of[l] < 0)
					return fail(ctx, INTERNAL, "%s: link %d of a group: the machine has none",
					    out->machine->name, l);
			group->shared = of;
			progress(ctx, "links of %s groups: %d of %d", kind->name, g + 1, kind->n_groups);
		}
	}
	return OK;
}

/* The links in use, in the machine's order, and numbers of these in place of the machine's. */
static Status
share_links(Ctx *ctx, JoinedWorkload *out)
{
	const Workload *w = out->workload;
	const Topology *machine = out->machine;
	Topology *topo;
	int *number, *now, n = w->n_ranks;
	TRY(NEW(ctx, topo, 1));
	TRY(TEMP(ctx, number, machine->n_links));
	TRY(TEMP(ctx, now, machine->n_vertices));
	*topo = *machine;
	TRY(NEW(ctx, topo->link, machine->n_links));
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++)
			for (int l = 0; out->group[k][g].shared && l < out->group[k][g].job.topo->n_links; l++)
				number[out->group[k][g].shared[l]] = 1;
	memset(now, -1, (size_t)machine->n_vertices * sizeof *now);
	for (int r = 0; r < n; r++)
		now[out->gpu[r]] = r;
	topo->n_links = 0;
	for (int l = 0; l < machine->n_links; l++) {
		const Link *link = &machine->link[l];
		if (!number[l])
			continue;
		now[link->from] = now[link->from] < 0 ? n++ : now[link->from];
		now[link->to] = now[link->to] < 0 ? n++ : now[link->to];
		number[l] = topo->n_links;
		topo->link[topo->n_links++] = *link;
	}
	topo->n_ranks = w->n_ranks;
	topo->n_notes = 0;
	topo->route = NULL;
	TRY(topo_renumber(ctx, now, n, topo));
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++) {
			JoinedGroup *group = &out->group[k][g];
			for (int l = 0; group->shared && l < group->job.topo->n_links; l++)
				((int *)group->shared)[l] = number[group->shared[l]];
			if (group->shared)
				TRY(sort_links(ctx, group));
		}
	out->topo = topo;
	return OK;
}

/* ---- symmetries ---- */

/* The group that a map takes group g of kind k to; -1: it is torn apart, or its links are not theirs. */
static int
image_of_group(const JoinedWorkload *in, int k, int g, const int *vertex, const int *link)
{
	const RankGroup *ranks = &in->workload->kind[k].group[g];
	const JoinedGroup *group = &in->group[k][g], *other;
	int image = in->group_of[k][vertex[ranks->rank[0]]];
	if (image < 0 || in->workload->kind[k].group[image].n != ranks->n)
		return -1;
	for (int i = 0; i < ranks->n; i++)
		if (in->group_of[k][vertex[ranks->rank[i]]] != image)
			return -1;
	other = &in->group[k][image];
	if (!group->shared)
		return image;
	if (group->job.topo->n_links != other->job.topo->n_links)
		return -1;
	for (int l = 0; l < group->job.topo->n_links; l++)
		if (joined_link(other, link[group->shared[l]]) < 0)
			return -1;
	return image;
}

/* Roots of calls go to roots. */
static bool
keeps_roots(const JoinedWorkload *in, int k, int g, int image, const int *vertex)
{
	const Workload *w = in->workload;
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++) {
			const GroupCall *call = &w->phase[p].call[c];
			if (call->kind == k && call->root >= 0 && vertex[w->kind[k].group[g].rank[call->root]]
			    != w->kind[k].group[image].rank[call->root])
				return false;
		}
	return true;
}

/* Blocks of calls go to blocks of the same length. */
static bool
keeps_blocks(const JoinedWorkload *in, int k, int g, int image, const int *vertex)
{
	const Workload *w = in->workload;
	const RankGroup *from = &w->kind[k].group[g];
	const int *place = in->place_of[k];
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++) {
			const GroupCall *call = &w->phase[p].call[c];
			size_t n = (size_t)from->n;
			if (call->kind != k || !call->matrix || n < 2)
				continue;
			for (size_t i = 0; i < n; i++)
				for (size_t j = 0; j < n; j++)
					if (i != j && call->matrix[g][i * n + j] != call->matrix[image][
					    (size_t)place[vertex[from->rank[i]]] * n
					    + (size_t)place[vertex[from->rank[j]]]])
						return false;
		}
	return true;
}

static bool
keeps_groups(const void *with, const int *vertex, const int *link)
{
	const JoinedWorkload *in = with;
	for (int k = 0; k < in->workload->n_kinds; k++)
		for (int g = 0; g < in->workload->kind[k].n_groups; g++) {
			int image = image_of_group(in, k, g, vertex, link);
			if (image < 0 || !keeps_roots(in, k, g, image, vertex)
			    || !keeps_blocks(in, k, g, image, vertex))
				return false;
		}
	return true;
}

static Status
find_symmetry(Ctx *ctx, JoinedWorkload *out)
{
	const SymmetryTest keeps = { keeps_groups, out };
	Symmetry *sym;
	TRY(topo_symmetry_keeping(ctx, out->topo, &keeps, &sym));
	out->sym = sym;
	return OK;
}

/* Of which group of its kind each is an image: the first of its orbit. */
static Status
find_images(Ctx *ctx, JoinedWorkload *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Workload *w = out->workload;
	SymmetryWalk walk;
	int element = 0;
	TRY(symmetry_walk(ctx, out->topo, out->sym, &walk));
	do {
		for (int k = 0; k < w->n_kinds; k++)
			for (int g = 0; g < w->kind[k].n_groups; g++) {
				int image = out->group_of[k][walk.vertex[w->kind[k].group[g].rank[0]]];
				JoinedGroup *group = &out->group[k][image];
				if (g >= group->like)
					continue;
				group->like = g;
				group->element = element;
			}
		element++;
	} while (symmetry_next(&walk));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
workload_join(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, const Ask *ask,
    JoinedWorkload *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	LinkNames names;
	*out = (JoinedWorkload){ .workload = w, .machine = machine, .gpu = gpu, .ask = *ask };
	TRY(link_names(ctx, machine, &names));
	TRY(join_groups(ctx, w, &names, ask, out));
	TRY(share_links(ctx, out));
	TRY(find_symmetry(ctx, out));
	TRY(find_images(ctx, out));
	log_verbose(ctx, "groups: %d links in use, %d maps keep all groups, %d orbits", out->topo->n_links,
	    out->sym->size, out->sym->n_orbits);
	arena_release(&ctx->scratch, mark);
	return OK;
}
