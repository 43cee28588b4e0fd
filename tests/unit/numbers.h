/* Numbers of every type, for tests that reduce them. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "blink_device.h"

#include <stdint.h>
#include <string.h>

/* Of 64 random bits an element: any integer; of a floating-point type a number from -2 to 2. */
static void
put_number(int type, uint64_t bits, char *to)
{
	double f = (double)(int64_t)bits / 0x1p62;
#define PUT_INTEGER(T, U, write) (T)bits
#define PUT_FLOAT(T, U, write) (T)write((U)f)
#define PUT(code, name, T, U, kind, read, write, unused)                       \
	if (type == code) {                                                    \
		T x = PUT_##kind(T, U, write);                                 \
		memcpy(to, &x, sizeof x);                                      \
	}
	BLINK_TYPE_LIST(PUT, 0)
#undef PUT
}

#endif
