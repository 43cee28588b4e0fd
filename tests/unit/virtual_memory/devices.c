/* Devices, functions by name, contexts and peers. */
#include "unit/virtual_memory/virtual_memory.h"

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

void
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

void
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

void
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

void
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
void
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
void
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
