/* This process drives all ranks, by one schedule. */
#include "find.h"
#include "perf.h"

#include <stdlib.h>

blinkResult_t
one_run(struct perf *p)
{
	return blinkRun(p->comm, p->from, p->to, p->count, p->type->code, p->op ? p->op->code : blinkSum);
}

int
one_join(struct perf *p, int64_t chunk, blinkComm_t *comm)
{
	blinkError_t error = { "" };
	blinkConfig_t config = { .chunkBytes = (size_t)chunk, .threads = (int)p->opt.threads };
	blinkResult_t result = blinkCommCreate(p->sched, &config, comm, &error);
	return result ? complain((int)result, "%s: %s", p->path, error.text) : 0;
}

static int
run_schedule(struct perf *p)
{
	blinkScheduleGetInfo(p->sched, &p->info);
	p->end = p->info.nRanks;
	int code = one_join(p, p->opt.chunk, &p->home);
	if (code)
		return code;
	p->comm = p->home;
	code = perf_allocate(p);
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
