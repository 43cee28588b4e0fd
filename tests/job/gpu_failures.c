/* What goes wrong on GPUs: ranks that are killed, stop, come late, leave or call something else; aborts, buffers and
 * streams that are none, and functions of the driver that fail. */
#include "gpu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t
timeout_of(const struct rank *me)
{
	return (int64_t)((const struct test *)me->arg)->timeout_ms;
}

/* One call of the collective that -f names, through rings; the result is not looked at. */
static blinkResult_t
call_of(const char *name, struct rank *me, blinkComm_t comm)
{
	enum { COUNT = 700, BYTES = COUNT * JOB_RANKS * 4 };
	struct call c = { .type = blinkInt32, .count = COUNT };
	struct buffers b = { .size = 4 };
	while (strncmp(call_name(c.coll), name, strcspn(name, ":")) != 0 && c.coll < blinkCollAlltoAll)
		c.coll++;
	blinkResult_t result = blinkMemAlloc(comm, me->rank, BYTES, &b.send);
	if (result == blinkSuccess)
		result = blinkMemAlloc(comm, me->rank, BYTES, &b.recv);
	if (result == blinkSuccess)
		result = call_start(&c, me->rank, &b, comm);
	if (result == blinkSuccess)
		result = blinkCommWait(comm, 0);
	if (b.send)
		blinkMemFree(comm, me->rank, b.send);
	if (b.recv)
		blinkMemFree(comm, me->rank, b.recv);
	return result;
}

static blinkResult_t
try_calls(struct rank *me, blinkComm_t comm, uint64_t k)
{
	const struct test *test = me->arg;
	return test->fails && test->body != killed ? call_of(test->fails, me, comm)
	    : flight_try(me, comm, 3, k % 4 ? 331 : 10007, k);
}

static void
expect_within(struct rank *me, int64_t began, double most_ms)
{
	double ms = (double)(job_now() - began) / 1e6;
	job_need(me, ms < most_ms, "it took %.0f ms, want %.0f", ms, most_ms);
}

/* Calls until one fails, in bounded time. */
static void
call_until_it_fails(struct rank *me, blinkComm_t comm, unsigned codes, const char *named)
{
	blinkError_t error = { "" };
	blinkResult_t result = blinkSuccess;
	int64_t began = job_now();
	for (uint64_t k = 0; result == blinkSuccess; k++)
		result = try_calls(me, comm, k);
	blinkCommGetAsyncError(comm, &error);
	job_need(me, codes >> result & 1, "%d: %s", (int)result, error.text);
	job_need(me, !named || strstr(error.text, named), "does not name %s: %s", named, error.text);
	expect_within(me, began, (double)timeout_of(me) + job_margin(MARGIN_MS));
	blinkCommDestroy(comm);
}

enum { BARRIER_OF_HASTE = 9 };

static blinkComm_t
join_in_haste(struct rank *me)
{
	const blinkConfig_t config = { .timeoutMs = timeout_of(me) };
	blinkComm_t comm = job_join(me, &config);
	if (comm) {
		flight_run(me, comm, 4, 331, 1);
		job_barrier(me, BARRIER_OF_HASTE, me->n);	/* what fails next is none of these calls */
	}
	return comm;
}

void
killed(struct rank *me)
{
	const struct test *test = me->arg;
	blinkComm_t comm = join_in_haste(me);
	if (!comm)
		return;
	if (me->rank != VICTIM) {
		call_until_it_fails(me, comm, 1u << blinkRemoteError, "rank 1");
		return;
	}
	for (uint64_t k = 0; test->fails || k < test->seed % 5; k++)
		flight_try(me, comm, 3, k % 4 ? 331 : 10007, k);
	kill(getpid(), SIGKILL);
}

/* Its process stops, and does nothing more; another one ends it when the others have found out. */
void
stopped(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	if (!comm)
		return;
	if (me->rank != VICTIM) {
		call_until_it_fails(me, comm, 1u << blinkTimeout | 1u << blinkRemoteError, "rank 1");
		job_add(me->board, 0, 1);
		return;
	}
	pid_t victim = getpid();
	if (fork() == 0) {
		job_await(me->board, 0, (uint64_t)me->n - 1);
		kill(victim, SIGKILL);
		_exit(0);
	}
	raise(SIGSTOP);
}

/* A rank dies while others have many calls in their streams: all of these calls end soon. */
void
killed_in_queue(struct rank *me)
{
	enum { CALLS = 400, COUNT = 3000 };
	blinkComm_t comm = join_in_haste(me);
	blinkResult_t result = blinkSuccess;
	char *device = comm ? device_memory(me, comm, COUNT * sizeof(float)) : NULL;
	if (!device)
		return;
	if (me->rank == VICTIM)
		kill(getpid(), SIGKILL);
	int64_t began = job_now();
	for (int k = 0; k < CALLS && result == blinkSuccess; k++)
		result = blinkAllReduce(device, device, k % 2 ? COUNT : 7, blinkFloat32, blinkSum, comm, NULL);
	job_at(me, "wait");
	result = blinkCommWait(comm, 0);
	job_at(me, "destroy");
	blinkCommDestroy(comm);
	job_need(me, result == blinkRemoteError, "%d", (int)result);
	expect_within(me, began, job_margin(MARGIN_MS));
}

/* The victim is killed by its own kernel, in the step of the schedule that -f says. */
void
killed_in_step(struct rank *me)
{
	const struct test *test = me->arg;
	const blinkConfig_t config = { .timeoutMs = timeout_of(me), .chunkBytes = 1024 };
	setenv("BLINK_MEASURE", "0", 1);	/* its fences are none of a step */
	if (me->rank == VICTIM)
		setenv("VIRTUAL_GPU_DIE", strchr(test->fails, ':') + 1, 1);
	device_take(me);
	blinkComm_t comm = job_join(me, &config);
	if (!comm)
		return;
	job_barrier(me, BARRIER_OF_HASTE, me->n);
	call_until_it_fails(me, comm, 1u << blinkRemoteError, "rank 1");
}

/* One rank wants no copy engines: none has them. */
void
unlike(struct rank *me)
{
	const struct test *test = me->arg;
	if (me->rank == VICTIM)
		setenv("BLINK_COPY_ENGINES", "0", 1);
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	flight_run(me, comm, 12, 10007, test->seed);
	job_leave(me, comm);
}

/* The victim makes no further call, but stays. */
void
late(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	if (!comm)
		return;
	if (me->rank != VICTIM) {
		call_until_it_fails(me, comm, 1u << blinkTimeout, "rank 1");
		job_add(me->board, 0, 1);
		return;
	}
	job_await(me->board, 0, (uint64_t)me->n - 1);
	blinkCommDestroy(comm);
}

/* Two communicators, and calls of both in one stream: rank 1 makes them in the other order, so that neither has all of
 * its kernels. One fails at the deadline, whose kernels end; what is left of the other may then be done in time. */
void
crossed(struct rank *me)
{
	const blinkConfig_t config = { .timeoutMs = timeout_of(me) };
	blinkComm_t comm[2] = { NULL };
	char *device[2] = { NULL };
	void *stream = device_stream(me);
	int failed = 0;
	for (int i = 0; i < 2; i++) {
		comm[i] = job_join_some(me, i, (UINT64_C(1) << me->n) - 1, &config);
		device[i] = comm[i] ? device_memory(me, comm[i], 4096) : NULL;
		if (!device[i])
			return;
	}
	job_barrier(me, 0, me->n);
	int64_t began = job_now();
	for (int i = 0; i < 2; i++) {
		int k = i ^ (me->rank == VICTIM);
		fine(me, blinkAllReduce(device[k], device[k], 1000, blinkInt32, blinkSum, comm[k], stream), comm[k],
		    "allreduce");
	}
	for (int i = 0; i < 2; i++) {
		job_at(me, "wait for communicator %d", i);
		blinkResult_t result = blinkCommWait(comm[i], 0);
		failed += result != blinkSuccess;
		job_need(me, result == blinkTimeout || result == blinkSuccess, "%d: %s", (int)result,
		    blinkCommGetError(comm[i]));
	}
	job_at(me, "destroy");
	for (int i = 0; i < 2; i++)
		blinkCommDestroy(comm[i]);
	job_need(me, failed > 0, "calls in opposite orders are done");
	expect_within(me, began, (double)timeout_of(me) + job_margin(1000));
	device_stream_end(me, stream);
}

/* CPU time of the process by the time that passes: the least of some windows, the first of which see threads begin. */
static double
busy(void)
{
	enum { WINDOWS = 8, WINDOW_MS = 100 };
	double least = 1e9;
	for (int i = 0; i < WINDOWS; i++) {
		clock_t used = clock();
		int64_t began = job_now();
		sleep_ms(WINDOW_MS);
		double share = (double)(clock() - used) / CLOCKS_PER_SEC / ((double)(job_now() - began) / 1e9);
		least = share < least ? share : least;
	}
	return least;
}

/* The victim is late in a call of long messages: hundreds of blocks wait, some for several strips, and leave the
 * machine to others. Rank 2 is a little late, so that the rest go on once before they wait for the victim. */
void
idle(struct rank *me)
{
	enum { COUNT = 1 << 16, BUSY_PERCENT = 40 };
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	char *send = device_memory(me, comm, COUNT * 4);
	char *recv = device_memory(me, comm, (size_t)me->n * COUNT * 4);
	job_barrier(me, 0, me->n);
	if (me->rank == VICTIM) {
		double share = busy();
		printf("# CPUs busy while blocks wait: %.3f\n", share);
		job_need(me, share * 100 <= BUSY_PERCENT * job_slack(), "%.3f CPUs are busy while blocks wait", share);
	} else if (me->rank == 2) {
		sleep_ms(50);
	}
	job_need(me, blinkAllGather(send, recv, COUNT, blinkFloat32, comm, NULL) == blinkSuccess
	    && blinkCommWait(comm, 0) == blinkSuccess, "%s", blinkCommGetError(comm));
	device_free(me, comm, send);
	device_free(me, comm, recv);
	job_leave(me, comm);
}

/* It leaves instead. */
void
leaves(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	if (comm && me->rank != VICTIM)
		call_until_it_fails(me, comm, 1u << blinkRemoteError, "rank 1 has left");
	else if (comm)
		job_leave(me, comm);
}

/* One rank has another count than the rest, or another operation. */
void
differs(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	char *device = comm ? device_memory(me, comm, 4096) : NULL;
	blinkError_t error = { "" };
	if (!device)
		return;
	size_t count = me->rank == VICTIM ? 100 : 101;
	blinkResult_t result = blinkAllReduce(device, device, count, blinkFloat32, blinkSum, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	for (int i = 0; result == blinkSuccess && i < 2; i++) {
		result = blinkAllReduce(device, device, 100, blinkFloat32, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	blinkCommGetAsyncError(comm, &error);
	job_need(me, result == blinkMismatch && strstr(error.text, "allreduce of 10"), "%d: %s", (int)result,
	    error.text);
	blinkCommDestroy(comm);
}

void
message_differs(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	char *device = comm ? device_memory(me, comm, 4096) : NULL;
	blinkError_t error = { "" };
	blinkResult_t result = blinkSuccess;
	if (!device)
		return;
	if (me->rank == VICTIM)
		result = blinkSend(device, 100, blinkInt8, 0, comm, NULL);
	else if (me->rank == 0)
		result = blinkRecv(device, 101, blinkInt8, VICTIM, comm, NULL);
	if (me->rank == 0)
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	for (int i = 0; result == blinkSuccess && i < 2000 * job_slack(); i++) {
		sleep_ms(1);
		result = blinkCommGetAsyncError(comm, NULL);
	}
	blinkCommGetAsyncError(comm, &error);
	job_need(me, result == blinkMismatch && strstr(error.text, "rank 1"), "%d: %s", (int)result, error.text);
	blinkCommDestroy(comm);
}

/* While kernels wait for a rank that does not come. */
void
aborted(struct rank *me)
{
	blinkError_t error = { "" };
	blinkComm_t comm = job_join(me, NULL);
	char *device = comm ? device_memory(me, comm, 4096) : NULL;
	if (!device)
		return;
	if (me->rank != VICTIM)
		fine(me, blinkAllReduce(device, device, 1000, blinkInt32, blinkSum, comm, NULL), comm, "allreduce");
	job_need(me, me->rank == VICTIM || blinkCommTest(comm, 0) == blinkInProgress, "done without a rank");
	job_barrier(me, 0, me->n);
	int64_t began = job_now();
	if (me->rank == 0)
		blinkCommAbort(comm);
	blinkResult_t result = me->rank == VICTIM ? blinkSuccess : blinkCommWait(comm, 0);
	for (int i = 0; me->rank == VICTIM && result == blinkSuccess && i < 2000 * job_slack(); i++) {
		sleep_ms(1);
		result = blinkCommGetAsyncError(comm, NULL);
	}
	blinkCommGetAsyncError(comm, &error);
	job_need(me, result == blinkAborted && strstr(error.text, "rank 0"), "%d: %s", (int)result, error.text);
	expect_within(me, began, job_margin(2000));
	blinkCommDestroy(comm);
}

/* A kernel of one rank fails: its buffer is nowhere. */
void
bad_pointer(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	char *device = comm ? device_memory(me, comm, 4096) : NULL;
	blinkError_t error = { "" };
	if (!device)
		return;
	void *at = me->rank == VICTIM ? (void *)4096 : device;
	int64_t began = job_now();
	blinkResult_t result = blinkAllReduce(at, at, 100, blinkInt32, blinkSum, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	blinkCommGetAsyncError(comm, &error);
	job_need(me, result == (me->rank == VICTIM ? blinkSystemError : blinkRemoteError), "%d: %s", (int)result,
	    error.text);
	job_need(me, strstr(error.text, me->rank == VICTIM ? "cuda: " : "rank 1: cuda: "), "%s", error.text);
	expect_within(me, began, job_margin(1000));
	blinkCommDestroy(comm);
}

/* A stream that is none of this GPU's; the communicator goes on. */
void
stream_refused(struct rank *me)
{
	blinkComm_t comm = job_join(me, NULL);
	char *device = comm ? device_memory(me, comm, 64) : NULL;
	struct rank other = *me;
	if (!device)
		return;
	other.rank++;
	device_take(&other);
	void *stream = device_stream(&other);
	device_take(me);
	blinkResult_t result = blinkAllReduce(device, device, 1, blinkInt32, blinkSum, comm, stream);
	job_need(me, result == blinkInvalidArgument && strstr(blinkCommGetError(comm), "stream"), "%d: %s", (int)result,
	    blinkCommGetError(comm));
	flight_run(me, comm, 5, 331, 2);
	device_stream_end(me, stream);
	job_leave(me, comm);
}

/* ---- functions of the driver that fail ---- */

/* All ranks have right results, or all an error in bounded time. In the rank whose driver fails the test's own calls
 * may be those that do. */
void
driver_fails(struct rank *me)
{
	const struct test *test = me->arg;
	const blinkConfig_t config = { .timeoutMs = timeout_of(me) };
	blinkUniqueId_t id;
	blinkComm_t comm = NULL;
	blinkError_t error = { "" };
	if (me->rank == me->n - 1)
		setenv("VIRTUAL_GPU_FAIL", test->fails, 1);
	job_id(me, 0, 0, &id);
	job_at(me, "init");
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	void *memory = NULL;
	job_at(me, "calls");
	if (result == blinkSuccess)
		result = blinkMemAlloc(comm, me->rank, 80000, &memory);
	for (int i = 0; i < 6 && result == blinkSuccess; i++) {
		int32_t x[4] = { me->rank + i, 0, 0, 1 };
		result = blinkCopyIn(comm, me->rank, memory, x, sizeof x);
		if (result == blinkSuccess)
			result = blinkAllReduce(memory, memory, i % 2 ? 20000 : 4, blinkInt32, i % 3 ? blinkSum
			    : blinkMax, comm, NULL);
		if (result == blinkSuccess)
			result = blinkAlltoAll(memory, memory, 1, blinkInt32, comm, NULL);
		if (result == blinkSuccess)
			result = blinkCommWait(comm, 0);
	}
	bool fails = result != blinkSuccess;
	if (fails && comm)
		blinkCommAbort(comm);
	job_need(me, result != blinkInternalError && result != blinkInProgress, "%d", (int)result);
	job_at(me, "destroy after %d", (int)result);
	if (comm)
		blinkCommDestroy(comm);
}
