/* What a step takes at least, wherever its ranks are, by the links of GPUs: each hop of a tree leaves one GPU and
 * enters another. */
#include "workload/planning.h"

#include <math.h>
#include <stdlib.h>

/* The class of links that every pair of these GPUs is joined by, which is that of every group, too: it joins the group,
 * and one that would be preferred to it joined some pair. *out: 0: not one class for all. */
static Status
common_class(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, unsigned *out)
{
	unsigned all = 0;
	*out = 0;
	for (int a = 0; a < n; a++)
		for (int b = a + 1; b < n; b++) {
			ArenaMark mark = arena_mark(&ctx->run);
			Job job;
			Status status = job_induce(ctx, machine, (int[]){ gpu[a], gpu[b] }, 2, ask, &job);
			arena_release(&ctx->run, mark);
			if (status == INFEASIBLE) {
				ctx->error.status = OK;
				return OK;
			}
			TRY(status);
			all |= job.classes;
			if (all & (all - 1))
				return OK;
		}
	*out = all;
	return OK;
}

/* Bytes that ranks of a group send, whatever the trees. */
static double
least_sent(const GroupKind *kind, int g, const GroupCall *call)
{
	int n = kind->group[g].n;
	if (n < 2)
		return 0;
	if (call->matrix)
		return (double)alltoall_sent(call->matrix[g], n) * call->times;
	DemandKind demand = collective_demand(call->coll, n, call->root, 0).kind;
	int hops = demand == DEMAND_PATH ? 1 : demand == DEMAND_ALLREDUCE ? 2 * (n - 1) : n - 1;
	return (double)bytes_of(call) / collective_shares(call->coll, n) * collective_demands(call->coll, n) * hops;
}

static int
falling(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

/* What as many GPUs as there are ranks send or receive in a second, at most. */
static Status
fastest_ports(Ctx *ctx, const Topology *machine, const int *gpu, int n_gpus, unsigned classes, int n_ranks,
    double *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	double *sends, *receives, *most_sent, *most_received, sent = 0, received = 0;
	TRY(TEMP_EACH(ctx, machine->n_vertices, sends, receives));
	TRY(TEMP_EACH(ctx, n_gpus, most_sent, most_received));
	for (int l = 0; l < machine->n_links; l++) {
		const Link *link = &machine->link[l];
		double capacity = classes >> link->class & 1 ? (double)link->capacity : 0;
		sends[link->from] += capacity;
		receives[link->to] += capacity;
	}
	for (int i = 0; i < n_gpus; i++) {
		most_sent[i] = sends[gpu[i]];
		most_received[i] = receives[gpu[i]];
	}
	qsort(most_sent, (size_t)n_gpus, sizeof *most_sent, falling);
	qsort(most_received, (size_t)n_gpus, sizeof *most_received, falling);
	for (int i = 0; i < n_ranks; i++) {
		sent += most_sent[i];
		received += most_received[i];
	}
	*out = fmin(sent, received);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
ports_least(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask,
    double *out)
{
	unsigned classes;
	double rate, bytes = 0;
	*out = 0;
	TRY(common_class(ctx, machine, gpu, n_gpus, ask, &classes));
	if (!classes)
		return OK;
	TRY(fastest_ports(ctx, machine, gpu, n_gpus, classes, w->n_ranks, &rate));
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++) {
			const GroupCall *call = &w->phase[p].call[c];
			for (int g = 0; g < w->kind[call->kind].n_groups; g++)
				bytes += least_sent(&w->kind[call->kind], g, call) * w->phase[p].times;
		}
	*out = rate > 0 ? bytes / rate : 0;
	return OK;
}
