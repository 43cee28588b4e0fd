/* This process drives all ranks, by one schedule. */
#include "perf/find.h"
#include "perf/perf.h"

#include <stdlib.h>

static int
runs(struct perf *p, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		blinkResult_t result = blinkRun(p->comm, p->from, p->to, p->count, p->type->code,
		    p->op ? p->op->code : blinkSum);
		if (result)
			return comm_failed(p, result);
	}
	return 0;
}

static int
join(struct perf *p, int64_t chunk, blinkComm_t *comm)
{
	blinkError_t error = { "" };
	blinkConfig_t config = { .chunkBytes = (size_t)chunk, .threads = (int)p->opt.threads };
	blinkResult_t result = blinkCommCreate(p->sched, &config, comm, &error);
	return result ? complain((int)result, "%s: %s", p->path, error.text) : 0;
}

static const struct mode all_ranks = { .join = join, .runs = runs };

static int
run_schedule(struct perf *p)
{
	blinkScheduleGetInfo(p->sched, &p->info);
	p->end = p->info.nRanks;
	p->mode = &all_ranks;
	int code = join(p, p->opt.chunk, &p->home);
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
