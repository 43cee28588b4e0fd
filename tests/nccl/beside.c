/* A program with a real NCCL (tests/nccl/real.c) and libblink-nccl.so, preloaded: who does what. Linked with the real
 * one. Ranks are threads; what is reduced is on GPUs of the CUDA driver, or on the host with BLINK_BACKEND=host, and
 * all else on the host. Prints TAP.
 *
 *	beside RANKS OURS	OURS: 1: libblink does allreduces, 0: the real one does everything */
#include "blink_program.h"
#include "driver/driver.h"
#include "nccl/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, COUNT = 3000 };

#define DECLARE(name, parameters, ...) ncclResult_t nccl##name parameters;
NCCL_SERVED_LIST(DECLARE)
ncclResult_t ncclPutSignal(const void *a, size_t b, int c, int d, void *e, size_t f, int g, int h, unsigned i,
    ncclComm_t comm, void *stream);
int fake_nccl_calls(const char *name);

static int n, number;
static bool ours;
static const struct driver *driver;	/* NULL: host */

struct rank {
	int number;
	ncclUniqueId id;
	bool good;
	pthread_t thread;
};

static void
ok(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
}

static bool
use_device(int device)
{
	CUdevice handle;
	CUcontext context;
	return !driver || (driver->device_get(&handle, device) == CUDA_SUCCESS &&
	    driver->primary_retain(&context, handle) == CUDA_SUCCESS && driver->context_set(context) == CUDA_SUCCESS);
}

/* In memory of the rank's GPU, which may be that of the host. */
static bool
reduces_there(ncclComm_t comm, float *there, float *data, ncclRedOp_t op)
{
	const CUdeviceptr from = (CUdeviceptr)(uintptr_t)data, to = (CUdeviceptr)(uintptr_t)there;
	const size_t bytes = COUNT * sizeof *data;
	if (!driver)
		return ncclAllReduce(data, data, COUNT, ncclFloat32, op, comm, NULL) == ncclSuccess;
	return driver->copy(to, from, bytes) == CUDA_SUCCESS &&
	    ncclAllReduce(there, there, COUNT, ncclFloat32, op, comm, NULL) == ncclSuccess &&
	    driver->stream_synchronize(NULL) == CUDA_SUCCESS && driver->copy(from, to, bytes) == CUDA_SUCCESS;
}

static bool
reduces(ncclComm_t comm, int rank, ncclRedOp_t op, float want)
{
	float data[COUNT];
	CUdeviceptr there = 0;
	bool good = !driver || driver->memory_alloc(&there, sizeof data) == CUDA_SUCCESS;
	for (int i = 0; i < COUNT; i++)
		data[i] = (float)(rank + 1);
	good = good && reduces_there(comm, (float *)(uintptr_t)there, data, op);
	for (int i = 0; i < COUNT && good; i++)
		good = data[i] == want;
	if (there)
		good &= driver->memory_free(there) == CUDA_SUCCESS;
	return good;
}

static bool
gathers(ncclComm_t comm, int rank)
{
	float mine = (float)rank, all[MOST];
	bool good = ncclAllGather(&mine, all, 1, ncclFloat32, comm, NULL) == ncclSuccess;
	for (int r = 0; r < n && good; r++)
		good = all[r] == (float)r;
	return good;
}

/* A group that is simulated is over, and has done nothing. */
static bool
simulates(ncclComm_t comm)
{
	float data[COUNT] = { 5 };
	return ncclGroupStart() == ncclSuccess &&
	    ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, comm, NULL) == ncclSuccess &&
	    ncclGroupSimulateEnd(NULL) == ncclSuccess && data[0] == 5;
}

static void *
run(void *rank)
{
	struct rank *r = rank;
	ncclComm_t comm = NULL, half = NULL;
	int count = 0;
	r->good = use_device(r->number) && ncclCommInitRank(&comm, n, r->id, r->number) == ncclSuccess &&
	    *(const uint64_t *)(const void *)comm == 0x0280028002800280ull &&	/* the real one's handle */
	    (!ours || simulates(comm)) &&
	    reduces(comm, r->number, ncclSum, (float)(n * (n + 1) / 2)) &&
	    reduces(comm, r->number, ncclMax, (float)n) && gathers(comm, r->number) &&
	    ncclPutSignal(NULL, 1, 2, 3, NULL, 5, 6, 7, 8, comm, (void *)9) == ncclSuccess &&
	    ncclCommSplit(comm, r->number % 2, 0, &half, NULL) == ncclSuccess &&
	    ncclCommCount(half, &count) == ncclSuccess && count == (n + 1 - r->number % 2) / 2 &&
	    reduces(half, r->number, ncclMax, (float)(n - (n - 1 - r->number % 2) % 2)) &&
	    ncclCommDestroy(half) == ncclSuccess && ncclCommFinalize(comm) == ncclSuccess &&
	    ncclCommDestroy(comm) == ncclSuccess;
	return NULL;
}

int
main(int argc, char **argv)
{
	static struct rank r[MOST];
	ncclUniqueId id;
	struct blink_error err = { 0 };
	int version = 0;
	alarm(120);
	n = argc > 2 ? atoi(argv[1]) : 2;
	bool good = true;
	ours = argc > 2 && atoi(argv[2]);
	const char *backend = getenv("BLINK_BACKEND");
	if ((!backend || strcmp(backend, "host") != 0) && (driver_open(&driver, &err) != blinkSuccess ||
	    driver->init(0) != CUDA_SUCCESS)) {
		printf("Bail out! %s\n", err.text);
		return 1;
	}
	ok(ncclGetVersion(&version) == ncclSuccess && version == 22705, "the version is the real one's");
	ok(ncclGetUniqueId(&id) == ncclSuccess && strncmp(id.internal, "real ", 5) == 0, "so are ids");
	for (int i = 0; i < n; i++) {
		r[i] = (struct rank){ .number = i, .id = id };
		good &= pthread_create(&r[i].thread, NULL, run, &r[i]) == 0;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(r[i].thread, NULL);
		good &= r[i].good;
	}
	ok(good, "results are right on all ranks, and the handles are the real one's");
	ok(fake_nccl_calls("AllReduce") == (ours ? 0 : 3 * n), ours ? "allreduces are ours"
	    : "allreduces are not ours");
	ok(fake_nccl_calls("AllGather") == n, "allgathers are the real one's");
	ok(fake_nccl_calls("PutSignal") == n, "what libblink does not know goes to the real one");
	ok(fake_nccl_calls("CommDestroy") == 2 * n, "both are destroyed");
	ok((dlsym(RTLD_DEFAULT, "blink_nccl_is_this") != NULL) == (getenv("LD_PRELOAD") != NULL),
	    "it is there, if wanted");
	printf("1..%d\n", number);
	return 0;
}
