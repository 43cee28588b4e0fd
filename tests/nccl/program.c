/* A program that uses NCCL's interface as NCCL's documentation shows it, linked with libblink-nccl.so. Ranks are on
 * GPUs of the CUDA driver, or on the host with BLINK_BACKEND=host. Prints TAP.
 *
 *	program RANKS SCENARIO...	as in `scenarios`, at the end */
#include "cuda/driver.h"
#include "blink_program.h"
#include "nccl/nccl.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DECLARE(name, parameters, arguments) ncclResult_t nccl##name parameters; ncclResult_t pnccl##name parameters;
NCCL_SERVED_LIST(DECLARE)
NCCL_LATER_LIST(DECLARE)
NCCL_CONFIG_LIST(DECLARE)
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);

enum { MOST = 16, COUNT = 5000, CALLS = 4 };

static const struct driver *driver;	/* NULL: host */
static int n;
static int number;

static void
ok(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static bool
fine(ncclResult_t result, const char *what)
{
	if (result == ncclSuccess)
		return true;
	printf("# %s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
	return false;
}
#define TRY_NCCL(call) fine(call, #call)

/* ---- devices ---- */

static bool
use_device(int device)
{
	CUdevice handle;
	CUcontext context;
	return !driver || (driver->device_get(&handle, device) == CUDA_SUCCESS &&
	    driver->primary_retain(&context, handle) == CUDA_SUCCESS && driver->context_set(context) == CUDA_SUCCESS);
}

static CUstream
new_stream(void)
{
	CUstream stream = NULL;
	if (driver && driver->stream_create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
		abort();
	return stream;
}

static bool
finish(CUstream stream)
{
	return !driver || driver->stream_synchronize(stream) == CUDA_SUCCESS;
}

static void
copy(void *to, const void *from, size_t bytes)
{
	if (!driver)
		memcpy(to, from, bytes);
	else if (driver->copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes) != CUDA_SUCCESS)
		abort();
}

/* ---- ranks ---- */

struct rank {
	int number, device;
	ncclUniqueId id;
	ncclComm_t comm;
	CUstream stream;
	float *send, *recv;
	bool good;
	pthread_t thread;
};

static float
value(int rank, size_t i)
{
	return (float)((rank + 1) * 3 + (int)(i % 7));
}

static bool
open_buffers(struct rank *r)
{
	float *host = malloc(sizeof *host * COUNT * (size_t)n);
	r->stream = new_stream();
	if (!TRY_NCCL(ncclMemAlloc((void **)&r->send, sizeof *r->send * COUNT * (size_t)n)) ||
	    !TRY_NCCL(ncclMemAlloc((void **)&r->recv, sizeof *r->recv * COUNT * (size_t)n)))
		return false;
	for (size_t i = 0; i < COUNT * (size_t)n; i++)
		host[i] = value(r->number, i);
	copy(r->send, host, sizeof *host * COUNT * (size_t)n);
	free(host);
	return true;
}

static void
close_buffers(struct rank *r)
{
	r->good &= TRY_NCCL(ncclMemFree(r->send)) && TRY_NCCL(ncclMemFree(r->recv));
	if (driver)
		r->good &= driver->stream_destroy(r->stream) == CUDA_SUCCESS;
}

static bool
receives(const struct rank *r, size_t count, float (*want)(int rank, size_t i), const char *what)
{
	float *host = malloc(sizeof *host * count);
	bool good = finish(r->stream);
	copy(host, r->recv, sizeof *host * count);
	for (size_t i = 0; i < count && good; i++) {
		good = host[i] == want(r->number, i);
		if (!good)
			printf("# %s: rank %d, element %zu: %g: want %g\n", what, r->number, i, (double)host[i],
			    (double)want(r->number, i));
	}
	free(host);
	return good;
}

static float
sum(int rank, size_t i)
{
	float s = 0;
	(void)rank;
	for (int r = 0; r < n; r++)
		s += value(r, i);
	return s;
}

static float
highest(int rank, size_t i)
{
	(void)rank;
	return value(n - 1, i);
}

static float
gathered(int rank, size_t i)
{
	(void)rank;
	return value((int)(i / COUNT), i % COUNT);
}

static float
block_sum(int rank, size_t i)
{
	return sum(rank, (size_t)rank * COUNT + i);
}

static float
exchanged(int rank, size_t i)
{
	return value((int)(i / COUNT), (size_t)rank * COUNT + i % COUNT);
}

static float
of_root(int rank, size_t i)
{
	(void)rank;
	return value(n - 1, i);
}

static float
scattered(int rank, size_t i)
{
	return value(n - 1, (size_t)rank * COUNT + i);
}

static float
of_neighbour(int rank, size_t i)
{
	return value((rank + n - 1) % n, i);
}

/* Every collective, as a program of one rank calls them. */
static bool
collectives(struct rank *r)
{
	ncclComm_t c = r->comm;
	int root = n - 1;
	bool good = TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, c, r->stream)) &&
	    receives(r, COUNT, sum, "allreduce");
	good = good && TRY_NCCL(pncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclMax, c, r->stream)) &&
	    receives(r, COUNT, highest, "max");
	good = good && TRY_NCCL(ncclAllGather(r->send, r->recv, COUNT, ncclFloat32, c, r->stream)) &&
	    receives(r, COUNT * (size_t)n, gathered, "allgather");
	good = good && TRY_NCCL(ncclReduceScatter(r->send, r->recv, COUNT, ncclFloat32, ncclSum, c, r->stream)) &&
	    receives(r, COUNT, block_sum, "reducescatter");
	good = good && TRY_NCCL(ncclAlltoAll(r->send, r->recv, COUNT, ncclFloat32, c, r->stream)) &&
	    receives(r, COUNT * (size_t)n, exchanged, "alltoall");
	good = good && TRY_NCCL(ncclBroadcast(r->send, r->recv, COUNT, ncclFloat32, root, c, r->stream)) &&
	    receives(r, COUNT, of_root, "broadcast");
	good = good && TRY_NCCL(ncclBcast(r->recv, COUNT, ncclFloat32, 0, c, r->stream)) &&
	    receives(r, COUNT, of_root, "bcast");
	good = good && TRY_NCCL(ncclReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, 0, c, r->stream)) &&
	    (r->number != 0 || receives(r, COUNT, sum, "reduce"));
	good = good && TRY_NCCL(ncclGather(r->send, r->recv, COUNT, ncclFloat32, root, c, r->stream)) &&
	    (r->number != root || receives(r, COUNT * (size_t)n, gathered, "gather"));
	good = good && TRY_NCCL(ncclScatter(r->send, r->recv, COUNT, ncclFloat32, root, c, r->stream)) &&
	    receives(r, COUNT, scattered, "scatter");
	good = good && TRY_NCCL(ncclAllReduceConfig(r->send, r->recv, COUNT, ncclFloat32, ncclSum, c, r->stream,
	    NULL)) && receives(r, COUNT, sum, "allreduce with a configuration");
	return good;
}

/* ---- scenarios ---- */

static bool
asks(const struct rank *r)
{
	int count = -1, rank = -1, device = -1;
	ncclResult_t error = ncclInternalError;
	return TRY_NCCL(ncclCommCount(r->comm, &count)) && count == n && TRY_NCCL(ncclCommUserRank(r->comm, &rank)) &&
	    rank == r->number && TRY_NCCL(ncclCommCuDevice(r->comm, &device)) && device == (driver ? r->device : 0) &&
	    TRY_NCCL(ncclCommGetAsyncError(r->comm, &error)) && error == ncclSuccess;
}

static bool
one_rank(struct rank *r)
{
	return use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) && asks(r) &&
	    open_buffers(r) && collectives(r) && TRY_NCCL(ncclCommFinalize(r->comm)) &&
	    TRY_NCCL(ncclCommDestroy(r->comm));
}

static void *
thread(void *rank)
{
	struct rank *r = rank;
	r->good = one_rank(r);
	if (r->good)
		close_buffers(r);
	return NULL;
}

static void
on_threads(struct rank *r, void *(*run)(void *), const char *what)
{
	ncclUniqueId id;
	bool good = TRY_NCCL(ncclGetUniqueId(&id));
	for (int i = 0; i < n; i++) {
		r[i] = (struct rank){ .number = i, .device = i, .id = id };
		good &= pthread_create(&r[i].thread, NULL, run, &r[i]) == 0;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(r[i].thread, NULL);
		good &= r[i].good;
	}
	ok(good, what);
}

static void
threads(struct rank *r)
{
	on_threads(r, thread, "a thread for each rank, all collectives");
}

/* One process, one thread, many devices. */
static void
one_thread(struct rank *r)
{
	ncclComm_t comms[MOST];
	bool good = TRY_NCCL(ncclCommInitAll(comms, n, NULL));
	for (int i = 0; i < n && good; i++) {
		r[i] = (struct rank){ .number = i, .device = i, .comm = comms[i], .good = true };
		good = use_device(i) && asks(&r[i]) && open_buffers(&r[i]);
	}
	for (int call = 0; call < CALLS && good; call++) {
		good = TRY_NCCL(ncclGroupStart());
		for (int i = 0; i < n && good; i++)
			good = TRY_NCCL(ncclAllReduce(r[i].send, r[i].recv, COUNT, ncclFloat32, ncclSum, comms[i],
			    r[i].stream));
		good &= TRY_NCCL(ncclGroupEnd());
		for (int i = 0; i < n && good; i++)
			good = use_device(i) && receives(&r[i], COUNT, sum, "allreduce in a group");
	}
	for (int i = 0; i < n && good; i++) {
		use_device(i);
		close_buffers(&r[i]);
		good &= r[i].good && TRY_NCCL(ncclCommDestroy(comms[i]));
	}
	ok(good, "one thread for all devices, in groups");
}

/* As with MPI: the id reaches the others by another way. dies: the number of a rank whose process is killed on the way;
 * -1: none. */
static void
on_processes(struct rank *r, bool (*run)(struct rank *r), int dies, const char *what)
{
	ncclUniqueId *id = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile int *there = (int *)(id + 1);
	bool good = true;
	pid_t child[MOST];
	for (int i = 0; i < n; i++) {
		child[i] = fork();
		if (child[i] != 0)
			continue;
		if (!getenv("BLINK_BACKEND") || strcmp(getenv("BLINK_BACKEND"), "host") != 0) {
			struct blink_error err = { 0 };
			if (driver_open(&driver, &err) != blinkSuccess)
				_exit(3);
		}
		r[i] = (struct rank){ .number = i, .device = i };
		if (i == 0) {
			ncclUniqueId made;
			if (!TRY_NCCL(ncclGetUniqueId(&made)))
				_exit(1);
			memcpy(id, &made, sizeof made);
			__atomic_store_n(there, 1, __ATOMIC_RELEASE);
		}
		while (!__atomic_load_n(there, __ATOMIC_ACQUIRE))
			usleep(1000);
		r[i].id = *id;
		exit(run(&r[i]) ? 0 : 1);
	}
	for (int i = 0; i < n; i++) {
		int status;
		good &= waitpid(child[i], &status, 0) == child[i] && (i == dies ? WIFSIGNALED(status)
		    : WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	munmap(id, 4096);
	ok(good, what);
}

static void
processes(struct rank *r)
{
	on_processes(r, one_rank, -1, "a process for each rank");
}

static void *
ring(void *rank)
{
	struct rank *r = rank;
	int right = (r->number + 1) % n, left = (r->number + n - 1) % n;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) &&
	    open_buffers(r);
	for (int call = 0; call < CALLS && r->good; call++) {
		r->good = TRY_NCCL(ncclGroupStart()) &&
		    TRY_NCCL(ncclSend(r->send, COUNT, ncclFloat32, right, r->comm, r->stream)) &&
		    TRY_NCCL(ncclRecv(r->recv, COUNT, ncclFloat32, left, r->comm, r->stream)) &&
		    TRY_NCCL(ncclGroupEnd()) && receives(r, COUNT, of_neighbour, "send and receive");
	}
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

static void
groups(struct rank *r)
{
	on_threads(r, ring, "exchanges with neighbours, in groups");
	ok(ncclGroupEnd() == ncclInvalidUsage, "an end without a start");
}

static bool
wait_until_made(ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;
	for (int i = 0; i < 20000 && state == ncclInProgress; i++) {
		if (ncclCommGetAsyncError(comm, &state) != ncclSuccess)
			return false;
		usleep(1000);
	}
	return state == ncclSuccess;
}

static void *
nonblocking_rank(void *rank)
{
	struct rank *r = rank;
	ncclConfig_t config = { sizeof config, 0xcafebeef, 22809, 0 };
	ncclResult_t result = use_device(r->device) ? ncclCommInitRankConfig(&r->comm, n, r->id, r->number, &config)
	    : ncclSystemError;
	r->good = (result == ncclInProgress || result == ncclSuccess) && r->comm && wait_until_made(r->comm) &&
	    open_buffers(r) && collectives(r);
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

/* One thread for all devices: nothing may wait before the group ends, nor when it does. */
static bool
init_in_group(struct rank *r, ncclComm_t *comms)
{
	ncclConfig_t config = { sizeof config, 0xcafebeef, 22809, 0 };
	ncclUniqueId id;
	bool good = TRY_NCCL(ncclGetUniqueId(&id)) && TRY_NCCL(ncclGroupStart());
	for (int i = 0; i < n && good; i++) {
		ncclResult_t result = use_device(i) ? ncclCommInitRankConfig(&comms[i], n, id, i, &config)
		    : ncclSystemError;
		good = result == ncclSuccess || result == ncclInProgress;
	}
	ncclResult_t end = ncclGroupEnd();
	good = good && (end == ncclSuccess || end == ncclInProgress);
	for (int i = 0; i < n && good; i++) {
		r[i] = (struct rank){ .number = i, .device = i, .comm = comms[i], .good = true };
		good = comms[i] && wait_until_made(comms[i]) && use_device(i) && asks(&r[i]) && open_buffers(&r[i]);
	}
	return good;
}

static bool
nonblocking_group(struct rank *r)
{
	ncclComm_t comms[MOST] = { NULL };
	bool good = init_in_group(r, comms);
	for (int call = 0; call < CALLS && good; call++) {
		good = TRY_NCCL(ncclGroupStart());
		for (int i = 0; i < n && good; i++)
			good = TRY_NCCL(ncclAllReduce(r[i].send, r[i].recv, COUNT, ncclFloat32, ncclSum, comms[i],
			    r[i].stream));
		ncclResult_t end = ncclGroupEnd();
		good = good && (end == ncclSuccess || end == ncclInProgress);
		for (int i = 0; i < n && good; i++)
			good = wait_until_made(comms[i]) && use_device(i) && receives(&r[i], COUNT, sum, "allreduce");
	}
	for (int i = 0; i < n && good; i++) {
		ncclResult_t result = ncclCommFinalize(comms[i]);
		good = result == ncclSuccess || result == ncclInProgress;
	}
	for (int i = 0; i < n && good; i++) {
		use_device(i);
		close_buffers(&r[i]);
		good = r[i].good && wait_until_made(comms[i]) && TRY_NCCL(ncclCommDestroy(comms[i]));
	}
	return good;
}

/* Rank 0 of two, whose peer never comes. */
static bool
left_alone(void)
{
	ncclConfig_t config = { sizeof config, 0xcafebeef, 22809, 0 };
	ncclResult_t state = ncclSuccess;
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	time_t begin = time(NULL);
	int count;
	return use_device(0) && TRY_NCCL(ncclGetUniqueId(&id)) &&
	    ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress && comm &&
	    TRY_NCCL(ncclCommGetAsyncError(comm, &state)) && state == ncclInProgress &&
	    ncclCommCount(comm, &count) == ncclInvalidArgument && strlen(ncclGetLastError(comm)) > 0 &&
	    ncclAllReduce(NULL, NULL, 0, ncclInt8, ncclSum, comm, NULL) == ncclInvalidArgument &&
	    TRY_NCCL(ncclCommAbort(comm)) && time(NULL) - begin < 30;
}

static void
nonblocking(struct rank *r)
{
	on_threads(r, nonblocking_rank, "communicators that do not block");
	ok(nonblocking_group(r), "the same of one thread, in groups");
	ok(left_alone(), "one that is aborted while it is being made");
}

/* ---- several ids, registered memory ---- */

static void *
scalable_rank(void *rank)
{
	struct rank *r = rank;
	ncclUniqueId ids[2] = { r->id, (r - r->number)[MOST].id };
	void *handle = NULL, *memory = NULL;
	ncclWindow_t window = NULL;
	r->good = use_device(r->device) &&
	    TRY_NCCL(ncclCommInitRankScalable(&r->comm, n, r->number, 2, ids, NULL)) && asks(r) && open_buffers(r) &&
	    TRY_NCCL(ncclCommRegister(r->comm, r->send, COUNT, &handle)) &&
	    TRY_NCCL(ncclCommWindowRegister(r->comm, r->recv, COUNT, &window, 0)) && window &&
	    TRY_NCCL(ncclWinGetUserPtr(r->comm, window, &memory)) && memory == r->recv && collectives(r) &&
	    TRY_NCCL(ncclCommWindowDeregister(r->comm, window)) &&
	    ncclCommWindowDeregister(r->comm, window) == ncclInvalidArgument &&
	    TRY_NCCL(ncclCommDeregister(r->comm, handle));
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

static void
scalable(struct rank *r)
{
	if (TRY_NCCL(ncclGetUniqueId(&r[MOST].id)))
		on_threads(r, scalable_rank, "of two ids, with registered memory");
}

static float
sum_of_half(int rank, size_t i)
{
	float s = 0;
	for (int r = rank % 2; r < n; r += 2)
		s += value(r, i);
	return s;
}

static void *
split_rank(void *rank)
{
	struct rank *r = rank;
	ncclComm_t half = NULL, none = r->comm;
	int count = 0;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) &&
	    TRY_NCCL(ncclCommSplit(r->comm, r->number % 2, -r->number, &half, NULL)) &&
	    TRY_NCCL(ncclCommSplit(r->comm, r->number == 0 ? 0 : -1, 0, &none, NULL)) &&
	    (r->number == 0) == (none != NULL) && TRY_NCCL(ncclCommCount(half, &count)) &&
	    count == (n + 1 - r->number % 2) / 2 && open_buffers(r) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, half, r->stream)) &&
	    receives(r, COUNT, sum_of_half, "allreduce of a half");
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(half)) && TRY_NCCL(ncclCommDestroy(none)) &&
	    TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

static void
split(struct rank *r)
{
	on_threads(r, split_rank, "split by color and key");
}

/* ---- fewer ranks, and more ---- */

/* A communicator of some of the ranks: which, by their old numbers. */
static bool
sums_of(struct rank *r, ncclComm_t comm, const bool *in, int size)
{
	float *host = malloc(sizeof *host * COUNT);
	int count = -1, rank = -1, want = 0;
	for (int i = 0; i < r->number; i++)
		want += in[i];
	bool good = TRY_NCCL(ncclCommCount(comm, &count)) && count == size && TRY_NCCL(ncclCommUserRank(comm, &rank)) &&
	    rank == want && TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, comm, r->stream)) &&
	    finish(r->stream);
	copy(host, r->recv, sizeof *host * COUNT);
	for (size_t i = 0; i < COUNT && good; i++) {
		float s = 0;
		for (int k = 0; k < n; k++)
			s += in[k] ? value(k, i) : 0;
		good = host[i] == s;
	}
	if (!good)
		printf("# rank %d: allreduce of %d ranks: rank %d of %d\n", r->number, size, rank, count);
	free(host);
	return good;
}

/* Without every third rank; then the same again, and without rank 0; then all of the old one are there still. */
static bool
shrink_rank(struct rank *r)
{
	int excluded[MOST], n_excluded = 0, first = 0;
	bool in[MOST], all[MOST], others[MOST];
	ncclComm_t small = NULL;
	for (int i = 0; i < n; i++) {
		all[i] = true;
		others[i] = i > 0;
		in[i] = i % 3 != 1;
		if (!in[i])
			excluded[n_excluded++] = i;
	}
	bool good = TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) && open_buffers(r);
	for (int again = 0; again < 2 && in[r->number] && good; again++)
		good = TRY_NCCL(ncclCommShrink(r->comm, excluded, n_excluded, &small, NULL, 0)) &&
		    sums_of(r, small, in, n - n_excluded) && TRY_NCCL(ncclCommDestroy(small));
	if (r->number > 0 && good)
		good = TRY_NCCL(ncclCommShrink(r->comm, &first, 1, &small, NULL, 0)) &&
		    sums_of(r, small, others, n - 1) && TRY_NCCL(ncclCommDestroy(small));
	good = good && sums_of(r, r->comm, all, n);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(r->comm));
}

/* A rank dies, of which the others hear, or not, while they wait for it. Rank 0's process has the hub. */
static int victim;

/* A shrink that leaves out another rank than the one that has died ends soon, once the death is known: before, ranks
 * that abort have the first word. */
static bool
misses(const struct rank *r)
{
	int other = victim ? 0 : 1;
	ncclComm_t small = NULL;
	ncclResult_t result = ncclRemoteError, error = ncclSuccess;
	time_t begin = time(NULL);
	if (n < 3)
		return true;
	while (error == ncclSuccess && time(NULL) - begin < 30 && TRY_NCCL(ncclCommGetAsyncError(r->comm, &error)))
		usleep(1000);
	if (r->number == other)
		return true;
	begin = time(NULL);
	result = ncclCommShrink(r->comm, &other, 1, &small, NULL, 1);
	if (result == ncclRemoteError && strstr(ncclGetLastError(NULL), "want it excluded") && time(NULL) - begin < 30)
		return true;
	printf("# rank %d: a shrink without rank %d alone: %d, %s\n", r->number, other, (int)result,
	    ncclGetLastError(NULL));
	return false;
}

static bool
survive(struct rank *r)
{
	bool in[MOST];
	ncclComm_t small = NULL;
	ncclResult_t error = ncclSuccess;
	for (int i = 0; i < n; i++)
		in[i] = i != victim;
	bool good = TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) && open_buffers(r);
	if (r->number == victim)
		raise(SIGKILL);
	ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream);
	for (int i = 0; i < 20000 && r->number % 2 && error == ncclSuccess && good; i++, usleep(1000))
		good = TRY_NCCL(ncclCommGetAsyncError(r->comm, &error));
	good = good && (r->number % 2 == 0 || error == ncclRemoteError) && misses(r) &&
	    TRY_NCCL(ncclCommShrink(r->comm, &victim, 1, &small, NULL, 1)) && TRY_NCCL(ncclCommAbort(r->comm)) &&
	    sums_of(r, small, in, n - 1);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(small));
}

/* Calls that never end are revoked; then all is as before, of another communicator. */
static bool
revoke_rank(struct rank *r)
{
	bool all[MOST];
	ncclComm_t fresh = NULL;
	ncclResult_t error = ncclInternalError;
	memset(all, 1, sizeof all);
	bool good = TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) && open_buffers(r);
	if (good && driver && r->number > 0)
		ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream);
	good = good && TRY_NCCL(ncclCommRevoke(r->comm, 0)) && TRY_NCCL(ncclCommGetAsyncError(r->comm, &error)) &&
	    error == ncclSuccess && ncclCommFinalize(r->comm) == ncclInvalidUsage &&
	    ncclBcast(r->send, 1, ncclInt8, 0, r->comm, r->stream) == ncclInvalidUsage &&
	    TRY_NCCL(ncclCommSplit(r->comm, 0, 0, &fresh, NULL)) && sums_of(r, fresh, all, n);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(fresh)) && TRY_NCCL(ncclCommDestroy(r->comm));
}

/* Of one rank; the others come later. */
static bool
grow_rank(struct rank *r)
{
	ncclUniqueId one;
	bool all[MOST];
	ncclComm_t grown = NULL;
	memset(all, 1, sizeof all);
	bool good = open_buffers(r);
	if (r->number == 0)
		good = good && TRY_NCCL(ncclGetUniqueId(&one)) && TRY_NCCL(ncclCommInitRank(&r->comm, 1, one, 0)) &&
		    TRY_NCCL(ncclCommGrow(r->comm, n, &r->id, -1, &grown, NULL));
	else
		good = good && TRY_NCCL(ncclCommGrow(NULL, n, &r->id, r->number, &grown, NULL));
	good = good && sums_of(r, grown, all, n);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(grown)) && (r->number > 0 || TRY_NCCL(ncclCommDestroy(r->comm)));
}

#define OF_THREAD(name)                                                        \
	static void *                                                          \
	name##_thread(void *rank)                                              \
	{                                                                      \
		struct rank *r = rank;                                         \
		r->good = use_device(r->device) && name##_rank(r);             \
		return NULL;                                                   \
	}
OF_THREAD(shrink)
OF_THREAD(revoke)
OF_THREAD(grow)

static void
shrink(struct rank *r)
{
	if (n == 1)
		return;
	on_threads(r, shrink_thread, "shrunk, several times, and as it was");
	on_threads(r, revoke_thread, "revoked, and split");
	on_threads(r, grow_thread, "grown");
}

/* In processes of their own, before this one has a driver. */
static bool
survive_here(struct rank *r)
{
	return use_device(r->device) && survive(r);
}

static void
deaths(struct rank *r)
{
	for (victim = 0; victim < n && n > 1; victim += n - 1)
		on_processes(r, survive_here, victim, victim ? "shrunk when the last rank has died"
		    : "shrunk when the first rank has died");
}

static float
sum_of_twice(int rank, size_t i)
{
	return 2 * sum(rank, i);
}

static void *
operation_rank(void *rank)
{
	struct rank *r = rank;
	ncclRedOp_t op = ncclSum;
	float two = 2;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32,
	    ncclScalarHostImmediate, r->comm)) && (int)op > ncclAvg &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, op, r->comm, r->stream)) &&
	    receives(r, COUNT, sum_of_twice, "an operation of the user") && TRY_NCCL(ncclRedOpDestroy(op, r->comm)) &&
	    ncclRedOpDestroy(op, r->comm) != ncclSuccess;
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

/* ---- a scalar in memory of the device ---- */

enum { TYPES = 12, SCALED = COUNT / 2 };	/* elements: of 8 bytes they fit the buffers of one rank */
static const size_t type_bytes[TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

/* 0.5, 2 and 3 as each type has them, of integers other numbers. */
static uint64_t
scalar_of(int type, int which)
{
	static const uint64_t bits[TYPES][3] = { [0] = { 7, 2, 3 }, [1] = { 7, 2, 3 },
		[2] = { 7, 2, 3 }, [3] = { 7, 2, 3 }, [4] = { 7, 2, 3 }, [5] = { 7, 2, 3 },
		[6] = { 0x3800, 0x4000, 0x4200 },
		[7] = { 0x3f000000, 0x40000000, 0x40400000 },
		[8] = { 0x3fe0000000000000, 0x4000000000000000, 0x4008000000000000 },
		[9] = { 0x3f00, 0x4000, 0x4040 }, [10] = { 0x30, 0x40, 0x44 }, [11] = { 0x38, 0x40, 0x42 } };
	return bits[type][which];
}

static bool
reduces_as(struct rank *r, ncclRedOp_t op, int type, char *out)
{
	if (!TRY_NCCL(ncclAllReduce(r->send, r->recv, SCALED, (ncclDataType_t)type, op, r->comm, r->stream)) ||
	    !finish(r->stream))
		return false;
	copy(out, r->recv, SCALED * type_bytes[type]);
	return true;
}

/* What an operation gives whose scalar has been read when it was made. */
static bool
reduces_at_once(struct rank *r, int type, int which, char *out)
{
	uint64_t bits = scalar_of(type, which);
	ncclRedOp_t op = ncclSum;
	return TRY_NCCL(ncclRedOpCreatePreMulSum(&op, &bits, (ncclDataType_t)type, ncclScalarHostImmediate, r->comm)) &&
	    reduces_as(r, op, type, out) && TRY_NCCL(ncclRedOpDestroy(op, r->comm));
}

/* The same bits, whenever the scalar is written: one operation, and another scalar for each call. */
static bool
scalar_is_read_late(struct rank *r, int type, void *scalar)
{
	char *got = malloc(SCALED * 8), *want = malloc(SCALED * 8);
	ncclRedOp_t op = ncclSum;
	bool good = TRY_NCCL(ncclRedOpCreatePreMulSum(&op, scalar, (ncclDataType_t)type, ncclScalarDevice, r->comm));
	for (int i = 0; i < 3 && good; i++) {
		uint64_t bits = scalar_of(type, i);
		copy(scalar, &bits, sizeof bits);
		good = reduces_as(r, op, type, got) && reduces_at_once(r, type, i, want) &&
		    memcmp(got, want, SCALED * type_bytes[type]) == 0;
	}
	if (!good)
		printf("# rank %d, type %d: a scalar of the device\n", r->number, type);
	free(got);
	free(want);
	return good && TRY_NCCL(ncclRedOpDestroy(op, r->comm));
}

/* A graph that copies `source` to the scalar and then reduces; the operation ends before it runs. */
static CUgraphExec
capture_scaled(struct rank *r, void *scalar, const void *source)
{
	CUgraph graph;
	CUgraphExec exec = NULL;
	ncclRedOp_t op = ncclSum;
	if (!TRY_NCCL(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat32, ncclScalarDevice, r->comm)) ||
	    driver->capture_begin(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS)
		return NULL;
	bool good = driver->copy_async((CUdeviceptr)(uintptr_t)scalar, (CUdeviceptr)(uintptr_t)source, sizeof(float),
	    r->stream) == CUDA_SUCCESS &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, SCALED, ncclFloat32, op, r->comm, r->stream));
	good = driver->capture_end(r->stream, &graph) == CUDA_SUCCESS && good &&
	    driver->graph_instantiate(&exec, graph, 0) == CUDA_SUCCESS && driver->graph_destroy(graph) == CUDA_SUCCESS;
	return TRY_NCCL(ncclRedOpDestroy(op, r->comm)) && good ? exec : NULL;
}

static bool
scalar_of_a_graph(struct rank *r, char *scalar)
{
	char *got = malloc(SCALED * 4), *want = malloc(SCALED * 4);
	CUgraphExec exec = capture_scaled(r, scalar, scalar + 8);
	bool good = exec != NULL;
	for (int i = 0; i < 3 && good; i++) {
		uint64_t bits = scalar_of(ncclFloat32, i);
		copy(scalar + 8, &bits, sizeof bits);
		good = driver->graph_launch(exec, r->stream) == CUDA_SUCCESS && finish(r->stream);
		copy(got, r->recv, SCALED * 4);
		good = good && reduces_at_once(r, ncclFloat32, i, want) && memcmp(got, want, SCALED * 4) == 0;
	}
	if (exec)
		driver->graph_exec_destroy(exec);
	free(got);
	free(want);
	return good;
}

static void *
scalar_rank(void *rank)
{
	struct rank *r = rank;
	char *scalar = NULL;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclMemAlloc((void **)&scalar, 16));
	for (int type = 0; type < TYPES && r->good; type++)
		r->good = scalar_is_read_late(r, type, scalar);
	r->good = r->good && (!driver || scalar_of_a_graph(r, scalar));
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclMemFree(scalar)) && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

static void
operations(struct rank *r)
{
	on_threads(r, operation_rank, "operations of the user");
	on_threads(r, scalar_rank, "a scalar in memory of the device, all types, and in a graph");
}

/* The text of an error that no other call makes. */
static char last_text[512];

static const char *
other_text(void)
{
	ncclGroupEnd();
	return ncclGetLastError(NULL);
}

/* A call that has to fail with that result, and to say why. */
static bool
refused(ncclResult_t result, ncclResult_t want, const char *call)
{
	const char *text = ncclGetLastError(NULL);
	bool good = result == want && text[0] && strcmp(text, last_text) != 0;
	if (!good)
		printf("# %s: %d, \"%s\": want %d\n", call, (int)result, text, (int)want);
	snprintf(last_text, sizeof last_text, "%s", other_text());
	return good;
}
#define REFUSED(call, want) good &= refused(call, want, #call)

/* Of a communicator that is good: of one rank. */
static void
misuse(void)
{
	static char memory[8] __attribute__((aligned(8)));
	int zero = 0, none = 9, value;
	ncclUniqueId id;
	ncclComm_t comm = NULL, other = NULL;
	ncclRedOp_t op = ncclSum;
	ncclWindow_t window;
	void *handle;
	bool good = TRY_NCCL(ncclGetUniqueId(&id)) && TRY_NCCL(ncclCommInitRank(&comm, 1, id, 0));
	REFUSED(ncclCommInitRank(&other, 0, id, 0), ncclInvalidArgument);
	REFUSED(ncclCommInitRank(&other, 1, id, -1), ncclInvalidArgument);
	REFUSED(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument);
	REFUSED(ncclCommInitAll(&other, 0, NULL), ncclInvalidArgument);
	REFUSED(ncclCommInitRankScalable(&other, 1, 0, 0, &id, NULL), ncclInvalidArgument);
	REFUSED(ncclGetUniqueId(NULL), ncclInvalidArgument);
	REFUSED(ncclGetVersion(NULL), ncclInvalidArgument);
	REFUSED(ncclCommCount(comm, NULL), ncclInvalidArgument);
	REFUSED(ncclCommGetAsyncError(comm, NULL), ncclInvalidArgument);
	REFUSED(ncclCommSplit(comm, -2, 0, &other, NULL), ncclInvalidArgument);
	REFUSED(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, NULL, 1, &other, NULL, 0), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, &zero, 1, &other, NULL, 0), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, &none, 0, &other, NULL, 0), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, &none, 1, &other, NULL, 8), ncclInvalidArgument);
	REFUSED(ncclCommGrow(comm, 1, NULL, -1, &other, NULL), ncclInvalidArgument);
	REFUSED(ncclCommGrow(NULL, 2, NULL, 1, &other, NULL), ncclInvalidArgument);
	REFUSED(ncclCommRevoke(comm, 1), ncclInvalidArgument);
	REFUSED(ncclCommRegister(comm, NULL, 1, &handle), ncclInvalidArgument);
	REFUSED(ncclCommWindowRegister(comm, NULL, 1, &window, 0), ncclInvalidArgument);
	REFUSED(ncclRedOpCreatePreMulSum(NULL, memory, ncclInt8, ncclScalarHostImmediate, comm), ncclInvalidArgument);
	REFUSED(ncclRedOpCreatePreMulSum(&op, NULL, ncclInt8, ncclScalarDevice, comm), ncclInvalidArgument);
	REFUSED(ncclRedOpCreatePreMulSum(&op, memory, ncclInt8, (ncclScalarResidence_t)7, comm), ncclInvalidArgument);
	REFUSED(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
	REFUSED(ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclAllReduce(NULL, NULL, 0, (ncclDataType_t)99, ncclSum, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclAllReduce(NULL, NULL, 0, ncclInt8, (ncclRedOp_t)99, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclBroadcast(NULL, NULL, 0, ncclInt8, 1, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclSend(NULL, 0, ncclInt8, 1, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclMemAlloc(NULL, 1), ncclInvalidArgument);
	good = good && TRY_NCCL(ncclCommCount(comm, &value)) && value == 1 && TRY_NCCL(ncclCommFinalize(comm));
	REFUSED(ncclCommFinalize(comm), ncclInvalidArgument);
	REFUSED(ncclBroadcast(NULL, NULL, 0, ncclInt8, 0, comm, NULL), ncclInvalidUsage);
	ok(good && TRY_NCCL(ncclCommDestroy(comm)), "arguments that are not valid, each with a text");
}

/* What a mistake gives, and that its text is there. */
static void
errors(struct rank *r)
{
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	ncclConfig_t bad = { sizeof bad, 1, 22809, INT_MIN };
	use_device(0);
	bool alone = getenv("BLINK_NCCL") && strcmp(getenv("BLINK_NCCL"), "none") == 0;
	(void)r;
	ok(TRY_NCCL(ncclGetUniqueId(&id)) && ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument &&
	    strlen(ncclGetLastError(NULL)) > 0, "a rank that is none");
	ok(ncclCommInitRankConfig(&comm, 1, id, 0, &bad) == ncclInvalidArgument, "a configuration that is none");
	ok(ncclAllReduce(NULL, NULL, 0, ncclInt8, ncclSum, (ncclComm_t)&id, NULL) == ncclInvalidArgument,
	    "a communicator that is none");
	ok(ncclCommDestroy(NULL) == ncclSuccess && ncclCommFinalize(NULL) == ncclSuccess &&
	    ncclCommAbort(NULL) == ncclSuccess, "no communicator to end");
	bad = (ncclConfig_t){ sizeof bad, 0xcafebeef, 22809, 7 };
	ok(ncclCommInitRankConfig(&comm, 1, id, 0, &bad) == ncclInvalidArgument, "a configuration that does neither");
	if (alone)
		misuse();
	if (alone)
		ok(ncclCommSuspend((ncclComm_t)&id, 1) == ncclInvalidUsage &&
		    strstr(ncclGetLastError(NULL), "BLINK_NCCL"), "a function that only NCCL has");
	ok(strcmp(ncclGetErrorString((ncclResult_t)99), "") != 0, "the text of an unknown result");
}

/* ---- groups that fail ---- */

/* None of the calls of a group is made if one of them is refused, or if its communicator ends in between. */
static void *
failing_rank(void *rank)
{
	struct rank *r = rank;
	ncclComm_t comm = NULL;
	float first = 0;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclCommSplit(r->comm, 0, r->number, &comm, NULL)) &&
	    TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->send, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    ncclBroadcast(r->send, r->send, COUNT, ncclFloat32, n, comm, r->stream) == ncclInvalidArgument &&
	    ncclGroupEnd() == ncclInvalidArgument && strstr(ncclGetLastError(NULL), "root") &&
	    TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->send, COUNT, ncclFloat32, ncclSum, comm, r->stream)) &&
	    TRY_NCCL(ncclCommDestroy(comm)) && ncclGroupEnd() == ncclInvalidArgument && finish(r->stream);
	if (r->good)
		copy(&first, r->send, sizeof first);
	r->good = r->good && first == value(r->number, 0) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    receives(r, COUNT, sum, "an allreduce after groups that failed");
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

/* One whose other ranks would never come. */
static bool
fails_to_make(void)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL, other = NULL, all[2] = { NULL, NULL };
	const int devices[2] = { 0, 9999 };
	time_t begin = time(NULL);
	bool good = use_device(0) && TRY_NCCL(ncclGetUniqueId(&id)) && TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclCommInitRank(&comm, 2, id, 0)) && ncclCommInitRank(&other, 2, id, 2) == ncclInvalidArgument &&
	    ncclGroupEnd() == ncclInvalidArgument && !comm;
	if (good && driver)
		good = ncclCommInitAll(all, 2, devices) == ncclInvalidArgument &&
		    strstr(ncclGetLastError(NULL), "device 9999") && !all[0];
	return good && time(NULL) - begin < 30;
}

/* What a child of fork hears about its parent's communicator. */
static bool
fails_forked(void)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	int status = 1;
	if (!use_device(0) || !TRY_NCCL(ncclGetUniqueId(&id)) || !TRY_NCCL(ncclCommInitRank(&comm, 1, id, 0)))
		return false;
	pid_t child = fork();
	if (child == 0) {
		ncclResult_t error = ncclSuccess;
		_exit(ncclCommGetAsyncError(comm, &error) != ncclSuccess || error != ncclInvalidArgument ||
		    !strstr(ncclGetLastError(comm), "fork"));
	}
	return waitpid(child, &status, 0) == child && status == 0 && TRY_NCCL(ncclCommDestroy(comm));
}

/* A group that is simulated is not executed, and is over. */
static void *
simulated_rank(void *rank)
{
	struct rank *r = rank;
	char last[512] = "";
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->send, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    ncclGroupSimulateEnd(NULL) == ncclInvalidUsage;
	snprintf(last, sizeof last, "%s", ncclGetLastError(NULL));
	r->good = r->good && strstr(last, "needs NCCL") && ncclGroupSimulateEnd(NULL) == ncclInvalidUsage &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    receives(r, COUNT, sum, "an allreduce after a group that was simulated");
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

static void
failing(struct rank *r)
{
	on_threads(r, failing_rank, "groups that fail");
	on_threads(r, simulated_rank, "a group that is simulated");
	ok(fails_to_make(), "a communicator in a group that fails");
	ok(fails_forked(), "a communicator of the parent of this process");
}

/* ---- main ---- */

int
main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(struct rank *r); } scenarios[] = {
		{ "processes", processes }, { "threads", threads }, { "one_thread", one_thread }, { "groups", groups },
		{ "nonblocking", nonblocking },
		{ "scalable", scalable }, { "deaths", deaths }, { "shrink", shrink }, { "split", split },
		{ "operations", operations },
		{ "errors", errors }, { "failing", failing },
	};
	static struct rank r[MOST + 1];
	struct blink_error err = { 0 };
	const char *backend = getenv("BLINK_BACKEND");
	alarm(300);
	n = argc > 1 ? atoi(argv[1]) : 0;
	if (n < 1 || n > MOST)
		return 2;
	for (int a = 2; a < argc; a++) {
		for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
			if (strcmp(argv[a], scenarios[i].name) != 0)
				continue;
			bool forks = scenarios[i].run == processes || scenarios[i].run == deaths;
			if (!forks && !driver && (!backend || strcmp(backend, "host") != 0) &&
			    (driver_open(&driver, &err) != blinkSuccess || driver->init(0) != CUDA_SUCCESS)) {
				printf("Bail out! %s\n", err.text);
				return 1;
			}
			scenarios[i].run(r);
		}
	}
	printf("1..%d\n", number);
	return 0;
}
