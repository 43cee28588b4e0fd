/* The arithmetic of a switch that adds: of the values of all members, in the order of their numbers. What is documented
 * is the result of integers; sums of floating-point types are rounded once at least, and in which order is not said.
 * Here those below 32 bits are added in float, and rounded at the end. */
#include "virtual_gpu.h"

#include "blink_float.h"

#include <string.h>

enum type { U32, S32, U64, S64, F16X2, BF16X2, F32, F64 };
enum op { ADD, MIN, MAX };

static const struct instruction {
	const char *how;
	enum op op;
	enum type type;
	unsigned bytes;			/* of one, which is what an instruction loads unless it is of four (.v4) */
} instructions[] = {
	{ "add.u32", ADD, U32, 4 }, { "add.u64", ADD, U64, 8 }, { "add.f64", ADD, F64, 8 }, { "add.f32", ADD, F32, 4 },
	{ "add.acc::f32.f16x2", ADD, F16X2, 4 }, { "add.acc::f32.bf16x2", ADD, BF16X2, 4 },
	{ "min.u32", MIN, U32, 4 }, { "min.s32", MIN, S32, 4 }, { "min.u64", MIN, U64, 8 }, { "min.s64", MIN, S64, 8 },
	{ "max.u32", MAX, U32, 4 }, { "max.s32", MAX, S32, 4 }, { "max.u64", MAX, U64, 8 }, { "max.s64", MAX, S64, 8 },
};

#define REDUCE(T)                                                              \
	do {                                                                   \
		T all, one;                                                    \
		memcpy(&all, value[0] + at, sizeof all);                       \
		for (int i = 1; i < n; i++) {                                  \
			memcpy(&one, value[i] + at, sizeof one);               \
			if (in->op == ADD)                                     \
				all += one;                                    \
			else if (in->op == MIN ? one < all : one > all)        \
				all = one;                                     \
		}                                                              \
		memcpy(to + at, &all, sizeof all);                             \
	} while (0)

static void
add_short(enum type type, char *const value[], int n, unsigned at, char *to)
{
	uint16_t x;
	float all = 0;
	for (int i = 0; i < n; i++) {
		memcpy(&x, value[i] + at, sizeof x);
		all += type == F16X2 ? blink_float_of_float16(x) : blink_float_of_bfloat16(x);
	}
	x = (uint16_t)(type == F16X2 ? blink_float16_of_float(all) : blink_bfloat16_of_float(all));
	memcpy(to + at, &x, sizeof x);
}

static void
reduce_at(const struct instruction *in, char *const value[], int n, unsigned at, char *to)
{
	switch (in->type) {
	case U32: REDUCE(uint32_t); break;
	case S32: REDUCE(int32_t); break;
	case U64: REDUCE(uint64_t); break;
	case S64: REDUCE(int64_t); break;
	case F32: REDUCE(float); break;
	case F64: REDUCE(double); break;
	default:
		add_short(in->type, value, n, at, to);
		add_short(in->type, value, n, at + 2, to);
	}
}

bool
switch_reduce(const char *how, char *const value[], int n, unsigned bytes, char *to)
{
	const struct instruction *in = instructions, *end = in + sizeof instructions / sizeof *in;
	while (in < end && strcmp(in->how, how) != 0)
		in++;
	/* Vectors are of floating-point types alone. */
	if (in == end || n == 0 || (bytes != in->bytes && (bytes != 16 || in->type < F16X2 || in->type == F64)))
		return false;
	for (unsigned at = 0; at < bytes; at += in->bytes)
		reduce_at(in, value, n, at, to);
	return true;
}
