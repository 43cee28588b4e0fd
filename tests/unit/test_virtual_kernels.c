/* Modules and kernels of the virtual GPUs (tests/virtual_gpu): blocks at the same time, on several devices, with flags
 * between them; the weak order of stores; and what is refused, or fails. */
#include "virtual.h"

static void
test_modules(void)
{
	CUmodule m;
	CUfunction f, again;
	int value = 0;
	is(cuModuleLoadData(&m, "ELF"), CUDA_ERROR_INVALID_IMAGE, "an image that is no PTX");
	is(cuModuleLoadData(&m, ".version 6.0\n"), CUDA_ERROR_INVALID_IMAGE, "PTX for no target");
	is(cuModuleLoadData(&m, ".version 6.0\n.target sm_60\n.entry (\n"), CUDA_ERROR_INVALID_PTX,
	    "an entry without a name");
	is(cuModuleLoadData(NULL, ptx), CUDA_ERROR_INVALID_VALUE, "no place for a module");
	must(cuModuleLoadData(&m, ptx));
	is(cuModuleGetFunction(&f, m, "fill"), CUDA_SUCCESS, "a kernel");
	is(cuModuleGetFunction(&again, m, "fill"), CUDA_SUCCESS, "again");
	ok(f == again, "is the same");
	is(cuModuleGetFunction(&f, m, "lonely"), CUDA_ERROR_NOT_FOUND, "an entry without a twin");
	is(cuModuleGetFunction(&f, m, "fil"), CUDA_ERROR_NOT_FOUND, "a name that is no entry");
	is(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, again), CUDA_SUCCESS,
	    "threads of a block");
	ok(value == 1024, "as the twin says");
	is(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, again), CUDA_SUCCESS, "registers");
	is(cuFuncGetAttribute(&value, 999, again), CUDA_ERROR_INVALID_VALUE, "an attribute that is none");
	is(cuFuncLoad(again), CUDA_SUCCESS, "a kernel is loaded");
	is(cuFuncLoad((CUfunction)m), CUDA_ERROR_INVALID_HANDLE, "a module is none");
	is(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, again, 1024, 0), CUDA_SUCCESS, "occupancy");
	int processors;
	must(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	ok(value * processors == 8, "of all multiprocessors: as many blocks as were asked for");
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, again, 128, 1 << 20));
	ok(value == 0, "none with too much shared memory");
	is(cuModuleUnload(m), CUDA_SUCCESS, "a module is unloaded");
	is(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE, "once");
	is(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, again), CUDA_ERROR_INVALID_HANDLE,
	    "its kernels with it");
	is(cuModuleGetFunction(&f, m, "fill"), CUDA_ERROR_INVALID_HANDLE, "it has none any more");
	use(1);
	is(cuModuleGetFunction(&f, module[0], "fill"), CUDA_ERROR_INVALID_CONTEXT, "a module is of its context");
	use(0);
}

static void
test_launches(void)
{
	enum { N = 1000 };
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_memory(N * 4);
	uint32_t host[N], *gate = new_pinned(4096);
	struct fill fill = { pointer(p), N, 5 };
	hold_back(s, gate);
	must(launch(0, "fill", 16, 32, s, &fill));
	memset(&fill, 0, sizeof fill);
	must(cuMemcpyAsync(address(gate + 64), p, N / 4 * 4, s));
	let_through(gate);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH_v2(host, p, sizeof host));
	bool good = gate[64] == 5 && gate[64 + N / 4 - 1] == 5;
	for (int i = 0; i < N; i++)
		good = good && host[i] == 5;
	ok(good, "a kernel writes all there is, with the parameters of the call");
	void *no_parameter[] = { NULL }, *parameters[] = { &fill };
	CUfunction f = function_of(0, "fill");
	is(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s, parameters, NULL), CUDA_ERROR_INVALID_VALUE, "no blocks");
	is(cuLaunchKernel(f, 1, 1, 1, 0, 1, 1, 0, s, parameters, NULL), CUDA_ERROR_INVALID_VALUE, "no threads");
	is(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, s, parameters, NULL), CUDA_ERROR_INVALID_VALUE,
	    "too many threads");
	is(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, s, parameters, NULL), CUDA_ERROR_INVALID_VALUE,
	    "too much shared memory");
	is(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, no_parameter, NULL), CUDA_ERROR_INVALID_VALUE, "no parameter");
	is(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), CUDA_ERROR_INVALID_VALUE, "no parameters");
	is(cuLaunchKernel((CUfunction)s, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL), CUDA_ERROR_INVALID_HANDLE,
	    "no kernel");
	is(launch(0, "barrier", 1, 513, s, &fill), CUDA_ERROR_INVALID_VALUE,
	    "more threads than the kernel has at most");
	static char parameter[4097];
	is(launch(0, "most", 1, 1, s, parameter), CUDA_SUCCESS, "parameters of 4096 bytes");
	is(launch(0, "more", 1, 1, s, parameter), CUDA_ERROR_INVALID_VALUE, "not more");
	is(launch(0, "nothing", 1, 1, s, NULL), CUDA_SUCCESS, "a kernel without parameters");
	use(1);
	is(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL), CUDA_ERROR_INVALID_HANDLE,
	    "another context is current");
	CUstream other = new_stream(0);
	is(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, other, parameters, NULL), CUDA_ERROR_INVALID_HANDLE,
	    "a stream of another device");
	must(cuStreamDestroy_v2(other));
	use(0);
	must(cuStreamSynchronize(s));
	must(cuStreamDestroy_v2(s));
	must(cuMemFree_v2(p));
	must(cuMemFreeHost(gate));
}

/* A kernel that waits for what one of another stream of the same device writes. */
static void
test_at_once(void)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_memory(64);
	struct wait wait = { pointer(p), 1, pointer(p + 8) };
	struct fill fill = { pointer(p), 1, 1 };
	must(launch(0, "wait", 4, 1, a, &wait));
	must(launch(0, "fill", 1, 1, b, &fill));
	is(cuStreamSynchronize(a), CUDA_SUCCESS, "kernels of two streams run at the same time");
	ok(word_at(p + 8) == 1, "and have done so");
	must(cuStreamDestroy_v2(a));
	must(cuStreamDestroy_v2(b));
	must(cuMemFree_v2(p));
}

/* A device has room for 8 blocks. */
static void
test_room(void)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_memory(64);
	struct crowd crowd = { pointer(p), pointer(p + 8), 10000000 };
	must(launch(0, "crowd", 5, 1, a, &crowd));
	must(launch(0, "crowd", 20, 1, b, &crowd));
	must(cuCtxSynchronize());
	uint64_t most = word_at(p + 8);
	ok(most <= 8 && word_at(p) == 0, "no more blocks than there is room for, of all streams");
	ok(most >= 6, "about as many as there is room for");
	must(cuStreamDestroy_v2(a));
	must(cuStreamDestroy_v2(b));
	must(cuMemFree_v2(p));
}

static void
test_token(void)
{
	enum { TURNS = 1000 };
	CUstream s[2];
	CUdeviceptr flag[2];
	for (int i = 0; i < 2; i++) {
		use(i);
		s[i] = new_stream(CU_STREAM_NON_BLOCKING);
		flag[i] = new_memory(64);
	}
	struct token token[2] = {
		{ pointer(flag[0]), pointer(flag[1]), 1, TURNS }, { pointer(flag[1]), pointer(flag[0]), 2, TURNS },
	};
	uint64_t one = 1;
	for (int i = 0; i < 2; i++) {
		use(i);
		must(launch(i, "token", 1, 1, s[i], &token[i]));
	}
	use(0);
	must(cuMemcpyHtoDAsync_v2(flag[0], &one, sizeof one, CU_STREAM_PER_THREAD));
	must(cuStreamSynchronize(s[0]));
	must(cuStreamSynchronize(s[1]));
	ok(word_at(flag[0]) == TURNS + 1, "kernels of two devices hand a token to and fro");
	for (int i = 0; i < 2; i++) {
		use(i);
		must(cuStreamDestroy_v2(s[i]));
		must(cuMemFree_v2(flag[i]));
	}
	use(0);
}

/* Messages that are not whole, of those that device 0 sends to device 1. */
static uint64_t
broken_messages(bool sender_fences, bool receiver_fences)
{
	enum { ROUNDS = 300 };
	CUdeviceptr done = new_memory(64);
	use(1);
	CUdeviceptr message = new_memory(sizeof(struct message)), bad = new_memory(64);
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	struct receive receive = { pointer(message), pointer(done), ROUNDS, pointer(bad), receiver_fences };
	struct send send = { pointer(message), pointer(done), ROUNDS, sender_fences };
	must(launch(1, "receive", 1, 1, s, &receive));
	use(0);
	must(launch(0, "send", 1, 1, CU_STREAM_PER_THREAD, &send));
	must(cuStreamSynchronize(s));
	must(cuCtxSynchronize());
	uint64_t n = word_at(bad);
	must(cuMemFree_v2(done));
	use(1);
	must(cuMemFree_v2(message));
	must(cuMemFree_v2(bad));
	must(cuStreamDestroy_v2(s));
	use(0);
	return n;
}

static void
test_weak(void)
{
	use(1);
	CUdeviceptr far = new_memory(64);
	use(0);
	CUdeviceptr bad = new_memory(64);
	struct own own = { pointer(far), pointer(bad) };
	ok(broken_messages(true, true) == 0, "messages behind fences are whole");
	setenv("VIRTUAL_GPU_WEAK", "1", 1);
	ok(broken_messages(true, true) == 0, "also where stores are late, and loads early");
	ok(broken_messages(false, true) > 0, "if the sender has no fences, they are not");
	ok(broken_messages(true, false) > 0, "nor if the receiver has none");
	must(launch(0, "own", 1, 1, NULL, &own));
	must(cuCtxSynchronize());
	ok(word_at(bad) == 0, "a thread sees its own stores");
	unsetenv("VIRTUAL_GPU_WEAK");
	must(cuMemFree_v2(bad));
	use(1);
	ok(word_at(far + 8 * (1000 % 7)) == 1000 && word_at(far + 8 * (999 % 7)) == 999,
	    "the last store to a place stays");
	must(cuMemFree_v2(far));
	use(0);
}

static void
test_threads(void)
{
	CUdeviceptr p = new_memory(64);
	struct barrier barrier = { pointer(p), 50 };
	struct fill fill = { pointer(p + 8), 4, 3 };
	setenv("VIRTUAL_GPU_THREADS", "6", 1);
	must(launch(0, "barrier", 3, 512, NULL, &barrier));
	must(launch(0, "barrier", 1, 2, NULL, &barrier));
	must(launch(0, "fill", 1, 512, NULL, &fill));
	must(cuCtxSynchronize());
	unsetenv("VIRTUAL_GPU_THREADS");
	ok(word_at(p) == 0, "threads of a block meet at barriers");
	ok(word_at(p + 16) == UINT64_C(0x300000003), "and share the work");
	must(cuMemFree_v2(p));
}

/* Device 3 gets a new context, without peer access to others. */
static void
renew(void)
{
	must(cuDevicePrimaryCtxRelease_v2(3));
	must(cuDevicePrimaryCtxRetain(&context[3], 3));
	use(3);
	load(3);
}

/* A kernel touches what it must not, while others of its device wait at a barrier and for a flag: all of it ends. */
static CUresult
fails(const char *kernel, const struct touch *touch, CUdeviceptr own)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	struct barrier barrier = { pointer(own + 128), 1 << 30 };
	struct wait wait = { pointer(own), 1, NULL };
	must(launch(3, "barrier", 1, 2, a, &barrier));
	must(launch(3, "wait", 2, 2, b, &wait));
	must(launch(3, kernel, 1, 1, NULL, touch));
	CUresult r = cuCtxSynchronize();
	return cuLaunchHostFunc(a, (CUhostFn)abort, NULL) == r ? r : CUDA_SUCCESS;
}

static void
test_illegal(void)
{
	static const struct {
		const char *name, *kernel;
		CUresult want;
		uint32_t bytes, writes;
		int from;		/* 0: own memory, 1: of another device, 2: pageable, 3: NULL */
		unsigned offset;
	} cases[] = {
		{ "the host's memory", "touch", CUDA_ERROR_ILLEGAL_ADDRESS, 8, 0, 2, 0 },
		{ "what is behind its own", "touch", CUDA_ERROR_ILLEGAL_ADDRESS, 8, 1, 0, 1 << 26 },
		{ "NULL", "touch", CUDA_ERROR_ILLEGAL_ADDRESS, 16, 1, 3, 0 },
		{ "an address that is not aligned", "touch", 716, 8, 0, 0, 4 },
		{ "3 bytes", "touch", 716, 3, 0, 0, 0 },
		{ "memory of another device without peer access", "touch", CUDA_ERROR_ILLEGAL_ADDRESS, 4, 1, 1, 0 },
		{ "by an atomic operation memory of another device", "add", CUDA_ERROR_ILLEGAL_ADDRESS, 8, 1, 1, 0 },
	};
	CUdeviceptr theirs = new_memory(64);
	uint64_t pageable[8] = { 0 };
	setenv("VIRTUAL_GPU_THREADS", "2", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[128];
		renew();
		if (strcmp(cases[i].kernel, "add") == 0)
			must(cuCtxEnablePeerAccess(context[0], 0));
		CUdeviceptr own = new_memory(256), at[] = { own, theirs, address(pageable), 0 };
		struct touch touch = { pointer(at[cases[i].from] + cases[i].offset), cases[i].bytes, cases[i].writes };
		snprintf(name, sizeof name, "a kernel may not touch %s", cases[i].name);
		is(fails(cases[i].kernel, &touch, own), cases[i].want, name);
	}
	unsetenv("VIRTUAL_GPU_THREADS");
	renew();
	is(launch(3, "nothing", 1, 1, NULL, NULL), CUDA_SUCCESS, "a new context works again");
	is(cuCtxSynchronize(), CUDA_SUCCESS, "indeed");
	use(0);
	is(cuCtxSynchronize(), CUDA_SUCCESS, "others do all the time");
	must(cuMemFree_v2(theirs));
}

static void
end_kernel(void *data)
{
	let_through(data);
}

/* Memory is freed, and a module unloaded, when the kernels of the device have ended. */
static void
test_waits(void)
{
	uint64_t *gate = new_pinned(4096);
	CUdeviceptr p = new_memory(64);
	struct wait wait = { gate, 1, pointer(p) };
	CUmodule m;
	CUfunction f;
	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&f, m, "wait"));
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	use(1);
	must(cuLaunchHostFunc(CU_STREAM_PER_THREAD, sleep_20_ms, NULL));
	must(cuLaunchHostFunc(CU_STREAM_PER_THREAD, end_kernel, gate));
	use(0);
	must(cuLaunchKernel(f, 2, 1, 1, 2, 1, 1, 0, s, (void *[]){ &wait }, NULL));
	is(cuModuleUnload(m), CUDA_SUCCESS, "a module is unloaded");
	is(cuStreamQuery(s), CUDA_SUCCESS, "when its kernels have ended");
	must(cuStreamDestroy_v2(s));
	must(cuMemFree_v2(p));
	must(cuMemFreeHost(gate));
}

int
main(void)
{
	setenv("VIRTUAL_GPU_BLOCKS", "8", 1);
	unsetenv("VIRTUAL_GPU_THREADS");
	unsetenv("VIRTUAL_GPU_WEAK");
	begin();
	test_modules();
	test_launches();
	test_at_once();
	test_room();
	test_token();
	test_weak();
	test_threads();
	test_waits();
	test_illegal();
	return end_tests();
}
