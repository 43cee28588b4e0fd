/* Kernels: the modules that are built into the library, as PTX, and maybe as code for some kinds of GPU. */
#ifndef BLINK_CUDA_KERNELS_H
#define BLINK_CUDA_KERNELS_H

#include <stddef.h>

/* Images for cuModuleLoadData. */
struct kernel_module {
	const char *name;		/* "float32", "move" */
	const char *ptx;		/* a text; ends with a 0: for any GPU */
	const char *ptx_70;		/* likewise, for those of capability 7.0 and later; NULL: `ptx` is for these */
	const void *cubins;		/* a fat binary; NULL: none */
};

/* Ended by a name of NULL. Empty where the library was built without a compiler for GPUs. */
extern const struct kernel_module kernel_modules[];

/* The module of kernels/multicast.cu, as PTX for GPUs of capability 9.0 and later; NULL: the compiler makes none. */
extern const char *const kernel_multicast;

#endif
