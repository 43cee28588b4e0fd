/* A module: the kernels of one type, KERNEL_TYPE; without one, those that only move. Compiled once for each type: for
 * GPUs, and as C for their twins. */
#include "kernels/collective.h"
#ifndef KERNEL_TYPE
#include "kernels/copies.h"
#include "kernels/messages.h"
#endif

#if ON_GPU
#define KERNEL(name, parameter, kind, run) \
	ENTRY name(const struct parameter given) \
	{ \
		static SHARED struct kind memory; \
		run; \
	}
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
#define memory (*memory_at)
#endif

#ifdef KERNEL_TYPE
#define NAMED_(type, op) blink_##type##_##op
#define NAMED(type, op) NAMED_(type, op)
KERNEL(NAMED(KERNEL_TYPE, sum), gpu_call, block, run_collective(&memory, &given, SUM))
KERNEL(NAMED(KERNEL_TYPE, prod), gpu_call, block, run_collective(&memory, &given, PROD))
KERNEL(NAMED(KERNEL_TYPE, max), gpu_call, block, run_collective(&memory, &given, MAX))
KERNEL(NAMED(KERNEL_TYPE, min), gpu_call, block, run_collective(&memory, &given, MIN))
#else
KERNEL(blink_move, gpu_call, block, run_collective(&memory, &given, SUM))
KERNEL(blink_copies_begin, gpu_call, block, begin_copies(&memory, &given))
KERNEL(blink_copies_end, gpu_call, block, end_copies(&memory, &given))
KERNEL(blink_messages, gpu_exchange, messages_block, run_messages(&memory.run, &given))
#endif
