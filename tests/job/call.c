/* Element i of what rank r sends is a function of the call's seed, r and i. So any rank can say, element by element,
 * what it should receive: the element of the rank that it comes from, or a fold over those of all ranks. Integers are
 * folded in 64 bits, floating-point values in double, with a bound of the error where steps round. */
#include "call.h"
#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, BLANK = 0xa5, LOOKED_AT = 8192, SCALAR = 8 };

/* Number formats: of integers neither exponent nor fraction. */
static const struct form {
	const char *name;
	int size;
	bool is_signed;
	int exponent, fraction;		/* bits */
	bool finite;			/* no infinities: the highest exponent is of numbers, too */
} forms[CALL_TYPES] = {
	{ "int8", 1, true, 0, 0, false }, { "uint8", 1, false, 0, 0, false },
	{ "int32", 4, true, 0, 0, false }, { "uint32", 4, false, 0, 0, false },
	{ "int64", 8, true, 0, 0, false }, { "uint64", 8, false, 0, 0, false },
	{ "float16", 2, true, 5, 10, false }, { "float32", 4, true, 8, 23, false },
	{ "float64", 8, true, 11, 52, false }, { "bfloat16", 2, true, 8, 7, false },
	{ "float8e4m3", 1, true, 4, 3, true }, { "float8e5m2", 1, true, 5, 2, false },
};

static const char *const op_names[CALL_OPS] = { "sum", "prod", "max", "min", "avg", "premulsum" };
static const char *const coll_names[CALL_COLLECTIVES] = { "broadcast", "reduce", "allreduce", "gather", "scatter",
	"allgather", "reducescatter", "alltoall" };

bool
call_reduces(blinkCollective_t coll)
{
	return coll == blinkCollReduce || coll == blinkCollAllReduce || coll == blinkCollReduceScatter;
}

bool
call_has_root(blinkCollective_t coll)
{
	return coll == blinkCollBroadcast || coll == blinkCollReduce || coll == blinkCollGather
	    || coll == blinkCollScatter;
}

const char *
call_name(blinkCollective_t coll)
{
	return coll_names[coll];
}

const char *
call_text(const struct call *c, char text[160])
{
	static const char *const fills[] = { "exact", "rounded", "bits" };
	snprintf(text, 160, "%s of %zu %s%s%s root %d %s%s shift %d seed %llx", coll_names[c->coll], c->count,
	    forms[c->type].name, call_reduces(c->coll) ? " " : "", call_reduces(c->coll) ? op_names[c->op] : "",
	    c->root, fills[c->fill], c->in_place ? " in place" : "", c->shift, (unsigned long long)c->seed);
	return text;
}

void
call_kind(const struct call *c, char text[80])
{
	snprintf(text, 80, "%s %s%s%s", coll_names[c->coll], forms[c->type].name, call_reduces(c->coll) ? " " : "",
	    call_reduces(c->coll) ? op_names[c->op] : "");
}

/* ---- which calls ---- */

int
call_combinations(void)
{
	return CALL_TYPES * (3 * CALL_OPS + (CALL_COLLECTIVES - 3));
}

void
call_combination(int i, struct call *c)
{
	c->type = (blinkDataType_t)(i % CALL_TYPES);
	i /= CALL_TYPES;
	for (int coll = 0; coll < CALL_COLLECTIVES; coll++) {
		int ops = call_reduces((blinkCollective_t)coll) ? CALL_OPS : 1;
		c->coll = (blinkCollective_t)coll;
		c->op = i;
		if (i < ops)
			return;
		i -= ops;
	}
}

void
call_random(struct call *c, int n, size_t most, uint64_t *state)
{
	static const size_t counts[] = { 0, 1, 2, 3, 5, 7, 13, 64, 97, 331, 1000, 1023, 1025, 4099, 10007, 40001,
	    131072 };
	bool adds = c->op != blinkMax && c->op != blinkMin;
	do {
		c->count = counts[next_random(state) % (sizeof counts / sizeof *counts)];
	} while (c->count > most);
	c->root = (int)(next_random(state) % (uint64_t)n);
	c->in_place = next_random(state) % 2;
	c->shift = (int)(next_random(state) % 4);
	c->seed = next_random(state);
	c->fill = call_reduces(c->coll) && adds ? (enum fill)(next_random(state) % 2) : FILL_BITS;
}

/* ---- numbers ---- */

static double
decode(int type, const void *from)
{
	const struct form *f = &forms[type];
	uint64_t bits = 0;
	double f64;
	float f32;
	memcpy(&bits, from, (size_t)f->size);
	memcpy(&f64, &bits, sizeof f64);
	memcpy(&f32, &bits, sizeof f32);
	if (type == blinkFloat64)
		return f64;
	if (type == blinkFloat32)
		return f32;
	int top = (1 << f->exponent) - 1, bias = top / 2, all = (1 << f->fraction) - 1;
	int exponent = (int)(bits >> f->fraction) & top, fraction = (int)bits & all;
	double sign = bits >> (8 * f->size - 1) ? -1 : 1;
	if (exponent == top && (!f->finite || fraction == all))
		return f->finite || fraction ? NAN : sign * INFINITY;
	if (exponent == 0)
		return sign * ldexp(fraction, 1 - bias - f->fraction);
	return sign * ldexp((1 << f->fraction) + fraction, exponent - bias - f->fraction);
}

/* A value that the type has, above its subnormal numbers. */
static void
encode(int type, double value, void *to)
{
	const struct form *f = &forms[type];
	float f32 = (float)value;
	uint64_t bits = 0;
	int exponent;
	if (type == blinkFloat64) {
		memcpy(to, &value, sizeof value);
	} else if (type == blinkFloat32) {
		memcpy(to, &f32, sizeof f32);
	} else {
		double fraction = 2 * frexp(fabs(value), &exponent);	/* 1 <= fraction < 2 */
		int bias = ((1 << f->exponent) - 1) / 2;
		if (value != 0)
			bits = (uint64_t)(exponent - 1 + bias) << f->fraction |
			    (uint64_t)ldexp(fraction - 1, f->fraction);
		bits |= (uint64_t)(value < 0) << (8 * f->size - 1);
		memcpy(to, &bits, (size_t)f->size);
	}
}

/* ---- what ranks send ---- */

/* Of 1/2 <= |value| < 2, with as many digits as the type has. */
static double
many_digits(int type, uint64_t h)
{
	int digits = forms[type].fraction;
	double fraction = ldexp((double)(h >> 12 & ((UINT64_C(1) << digits) - 1)), -digits);
	return (h & 1 ? -1 : 1) * (h & 2 ? 0.5 : 1) * (1 + fraction);
}

/* A reduction's value of a floating-point type. Of types with few digits few ranks have values other than 0, or 1 in
 * products: sums stay below 16 and products within the type's range. */
static double
value_of(const struct call *c, int n, int rank, uint64_t index, uint64_t h)
{
	bool narrow = forms[c->type].size == 1, prod = c->op == blinkProd;
	bool takes_part = ((uint64_t)rank + index) % (uint64_t)n < (narrow ? 4u : prod ? 8u : (uint64_t)n);
	if (!takes_part)
		return prod ? (h & 1 ? -1 : 1) : 0;
	if (c->fill == FILL_ROUNDED)
		return many_digits(c->type, h);
	if (prod)
		return (h & 1 ? -1 : 1) * (h & 2 ? 2 : h & 4 ? 0.5 : 1);
	return narrow ? (double)((int)(h % 3) - 1) : (double)((int)(h % 15) - 7);
}

static void
put_element(const struct call *c, int n, int rank, uint64_t index, void *to)
{
	uint64_t h = mixed(c->seed, (uint64_t)rank, index);
	if (forms[c->type].exponent && call_reduces(c->coll) && c->fill != FILL_BITS)
		encode(c->type, value_of(c, n, rank, index, h), to);
	else
		memcpy(to, &h, (size_t)forms[c->type].size);	/* little-endian */
}

/* The scalar of a rank for CALL_PRE_MUL_SUM, in the type. */
static void
put_scalar(const struct call *c, int rank, void *to)
{
	static const double exact[] = { 1, -1, 2 }, rounded[] = { 0.5, 0.75, 1, 1.25, 1.5 };
	int64_t whole = rank % 7 - 3;
	if (forms[c->type].exponent)
		encode(c->type, c->fill == FILL_EXACT ? exact[rank % 3] : rounded[rank % 5], to);
	else
		memcpy(to, &whole, (size_t)forms[c->type].size);
}

/* ---- what they should receive ---- */

static uint64_t
load_integer(const struct form *f, const void *from)
{
	uint64_t bits = 0;
	int unused = 64 - 8 * f->size;
	memcpy(&bits, from, (size_t)f->size);
	return f->is_signed ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

static bool
integer_less(const struct form *f, uint64_t a, uint64_t b)
{
	return f->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static bool
integer_right(const struct call *c, int n, uint64_t index, const void *got)
{
	const struct form *f = &forms[c->type];
	char element[8];
	uint64_t all = 0;
	for (int r = 0; r < n; r++) {
		put_element(c, n, r, index, element);
		uint64_t x = load_integer(f, element);
		if (c->op == CALL_PRE_MUL_SUM) {
			put_scalar(c, r, element);
			x *= load_integer(f, element);
		}
		if (r == 0)
			all = x;
		else if (c->op == blinkProd)
			all *= x;
		else if (c->op == blinkMax || c->op == blinkMin)
			all = integer_less(f, all, x) == (c->op == blinkMax) ? x : all;
		else
			all += x;
	}
	all = load_integer(f, &all);
	if (c->op == blinkAvg)
		all = f->is_signed ? (uint64_t)((int64_t)all / n) : all / (uint64_t)n;
	return memcmp(&all, got, (size_t)f->size) == 0;
}

static double
term(const struct call *c, int n, int rank, uint64_t index)
{
	char element[8], scalar[8];
	put_element(c, n, rank, index, element);
	double x = decode(c->type, element);
	if (c->op == CALL_PRE_MUL_SUM) {
		put_scalar(c, rank, scalar);
		x *= decode(c->type, scalar);
	}
	return c->op == blinkAvg ? x / n : x;
}

static double
fold(int op, double all, double x)
{
	if (op == blinkProd)
		return all * x;
	if (op == blinkMax || op == blinkMin)
		return isnan(all) || isnan(x) ? NAN : (x > all) == (op == blinkMax) ? x : all;
	return all + x;
}

static bool
float_right(const struct call *c, int n, uint64_t index, const void *element)
{
	const struct form *f = &forms[c->type];
	double all = 0, size = 0, got = decode(c->type, element), allowed = 0;
	for (int r = 0; r < n; r++) {
		double x = term(c, n, r, index);
		all = r ? fold(c->op, all, x) : x;
		size += fabs(x);
	}
	if (isnan(all) || isnan(got))
		return isnan(all) && isnan(got);
	if (got == all)
		return true;
	if (c->fill == FILL_ROUNDED || (c->op == blinkAvg && (n & (n - 1))))
		allowed = ldexp(c->op == blinkProd ? fabs(all) : size, -f->fraction) * (n + 1)
		    + ldexp(n, 2 - (1 << (f->exponent - 1)) - f->fraction);
	return fabs(got - all) <= allowed;
}

/* Element `at` of what the rank receives. */
static bool
element_right(const struct call *c, int n, int rank, uint64_t at, const void *got)
{
	uint64_t block = c->count ? at / c->count : 0, i = c->count ? at % c->count : 0;
	uint64_t own = (uint64_t)rank * c->count + i;
	int from = c->root;
	char want[8];
	if (call_reduces(c->coll)) {
		at = c->coll == blinkCollReduceScatter ? own : at;
		return forms[c->type].exponent ? float_right(c, n, at, got) : integer_right(c, n, at, got);
	}
	if (c->coll == blinkCollGather || c->coll == blinkCollAllGather || c->coll == blinkCollAlltoAll)
		from = (int)block;
	if (c->coll == blinkCollGather || c->coll == blinkCollAllGather)
		at = i;
	else if (c->coll == blinkCollScatter || c->coll == blinkCollAlltoAll)
		at = own;
	put_element(c, n, from, at, want);
	return memcmp(want, got, (size_t)forms[c->type].size) == 0;
}

/* ---- buffers ---- */

/* In elements, as blink.h's table has it. */
static void
extents(const struct call *c, int n, int rank, size_t *send, size_t *recv)
{
	bool root = rank == c->root, all = !call_has_root(c->coll);
	size_t one = c->count, many = (size_t)n * c->count;
	bool wide_send = c->coll == blinkCollScatter || c->coll == blinkCollReduceScatter
	    || c->coll == blinkCollAlltoAll;
	bool wide_recv = c->coll == blinkCollGather || c->coll == blinkCollAllGather || c->coll == blinkCollAlltoAll;
	bool one_sends = c->coll == blinkCollBroadcast || c->coll == blinkCollScatter;
	*send = all || !one_sends || root ? (wide_send ? many : one) : 0;
	*recv = all || one_sends || root ? (wide_recv ? many : one) : 0;
}

static size_t
room(size_t bytes)
{
	return (bytes + 2 * GUARD + 64 + 63) / 64 * 64;	/* and a shift of less than 64 bytes */
}

size_t
call_need(const struct call *c, int n, int rank)
{
	size_t send, recv, size = (size_t)forms[c->type].size;
	extents(c, n, rank, &send, &recv);
	return room(send * size) + room(recv * size);
}

void
call_place(const struct call *c, int n, int rank, char *memory, struct buffers *b)
{
	size_t size = (size_t)forms[c->type].size, shift = (size_t)c->shift * size;
	*b = (struct buffers){ .memory = memory, .bytes = call_need(c, n, rank), .size = size };
	extents(c, n, rank, &b->n_send, &b->n_recv);
	memset(memory, BLANK, b->bytes);
	char *send = memory + GUARD + shift, *recv = memory + room(b->n_send * size) + GUARD + shift;
	if (c->in_place && b->n_send && b->n_recv) {
		size_t own = (size_t)rank * c->count * size;
		if (b->n_send > b->n_recv)
			recv = send + own;
		else
			send = recv + (b->n_send < b->n_recv ? own : 0);
	}
	for (size_t i = 0; i < b->n_send; i++)
		put_element(c, n, rank, i, send + i * size);
	put_scalar(c, rank, memory + b->bytes - SCALAR);
	/* What is not used may be anything. */
	b->send = b->n_send ? send : c->seed & 1 ? NULL : (void *)16;
	b->recv = b->n_recv ? recv : c->seed & 1 ? NULL : (void *)16;
}

/* Bytes of the memory outside what is received, which must be blank, but for what is sent and a scalar at the end. */
static bool
surroundings_right(const struct call *c, int n, int rank, const struct buffers *b, char why[256])
{
	const char *recv = b->n_recv ? b->recv : NULL, *send = b->n_send ? b->send : NULL;
	char want[8];
	size_t sent = b->n_send * b->size, received = b->n_recv * b->size;
	for (const char *at = b->memory; at < b->memory + b->bytes - SCALAR; at++) {
		if (recv && at == recv && received) {
			at += received - 1;
			continue;
		}
		if (send && at == send && sent && !(recv && recv >= send && recv < send + sent)) {
			at += sent - 1;
			continue;
		}
		bool in_send = send && at >= send && at < send + sent;
		if (!in_send && (unsigned char)*at != BLANK) {
			snprintf(why, 256, "byte %td of %zu outside the buffers was written", at - b->memory, b->bytes);
			return false;
		}
	}
	bool apart = !recv || recv + received <= send || send + sent <= recv;
	size_t step = b->n_send / LOOKED_AT + 1;
	for (size_t i = 0; send && apart && i < b->n_send; i += step) {
		put_element(c, n, rank, i, want);
		if (memcmp(want, send + i * b->size, b->size) != 0) {
			snprintf(why, 256, "element %zu of the send buffer was changed", i);
			return false;
		}
	}
	return true;
}

bool
call_right(const struct call *c, int n, int rank, const struct buffers *b, char why[256])
{
	const char *recv = b->recv;
	uint64_t step = b->n_recv / LOOKED_AT + 1;
	for (uint64_t i = 0; i < b->n_recv; i += i + 64 > b->n_recv || i < 64 ? 1 : step) {
		if (!element_right(c, n, rank, i, recv + i * b->size)) {
			uint64_t bits = 0;
			memcpy(&bits, recv + i * b->size, b->size);
			snprintf(why, 256, "element %llu of %zu is wrong: 0x%llx", (unsigned long long)i, b->n_recv,
			    (unsigned long long)bits);
			return false;
		}
	}
	return surroundings_right(c, n, rank, b, why);
}

uint64_t
call_digest(const struct call *c, const struct buffers *b)
{
	bool values = forms[c->type].exponent && call_reduces(c->coll);
	uint64_t digest = 1;
	for (size_t i = 0; i < b->n_recv; i++) {
		const char *at = (const char *)b->recv + i * b->size;
		uint64_t bits = 0;
		memcpy(&bits, at, b->size);
		digest = mixed(digest, values && isnan(decode(c->type, at)) ? UINT64_MAX : bits, i);
	}
	return digest;
}

/* ---- the call ---- */

/* A buffer where the call takes it; what has no elements stays as it is. */
static void *
placed(const struct buffers *b, void *buffer, size_t n)
{
	return b->device && n ? b->device + ((char *)buffer - b->memory) : buffer;
}

static blinkResult_t
start_as(const struct call *c, const struct buffers *b, blinkComm_t comm, blinkRedOp_t op)
{
	void *send = placed(b, b->send, b->n_send), *recv = placed(b, b->recv, b->n_recv);
	switch (c->coll) {
	case blinkCollBroadcast:
		return blinkBroadcast(send, recv, c->count, c->type, c->root, comm, b->stream);
	case blinkCollReduce:
		return blinkReduce(send, recv, c->count, c->type, op, c->root, comm, b->stream);
	case blinkCollAllReduce:
		return blinkAllReduce(send, recv, c->count, c->type, op, comm, b->stream);
	case blinkCollGather:
		return blinkGather(send, recv, c->count, c->type, c->root, comm, b->stream);
	case blinkCollScatter:
		return blinkScatter(send, recv, c->count, c->type, c->root, comm, b->stream);
	case blinkCollAllGather:
		return blinkAllGather(send, recv, c->count, c->type, comm, b->stream);
	case blinkCollReduceScatter:
		return blinkReduceScatter(send, recv, c->count, c->type, op, comm, b->stream);
	default:
		return blinkAlltoAll(send, recv, c->count, c->type, comm, b->stream);
	}
}

blinkResult_t
call_fetch(int rank, const struct buffers *b, blinkComm_t comm)
{
	return b->device ? blinkCopyOut(comm, rank, b->memory, b->device, b->bytes) : blinkSuccess;
}

/* With a scalar that is read now; or, of every other rank, one at the end of its buffers, where it is put when the
 * operation is there. */
static blinkResult_t
make_operation(const struct call *c, int rank, const struct buffers *b, blinkComm_t comm, blinkRedOp_t *op)
{
	char scalar[SCALAR], *at = b->memory + b->bytes - SCALAR;
	blinkResult_t result;
	put_scalar(c, rank, scalar);
	if ((c->seed >> 1 ^ (uint64_t)rank) & 1)
		return blinkRedOpCreatePreMulSum(op, scalar, c->type, comm);
	memset(at, BLANK, SCALAR);
	result = blinkRedOpCreatePreMulSumDevice(op, b->device ? b->device + (at - b->memory) : at, c->type, comm);
	memcpy(at, scalar, SCALAR);
	return result;
}

blinkResult_t
call_start(const struct call *c, int rank, const struct buffers *b, blinkComm_t comm)
{
	bool scaled = call_reduces(c->coll) && c->op == CALL_PRE_MUL_SUM;
	blinkRedOp_t op = (blinkRedOp_t)c->op;
	blinkResult_t result = scaled ? make_operation(c, rank, b, comm, &op) : blinkSuccess;
	if (result == blinkSuccess && b->device)
		result = blinkCopyIn(comm, rank, b->device, b->memory, b->bytes);
	if (result != blinkSuccess)
		return result;
	result = start_as(c, b, comm, op);
	if (!scaled)
		return result;
	blinkResult_t destroyed = blinkRedOpDestroy(op, comm);
	return result != blinkSuccess ? result : destroyed;
}
