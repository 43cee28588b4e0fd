/* What cudart.c and the twins of generated programs share. C11 and C++17. */
#ifndef VIRTUAL_GPU_CUDART_H
#define VIRTUAL_GPU_CUDART_H

#include <stddef.h>

/* The parameters of blink_kernel (runtime/include/blink_kernel.h): the one signature that programs here may launch. */
struct cudart_parameters {
	void *to;
	const void *from, *with;
	int by;
	size_t n;
};

#endif
