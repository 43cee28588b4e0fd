/* blink-perf: time a schedule as nccl-tests time NCCL, and check every element that it delivers (data.c). */
#include "perf.h"
#include "base/printable.h"
#include "find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRONG = blinkUnverified };

/* ---- One run ---- */

blinkResult_t
run_once(struct perf *p)
{
	return blinkRun(p->comm, p->from, p->to, p->count, p->type->code, p->op ? p->op->code : blinkSum);
}

double
seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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

static int
measure(struct perf *p, bool in_place)
{
	if (data_prepare(p, in_place))
		return 1;
	for (int64_t i = 0; i < p->opt.warmup; i++) {
		blinkResult_t result = run_once(p);
		if (result)
			return comm_failed(p, result);
	}
	double start = seconds();
	for (int64_t i = 0; i < p->opt.iters; i++) {
		blinkResult_t result = run_once(p);
		if (result)
			return comm_failed(p, result);
	}
	double time = (seconds() - start) / (double)p->opt.iters;
	double algbw = (double)p->count * (double)p->size * (double)size_blocks(p) / 1e9 / (time > 0 ? time : 1e-9);
	double busbw = algbw * bus_factor(p);
	printf("  %9.2f  %7.2f  %7.2f", time * 1e6, algbw, busbw);
	p->busbw_sum += busbw;
	p->n_rows++;
	if (!p->opt.check) {
		printf("    N/A");
		return 0;
	}
	int64_t n_wrong = 0;
	if (data_prepare(p, in_place))
		return 1;
	blinkResult_t result = run_once(p);
	if (result)
		return comm_failed(p, result);
	if (data_check(p, in_place, &n_wrong))
		return 1;
	printf("  %5" PRId64, n_wrong);
	p->n_wrong += n_wrong;
	return 0;
}

/* ---- The table ---- */

static int
print_row(struct perf *p, int64_t bytes)
{
	int64_t blocks = size_blocks(p);
	p->count = (size_t)(bytes / blocks / (int64_t)p->size);
	p->n_known = 0;
	if (p->opt.miad && search_chunk(p))
		return 1;
	printf("%12" PRId64 "  %12zu  %8s  %6s  %6d", (int64_t)(p->count * p->size) * blocks, p->count, p->type->name,
	    p->op ? p->op->name : "none", p->info.root);
	int failed = measure(p, false) || measure(p, true);
	printf("\n");
	fflush(stdout);
	return failed;
}

static int
print_table(struct perf *p)
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
			for (int64_t bytes = p->opt.min; bytes <= p->opt.max;) {
				if (print_row(p, bytes))
					return 1;
				int64_t next = p->opt.factor > 1 ? bytes * p->opt.factor : bytes + p->opt.step;
				bytes = next > bytes ? next : bytes + 1;
			}
		}
	}
	return 0;
}

static void
put_name(const char *before, const char *name, const char *after)
{
	fputs(before, stdout);
	print_name(stdout, name);
	fputs(after, stdout);
}

static void
print_header(const struct perf *p)
{
	const blinkScheduleInfo_t *i = &p->info;
	printf("# blink-perf   %s\n", blinkVersion());
	put_name("# schedule     ", p->path, "\n");
	put_name("#              ", i->digest, "\n");
	printf("# collective   %s over %d ranks", i->collectiveName, i->nRanks);
	if (i->root >= 0)
		printf(", root %d", i->root);
	if (p->opt.gpus)
		put_name(", of GPUs ", p->opt.gpus, "");
	put_name("\n# algorithm    ", i->algorithm, "");
	printf(", %d tree%s", i->nTrees, i->nTrees == 1 ? "" : "s");
	put_name(", for ", i->topology, "\n");
	put_name("# backend      ", i->backend, "");
	printf("%s\n",
	    strcmp(i->backend, "host") == 0 ? " (emulated: times are of memory copies on this machine)" : "");
	if (p->opt.miad)
		printf("# chunk        searched for each size, out of place: doubled from 16 KiB on, then lowered "
		       "(MIAD)\n");
	else if (p->opt.chunk)
		printf("# chunk        %" PRId64 " bytes\n", p->opt.chunk);
	else
		printf("# chunk        by segment: a sixteenth, 64 KiB to 4 MiB\n");
	printf("# iterations   %" PRId64 " after %" PRId64 " of warm-up, check %s\n#\n", p->opt.iters, p->opt.warmup,
	    p->opt.check ? "on" : "off");
	printf("#%56s%22s%37s\n", "", "out-of-place", "in-place");
	printf("#%11s  %12s  %8s  %6s  %6s  %9s  %7s  %7s  %5s  %9s  %7s  %7s  %5s\n", "size", "count", "type", "redop",
	    "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
	printf("#%11s  %12s  %8s  %6s  %6s  %9s  %7s  %7s  %5s  %9s  %7s  %7s  %5s\n", "(B)", "(elements)", "", "", "",
	    "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static int
allocate(struct perf *p)
{
	size_t n = (size_t)p->info.nRanks;
	p->send = calloc(n, sizeof *p->send);
	p->recv = calloc(n, sizeof *p->recv);
	p->from = calloc(n, sizeof *p->from);
	p->to = calloc(n, sizeof *p->to);
	p->known = calloc(KNOWN, sizeof *p->known);
	if (!p->send || !p->recv || !p->from || !p->to || !p->known)
		return complain(blinkOutOfMemory, "out of memory");
	size_t block = (size_t)(p->opt.max / size_blocks(p));
	for (int r = 0; r < p->info.nRanks; r++) {
		void *send, *recv;
		blinkResult_t result = blinkMemAlloc(p->comm, r, send_blocks(p, r) * block + 2 * GUARD, &send);
		if (result)
			return comm_failed(p, result);
		p->send[r] = (struct buffer){ send, (char *)send + GUARD };
		result = blinkMemAlloc(p->comm, r, recv_blocks(p, r) * block + 2 * GUARD, &recv);
		if (result)
			return comm_failed(p, result);
		p->recv[r] = (struct buffer){ recv, (char *)recv + GUARD };
	}
	return 0;
}

static void
release(struct perf *p)
{
	for (int r = 0; p->comm && r < p->info.nRanks; r++) {
		if (p->send && p->send[r].memory)
			blinkMemFree(p->comm, r, p->send[r].memory);
		if (p->recv && p->recv[r].memory)
			blinkMemFree(p->comm, r, p->recv[r].memory);
	}
	blinkCommDestroy(p->comm);
	blinkScheduleDestroy(p->sched);
	free(p->path);
	free(p->send);
	free(p->recv);
	free(p->from);
	free(p->to);
	free(p->known);
}

static int
perf(struct perf *p)
{
	blinkError_t error = { "" };
	blinkConfig_t config = { .chunkBytes = (size_t)p->opt.chunk, .threads = (int)p->opt.threads };
	int code = find_schedule(&p->opt, &p->sched, &p->path);
	if (code)
		return code;
	blinkScheduleGetInfo(p->sched, &p->info);
	blinkResult_t result = blinkCommCreate(p->sched, &config, &p->comm, &error);
	if (result)
		return complain((int)result, "%s: %s", p->path, error.text);
	code = allocate(p);
	if (code)
		return code;
	print_header(p);
	if (print_table(p))
		return p->code;
	if (p->opt.check)
		printf("# Out of bounds values : %" PRId64 " %s\n", p->n_wrong, p->n_wrong ? "FAILED" : "OK");
	printf("# Avg bus bandwidth    : %g\n", p->n_rows ? p->busbw_sum / p->n_rows : 0);
	if (p->n_wrong)
		return WRONG;
	return 0;
}

int
main(int argc, char **argv)
{
	struct perf p = { 0 };
	int code = take_options(&p.opt, argc, argv);
	if (code == MORE) {
		code = perf(&p);
		release(&p);
	}
	if (fflush(stdout) || ferror(stdout))
		return complain(blinkSystemError, "standard output: %s", strerror(errno));
	return code;
}
