/* The kernels for CPUs with AVX2 and F16C. */
#include "reduce/kernels.h"

#ifdef __x86_64__
#define KERNELS reduction_avx2
#define NAME "avx2"
#define WIDTH 32
#define F16C
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif
#include "reduce/kernels.c.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
