/* The size of chunks for a row, by trying (tune/miad.h). The size that is used without a search is tried as well, and
 * kept where no other is faster: on GPUs a short message has no chunks then. */
#include "perf/meet.h"
#include "tune/miad.h"

#include <inttypes.h>
#include <stdio.h>

/* Buffers stay those of the first communicator. */
static int
use_chunk(struct perf *p, int64_t chunk)
{
	blinkComm_t comm;
	int code = p->mode->join(p, chunk, &comm);
	if (code)
		return p->code = code;
	if (p->comm != p->home)
		blinkCommDestroy(p->comm);
	p->comm = comm;
	return 0;
}

/* The least time of the runs; the first one warms up. */
static int
time_runs(struct perf *p, double *least)
{
	for (int64_t i = -1; i < p->opt.iters; i++) {
		if (p->job && job_meet(p))
			return 1;
		double start = seconds();
		if (p->mode->runs(p, 1))
			return 1;
		double time = seconds() - start;
		if (i <= 0 || time < *least)
			*least = time;
	}
	return 0;
}

/* In a job, of the slowest rank. */
static int
try_chunk(struct perf *p, int64_t chunk, double *least)
{
	int64_t calls = p->opt.graph ? p->opt.graph : 1, n_wrong = 0;
	if (use_chunk(p, chunk) || (p->job && p->mode->begin(p, calls)))
		return 1;
	int failed = time_runs(p, least);
	if (p->job)
		p->mode->end(p);
	*least /= (double)calls;
	return failed || (p->job && job_share(p, least, &n_wrong));
}

static void
put_try(const struct perf *p, int64_t bytes, int64_t chunk, double time, bool best)
{
	char size[32] = "of the size";
	if (chunk > 0)
		snprintf(size, sizeof size, "%9" PRId64 " B", chunk);
	output_note(p, "# miad  %12" PRId64 "  chunk %s  %9.2f us  %7.2f GB/s%s\n", bytes, size, time * 1e6,
	    (double)bytes / 1e9 / (time > 0 ? time : 1e-9), best ? "  best so far" : "");
}

int
search_chunk(struct perf *p)
{
	int64_t bytes = (int64_t)(p->count * p->size) * size_blocks(p);
	double usual = 0;
	struct miad m;
	miad_start(&m, bytes);
	if (data_prepare(p, false) || (!m.settled && try_chunk(p, 0, &usual)))
		return 1;
	if (!m.settled)
		put_try(p, bytes, 0, usual, false);
	while (!m.settled) {
		double time = 0;
		int64_t chunk = m.chunk;
		if (try_chunk(p, chunk, &time))
			return 1;
		miad_report(&m, time);
		put_try(p, bytes, chunk, time, m.best == chunk);
	}
	if (m.trials == 0 || usual < m.best_seconds) {
		output_note(p, "# miad  %12" PRId64 "  chunk of the size  chosen%s\n", bytes,
		    m.trials ? "" : " without a search: the message is small");
		return use_chunk(p, 0);
	}
	output_note(p, "# miad  %12" PRId64 "  chunk %9" PRId64 " B  chosen\n", bytes, m.chunk);
	return use_chunk(p, m.chunk);
}
