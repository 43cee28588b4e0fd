/* The table: rows of runs, out of place and in place, and the buffers that they use. */
#include "perf/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRONG = blinkUnverified };

/* ---- One run ---- */

/* Bus bandwidth divided by algorithm bandwidth, as nccl-tests define them (their PERFORMANCE.md). */
static double
bus_factor(const struct perf *p)
{
	double n = p->info.nRanks;
	switch (p->info.collective) {
	case blinkCollBroadcast:
	case blinkCollReduce:
		return 1;
	case blinkCollAllReduce:
		return 2 * (n - 1) / n;
	default:
		return (n - 1) / n;
	}
}

/* The mean of a call: in a job, of the slowest rank. */
static int
take_time(struct perf *p, double *time)
{
	int64_t calls = p->opt.graph ? p->opt.graph : 1;
	if (p->job && p->mode->begin(p, calls))
		return 1;
	int failed = p->mode->runs(p, p->opt.warmup) || (p->job && job_meet(p));
	double start = seconds();
	failed = failed || p->mode->runs(p, p->opt.iters);
	*time = (seconds() - start) / (double)p->opt.iters / (double)calls;
	if (p->job)
		p->mode->end(p);
	return failed;
}

static int
count_wrong(struct perf *p, bool in_place, int64_t *n_wrong)
{
	*n_wrong = 0;
	if (data_prepare(p, in_place) || (p->job && p->mode->begin(p, 1)))
		return 1;
	int failed = p->mode->runs(p, 1);
	if (p->job)
		p->mode->end(p);
	return failed || data_check(p, in_place, n_wrong);
}

static int
measure(struct perf *p, bool in_place, struct side *side)
{
	side->n_wrong = -1;
	if (data_prepare(p, in_place) || take_time(p, &side->time))
		return 1;
	if (p->opt.check && count_wrong(p, in_place, &side->n_wrong))
		return 1;
	if (p->job && job_share(p, &side->time, &side->n_wrong))
		return 1;
	double time = side->time > 0 ? side->time : 1e-9;
	side->algbw = (double)p->count * (double)p->size * (double)size_blocks(p) / 1e9 / time;
	side->busbw = side->algbw * bus_factor(p);
	p->busbw_sum += side->busbw;
	p->n_rows++;
	p->n_wrong += side->n_wrong > 0 ? side->n_wrong : 0;
	return 0;
}

/* ---- The table ---- */

static int
one_row(struct perf *p, int64_t bytes)
{
	struct row row = { 0 };
	int64_t blocks = size_blocks(p);
	p->count = (size_t)(bytes / blocks / (int64_t)p->size);
	p->n_known = 0;
	row.bytes = (int64_t)(p->count * p->size) * blocks;
	if (p->opt.miad && search_chunk(p))
		return 1;
	if (p->job) {
		blinkResult_t result = blinkCommGetChoice(p->comm, p->info.collective,
		    p->info.root < 0 ? 0 : p->info.root, (size_t)row.bytes, &row.choice);
		if (result)
			return comm_failed(p, result);
	}
	if (measure(p, false, &row.side[0]) || measure(p, true, &row.side[1]))
		return 1;
	if (p->out)
		output_row(p->out, p, &row);
	return 0;
}

static int
all_sizes(struct perf *p)
{
	for (int64_t bytes = p->opt.min; bytes <= p->opt.max;) {
		if (one_row(p, bytes))
			return 1;
		int64_t next = p->opt.factor > 1 ? bytes * p->opt.factor : bytes + p->opt.step;
		bytes = next > bytes ? next : bytes + 1;
	}
	return 0;
}

static int
all_rows(struct perf *p)
{
	for (int t = 0; t < N_TYPES; t++) {
		p->type = &types[t];
		p->size = blinkTypeSize(p->type->code);
		bool named = strcmp(p->opt.type, types[t].name) == 0
		    || (types[t].also && strcmp(p->opt.type, types[t].also) == 0);
		if (!named && strcmp(p->opt.type, "all") != 0)
			continue;
		for (int o = 0; o < N_OPS; o++) {
			p->op = reduces(p) ? &ops[o] : NULL;
			if (!p->op ? o > 0 : strcmp(p->opt.op, "all") != 0 && strcmp(p->opt.op, p->op->name) != 0)
				continue;
			if (all_sizes(p))
				return 1;
		}
	}
	return 0;
}

int
perf_table(struct perf *p)
{
	if (p->first == 0) {
		p->out = output_begin(p);
		if (!p->out)
			return p->code = blinkOutOfMemory;
	}
	if (all_rows(p))
		return p->code;
	if (p->out && output_end(p->out, p))
		return p->code = blinkOutOfMemory;
	return p->n_wrong ? WRONG : 0;
}

/* ---- Buffers ---- */

static int
allocate_buffer(struct perf *p, int r, size_t bytes, struct buffer *out)
{
	void *memory;
	blinkResult_t result = blinkMemAlloc(p->home, r, bytes + 2 * GUARD, &memory);
	if (result)
		return comm_failed(p, result);
	*out = (struct buffer){ memory, (char *)memory + GUARD };
	return 0;
}

int
perf_allocate(struct perf *p)
{
	size_t n = (size_t)p->info.nRanks;
	p->send = calloc(n, sizeof *p->send);
	p->recv = calloc(n, sizeof *p->recv);
	p->from = calloc(n, sizeof *p->from);
	p->to = calloc(n, sizeof *p->to);
	p->known = calloc(KNOWN, sizeof *p->known);
	if (!p->send || !p->recv || !p->from || !p->to || !p->known)
		return p->code = complain(blinkOutOfMemory, "out of memory");
	size_t block = (size_t)(p->opt.max / size_blocks(p));
	for (int r = p->first; r < p->end; r++)
		if (allocate_buffer(p, r, send_blocks(p, r) * block, &p->send[r]) ||
		    allocate_buffer(p, r, recv_blocks(p, r) * block, &p->recv[r]))
			return p->code;
	return 0;
}

void
perf_release(struct perf *p)
{
	for (int r = p->first; p->home && r < p->end; r++) {
		if (p->send && p->send[r].memory)
			blinkMemFree(p->home, r, p->send[r].memory);
		if (p->recv && p->recv[r].memory)
			blinkMemFree(p->home, r, p->recv[r].memory);
	}
	if (p->comm != p->home)
		blinkCommDestroy(p->comm);
	blinkCommDestroy(p->home);
	output_free(p->out);
	free(p->send);
	free(p->recv);
	free(p->from);
	free(p->to);
	free(p->known);
}
