/* blink-perf: time a schedule as nccl-tests time NCCL, and check every element that it delivers.
 *
 * Data is chosen so that the right answer is one value, whatever the order of a reduction: integers of any bits, since they
 * wrap; small whole floats for sums; powers of two for products. Each depends on the rank and the position, so
 * that data in the wrong place is wrong data. */
#include "find.h"
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRONG = blinkUnverified };
enum { GUARD = 256, GUARD_BYTE = 0xa5, POISON_BYTE = 0xee };	/* around buffers, and in what is not yet received */
enum { KNOWN = 1 << 18 };						/* first elements of an allreduce's result, which are made once for all ranks */
enum { BLOCK = 4096 };						/* elements made and compared at a time */

/* An integer of the type, extended to 64 bits, or a float. */
union value {
	uint64_t u;
	double f;
};

struct buffer {
	char *memory, *data;		/* `data` lies GUARD bytes into `memory` */
};

struct perf {
	struct options opt;
	char *path;			/* of the schedule's file */
	blinkSchedule_t sched;
	blinkScheduleInfo_t info;
	blinkComm_t comm;
	struct buffer *send, *recv;	/* of each rank */
	const void **from;		/* what blinkRun gets */
	void **to;
	const struct type *type;
	const struct op *op;		/* NULL: the collective does not reduce */
	size_t count, size;		/* elements of a block, bytes of an element */
	size_t n_known;			/* results that every rank receives */
	union value *known;
	int64_t n_wrong;		/* in all runs */
	int code;			/* exit code of what failed */
	double busbw_sum;
	int n_rows;
};

static int
comm_failed(struct perf *p, blinkResult_t result)
{
	const char *text = blinkCommGetError(p->comm);
	return p->code = complain((int)result, "%s: %s", p->path, *text ? text : blinkGetErrorString(result));
}

/* ---- Buffers ---- */

static bool
reduces(const struct perf *p)
{
	return p->info.collective == blinkReduce || p->info.collective == blinkAllReduce ||
	    p->info.collective == blinkReduceScatter;
}

/* Elements in the send (receive) buffer of rank r: blocks of `count` (blink.h). */
static size_t
send_blocks(const struct perf *p, int r)
{
	switch (p->info.collective) {
	case blinkBroadcast:
		return r == p->info.root;
	case blinkScatter:
		return r == p->info.root ? (size_t)p->info.nRanks : 0;
	case blinkReduceScatter:
	case blinkAlltoAll:
		return (size_t)p->info.nRanks;
	default:
		return 1;
	}
}

static size_t
recv_blocks(const struct perf *p, int r)
{
	switch (p->info.collective) {
	case blinkReduce:
		return r == p->info.root;
	case blinkGather:
		return r == p->info.root ? (size_t)p->info.nRanks : 0;
	case blinkAllGather:
	case blinkAlltoAll:
		return (size_t)p->info.nRanks;
	default:
		return 1;
	}
}

/* Blocks in what nccl-tests call the size of a collective. */
static int64_t
size_blocks(const struct perf *p)
{
	switch (p->info.collective) {
	case blinkBroadcast:
	case blinkReduce:
	case blinkAllReduce:
		return 1;
	default:
		return p->info.nRanks;
	}
}

/* ---- Data ---- */

static uint64_t
mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t
extend(const struct type *type, uint64_t u)
{
	if (type->bits == 64)
		return u;
	uint64_t mask = (UINT64_C(1) << type->bits) - 1, sign = type->is_signed ? UINT64_C(1) << (type->bits - 1) : 0;
	return ((u & mask) ^ sign) - sign;
}

/* What rank r sends at position `at`. */
static union value
element(const struct perf *p, int r, size_t at)
{
	uint64_t hash = mix(mix((uint64_t)r + 1) ^ at);
	union value v;
	if (!p->type->is_float) {
		v.u = extend(p->type, hash);
	} else if (p->op && p->op->code == blinkSum) {
		v.f = (double)(int)(hash % 31) - 15;
	} else if (p->op && p->op->code == blinkProd) {
		/* At most 64 ranks change the exponent, by at most 1: products stay within a float. */
		int every = (p->info.nRanks + 63) / 64;
		double scale = hash % 3 == 0 ? 0.5 : hash % 3 == 1 ? 1 : 2;
		v.f = (r % every == 0 ? scale : 1) * (hash & 1024 ? -1 : 1);
	} else {
		v.f = (double)(int64_t)(hash >> 40) - (1 << 23);
	}
	return v;
}

static union value
combine(const struct perf *p, union value a, union value b)
{
	bool below = p->type->is_float ? a.f < b.f : p->type->is_signed ? (int64_t)a.u < (int64_t)b.u : a.u < b.u;
	union value v;
	switch (p->op->code) {
	case blinkSum:
		if (p->type->is_float)
			v.f = a.f + b.f;
		else
			v.u = extend(p->type, a.u + b.u);
		return v;
	case blinkProd:
		if (p->type->is_float)
			v.f = a.f * b.f;
		else
			v.u = extend(p->type, a.u * b.u);
		return v;
	case blinkMax:
		return below ? b : a;
	default:
		return below ? a : b;
	}
}

/* What rank r must receive at position `at`. */
static union value
expected(const struct perf *p, int r, size_t at)
{
	size_t block = at / p->count, i = at % p->count, own = (size_t)r * p->count + i;
	union value v;
	if (at < p->n_known)
		return p->known[at];
	switch (p->info.collective) {
	case blinkBroadcast:
		return element(p, p->info.root, at);
	case blinkScatter:
		return element(p, p->info.root, own);
	case blinkGather:
	case blinkAllGather:
		return element(p, (int)block, i);
	case blinkAlltoAll:
		return element(p, (int)block, own);
	default:
		at = p->info.collective == blinkReduceScatter ? own : at;
		v = element(p, 0, at);
		for (int q = 1; q < p->info.nRanks; q++)
			v = combine(p, v, element(p, q, at));
		return v;
	}
}

static void
put(const struct type *type, char *to, union value v)
{
	int8_t i8 = (int8_t)v.u;
	int32_t i32 = (int32_t)v.u;
	float f32 = type->is_float ? (float)v.f : 0;
	if (type->is_float && type->bits == 32)
		memcpy(to, &f32, 4);
	else if (type->bits == 64)
		memcpy(to, &v, 8);
	else
		memcpy(to, type->bits == 8 ? (void *)&i8 : (void *)&i32, (size_t)type->bits / 8);
}

typedef union value (*maker)(const struct perf *p, int r, size_t at);

static int
fill(struct perf *p, int r, char *data, size_t n, maker make)
{
	char block[BLOCK * 8];
	for (size_t at = 0; at < n; at += BLOCK) {
		size_t m = n - at < BLOCK ? n - at : BLOCK;
		for (size_t i = 0; i < m; i++)
			put(p->type, block + i * p->size, make(p, r, at + i));
		blinkResult_t result = blinkCopyIn(p->comm, r, data + at * p->size, block, m * p->size);
		if (result)
			return comm_failed(p, result);
	}
	return 0;
}

/* Count what differs. */
static int
compare(struct perf *p, int r, const char *data, size_t n, maker make, int64_t *wrong)
{
	char block[BLOCK * 8], want[8];
	for (size_t at = 0; at < n; at += BLOCK) {
		size_t m = n - at < BLOCK ? n - at : BLOCK;
		blinkResult_t result = blinkCopyOut(p->comm, r, block, data + at * p->size, m * p->size);
		if (result)
			return comm_failed(p, result);
		for (size_t i = 0; i < m; i++) {
			put(p->type, want, make(p, r, at + i));
			*wrong += memcmp(want, block + i * p->size, p->size) != 0;
		}
	}
	return 0;
}

static int
set_bytes(struct perf *p, int r, char *data, size_t bytes, int byte)
{
	char block[BLOCK];
	memset(block, byte, sizeof block);
	for (size_t at = 0; at < bytes; at += sizeof block) {
		size_t m = bytes - at < sizeof block ? bytes - at : sizeof block;
		blinkResult_t result = blinkCopyIn(p->comm, r, data + at, block, m);
		if (result)
			return comm_failed(p, result);
	}
	return 0;
}

static int
check_guard(struct perf *p, int r, const char *data, int64_t *wrong)
{
	char block[GUARD];
	blinkResult_t result = blinkCopyOut(p->comm, r, block, data, sizeof block);
	if (result)
		return comm_failed(p, result);
	for (int i = 0; i < GUARD; i++)
		*wrong += (unsigned char)block[i] != GUARD_BYTE;
	return 0;
}

/* ---- One run ---- */

/* Buffers of rank r. In place, the smaller one is the rank's own block of the larger. */
static void
place(struct perf *p, int r, bool in_place, size_t *sent, size_t *received)
{
	*sent = send_blocks(p, r) * p->count;
	*received = recv_blocks(p, r) * p->count;
	char *send = *sent ? p->send[r].data : NULL, *recv = *received ? p->recv[r].data : NULL;
	size_t own = (size_t)r * p->count * p->size;
	if (in_place && *sent && *received) {
		if (*sent > *received)
			recv = send + own;
		else if (*sent < *received)
			send = recv + own;
		else
			send = recv;
	}
	/* One block may be all there is, of a gather too. */
	p->from[r] = send;
	p->to[r] = recv;
}

static int
prepare(struct perf *p, bool in_place)
{
	for (int r = 0; r < p->info.nRanks; r++) {
		size_t sent, received;
		place(p, r, in_place, &sent, &received);
		for (int side = 0; side < 2; side++) {
			char *data = side ? p->recv[r].data : p->send[r].data;
			size_t n = (side ? received : sent) * p->size;
			if (set_bytes(p, r, data - GUARD, GUARD, GUARD_BYTE) || set_bytes(p, r, data, n, POISON_BYTE) ||
			    set_bytes(p, r, data + n, GUARD, GUARD_BYTE))
				return 1;
		}
		if (sent && fill(p, r, (char *)p->from[r], sent, element))
			return 1;
	}
	return 0;
}

/* Of an allreduce each element is made from all ranks': once, not once for each of them. */
static void
know(struct perf *p)
{
	if (p->info.collective != blinkAllReduce || p->n_known)
		return;
	size_t n = p->count < KNOWN ? p->count : KNOWN;
	for (size_t at = 0; at < n; at++)
		p->known[at] = expected(p, 0, at);
	p->n_known = n;
}

static int
check(struct perf *p, bool in_place, int64_t *wrong)
{
	know(p);
	for (int r = 0; r < p->info.nRanks; r++) {
		size_t sent, received;
		place(p, r, in_place, &sent, &received);
		if (received && compare(p, r, p->to[r], received, expected, wrong))
			return 1;
		if (sent && !in_place && compare(p, r, p->from[r], sent, element, wrong))
			return 1;
		for (int side = 0; side < 2; side++) {
			const char *data = side ? p->recv[r].data : p->send[r].data;
			size_t n = (side ? received : sent) * p->size;
			if (check_guard(p, r, data - GUARD, wrong) || check_guard(p, r, data + n, wrong))
				return 1;
		}
	}
	return 0;
}

static blinkResult_t
run(struct perf *p)
{
	return blinkRun(p->comm, p->from, p->to, p->count, p->type->code, p->op ? p->op->code : blinkSum);
}

static double
seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Bandwidth on the bus of algorithm bandwidth 1, as nccl-tests define it (their PERFORMANCE.md). */
static double
bus_factor(const struct perf *p)
{
	double n = p->info.nRanks;
	switch (p->info.collective) {
	case blinkBroadcast:
	case blinkReduce:
		return 1;
	case blinkAllReduce:
		return 2 * (n - 1) / n;
	default:
		return (n - 1) / n;
	}
}

static int
measure(struct perf *p, bool in_place)
{
	if (prepare(p, in_place))
		return 1;
	for (int64_t i = 0; i < p->opt.warmup; i++) {
		blinkResult_t result = run(p);
		if (result)
			return comm_failed(p, result);
	}
	double start = seconds();
	for (int64_t i = 0; i < p->opt.iters; i++) {
		blinkResult_t result = run(p);
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
	int64_t wrong = 0;
	if (prepare(p, in_place))
		return 1;
	blinkResult_t result = run(p);
	if (result)
		return comm_failed(p, result);
	if (check(p, in_place, &wrong))
		return 1;
	printf("  %5" PRId64, wrong);
	p->n_wrong += wrong;
	return 0;
}

/* ---- The table ---- */

static int
row(struct perf *p, int64_t bytes)
{
	int64_t blocks = size_blocks(p);
	p->count = (size_t)(bytes / blocks / (int64_t)p->size);
	p->n_known = 0;
	printf("%12" PRId64 "  %12zu  %8s  %6s  %6d", (int64_t)(p->count * p->size) * blocks, p->count, p->type->name,
	    p->op ? p->op->name : "none", p->info.root);
	int failed = measure(p, false) || measure(p, true);
	printf("\n");
	fflush(stdout);
	return failed;
}

static int
table(struct perf *p)
{
	for (int t = 0; t < N_TYPES; t++) {
		p->type = &types[t];
		p->size = blinkTypeSize(p->type->code);
		bool named = strcmp(p->opt.type, types[t].name) == 0 || (types[t].also && strcmp(p->opt.type, types[t].also) == 0);
		if (!named && strcmp(p->opt.type, "all") != 0)
			continue;
		for (int o = 0; o < N_OPS; o++) {
			p->op = reduces(p) ? &ops[o] : NULL;
			if (!p->op ? o > 0 : strcmp(p->opt.op, "all") != 0 && strcmp(p->opt.op, p->op->name) != 0)
				continue;
			for (int64_t bytes = p->opt.min; bytes <= p->opt.max;) {
				if (row(p, bytes))
					return 1;
				int64_t next = p->opt.factor > 1 ? bytes * p->opt.factor : bytes + p->opt.step;
				bytes = next > bytes ? next : bytes + 1;
			}
		}
	}
	return 0;
}

static void
header(const struct perf *p)
{
	const blinkScheduleInfo_t *i = &p->info;
	printf("# blink-perf   %s\n# schedule     %s\n#              %s\n", blinkVersion(), p->path, i->digest);
	printf("# collective   %s over %d ranks", i->collectiveName, i->nRanks);
	if (i->root >= 0)
		printf(", root %d", i->root);
	if (p->opt.gpus)
		printf(", of GPUs %s", p->opt.gpus);
	printf("\n# algorithm    %s, %d tree%s, for %s\n# backend      %s%s\n", i->algorithm, i->nTrees, i->nTrees == 1 ? "" : "s",
	    i->topology, i->backend,
	    strcmp(i->backend, "host") == 0 ? " (emulated: times are of memory copies on this machine)" : "");
	if (p->opt.chunk)
		printf("# chunk        %" PRId64 " bytes\n", p->opt.chunk);
	else
		printf("# chunk        by segment: a sixteenth, 64 KiB to 4 MiB\n");
	printf("# iterations   %" PRId64 " after %" PRId64 " of warm-up, check %s\n#\n", p->opt.iters, p->opt.warmup,
	    p->opt.check ? "on" : "off");
	printf("#%56s%22s%37s\n", "", "out-of-place", "in-place");
	printf("#%11s  %12s  %8s  %6s  %6s  %9s  %7s  %7s  %5s  %9s  %7s  %7s  %5s\n", "size", "count", "type", "redop", "root",
	    "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
	printf("#%11s  %12s  %8s  %6s  %6s  %9s  %7s  %7s  %5s  %9s  %7s  %7s  %5s\n", "(B)", "(elements)", "", "", "", "(us)",
	    "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
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
	blinkConfig_t config = { (size_t)p->opt.chunk, (int)p->opt.threads };
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
	header(p);
	if (table(p))
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
