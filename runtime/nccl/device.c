/* The GPU of the calling thread, by the CUDA driver. */
#include "nccl/shim.h"
#include "support/debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct driver *driver;
static char no_driver[512];
static bool host;
static char wrong[160];

static void
choose(void)
{
	struct blink_error err = { 0 };
	const char *backend = getenv("BLINK_BACKEND");
	host = backend && strcmp(backend, "host") == 0;
	if (backend && backend[0] && !host && strcmp(backend, "cuda") != 0)
		snprintf(wrong, sizeof wrong, "BLINK_BACKEND: \"%.60s\": want cuda or host", backend);
	if (!host && driver_open(&driver, &err) != blinkSuccess)
		snprintf(no_driver, sizeof no_driver, "%s", err.text);
}

const struct driver *
shim_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, choose);
	return driver;
}

bool
on_host(void)
{
	shim_driver();
	return host;
}

const char *
device_wrong(void)
{
	shim_driver();
	return wrong[0] ? wrong : NULL;
}

static ncclResult_t
check(CUresult r, const char *what)
{
	struct blink_error err = { 0 };
	if (driver_check(driver, r, &err, "%s", what) == blinkSuccess)
		return ncclSuccess;
	return comm_error(NULL, ncclUnhandledCudaError, err.text);
}

ncclResult_t
device_current(int *device, CUcontext *context)
{
	const struct driver *d = shim_driver();
	*device = 0;
	*context = NULL;
	if (on_host())
		return ncclSuccess;
	if (!d)
		return comm_error(NULL, ncclUnhandledCudaError, no_driver);
	CUresult r = d->context_get(context);
	if (r == CUDA_SUCCESS && !*context) {
		/* As the runtime does: device 0, if the program has not chosen one. */
		CUcontext before;
		ncclResult_t result = device_use(0, &before);
		return result == ncclSuccess ? check(d->context_get(context), "the current device") : result;
	}
	return check(r == CUDA_SUCCESS ? d->context_device(device) : r, "the current device");
}

ncclResult_t
device_use(int device, CUcontext *before)
{
	const struct driver *d = shim_driver();
	CUcontext context;
	CUdevice handle;
	*before = NULL;
	if (on_host())
		return ncclSuccess;
	if (!d)
		return comm_error(NULL, ncclUnhandledCudaError, no_driver);
	int n = 0;
	CUresult r = d->device_count(&n);
	if (r == CUDA_SUCCESS && (device < 0 || device >= n)) {
		char text[64];
		snprintf(text, sizeof text, "device %d: want 0 to %d", device, n - 1);
		return comm_error(NULL, ncclInvalidArgument, text);
	}
	if (r == CUDA_SUCCESS)
		r = d->device_get(&handle, device);
	if (r == CUDA_SUCCESS)
		r = d->context_get(before);
	if (r == CUDA_SUCCESS)
		r = d->primary_retain(&context, handle);
	return check(r == CUDA_SUCCESS ? d->context_set(context) : r, "use a device");
}

void
device_restore(CUcontext before)
{
	if (shim_driver())
		driver->context_set(before);
}

void *
device_alloc(size_t bytes)
{
	CUdeviceptr memory = 0;
	if (on_host())
		return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!shim_driver() || check(driver->memory_alloc(&memory, bytes ? bytes : 1), "allocate memory") != ncclSuccess)
		return NULL;
	return (void *)(uintptr_t)memory;
}

bool
device_free(void *memory)
{
	if (on_host()) {
		free(memory);
		return true;
	}
	return shim_driver() && (!memory ||
	    check(driver->memory_free((CUdeviceptr)(uintptr_t)memory), "free memory") == ncclSuccess);
}

static ncclResult_t
broadcast(ncclComm_t comm, CUstream stream, void *memory, void *data, size_t bytes)
{
	const struct driver *d = driver;
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory;
	ncclResult_t result = check(d->copy_in_async(at, data, bytes, stream), "copy an id");
	if (result == ncclSuccess)
		result = REAL(Broadcast, (memory, memory, bytes, ncclUint8, 0, comm, stream));
	if (result == ncclSuccess)
		result = check(d->copy_out_async(data, at, bytes, stream), "copy an id");
	CUresult end = d->stream_synchronize(stream);
	return result == ncclSuccess ? check(end, "exchange an id") : result;
}

ncclResult_t
device_broadcast(ncclComm_t comm, void *data, size_t bytes)
{
	CUstream stream;
	if (on_host())
		return REAL(Broadcast, (data, data, bytes, ncclUint8, 0, comm, NULL));
	void *memory = device_alloc(bytes);
	if (!memory)
		return ncclUnhandledCudaError;
	ncclResult_t result = check(driver->stream_create(&stream, CU_STREAM_NON_BLOCKING), "make a stream");
	if (result == ncclSuccess) {
		result = broadcast(comm, stream, memory, data, bytes);
		driver->stream_destroy(stream);
	}
	device_free(memory);
	return result;
}
