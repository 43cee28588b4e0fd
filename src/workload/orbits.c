/* What symmetries that keep a group take to each other in it. */
#include "base/disjoint.h"
#include "workload/planning.h"

/* Images of the group's own links, ranks and bundles under an element that keeps it. rank: of each, its image. */
static void
join_images(const struct planned *of, const SymmetryWalk *walk, const int *rank, const GroupCall *call, int *links,
    int *bundles)
{
	const Topology *topo = of->joined->job.topo;
	int n = topo->n_ranks;
	for (int l = 0; l < topo->n_links; l++)
		set_join(links, joined_link(of->joined, walk->link[of->joined->shared[l]]), l);
	for (int b = 0, d = 0; b < concurrent_bundles(call->coll, n); b++) {
		Demand demand = collective_demand(call->coll, n, call->root, d);
		int image = collective_demand_of(call->coll, n, call->root, demand.from < 0 ? -1 : rank[demand.from],
		    demand.to < 0 ? -1 : rank[demand.to]);
		set_join(bundles, concurrent_bundle_of(call->coll, n, image), b);
		d += call->coll == ALLTOALL ? n - 1 : 1;
	}
}

void
image_ranks(const struct planning *p, const struct planned *of, const SymmetryWalk *walk, int *rank)
{
	const RankGroup *group = &p->in->workload->kind[of->kind].group[of->group];
	for (int i = 0; i < group->n; i++)
		rank[i] = p->in->place_of[of->kind][walk->vertex[group->rank[i]]];
}

/* Sets as orbits, numbered by their first members: of each member its orbit, and sizes. Returns how many. */
static int
number_orbits(int *set, int n, int *orbit, int *size)
{
	int count = 0;
	for (int i = 0; i < n; i++)
		orbit[i] = -1;
	for (int i = 0; i < n; i++) {
		int root = set_root(set, i);
		orbit[root] = orbit[root] < 0 ? count++ : orbit[root];
		size[orbit[root]]++;
	}
	for (int i = 0; i < n; i++)
		orbit[i] = orbit[set_root(set, i)];
	return count;
}

Status
find_orbits(struct planning *p, struct planned *of, Concurrent *concurrent)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const GroupCall *call = &p->phase->call[of->call];
	const Topology *topo = of->joined->job.topo;
	int n_bundles = concurrent_bundles(call->coll, topo->n_ranks), *links, *bundles, *rank, *orbit, *alike, *first;
	SymmetryWalk walk;
	TRY(TEMP(p->ctx, links, topo->n_links));
	TRY(TEMP_EACH(p->ctx, n_bundles, bundles, orbit));
	TRY(TEMP(p->ctx, rank, topo->n_ranks));
	TRY(NEW_EACH(p->ctx, topo->n_links, of->part, of->part_size));
	TRY(NEW_EACH(p->ctx, n_bundles, alike, first));
	for (int l = 0; l < topo->n_links; l++)
		links[l] = l;
	for (int b = 0; b < n_bundles; b++)
		bundles[b] = b;
	TRY(symmetry_walk(p->ctx, p->in->topo, p->in->sym, &walk));
	while (symmetry_next(&walk)) {
		int root = p->in->workload->kind[of->kind].group[of->group].rank[0];
		if (p->in->group_of[of->kind][walk.vertex[root]] != of->group)
			continue;
		image_ranks(p, of, &walk, rank);
		join_images(of, &walk, rank, call, links, bundles);
	}
	number_orbits(links, topo->n_links, of->part, of->part_size);
	concurrent->n_bundles = number_orbits(bundles, n_bundles, orbit, alike);
	for (int b = n_bundles - 1; b >= 0; b--)
		first[orbit[b]] = b;
	concurrent->bundle = first;
	concurrent->alike = alike;
	arena_release(&p->ctx->scratch, mark);
	return OK;
}
