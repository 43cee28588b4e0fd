/* The kernels for CPUs with AVX-512 F, BW, DQ and VL. */
#include "reduce/kernels.h"

#ifdef __x86_64__
#define KERNELS reduction_avx512
#define NAME "avx512"
#define WIDTH 64
#define F16C
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif
#include "reduce/kernels.c.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
