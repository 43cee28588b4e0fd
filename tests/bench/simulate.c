/* Steps that the simulator takes in a second of CPU time: simulate SCHEDULE.json BYTES CHUNK... prints a line for each
 * executor and chunk size. */
#include "base/file.h"
#include "format/format.h"
#include "simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double
cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As often as takes a tenth of a second. */
static Status
measure(Ctx *ctx, const SimPlan *plan, Executor executor, int64_t m, int64_t chunk)
{
	SimAsk ask = { .m = m, .chunk = chunk };
	SimResult result = { .time = 0 };
	double begin = cpu_seconds(), seconds;
	int64_t steps = 0;
	sim_defaults(executor, &ask.p);
	do {
		ArenaMark mark = arena_mark(&ctx->run);
		TRY(sim_run(ctx, plan, &ask, &result));
		arena_release(&ctx->run, mark);
		steps += result.n_steps;
		seconds = cpu_seconds() - begin;
	} while (seconds < 0.1);
	printf("simulate    %-6s  %4d GPUs, %4d trees, %9lld steps  %8.3g million steps/s  %10.4g us\n",
	    executor_names.name[executor], plan->sched->topo->n_ranks, plan->sched->n_segments,
	    (long long)result.n_steps, (double)steps / seconds / 1e6, (double)result.time / 1e6);
	return OK;
}

static Status
run(Ctx *ctx, int argc, char **argv)
{
	Text in = { 0 };
	Schedule *sched;
	SimPlan *plan;
	TRY(file_read(ctx, argv[1], &in));
	Status status = sched_read(ctx, argv[1], in.data, in.size, &sched);
	text_free(&in);
	TRY(status);
	TRY(sim_prepare(ctx, sched, &plan));
	for (int i = 3; i < argc; i++)
		for (int x = 0; x < N_EXECUTORS; x++)
			TRY(measure(ctx, plan, (Executor)x, atoll(argv[2]), atoll(argv[i])));
	return OK;
}

int
main(int argc, char **argv)
{
	Ctx ctx;
	ctx_init(&ctx);
	Status status = argc > 3 ? run(&ctx, argc, argv) : fail(&ctx, USAGE, "want SCHEDULE BYTES CHUNK...");
	if (status != OK)
		fprintf(stderr, "%s\n", ctx.error.text);
	ctx_free(&ctx);
	return status != OK;
}
