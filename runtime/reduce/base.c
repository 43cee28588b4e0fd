/* The kernels for every CPU of the architecture. */
#include "reduce/kernels.h"

#define KERNELS reduction_base
#define WIDTH 16
#if defined(__x86_64__)
#define NAME "sse2"
#elif defined(__ARM_NEON)
#define NAME "neon"
#else
#define NAME "generic"
#endif
#include "reduce/kernels.c.h"
