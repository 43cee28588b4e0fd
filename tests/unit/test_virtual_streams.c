/* Streams, events, copies, values and functions of the host of the virtual GPUs (tests/virtual_gpu): in order, at the
 * same time where they may be, and refused where CUDA refuses. */
#include "virtual.h"

#include <stdatomic.h>

static bool
not_yet(CUstream s)
{
	return cuStreamQuery(s) == CUDA_ERROR_NOT_READY;
}

static void
test_order(void)
{
	enum { N = 200 };
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *gate = new_pinned(4096);
	uint64_t *host = new_pinned(N * sizeof *host);
	CUdeviceptr p = new_memory(64);
	hold_back(s, gate);
	for (uint64_t i = 0; i < N; i++) {
		must(cuStreamWriteValue64_v2(s, p, i, 0));
		must(cuMemcpyDtoHAsync_v2(&host[i], p, 8, s));
	}
	sleep_ms(5);
	ok(not_yet(s) && host[N - 1] == 0, "work waits for what is before it");
	let_through(gate);
	is(cuStreamSynchronize(s), CUDA_SUCCESS, "a stream is waited for");
	bool good = true;
	for (uint64_t i = 0; i < N; i++)
		good = good && host[i] == i;
	ok(good, "and is in order");
	is(cuStreamQuery(s), CUDA_SUCCESS, "then nothing is left in it");
	must(cuStreamDestroy_v2(s));
	must(cuMemFree_v2(p));
	must(cuMemFreeHost(host));
	must(cuMemFreeHost(gate));
}

static void
test_streams_are_independent(void)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *gate = new_pinned(4096);
	hold_back(a, gate);
	must(cuStreamWriteValue32_v2(b, address(gate), 1, 0));
	is(cuStreamSynchronize(a), CUDA_SUCCESS, "a stream waits for what another writes");
	gate[0] = 0;
	hold_back(a, gate);
	must(cuStreamDestroy_v2(a));
	must(cuStreamWriteValue64_v2(b, address(gate + 2), 7, 0));
	is(cuStreamSynchronize(a), CUDA_ERROR_INVALID_HANDLE, "a destroyed stream is unknown");
	is(cuStreamDestroy_v2(a), CUDA_ERROR_INVALID_HANDLE, "also to be destroyed");
	let_through(gate);
	is(cuCtxSynchronize(), CUDA_SUCCESS, "its work is finished all the same");
	must(cuStreamDestroy_v2(b));
	must(cuMemFreeHost(gate));
}

/* Streams that are not done; of others, a few ms later, no more than `most`. */
static int
still_wait(const CUstream *s, int n, int most)
{
	int waiting = n;
	for (int turns = 0; turns < 1000 && waiting > most; turns++) {
		sleep_ms(2);
		waiting = 0;
		for (int i = 0; i < n; i++)
			waiting += not_yet(s[i]);
	}
	return waiting;
}

/* Of 24 streams three have each of the 8 connections, and wait for each other. Streams of before may have one, too. */
static void
test_connections(void)
{
	enum { N = 24, URGENT = 8 };
	uint32_t *gate = new_pinned(4096);
	CUdeviceptr p = new_memory(64);
	CUstream s[N], urgent[URGENT];
	for (int i = 0; i < N; i++)
		s[i] = new_stream(CU_STREAM_NON_BLOCKING);
	hold_back(s[0], gate);
	for (int i = 1; i < N; i++)
		must(cuStreamWriteValue32_v2(s[i], p, 1, 0));
	int waiting = still_wait(s + 1, N - 1, 3);
	ok(waiting >= 1 && waiting <= 3, "streams that have its connection wait for what is in the first");
	for (int i = 0; i < URGENT; i++) {
		must(cuStreamCreateWithPriority(&urgent[i], CU_STREAM_NON_BLOCKING, -5));
		must(cuStreamWriteValue32_v2(urgent[i], p, 1, 0));
	}
	waiting = still_wait(urgent, URGENT, 2);
	ok(waiting >= 1 && waiting <= 2, "so does one of another priority");
	let_through(gate);
	for (int i = 0; i < URGENT; i++) {
		must(cuStreamSynchronize(urgent[i]));
		must(cuStreamDestroy_v2(urgent[i]));
	}
	for (int i = 0; i < N; i++) {
		must(cuStreamSynchronize(s[i]));
		must(cuStreamDestroy_v2(s[i]));
	}
	ok(1, "and goes on after it");
	must(cuMemFree_v2(p));
	must(cuMemFreeHost(gate));
}

/* ---- memory, while a stream waits ---- */

enum { FREE, ALLOC, HOST_ALLOC, REGISTER, HOST_FREE, UNREGISTER, WAITERS };

struct memory_call {
	int what;
	CUdeviceptr memory;
	void *host, *pages;
	CUresult r;
	_Atomic bool ended;
	pthread_t thread;
};

static void *
call_memory(void *arg)
{
	struct memory_call *m = arg;
	use(0);
	m->r = m->what == FREE ? cuMemFree_v2(m->memory) : m->what == ALLOC ? cuMemAlloc_v2(&m->memory, 64)
	    : m->what == HOST_ALLOC ? cuMemHostAlloc(&m->host, 64, 0) : m->what == HOST_FREE ? cuMemFreeHost(m->host)
	    : m->what == REGISTER ? cuMemHostRegister_v2(m->pages, 4096, 0) : cuMemHostUnregister(m->pages);
	atomic_store(&m->ended, true);
	return NULL;
}

/* Of pools nothing waits, but for the stream that it is said to; all else waits for the context. */
static void
test_memory(void)
{
	uint32_t *gate = new_pinned(4096);
	CUstream held = new_stream(CU_STREAM_NON_BLOCKING), s = new_stream(CU_STREAM_NON_BLOCKING);
	CUmemPoolProps what = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	struct memory_call m[WAITERS] = { [FREE] = { .memory = new_memory(64) },
	    [HOST_FREE] = { .host = new_pinned(64) }, [REGISTER] = { .pages = aligned_alloc(4096, 4096) },
	    [UNREGISTER] = { .pages = aligned_alloc(4096, 4096) } };
	CUmemoryPool pool;
	CUdeviceptr a, b, c;
	cuuint64_t kept = 1 << 20;
	must(cuMemHostRegister_v2(m[UNREGISTER].pages, 4096, 0));
	is(cuMemPoolCreate(&pool, &what), CUDA_SUCCESS, "a pool of memory");
	is(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept), CUDA_SUCCESS, "keeps some");
	hold_back(held, gate);
	int early = 0, failed = 0;
	for (int i = 0; i < WAITERS; i++) {
		m[i].what = i;
		pthread_create(&m[i].thread, NULL, call_memory, &m[i]);
	}
	must(cuMemAllocFromPoolAsync(&a, 64, pool, s));
	must(cuMemAllocFromPoolAsync(&b, 64, pool, s));
	must(cuMemAllocFromPoolAsync(&c, 64, pool, held));
	must(cuMemsetD8Async(a, 7, 64, s));
	must(cuStreamSynchronize(s));
	ok(a % 256 == 0 && b % 256 == 0, "memory of it is there while another stream waits");
	is(cuMemFreeAsync(a, s), CUDA_SUCCESS, "it is given back");
	must(cuStreamSynchronize(s));
	is(cuMemFreeAsync(a, s), CUDA_ERROR_INVALID_VALUE, "once");
	is(cuMemFree_v2(b), CUDA_SUCCESS, "also by the plain function, which waits for nothing then");
	is(cuMemFreeAsync(m[FREE].memory, s), CUDA_ERROR_INVALID_VALUE, "what is not of a pool is not");
	sleep_ms(50);
	for (int i = 0; i < WAITERS; i++)
		early += atomic_load(&m[i].ended);
	ok(early == 0, "what is of no pool is neither taken nor given back while a stream waits");
	let_through(gate);
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(m[i].thread, NULL);
		failed += m[i].r != CUDA_SUCCESS;
	}
	ok(!failed, "but then");
	is(cuMemFreeAsync(c, held), CUDA_SUCCESS, "memory of the stream that waited");
	is(cuMemPoolDestroy(pool), CUDA_SUCCESS, "the pool goes");
	is(cuMemAllocFromPoolAsync(&a, 64, pool, s), CUDA_ERROR_INVALID_VALUE, "and is none any more");
	must(cuStreamSynchronize(held));
	must(cuMemFree_v2(m[ALLOC].memory));
	must(cuMemFreeHost(m[HOST_ALLOC].host));
	must(cuMemHostUnregister(m[REGISTER].pages));
	free(m[REGISTER].pages);
	free(m[UNREGISTER].pages);
	must(cuStreamDestroy_v2(held));
	must(cuStreamDestroy_v2(s));
	must(cuMemFreeHost(gate));
}

/* The legacy stream waits for blocking streams, and they for it. */
static void
test_legacy(void)
{
	CUstream blocking = new_stream(CU_STREAM_DEFAULT), other = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *gate = new_pinned(4096);
	CUdeviceptr p = new_memory(64);
	hold_back(blocking, gate);
	must(cuMemsetD8Async(p, 1, 8, NULL));
	sleep_ms(2);
	ok(not_yet(CU_STREAM_LEGACY), "the legacy stream waits for a blocking one");
	must(cuMemsetD8Async(p + 8, 1, 8, other));
	is(cuStreamSynchronize(other), CUDA_SUCCESS, "a stream that does not block goes on");
	let_through(gate);
	is(cuStreamSynchronize(NULL), CUDA_SUCCESS, "then the legacy stream goes on");
	gate[0] = 0;
	hold_back(NULL, gate);
	must(cuMemsetD8Async(p, 2, 8, blocking));
	must(cuMemsetD8Async(p + 16, 2, 8, CU_STREAM_PER_THREAD));
	sleep_ms(2);
	ok(not_yet(blocking) && not_yet(CU_STREAM_PER_THREAD), "blocking streams wait for the legacy one");
	let_through(gate);
	must(cuStreamSynchronize(blocking));
	must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	ok(word_at(p) == 0x0202020202020202 && word_at(p + 16) == 0x0202020202020202, "and go on after it");
	must(cuStreamDestroy_v2(blocking));
	must(cuStreamDestroy_v2(other));
	must(cuMemFree_v2(p));
	must(cuMemFreeHost(gate));
}

/* A wait is for the last record before it. */
static void
test_events(void)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream c = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *first = new_pinned(4096), *second = first + 16;
	CUevent e = new_event(CU_EVENT_DEFAULT), none = new_event(CU_EVENT_DISABLE_TIMING);
	is(cuEventQuery(e), CUDA_SUCCESS, "an event that was never recorded is done");
	must(cuStreamWaitEvent(b, e, 0));
	must(cuStreamSynchronize(b));
	hold_back(a, first);
	must(cuEventRecord(e, a));
	is(cuEventQuery(e), CUDA_ERROR_NOT_READY, "a recorded one is not");
	must(cuStreamWaitEvent(b, e, 0));
	hold_back(a, second);
	must(cuEventRecord(e, a));
	must(cuStreamWaitEvent(c, e, 0));
	let_through(first);
	is(cuStreamSynchronize(b), CUDA_SUCCESS, "a wait is for the record before it");
	ok(not_yet(c) && cuEventQuery(e) == CUDA_ERROR_NOT_READY, "the event is that of its last record");
	must(cuStreamWaitEvent(b, e, 0));
	must(cuEventDestroy_v2(e));
	ok(not_yet(b), "a wait outlives its event");
	let_through(second);
	must(cuStreamSynchronize(b));
	must(cuStreamSynchronize(c));
	is(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE, "a destroyed event is unknown");
	is(cuEventRecord(e, a), CUDA_ERROR_INVALID_HANDLE, "to records");
	is(cuStreamWaitEvent(a, e, 0), CUDA_ERROR_INVALID_HANDLE, "to waits");
	must(cuEventDestroy_v2(none));
	must(cuStreamDestroy_v2(a));
	must(cuStreamDestroy_v2(b));
	must(cuStreamDestroy_v2(c));
	must(cuMemFreeHost(first));
}

static void
test_times(void)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent from = new_event(CU_EVENT_DEFAULT), to = new_event(CU_EVENT_DEFAULT);
	CUevent timeless = new_event(CU_EVENT_DISABLE_TIMING);
	float ms = -1;
	is(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_INVALID_HANDLE, "no time between events without a record");
	must(cuEventRecord(from, s));
	must(cuLaunchHostFunc(s, sleep_20_ms, NULL));
	must(cuEventRecord(to, s));
	must(cuEventRecord(timeless, s));
	is(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY, "nor before they are done");
	must(cuEventSynchronize(to));
	is(cuEventElapsedTime(&ms, from, to), CUDA_SUCCESS, "the time between two events");
	ok(ms >= 20, "is that of the work between them");
	is(cuEventElapsedTime_v2(&ms, from, to), CUDA_SUCCESS, "also by its newer name");
	is(cuEventElapsedTime(&ms, from, timeless), CUDA_ERROR_INVALID_HANDLE, "none of an event without timing");
	must(cuEventDestroy_v2(from));
	must(cuEventDestroy_v2(to));
	must(cuEventDestroy_v2(timeless));
	must(cuStreamDestroy_v2(s));
}

static void
test_devices(void)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
	uint32_t *gate = new_pinned(4096);
	CUcontext of;
	hold_back(s, gate);
	must(cuEventRecord(e, s));
	use(1);
	CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_memory(64);
	is(cuEventRecord(e, other), CUDA_ERROR_INVALID_HANDLE, "no record of an event by a stream of another device");
	is(cuStreamWaitEvent(other, e, 0), CUDA_SUCCESS, "but a wait for it");
	must(cuMemsetD8Async(p, 3, 8, other));
	is(cuStreamGetCtx(s, &of), CUDA_SUCCESS, "a stream has a context");
	ok(of == context[0], "where it was created");
	must(cuStreamGetCtx(CU_STREAM_LEGACY, &of));
	ok(of == context[1], "default streams are the current context's");
	is(cuMemsetD8Async(p, 4, 8, s), CUDA_ERROR_INVALID_HANDLE, "memory is set by streams of the current context");
	sleep_ms(2);
	ok(not_yet(other), "a stream waits for another device's");
	let_through(gate);
	must(cuStreamSynchronize(other));
	ok(word_at(p) == 0x0303030303030303, "and goes on after it");
	must(cuMemFree_v2(p));
	must(cuStreamDestroy_v2(other));
	use(0);
	must(cuStreamDestroy_v2(s));
	must(cuEventDestroy_v2(e));
	must(cuMemFreeHost(gate));
}

/* n copies of 8 bytes, of words `step` bytes apart. */
static CUresult
batch(CUdeviceptr to, CUdeviceptr from, size_t n, size_t step, CUmemcpySrcAccessOrder order, CUstream s)
{
	CUdeviceptr targets[8], sources[8];
	size_t bytes[8], first = 0, failed;
	CUmemcpyAttributes how = { .srcAccessOrder = order, .flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE };
	for (size_t i = 0; i < n; i++) {
		targets[i] = to + i * step;
		sources[i] = from + i * step;
		bytes[i] = 8;
	}
	return cuMemcpyBatchAsync(targets, sources, bytes, n, &how, &first, 1, &failed, s);
}

static void
test_batches(void)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph = NULL;
	uint32_t *host = new_pinned(4096), *back = new_pinned(4096);
	CUdeviceptr p = new_memory(4096);
	int stream = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, good = 0;
	char pageable[64];
	for (uint32_t i = 0; i < 64; i++)
		host[i] = i + 1;
	must(cuMemsetD32Async(p, 0, 1024, s));
	must(batch(p, address(host), 8, 16, stream, s));
	must(cuMemcpyAsync(address(back), p, 256, s));
	must(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < 32; i++)
		good += back[i] == (i % 4 < 2 ? i + 1 : 0);
	ok(good == 32, "a batch of copies is in the order of its stream, as a whole");
	is(batch(p, address(host), 0, 16, stream, s), CUDA_ERROR_INVALID_VALUE, "no batch of nothing");
	is(batch(p, address(host), 2, 16, 0, s), CUDA_ERROR_INVALID_VALUE, "nor without an order of access");
	is(batch(p, address(host), 2, 4, stream, s), CUDA_ERROR_INVALID_VALUE, "nor one that writes twice");
	is(batch(p + 16, p, 2, 16, stream, s), CUDA_ERROR_INVALID_VALUE, "nor a copy that needs another");
	is(batch(p, address(host), 2, 4092, stream, s), CUDA_ERROR_INVALID_VALUE, "nor beyond the end of memory");
	is(batch(p, address(pageable), 2, 16, stream, s), CUDA_ERROR_NOT_SUPPORTED, "nor of pageable memory");
	is(batch(p, address(host), 2, 16, stream, NULL), CUDA_ERROR_INVALID_VALUE, "nor in the default stream");
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	is(batch(p, address(host), 2, 16, stream, s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "nor in a capture");
	is(cuStreamEndCapture(s, &graph), CUDA_SUCCESS, "which goes on");
	must(cuGraphDestroy(graph));
	must(cuMemFree_v2(p));
	must(cuMemFreeHost(host));
	must(cuMemFreeHost(back));
	must(cuStreamDestroy_v2(s));
}

static void
test_copies(void)
{
	enum { BYTES = 1 << 20 };
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	char *pageable = malloc(BYTES), *back = malloc(BYTES), *pinned = new_pinned(BYTES);
	CUdeviceptr here = new_memory(BYTES);
	use(2);
	CUdeviceptr there = new_memory(BYTES);
	use(0);
	for (int i = 0; i < BYTES; i++)
		pageable[i] = (char)(i * 7 + i / 1000);
	must(cuMemcpyHtoDAsync_v2(here, pageable, BYTES, s));
	must(cuMemcpyDtoDAsync_v2(there, here, BYTES, s));
	must(cuMemcpyPeerAsync(here, context[0], there, context[2], BYTES, s));
	must(cuMemcpyAsync(address(pinned), here, BYTES, s));
	must(cuMemcpyDtoHAsync_v2(back, there, BYTES, s));
	ok(memcmp(pageable, back, BYTES) == 0 && memcmp(pageable, pinned, BYTES) == 0,
	    "copies there and back; to pageable memory the call waits");
	uint32_t *gate = new_pinned(4096);
	hold_back(s, gate);
	char byte = 'a';
	must(cuMemcpyHtoDAsync_v2(here, &byte, 1, s));
	byte = 'b';
	let_through(gate);
	must(cuStreamSynchronize(s));
	ok((word_at(here) & 255) == 'a', "small pageable memory is read before the call returns");
	is(cuMemcpyAsync(0, 0, 0, s), CUDA_SUCCESS, "a copy of nothing");
	is(cuMemcpyAsync(here, 0, 1, s), CUDA_ERROR_INVALID_VALUE, "no copy from nowhere");
	is(cuMemcpyHtoDAsync_v2(address(pageable), pageable, 8, s), CUDA_ERROR_INVALID_VALUE,
	    "to a device: not to the host");
	is(cuMemcpyDtoHAsync_v2(back, address(pageable), 8, s), CUDA_ERROR_INVALID_VALUE,
	    "from a device: not from the host");
	is(cuMemcpyAsync(here + 8, there, BYTES, s), CUDA_ERROR_INVALID_VALUE, "not beyond the end of memory");
	is(cuMemcpyPeerAsync(here, context[1], there, context[2], 8, s), CUDA_ERROR_INVALID_VALUE,
	    "peers are whose memory it is");
	is(cuMemcpyAsync(here, there, 8, (CUstream)0x123000), CUDA_ERROR_INVALID_HANDLE,
	    "not in a stream that is none");
	must(cuMemFree_v2(here));
	is(cuMemcpyAsync(there, here, 8, s), CUDA_ERROR_INVALID_VALUE, "not of freed memory");
	must(cuMemFree_v2(there));
	must(cuMemFreeHost(pinned));
	must(cuMemFreeHost(gate));
	must(cuStreamDestroy_v2(s));
	free(pageable);
	free(back);
}

static void
test_values(void)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	uint64_t *word = new_pinned(4096), *pageable = malloc(64);
	uint32_t *half = (uint32_t *)word;
	must(cuStreamWaitValue64_v2(s, address(word), UINT64_C(1) << 40, CU_STREAM_WAIT_VALUE_GEQ));
	must(cuStreamWaitValue32_v2(s, address(half + 2), 5, CU_STREAM_WAIT_VALUE_EQ));
	must(cuStreamWriteValue32_v2(s, address(half + 4), 9, 0));
	__atomic_store_n(&word[0], 1 << 20, __ATOMIC_RELEASE);
	__atomic_store_n(&half[2], 6, __ATOMIC_RELEASE);
	sleep_ms(2);
	ok(not_yet(s), "less is waited for");
	__atomic_store_n(&word[0], UINT64_C(1) << 41, __ATOMIC_RELEASE);
	sleep_ms(2);
	ok(not_yet(s), "equal is not more");
	__atomic_store_n(&half[2], 5, __ATOMIC_RELEASE);
	is(cuStreamSynchronize(s), CUDA_SUCCESS, "values were waited for");
	ok(half[4] == 9, "and one was written");
	half[0] = 2;
	must(cuStreamWaitValue32_v2(s, address(half), UINT32_MAX, CU_STREAM_WAIT_VALUE_GEQ));
	is(cuStreamSynchronize(s), CUDA_SUCCESS, "a counter that has wrapped around is more");
	CUstreamBatchMemOpParams batch[3] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = address(word + 3),
		    .value64 = 4 } },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = address(word + 3),
		    .value64 = 4 } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = address(word + 4),
		    .value = 8 } },
	};
	is(cuStreamBatchMemOp_v2(s, 3, batch, 0), CUDA_SUCCESS, "a batch");
	must(cuStreamSynchronize(s));
	ok(word[3] == 4 && half[8] == 8, "is executed");
	batch[1].waitValue.address++;
	word[3] = 0;
	is(cuStreamBatchMemOp_v2(s, 3, batch, 0), CUDA_ERROR_INVALID_VALUE, "not where an address is not aligned");
	must(cuStreamSynchronize(s));
	ok(word[3] == 0, "then none of it is executed");
	is(cuStreamBatchMemOp_v2(s, 0, batch, 0), CUDA_ERROR_INVALID_VALUE, "a batch of nothing");
	batch[0].operation = 99;
	is(cuStreamBatchMemOp_v2(s, 1, batch, 0), CUDA_ERROR_INVALID_VALUE, "an operation that is none");
	is(cuStreamWaitValue32_v2(s, address(half), 0, 77), CUDA_ERROR_INVALID_VALUE, "flags that are none");
	is(cuStreamWriteValue32_v2(s, address(pageable), 0, 0), CUDA_ERROR_INVALID_VALUE,
	    "memory that no device knows");
	must(cuStreamDestroy_v2(s));
	must(cuMemFreeHost(word));
	free(pageable);
}

static void
test_set(void)
{
	CUdeviceptr p = new_memory(64);
	must(cuMemsetD32Async(p, 0x01020304, 3, NULL));
	must(cuMemsetD32_v2(p + 12, 0x05060708, 1));
	must(cuCtxSynchronize());
	ok(word_at(p) == 0x0102030401020304 && word_at(p + 8) == 0x0506070801020304 && word_at(p + 16) == 0,
	    "memory is set to a value");
	is(cuMemsetD32Async(p + 2, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE, "not where an address is not aligned");
	is(cuMemsetD8Async(p, 0, 65, NULL), CUDA_ERROR_INVALID_VALUE, "not beyond its end");
	is(cuMemsetD8Async(address(&p), 0, 1, NULL), CUDA_ERROR_INVALID_VALUE, "not of the host");
	must(cuMemFree_v2(p));
}

static CUresult seen_in_function[3];

static void
call_inside(void *data)
{
	CUdeviceptr p;
	seen_in_function[0] = cuMemAlloc_v2(&p, 64);
	seen_in_function[1] = cuStreamQuery(NULL);
	seen_in_function[2] = cuEventCreate((CUevent *)data, 0);
}

static void
test_functions(void)
{
	CUevent e;
	must(cuLaunchHostFunc(NULL, call_inside, &e));
	must(cuStreamSynchronize(NULL));
	for (int i = 0; i < 3; i++)
		is(seen_in_function[i], CUDA_ERROR_NOT_PERMITTED, "a function of the host calls nothing of CUDA");
	is(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE, "no function");
}

static void
test_arguments(void)
{
	CUstream s;
	CUevent e;
	is(cuStreamCreate(&s, 2), CUDA_ERROR_INVALID_VALUE, "flags of a stream");
	is(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE, "no place for a stream");
	is(cuEventCreate(&e, 64), CUDA_ERROR_INVALID_VALUE, "flags of an event");
	is(cuEventCreate(&e, 4), CUDA_ERROR_INVALID_VALUE, "an event of processes has no timing");
	is(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE, "the legacy stream is not destroyed");
	is(cuStreamSynchronize((CUstream)(uintptr_t)0x7777), CUDA_ERROR_INVALID_HANDLE, "no stream");
	s = new_stream(0);
	is(cuEventQuery((CUevent)s), CUDA_ERROR_INVALID_HANDLE, "a stream is no event");
	e = new_event(0);
	is(cuStreamWaitEvent(s, e, 1), CUDA_ERROR_INVALID_VALUE, "flags of a wait");
	must(cuCtxSetCurrent(NULL));
	is(cuStreamCreate(&s, 0), CUDA_ERROR_INVALID_CONTEXT, "no stream without a context");
	use(0);
}

/* A copy whose memory has gone when its turn comes fails; so does all that comes later in the context. */
static void
test_failure(void)
{
	CUdeviceptr p = new_memory(64);
	uint32_t *gate = new_pinned(4096);
	use(3);
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING), later = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
	hold_back(s, gate);
	must(cuStreamWriteValue64_v2(s, p, 7, 0));
	must(cuEventRecord(e, s));
	use(0);
	must(cuMemFree_v2(p));
	let_through(gate);
	use(3);
	is(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS, "memory that has gone is not written");
	is(cuStreamQuery(later), CUDA_ERROR_ILLEGAL_ADDRESS, "the context's other streams fail, too");
	is(cuEventQuery(e), CUDA_ERROR_ILLEGAL_ADDRESS, "and its events");
	is(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS, "and all of it");
	is(cuMemAlloc_v2(&p, 64), CUDA_ERROR_ILLEGAL_ADDRESS, "and its memory");
	use(0);
	is(cuStreamQuery(later), CUDA_ERROR_ILLEGAL_ADDRESS, "also seen from another context");
	is(cuCtxSynchronize(), CUDA_SUCCESS, "which goes on");
	must(cuMemFreeHost(gate));
}

/* With its context, streams and what waits in them end. */
static void
test_end(void)
{
	use(2);
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent e = new_event(0);
	CUdeviceptr p = new_memory(64);
	must(cuStreamWaitValue32_v2(s, p, 1, CU_STREAM_WAIT_VALUE_GEQ));
	must(cuEventRecord(e, s));
	is(cuDevicePrimaryCtxRelease_v2(2), CUDA_SUCCESS, "a context ends while a stream waits forever");
	must(cuDevicePrimaryCtxRetain(&context[2], 2));
	use(2);
	is(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE, "its streams are no more");
	is(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE, "nor its events");
	is(cuCtxSynchronize(), CUDA_SUCCESS, "a new one is empty");
	use(0);
}

int
main(void)
{
	begin();
	test_order();
	test_streams_are_independent();
	test_connections();
	test_memory();
	test_legacy();
	test_events();
	test_times();
	test_devices();
	test_copies();
	test_batches();
	test_values();
	test_set();
	test_functions();
	test_arguments();
	test_end();
	test_failure();
	return end_tests();
}
