/* For tests of the virtual GPUs: results, devices with a context each, memory and kernels. */
#include "../virtual_gpu/more.h"
#include "../virtual_gpu/test/twins.h"
#include "tap.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#define PROTOTYPE(member, name, must, parameters) CUresult name parameters;
DRIVER_LIST(PROTOTYPE)
#undef PROTOTYPE
#pragma GCC visibility pop

/* A call that returned `r` should have returned `want`. */
static inline void
is(CUresult r, CUresult want, const char *name)
{
	ok(r == want, name);
	if (r != want)
		printf("# returned %d: want %d\n", r, want);
}

/* What a test needs to go on. */
static void
must(CUresult r)
{
	if (r == CUDA_SUCCESS)
		return;
	const char *name = "?";
	cuGetErrorName(r, &name);
	printf("not ok %d - a call that should work: %s\n", ++n_tests, name);
	fflush(stdout);
	_exit(1);
}

static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry fill(.param .align 8 .b8 p[24]) { ret; }\n.visible .entry wait (\n) { ret; }\n"
    ".visible .entry token() { ret; }\n.visible .entry send() { ret; }\n.visible .entry receive() { ret; }\n"
    ".visible .entry own() { ret; }\n.visible .entry barrier() { ret; }\n.visible .entry crowd() { ret; }\n"
    ".visible .entry touch() { ret; }\n.visible .entry add() { ret; }\n.visible .entry nothing() { ret; }\n"
    ".visible .entry step() { ret; }\n"
    ".visible .entry most() { ret; }\n.visible .entry more() { ret; }\n.visible .entry lonely() { ret; }\n";

enum { DEVICES = 4 };

static CUcontext context[DEVICES];
static CUmodule module[DEVICES];

/* The twins are in a folder beside that of this program. */
static void
name_twins(void)
{
	char path[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	path[n < 0 ? 0 : n] = '\0';
	for (int i = 0; i < 2; i++)
		if ((slash = strrchr(path, '/')))
			*slash = '\0';
	strcat(path, "/virtual_gpu/test/twins.so");
	setenv("VIRTUAL_GPU_KERNELS", path, 1);
}

static inline void
use(int device)
{
	must(cuCtxSetCurrent(context[device]));
}

/* The module, into the current context, and every kernel that has a twin: to load one later waits for what is held. */
static inline void
load(int device)
{
	CUfunction f;
	char name[64];
	must(cuModuleLoadData(&module[device], ptx));
	for (const char *at = ptx; (at = strstr(at, ".entry ")); at++)
		if (sscanf(at, ".entry %63[A-Za-z0-9_]", name) == 1
		    && cuModuleGetFunction(&f, module[device], name) == CUDA_SUCCESS)
			must(cuFuncLoad(f));
}

/* Each device has a context, with peer access to each other, and the module. Device 0 is current. */
static inline void
begin(void)
{
	unsetenv("VIRTUAL_GPU_TOPOLOGY");
	unsetenv("VIRTUAL_GPU_FAIL");
	setenv("VIRTUAL_GPU_COUNT", "4", 1);
	name_twins();
	alarm(120);
	setvbuf(stdout, NULL, _IOLBF, 0);
	must(cuInit(0));
	for (int i = 0; i < DEVICES; i++)
		must(cuDevicePrimaryCtxRetain(&context[i], i));
	for (int i = 0; i < DEVICES; i++) {
		use(i);
		for (int k = 0; k < DEVICES; k++)
			if (k != i)
				must(cuCtxEnablePeerAccess(context[k], 0));
		load(i);
	}
	use(0);
}

/* Of the current context. */
static inline CUfunction
function_of(int device, const char *name)
{
	CUfunction f;
	must(cuModuleGetFunction(&f, module[device], name));
	return f;
}

static inline CUresult
launch(int device, const char *name, unsigned blocks, unsigned threads, CUstream stream, const void *parameter)
{
	void *parameters[] = { (void *)(uintptr_t)parameter };
	return cuLaunchKernel(function_of(device, name), blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

static inline void *
pointer(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

static inline CUdeviceptr
address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* Zeroed memory of the current context. */
static inline CUdeviceptr
new_memory(size_t bytes)
{
	CUdeviceptr p;
	must(cuMemAlloc_v2(&p, bytes));
	must(cuMemsetD8_v2(p, 0, bytes));
	must(cuCtxSynchronize());
	return p;
}

/* Of the host, pinned, zeroed. */
static inline void *
new_pinned(size_t bytes)
{
	void *p;
	must(cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	memset(p, 0, bytes);
	return p;
}

static inline CUstream
new_stream(unsigned flags)
{
	CUstream s;
	must(cuStreamCreate(&s, flags));
	return s;
}

static inline CUevent
new_event(unsigned flags)
{
	CUevent e;
	must(cuEventCreate(&e, flags));
	return e;
}

static inline uint64_t
word_at(CUdeviceptr p)
{
	uint64_t value;
	must(cuMemcpyDtoH_v2(&value, p, sizeof value));
	return value;
}

static inline void
sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* A stream that holds its later work back until `gate`, a word of pinned memory, is 1. */
static inline void
hold_back(CUstream s, uint32_t *gate)
{
	must(cuStreamWaitValue32_v2(s, address(gate), 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static inline void
let_through(uint32_t *gate)
{
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

/* For cuLaunchHostFunc. */
static inline void
sleep_20_ms(void *data)
{
	(void)data;
	sleep_ms(20);
}
