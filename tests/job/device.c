#include "device.h"

#include "driver/driver.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

bool
device_wanted(void)
{
	const char *backend = getenv("BLINK_BACKEND");
	return backend && strcmp(backend, "cuda") == 0;
}

static const struct driver *
driver(struct rank *me)
{
	const struct driver *d = NULL;
	struct blink_error err = { 0 };
	if (!job_need(me, driver_open(&d, &err) == blinkSuccess, "%s", err.text))
		exit(97);
	return d;
}

static void
check(struct rank *me, CUresult r, const char *what)
{
	if (!job_need(me, r == CUDA_SUCCESS, "%s: CUDA error %d", what, (int)r))
		exit(97);
}

void
device_take(struct rank *me)
{
	CUcontext context = NULL;
	CUdevice device = 0;
	int n = 0;
	if (!device_wanted())
		return;
	const struct driver *d = driver(me);
	check(me, d->device_count(&n), "cuDeviceGetCount");
	check(me, d->device_get(&device, me->rank % n), "cuDeviceGet");
	check(me, d->primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
	check(me, d->context_set(context), "cuCtxSetCurrent");
}

void *
device_stream(struct rank *me)
{
	CUstream stream = NULL;
	if (device_wanted())
		check(me, driver(me)->stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	return stream;
}

void
device_stream_end(struct rank *me, void *stream)
{
	if (stream)
		check(me, driver(me)->stream_destroy(stream), "cuStreamDestroy");
}

static int
own_rank(blinkComm_t comm)
{
	int rank = -1;
	blinkCommUserRank(comm, &rank);
	return rank;
}

char *
device_memory(struct rank *me, blinkComm_t comm, size_t bytes)
{
	void *memory = NULL;
	if (!device_wanted())
		return NULL;
	blinkResult_t result = blinkMemAlloc(comm, own_rank(comm), bytes, &memory);
	job_need(me, result == blinkSuccess, "blinkMemAlloc: %d: %s", (int)result, blinkCommGetError(comm));
	return memory;
}

void
device_in(struct rank *me, blinkComm_t comm, char *device, const void *host, size_t bytes)
{
	blinkResult_t result = device ? blinkCopyIn(comm, own_rank(comm), device, host, bytes) : blinkSuccess;
	job_need(me, result == blinkSuccess, "blinkCopyIn: %d: %s", (int)result, blinkCommGetError(comm));
}

void
device_out(struct rank *me, blinkComm_t comm, void *host, const char *device, size_t bytes)
{
	blinkResult_t result = device ? blinkCopyOut(comm, own_rank(comm), host, device, bytes) : blinkSuccess;
	job_need(me, result == blinkSuccess, "blinkCopyOut: %d: %s", (int)result, blinkCommGetError(comm));
}

void
device_free(struct rank *me, blinkComm_t comm, char *device)
{
	blinkResult_t result = device ? blinkMemFree(comm, own_rank(comm), device) : blinkSuccess;
	job_need(me, result == blinkSuccess, "blinkMemFree: %d: %s", (int)result, blinkCommGetError(comm));
}
