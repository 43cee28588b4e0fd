/* What is particular to ranks on GPUs: graphs that are captured once and replayed with other data, streams that fork
 * and join, several streams, communicators and ranks on one GPU, one thread that drives all of them; and ranks that
 * fail: killed, stopped by an abort, with other calls or none, or because a function of the driver fails.
 *
 *	gpu [-t] [-n RANKS] [-s SERVERS] [-k REPLAYS] [-S SEED] [-f FUNCTION:N...] SCENARIO...
 *
 * With BLINK_BACKEND=cuda, and the virtual driver of tests/virtual_gpu or a real one. -f, one argument with blanks: in
 * a job for each, the N-th call of that function of the driver fails on the last rank: all calls are right, or all
 * ranks end with an error. Of killed rank 1 is meant, which dies there: FUNCTION:N:die. Of killed_in_step it is
 * COLLECTIVE:N, and rank 1 is killed at the N-th fence of its kernels. */
#include "device.h"
#include "flight.h"

#include "cuda/driver.h"
#include "error.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 4000, MARGIN_MS = 4000 };

struct test {
	job_body *body;
	int replays, servers;
	bool threads;
	uint64_t seed;
	const char *fails;		/* FUNCTION:N, or COLLECTIVE:N */
	double timeout_ms;		/* of init, too, where a loaded machine starts many threads */
};

static int64_t
timeout_of(const struct rank *me)
{
	return (int64_t)((const struct test *)me->arg)->timeout_ms;
}

static const struct driver *
driver(void)
{
	const struct driver *d = NULL;
	struct blink_error err = { 0 };
	if (driver_open(&d, &err) != blinkSuccess) {
		printf("# %s\n", err.text);
		exit(97);
	}
	return d;
}

static void
good(struct rank *me, CUresult r, const char *what)
{
	if (!job_need(me, r == CUDA_SUCCESS, "%s: CUDA error %d", what, (int)r))
		exit(97);
}

#define GOOD(call) good(me, driver()->call, #call)

/* ---- flights by hand: their memory on the GPU, and calls in streams of the test ---- */

struct trip {
	struct flight f;
	CUstream stream[3];
	int n_streams;
};

static void
trip_make(struct rank *me, struct trip *t, blinkComm_t comm, int n_calls, int n_streams, uint64_t seed)
{
	flight_make(&t->f, me->n, me->rank, n_calls, 1025, 10007, seed);
	t->f.comm = comm;
	t->f.device = device_memory(me, comm, t->f.bytes);
	t->n_streams = n_streams;
	for (int i = 0; i < n_streams; i++)
		t->stream[i] = device_stream(me);
	for (int k = 0; k < n_calls; k++) {
		t->f.buffers[k].device = t->f.device + (t->f.buffers[k].memory - t->f.memory);
		t->f.buffers[k].stream = t->stream[k % n_streams];
	}
}

/* Other values for the same calls. */
static void
trip_refill(struct rank *me, struct trip *t, uint64_t seed)
{
	for (int k = 0; k < t->f.n_calls; k++) {
		struct buffers *b = &t->f.buffers[k], before = *b;
		t->f.calls[k].seed = mixed(seed, (uint64_t)k, 5);
		call_place(&t->f.calls[k], me->n, me->rank, before.memory, b);
		b->device = before.device;
		b->stream = before.stream;
	}
	device_in(me, t->f.comm, t->f.device, t->f.memory, t->f.bytes);
}

static void
trip_judge(struct rank *me, struct trip *t, int round)
{
	char text[160], why[256];
	device_out(me, t->f.comm, t->f.memory, t->f.device, t->f.bytes);
	for (int k = 0; k < t->f.n_calls; k++)
		job_need(me, call_right(&t->f.calls[k], me->n, me->rank, &t->f.buffers[k], why),
		    "round %d, call %d: %s: %s", round, k, call_text(&t->f.calls[k], text), why);
}

static void
trip_end(struct rank *me, struct trip *t)
{
	for (int i = 0; i < t->n_streams; i++)
		device_stream_end(me, t->stream[i]);
	flight_free(&t->f, me);
}

/* ---- graphs ---- */

/* Fork the other streams from the first, or join them to it. */
static void
tie(struct rank *me, struct trip *t, bool fork)
{
	for (int i = 1; i < t->n_streams; i++) {
		CUevent event;
		GOOD(event_create(&event, CU_EVENT_DISABLE_TIMING));
		GOOD(event_record(event, t->stream[fork ? 0 : i]));
		GOOD(stream_wait_event(t->stream[fork ? i : 0], event, 0));
		GOOD(event_destroy(event));
	}
}

static void
capture(struct rank *me, struct trip *t, blinkComm_t comm, CUgraph *graph)
{
	GOOD(capture_begin(t->stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	tie(me, t, true);
	for (int k = 0; k < t->f.n_calls; k++)
		flight_start_one(&t->f, me, comm, k);
	tie(me, t, false);
	GOOD(capture_end(t->stream[0], graph));
}

/* Captured once; between replays there are calls outside of the graph. */
static void
replay(struct rank *me, int n_streams, uint64_t seed)
{
	const struct test *test = me->arg;
	struct trip t;
	CUgraph graph;
	CUgraphExec exec;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	flight_run(me, comm, 3, 331, seed);
	trip_make(me, &t, comm, 12, n_streams, seed);
	capture(me, &t, comm, &graph);
	GOOD(graph_instantiate(&exec, graph, 0));
	for (int r = 0; r < test->replays; r++) {
		job_at(me, "replay %d", r);
		trip_refill(me, &t, seed + (uint64_t)r);
		GOOD(graph_launch(exec, t.stream[0]));
		GOOD(stream_synchronize(t.stream[0]));
		trip_judge(me, &t, r);
		if (r % 7 == 3)
			flight_run(me, comm, 2, 331, seed + (uint64_t)r);
	}
	GOOD(graph_exec_destroy(exec));
	GOOD(graph_destroy(graph));
	trip_end(me, &t);
	job_leave(me, comm);
}

static void
graph(struct rank *me)
{
	replay(me, 1, ((const struct test *)me->arg)->seed);
}

static void
graph_forked(struct rank *me)
{
	replay(me, 3, ((const struct test *)me->arg)->seed + 9);
}

/* ---- streams ---- */

/* Calls take turns with three streams that know nothing of each other. */
static void
streams(struct rank *me)
{
	const struct test *test = me->arg;
	struct trip t;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	trip_make(me, &t, comm, 60, 3, test->seed);
	for (int k = 0; k < t.f.n_calls; k++)
		flight_start_one(&t.f, me, comm, k);
	if (wait_for(me, comm))
		trip_judge(me, &t, 0);
	trip_end(me, &t);
	job_leave(me, comm);
}

/* The default stream, with what the caller has put there before and puts there after. */
static void
default_stream(struct rank *me)
{
	enum { COUNT = 1000 };
	int32_t x[COUNT];
	blinkComm_t comm = job_join(me, NULL);
	char *device = comm ? device_memory(me, comm, sizeof x) : NULL;
	if (!device)
		return;
	GOOD(set32_async((CUdeviceptr)(uintptr_t)device, (unsigned)me->rank + 1, COUNT, NULL));
	fine(me, blinkAllReduce(device, device, COUNT, blinkInt32, blinkSum, comm, NULL), comm, "allreduce");
	GOOD(copy_out_async(x, (CUdeviceptr)(uintptr_t)device, sizeof x, NULL));
	GOOD(stream_synchronize(NULL));
	int wrong = 0;
	for (int i = 0; i < COUNT; i++)
		wrong += x[i] != me->n * (me->n + 1) / 2;
	job_need(me, !wrong, "%d of %d elements are wrong: %d", wrong, (int)COUNT, x[0]);
	device_free(me, comm, device);
	job_leave(me, comm);
}

/* ---- one thread for all ---- */

struct crew {
	pthread_mutex_t lock;
	blinkComm_t comm[JOB_RANKS];
};

static struct crew crew = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Call k of every rank, and then the next, in a group or not; or all of a rank, and then those of the next. */
static void
drive(struct rank *as, struct trip *t, int n, int n_calls, int round)
{
	for (int k = 0; k < n * n_calls; k++) {
		int r = round == 3 ? k / n_calls : k % n;
		if (round == 1 && r == 0)
			blinkGroupStart();
		flight_start_one(&t[r].f, &as[r], crew.comm[r], round == 3 ? k % n_calls : k / n);
		if (round == 1 && r == n - 1)
			blinkGroupEnd();
	}
}

/* All ranks are made by threads of their own, and driven by that of rank 0. No call may wait for what the thread does
 * next. */
static void
one_thread(struct rank *me)
{
	const struct test *test = me->arg;
	struct trip t[JOB_RANKS];
	struct rank as[JOB_RANKS];
	blinkComm_t comm = job_join(me, NULL);
	pthread_mutex_lock(&crew.lock);
	crew.comm[me->rank] = comm;
	pthread_mutex_unlock(&crew.lock);
	job_barrier(me, 0, me->n);
	for (int round = 0; me->rank == 0 && comm && round < 4; round++) {
		for (int r = 0; r < me->n; r++) {
			as[r] = *me;
			as[r].rank = r;
			device_take(&as[r]);
			trip_make(&as[r], &t[r], crew.comm[r], 20, 1, test->seed + (uint64_t)round);
		}
		drive(as, t, me->n, 20, round);
		for (int r = 0; r < me->n; r++) {
			wait_for(&as[r], crew.comm[r]);
			device_take(&as[r]);
			trip_judge(&as[r], &t[r], round);
			trip_end(&as[r], &t[r]);
		}
	}
	device_take(me);
	job_barrier(me, 1, me->n);
	if (comm)
		job_leave(me, comm);
}

/* ---- messages ---- */

static void
put_message(struct rank *me, blinkComm_t comm, char *at, bool sends, int peer, size_t bytes, void *stream)
{
	blinkResult_t result = sends ? blinkSend(at, bytes, blinkUint8, peer, comm, stream)
	    : blinkRecv(at, bytes, blinkUint8, peer, comm, stream);
	fine(me, result, comm, "message");
}

/* Where message k to (or from) a peer lies: `room` for each. */
enum { ROOM = 300032 };

static char *
message_at(char *memory, const struct rank *me, bool sends, int peer, int k, int n_messages)
{
	return memory + (size_t)((sends * me->n + peer) * n_messages + k) * ROOM;
}

static void
fill_messages(const struct rank *me, char *host, int n_messages, uint64_t seed)
{
	memset(host, 0x5a, (size_t)(2 * me->n * n_messages) * ROOM);
	for (int p = 0; p < me->n; p++)
		for (int k = 0; k < n_messages; k++)
			memset(message_at(host, me, true, p, k, n_messages),
			    (int)(mixed(seed, (uint64_t)(me->rank * 64 + p), (uint64_t)k) & 127),
			    message_bytes(seed, me->rank, p, k));
}

static void
judge_messages(struct rank *me, const char *host, int n_messages, uint64_t seed)
{
	for (int p = 0; p < me->n; p++) {
		for (int k = 0; k < n_messages; k++) {
			const char *at = message_at((char *)host, me, false, p, k, n_messages);
			size_t bytes = message_bytes(seed, p, me->rank, k), wrong = 0;
			char want = (char)(mixed(seed, (uint64_t)(p * 64 + me->rank), (uint64_t)k) & 127);
			for (size_t i = 0; i < bytes; i++)
				wrong += at[i] != want;
			job_need(me, !wrong && at[bytes] == 0x5a, "message %d of %zu bytes from rank %d: %zu wrong", k,
			    bytes, p, wrong);
		}
	}
}

/* Each rank to each, itself too, in one group. Many of them take several kernels. */
static void
exchange(struct rank *me, blinkComm_t comm, int n_messages, uint64_t seed)
{
	size_t bytes = (size_t)(2 * me->n * n_messages) * ROOM;
	char *host = malloc(bytes), *device = device_memory(me, comm, bytes);
	void *stream = device_stream(me);
	if (!job_need(me, host && device, "no memory"))
		exit(97);
	fill_messages(me, host, n_messages, seed);
	device_in(me, comm, device, host, bytes);
	job_at(me, "%d messages of each pair", n_messages);
	blinkGroupStart();
	for (int k = 0; k < n_messages; k++)
		for (int i = 0; i < 2 * me->n; i++) {
			int p = i / 2;
			bool sends = i % 2;
			put_message(me, comm, message_at(device, me, sends, p, k, n_messages), sends, p, sends
			    ? message_bytes(seed, me->rank, p, k) : message_bytes(seed, p, me->rank, k), stream);
		}
	blinkResult_t result = blinkGroupEnd();
	job_need(me, result == blinkSuccess, "blinkGroupEnd: %d", (int)result);
	if (wait_for(me, comm)) {
		device_out(me, comm, host, device, bytes);
		judge_messages(me, host, n_messages, seed);
	}
	device_stream_end(me, stream);
	device_free(me, comm, device);
	free(host);
}

static void
messages(struct rank *me)
{
	const struct test *test = me->arg;
	static const int counts[] = { 1, 4, 20, 2 };
	blinkComm_t comm = job_join(me, NULL);
	for (int round = 0; comm && round < 4; round++) {
		exchange(me, comm, counts[round], test->seed + (uint64_t)round);
		flight_run(me, comm, 3, 331, (uint64_t)round);
	}
	if (comm)
		job_leave(me, comm);
}

/* ---- what goes wrong ---- */

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

static void killed(struct rank *me);

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

enum { VICTIM = 1 };

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

static void
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
static void
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

/* While many calls are in the stream: each of them is told to stop, and all end soon. */
static void
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
static void
killed_in_step(struct rank *me)
{
	const struct test *test = me->arg;
	const blinkConfig_t config = { .timeoutMs = timeout_of(me), .chunkBytes = 1024 };
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
static void
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
static void
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
static void
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
static void
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
static void
leaves(struct rank *me)
{
	blinkComm_t comm = join_in_haste(me);
	if (comm && me->rank != VICTIM)
		call_until_it_fails(me, comm, 1u << blinkRemoteError, "rank 1 has left");
	else if (comm)
		job_leave(me, comm);
}

/* One rank has another count than the rest, or another operation. */
static void
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

static void
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
static void
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
static void
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
static void
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
static void
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

/* ---- the program ---- */

static const struct scenario {
	const char *name;
	job_body *body;
	bool processes_only, threads_only, fails, dies;
	int seconds;
} scenarios[] = {
	{ "graph", graph, .seconds = 60 },
	{ "graph_forked", graph_forked, .seconds = 60 },
	{ "streams", streams, .seconds = 30 },
	{ "default_stream", default_stream, .seconds = 20 },
	{ "one_thread", one_thread, .threads_only = true, .seconds = 30 },
	{ "messages", messages, .seconds = 40 },
	{ "killed", killed, .processes_only = true, .dies = true, .seconds = 30 },
	{ "stopped", stopped, .processes_only = true, .dies = true, .seconds = 40 },
	{ "killed_in_queue", killed_in_queue, .processes_only = true, .dies = true, .seconds = 60 },
	{ "killed_in_step", killed_in_step, .processes_only = true, .fails = true, .dies = true, .seconds = 30 },
	{ "unlike", unlike, .processes_only = true, .seconds = 30 },
	{ "late", late, .seconds = 30 },
	{ "crossed", crossed, .seconds = 40 },
	{ "idle", idle, .threads_only = true, .seconds = 60 },
	{ "leaves", leaves, .seconds = 30 },
	{ "differs", differs, .seconds = 30 },
	{ "message_differs", message_differs, .seconds = 30 },
	{ "aborted", aborted, .seconds = 20 },
	{ "bad_pointer", bad_pointer, .processes_only = true, .seconds = 20 },
	{ "stream_refused", stream_refused, .seconds = 20 },
	{ "driver_fails", driver_fails, .processes_only = true, .fails = true, .seconds = 30 },
};

enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void
begin(struct rank *me)
{
	const struct test *test = me->arg;
	job_server(me, test->servers);
	if (test->fails && test->body == killed && me->rank == VICTIM)
		setenv("VIRTUAL_GPU_FAIL", test->fails, 1);
	if (test->body != driver_fails && test->body != killed_in_step)
		device_take(me);
	test->body(me);
}

static int
play(const struct scenario *s, int n, struct test *test)
{
	char name[160], servers[32] = "";
	if (test->servers > 1)
		snprintf(servers, sizeof servers, " on %d servers", test->servers);
	snprintf(name, sizeof name, "%s, %d %s%s%s%s", s->name, n, test->threads ? "threads" : "processes", servers,
	    s->fails ? ", " : "", s->fails ? test->fails : "");
	struct job job = { .name = name, .n = n, .threads = test->threads, .seconds = s->seconds };
	job.doomed[VICTIM] = s->dies;
	test->body = s->body;
	job_start(&job, begin, test);
	return job_report(name, job_wait(&job));
}

/* One after the other, of a list with blanks between them. */
static int
play_failures(const struct scenario *s, int n, struct test *test, char *list)
{
	int failed = 0;
	for (char *rest = list; (test->fails = strsep(&rest, " "));)
		failed |= play(s, n, test);
	return failed;
}

int
main(int argc, char **argv)
{
	double load = job_load();
	struct test test = { .replays = 10, .servers = 1, .seed = 1,
	    .timeout_ms = TIMEOUT_MS * job_slack() * (load > 2 ? load / 2 : 1) };
	int n = 4, failed = 0, n_played = 0;
	char *fails = NULL;
	for (int c; (c = getopt(argc, argv, "tn:s:k:S:f:")) != -1;) {
		switch (c) {
		case 't': test.threads = true; break;
		case 'n': n = atoi(optarg); break;
		case 's': test.servers = atoi(optarg); break;
		case 'k': test.replays = atoi(optarg); break;
		case 'S': test.seed = (uint64_t)atol(optarg); break;
		case 'f': fails = optarg; break;
		default: return 2;
		}
	}
	for (int i = 0; i < N_SCENARIOS; i++) {
		const struct scenario *s = &scenarios[i];
		bool wanted = optind == argc && s->fails == !!fails;
		for (int a = optind; a < argc; a++)
			wanted |= strcmp(argv[a], s->name) == 0;
		if (!wanted || (test.threads ? s->processes_only : s->threads_only))
			continue;
		n_played++;
		failed |= s->fails || fails ? play_failures(s, n, &test, fails) : play(s, n, &test);
	}
	if (!n_played)
		printf("not ok gpu: no such scenario\n");
	return failed || !n_played;
}
