/* Captures and graphs of the virtual GPUs (tests/virtual_gpu): what is captured is replayed, in order and in parallel;
 * and what may not be done to a stream that captures. */
#include "virtual.h"

/* A captured graph, ready to be launched. */
static CUgraphExec
captured(CUstream s)
{
	CUgraph graph;
	CUgraphExec exec;
	must(cuStreamEndCapture(s, &graph));
	must(cuGraphInstantiateWithFlags(&exec, graph, 0));
	must(cuGraphDestroy(graph));
	return exec;
}

static CUstreamCaptureStatus
status(CUstream s)
{
	CUstreamCaptureStatus is_it = -1;
	must(cuStreamIsCapturing(s, &is_it));
	return is_it;
}

static void
count(void *data)
{
	++*(int *)data;
}

static void
test_nodes(void)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_memory(64), q = new_memory(64);
	uint64_t *host = new_pinned(4096);
	struct step step = { pointer(p) };
	CUstreamBatchMemOpParams batch[2] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = address(&host[1]),
		    .value64 = 6 } },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = address(&host[1]),
		    .value64 = 6 } },
	};
	int calls = 0;
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	must(cuMemsetD8Async(q, 1, 16, s));
	must(launch(0, "step", 1, 1, s, &step));
	must(cuMemcpyDtoDAsync_v2(q, p, 8, s));
	must(cuMemcpyAsync(address(host), q, 16, s));
	must(cuStreamBatchMemOp_v2(s, 2, batch, 0));
	must(cuLaunchHostFunc(s, count, &calls));
	step.at = NULL;
	batch[0].writeValue.value64 = 0;
	CUgraphExec exec = captured(s);
	is(cuStreamSynchronize(s), CUDA_SUCCESS, "a stream that has captured is empty");
	ok(host[0] == 0 && calls == 0 && word_at(p) == 0, "what is captured is not executed");
	bool good = cuGraphUpload(exec, s) == CUDA_SUCCESS && word_at(p) == 0;
	for (uint64_t i = 1; i <= 3; i++) {
		must(cuGraphLaunch(exec, s));
		must(cuStreamSynchronize(s));
		good = good && host[0] == i && host[1] == 6 && calls == (int)i && host[2] == 0;
	}
	ok(good, "each launch executes it all, with the parameters of the capture");
	must(cuMemcpyDtoH_v2(host, q, 16));
	ok(host[0] == 3 && host[1] == 0x0101010101010101, "in order");
	is(cuGraphExecDestroy(exec), CUDA_SUCCESS, "an executable graph is destroyed");
	is(cuGraphLaunch(exec, s), CUDA_ERROR_INVALID_HANDLE, "then it is none any more");
	is(cuGraphUpload(exec, s), CUDA_ERROR_INVALID_HANDLE, "also to be uploaded");
	is(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_HANDLE, "also to be destroyed");
	must(cuStreamDestroy_v2(s));
	must(cuMemFree_v2(p));
	must(cuMemFree_v2(q));
	must(cuMemFreeHost(host));
}

/* Launches of a graph follow each other, in whatever streams. */
static void
test_replays(void)
{
	enum { REPLAYS = 1000 };
	CUstream s[2] = { new_stream(CU_STREAM_NON_BLOCKING), new_stream(CU_STREAM_NON_BLOCKING) };
	CUdeviceptr p = new_memory(64);
	struct step step = { pointer(p) };
	must(cuStreamBeginCapture_v2(s[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(launch(0, "step", 1, 1, s[0], &step));
	CUgraphExec exec = captured(s[0]);
	for (int i = 0; i < REPLAYS; i++)
		must(cuGraphLaunch(exec, s[i % 2]));
	must(cuGraphExecDestroy(exec));
	must(cuStreamSynchronize(s[0]));
	must(cuStreamSynchronize(s[1]));
	ok(word_at(p) == REPLAYS, "1000 launches of a graph, in two streams, and destroyed before its end");
	must(cuStreamDestroy_v2(s[0]));
	must(cuStreamDestroy_v2(s[1]));
	must(cuMemFree_v2(p));
}

/* Two branches, on two devices, that wait for each other; then what was forked is joined. */
static void
test_branches(void)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b;
	CUdeviceptr p = new_memory(64), q;
	CUevent fork = new_event(CU_EVENT_DISABLE_TIMING), join;
	use(1);
	b = new_stream(CU_STREAM_NON_BLOCKING);
	q = new_memory(64);
	join = new_event(CU_EVENT_DISABLE_TIMING);
	struct wait here = { pointer(p), 1, pointer(q) }, there = { pointer(q), 1, pointer(q + 8) };
	struct step step = { pointer(q + 16) };
	use(0);
	must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuMemsetD8Async(p, 0, 16, a));
	must(cuEventRecord(fork, a));
	must(launch(0, "wait", 1, 1, a, &here));
	use(1);
	ok(status(b) == CU_STREAM_CAPTURE_STATUS_NONE, "a stream does not capture");
	must(cuStreamWaitEvent(b, fork, 0));
	ok(status(b) == CU_STREAM_CAPTURE_STATUS_ACTIVE, "until it waits for an event of a capture");
	must(cuMemsetD8Async(q + 8, 0, 8, b));
	must(cuStreamWriteValue64_v2(b, p, 1, 0));
	must(launch(1, "wait", 1, 1, b, &there));
	must(launch(1, "step", 1, 1, b, &step));
	must(cuEventRecord(join, b));
	use(0);
	must(cuStreamWaitEvent(a, join, 0));
	must(cuMemsetD8Async(p + 24, 1, 1, a));
	CUgraphExec exec = captured(a);
	ok(status(b) == CU_STREAM_CAPTURE_STATUS_NONE, "with the capture all its streams are as before");
	for (int i = 0; i < 10; i++)
		must(cuGraphLaunch(exec, a));
	use(1);
	is(cuCtxSynchronize(), CUDA_SUCCESS, "a context waits for its part of a graph that another launched");
	ok(word_at(q + 16) == 10 && word_at(q + 8) == 1, "branches run at the same time");
	use(0);
	must(cuStreamSynchronize(a));
	ok(word_at(p + 24) == 1, "and are joined");
	must(cuGraphExecDestroy(exec));
	must(cuEventDestroy_v2(fork));
	must(cuEventDestroy_v2(join));
	must(cuStreamDestroy_v2(a));
	must(cuStreamDestroy_v2(b));
	must(cuMemFree_v2(p));
	use(1);
	must(cuMemFree_v2(q));
	use(0);
}

/* A launch in a capture is a node. */
static void
test_graph_in_graph(void)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_memory(64);
	struct step step = { pointer(p) };
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(launch(0, "step", 1, 1, s, &step));
	CUgraphExec inner = captured(s);
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuGraphLaunch(inner, s));
	must(launch(0, "step", 1, 1, s, &step));
	must(cuGraphLaunch(inner, s));
	CUgraphExec outer = captured(s);
	must(cuGraphExecDestroy(inner));
	must(cuGraphLaunch(outer, s));
	must(cuStreamSynchronize(s));
	ok(word_at(p) == 3, "a graph may have graphs as nodes");
	must(cuGraphExecDestroy(outer));
	must(cuStreamDestroy_v2(s));
	must(cuMemFree_v2(p));
}

/* ---- refusals ---- */

static CUstream first, second;

static void
begin_capture(CUstreamCaptureMode mode)
{
	must(cuStreamBeginCapture_v2(first, mode));
}

/* The capture ends with this result, and without a graph. */
static void
ends_with(CUresult want, const char *name)
{
	CUgraph graph = (CUgraph)&graph;
	CUresult r = cuStreamEndCapture(first, &graph);
	ok(r == want && !graph && status(first) == CU_STREAM_CAPTURE_STATUS_NONE &&
	    status(second) == CU_STREAM_CAPTURE_STATUS_NONE, name);
	if (r != want)
		printf("# returned %d: want %d\n", r, want);
}

static void
ends_well(const char *name)
{
	CUgraph graph = NULL;
	is(cuStreamEndCapture(first, &graph), CUDA_SUCCESS, name);
	must(cuGraphDestroy(graph));
}

static void
void_now(void)
{
	ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture is void");
}

static void
test_waiting(void)
{
	CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
	CUdeviceptr p = new_memory(64);
	uint64_t pageable = 0;
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuStreamSynchronize(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	    "a stream that captures is not waited for");
	ok(status(first) == CU_STREAM_CAPTURE_STATUS_INVALIDATED, "the status says that it is void");
	is(cuMemsetD8Async(p, 0, 1, first), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "nothing more is captured");
	is(cuEventRecord(e, first), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "nor recorded");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuStreamQuery(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "its state is not asked for");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "nor is its context waited for");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuStreamDestroy_v2(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "it is not destroyed");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	must(cuEventRecord(e, first));
	is(cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT, "an event of a capture has no state");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	must(cuEventRecord(e, first));
	is(cuEventSynchronize(e), CUDA_ERROR_CAPTURED_EVENT, "and is not waited for");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuMemcpyHtoDAsync_v2(p, &pageable, 8, first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "no pageable memory");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	must(cuEventRecord(e, first));
	ends_well("an event may be recorded for nobody");
	is(cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT, "it stays an event of the capture");
	is(cuStreamWaitEvent(second, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "not waited for outside");
	must(cuEventRecord(e, second));
	must(cuEventSynchronize(e));
	ok(true, "until it is recorded anew");
	must(cuEventDestroy_v2(e));
	must(cuMemFree_v2(p));
}

static void
test_joining(void)
{
	CUevent e = new_event(CU_EVENT_DISABLE_TIMING), back = new_event(CU_EVENT_DISABLE_TIMING);
	CUdeviceptr p = new_memory(64);
	CUstream third = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph;
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuMemsetD8Async(p, 0, 1, first));
	must(cuEventRecord(e, first));
	must(cuStreamWaitEvent(second, e, 0));
	must(cuMemsetD8Async(p + 8, 0, 1, second));
	ends_with(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "what was forked must be joined");
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuMemsetD8Async(p, 0, 1, first));
	must(cuEventRecord(e, first));
	must(cuStreamWaitEvent(second, e, 0));
	must(cuMemsetD8Async(p + 8, 0, 1, second));
	must(cuEventRecord(back, second));
	must(cuStreamWaitEvent(first, back, 0));
	must(cuMemsetD8Async(p + 16, 0, 1, second));
	ends_with(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "all of it");
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuMemsetD8Async(p, 0, 1, first));
	must(cuEventRecord(e, first));
	must(cuStreamWaitEvent(second, e, 0));
	is(cuStreamEndCapture(second, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "a capture ends where it began");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuEventRecord(e, first));
	must(cuStreamWaitEvent(second, e, 0));
	ends_well("a fork without work needs no join");
	must(cuEventRecord(e, third));
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	is(cuStreamWaitEvent(first, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
	    "no wait for an event outside the capture");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	must(cuStreamBeginCapture_v2(third, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuEventRecord(e, third));
	is(cuStreamWaitEvent(first, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE, "captures are not merged");
	is(cuStreamEndCapture(third, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "both are void");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	is(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_GLOBAL), 401, "a capture does not begin twice");
	void_now();
	is(cuStreamEndCapture(first, &graph), 401, "nor end twice");
	must(cuStreamDestroy_v2(third));
	must(cuEventDestroy_v2(e));
	must(cuEventDestroy_v2(back));
	must(cuMemFree_v2(p));
}

/* The legacy stream is in order with blocking streams, and so may not be used while one of them captures. */
static void
test_legacy(void)
{
	CUstreamCaptureStatus is_it;
	CUdeviceptr p = new_memory(64);
	CUstream blocking = new_stream(CU_STREAM_DEFAULT), before = first;
	is(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	    "the legacy stream does not capture");
	first = blocking;
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuMemsetD8Async(p, 0, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
	    "no work for the legacy stream meanwhile");
	is(cuStreamIsCapturing(NULL, &is_it), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "nor a question");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuMemcpy(p, p + 8, 8), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "nor a copy without a stream");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	use(1);
	is(cuStreamSynchronize(NULL), CUDA_SUCCESS, "that of another device may be used");
	use(0);
	ends_well("and the capture goes on");
	first = before;
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(cuMemsetD8Async(p, 0, 1, NULL), CUDA_SUCCESS, "streams that do not block have nothing to do with it");
	ends_well("and capture on");
	first = CU_STREAM_PER_THREAD;
	begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	must(cuMemsetD8Async(p, 0, 1, CU_STREAM_PER_THREAD));
	ends_well("the thread's default stream captures");
	first = before;
	must(cuStreamDestroy_v2(blocking));
	must(cuMemFree_v2(p));
}

static CUresult
call_elsewhere(CUresult (*call)(void))
{
	pthread_t thread;
	void *r;
	if (pthread_create(&thread, NULL, (void *(*)(void *))(void *)call, NULL) != 0)
		return -1;
	pthread_join(thread, &r);
	return (CUresult)(intptr_t)r;
}

static CUresult
alloc_and_free(void)
{
	CUdeviceptr p;
	CUresult r = cuCtxSetCurrent(context[0]);
	if (r == CUDA_SUCCESS)
		r = cuMemAlloc_v2(&p, 64);
	return r == CUDA_SUCCESS ? cuMemFree_v2(p) : r;
}

static CUresult
alloc_relaxed(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	must(cuThreadExchangeStreamCaptureMode(&mode));
	CUresult r = mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? alloc_and_free() : CUDA_ERROR_UNKNOWN;
	must(cuThreadExchangeStreamCaptureMode(&mode));
	return mode == CU_STREAM_CAPTURE_MODE_RELAXED ? r : CUDA_ERROR_UNKNOWN;
}

static CUresult
query_done_event(void)
{
	CUevent e;
	must(cuCtxSetCurrent(context[0]));
	must(cuEventCreate(&e, 0));
	CUresult r = cuEventQuery(e);
	must(cuEventDestroy_v2(e));
	return r;
}

static CUresult
end_first(void)
{
	CUgraph graph;
	must(cuCtxSetCurrent(context[0]));
	CUresult r = cuStreamEndCapture(first, &graph);
	return r == CUDA_SUCCESS ? cuGraphDestroy(graph) : r;
}

/* Calls that are not safe, by mode and thread. */
static void
test_modes(void)
{
	CUstreamCaptureMode none = 3;
	is(cuThreadExchangeStreamCaptureMode(&none), CUDA_ERROR_INVALID_VALUE, "a mode that is none");
	is(cuStreamBeginCapture_v2(first, 3), CUDA_ERROR_INVALID_VALUE, "also of a capture");
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	is(alloc_and_free(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "mode global: not in the thread that captures");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	is(call_elsewhere(alloc_and_free), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "nor in another");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	is(call_elsewhere(query_done_event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not even to ask for an event");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
	is(alloc_relaxed(), CUDA_SUCCESS, "a thread may say that it knows what it does");
	is(call_elsewhere(alloc_relaxed), CUDA_SUCCESS, "so may another");
	ends_well("the capture goes on");
	begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	is(call_elsewhere(alloc_and_free), CUDA_SUCCESS, "mode thread-local: in another thread");
	is(alloc_and_free(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "but not in that which captures");
	void_now();
	begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
	is(alloc_and_free(), CUDA_SUCCESS, "mode relaxed: in the thread that captures");
	is(call_elsewhere(alloc_and_free), CUDA_SUCCESS, "and in another");
	is(call_elsewhere(end_first), CUDA_SUCCESS, "which may end it");
	begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	is(call_elsewhere(end_first), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
	    "else the thread that began a capture ends it");
	ends_well("and can do so");
}

static void
test_info(void)
{
	CUstreamCaptureStatus is_it = -1;
	cuuint64_t id[3] = { 0 };
	CUgraph graph = NULL, done;
	size_t nodes = 9;
	CUgraphExec exec;
	CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
	CUdeviceptr p = new_memory(64);
	must(cuStreamGetCaptureInfo_v2(first, &is_it, &id[0], &graph, NULL, &nodes));
	ok(is_it == CU_STREAM_CAPTURE_STATUS_NONE && id[0] == 0 && !graph,
	    "of a stream that does not capture: nothing");
	begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	must(cuStreamGetCaptureInfo_v2(first, &is_it, &id[0], &graph, NULL, &nodes));
	ok(is_it == CU_STREAM_CAPTURE_STATUS_ACTIVE && id[0] && graph && nodes == 0, "of one that does: its capture");
	is(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE, "its graph is not complete");
	must(cuMemsetD8Async(p, 0, 1, first));
	must(cuEventRecord(e, first));
	must(cuStreamWaitEvent(second, e, 0));
	must(cuStreamGetCaptureInfo_v2(second, &is_it, &id[1], NULL, NULL, &nodes));
	ok(id[1] == id[0] && nodes == 1, "a stream that joined it is of the same");
	must(cuStreamEndCapture(first, &done));
	ok(done == graph, "the graph is that of the capture");
	must(cuGraphDestroy(done));
	is(cuGraphDestroy(done), CUDA_ERROR_INVALID_HANDLE, "a graph is destroyed once");
	is(cuGraphInstantiateWithFlags(&exec, done, 0), CUDA_ERROR_INVALID_HANDLE, "then it is none any more");
	begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	must(cuStreamGetCaptureInfo_v2(first, &is_it, &id[2], NULL, NULL, NULL));
	ok(id[2] != id[0], "the next capture is another");
	ends_well("an empty one");
	must(cuEventDestroy_v2(e));
	must(cuMemFree_v2(p));
}

/* A replay of kernels whose module is gone, of memory that is gone, and of a context that is gone. */
static void
test_gone(void)
{
	CUgraphExec of_module, of_memory;
	CUmodule m;
	CUfunction f;
	use(3);
	CUdeviceptr p = new_memory(64);
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&f, m, "nothing"));
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	of_module = captured(s);
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	must(cuMemsetD8Async(p, 1, 1, s));
	of_memory = captured(s);
	must(cuModuleUnload(m));
	must(cuGraphLaunch(of_module, s));
	is(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED, "no replay of kernels whose module is unloaded");
	must(cuDevicePrimaryCtxRelease_v2(3));
	must(cuDevicePrimaryCtxRetain(&context[3], 3));
	use(3);
	is(cuGraphLaunch(of_memory, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED, "nor of a context that is gone");
	must(cuGraphExecDestroy(of_module));
	must(cuGraphExecDestroy(of_memory));
	p = new_memory(64);
	s = new_stream(CU_STREAM_NON_BLOCKING);
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	must(cuMemsetD8Async(p, 1, 1, s));
	of_memory = captured(s);
	must(cuMemFree_v2(p));
	must(cuGraphLaunch(of_memory, s));
	is(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS, "nor of memory that is freed");
	use(0);
	must(cuGraphExecDestroy(of_memory));
}

int
main(void)
{
	begin();
	first = new_stream(CU_STREAM_NON_BLOCKING);
	second = new_stream(CU_STREAM_NON_BLOCKING);
	test_nodes();
	test_replays();
	test_branches();
	test_graph_in_graph();
	test_waiting();
	test_joining();
	test_legacy();
	test_modes();
	test_info();
	test_gone();
	return end_tests();
}
