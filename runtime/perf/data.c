/* Buffers, what ranks send, what they must receive.
 *
 * Values are chosen so that a reduction has the same result in any order: integers of any bits, since they wrap; small
 * whole floats for sums; powers of two for products. Each depends on its rank and position, so misplaced data is
 * noticed. Where a type is too narrow for what all ranks could add up to, only some of them, others at each position,
 * send more than 0 or 1; for an average of floats, one. */
#include "perf/perf.h"
#include "base/hash.h"
#include "blink_float.h"

#include <limits.h>
#include <string.h>

enum { GUARD_BYTE = 0xa5, POISON_BYTE = 0xee };	/* around buffers, and in buffers before data arrives */
enum { BLOCK = 4096 };				/* elements written and compared at a time */

int
comm_failed(struct perf *p, blinkResult_t result)
{
	const char *text = blinkCommGetError(p->comm);
	if (!*text)
		text = blinkGetErrorString(result);
	return p->code = p->job ? complain((int)result, "rank %d: %s", p->first, text)
	    : complain((int)result, "%s: %s", p->path, text);
}

/* ---- sizes ---- */

bool
reduces(const struct perf *p)
{
	return p->info.collective == blinkCollReduce || p->info.collective == blinkCollAllReduce ||
	    p->info.collective == blinkCollReduceScatter;
}

size_t
send_blocks(const struct perf *p, int r)
{
	switch (p->info.collective) {
	case blinkCollBroadcast:
		return r == p->info.root;
	case blinkCollScatter:
		return r == p->info.root ? (size_t)p->info.nRanks : 0;
	case blinkCollReduceScatter:
	case blinkCollAlltoAll:
		return (size_t)p->info.nRanks;
	default:
		return 1;
	}
}

size_t
recv_blocks(const struct perf *p, int r)
{
	switch (p->info.collective) {
	case blinkCollReduce:
		return r == p->info.root;
	case blinkCollGather:
		return r == p->info.root ? (size_t)p->info.nRanks : 0;
	case blinkCollAllGather:
	case blinkCollAlltoAll:
		return (size_t)p->info.nRanks;
	default:
		return 1;
	}
}

int64_t
size_blocks(const struct perf *p)
{
	switch (p->info.collective) {
	case blinkCollBroadcast:
	case blinkCollReduce:
	case blinkCollAllReduce:
		return 1;
	default:
		return p->info.nRanks;
	}
}

/* ---- values ---- */

static uint64_t
extend(const struct type *type, uint64_t u)
{
	if (type->bits == 64)
		return u;
	uint64_t mask = (UINT64_C(1) << type->bits) - 1, sign = type->is_signed ? UINT64_C(1) << (type->bits - 1) : 0;
	return ((u & mask) ^ sign) - sign;
}

/* Whether rank r is one of `most` that change the result at this position. */
static bool
counts(const struct perf *p, int r, size_t at, int most)
{
	int every = (p->info.nRanks + most - 1) / most;
	return ((size_t)r + at) % (size_t)every == 0;
}

/* What rank r sends at position `at`: a float. */
static double
number(const struct perf *p, int r, size_t at, uint64_t hash)
{
	int top = p->type->whole < 5 ? 1 : 15;
	double scale = hash % 3 == 0 ? 0.5 : hash % 3 == 1 ? 1 : 2;
	switch (p->op ? (int)p->op->code : -1) {
	case blinkSum:
		top = counts(p, r, at, p->type->whole < 31 ? (1 << p->type->whole) / top : INT_MAX / 2) ? top : 0;
		return (double)(int)(hash % (uint64_t)(2 * top + 1)) - top;
	case blinkAvg:
		return counts(p, r, at, 1) ? (double)(int)(hash % 31) - 15 : 0;
	case blinkProd:
		return (counts(p, r, at, p->type->power) ? scale : 1) * (hash & 1024 ? -1 : 1);
	default:
		return p->type->bits < 32 ? (double)(int)(hash % 241) - 120 : (double)(int64_t)(hash >> 40) - (1 << 23);
	}
}

/* The value of the type nearest to f, as a call has it. */
static double
rounded(const struct type *type, double f)
{
	switch (type->code) {
	case blinkFloat16:
		return blink_float_of_float16(blink_float16_of_float((float)f));
	case blinkBfloat16:
		return blink_float_of_bfloat16(blink_bfloat16_of_float((float)f));
	case blinkFloat8e4m3:
		return blink_float_of_e4m3(blink_e4m3_of_float((float)f));
	case blinkFloat8e5m2:
		return blink_float_of_e5m2(blink_e5m2_of_float((float)f));
	case blinkFloat32:
		return (float)f;
	default:
		return f;
	}
}

/* What rank r sends at position `at`. */
static union value
element(const struct perf *p, int r, size_t at)
{
	uint64_t hash = hash64(hash64((uint64_t)r + 1) ^ at);
	union value v;
	if (p->type->is_float)
		v.f = rounded(p->type, number(p, r, at, hash));
	else
		v.u = extend(p->type, hash);
	return v;
}

static union value
combine(const struct perf *p, union value a, union value b)
{
	bool below = p->type->is_float ? a.f < b.f : p->type->is_signed ? (int64_t)a.u < (int64_t)b.u : a.u < b.u;
	union value v;
	switch (p->op->code) {
	case blinkSum:
	case blinkAvg:
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

/* What an average makes of the sum of all ranks. */
static union value
average(const struct perf *p, union value sum)
{
	uint64_t n = (uint64_t)p->info.nRanks;
	union value v;
	if (p->type->code == blinkFloat64)
		v.f = sum.f * (1.0 / (double)n);
	else if (p->type->is_float)
		v.f = rounded(p->type, (float)sum.f * (1.0f / (float)n));
	else if (p->type->is_signed && (int64_t)sum.u < 0)
		v.u = 0 - (0 - sum.u) / n;
	else
		v.u = sum.u / n;
	return v;
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
	case blinkCollBroadcast:
		return element(p, p->info.root, at);
	case blinkCollScatter:
		return element(p, p->info.root, own);
	case blinkCollGather:
	case blinkCollAllGather:
		return element(p, (int)block, i);
	case blinkCollAlltoAll:
		return element(p, (int)block, own);
	default:
		at = p->info.collective == blinkCollReduceScatter ? own : at;
		v = element(p, 0, at);
		for (int q = 1; q < p->info.nRanks; q++)
			v = combine(p, v, element(p, q, at));
		return p->op->code == blinkAvg ? average(p, v) : v;
	}
}

static void
put(const struct type *type, char *to, union value v)
{
	float f = type->is_float ? (float)v.f : 0;
	uint64_t bits = v.u;
	if (type->code == blinkFloat16)
		bits = blink_float16_of_float(f);
	else if (type->code == blinkBfloat16)
		bits = blink_bfloat16_of_float(f);
	else if (type->code == blinkFloat8e4m3)
		bits = blink_e4m3_of_float(f);
	else if (type->code == blinkFloat8e5m2)
		bits = blink_e5m2_of_float(f);
	else if (type->code == blinkFloat32)
		bits = blink_bits_of_float(f);
	memcpy(to, &bits, (size_t)type->bits / 8);	/* little-endian, as everywhere that CUDA runs */
}

/* ---- buffers ---- */

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

/* Count the elements that differ. */
static int
compare(struct perf *p, int r, const char *data, size_t n, maker make, int64_t *n_wrong)
{
	char block[BLOCK * 8], want[8];
	for (size_t at = 0; at < n; at += BLOCK) {
		size_t m = n - at < BLOCK ? n - at : BLOCK;
		blinkResult_t result = blinkCopyOut(p->comm, r, block, data + at * p->size, m * p->size);
		if (result)
			return comm_failed(p, result);
		for (size_t i = 0; i < m; i++) {
			put(p->type, want, make(p, r, at + i));
			*n_wrong += memcmp(want, block + i * p->size, p->size) != 0;
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
check_guard(struct perf *p, int r, const char *data, int64_t *n_wrong)
{
	char block[GUARD];
	blinkResult_t result = blinkCopyOut(p->comm, r, block, data, sizeof block);
	if (result)
		return comm_failed(p, result);
	for (int i = 0; i < GUARD; i++)
		*n_wrong += (unsigned char)block[i] != GUARD_BYTE;
	return 0;
}

/* Buffers of rank r. In place, the smaller one is the rank's own block of the larger. */
static void
place_buffers(struct perf *p, int r, bool in_place, size_t *sent, size_t *received)
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
	p->from[r] = send;
	p->to[r] = recv;
}

int
data_prepare(struct perf *p, bool in_place)
{
	for (int r = p->first; r < p->end; r++) {
		size_t sent, received;
		place_buffers(p, r, in_place, &sent, &received);
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

/* Every rank receives the same elements of an allreduce: compute the first ones once, not once for each rank. */
static void
compute_known(struct perf *p)
{
	if (p->info.collective != blinkCollAllReduce || p->n_known)
		return;
	size_t n = p->count < KNOWN ? p->count : KNOWN;
	for (size_t at = 0; at < n; at++)
		p->known[at] = expected(p, 0, at);
	p->n_known = n;
}

int
data_check(struct perf *p, bool in_place, int64_t *n_wrong)
{
	compute_known(p);
	for (int r = p->first; r < p->end; r++) {
		size_t sent, received;
		place_buffers(p, r, in_place, &sent, &received);
		if (received && compare(p, r, p->to[r], received, expected, n_wrong))
			return 1;
		if (sent && !in_place && compare(p, r, p->from[r], sent, element, n_wrong))
			return 1;
		for (int side = 0; side < 2; side++) {
			const char *data = side ? p->recv[r].data : p->send[r].data;
			size_t n = (side ? received : sent) * p->size;
			if (check_guard(p, r, data - GUARD, n_wrong) || check_guard(p, r, data + n, n_wrong))
				return 1;
		}
	}
	return 0;
}
