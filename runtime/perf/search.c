/* The size of chunks for a row, by trying (tune/miad.h). */
#include "perf.h"
#include "tune/miad.h"

#include <inttypes.h>

/* Buffers do not belong to a communicator of this backend alone: they stay when it changes. */
static int
use_chunk(struct perf *p, int64_t chunk)
{
	blinkError_t error = { "" };
	blinkConfig_t config = { .chunkBytes = (size_t)chunk, .threads = (int)p->opt.threads };
	blinkComm_t comm;
	blinkResult_t result = blinkCommCreate(p->sched, &config, &comm, &error);
	if (result)
		return p->code = complain((int)result, "%s: %s", p->path, error.text);
	blinkCommDestroy(p->comm);
	p->comm = comm;
	return 0;
}

/* The least time of the runs; the first one warms up. */
static int
try_chunk(struct perf *p, double *least)
{
	for (int64_t i = -1; i < p->opt.iters; i++) {
		double start = seconds();
		blinkResult_t result = one_run(p);
		double time = seconds() - start;
		if (result)
			return comm_failed(p, result);
		if (i <= 0 || time < *least)
			*least = time;
	}
	return 0;
}

int
search_chunk(struct perf *p)
{
	int64_t bytes = (int64_t)(p->count * p->size) * size_blocks(p);
	struct miad m;
	if (data_prepare(p, false))
		return 1;
	miad_start(&m, bytes);
	while (!m.settled) {
		double time = 0;
		int64_t chunk = m.chunk;
		if (use_chunk(p, chunk) || try_chunk(p, &time))
			return 1;
		miad_report(&m, time);
		output_note(p, "# miad  %12" PRId64 "  chunk %8" PRId64 " B  %9.2f us  %7.2f GB/s%s\n", bytes, chunk,
		    time * 1e6, (double)bytes / 1e9 / (time > 0 ? time : 1e-9), m.best == chunk ? "  best so far" : "");
	}
	output_note(p, "# miad  %12" PRId64 "  chunk %8" PRId64 " B  %s\n", bytes, m.chunk,
	    m.trials ? "chosen" : "chosen without a search: the message is small");
	return use_chunk(p, m.chunk);
}
