/* Kernels: the modules that are built into the library, as PTX. */
#ifndef BLINK_CUDA_KERNELS_H
#define BLINK_CUDA_KERNELS_H

#include <stddef.h>

/* A text for cuModuleLoadData; ends with a 0. */
struct kernel_module {
	const char *name;		/* "float32", "move" */
	const char *ptx;
	size_t bytes;
};

/* Ended by a name of NULL. Empty where the library was built without a compiler for GPUs. */
extern const struct kernel_module kernel_modules[];

#endif
