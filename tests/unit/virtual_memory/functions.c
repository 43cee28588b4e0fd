/* All functions of the driver: what they say without a context, to other settings, and when they are to fail. */
#include "unit/virtual_memory/virtual_memory.h"

#include <signal.h>
#include <sys/wait.h>

typedef CUresult (*Any)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);
static const struct function {
	const char *name;
	Any call;
} functions[] = {
#define ROW(member, name, must, parameters) { #name, (Any)(void (*)(void))name },
	DRIVER_LIST(ROW)
#undef ROW
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static CUresult
call(const struct function *f)
{
	return f->call(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

static bool
is_early(const char *name)
{
	return !strcmp(name, "cuInit") || !strcmp(name, "cuDriverGetVersion") || !strncmp(name, "cuGetError", 10);
}

bool
all_return(CUresult want)
{
	bool good = true;
	for (int i = 0; i < N_FUNCTIONS; i++)
		if (!is_early(functions[i].name))
			good = is(call(&functions[i]), want, functions[i].name) && good;
	return good;
}

static bool
needs_context(const char *name)
{
	static const char *const without[] = { "cuDevice", "cuMemPool", "cuCtxSet", "cuCtxGetCurrent", "cuCtxPush",
		"cuCtxPop", "cuPointer", "cuMemAddress", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap",
		"cuMemSetAccess", "cuMemGetAllocation", "cuMemExport", "cuMemImport", "cuMemRetain",
		"cuThreadExchange", NULL };
	for (int i = 0; without[i]; i++)
		if (strncmp(name, without[i], strlen(without[i])) == 0)
			return false;
	return !is_early(name);
}

static bool
is_memory(const char *name)
{
	return strncmp(name, "cuMem", 5) == 0 || strncmp(name, "cuIpc", 5) == 0 || strncmp(name, "cuCtx", 5) == 0;
}

void
test_without_context(void)
{
	bool good = true;
	for (int i = 0; i < N_FUNCTIONS; i++)
		if (needs_context(functions[i].name) && is_memory(functions[i].name))
			good = is(call(&functions[i]), CUDA_ERROR_INVALID_CONTEXT, functions[i].name) && good;
	ok(good, "functions that need a context say so");
}

/* ---- failures on request, and settings ---- */

/* Exit code: 0: good. */
bool
role_fails_each(void)
{
	bool good = true;
	for (int i = 0; i < N_FUNCTIONS; i++)
		good = is(call(&functions[i]), CUDA_ERROR_NOT_READY, functions[i].name) && good;
	return good;
}

bool
role_fails_second(void)
{
	CUcontext c;
	CUdeviceptr a, b;
	return GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 64)) && IS(cuMemAlloc_v2(&b, 64), CUDA_ERROR_OUT_OF_MEMORY) &&
	    GOOD(cuMemAlloc_v2(&b, 64)) && WANT(a != b);
}

bool
role_lost(void)
{
	CUcontext c;
	CUdeviceptr a;
	return GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 64)) && IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) &&
	    IS(cuMemFree_v2(a), CUDA_ERROR_LAUNCH_FAILED) && GOOD(cuDevicePrimaryCtxRelease_v2(0));
}

bool
role_refused(void)
{
	int version;
	return IS(cuInit(0), INVALID) && IS(cuDriverGetVersion(&version), INVALID) && all_return(INVALID);
}

bool
role_works(void)
{
	return GOOD(cuInit(0));
}

/* The host touches memory of a device. */
bool
role_touches(void)
{
	CUcontext c;
	CUdeviceptr a;
	bool good = GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 64)) && GOOD(put(a, 5));
	signal(SIGSEGV, SIG_DFL);
	return good && *(volatile uint64_t *)pointer(a) == 5;
}

void
test_requests(void)
{
	char text[16384] = "";
	for (int i = 0; i < N_FUNCTIONS; i++)
		sprintf(text + strlen(text), "%s%s:1:NOT_READY", i ? "," : "", functions[i].name + 2);
	ok(exits("fails-each", "VIRTUAL_GPU_FAIL", text, 0), "each function fails on request");
	ok(exits("fails-second", "VIRTUAL_GPU_FAIL", "MemAlloc:2:OUT_OF_MEMORY", 0), "the second call, and no other");
	ok(exits("lost", "VIRTUAL_GPU_FAIL", "CtxSynchronize:1:LAUNCH_FAILED", 0), "a device that is lost");
	int status = ended(start("fails-second", "VIRTUAL_GPU_FAIL", "MemAlloc:1:die", -1));
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a process that dies");
	status = ended(start("touches", NULL, NULL, -1));
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "the host cannot access memory of a device");
}

void
test_environment(void)
{
	static const char *const bad[][2] = {
		{ "VIRTUAL_GPU_FAIL", "MemAlloc" }, { "VIRTUAL_GPU_FAIL", "MemAlloc:0" },
		{ "VIRTUAL_GPU_FAIL", "MemAlloc:1:" }, { "VIRTUAL_GPU_FAIL", "Nothing:1" },
		{ "VIRTUAL_GPU_FAIL", "MemAlloc:1,,MemFree:1" }, { "VIRTUAL_GPU_FAIL", "MemAlloc:1:OUT_OF_MEMORY:1" },
	};
	static const char *const bad_init[][2] = {
		{ "VIRTUAL_GPU_TOPOLOGY", "/nowhere" }, { "VIRTUAL_GPU_TOPOLOGY", "topologies/two-dgx1v.xml" },
		{ "VIRTUAL_GPU_TOPOLOGY", "Makefile" }, { "VIRTUAL_GPU_SCALE", "fast" },
	};
	bool good = true;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		good = exits("refused", bad[i][0], bad[i][1], 0) && good;
	ok(good, "bad requests of failures are refused");
	good = true;
	for (size_t i = 0; i < sizeof bad_init / sizeof *bad_init; i++)
		good = exits("refused-late", bad_init[i][0], bad_init[i][1], 0) && good;
	ok(good, "bad topologies and numbers are refused");
	good = exits("works", "VIRTUAL_GPU_TOPOLOGY", "topologies/dgx2.xml", 0) &&
	    exits("works", "VIRTUAL_GPU_TOPOLOGY", "topologies/dgx1p.json", 0);
	ok(good, "other topologies");
}

bool
role_refused_late(void)
{
	int n;
	return IS(cuInit(0), INVALID) && IS(cuDeviceGetCount(&n), INVALID);
}

/* A child of fork has no driver. */
void
test_fork(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		bool good = all_return(CUDA_ERROR_NOT_INITIALIZED) && IS(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
		fflush(stdout);
		_exit(good ? 0 : 1);
	}
	ok(ended(child) == 0, "a child of fork has no driver");
}
