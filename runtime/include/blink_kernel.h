/* The kernels of a generated program: reductions, one for each type and operation. C++17, for nvcc. */
#ifndef BLINK_KERNEL_H
#define BLINK_KERNEL_H

#include "blink.h"
#include "blink_types.h"

#include <stddef.h>

/* A type: what holds an element, and what becomes of elements. */
#define BLINK_ARITHMETIC(code, name, T, U, kind, read, write, with)            \
	struct blink_arithmetic_##name {                                       \
		typedef T element;                                             \
		static __device__ T sum(T a, T b) { return BLINK_SUM(T, U, kind, read, write, a, b); } \
		static __device__ T prod(T a, T b) { return BLINK_PROD(T, U, kind, read, write, a, b); } \
		static __device__ T max(T a, T b) { return BLINK_MAX(T, U, kind, read, write, a, b); } \
		static __device__ T min(T a, T b) { return BLINK_MIN(T, U, kind, read, write, a, b); } \
		static __device__ T average(T a, int n) { return BLINK_AVERAGE_##kind(T, U, read, write, a, n); } \
	};
BLINK_TYPE_LIST(BLINK_ARITHMETIC, 0)
#undef BLINK_ARITHMETIC

/* by: ranks of an average. */
template <typename A, int op>
__global__ void
blink_kernel(typename A::element *to, const typename A::element *from, const typename A::element *with, int by,
    size_t n)
{
	size_t step = (size_t)gridDim.x * blockDim.x;
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		if (op == blinkSum)
			to[i] = A::sum(from[i], with[i]);
		else if (op == blinkProd)
			to[i] = A::prod(from[i], with[i]);
		else if (op == blinkMax)
			to[i] = A::max(from[i], with[i]);
		else if (op == blinkMin)
			to[i] = A::min(from[i], with[i]);
		else
			to[i] = A::average(from[i], by);
	}
}

#endif
