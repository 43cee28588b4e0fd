/* A group as if it were alone: what the time of all groups together is held against. */
#include "workload/planning.h"

Status
count_bytes(const struct planning *p, const struct planned *of, const Packing *pack, double **out)
{
	const GroupCall *call = &p->phase->call[of->call];
	const Topology *topo = of->joined->job.topo;
	double *sent, total = 0;
	TRY(NEW(p->ctx, sent, topo->n_links));
	for (int t = 0; t < pack->n_trees; t++)
		total += (double)pack->weight[t];
	total /= collective_demands(call->coll, topo->n_ranks);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		double weight = (double)pack->weight[t];
		if (of->matrix)
			weight *= (double)of->matrix[collective_demand(call->coll, topo->n_ranks, -1,
			    pack->demand[t]).block];
		for (int i = 0; i < tree->n_down + tree->n_up; i++)
			for (int k = 0; k < tree_edge(tree, i)->n_links; k++)
				sent[tree_edge(tree, i)->link[k]] += weight;
	}
	double bytes = of->matrix ? call->times
	    : (double)bytes_of(call) / collective_shares(call->coll, topo->n_ranks);
	for (int l = 0; l < topo->n_links; l++)
		sent[l] *= bytes / total;
	*out = sent;
	return OK;
}

Status
fail_long(Ctx *ctx, Collective coll, int n_ranks)
{
	return fail(ctx, LIMIT, "%s over %d ranks: groups at once want a list of all trees, which is too long",
	    collective_name(coll), n_ranks);
}

Status
plan_alone(struct planning *p, struct planned *of)
{
	const GroupCall *call = &p->phase->call[of->call];
	const Topology *topo = of->joined->job.topo;
	Job job = of->joined->job;
	JobShared shared = { 0 };
	Plan rings;
	job.ask.coll = call->coll;
	job.ask.root = call->root;
	job.ask.matrix = of->matrix;
	of->ask = job.ask;
	TRY(job_plan(p->ctx, &job, &shared, &of->alone));
	if (of->alone.pack->symmetry || of->alone.pack->n_in_trees)
		return fail_long(p->ctx, call->coll, topo->n_ranks);
	TRY(count_bytes(p, of, of->alone.pack, &of->alone_sent));
	if (!collective_has_rings(call->coll)) {
		of->ring_sent = of->alone_sent;
		of->rings = of->alone.pack;
		return OK;
	}
	JobShared other = { 0 };
	job.ask.algorithm = "ring";
	TRY(algorithm_find(p->ctx, "ring", call->coll, &job.algorithm));
	Status status = job_plan(p->ctx, &job, &other, &rings);
	if (status == INFEASIBLE || status == LIMIT) {
		p->ctx->error.status = OK;
		return OK;
	}
	TRY(status);
	of->rings = rings.pack;
	return count_bytes(p, of, rings.pack, &of->ring_sent);
}
