/* What kernels ask of a GPU: where a thread is, barriers, memory, flags. For nvcc, for clang without CUDA's headers,
 * and for a C compiler that makes twins of the kernels (tests/virtual_gpu/twin.h).
 *
 * Pointers are to global memory: of this GPU, of a peer, or of the host. `fresh` accesses go past the first-level
 * cache, and neither compiler nor GPU leaves one out: rings, flags and packets, which others write meanwhile.
 * Instructions are those of sm_60, which later GPUs understand; for sm_70 and later there are their fences, loads that
 * acquire and stores that release. Kernels state
 * their threads, and that one block on a multiprocessor is enough: ptxas else takes fewer registers than loads at once
 * need (pass.h), and with the threads alone it spills some to make room for more blocks. */
#ifndef BLINK_KERNELS_PORTABLE_H
#define BLINK_KERNELS_PORTABLE_H

#include "cuda/device.h"

#if defined(__CUDACC__)
#define ON_GPU 1
#define FN static __device__ __forceinline__ __attribute__((unused))
#define CALLED static __device__ __noinline__ __attribute__((unused))
#define SHARED_OF(kind) static __shared__ struct kind kind##_memory
#define ENTRY extern "C" __global__ __launch_bounds__(GPU_THREADS, 1) void
#define DEVICE __device__
#elif defined(__CUDA__)
#define ON_GPU 1
#define FN static inline __attribute__((device, always_inline, unused))
#define CALLED static __attribute__((device, noinline, unused))
#define SHARED_OF(kind) static __attribute__((shared)) struct kind kind##_memory
#define ENTRY extern "C" __attribute__((global, launch_bounds(GPU_THREADS, 1))) void
#define DEVICE __attribute__((device))
#else
#define ON_GPU 0
#define FN static inline __attribute__((always_inline, unused))
#define CALLED static __attribute__((noinline, unused))
#include "virtual_gpu/twin.h"
#endif
#include <stdbool.h>
#include <stddef.h>

/* 16 bytes. */
struct vector {
	uint32_t w[4];
};

#if ON_GPU

#define UNROLLED _Pragma("unroll")
#define NOT_UNROLLED _Pragma("unroll 1")

/* GPUs whose memory model has acquire and release. Earlier ones have fences of everything alone. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define HAS_ACQUIRE 1
#else
#define HAS_ACQUIRE 0
#endif
#define HAS_LINES HAS_ACQUIRE

#define SPECIAL(name, what) \
	FN unsigned name(void) \
	{ \
		unsigned x; \
		asm("mov.u32 %0, %%" what ";" : "=r"(x)); \
		return x; \
	}
SPECIAL(this_thread, "tid.x")
SPECIAL(all_threads, "ntid.x")
SPECIAL(this_block, "ctaid.x")
SPECIAL(all_blocks, "nctaid.x")
#undef SPECIAL

/* All threads of the block have come here. Does any say yes? */
FN bool
barrier_any(bool yes)
{
	int any;
	asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; bar.red.or.pred p, 0, p; selp.s32 %0, 1, 0, p; }"
		     : "=r"(any) : "r"((int)yes) : "memory");
	return any != 0;
}

FN void
barrier(void)
{
	asm volatile("bar.sync 0;" ::: "memory");
}

/* The same of some threads of the block, whole warps: barrier 1 or 2. */
FN bool
barrier_any_of(int number, unsigned threads, bool yes)
{
	int any;
	asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; bar.red.or.pred p, %2, %3, p; selp.s32 %0, 1, 0, p; }"
		     : "=r"(any) : "r"((int)yes), "r"(number), "r"(threads) : "memory");
	return any != 0;
}

FN void
barrier_of(int number, unsigned threads)
{
	asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

#if HAS_LINES
/* All threads of the warp have come here. Does any say yes? */
FN bool
warp_any(bool yes)
{
	int any;
	asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.any.pred p, p, -1; selp.s32 %0, 1, 0, p; }"
		     : "=r"(any) : "r"((int)yes) : "memory");
	return any != 0;
}
#endif

/* A number in memory of the block that one thread counts on: what it has stored, or met at a barrier, is seen by who
 * has seen the number. */
FN void
tell_block(uint32_t *at, uint32_t value)
{
#if HAS_ACQUIRE
	asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %0; st.release.cta.shared.u32 [a], %1; }"
		     :: "l"(at), "r"(value) : "memory");
#else
	asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %0; membar.cta; st.volatile.shared.u32 [a], %1; }"
		     :: "l"(at), "r"(value) : "memory");
#endif
}

FN uint32_t
hear_block(const uint32_t *at)
{
	uint32_t value;
#if HAS_ACQUIRE
	asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %1; ld.acquire.cta.shared.u32 %0, [a]; }"
		     : "=r"(value) : "l"(at) : "memory");
#else
	asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %1; ld.volatile.shared.u32 %0, [a]; membar.cta; }"
		     : "=r"(value) : "l"(at) : "memory");
#endif
	return value;
}

/* Until it is another than `heard`. */
FN uint32_t
hear_more(const uint32_t *at, uint32_t heard)
{
	uint32_t value;
	do {
		value = hear_block(at);
	} while (value == heard);
	return value;
}

/* To release: what the block stored before the last barrier, and the thread before the fence, is seen by all before
 * what the thread stores after. */
FN void
fence(void)
{
#if HAS_ACQUIRE
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
	asm volatile("membar.sys;" ::: "memory");
#endif
}

/* A flag. To release: store it, which is as a fence before. To acquire: load it until it is there, then call
 * `acquired`; the thread, and all who meet it at a barrier then, see what was stored before the flag. In CUDA's memory
 * model a load does not wait for one before it that a branch hangs on, so that this takes a load that acquires. GPUs
 * before 7.0 have none, and a fence of theirs takes 2 us; but they begin a thread's instructions in order, so that no
 * load behind the branch or the barrier goes to memory before the flag has come, and what was stored before the flag is
 * there by then. So loads that are `fresh` see it, and others follow no flag. NCCL has no fence there on any GPU. */
FN uint64_t
load_flag(const uint64_t *from)
{
	uint64_t x;
#if HAS_ACQUIRE
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(from) : "memory");
#else
	asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(x) : "l"(from) : "memory");
#endif
	return x;
}

FN void
acquired(void)
{
	asm volatile("" ::: "memory");
}

FN void
store_flag(uint64_t *to, uint64_t x)
{
#if HAS_ACQUIRE
	asm volatile("st.release.sys.global.u64 [%0], %1;" :: "l"(to), "l"(x) : "memory");
#else
	fence();
	asm volatile("st.volatile.global.u64 [%0], %1;" :: "l"(to), "l"(x) : "memory");
#endif
}

/* The flag of a reader: what it loaded before the last barrier may be written over. CUDA's memory model wants a fence
 * on both sides here, but GPUs need none, and NCCL has none: each of these loads gave a value that was stored before
 * the barrier, so that it was over, and who sees the flag stores after a branch on it. */
FN void
store_done(uint64_t *to, uint64_t x)
{
	asm volatile("st.volatile.global.u64 [%0], %1;" :: "l"(to), "l"(x) : "memory");
}

FN struct vector
load16(const void *from)
{
	struct vector v;
	asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3]) : "l"(from));
	return v;
}

/* Twice 8 bytes: of a vector only its elements are loaded and stored at once. */
FN struct vector
load16_fresh(const void *from)
{
	uint64_t low, high;
	asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(from));
	struct vector v = { { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32) } };
	return v;
}

FN void
store16(void *to, struct vector v)
{
	asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
		     :: "l"(to), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3]));
}

FN void
store16_fresh(void *to, struct vector v)
{
	uint64_t low = v.w[0] | (uint64_t)v.w[1] << 32, high = v.w[2] | (uint64_t)v.w[3] << 32;
	asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(low), "l"(high));
}

#define load_tail load16_fresh
#define store_tail store16_fresh

/* T: of the register, which for a byte is wider. */
#define ACCESS(bytes, T, letter, type) \
	FN T load##bytes(const void *from) \
	{ \
		T x; \
		asm volatile("ld.global." type " %0, [%1];" : "=" letter(x) : "l"(from)); \
		return x; \
	} \
	FN void store##bytes(void *to, T x) \
	{ \
		asm volatile("st.global." type " [%0], %1;" :: "l"(to), letter(x)); \
	}
ACCESS(1, uint16_t, "h", "u8")
ACCESS(2, uint16_t, "h", "u16")
ACCESS(4, uint32_t, "r", "u32")
ACCESS(8, uint64_t, "l", "u64")
#undef ACCESS

#define FRESH(bytes, T, letter, type) \
	FN T load##bytes##_fresh(const void *from) \
	{ \
		T x; \
		asm volatile("ld.volatile.global." type " %0, [%1];" : "=" letter(x) : "l"(from) : "memory"); \
		return x; \
	} \
	FN void store##bytes##_fresh(void *to, T x) \
	{ \
		asm volatile("st.volatile.global." type " [%0], %1;" :: "l"(to), letter(x) : "memory"); \
	}
FRESH(4, uint32_t, "r", "u32")
FRESH(8, uint64_t, "l", "u64")
#undef FRESH

/* Of this GPU's memory; what was there. For its GPU add8 acquires and releases; add8_relaxed does neither. */
FN uint64_t
add8(uint64_t *at, uint64_t value)
{
	uint64_t was;
#if HAS_ACQUIRE
	asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(was) : "l"(at), "l"(value) : "memory");
#else
	asm volatile("membar.gl; atom.global.add.u64 %0, [%1], %2; membar.gl;"
		     : "=l"(was) : "l"(at), "l"(value) : "memory");
#endif
	return was;
}

FN uint64_t
add8_relaxed(uint64_t *at, uint64_t value)
{
	uint64_t was;
	asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(was) : "l"(at), "l"(value) : "memory");
	return was;
}

/* ns */
FN uint64_t
time_now(void)
{
	uint64_t ns;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

#define time_of_device time_now

FN void
pause_thread(void)
{
}

#else

#define UNROLLED
#define NOT_UNROLLED
#define HAS_LINES 1
#define warp_any(yes) (yes)

/* Answers of barriers: the third before is cleared by everyone who has passed the one after it. */
struct answers {
	unsigned phase[3][GPU_THREADS];	/* of each thread */
	int any[3][3];
};

#define this_thread() (virtual_gpu_thread()->thread)
#define all_threads() (virtual_gpu_thread()->threads)
#define this_block() (virtual_gpu_thread()->block)
#define all_blocks() (virtual_gpu_thread()->blocks)
#define fence virtual_gpu_fence
#define add8 virtual_gpu_add
#define add8_relaxed add8
#define time_now virtual_gpu_time
#define time_of_device virtual_gpu_device_time
#define pause_thread virtual_gpu_pause

FN bool
barrier_answer(int number, unsigned threads, bool yes)
{
	struct answers *a = (struct answers *)virtual_gpu_thread()->shared;
	unsigned phase = a->phase[number][this_thread()]++ % 3;
	if (yes)
		__atomic_store_n(&a->any[number][phase], 1, __ATOMIC_RELAXED);
	virtual_gpu_barrier_of(number, threads);
	bool any = __atomic_load_n(&a->any[number][phase], __ATOMIC_RELAXED) != 0;
	__atomic_store_n(&a->any[number][(phase + 2) % 3], 0, __ATOMIC_RELAXED);
	return any;
}

FN void
barrier(void)
{
	virtual_gpu_barrier_of(0, all_threads());
}

FN bool
barrier_any(bool yes)
{
	return barrier_answer(0, all_threads(), yes);
}

#define barrier_any_of barrier_answer
#define barrier_of virtual_gpu_barrier_of
#define tell_block virtual_gpu_tell_block
#define hear_block virtual_gpu_hear_block
#define hear_more virtual_gpu_hear_more

#define ACCESS(name, T) \
	FN T load##name(const void *from) \
	{ \
		T x; \
		virtual_gpu_load(from, &x, sizeof x); \
		return x; \
	} \
	FN void store##name(void *to, T x) \
	{ \
		virtual_gpu_store(to, &x, sizeof x); \
	}
ACCESS(1, uint8_t)
ACCESS(2, uint16_t)
ACCESS(4, uint32_t)
ACCESS(8, uint64_t)
ACCESS(16, struct vector)
ACCESS(4_fresh, uint32_t)
ACCESS(8_fresh, uint64_t)
#undef ACCESS

#define load_flag load8_fresh
#define acquired virtual_gpu_acquire

FN void
store_flag(uint64_t *to, uint64_t x)
{
	fence();
	virtual_gpu_store_flag(to, &x, sizeof x);
}

FN void
store_done(uint64_t *to, uint64_t x)
{
	virtual_gpu_store_flag(to, &x, sizeof x);
}

/* Packets. */
FN struct vector
load16_fresh(const void *from)
{
	return load16(from);
}

FN void
store16_fresh(void *to, struct vector v)
{
	virtual_gpu_store_flag(to, &v, sizeof v);
}

/* The last vector of a line. */
FN struct vector
load_tail(const void *from)
{
	struct vector v;
	virtual_gpu_load_line(from, &v, sizeof v);
	return v;
}

FN void
store_tail(void *to, struct vector v)
{
	virtual_gpu_store_line(to, &v, sizeof v);
}

#endif

/* ---- on all ---- */

/* The upper half of a product. */
FN uint64_t
product_high(uint64_t a, uint64_t b)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
	return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* floor(a / b): GPUs take several times as long for it by 64 bits. */
FN int64_t
quotient_of(uint64_t a, uint64_t b)
{
	return (int64_t)((a | b) >> 32 == 0 ? (uint32_t)a / (uint32_t)b : a / b);
}

/* floor(a n / of), for 0 <= a <= of and n >= 0. */
FN int64_t
part_of(int64_t a, int64_t of, int64_t n)
{
	if (a == of || a == 0)
		return a == 0 ? 0 : n;
	uint64_t high = product_high((uint64_t)a, (uint64_t)n), low = (uint64_t)a * (uint64_t)n, quotient = 0;
	if (high == 0)
		return quotient_of(low, (uint64_t)of);
	for (int i = 0; i < 64; i++) {	/* of < 2^63, so that the remainder, doubled, has 64 bits */
		high = high << 1 | low >> 63;
		low <<= 1;
		quotient <<= 1;
		if (high >= (uint64_t)of) {
			high -= (uint64_t)of;
			quotient |= 1;
		}
	}
	return (int64_t)quotient;
}

#endif
