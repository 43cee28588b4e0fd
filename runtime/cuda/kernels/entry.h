/* Entries of modules. KERNEL(name, parameter, kind, run): a kernel whose one parameter is a struct `parameter`, called
 * `given`; memory_of(kind) is the struct `kind` that the threads of a block share. */
#ifndef BLINK_KERNELS_ENTRY_H
#define BLINK_KERNELS_ENTRY_H

#include "kernels/portable.h"

#if ON_GPU
#define KERNEL(name, parameter, kind, run) \
	ENTRY name(const struct parameter given) \
	{ \
		run; \
	}
#define memory_of(kind) kind##_memory
#else
#define KERNEL(name, parameter, kind, run) \
	void name(const void *parameter_at); \
	void \
	name(const void *parameter_at) \
	{ \
		_Static_assert(sizeof(struct kind) <= 48 << 10, "shared memory of a block"); \
		const struct parameter given = *(const struct parameter *)parameter_at; \
		struct kind *memory_at = (struct kind *)virtual_gpu_thread()->shared; \
		run; \
	}
#define memory_of(kind) (*memory_at)
#endif

#endif
