/* Sets of GPUs on several machines: the whole one, and what is left of it after each loss. A set on one of them is
 * planned like any other, and has a class with those of the others. */
#include "verb/batch/batch.h"
#include "verb/idle.h"

/* Is there a collective on it? */
static bool
is_machine(const Topology *topo)
{
	return topo->n_ranks >= 2;
}

static Status
add_machine(Ctx *ctx, const Batch *b, const Loss *loss, int n, Machine *out)
{
	Topology *topo;
	PairGain gain;
	TRY(topo_losses_name(ctx, b->machine, loss, n, &out->without));
	TRY(topo_without(ctx, b->machine, loss, n, &topo, &out->gpu));
	out->topo = topo;
	out->routes = b->tuning ? b->ask.routes : routes_default(ctx, topo, &b->ask, &gain);
	return OK;
}

Status
batch_machines(Ctx *ctx, Batch *b, const Loss *loss, int n, bool together)
{
	Machine *of;
	int n_losses = together ? n > 0 : n;
	TRY(NEW(ctx, of, n_losses + 1));
	of[0] = b->base;
	b->n_machines = 1;
	if ((int64_t)n_losses * b->n_sets > 4 * (int64_t)LIMIT_INDEX)
		return fail(ctx, LIMIT,
		    "%d sets on %d machines: want at most %d; fewer --sizes, or sets with --gpus", b->n_sets,
		    n_losses, 4 * LIMIT_INDEX);
	for (int i = 0; i < n_losses; i++) {
		TRY(add_machine(ctx, b, &loss[i], together ? n : 1, &of[b->n_machines]));
		b->n_machines += is_machine(of[b->n_machines].topo);
	}
	b->of = of;
	return OK;
}

int
batch_all_sets(const Batch *b)
{
	return b->n_machines * b->n_sets;
}

const GpuSet *
batch_set(const Batch *b, int s)
{
	return &b->set[s % b->n_sets];
}

const Machine *
batch_machine(const Batch *b, int s)
{
	return &b->of[s / b->n_sets];
}

bool
machine_lost(const Machine *machine, const GpuSet *set)
{
	for (int i = 0; i < set->n && machine->gpu; i++)
		if (machine->gpu[set->gpu[i]] < 0)
			return true;
	return false;
}

Status
batch_induce(Ctx *ctx, const Batch *b, int s, const Ask *ask, Job *out)
{
	const GpuSet *set = batch_set(b, s);
	const Machine *machine = batch_machine(b, s);
	Ask with = *ask;
	int *gpu;
	with.routes = machine->routes;
	if (!machine->gpu)
		return job_induce(ctx, machine->topo, set->gpu, set->n, &with, out);
	TRY(NEW(ctx, gpu, set->n));
	for (int i = 0; i < set->n; i++)
		if ((gpu[i] = machine->gpu[set->gpu[i]]) < 0)
			return fail(ctx, INFEASIBLE, "%s: %s is lost", machine->topo->name,
			    b->machine->vertex[set->gpu[i]].id);
	return job_induce(ctx, machine->topo, gpu, set->n, &with, out);
}
