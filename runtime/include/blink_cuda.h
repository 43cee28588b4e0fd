/* The CUDA body of blink_device.h: rank r has device r % number of devices. A stream of a program is a CUDA stream, and
 * an event is BLINK_RING CUDA events, one for each chunk that may be in flight. cudaStreamWaitEvent waits for what was
 * recorded when it is called, and chunks are issued in order, so that more are never needed. */
#ifndef BLINK_CUDA_H
#define BLINK_CUDA_H

#include "blink_kernel.h"

#include <cuda_runtime.h>
#include <sys/types.h>
#include <unistd.h>

#define BLINK_BACKEND "cuda"

enum { BLINK_KERNEL_THREADS = 256, BLINK_KERNEL_BLOCKS = 1024 };

struct blink_backend {
	const struct blink_program *program;
	int n_devices;
	int before;			/* the caller's device while a call lasts */
	int type, op;			/* of this call */
	cudaStream_t *stream;
	cudaEvent_t *event;
	struct blink_error err;		/* of this call; after one, nothing is queued */
	pid_t owner;			/* CUDA's handles mean nothing in a forked child */
};

BLINK_FN int
blink_check(struct blink_error *err, cudaError_t result, const char *what)
{
	if (result != cudaSuccess)
		blink_fail(err, result == cudaErrorMemoryAllocation ? blinkOutOfMemory : blinkSystemError,
		    "cuda: %s: %s", what, cudaGetErrorString(result));
	return err->code;
}

BLINK_FN int
blink_device_of(const struct blink_backend *b, int rank)
{
	return rank % b->n_devices;
}

/* ---- Reductions ---- */

template <typename A, int op>
static void
blink_launch_op(cudaStream_t stream, char *to, const char *from, const char *with, int by, size_t n)
{
	typedef typename A::element T;
	size_t all = (n + BLINK_KERNEL_THREADS - 1) / BLINK_KERNEL_THREADS, most = BLINK_KERNEL_BLOCKS;
	blink_kernel<A, op><<<(unsigned)(all < most ? all : most), BLINK_KERNEL_THREADS, 0, stream>>>((T *)to,
	    (const T *)from, (const T *)with, by, n);
}

template <typename A>
static void
blink_launch(cudaStream_t stream, int op, char *to, const char *from, const char *with, int by, size_t n)
{
	if (op == blinkSum)
		blink_launch_op<A, blinkSum>(stream, to, from, with, by, n);
	else if (op == blinkProd)
		blink_launch_op<A, blinkProd>(stream, to, from, with, by, n);
	else if (op == blinkMax)
		blink_launch_op<A, blinkMax>(stream, to, from, with, by, n);
	else if (op == blinkMin)
		blink_launch_op<A, blinkMin>(stream, to, from, with, by, n);
	else
		blink_launch_op<A, blinkAvg>(stream, to, from, with, by, n);
}

/* ---- Streams ---- */

BLINK_FN void
blink_backend_copy(struct blink_backend *b, int stream, int to_rank, char *to, int from_rank, const char *from,
    size_t bytes)
{
	int to_device = blink_device_of(b, to_rank), from_device = blink_device_of(b, from_rank);
	if (b->err.code != blinkSuccess || bytes == 0)
		return;
	if (to_device == from_device)
		blink_check(&b->err, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, b->stream[stream]), "copy");
	else
		blink_check(&b->err, cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, b->stream[stream]),
		    "copy between devices");
}

BLINK_FN void
blink_backend_compute(struct blink_backend *b, int stream, int op, char *to, const char *from, const char *with,
    size_t n)
{
	cudaStream_t s = b->stream[stream];
	if (b->err.code != blinkSuccess || n == 0)
		return;
	if (blink_check(&b->err, cudaSetDevice(blink_device_of(b, blink_stream_rank(b->program, stream))),
	    "set device"))
		return;
	switch (b->type) {
#define BLINK_CASE(code, name, T, U, kind, read, write, with_nothing)          \
	case code:                                                             \
		blink_launch<blink_arithmetic_##name>(s, op, to, from, with, b->program->n_ranks, n); \
		break;
		BLINK_TYPE_LIST(BLINK_CASE, 0)
#undef BLINK_CASE
	}
	blink_check(&b->err, cudaGetLastError(), "reduction");
}

BLINK_FN void
blink_backend_reduce(struct blink_backend *b, int stream, char *to, const char *from, const char *with, size_t n)
{
	blink_backend_compute(b, stream, b->op, to, from, with, n);
}

BLINK_FN void
blink_backend_average(struct blink_backend *b, int stream, char *to, const char *from, size_t n)
{
	blink_backend_compute(b, stream, blinkAvg, to, from, NULL, n);
}

/* A CUDA event belongs to the device of the stream that records it, and so is made by the first record. */
BLINK_FN void
blink_backend_record(struct blink_backend *b, int stream, int event, int64_t chunk)
{
	cudaEvent_t *e = &b->event[(size_t)event * BLINK_RING + (size_t)(chunk % BLINK_RING)];
	if (b->err.code != blinkSuccess)
		return;
	if (!*e) {
		if (blink_check(&b->err, cudaSetDevice(blink_device_of(b, blink_stream_rank(b->program, stream))),
		    "set device"))
			return;
		if (blink_check(&b->err, cudaEventCreateWithFlags(e, cudaEventDisableTiming), "create an event"))
			return;
	}
	blink_check(&b->err, cudaEventRecord(*e, b->stream[stream]), "record an event");
}

BLINK_FN void
blink_backend_wait(struct blink_backend *b, int stream, int event, int64_t chunk)
{
	cudaEvent_t e = b->event[(size_t)event * BLINK_RING + (size_t)(chunk % BLINK_RING)];
	if (b->err.code == blinkSuccess)
		blink_check(&b->err, cudaStreamWaitEvent(b->stream[stream], e, 0), "wait for an event");
}

BLINK_FN int
blink_backend_begin(struct blink_backend *b, int type, int op, struct blink_error *err)
{
	b->type = type;
	b->op = op;
	b->err.code = blinkSuccess;
	return blink_check(err, cudaGetDevice(&b->before), "get device");
}

/* Also after a failure: what was queued before it may still use the caller's buffers. */
BLINK_FN int
blink_backend_finish(struct blink_backend *b, struct blink_error *err)
{
	for (int s = 0; s < b->program->n_streams + b->program->n_ranks; s++)
		blink_check(&b->err, cudaStreamSynchronize(b->stream[s]), "wait for a stream");
	blink_check(&b->err, cudaSetDevice(b->before), "set device");
	if (b->err.code != blinkSuccess)
		blink_fail(err, b->err.code, "%s", b->err.text);
	return err->code;
}

/* ---- Memory ---- */

BLINK_FN int
blink_backend_alloc(struct blink_backend *b, int rank, size_t bytes, void **memory, struct blink_error *err)
{
	int before = 0;
	if (blink_check(err, cudaGetDevice(&before), "get device") ||
	    blink_check(err, cudaSetDevice(blink_device_of(b, rank)), "set device"))
		return err->code;
	blink_check(err, cudaMalloc(memory, bytes ? bytes : 1), "allocate memory");
	blink_check(err, cudaSetDevice(before), "set device");
	return err->code;
}

BLINK_FN int
blink_backend_free(struct blink_backend *b, int rank, void *memory, struct blink_error *err)
{
	(void)rank;
	if (b->owner != getpid())
		return err->code;
	return blink_check(err, cudaFree(memory), "free memory");
}

/* Between the host's memory and a device's, in either direction. */
BLINK_FN int
blink_backend_transfer(struct blink_backend *b, int rank, void *to, const void *from, size_t bytes,
    struct blink_error *err)
{
	int before = 0;
	if (blink_check(err, cudaGetDevice(&before), "get device") ||
	    blink_check(err, cudaSetDevice(blink_device_of(b, rank)), "set device"))
		return err->code;
	blink_check(err, cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy");
	/* From pageable memory it returns once the bytes are staged; our streams do not wait for that by themselves. */
	blink_check(err, cudaDeviceSynchronize(), "copy");
	blink_check(err, cudaSetDevice(before), "set device");
	return err->code;
}

/* ---- Devices ---- */

BLINK_FN void
blink_backend_close(struct blink_backend *b)
{
	bool forked = b->owner != getpid();
	if (b->stream && !forked)
		for (int s = 0; s < b->program->n_streams + b->program->n_ranks; s++)
			if (b->stream[s])
				cudaStreamDestroy(b->stream[s]);
	if (b->event && !forked)
		for (size_t e = 0; e < (size_t)b->program->n_events * BLINK_RING; e++)
			if (b->event[e])
				cudaEventDestroy(b->event[e]);
	free(b->stream);
	free(b->event);
}

/* Copies between devices that cannot reach each other go through the host, by CUDA. */
BLINK_FN int
blink_enable_peers(struct blink_backend *b, struct blink_error *err)
{
	int used = b->program->n_ranks < b->n_devices ? b->program->n_ranks : b->n_devices;
	for (int from = 0; from < used; from++) {
		for (int to = 0; to < used && err->code == blinkSuccess; to++) {
			int can = 0;
			cudaError_t result;
			if (from == to || blink_check(err, cudaDeviceCanAccessPeer(&can, from, to),
			    "ask for peer access") || !can)
				continue;
			if (blink_check(err, cudaSetDevice(from), "set device"))
				break;
			result = cudaDeviceEnablePeerAccess(to, 0);
			if (result == cudaErrorPeerAccessAlreadyEnabled)
				cudaGetLastError();	/* clear the error, or the next launch would report it */
			else
				blink_check(err, result, "enable peer access");
		}
	}
	return err->code;
}

BLINK_FN int
blink_backend_open(struct blink_backend *b, const struct blink_program *program, int threads, struct blink_error *err)
{
	int n_streams = program->n_streams + program->n_ranks, before = 0;
	(void)threads;
	b->program = program;
	b->owner = getpid();
	if (blink_check(err, cudaGetDeviceCount(&b->n_devices), "count devices") ||
	    blink_check(err, cudaGetDevice(&before), "get device"))
		return err->code;
	if (b->n_devices < 1)
		return blink_fail(err, blinkSystemError, "cuda: no device");
	b->stream = (cudaStream_t *)blink_array((size_t)n_streams, sizeof *b->stream);
	b->event = (cudaEvent_t *)blink_array((size_t)program->n_events * BLINK_RING, sizeof *b->event);
	if (!b->stream || !b->event)
		return blink_fail_memory(err);
	blink_enable_peers(b, err);
	for (int s = 0; s < n_streams && err->code == blinkSuccess; s++) {
		blink_check(err, cudaSetDevice(blink_device_of(b, blink_stream_rank(program, s))), "set device");
		blink_check(err, cudaStreamCreateWithFlags(&b->stream[s], cudaStreamNonBlocking), "create a stream");
	}
	blink_check(err, cudaSetDevice(before), "set device");
	return err->code;
}

#endif
