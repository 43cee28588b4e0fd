/* The schedules of all groups: those of the ones that are planned, and of their images. */
#include "format/format.h"
#include "schedule/schedule.h"
#include "workload/planning.h"

#include <math.h>
#include <stdlib.h>

struct image_tree {
	int demand, at;
	int64_t weight;
	Tree tree;
};

static int
by_demand(const void *a, const void *b)
{
	const struct image_tree *x = a, *y = b;
	return x->demand != y->demand ? (x->demand > y->demand) - (x->demand < y->demand)
	    : (x->at > y->at) - (x->at < y->at);
}

/* The packing of a group that is the image of another. rank, link: where these go. */
static Status
image_packing(Ctx *ctx, const Packing *pack, Collective coll, int root, int n, const int *rank, const int *link,
    Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct image_tree *image;
	Packing *made;
	TRY(TEMP(ctx, image, pack->n_trees));
	for (int t = 0; t < pack->n_trees; t++) {
		Demand demand = collective_demand(coll, n, root, pack->demand ? pack->demand[t] : 0);
		TRY(tree_image(ctx, &pack->tree[t], rank, link, &image[t].tree));
		image[t].weight = pack->weight[t];
		image[t].at = t;
		image[t].demand = collective_demand_of(coll, n, root, demand.from < 0 ? -1 : rank[demand.from],
		    demand.to < 0 ? -1 : rank[demand.to]);
	}
	qsort(image, (size_t)pack->n_trees, sizeof *image, by_demand);
	TRY(NEW(ctx, made, 1));
	*made = *pack;
	TRY(pack_room(ctx, pack->n_trees, pack->demand != NULL, made));
	made->n_trees = pack->n_trees;
	for (int t = 0; t < pack->n_trees; t++) {
		made->tree[t] = image[t].tree;
		made->weight[t] = image[t].weight;
		if (made->demand)
			made->demand[t] = image[t].demand;
	}
	arena_release(&ctx->scratch, mark);
	*out = made;
	return OK;
}

/* The schedule of a group by the packing of its own links. Its rate and bound are those of the group alone. */
static Status
build(struct planning *p, const struct planned *of, int image, Plan *plan, GroupPlan *out)
{
	static const char label[] = "the schedule of a group";
	const GroupCall *call = &p->phase->call[of->call];
	Job job = p->in->group[of->kind][image].job;
	int64_t *load;
	Schedule *sched;
	job.ask = of->ask;
	job.ask.matrix = call->matrix ? call->matrix[image] : NULL;
	TRY(TEMP(p->ctx, load, job.topo->n_links));
	/* A unit of its own: weights are what schedules are made of. */
	if (!pack_widest_unit(job.topo, plan->pack, load, &plan->pack->unit))
		return fail(p->ctx, LIMIT, "%s: a rate needs more than 64 bits", job.topo->name);
	TRY(job_build(p->ctx, &job, plan, &sched));
	sched_write_json(sched, &out->json);
	if (out->json.failed)
		return fail_memory(p->ctx);
	return sched_read_verified(p->ctx, label, out->json.data, out->json.size, &out->sched);
}

/* The certificate of a group, for its image: vertices go where the ends of links go. */
static Status
image_bound(Ctx *ctx, const Bound *in, const Topology *from, const Topology *to, const int *link, Bound *out)
{
	*out = *in;
	if (in->part)
		TRY(NEW(ctx, out->part, to->n_vertices));
	if (in->price)
		TRY(NEW(ctx, out->price, to->n_links));
	for (int l = 0; l < from->n_links; l++) {
		if (in->part) {
			out->part[to->link[link[l]].from] = in->part[from->link[l].from];
			out->part[to->link[link[l]].to] = in->part[from->link[l].to];
		}
		if (in->price)
			out->price[link[l]] = in->price[l];
	}
	return OK;
}

/* Bytes over the shared links, by the current element of the walk. */
static void
add_links(const struct planned *of, const SymmetryWalk *walk, const double *sent, double *sum)
{
	for (int l = 0; l < of->joined->job.topo->n_links && sent; l++)
		sum[walk->link[of->joined->shared[l]]] += sent[l];
}

static Status
build_image(struct planning *p, const struct planned *of, int image, const SymmetryWalk *walk)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const JoinedGroup *group = &p->in->group[of->kind][image];
	const Topology *topo = of->joined->job.topo;
	int *rank, *link;
	Plan plan = { 0 };
	TRY(TEMP(p->ctx, rank, topo->n_ranks));
	TRY(TEMP(p->ctx, link, topo->n_links));
	image_ranks(p, of, walk, rank);
	for (int l = 0; l < topo->n_links; l++)
		link[l] = joined_link(group, walk->link[of->joined->shared[l]]);
	TRY(image_packing(p->ctx, of->pack, of->ask.coll, of->ask.root, topo->n_ranks, rank, link,
	    &plan.pack));
	TRY(image_bound(p->ctx, &of->alone.proof, topo, group->job.topo, link, &plan.proof));
	if (of->alone.length)
		TRY(NEW(p->ctx, plan.length, group->job.topo->n_links));
	for (int l = 0; l < topo->n_links && plan.length; l++)
		plan.length[link[l]] = of->alone.length[l];
	TRY(build(p, of, image, &plan, &p->out->group[of->call][image]));
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

static double
longest(const Topology *topo, const double *sent)
{
	double seconds = 0;
	for (int l = 0; l < topo->n_links; l++)
		seconds = fmax(seconds, sent[l] / (double)topo->link[l].capacity);
	return seconds;
}

Status
build_all(struct planning *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const Topology *topo = p->in->topo;
	double *alone, *rings;
	bool have_rings = true;
	SymmetryWalk walk;
	int element = 0;
	TRY(TEMP_EACH(p->ctx, topo->n_links, alone, rings));
	TRY(symmetry_walk(p->ctx, topo, p->in->sym, &walk));
	do {
		for (int i = 0; i < p->n; i++) {
			const struct planned *of = &p->of[i];
			for (int h = 0; h < p->in->workload->kind[of->kind].n_groups; h++) {
				const JoinedGroup *group = &p->in->group[of->kind][h];
				if (group->like != of->group || group->element != element)
					continue;
				add_links(of, &walk, of->alone_sent, alone);
				add_links(of, &walk, of->ring_sent, rings);
				have_rings = have_rings && of->ring_sent;
				TRY(build_image(p, of, h, &walk));
			}
		}
		progress(p->ctx, "%s: schedules of images: %d of %d", p->phase->name, ++element, p->in->sym->size);
	} while (symmetry_next(&walk));
	p->out->alone = longest(topo, alone);
	p->out->rings = have_rings ? longest(topo, rings) : -1;
	arena_release(&p->ctx->scratch, mark);
	return OK;
}
