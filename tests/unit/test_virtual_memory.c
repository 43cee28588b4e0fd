/* The virtual driver's devices, contexts and memory: what CUDA allows, and what it refuses; memory of other processes;
 * failures on request. Other processes, and those with another environment, are this program again, by a role. */
#include "virtual_gpu/virtual_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 256 << 20, MIB = 1 << 20, UNIT = 2 << 20, SECONDS_MOST = 240, SOCKET = 3, CHILD = 77 };

static int n_tests, n_failed;
static const char *program;

static void
ok(bool good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_tests, name);
	n_failed += !good;
}

/* Of several cases of one test: says which is wrong. */
static bool
is(CUresult got, CUresult want, const char *what)
{
	if (got != want)
		printf("# %s: %d: want %d\n", what, (int)got, (int)want);
	return got == want;
}
#define IS(call, want) is(call, want, #call)
#define GOOD(call) IS(call, CUDA_SUCCESS)
#define WANT(condition) ((condition) ? true : (printf("# not so: %s\n", #condition), false))

static CUdeviceptr
address(const void *at)
{
	return (CUdeviceptr)(uintptr_t)at;
}

static void *
pointer(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

/* The host reads and writes memory of devices by copies. */
static CUresult
put(CUdeviceptr to, uint64_t value)
{
	return cuMemcpy(to, address(&value), sizeof value);
}

static uint64_t
get(CUdeviceptr from)
{
	uint64_t value = 0;
	return cuMemcpy(address(&value), from, sizeof value) == CUDA_SUCCESS ? value : UINT64_MAX;
}

static CUcontext
context(CUdevice device)
{
	return (CUcontext)context_of(device);
}

/* May a kernel of a device access these bytes? */
static CUresult
access_by(int device, CUdeviceptr at, size_t bytes, bool writes)
{
	struct memory_cache cache = { 0 };
	int owner;
	return memory_access(device, pointer(at), bytes, writes, false, &cache, &owner);
}

#define ILLEGAL CUDA_ERROR_ILLEGAL_ADDRESS
#define INVALID CUDA_ERROR_INVALID_VALUE

/* ---- every function of the list ---- */

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

/* All but those that need no cuInit, without arguments. */
static bool
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
	static const char *const without[] = { "cuDevice", "cuCtxSet", "cuCtxGetCurrent", "cuCtxPush", "cuCtxPop",
		"cuPointer", "cuMemAddress", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
		"cuMemGetAllocation", "cuMemExport", "cuMemImport", "cuMemRetain", "cuThreadExchange", NULL };
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

static void
test_without_context(void)
{
	bool good = true;
	for (int i = 0; i < N_FUNCTIONS; i++)
		if (needs_context(functions[i].name) && is_memory(functions[i].name))
			good = is(call(&functions[i]), CUDA_ERROR_INVALID_CONTEXT, functions[i].name) && good;
	ok(good, "functions that need a context say so");
}

/* ---- other processes ---- */

/* This program again, in a role, with one variable of the environment; socket: becomes its SOCKET, or -1. */
static pid_t
start(const char *role, const char *variable, const char *value, int socket)
{
	fflush(stdout);
	pid_t child = fork();
	if (child != 0)
		return child;
	if (variable)
		setenv(variable, value, 1);
	if (socket >= 0)
		fcntl(dup2(socket, SOCKET), F_SETFD, 0);
	execl(program, program, "role", role, (char *)NULL);
	_exit(127);
}

static int
ended(pid_t child)
{
	int status = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static bool
exits(const char *role, const char *variable, const char *value, int want)
{
	int status = ended(start(role, variable, value, -1));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
		printf("# %s with %s=%s: status %x: want exit %d\n", role, variable, value, (unsigned)status, want);
	return WIFEXITED(status) && WEXITSTATUS(status) == want;
}

/* Exit code: 0: good. */
static bool
role_fails_each(void)
{
	bool good = true;
	for (int i = 0; i < N_FUNCTIONS; i++)
		good = is(call(&functions[i]), CUDA_ERROR_NOT_READY, functions[i].name) && good;
	return good;
}

static bool
role_fails_second(void)
{
	CUcontext c;
	CUdeviceptr a, b;
	return GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 64)) && IS(cuMemAlloc_v2(&b, 64), CUDA_ERROR_OUT_OF_MEMORY) &&
	    GOOD(cuMemAlloc_v2(&b, 64)) && WANT(a != b);
}

static bool
role_lost(void)
{
	CUcontext c;
	CUdeviceptr a;
	return GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 64)) && IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) &&
	    IS(cuMemFree_v2(a), CUDA_ERROR_LAUNCH_FAILED) && GOOD(cuDevicePrimaryCtxRelease_v2(0));
}

static bool
role_refused(void)
{
	int version;
	return IS(cuInit(0), INVALID) && IS(cuDriverGetVersion(&version), INVALID) && all_return(INVALID);
}

static bool
role_works(void)
{
	return GOOD(cuInit(0));
}

/* The host touches memory of a device. */
static bool
role_touches(void)
{
	CUcontext c;
	CUdeviceptr a;
	bool good = GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 64)) && GOOD(put(a, 5));
	signal(SIGSEGV, SIG_DFL);
	return good && *(volatile uint64_t *)pointer(a) == 5;
}

static void
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

static void
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

static bool
role_refused_late(void)
{
	int n;
	return IS(cuInit(0), INVALID) && IS(cuDeviceGetCount(&n), INVALID);
}

/* A child of fork has no driver. */
static void
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

/* ---- devices ---- */

static bool
check_device(int device)
{
	char name[64], id[32], wanted[32];
	int major, minor, domain, bus, slot, value;
	size_t bytes;
	CUuuid uuid, other;
	bool good = GOOD(cuDeviceGetName(name, sizeof name, device)) && WANT(!strcmp(name, "Virtual V100")) &&
	    GOOD(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)) &&
	    GOOD(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)) &&
	    WANT(major == 7 && minor == 0) &&
	    GOOD(cuDeviceGetAttribute(&domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device)) &&
	    GOOD(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device)) &&
	    GOOD(cuDeviceGetAttribute(&slot, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device)) &&
	    GOOD(cuDeviceGetPCIBusId(id, sizeof id, device)) &&
	    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)) && WANT(value > 0 &&
	    value <= 64) &&
	    IS(cuDeviceGetAttribute(&value, 100000, device), INVALID) &&
	    GOOD(cuDeviceTotalMem_v2(&bytes, device)) && WANT(bytes == MEMORY) &&
	    GOOD(cuDeviceGetUuid(&uuid, device)) && GOOD(cuDeviceGetUuid(&other, device ^ 1)) &&
	    WANT(memcmp(&uuid, &other, sizeof uuid) != 0);
	if (!good)
		return false;
	snprintf(wanted, sizeof wanted, "%04x:%02x:%02x.0", (unsigned)domain, (unsigned)bus, (unsigned)slot);
	return WANT(!strcmp(id, wanted));
}

static void
test_devices(void)
{
	int n, version, can, value;
	CUdevice device;
	ok(GOOD(cuDriverGetVersion(&version)) && WANT(version == 12080), "version");
	ok(all_return(CUDA_ERROR_NOT_INITIALIZED), "nothing works before cuInit");
	ok(IS(cuInit(1), INVALID) && GOOD(cuInit(0)) && GOOD(cuInit(0)), "cuInit");
	bool good = GOOD(cuDeviceGetCount(&n)) && WANT(n == 8);
	for (int i = 0; i < 8; i++)
		good = GOOD(cuDeviceGet(&device, i)) && WANT(device == i) && check_device(i) && good;
	ok(good, "devices");
	ok(IS(cuDeviceGet(&device, 8), CUDA_ERROR_INVALID_DEVICE) && IS(cuDeviceGet(NULL, 0), INVALID) &&
	    IS(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE) &&
	    IS(cuDeviceGetName(NULL, 3, 0), INVALID), "other devices are refused");
	ok(GOOD(cuDeviceCanAccessPeer(&can, 0, 4)) && WANT(can) && GOOD(cuDeviceCanAccessPeer(&can, 0, 5)) &&
	    WANT(!can) && GOOD(cuDeviceCanAccessPeer(&can, 0, 0)) && WANT(!can), "peers, as NVLink has them");
	ok(GOOD(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 3)) && WANT(value == 0) &&
	    GOOD(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1)) && WANT(value == 1) &&
	    GOOD(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 5)) && WANT(value == 0) &&
	    IS(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
	    CUDA_ERROR_INVALID_DEVICE), "what they are worth");
}

static void
test_names(void)
{
	const char *text;
	bool good = GOOD(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text)) &&
	    WANT(!strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY")) &&
	    GOOD(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text)) && WANT(!strcmp(text, "out of memory")) &&
	    GOOD(cuGetErrorString(CUDA_SUCCESS, &text)) && WANT(!strcmp(text, "no error")) &&
	    IS(cuGetErrorName(12345, &text), INVALID) && WANT(!text);
	ok(good, "names of errors");
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, int *status);

static void
test_addresses(void)
{
	void *function;
	int status;
	ok(GOOD(cuGetProcAddress_v2("cuMemAlloc", &function, 12080, 0, &status)) && WANT(status == 0) &&
	    WANT(function == (void *)cuMemAlloc_v2) &&
	    GOOD(cuGetProcAddress_v2("cuMemAlloc_v2", &function, 12080, 0, NULL)) &&
	    WANT(function == (void *)cuMemAlloc_v2) &&
	    GOOD(cuGetProcAddress_v2("cuLaunchKernel", &function, 12080, 0, NULL)) &&
	    IS(cuGetProcAddress_v2("cuNothing", &function, 12080, 0, &status), CUDA_ERROR_NOT_FOUND) &&
	    WANT(status == 1 && !function), "addresses of functions");
}

/* ---- contexts ---- */

static void *
other_thread(void *out)
{
	CUcontext c = (CUcontext)out;
	*(bool *)out = GOOD(cuCtxGetCurrent(&c)) && WANT(!c) && IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT) &&
	    GOOD(cuCtxSetCurrent(context(1)));
	return NULL;
}

static void
test_contexts(void)
{
	CUcontext a, b, c;
	CUdevice device;
	pthread_t thread;
	bool other = false;
	ok(IS(cuCtxSetCurrent(context(0)), CUDA_ERROR_CONTEXT_IS_DESTROYED) &&
	    IS(cuCtxSetCurrent((CUcontext)&n_tests), CUDA_ERROR_INVALID_CONTEXT) &&
	    IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT) &&
	    IS(cuCtxPopCurrent_v2(&c), CUDA_ERROR_INVALID_CONTEXT), "contexts that are not there");
	ok(GOOD(cuDevicePrimaryCtxRetain(&a, 0)) && GOOD(cuDevicePrimaryCtxRetain(&b, 1)) && WANT(a != b) &&
	    GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && WANT(a == c) && GOOD(cuDevicePrimaryCtxRelease_v2(0)),
	    "primary contexts");
	ok(GOOD(cuCtxSetCurrent(a)) && GOOD(cuCtxPushCurrent_v2(b)) && GOOD(cuCtxGetDevice(&device)) &&
	    WANT(device == 1) && GOOD(cuCtxPopCurrent_v2(&c)) && WANT(c == b) && GOOD(cuCtxGetCurrent(&c)) &&
	    WANT(c == a) && GOOD(cuCtxSetCurrent(NULL)) && GOOD(cuCtxGetCurrent(&c)) && WANT(!c) &&
	    GOOD(cuCtxSetCurrent(a)), "current contexts");
	if (pthread_create(&thread, NULL, other_thread, &other) == 0)
		pthread_join(thread, NULL);
	ok(other && GOOD(cuCtxGetCurrent(&c)) && WANT(c == a), "each thread has its own");
}

/* Contexts 0 and 1 stay; 0 is current. */
static void
test_peers(void)
{
	CUcontext c;
	CUdeviceptr own = 0, peer = 0;
	bool good = GOOD(cuDevicePrimaryCtxRetain(&c, 5)) && GOOD(cuMemAlloc_v2(&own, 64)) &&
	    GOOD(cuCtxSetCurrent(context(1))) && GOOD(cuMemAlloc_v2(&peer, 64)) && GOOD(cuCtxSetCurrent(context(0)));
	ok(good && IS(cuCtxEnablePeerAccess(context(5), 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) &&
	    IS(cuCtxEnablePeerAccess(context(1), 1), INVALID) &&
	    IS(cuCtxEnablePeerAccess(context(0), 0), CUDA_ERROR_INVALID_CONTEXT) &&
	    IS(cuCtxEnablePeerAccess(context(7), 0), CUDA_ERROR_INVALID_CONTEXT) &&
	    IS(cuCtxDisablePeerAccess(context(1)), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED), "peers that cannot be");
	ok(GOOD(access_by(0, own, 64, true)) && IS(access_by(0, peer, 64, false), ILLEGAL) &&
	    WANT(!memory_direct(0, 1)) &&
	    GOOD(cuCtxEnablePeerAccess(context(1), 0)) &&
	    IS(cuCtxEnablePeerAccess(context(1), 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) &&
	    GOOD(access_by(0, peer, 64, true)) && IS(access_by(1, own, 64, false), ILLEGAL) &&
	    WANT(memory_direct(1, 0)) && GOOD(cuCtxDisablePeerAccess(context(1))) &&
	    IS(access_by(0, peer, 64, true), ILLEGAL) && WANT(!memory_direct(0, 1)), "peer access, one way");
	ok(GOOD(cuCtxEnablePeerAccess(context(1), 0)) && GOOD(cuMemFree_v2(peer)) &&
	    GOOD(cuDevicePrimaryCtxRelease_v2(1)) && GOOD(cuDevicePrimaryCtxRetain(&c, 1)) &&
	    GOOD(cuCtxEnablePeerAccess(context(1), 0)) && GOOD(cuCtxDisablePeerAccess(context(1))) &&
	    GOOD(cuMemFree_v2(own)) && GOOD(cuDevicePrimaryCtxRelease_v2(5)), "it ends with the peer's context");
}

/* A context that has failed. */
static void
test_sticky(void)
{
	CUdeviceptr a = 0, b;
	CUcontext c;
	bool good = GOOD(cuCtxSetCurrent(context(1))) && GOOD(cuMemAlloc_v2(&a, 64));
	context_fail(context_of(1), CUDA_ERROR_ILLEGAL_ADDRESS);
	context_fail(context_of(1), CUDA_ERROR_LAUNCH_FAILED);
	ok(good && IS(cuMemAlloc_v2(&b, 64), ILLEGAL) && IS(cuCtxSynchronize(), ILLEGAL) &&
	    IS(cuMemFree_v2(a), ILLEGAL) &&
	    GOOD(cuCtxSetCurrent(context(0))) && GOOD(cuMemAlloc_v2(&b, 64)) && GOOD(cuMemFree_v2(b)),
	    "a context keeps its first error");
	ok(GOOD(cuDevicePrimaryCtxRelease_v2(1)) && IS(access_by(1, a, 64, false), ILLEGAL) &&
	    GOOD(cuDevicePrimaryCtxRetain(&c, 1)) && GOOD(cuCtxSetCurrent(c)) && GOOD(cuMemAlloc_v2(&b, 64)) &&
	    GOOD(cuMemFree_v2(b)) && GOOD(cuCtxSetCurrent(context(0))), "until it is gone, with its memory");
}

/* ---- memory of devices ---- */

static void
test_memory(void)
{
	CUdeviceptr a, b, base;
	size_t bytes, left, total;
	unsigned char junk[64] = { 0 };
	ok(GOOD(cuMemAlloc_v2(&a, 1000)) && GOOD(cuMemAlloc_v2(&b, 3 * MIB)) && WANT(a % 256 == 0 && b % 256 == 0) &&
	    GOOD(cuMemcpy(address(junk), a, 64)) && WANT(junk[0] && junk[63]) && GOOD(put(a + 992, 17)) &&
	    GOOD(cuMemcpy(b + 3 * MIB - 8, a + 992, 8)) && WANT(get(b + 3 * MIB - 8) == 17), "memory, not zeroed");
	ok(GOOD(access_by(0, a, 1000, true)) && IS(access_by(0, a, 1001, true), ILLEGAL) &&
	    IS(access_by(0, a - 1, 2, false), ILLEGAL) && IS(cuMemcpy(a, b, 1001), INVALID) &&
	    IS(access_by(0, address(junk), 8, false), ILLEGAL), "what is beside it is refused");
	ok(GOOD(cuMemGetAddressRange_v2(&base, &bytes, a + 999)) && WANT(base == a && bytes == 1000) &&
	    IS(cuMemGetAddressRange_v2(&base, &bytes, a + 1000), CUDA_ERROR_NOT_FOUND), "address ranges");
	ok(GOOD(cuMemGetInfo_v2(&left, &total)) && WANT(total == MEMORY && left < MEMORY - 3 * MIB &&
	    left > MEMORY - 4 * MIB) && IS(cuMemAlloc_v2(&base, left + 1), CUDA_ERROR_OUT_OF_MEMORY) &&
	    IS(cuMemAlloc_v2(&base, SIZE_MAX - 5), CUDA_ERROR_OUT_OF_MEMORY) && IS(cuMemAlloc_v2(&base, 0), INVALID) &&
	    IS(cuMemAlloc_v2(NULL, 8), INVALID), "there is so much of it");
	ok(IS(cuMemFree_v2(a + 8), INVALID) && IS(cuMemFree_v2(address(junk)), INVALID) &&
	    IS(cuMemFree_v2(0), INVALID) &&
	    GOOD(cuMemFree_v2(a)) && IS(cuMemFree_v2(a), INVALID) && GOOD(cuMemFree_v2(b)),
	    "free, once, and what it is");
	ok(IS(access_by(0, a, 8, false), ILLEGAL) && IS(put(a, 1), INVALID) && GOOD(cuMemGetInfo_v2(&left, &total)) &&
	    WANT(left == total), "freed memory");
}

/* Addresses of what is freed stay free for long. */
static void
test_addresses_of_freed(void)
{
	CUdeviceptr first, next = 0;
	bool good = GOOD(cuMemAlloc_v2(&first, MIB)) && GOOD(cuMemFree_v2(first));
	for (int i = 0; i < 200 && good; i++)
		good = GOOD(cuMemAlloc_v2(&next, MIB)) && WANT(next != first) && GOOD(cuMemFree_v2(next));
	ok(good, "addresses are not used again soon");
}

/* ---- memory of the host ---- */

static void
test_host(void)
{
	void *portable = NULL, *own = NULL;
	CUdeviceptr d;
	ok(GOOD(cuMemHostAlloc(&portable, 5000, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)) &&
	    GOOD(cuMemHostAlloc(&own, 100, CU_MEMHOSTALLOC_DEVICEMAP)) && IS(cuMemHostAlloc(&own, 0, 0), INVALID) &&
	    IS(cuMemHostAlloc(&own, 8, 64), INVALID) && WANT(*(char *)own != 0), "memory of the host");
	ok(GOOD(cuMemHostGetDevicePointer_v2(&d, (char *)portable + 8, 0)) && WANT(d == address(portable) + 8) &&
	    GOOD(access_by(0, address(own), 100, true)) && GOOD(access_by(1, address(portable), 5000, true)) &&
	    IS(access_by(1, address(own), 100, true), ILLEGAL) && IS(access_by(0, address(own), 101, true), ILLEGAL) &&
	    IS(cuMemHostGetDevicePointer_v2(&d, &d, 0), INVALID) &&
	    IS(cuMemHostGetDevicePointer_v2(&d, own, 1), INVALID), "who may access it");
	ok(IS(cuMemFreeHost((char *)own + 1), INVALID) && IS(cuMemFree_v2(address(own)), INVALID) &&
	    IS(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) && GOOD(cuMemFreeHost(own)) &&
	    IS(cuMemFreeHost(own), INVALID) && GOOD(cuMemFreeHost(portable)), "it is freed once");
}

static void
test_registered(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr d;
	munmap(at + 3 * page, page);
	ok(GOOD(cuMemHostRegister_v2(at, 2 * page, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)) &&
	    IS(cuMemHostRegister_v2(at + page, 2 * page, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) &&
	    IS(cuMemHostRegister_v2(at + 2 * page, 2 * page, 0), INVALID) &&
	    IS(cuMemHostRegister_v2(at + 2 * page, 8, 64), INVALID) && IS(cuMemHostRegister_v2(NULL, 8, 0), INVALID) &&
	    GOOD(cuMemHostRegister_v2(at + 2 * page, 8, 0)), "registered memory of the host");
	ok(GOOD(access_by(1, address(at), 2 * page, true)) && GOOD(cuMemHostGetDevicePointer_v2(&d, at + 5, 0)) &&
	    WANT(d == address(at) + 5) && GOOD(access_by(0, address(at) + 2 * page, 8, true)) &&
	    IS(access_by(1, address(at) + 2 * page, 8, true), ILLEGAL), "who may access that");
	ok(IS(cuMemHostUnregister(at + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) && IS(cuMemFreeHost(at), INVALID) &&
	    GOOD(cuMemHostUnregister(at)) && IS(cuMemHostUnregister(at), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) &&
	    IS(access_by(0, address(at), 8, false), ILLEGAL) && GOOD(cuMemHostUnregister(at + 2 * page)),
	    "it is unregistered once");
	munmap(at, 3 * page);
}

static void
test_attributes(void)
{
	CUpointer_attribute what[] = { CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	CUcontext c;
	unsigned type;
	int device;
	CUdeviceptr start, a = 0, host_at;
	size_t bytes;
	void *values[] = { &c, &type, &device, &start, &bytes }, *host = NULL;
	bool good = GOOD(cuMemAlloc_v2(&a, 640)) && GOOD(cuMemHostAlloc(&host, 64, 0));
	host_at = address(host);
	ok(good && GOOD(cuPointerGetAttributes(5, what, values, a + 639)) && WANT(c == context(0)) &&
	    WANT(type == CU_MEMORYTYPE_DEVICE && device == 0 && start == a && bytes == 640), "attributes of a pointer");
	ok(GOOD(cuPointerGetAttributes(5, what, values, host_at)) && WANT(type == CU_MEMORYTYPE_HOST && device == 0) &&
	    WANT(start == host_at && bytes == 64), "of one of the host");
	ok(GOOD(cuPointerGetAttributes(5, what, values, address(&c))) && WANT(!c && !type && device == -2 && !bytes) &&
	    IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(&c)), INVALID) &&
	    GOOD(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a)) &&
	    IS(cuPointerGetAttribute(&type, 12345, a), INVALID), "of one that CUDA does not know");
	ok(GOOD(cuMemFree_v2(a)) && GOOD(cuMemFreeHost(host)), "they are freed");
}

/* ---- memory that the program maps ---- */

static const CUmemAllocationProp on_device_1 = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };

static CUmemAccessDesc
access_of(int device, int flags)
{
	return (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
}

static void
test_reserve(void)
{
	CUdeviceptr a, b;
	ok(IS(cuMemAddressReserve(&a, UNIT + 1, 0, 0, 0), INVALID) &&
	    IS(cuMemAddressReserve(&a, 0, 0, 0, 0), INVALID) &&
	    IS(cuMemAddressReserve(&a, UNIT, 3 * UNIT, 0, 0), INVALID) &&
	    IS(cuMemAddressReserve(&a, (size_t)1 << 50, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY),
	    "addresses that cannot be");
	ok(GOOD(cuMemAddressReserve(&a, 4 * UNIT, 16 * UNIT, 0, 0)) && WANT(a % (16 * UNIT) == 0) &&
	    IS(access_by(0, a, 8, false), ILLEGAL) && IS(cuMemAddressFree(a, UNIT), INVALID) &&
	    IS(cuMemFree_v2(a), INVALID) && GOOD(cuMemAddressFree(a, 4 * UNIT)) &&
	    IS(cuMemAddressFree(a, 4 * UNIT), INVALID), "reserved addresses");
	ok(GOOD(cuMemAddressReserve(&b, UNIT, 0, a, 0)) && WANT(a == b) &&
	    GOOD(cuMemAddressReserve(&a, UNIT, 0, b, 0)) &&
	    WANT(a != b) && GOOD(cuMemAddressFree(a, UNIT)) && GOOD(cuMemAddressFree(b, UNIT)), "those that one wants");
}

static void
test_create(void)
{
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp what = on_device_1;
	size_t bytes;
	ok(GOOD(cuMemGetAllocationGranularity(&bytes, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM)) &&
	    WANT(bytes == UNIT) &&
	    IS(cuMemCreate(&h, MIB, &what, 0), INVALID) && IS(cuMemCreate(&h, UNIT, NULL, 0), INVALID) &&
	    IS(cuMemCreate(&h, MEMORY + UNIT, &what, 0), CUDA_ERROR_OUT_OF_MEMORY) &&
	    (what.location.id = 8, IS(cuMemCreate(&h, UNIT, &what, 0), CUDA_ERROR_INVALID_DEVICE)) &&
	    (what = on_device_1, what.requestedHandleTypes = 2,
	    IS(cuMemCreate(&h, UNIT, &what, 0), CUDA_ERROR_NOT_SUPPORTED)) &&
	    IS(cuMemRelease(0), INVALID) && IS(cuMemRelease(123456), INVALID), "memory that cannot be");
}

/* Two handles behind each other, and a gap. */
static void
test_map(void)
{
	CUmemGenericAllocationHandle h[2], again;
	CUmemAccessDesc both[2] = { access_of(0, 3), access_of(1, 1) }, far = access_of(4, 3), none = access_of(0, 0);
	CUdeviceptr a = 0, base;
	size_t bytes;
	struct allocation found;
	bool good = GOOD(cuMemAddressReserve(&a, 4 * UNIT, 0, 0, 0)) &&
	    GOOD(cuMemCreate(&h[0], UNIT, &on_device_1, 0)) &&
	    GOOD(cuMemCreate(&h[1], 2 * UNIT, &on_device_1, 0));
	ok(good && GOOD(cuMemMap(a, UNIT, 0, h[0], 0)) && GOOD(cuMemMap(a + UNIT, 2 * UNIT, 0, h[1], 0)) &&
	    IS(cuMemMap(a, UNIT, 0, h[0], 0), INVALID) && IS(cuMemMap(a + 3 * UNIT, UNIT, UNIT, h[1], 0), INVALID) &&
	    IS(cuMemMap(a + 3 * UNIT, 2 * UNIT, 0, h[1], 0), INVALID) &&
	    IS(cuMemMap(a + 3 * UNIT, UNIT, 0, 5, 0), INVALID) &&
	    IS(cuMemMap(a + 3 * UNIT + 512, UNIT, 0, h[0], 0), INVALID), "memory is mapped");
	ok(IS(access_by(1, a, 8, false), ILLEGAL) && IS(cuMemSetAccess(a, 4 * UNIT, both, 2), INVALID) &&
	    IS(cuMemSetAccess(a, UNIT / 2, both, 2), INVALID) &&
	    IS(cuMemSetAccess(a, UNIT, &far, 1), CUDA_ERROR_INVALID_DEVICE) &&
	    IS(cuMemSetAccess(a, UNIT, both, 0), INVALID) &&
	    WANT(!memory_direct(0, 1)) && GOOD(cuMemSetAccess(a, 3 * UNIT, both, 2)) && WANT(memory_direct(0, 1)) &&
	    GOOD(access_by(0, a + UNIT - 8, 16, true)) && GOOD(access_by(1, a, 3 * UNIT, false)) &&
	    IS(access_by(1, a, 8, true), ILLEGAL) && IS(access_by(0, a, 3 * UNIT + 1, true), ILLEGAL) &&
	    IS(access_by(2, a, 8, false), ILLEGAL), "who may access it");
	ok(GOOD(put(a + UNIT - 4, UINT64_C(0x1234567812345678))) &&
	    WANT(get(a + UNIT - 4) == UINT64_C(0x1234567812345678)) &&
	    GOOD(cuMemGetAddressRange_v2(&base, &bytes, a + UNIT)) && WANT(base == a + UNIT && bytes == 2 * UNIT) &&
	    WANT(memory_find(pointer(a), 3 * UNIT, &found) && !memory_find(pointer(a), 3 * UNIT + 1, &found)) &&
	    IS(cuMemFree_v2(a), INVALID), "across two of them");
	ok(GOOD(cuMemSetAccess(a, UNIT, &none, 1)) && IS(access_by(0, a, 8, false), ILLEGAL) &&
	    GOOD(access_by(0, a + UNIT, 8, true)), "access is taken back");
	ok(GOOD(cuMemRetainAllocationHandle(&again, pointer(a + 8))) && WANT(again == h[0]) &&
	    GOOD(cuMemRelease(h[0])) &&
	    GOOD(cuMemRelease(h[0])) && IS(cuMemRelease(h[0]), INVALID) &&
	    GOOD(cuMemRetainAllocationHandle(&again, pointer(a))) && WANT(again != h[0]) && GOOD(cuMemRelease(again)) &&
	    IS(cuMemRetainAllocationHandle(&again, &a), INVALID), "handles are counted");
	ok(IS(cuMemUnmap(a, 2 * UNIT), INVALID) && IS(cuMemAddressFree(a, 4 * UNIT), INVALID) &&
	    GOOD(cuMemUnmap(a, 3 * UNIT)) && IS(cuMemUnmap(a, 3 * UNIT), INVALID) && WANT(!memory_direct(0, 1)) &&
	    IS(access_by(0, a + UNIT, 8, true), ILLEGAL) && GOOD(cuMemMap(a + UNIT, UNIT, 0, h[1], 0)) &&
	    GOOD(cuMemUnmap(a + UNIT, UNIT)) && GOOD(cuMemRelease(h[1])) && GOOD(cuMemAddressFree(a, 4 * UNIT)),
	    "it is unmapped");
}

static void
test_capture(void)
{
	CUstream stream;
	CUgraph graph;
	CUdeviceptr a;
	bool good = GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) &&
	    GOOD(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	ok(good && IS(cuMemAlloc_v2(&a, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) &&
	    IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) &&
	    GOOD(cuStreamDestroy_v2(stream)) && GOOD(cuMemAlloc_v2(&a, 64)) && GOOD(cuMemFree_v2(a)),
	    "a capture forbids to take memory");
}

/* ---- at random ---- */

enum { PLACES = 60, STEPS = 4000 };

/* Memory, or reserved addresses. */
struct place {
	CUdeviceptr at;
	size_t bytes;
	bool reserved;
};

static uint64_t random_state;

static uint64_t
random_below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

static bool
beside_others(const struct place *place, int this)
{
	const struct place *p = &place[this];
	for (int i = 0; i < PLACES; i++)
		if (i != this && place[i].at && p->at < place[i].at + place[i].bytes &&
		    place[i].at < p->at + p->bytes)
			return false;
	return true;
}

/* Up to 64 GiB of addresses, so that they are soon used again; of memory a little. */
static bool
take(struct place *place, int i)
{
	struct place *p = &place[i];
	p->reserved = random_below(3) == 0;
	p->bytes = p->reserved ? (size_t)(1 + random_below((size_t)1 << (1 + random_below(14)))) * UNIT :
	    (size_t)(1 + random_below((size_t)1 << (1 + random_below(21))));
	CUresult result = p->reserved ? cuMemAddressReserve(&p->at, p->bytes, UNIT << random_below(4), 0, 0) :
	    cuMemAlloc_v2(&p->at, p->bytes);
	if (result != CUDA_SUCCESS)
		p->at = 0;
	return (p->reserved && IS(result, result == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY)) ||
	    GOOD(result);
}

/* What is known of an address inside. */
static bool
found_as(const struct place *p)
{
	struct allocation found;
	bool is = memory_find(pointer(p->at + random_below(p->bytes)), 1, &found);
	return p->reserved ? !is : is && found.base == pointer(p->at) && found.bytes == p->bytes;
}

static bool
give(struct place *p)
{
	bool good = p->reserved ? GOOD(cuMemAddressFree(p->at, p->bytes)) : GOOD(cuMemFree_v2(p->at));
	struct allocation found;
	good = good && WANT(!memory_find(pointer(p->at), 1, &found));
	p->at = 0;
	return good;
}

static void
test_random(uint64_t seed)
{
	struct place place[PLACES] = { { 0 } };
	bool good = true;
	int refused = 0;
	random_state = seed;
	for (int step = 0; step < STEPS && good; step++) {
		int i = (int)random_below(PLACES);
		if (place[i].at) {
			good = WANT(found_as(&place[i])) && give(&place[i]);
			continue;
		}
		good = take(place, i);
		refused += !place[i].at;
		good = good && (!place[i].at || (WANT(beside_others(place, i)) && WANT(found_as(&place[i]))));
	}
	for (int i = 0; i < PLACES; i++)
		good = (!place[i].at || give(&place[i])) && good;
	ok(good && WANT(refused < STEPS / 4), "memory and addresses at random");
}

/* ---- memory of other processes ---- */

struct offer {
	CUipcMemHandle handle[2];
	CUresult interior, vmm;
};

static bool
send_offer(const struct offer *offer, int fd)
{
	char space[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec part = { (void *)offer, sizeof *offer };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
		.msg_controllen = sizeof space };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	return sendmsg(SOCKET, &message, 0) == (ssize_t)sizeof *offer;
}

static bool
receive_offer(int socket, struct offer *offer, int *fd)
{
	char space[CMSG_SPACE(sizeof *fd)];
	struct iovec part = { offer, sizeof *offer };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
		.msg_controllen = sizeof space };
	if (recvmsg(socket, &message, MSG_WAITALL) != (ssize_t)sizeof *offer || !CMSG_FIRSTHDR(&message))
		return false;
	memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *fd);
	return true;
}

/* A process that has devices 3 and 0 alone; memory of device 1 comes from outside. */
static bool
role_visible(void)
{
	struct offer offer;
	CUcontext c;
	CUdeviceptr a, v;
	CUmemGenericAllocationHandle h;
	CUmemAccessDesc here = access_of(0, 3);
	char id[32];
	int n, fd = -1, device, can;
	return GOOD(cuInit(0)) && GOOD(cuDeviceGetCount(&n)) && WANT(n == 2) &&
	    GOOD(cuDeviceGetPCIBusId(id, sizeof id, 0)) && WANT(!strcmp(id, "0000:13:00.0")) &&
	    GOOD(cuDeviceCanAccessPeer(&can, 0, 1)) && WANT(can) && IS(cuDeviceGet(&n, 2), CUDA_ERROR_INVALID_DEVICE) &&
	    GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    receive_offer(SOCKET, &offer, &fd) && GOOD(cuIpcOpenMemHandle_v2(&a, offer.handle[0], 1)) &&
	    WANT(get(a + 992) == 11) && GOOD(access_by(0, a, 8, true)) && IS(access_by(1, a, 8, true), ILLEGAL) &&
	    GOOD(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a)) && WANT(device == 0) &&
	    GOOD(cuMemImportFromShareableHandle(&h, pointer((CUdeviceptr)fd), 1)) &&
	    GOOD(cuMemAddressReserve(&v, UNIT, 0, 0, 0)) && GOOD(cuMemMap(v, UNIT, 0, h, 0)) &&
	    GOOD(cuMemSetAccess(v, UNIT, &here, 1)) && WANT(get(v + MIB) == 33) && GOOD(cuIpcCloseMemHandle(a));
}

static bool
role_no_device(void)
{
	int n;
	return IS(cuInit(0), CUDA_ERROR_NO_DEVICE) && IS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
}

/* Frees memory, and takes other memory, which may be in what the first one left: a descriptor. */
static CUresult
free_and_take(CUdeviceptr memory)
{
	CUdeviceptr other;
	CUresult result = cuMemFree_v2(memory);
	return result == CUDA_SUCCESS ? cuMemAlloc_v2(&other, 3 * MIB) : result;
}

/* Owns memory on device 1. 'r': say what is in its first memory; 'f': free the second, and take other; 'q': end, as a
 * process that is killed does. */
static bool
role_owner(void)
{
	CUcontext c;
	CUdeviceptr a = 0, b = 0, v = 0;
	CUmemGenericAllocationHandle h;
	CUmemAccessDesc own = access_of(1, 3);
	struct offer offer;
	int fd = -1;
	char ask;
	bool good = GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 1)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 1000)) && GOOD(cuMemAlloc_v2(&b, 3 * MIB)) &&
	    GOOD(cuMemCreate(&h, UNIT, &on_device_1, 0)) && GOOD(cuMemAddressReserve(&v, UNIT, 0, 0, 0)) &&
	    GOOD(cuMemMap(v, UNIT, 0, h, 0)) && GOOD(cuMemSetAccess(v, UNIT, &own, 1)) && GOOD(put(a + 992, 11)) &&
	    GOOD(put(b + 2 * MIB, 22)) && GOOD(put(v + MIB, 33)) && GOOD(cuIpcGetMemHandle(&offer.handle[0], a)) &&
	    GOOD(cuIpcGetMemHandle(&offer.handle[1], b)) &&
	    GOOD(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	offer.interior = cuIpcGetMemHandle(&offer.handle[1], b + 512);
	offer.vmm = cuIpcGetMemHandle(&offer.handle[1], v);
	good = good && send_offer(&offer, fd);
	while (good && read(SOCKET, &ask, 1) == 1 && ask != 'q') {
		uint64_t said = ask == 'r' ? get(a) : (uint64_t)free_and_take(b);
		good = write(SOCKET, &said, sizeof said) == sizeof said;
	}
	fflush(stdout);
	_exit(good ? CHILD : 1);
}

static uint64_t
ask(int socket, char what)
{
	uint64_t said = UINT64_MAX;
	if (write(socket, &what, 1) != 1 || read(socket, &said, sizeof said) != sizeof said)
		return UINT64_MAX;
	return said;
}

static CUresult
open_by(int device, CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags)
{
	CUcontext c;
	if (cuCtxPushCurrent_v2(context(device)) != CUDA_SUCCESS)
		return CUDA_ERROR_UNKNOWN;
	CUresult result = cuIpcOpenMemHandle_v2(memory, handle, flags);
	cuCtxPopCurrent_v2(&c);
	return result;
}

/* a: the owner's first memory as this process has it. */
static void
check_opened(const struct offer *offer, CUdeviceptr *a, int socket)
{
	CUdeviceptr again, base, other;
	CUipcMemHandle own;
	size_t bytes;
	int device;
	ok(GOOD(open_by(0, a, offer->handle[0], 1)) && WANT(get(*a + 992) == 11) && GOOD(put(*a, 44)) &&
	    WANT(ask(socket, 'r') == 44) && GOOD(cuMemGetAddressRange_v2(&base, &bytes, *a + 8)) &&
	    WANT(base == *a && bytes == 1000) &&
	    GOOD(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, *a)) && WANT(device == 1),
	    "memory of another process");
	ok(GOOD(access_by(0, *a, 1000, true)) && GOOD(access_by(1, *a, 1000, true)) && WANT(memory_direct(0, 1)) &&
	    IS(access_by(2, *a, 8, false), ILLEGAL) && IS(access_by(0, *a, 1001, true), ILLEGAL), "who may access it");
	ok(IS(open_by(0, &again, (CUipcMemHandle){ { 0 } }, 1), INVALID) &&
	    IS(open_by(0, &again, offer->handle[0], 0), INVALID) &&
	    IS(open_by(4, &again, offer->handle[0], 1), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) &&
	    GOOD(cuMemAlloc_v2(&other, 64)) && GOOD(cuIpcGetMemHandle(&own, other)) &&
	    IS(open_by(0, &again, own, 1), CUDA_ERROR_INVALID_CONTEXT) && GOOD(cuMemFree_v2(other)) &&
	    IS(cuIpcGetMemHandle(&own, *a), INVALID) && IS(cuMemFree_v2(*a), INVALID), "what is refused");
	ok(GOOD(open_by(0, &again, offer->handle[0], 1)) && WANT(again == *a) &&
	    GOOD(open_by(1, &other, offer->handle[0], 1)) &&
	    WANT(other != *a) && GOOD(cuIpcCloseMemHandle(*a)) && GOOD(access_by(0, *a, 8, true)) &&
	    IS(cuIpcCloseMemHandle(*a + 8), INVALID) && IS(cuIpcCloseMemHandle(other), INVALID) &&
	    GOOD(cuIpcCloseMemHandle(*a)) && IS(cuIpcCloseMemHandle(*a), INVALID) &&
	    IS(access_by(0, *a, 8, true), ILLEGAL) && GOOD(open_by(0, a, offer->handle[0], 1)), "it is closed");
}

static void
check_imported(int fd)
{
	CUmemGenericAllocationHandle h;
	CUmemAccessDesc here = access_of(0, 3);
	CUdeviceptr v;
	ok(IS(cuMemImportFromShareableHandle(&h, pointer(0), 1), INVALID) &&
	    GOOD(cuMemImportFromShareableHandle(&h, pointer((CUdeviceptr)fd), 1)) &&
	    GOOD(cuMemAddressReserve(&v, UNIT, 0, 0, 0)) && GOOD(cuMemMap(v, UNIT, 0, h, 0)) &&
	    GOOD(cuMemSetAccess(v, UNIT, &here, 1)) && WANT(get(v + MIB) == 33) && GOOD(cuMemRelease(h)) &&
	    WANT(get(v + MIB) == 33) && GOOD(cuMemUnmap(v, UNIT)) && GOOD(cuMemAddressFree(v, UNIT)),
	    "memory by file descriptor");
}

/* b: of memory that its owner frees while it is open here; a: of an owner that ends. */
static void
check_gone(const struct offer *offer, CUdeviceptr a, int socket, pid_t owner)
{
	CUdeviceptr b, again;
	char quit = 'q';
	ok(GOOD(open_by(0, &b, offer->handle[1], 1)) && WANT(get(b + 2 * MIB) == 22) && WANT(ask(socket, 'f') == 0) &&
	    WANT(get(b + 2 * MIB) == 22) && IS(open_by(1, &again, offer->handle[1], 1), CUDA_ERROR_INVALID_HANDLE) &&
	    GOOD(cuIpcCloseMemHandle(b)), "memory that its owner has freed");
	bool good = write(socket, &quit, 1) == 1;
	int status = ended(owner);
	ok(good && WIFEXITED(status) && WEXITSTATUS(status) == CHILD && WANT(get(a) == 44) &&
	    IS(open_by(1, &again, offer->handle[0], 1), CUDA_ERROR_INVALID_HANDLE) && GOOD(cuIpcCloseMemHandle(a)),
	    "memory of a process that has ended");
}

static void
test_processes(void)
{
	int ends[2], fd = -1;
	CUcontext c;
	CUdeviceptr a = 0;
	struct offer offer;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return ok(false, "a socket");
	pid_t owner = start("owner", NULL, NULL, ends[1]);
	close(ends[1]);
	bool good = GOOD(cuDevicePrimaryCtxRetain(&c, 4)) && receive_offer(ends[0], &offer, &fd);
	ok(good && IS(offer.interior, INVALID) && IS(offer.vmm, INVALID),
	    "handles of whole memory of cuMemAlloc alone");
	if (good) {
		check_opened(&offer, &a, ends[0]);
		check_imported(fd);
		check_gone(&offer, a, ends[0], owner);
	}
	close(fd);
	close(ends[0]);
	ok(GOOD(cuDevicePrimaryCtxRelease_v2(4)), "all is given back");
}

/* The owner sends its offer to a process that does not see the owner's device. */
static void
test_visible(void)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return ok(false, "a socket");
	pid_t owner = start("owner", NULL, NULL, ends[1]);
	int status = ended(start("visible", "CUDA_VISIBLE_DEVICES", "3,0,8,1", ends[0]));
	close(ends[0]);
	close(ends[1]);
	bool owned = WEXITSTATUS(ended(owner)) == CHILD;
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0 && owned, "a process that sees some of the devices");
	ok(exits("no-device", "CUDA_VISIBLE_DEVICES", "", 0) && exits("no-device", "CUDA_VISIBLE_DEVICES", "-1", 0),
	    "and none");
}

/* ---- threads ---- */

static CUdeviceptr steady;
static bool stop;

static void *
take_and_free(void *wrong)
{
	struct memory_cache cache = { 0 };
	CUdeviceptr a;
	int owner;
	if (cuCtxSetCurrent(context(0)) != CUDA_SUCCESS)
		__atomic_store_n((bool *)wrong, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 150; i++) {
		bool good = cuMemAlloc_v2(&a, 8 + (size_t)i) == CUDA_SUCCESS && put(a, (uint64_t)i) == CUDA_SUCCESS &&
		    memory_access(0, pointer(a), 8, true, false, &cache, &owner) == CUDA_SUCCESS &&
		    get(a) == (uint64_t)i && cuMemFree_v2(a) == CUDA_SUCCESS &&
		    memory_access(0, pointer(a), 8, true, false, &cache, &owner) == ILLEGAL;
		if (!good)
			__atomic_store_n((bool *)wrong, true, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *
ask_always(void *wrong)
{
	struct memory_cache cache = { 0 };
	int owner = HOST;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (memory_access(0, pointer(steady), 64, true, false, &cache, &owner) != CUDA_SUCCESS || owner != 0)
			__atomic_store_n((bool *)wrong, true, __ATOMIC_RELAXED);
	return NULL;
}

static void
test_threads(void)
{
	pthread_t thread[4];
	bool wrong = !GOOD(cuMemAlloc_v2(&steady, 64));
	int n = 0;
	while (n < 4 && pthread_create(&thread[n], NULL, n < 3 ? take_and_free : ask_always, &wrong) == 0)
		n++;
	for (int i = 0; i < n && i < 3; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	if (n == 4)
		pthread_join(thread[3], NULL);
	ok(n == 4 && !wrong, "threads that take, free and access memory");
}

static double
cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Millions per second, also where two memories take turns. */
static void
test_speed(void)
{
	struct memory_cache cache = { 0 };
	CUdeviceptr other;
	bool good = GOOD(cuMemAlloc_v2(&other, 64));
	int owner;
	double began = cpu_seconds();
	for (int i = 0; i < 500000 && good; i++)
		good = memory_access(0, pointer(steady + 8), 8, false, false, &cache, &owner) == CUDA_SUCCESS &&
		    memory_access(0, pointer(other + 8), 8, true, false, &cache, &owner) == CUDA_SUCCESS;
	double seconds = cpu_seconds() - began;
	if (seconds >= 1)
		printf("# %.3f s\n", seconds);
	ok(good && seconds < 1, "a million questions in less than a second");
	ok(GOOD(cuMemFree_v2(steady)) && GOOD(cuMemFree_v2(other)), "and the memory is freed");
}

/* ---- roles ---- */

static const struct role {
	const char *name;
	bool (*run)(void);
} roles[] = {
	{ "fails-each", role_fails_each }, { "fails-second", role_fails_second }, { "lost", role_lost },
	{ "refused", role_refused },
	{ "refused-late", role_refused_late }, { "works", role_works }, { "touches", role_touches },
	{ "owner", role_owner }, { "visible", role_visible }, { "no-device", role_no_device },
};

static int
run_role(const char *name)
{
	if (strncmp(name, "refused", 7) == 0 && !freopen("/dev/null", "w", stderr))
		return 1;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(roles[i].name, name) == 0)
			return roles[i].run() ? 0 : 1;
	return 1;
}

int
main(int argc, char **argv)
{
	alarm(SECONDS_MOST);
	program = argv[0];
	if (argc == 3 && strcmp(argv[1], "role") == 0)
		return run_role(argv[2]);
	setenv("VIRTUAL_GPU_TOPOLOGY", "topologies/dgx1v.xml", 1);
	setenv("VIRTUAL_GPU_MEMORY", "268435456", 1);
	test_devices();
	test_names();
	test_addresses();
	test_without_context();
	test_contexts();
	test_peers();
	test_sticky();
	test_memory();
	test_addresses_of_freed();
	test_host();
	test_registered();
	test_attributes();
	test_reserve();
	test_create();
	test_map();
	test_capture();
	test_random(argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
	test_processes();
	test_visible();
	test_threads();
	test_speed();
	test_fork();
	test_requests();
	test_environment();
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
