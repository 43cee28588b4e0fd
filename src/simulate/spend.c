/* The time that a simulation may take. */
#include "simulate/run.h"

Status
run_spend(struct run *run, int64_t work)
{
	work += run->work;
	run->work = 0;
	if (!run->ask->timed || !out_of_time(run->ctx, work))
		return OK;
	return fail_asked(run->ctx, LIMIT, "budget", "%s: a message of %lld bytes in chunks of %lld: %lld steps to "
	    "simulate, %lld of them begun: want more time, or larger chunks", run->net->plan->sched->topo->name,
	    (long long)run->ask->m, (long long)run->out->chunk, (long long)run->n_steps, (long long)run->n_begun);
}
