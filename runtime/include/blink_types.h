/* The types of elements and the operations on them, on the host and in kernels. C11 and C++17. Not for other callers:
 * blink.h is the interface. */
#ifndef BLINK_TYPES_H
#define BLINK_TYPES_H

#include "blink_float.h"

/* type, its name; T, the C type that holds it; U, the type to compute in: unsigned, so that overflow wraps, or
 * floating; INTEGER or FLOAT; from T to a number, and back from U */
#define BLINK_TYPE_LIST(X, with)                                               \
	X(blinkInt8, int8, int8_t, uint32_t, INTEGER, BLINK_AS_IS, BLINK_AS_IS, with)        \
	X(blinkUint8, uint8, uint8_t, uint32_t, INTEGER, BLINK_AS_IS, BLINK_AS_IS, with)     \
	X(blinkInt32, int32, int32_t, uint32_t, INTEGER, BLINK_AS_IS, BLINK_AS_IS, with)     \
	X(blinkUint32, uint32, uint32_t, uint32_t, INTEGER, BLINK_AS_IS, BLINK_AS_IS, with)  \
	X(blinkInt64, int64, int64_t, uint64_t, INTEGER, BLINK_AS_IS, BLINK_AS_IS, with)     \
	X(blinkUint64, uint64, uint64_t, uint64_t, INTEGER, BLINK_AS_IS, BLINK_AS_IS, with)  \
	X(blinkFloat16, float16, uint16_t, float, FLOAT, blink_float_of_float16, blink_float16_of_float, with) \
	X(blinkFloat32, float32, float, float, FLOAT, BLINK_AS_IS, BLINK_AS_IS, with)        \
	X(blinkFloat64, float64, double, double, FLOAT, BLINK_AS_IS, BLINK_AS_IS, with)      \
	X(blinkBfloat16, bfloat16, uint16_t, float, FLOAT, blink_float_of_bfloat16, blink_bfloat16_of_float, with) \
	X(blinkFloat8e4m3, float8e4m3, uint8_t, float, FLOAT, blink_float_of_e4m3, blink_e4m3_of_float, with) \
	X(blinkFloat8e5m2, float8e5m2, uint8_t, float, FLOAT, blink_float_of_e5m2, blink_e5m2_of_float, with)
#define BLINK_AS_IS(a) (a)

/* The values of the operations. A NaN operand is the result of min and max, the first if both are. */
#define BLINK_SUM(T, U, kind, read, write, a, b) ((T)write((U)read(a) + (U)read(b)))
#define BLINK_PROD(T, U, kind, read, write, a, b) ((T)write((U)read(a) * (U)read(b)))
#define BLINK_MAX(T, U, kind, read, write, a, b) (read(a) > read(b) || BLINK_NAN_##kind(read(a)) ? (a) : (b))
#define BLINK_MIN(T, U, kind, read, write, a, b) (read(a) < read(b) || BLINK_NAN_##kind(read(a)) ? (a) : (b))
#define BLINK_NAN_INTEGER(a) 0
#define BLINK_NAN_FLOAT(a) ((a) != (a))

/* What blinkAvg makes of a value: of each rank's before the sum, where it is a float; of an integer sum of n. */
#define BLINK_AVERAGE_FLOAT(T, U, read, write, a, n) ((T)write((U)read(a) * ((U)1 / (U)(n))))
#define BLINK_AVERAGE_INTEGER(T, U, read, write, a, n)                         \
	((a) > 0 ? (T)((uint64_t)(a) / (uint64_t)(n)) : (T)(0 - (0 - (uint64_t)(a)) / (uint64_t)(n)))

#endif
