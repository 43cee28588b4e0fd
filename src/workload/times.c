/* When a phase is done, by the loads of links, and before when it cannot be. */
#include "graph/graph.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

#include <math.h>

/* Of each link, as parts of the message, or as bytes of the matrix. */
static Status
group_loads(Ctx *ctx, const PhaseCall *call, const Schedule *sched, Frac *load)
{
	const char *label = sched->topo->name;
	return call->by_matrix ? sched_matrix_loads(ctx, label, sched, sched->matrix->bytes, load)
	    : sched_loads(ctx, label, sched, load);
}

Status
phase_seconds(Ctx *ctx, const PhaseGroups *in, int level, double *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	double *sent;
	TRY(TEMP(ctx, sent, in->topo->n_links));
	for (int c = 0; c < in->n_calls; c++)
		for (int g = 0; g < in->call[c].n_groups && in->call[c].level <= level; g++) {
			const CallingGroup *group = &in->call[c].group[g];
			ArenaMark inner = arena_mark(&ctx->scratch);
			Frac *load;
			if (!group->sched)
				continue;
			TRY(TEMP(ctx, load, group->sched->topo->n_links));
			TRY(group_loads(ctx, &in->call[c], group->sched, load));
			double times = (double)(in->call[c].by_matrix ? in->call[c].times : in->call[c].bytes);
			for (int l = 0; l < group->sched->topo->n_links; l++)
				sent[group->shared[l]] += frac_double(load[l]) * times;
			arena_release(&ctx->scratch, inner);
		}
	*out = 0;
	for (int l = 0; l < in->topo->n_links; l++)
		*out = fmax(*out, sent[l] / (double)in->topo->link[l].capacity);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Bytes times the cost of the cheapest trees of a group, at the prices of its level. */
static Status
group_cost(Ctx *ctx, const char *label, const PhaseGroups *in, const PhaseCall *call, const CallingGroup *group,
    const PhaseLevel *level, int at, double *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Schedule *sched = group->sched;
	int n = in->topo->n_links;
	int64_t *price;
	Wide cost;
	TRY(TEMP(ctx, price, sched->topo->n_links));
	for (int l = 0; l < sched->topo->n_links; l++)
		for (int j = call->level; j <= at; j++)
			price[l] += level[at].price[(size_t)j * (size_t)n + (size_t)group->shared[l]];
	if (call->by_matrix)
		TRY(pairs_cost(ctx, label, sched->topo, sched->matrix->bytes, price, &cost));
	else
		TRY(demands_cost(ctx, label, sched->topo, sched->coll, sched->root, NULL, price, &cost));
	*out = cost < 0 ? 0 : call->by_matrix ? (double)cost * call->times
	    : (double)cost * (double)call->bytes / collective_shares(sched->coll, sched->topo->n_ranks);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
phase_bound(Ctx *ctx, const char *label, const PhaseGroups *in, const PhaseLevel *level, int at, double *out)
{
	double need = 0, room = 0;
	for (int c = 0; c < in->n_calls; c++)
		for (int g = 0; g < in->call[c].n_groups && in->call[c].level <= at; g++) {
			double cost = 0;
			if (in->call[c].group[g].sched)
				TRY(group_cost(ctx, label, in, &in->call[c], &in->call[c].group[g], level, at, &cost));
			need += cost;
		}
	for (int j = 0; j <= at; j++) {
		Wide sum = 0;
		for (int l = 0; l < in->topo->n_links; l++)
			sum += (Wide)in->topo->link[l].capacity
			    * level[at].price[(size_t)j * (size_t)in->topo->n_links + (size_t)l];
		need -= j < at ? (double)sum * level[j].seconds : 0;
		room = (double)sum;
	}
	*out = need > 0 && room > 0 ? need / room : 0;
	return OK;
}
