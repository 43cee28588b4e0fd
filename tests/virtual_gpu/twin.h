/* Twins: kernels as the virtual GPUs execute them, compiled from the same source by g++. A thread of a block is a
 * thread of the process. The virtual libcuda.so.1 exports these functions; a library of twins is linked with it, and
 * named by VIRTUAL_GPU_KERNELS (several: separated by ':'). C11 and C++17. */
#ifndef VIRTUAL_GPU_TWIN_H
#define VIRTUAL_GPU_TWIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A kernel that has a twin. */
struct virtual_kernel {
	const char *name;		/* as in its module: "blink_float32_sum" */
	size_t parameter_bytes;		/* of its one parameter, a struct by value */
	int threads_most;		/* of a block: what cuFuncGetAttribute says */
	void (*run)(const void *parameter);	/* one thread of one block */
};

/* What a library of twins exports; ended by a name of NULL. */
extern const struct virtual_kernel virtual_gpu_kernels[];

/* Where the calling thread is in its grid, as blockIdx.x and so on. A block has as many threads as VIRTUAL_GPU_THREADS
 * asks for (default: 1), at most those of the launch. shared: zeroed memory of the block, 48 KiB. */
struct virtual_thread {
	unsigned block, blocks, thread, threads;
	void *shared;
};

const struct virtual_thread *virtual_gpu_thread(void);

/* Barriers 0 to 2 of a block, of the number of threads that is given; 0, of all threads, is __syncthreads. */
void virtual_gpu_barrier_of(int number, unsigned threads);

/* A number in memory of the block: one thread stores it and so releases, others acquire; `more` sleeps until it is
 * another than `heard`. */
void virtual_gpu_tell_block(uint32_t *at, uint32_t value);
uint32_t virtual_gpu_hear_block(const uint32_t *at);
uint32_t virtual_gpu_hear_more(const uint32_t *at, uint32_t heard);

/* Loads and stores of 1, 2, 4, 8 or 16 bytes, aligned to their size. Each is checked: is that memory, is it not freed,
 * may this device access it (peer access, cuMemSetAccess, registered host memory)? If not, the context fails with
 * CUDA_ERROR_ILLEGAL_ADDRESS and the thread ends. Data that cross a link take its time. Atomic, relaxed; of 16 bytes
 * each half of 8. With VIRTUAL_GPU_WEAK=1 stores to other devices and the host become visible late, in any order, until
 * virtual_gpu_fence, and a load may get what was there since the last one: as GPUs do it. */
void virtual_gpu_load(const void *from, void *to, unsigned bytes);
void virtual_gpu_store(void *to, const void *from, unsigned bytes);

/* The same of a flag, or of data that have one with them: elsewhere they are seen later (VIRTUAL_GPU_FLAG). */
void virtual_gpu_store_flag(void *to, const void *from, unsigned bytes);

/* 16 or 128 bytes of which the last 8 are a flag: who loads the flag by the second has what was stored with it by the
 * first, as of what a warp stores at once. */
void virtual_gpu_store_line(void *to, const void *from, unsigned bytes);
void virtual_gpu_load_line(const void *from, void *to, unsigned bytes);

/* What a switch does with an address of a multicast object: `how` of multimem.ld_reduce ("add.u32",
 * "add.acc::f32.f16x2") over 4 or 8 bytes of all members' memory, and over 16 as a vector (.v4); a store of 16 bytes to
 * all of it. Other accesses of such addresses end the thread, and these of other addresses. */
void virtual_gpu_multimem_load(const char *how, const void *from, void *to, unsigned bytes);
void virtual_gpu_multimem_store(void *to, const void *from);

/* __threadfence_system: what was stored before is visible before what is stored after; what was loaded before was
 * loaded before. The second orders loads alone where the GPU can do so, and then takes no time. */
void virtual_gpu_fence(void);
void virtual_gpu_acquire(void);

/* atomicAdd of memory of this device; returns what was there. */
uint64_t virtual_gpu_add(uint64_t *at, uint64_t value);

/* In every turn of a loop that waits for memory, when all that may end it was looked at: others run, the thread may
 * sleep until some of that is stored to, and it ends here if its device is lost. */
void virtual_gpu_pause(void);

/* ns, as globaltimer. */
uint64_t virtual_gpu_time(void);

/* The same where links are slowed down: as if they were not. */
uint64_t virtual_gpu_device_time(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
