/* Collectives of ranks on GPUs: the time of a call, until it is done on all ranks. Ranks are threads, one to each GPU.
 *
 *	gpu -n RANKS -c COLLECTIVE -b BYTES [-k CALLS] [-r ROOT]
 *
 * prints the seconds of the fastest of CALLS calls, and how many ms late a thread woke up on the average. COLLECTIVE
 * is one of the eight, alltoallv of equal lengths, or sendrecv: what an alltoall moves, by messages of a group.
 * BLINK_SCHEDULES has the schedule, which must be one of a file. Data are checked after the last call. While the
 * process was stopped, or the machine suspended, no time counts: that is when a thread that wakes up every 20 ms
 * did not for half a second. BYTES are of the message as blink-schedule(5) counts M. On virtual GPUs whose links
 * are slowed down (VIRTUAL_GPU_SCALE) it is the links that take the time, and the rate is that of the schedule:
 * tests/bench/gpu.sh. */
#include "../job/device.h"
#include "blink_program.h"
#include "driver/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct bench {
	const char *coll;
	size_t bytes;
	int calls, root;
	double seconds;			/* of the fastest call, on all ranks */
};

enum { CALLS_MOST = 8, BARRIERS = 1, SAMPLE = 64, WARM = 256 };

/* Seconds that did not count so far; by how many the clock's thread was late, in all its turns. */
static _Atomic double stopped, late;
static _Atomic long turns;

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *
watch_clock(void *unused)
{
	(void)unused;
	for (double at = now(), then; ; at = then) {
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		then = now();
		if (then - at > 0.5) {
			stopped = stopped + (then - at);
			continue;
		}
		late = late + (then - at - 0.02);
		turns++;
	}
	return NULL;
}

static bool
is(const struct bench *b, const char *name)
{
	return strcmp(b->coll, name) == 0;
}

/* Messages of a group, between all pairs. */
static bool
is_messages(const struct bench *b)
{
	return is(b, "sendrecv");
}

/* Each rank has a block for each. */
static bool
is_exchange(const struct bench *b)
{
	return is(b, "alltoall") || is(b, "alltoallv") || is_messages(b);
}

/* A rank gives, or gets, a block for each. */
static bool
sends_blocks(const struct bench *b)
{
	return is_exchange(b) || is(b, "reducescatter") || is(b, "scatter");
}

static bool
gets_blocks(const struct bench *b)
{
	return is_exchange(b) || is(b, "allgather") || is(b, "gather");
}

static bool
has_result(const struct bench *b, int rank)
{
	return (!is(b, "reduce") && !is(b, "gather")) || rank == b->root;
}

static const struct {
	const char *name;
	blinkCollective_t number;
} collectives[] = {
	{ "allreduce", blinkCollAllReduce }, { "reduce", blinkCollReduce }, { "reducescatter", blinkCollReduceScatter },
	{ "broadcast", blinkCollBroadcast }, { "allgather", blinkCollAllGather }, { "gather", blinkCollGather },
	{ "scatter", blinkCollScatter }, { "alltoall", blinkCollAlltoAll }, { "alltoallv", blinkCollAlltoAll },
	{ "sendrecv", blinkCollAlltoAll }
};

/* *out: its number. */
static bool
find_collective(const struct bench *b, blinkCollective_t *out)
{
	bool found = false;
	for (size_t i = 0; i < sizeof collectives / sizeof collectives[0] && !found; i++) {
		found = is(b, collectives[i].name);
		*out = collectives[i].number;
	}
	return found;
}

static blinkResult_t
exchange(const struct rank *me, size_t n, const char *send, char *recv, blinkComm_t comm, void *stream)
{
	blinkGroupStart();
	for (int peer = 0; peer < me->n; peer++) {
		size_t at = (size_t)peer * n * sizeof(float);
		if (peer == me->rank)
			continue;
		blinkSend(send + at, n, blinkFloat32, peer, comm, stream);
		blinkRecv(recv + at, n, blinkFloat32, peer, comm, stream);
	}
	return blinkGroupEnd();
}

/* Lengths are equal, but no rank knows that of others. */
static blinkResult_t
uneven(const struct rank *me, size_t n, const char *send, char *recv, blinkComm_t comm, void *stream)
{
	size_t count[JOB_RANKS], at[JOB_RANKS];
	for (int peer = 0; peer < me->n; peer++) {
		count[peer] = n;
		at[peer] = (size_t)peer * n;
	}
	return blinkAlltoAllv(send, count, at, recv, count, at, blinkFloat32, comm, stream);
}

static blinkResult_t
call(const struct rank *me, const struct bench *b, size_t n, const void *send, void *recv, blinkComm_t comm,
    void *stream)
{
	if (is(b, "allreduce"))
		return blinkAllReduce(send, recv, n, blinkFloat32, blinkSum, comm, stream);
	if (is(b, "reduce"))
		return blinkReduce(send, recv, n, blinkFloat32, blinkSum, b->root, comm, stream);
	if (is(b, "reducescatter"))
		return blinkReduceScatter(send, recv, n, blinkFloat32, blinkSum, comm, stream);
	if (is(b, "gather"))
		return blinkGather(send, recv, n, blinkFloat32, b->root, comm, stream);
	if (is(b, "scatter"))
		return blinkScatter(send, recv, n, blinkFloat32, b->root, comm, stream);
	if (is(b, "allgather"))
		return blinkAllGather(send, recv, n, blinkFloat32, comm, stream);
	if (is(b, "alltoallv"))
		return uneven(me, n, send, recv, comm, stream);
	if (is(b, "alltoall"))
		return blinkAlltoAll(send, recv, n, blinkFloat32, comm, stream);
	if (is_messages(b))
		return exchange(me, n, send, recv, comm, stream);
	return blinkBroadcast(send, recv, n, blinkFloat32, b->root, comm, stream);
}

/* A block has one value, so that no data need to cross slow links to the host: it is set on the GPU. Of an exchange: of
 * who sends it, and for whom it is. */
static float
value(int rank, int block)
{
	return (float)(rank * rank + 1 + 1000 * block);
}

static float
wanted(const struct bench *b, const struct rank *me, int block)
{
	if (is_exchange(b))
		return value(block, me->rank);
	if (gets_blocks(b))
		return value(block, 0);
	int own = sends_blocks(b) ? me->rank : 0;
	if (is(b, "broadcast") || is(b, "scatter"))
		return value(b->root, own);
	float sum = 0;
	for (int r = 0; r < me->n; r++)
		sum += value(r, own);
	return sum;
}

static void
fill(struct rank *me, char *to, size_t n, float x)
{
	const struct driver *d;
	struct blink_error err = { 0 };
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	job_need(me, driver_open(&d, &err) == blinkSuccess && d->set32_async((CUdeviceptr)(uintptr_t)to, bits, n, NULL)
	    == CUDA_SUCCESS && d->stream_synchronize(NULL) == CUDA_SUCCESS, "fill: %s", err.text);
}

/* Some elements at the beginning, the end and between of each block. */
static void
check(struct rank *me, const struct bench *b, blinkComm_t comm, const char *recv, size_t n, size_t blocks)
{
	float got[SAMPLE];
	for (size_t block = 0; block < blocks; block++) {
		if (is_messages(b) && (int)block == me->rank)
			continue;
		for (int part = 0; part <= 16; part++) {
			size_t at = block * n + (n - SAMPLE) / 16 * (size_t)part, wrong = 0;
			device_out(me, comm, got, recv + at * sizeof(float), sizeof got);
			for (size_t i = 0; i < SAMPLE; i++)
				wrong += got[i] != wanted(b, me, (int)block);
			job_need(me, wrong == 0, "block %zu: %zu wrong from element %zu on", block, wrong, at);
		}
	}
}

static void
time_call(struct rank *me, struct bench *b, int number, size_t n, const void *send, void *recv, blinkComm_t comm,
    void *stream)
{
	job_barrier(me, BARRIERS + 2 * number, me->n);
	double began = now() - stopped;
	call(me, b, n, send, recv, comm, stream);
	job_need(me, blinkCommWait(comm, 0) == blinkSuccess, "%s", blinkCommGetError(comm));
	job_barrier(me, BARRIERS + 2 * number + 1, me->n);
	double seconds = now() - stopped - began;
	if (me->rank == 0 && (b->seconds == 0 || seconds < b->seconds))
		b->seconds = seconds;
}

static void
measure(struct rank *me, struct bench *b, blinkComm_t comm)
{
	size_t blocks = gets_blocks(b) ? (size_t)me->n : 1, sent = sends_blocks(b) ? (size_t)me->n : 1;
	size_t n = b->bytes / sizeof(float) / (blocks > sent ? blocks : sent);
	blinkCollective_t number = blinkCollAlltoAll;
	char *send = device_memory(me, comm, n * sent * sizeof(float));
	char *recv = device_memory(me, comm, n * blocks * sizeof(float));
	void *stream = device_stream(me);
	blinkChoice_t choice;
	for (size_t block = 0; block < sent; block++)
		fill(me, send + block * n * sizeof(float), n, value(me->rank, (int)block));
	fill(me, recv, n * blocks, -1);
	bool good = find_collective(b, &number)
	    && (is_messages(b) || blinkCommGetChoice(comm, number, b->root, b->bytes, &choice) == blinkSuccess);
	job_need(me, is_messages(b) || (good && !choice.builtIn), "no schedule of a file: %s", good ? choice.text : "");
	call(me, b, n < WARM ? n : WARM, send, recv, comm, stream);	/* tables and modules are loaded */
	job_need(me, blinkCommWait(comm, 0) == blinkSuccess, "warm-up: %s", blinkCommGetError(comm));
	for (int i = 0; i < b->calls; i++)
		time_call(me, b, i, n, send, recv, comm, stream);
	if (has_result(b, me->rank))
		check(me, b, comm, recv, n, blocks);
	device_free(me, comm, send);
	device_free(me, comm, recv);
	device_stream_end(me, stream);
}

static void
body(struct rank *me)
{
	struct bench *b = me->arg;
	pthread_t clock;
	device_take(me);
	if (me->rank == 0)
		job_need(me, pthread_create(&clock, NULL, watch_clock, NULL) == 0 && pthread_detach(clock) == 0,
		    "a thread");
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	measure(me, b, comm);
	blinkCommDestroy(comm);
	if (me->rank == 0)
		printf("%.6f %.3f\n", b->seconds, turns ? 1e3 * late / (double)turns : 0);
}

int
main(int argc, char **argv)
{
	struct bench b = { .coll = "allreduce", .bytes = 64 << 20, .calls = 1 };
	blinkCollective_t number;
	int n = 0, option;
	while ((option = getopt(argc, argv, "n:c:b:k:r:")) != -1) {
		if (option == 'n')
			n = atoi(optarg);
		else if (option == 'c')
			b.coll = optarg;
		else if (option == 'b')
			b.bytes = strtoull(optarg, NULL, 10);
		else if (option == 'k')
			b.calls = atoi(optarg);
		else if (option == 'r')
			b.root = atoi(optarg);
		else
			return 2;
	}
	if (!find_collective(&b, &number) || n < 1 || n > JOB_RANKS || b.calls < 1 || b.calls > CALLS_MOST || b.root < 0
	    || b.root >= n)
		return 2;
	return job_run("bench", n, true, 600, body, &b) == 0 ? 0 : 1;
}
