/* Buffers of a call, and a plain oracle of what is in them after it. */
#include "all_ranks/exec.h"
#include "api/schedule.h"
#include "blink_device.h"
#include "random_schedule.h"

#include <string.h>

enum { GUARD = 64, MOST_RANKS = 24 };

struct buffers {
	const struct blink_program *program;
	size_t count, size;
	int type, op;
	char *memory[2 * MOST_RANKS];	/* guard, send or receive buffer, guard */
	char *sent[MOST_RANKS];		/* what each rank sends */
	const void *send[MOST_RANKS];
	void *recv[MOST_RANKS];
	bool in_place[MOST_RANKS];
};

static size_t
bytes_of(const struct buffers *b, int r, bool recv)
{
	struct blink_layout l = blink_layout_of(b->program, r);
	return (size_t)(recv ? l.recv : l.send) * b->count * b->size;
}

/* f as an element of a floating-point type, the bits as one of an integer type. */
static void
put_element(const struct buffers *b, char *to, double f, uint64_t bits)
{
#define PUT_INTEGER(T, U, write) (T)bits
#define PUT_FLOAT(T, U, write) (T)write((U)f)
#define PUT(code, name, T, U, kind, read, write, unused)                       \
	if (b->type == code) {                                                 \
		T x = PUT_##kind(T, U, write);                                 \
		memcpy(to, &x, sizeof x);                                      \
	}
	BLINK_TYPE_LIST(PUT, 0)
#undef PUT
}

/* Element i of rank r, from random bits, for reductions that are exact in any order: whole numbers, for products powers
 * of two, and for averages a number of one rank. More than MAX_RANKS of either are too many for small types. */
static double
exact_number(const struct buffers *b, int r, size_t i, uint64_t bits)
{
	int most = b->op == blinkSum && b->size == 1 ? 1 : 15;
	if (b->op == blinkProd)
		return (bits & 1 ? -1 : 1) * (r >= MAX_RANKS ? 1 : bits & 2 ? 2 : bits & 4 ? 0.5 : 1);
	if (b->op == blinkSum && r >= MAX_RANKS)
		return 0;
	if (b->op == blinkAvg && i % (size_t)b->program->n_ranks != (size_t)r)
		return 0;
	return (int)(bits % (uint64_t)(2 * most + 1)) - most;
}

/* a = a op b, one element, written apart from the library's own reductions. */
static void
fold(const struct buffers *b, char *a, const char *with)
{
#define ONE(code, name, T, U, kind, read, write, unused)                       \
	if (b->type == code) {                                                 \
		T x, y;                                                        \
		memcpy(&x, a, sizeof x);                                       \
		memcpy(&y, with, sizeof y);                                    \
		if (b->op == blinkSum || b->op == blinkAvg)                    \
			x = (T)write((U)read(x) + (U)read(y));                 \
		else if (b->op == blinkProd)                                   \
			x = (T)write((U)read(x) * (U)read(y));                 \
		else if (b->op == blinkMax ? read(y) > read(x) : read(y) < read(x)) \
			x = y;                                                 \
		memcpy(a, &x, sizeof x);                                       \
	}
	BLINK_TYPE_LIST(ONE, 0)
#undef ONE
}

/* What an average makes of the sum. That of floats has one operand, so that it does not matter when. */
static void
divide(const struct buffers *b, char *sum)
{
	int n = b->program->n_ranks;
#define DIVIDE_INTEGER(T, U, read, write) (T)((__int128)x / n)
#define DIVIDE_FLOAT(T, U, read, write) (T)write((U)read(x) * ((U)1 / (U)n))
#define ONE(code, name, T, U, kind, read, write, unused)                       \
	if (b->type == code) {                                                 \
		T x;                                                           \
		memcpy(&x, sum, sizeof x);                                     \
		x = DIVIDE_##kind(T, U, read, write);                          \
		memcpy(sum, &x, sizeof x);                                     \
	}
	BLINK_TYPE_LIST(ONE, 0)
#undef ONE
}

static void
expect(const struct buffers *b, int r, size_t at, char *out)
{
	const struct blink_program *p = b->program;
	size_t block = at / b->count, i = at % b->count, own = (size_t)r * b->count + i;
	int from = p->root;
	switch (p->collective) {
	case blinkCollBroadcast:
		break;
	case blinkCollScatter:
		at = own;
		break;
	case blinkCollGather:
	case blinkCollAllGather:
		from = (int)block;
		at = i;
		break;
	case blinkCollAlltoAll:
		from = (int)block;
		at = own;
		break;
	default:
		from = 0;
		at = p->collective == blinkCollReduceScatter ? own : at;
		break;
	}
	memcpy(out, b->sent[from] + at * b->size, b->size);
	for (int q = 1; q < p->n_ranks && blink_reduces(p->collective); q++)
		fold(b, out, b->sent[q] + at * b->size);
	if (b->op == blinkAvg && blink_reduces(p->collective))
		divide(b, out);
}

static void
make_buffers(struct buffers *b, bool raw)
{
	for (int r = 0; r < b->program->n_ranks; r++) {
		struct blink_layout l = blink_layout_of(b->program, r);
		size_t sent = bytes_of(b, r, false), received = bytes_of(b, r, true), block = b->count * b->size;
		for (int side = 0; side < 2; side++) {
			size_t n = side ? received : sent;
			char *m = need(malloc(n + 2 * GUARD));
			memset(m, 0xa5, n + 2 * GUARD);
			b->memory[2 * r + side] = m;
		}
		b->sent[r] = need(malloc(sent + 1));
		for (size_t i = 0; i < sent; i += b->size) {
			uint64_t bits = random64();
			put_element(b, b->sent[r] + i, raw ? (double)(int64_t)bits / 0x1p62
							   : exact_number(b, r, i / b->size, bits), bits);
		}
		char *send = b->memory[2 * r] + GUARD, *recv = b->memory[2 * r + 1] + GUARD;
		if (b->in_place[r] && sent && received) {
			if (sent > received)
				recv = send + (size_t)l.own_send * block;
			else
				send = recv + (size_t)l.own_recv * block * (sent < received);
		}
		memcpy(send, b->sent[r], sent);
		b->send[r] = sent ? send : NULL;
		b->recv[r] = received ? recv : NULL;
	}
}

static bool
guards_hold(const struct buffers *b)
{
	for (int r = 0; r < b->program->n_ranks; r++) {
		for (int side = 0; side < 2; side++) {
			const unsigned char *m = (const unsigned char *)b->memory[2 * r + side];
			size_t n = bytes_of(b, r, side);
			for (int i = 0; i < GUARD; i++)
				if (m[i] != 0xa5 || m[GUARD + n + (size_t)i] != 0xa5)
					return false;
		}
		if (!b->in_place[r] && b->send[r] && memcmp(b->send[r], b->sent[r], bytes_of(b, r, false)) != 0)
			return false;
	}
	return true;
}

static bool
results_hold(const struct buffers *b)
{
	char want[8];
	for (int r = 0; r < b->program->n_ranks; r++) {
		const char *got = b->recv[r];
		for (size_t at = 0; at < bytes_of(b, r, true) / b->size; at++) {
			expect(b, r, at, want);
			if (memcmp(want, got + at * b->size, b->size) != 0)
				return false;
		}
	}
	return true;
}

static void
free_buffers(struct buffers *b)
{
	for (int r = 0; r < b->program->n_ranks; r++) {
		free(b->memory[2 * r]);
		free(b->memory[2 * r + 1]);
		free(b->sent[r]);
	}
}

/* A random call, and whether it does what it should. count: bytes of a block; below 0: any. */
static bool
try_call(blinkComm_t comm, const struct blink_program *program, int64_t count)
{
	static const size_t counts[] = { 0, 1, 2, 3, 5, 7, 13, 64, 97, 331, 1000 };
	struct buffers b = { .program = program, .count = counts[below(11)], .type = below(blinkFloat8e5m2 + 1),
		.op = below(blinkAvg + 1) };
	int place = below(3);
	b.size = blink_type_size(b.type);
	if (count >= 0)
		b.count = (size_t)count / b.size;
	for (int r = 0; r < program->n_ranks; r++)
		b.in_place[r] = place == 0 || (place == 1 && below(2));
	make_buffers(&b, false);
	blinkResult_t result = blinkRun(comm, b.send, b.recv, b.count, (blinkDataType_t)b.type, (blinkRedOp_t)b.op);
	bool good = result == blinkSuccess && results_hold(&b) && guards_hold(&b);
	if (!good)
		printf("# %s n %d count %zu type %d op %d place %d result %d %s\n",
		    collective_name((Collective)program->collective), program->n_ranks, b.count, b.type, b.op, place,
		    (int)result, blinkCommGetError(comm));
	free_buffers(&b);
	return good;
}
