/* Memory of devices and of the host, by one thread and by several. */
#include "unit/virtual_memory/virtual_memory.h"

#include <sys/mman.h>
#include <time.h>

/* ---- memory of devices, by the host ---- */

CUresult
put(CUdeviceptr to, uint64_t value)
{
	return cuMemcpy(to, address(&value), sizeof value);
}

uint64_t
get(CUdeviceptr from)
{
	uint64_t value = 0;
	return cuMemcpy(address(&value), from, sizeof value) == CUDA_SUCCESS ? value : UINT64_MAX;
}

CUcontext
context(CUdevice device)
{
	return (CUcontext)context_of(device);
}

CUresult
access_by(int device, CUdeviceptr at, size_t bytes, bool writes)
{
	struct memory_cache cache = { 0 };
	int owner;
	return memory_access(device, pointer(at), bytes, writes, false, &cache, &owner);
}

/* ---- memory of devices ---- */

void
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
void
test_addresses_of_freed(void)
{
	CUdeviceptr first, next = 0;
	bool good = GOOD(cuMemAlloc_v2(&first, MIB)) && GOOD(cuMemFree_v2(first));
	for (int i = 0; i < 200 && good; i++)
		good = GOOD(cuMemAlloc_v2(&next, MIB)) && WANT(next != first) && GOOD(cuMemFree_v2(next));
	ok(good, "addresses are not used again soon");
}

/* ---- memory of the host ---- */

void
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

void
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

void
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

void
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

void
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
void
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
