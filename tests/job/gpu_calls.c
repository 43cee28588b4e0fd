/* Calls of ranks on GPUs: in graphs, in several streams, of one thread for all ranks. */
#include "gpu.h"

#include "blocks.h"
#include "support/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void
graph(struct rank *me)
{
	replay(me, 1, ((const struct test *)me->arg)->seed);
}

void
graph_forked(struct rank *me)
{
	replay(me, 3, ((const struct test *)me->arg)->seed + 9);
}

/* Alltoalls whose blocks differ, captured once, of other counts each; and outside of the graph of others again. */
enum { UNEVEN_CALLS = 6 };

static void
capture_uneven(struct rank *me, const struct blocks_pair p[UNEVEN_CALLS], CUstream stream, CUgraphExec *exec)
{
	CUgraph graph;
	GOOD(capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int k = 0; k < UNEVEN_CALLS; k++)
		blocks_exchange(me, &p[k], stream);
	GOOD(capture_end(stream, &graph));
	GOOD(graph_instantiate(exec, graph, 0));
	GOOD(graph_destroy(graph));
}

static bool
exchange_beside(struct rank *me, blinkComm_t comm, CUstream stream, uint64_t seed, int round)
{
	struct blocks_pair p;
	blocks_make(me, &p, comm, seed, (uint64_t)round % BLOCKS_ROUNDS);
	blocks_fill(me, &p, seed);
	bool right = blocks_exchange(me, &p, stream) && wait_for(me, comm);
	if (right)
		blocks_judge(me, &p, seed, round);
	blocks_free(me, &p);
	return right;
}

void
graph_uneven(struct rank *me)
{
	static const uint64_t rounds[UNEVEN_CALLS] = { 2, 5, 6, 9, 41, 48 };
	const struct test *test = me->arg;
	struct blocks_pair p[UNEVEN_CALLS];
	CUgraphExec exec;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	CUstream stream = device_stream(me);
	for (int k = 0; k < UNEVEN_CALLS; k++)
		blocks_make(me, &p[k], comm, test->seed, rounds[k]);
	capture_uneven(me, p, stream, &exec);
	bool right = true;
	for (int r = 0; r < test->replays && right; r++) {
		uint64_t values = test->seed + (uint64_t)r * UNEVEN_CALLS;
		job_at(me, "replay %d", r);
		for (int k = 0; k < UNEVEN_CALLS; k++)
			blocks_fill(me, &p[k], values + (uint64_t)k);
		GOOD(graph_launch(exec, stream));
		GOOD(stream_synchronize(stream));
		for (int k = 0; k < UNEVEN_CALLS; k++)
			blocks_judge(me, &p[k], values + (uint64_t)k, r);
		if (r % 3 == 1)
			right = exchange_beside(me, comm, stream, values, r) && flight_run(me, comm, 2, 331, values);
	}
	GOOD(graph_exec_destroy(exec));
	for (int k = 0; k < UNEVEN_CALLS; k++)
		blocks_free(me, &p[k]);
	device_stream_end(me, stream);
	job_leave(me, comm);
}

/* A graph of one call and a call outside of it, in two streams that know nothing of each other: all ranks get to know
 * that one of them has both at work. Rank 0 comes late, so that the others' kernels wait. */
void
graph_beside_call(struct rank *me)
{
	const struct test *test = me->arg;
	struct trip t;
	CUgraph graph;
	CUgraphExec exec;
	blinkError_t error = { "" };
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	trip_make(me, &t, comm, 1, 2, test->seed);
	capture(me, &t, comm, &graph);
	GOOD(graph_instantiate(&exec, graph, 0));
	if (me->rank == 0)
		sleep_ms(300);
	GOOD(graph_launch(exec, t.stream[0]));
	blinkResult_t result = blinkAllReduce(t.f.device, t.f.device, 1, blinkInt32, blinkSum, comm, t.stream[1]);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	for (int i = 0; result == blinkSuccess && i < 2000 * job_slack(); i++) {
		sleep_ms(1);
		result = blinkCommGetAsyncError(comm, NULL);
	}
	blinkCommGetAsyncError(comm, &error);
	job_need(me, strstr(error.text, "two calls at once on device"), "%d: %s", (int)result, error.text);
	for (int i = 0; i < 2; i++)
		GOOD(stream_synchronize(t.stream[i]));
	GOOD(graph_exec_destroy(exec));
	GOOD(graph_destroy(graph));
	trip_end(me, &t);
	blinkCommDestroy(comm);
}

/* ---- streams ---- */

/* Calls take turns with three streams that know nothing of each other. */
void
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

/* An allreduce of one of two communicators, long enough for all blocks that it has. */
enum { PAIR_COUNT = 1 << 18 };

struct member {
	blinkComm_t comm;
	CUstream stream;
	char *device;
};

static void
member_call(struct rank *me, struct member *m, int factor)
{
	m->stream = device_stream(me);
	m->device = device_memory(me, m->comm, PAIR_COUNT * 4);
	GOOD(set32_async((CUdeviceptr)(uintptr_t)m->device, (unsigned)(factor * (me->rank + 1)), PAIR_COUNT,
	    m->stream));
	fine(me, blinkAllReduce(m->device, m->device, PAIR_COUNT, blinkInt32, blinkSum, m->comm, m->stream), m->comm,
	    "allreduce");
}

static void
member_end(struct rank *me, struct member *m, int factor)
{
	int32_t *x = calloc(PAIR_COUNT, sizeof *x);
	int wrong = 0;
	if (wait_for(me, m->comm)) {
		device_out(me, m->comm, (char *)x, m->device, PAIR_COUNT * 4);
		for (int i = 0; i < PAIR_COUNT; i++)
			wrong += x[i] != factor * me->n * (me->n + 1) / 2;
		job_need(me, !wrong, "%d of %d elements are wrong: %d", wrong, (int)PAIR_COUNT, x[0]);
	}
	free(x);
	device_free(me, m->comm, m->device);
	device_stream_end(me, m->stream);
}

/* Two communicators, each in a stream of its own. Half of the ranks begin with the one, half with the other, and go on
 * when its kernel has begun and waits: both end if a GPU holds both. Where a GPU has one block the second communicator
 * is refused. */
void
two_communicators(struct rank *me)
{
	const char *blocks = getenv("VIRTUAL_GPU_BLOCKS");
	struct member of[2] = { { .comm = job_join(me, NULL) } };
	blinkError_t error = { "" };
	if (!of[0].comm)
		return;
	blinkResult_t result = blinkCommSplit(of[0].comm, 0, me->rank, &of[1].comm, NULL, &error);
	if (blocks && atoi(blocks) < 2) {
		job_need(me, result != blinkSuccess && strstr(error.text, "have all its 1 blocks"), "%s", error.text);
	} else if (job_need(me, result == blinkSuccess, "split: %s", error.text)) {
		for (int i = 0; i < 2; i++) {
			int k = me->rank < me->n / 2 ? i : 1 - i;
			member_call(me, &of[k], k + 1);
			sleep_ms(100);
		}
		for (int i = 0; i < 2; i++)
			member_end(me, &of[i], i + 1);
		fine(me, blinkCommDestroy(of[1].comm), of[0].comm, "destroy");
	}
	job_leave(me, of[0].comm);
}

/* The default stream, with what the caller has put there before and puts there after. */
void
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
void
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
