/* This process drives all ranks, by one schedule. */
#include "find.h"
#include "perf.h"

#include <stdlib.h>

blinkResult_t
one_run(struct perf *p)
{
	return blinkRun(p->comm, p->from, p->to, p->count, p->type->code, p->op ? p->op->code : blinkSum);
}

static int
run_schedule(struct perf *p)
{
	blinkError_t error = { "" };
	blinkConfig_t config = { .chunkBytes = (size_t)p->opt.chunk, .threads = (int)p->opt.threads };
	blinkScheduleGetInfo(p->sched, &p->info);
	p->end = p->info.nRanks;
	blinkResult_t result = blinkCommCreate(p->sched, &config, &p->comm, &error);
	if (result)
		return complain((int)result, "%s: %s", p->path, error.text);
	int code = perf_allocate(p);
	return code ? code : perf_table(p);
}

int
one_perf(struct perf *p)
{
	int code = find_schedule(&p->opt, &p->sched, &p->path);
	if (!code)
		code = run_schedule(p);
	perf_release(p);
	blinkScheduleDestroy(p->sched);
	free(p->path);
	return code;
}
