/* A reduction: its type, operation and scale, and the loop that calls the kernels.
 *
 * Whole lines go to a kernel at once. What is left at the end, and before the first aligned line of a destination that
 * is streamed to, is copied operand by operand into a line of its own. A division of integers follows in blocks that
 * are still in the first-level cache. */
#include "reduce/kernels.h"

#include "blink_float.h"

#include <stdatomic.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

enum { DIVIDE_BLOCK = 8 << 10 };

/* ---- kernels of this CPU ---- */

#ifdef __x86_64__
static bool
has_avx2(void)
{
	unsigned a, b, c, d;
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool
has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

const struct reduction_kernels *const *
reduction_versions(void)
{
#ifdef __x86_64__
	static const struct reduction_kernels *const all[] = {
		&reduction_avx512, &reduction_avx2, &reduction_base, NULL
	};
	return has_avx512() ? all : has_avx2() ? all + 1 : all + 2;
#else
	static const struct reduction_kernels *const all[] = { &reduction_base, NULL };
	return all;
#endif
}

static const struct reduction_kernels *
kernels(void)
{
	static _Atomic(const struct reduction_kernels *) chosen;
	const struct reduction_kernels *k = atomic_load_explicit(&chosen, memory_order_relaxed);
	if (!k) {
		k = reduction_versions()[0];
		atomic_store_explicit(&chosen, k, memory_order_relaxed);
	}
	return k;
}

const char *
reduction_kernels(void)
{
	return kernels()->name;
}

/* ---- what is asked ---- */

static size_t
size_of(int type)
{
	static const size_t size[REDUCTION_TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	return type < 0 || type >= REDUCTION_TYPES ? 0 : size[type];
}

static bool
is_integer(int type)
{
	return type <= blinkUint64;
}

bool
reduction_make(int type, int op, int n_ranks, struct reduction *out)
{
	size_t size = size_of(type);
	if (size == 0 || op < blinkSum || op > blinkAvg)
		return false;
	*out = (struct reduction){ .type = type, .op = op == blinkAvg ? blinkSum : op, .size = size };
	if (op != blinkAvg || n_ranks == 1)
		return true;
	out->scales = !is_integer(type);
	if (is_integer(type))
		out->divide = n_ranks;
	else if (type == blinkFloat64)
		out->scale.f64 = 1.0 / n_ranks;
	else
		out->scale.f32 = 1.0f / (float)n_ranks;
	return true;
}

/* An element of a floating-point type below 64 bits. */
static float
float_of(int type, const void *element)
{
	uint16_t half = 0;
	float f;
	memcpy(&half, element, size_of(type) == 1 ? 1 : 2);
	switch (type) {
	case blinkFloat16:
		return blink_float_of_float16(half);
	case blinkBfloat16:
		return blink_float_of_bfloat16(half);
	case blinkFloat8e4m3:
		return blink_float_of_e4m3(*(const uint8_t *)element);
	case blinkFloat8e5m2:
		return blink_float_of_e5m2(*(const uint8_t *)element);
	}
	memcpy(&f, element, sizeof f);
	return f;
}

/* Its low bits are those of the element: a product wraps, and needs no others. */
static uint64_t
bits_of(size_t size, const void *element)
{
	uint8_t b;
	uint32_t w;
	uint64_t d;
	memcpy(&b, element, sizeof b);
	if (size == 1)
		return b;
	memcpy(&w, element, sizeof w);
	if (size == 4)
		return w;
	memcpy(&d, element, sizeof d);
	return d;
}

bool
reduction_make_scaled(int type, const void *scalar, struct reduction *out)
{
	size_t size = size_of(type);
	if (size == 0)
		return false;
	*out = (struct reduction){ .type = type, .op = blinkSum, .size = size, .scales = true, .scalar = scalar };
	return true;
}

void
reduction_read_scalar(struct reduction *r)
{
	if (!r->scalar)
		return;
	if (is_integer(r->type))
		r->scale.bits = bits_of(r->size, r->scalar);
	else if (r->type == blinkFloat64)
		memcpy(&r->scale.f64, r->scalar, sizeof r->scale.f64);
	else
		r->scale.f32 = float_of(r->type, r->scalar);
	r->scalar = NULL;
}

/* ---- the way through the kernels ---- */

static void
call_kernel(const struct reduction_kernels *k, const struct reduction_job *job, bool divides)
{
	const struct reduction *r = job->r;
	k->reduce[r->type][r->op](job);
	if (divides)
		k->divide[r->type](job->to + job->begin, job->end - job->begin, r->divide);
}

/* Bytes `at` to at + bytes of the arrays, less than a line. */
static void
part_of_line(const struct reduction_kernels *k, const struct reduction_job *job, size_t at, size_t bytes, bool divides)
{
	_Alignas(REDUCTION_LINE) char sum[REDUCTION_LINE] = { 0 }, operand[REDUCTION_LINE] = { 0 };
	const char *from = operand;
	struct reduction_job part = { .r = job->r, .scales = job->scales, .to = sum, .own = sum, .from = &from,
	    .end = REDUCTION_LINE };
	if (bytes == 0)
		return;
	memcpy(sum, job->own + at, bytes);
	if (job->n_from == 0)
		call_kernel(k, &part, divides);
	for (int i = 0; i < job->n_from; i++) {
		memcpy(operand, job->from[i] + at, bytes);
		part.n_from = 1;
		call_kernel(k, &part, divides && i == job->n_from - 1);
		part.scales = false;
	}
	memcpy(job->to + at, sum, bytes);
	if (job->also)
		memcpy(job->also + at, sum, bytes);
}

/* Whole lines up to `end`, and divide each block. */
static void
divided_blocks(const struct reduction_kernels *k, struct reduction_job *job, size_t end)
{
	char *also = job->also;
	job->also = NULL;
	for (; job->begin < end; job->begin = job->end) {
		job->end = end - job->begin > DIVIDE_BLOCK ? job->begin + DIVIDE_BLOCK : end;
		call_kernel(k, job, true);
		if (also)
			memcpy(also + job->begin, job->to + job->begin, job->end - job->begin);
	}
	job->also = also;
}

void
reduction_run_by(const struct reduction_kernels *k, const struct reduction *r, void *to, void *also, const void *own,
    const void *const *from, int n_from, size_t n, bool last, bool streaming)
{
	size_t bytes = n * r->size, head;
	bool divides = last && r->divide != 0;
	struct reduction_job job = { .r = r, .scales = r->scales, .to = to, .also = also, .own = own,
	    .from = (const char *const *)from, .n_from = n_from };
	if (n_from == 0 && !r->scales && !divides) {
		reduction_copy_by(k, to, also, own, bytes, streaming);
		return;
	}
	/* The lines of a destination that is read too, or divided afterwards, are in the caches anyway. */
	job.streaming = streaming && to != own && !divides && bytes >= REDUCTION_LINE;
	head = job.streaming ? -(uintptr_t)to % REDUCTION_LINE : 0;
	part_of_line(k, &job, 0, head, divides);
	job.begin = head;
	job.end = bytes - (bytes - head) % REDUCTION_LINE;
	if (divides)
		divided_blocks(k, &job, job.end);
	else if (job.begin < job.end)
		call_kernel(k, &job, false);
	if (job.streaming)
		k->fence();
	part_of_line(k, &job, job.end, bytes - job.end, divides);
}

static void
copy_part(const struct reduction_job *job, size_t at, size_t bytes)
{
	memmove(job->to + at, job->own + at, bytes);
	if (job->also)
		memmove(job->also + at, job->own + at, bytes);
}

void
reduction_copy_by(const struct reduction_kernels *k, void *to, void *also, const void *from, size_t bytes,
    bool streaming)
{
	struct reduction_job job = { .to = to, .also = also, .own = from,
		.streaming = streaming && bytes >= REDUCTION_LINE };
	if (!to || to == from) {
		job.to = also;
		job.also = NULL;
		job.streaming = false;
	}
	if (!job.to || bytes == 0)
		return;
	if (!job.streaming && !job.also) {
		memmove(job.to, from, bytes);
		return;
	}
	job.begin = job.streaming ? -(uintptr_t)job.to % REDUCTION_LINE : 0;
	job.end = bytes - (bytes - job.begin) % REDUCTION_LINE;
	copy_part(&job, 0, job.begin);
	k->copy(&job);
	if (job.streaming)
		k->fence();
	copy_part(&job, job.end, bytes - job.end);
}

void
reduction_run(const struct reduction *r, void *to, void *also, const void *own, const void *const *from, int n_from,
    size_t n, bool last, bool streaming)
{
	reduction_run_by(kernels(), r, to, also, own, from, n_from, n, last, streaming);
}

void
reduction_copy(void *to, void *also, const void *from, size_t bytes, bool streaming)
{
	reduction_copy_by(kernels(), to, also, from, bytes, streaming);
}
