/* An alltoall whose blocks differ in length. */
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 3 };			/* elements around each block, that nobody writes */

enum { ROUNDS = 60, STEADY = 40, STEADY_ROUNDS = 5 };

/* Elements from one rank to another in a round: none, few, or many; all none in every seventh; to one rank alone in
 * every fifth. In the last rounds about as many for some rounds, short and long in turn, but one of each that is not,
 * so that what the rounds before had is right or not. */
static size_t
count_of(uint64_t seed, uint64_t round, int from, int to)
{
	uint64_t x = mixed(seed + round, (uint64_t)(from * 64 + to), 7);
	if (round >= STEADY) {
		size_t n = (round - STEADY) / STEADY_ROUNDS % 2 ? 9000 : 300;
		return round % STEADY_ROUNDS == 3 && (from + to) % 3 == 1 ? 3 * n : n + x % (n / 10);
	}
	if (round % 7 == 6 || (round % 5 == 4 && to != (int)round % 3))
		return 0;
	if (x % 3 == 0)
		return 0;
	return x % 3 == 1 ? x / 3 % 20 : x % 16 == 5 && round % 3 == 2 ? x / 64 % 100000 : x / 64 % 3000;
}

static int32_t
element_of(uint64_t round, int from, int to, size_t i)
{
	return (int32_t)mixed(round, (uint64_t)(from * 64 + to), i) | 1;
}

/* A buffer of blocks in a random order of ranks, with gaps; displacements of blocks without elements are wild. */
struct blocks {
	size_t count[JOB_RANKS], displ[JOB_RANKS], n;
	int32_t *data;
	char *device;
};

static void
place_blocks(struct rank *me, struct blocks *b, uint64_t seed, uint64_t round, bool sends)
{
	int start = (int)(mixed(seed, round, (uint64_t)me->rank) % (uint64_t)me->n);
	b->n = GAP;
	for (int i = 0; i < me->n; i++) {
		int r = (start + i * (me->n % 3 ? 3 : 1)) % me->n;
		b->count[r] = sends ? count_of(seed, round, me->rank, r) : count_of(seed, round, r, me->rank);
		b->displ[r] = b->count[r] ? b->n : SIZE_MAX;
		b->n += b->count[r] + GAP;
	}
	b->data = calloc(b->n, sizeof *b->data);
	if (!job_need(me, b->data != NULL, "no memory"))
		exit(97);
	for (int r = 0; r < me->n && sends; r++)
		for (size_t i = 0; i < b->count[r]; i++)
			b->data[b->displ[r] + i] = element_of(round, me->rank, r, i);
}

static void
judge_blocks(struct rank *me, const struct blocks *b, uint64_t round)
{
	size_t wrong = 0, written = 0, want = 0;
	for (int r = 0; r < me->n; r++) {
		for (size_t i = 0; i < b->count[r]; i++)
			wrong += b->data[b->displ[r] + i] != element_of(round, r, me->rank, i);
		want += b->count[r];
	}
	for (size_t i = 0; i < b->n; i++)
		written += b->data[i] != 0;
	job_need(me, wrong == 0 && written == want, "round %d: %zu elements wrong; %zu written, want %zu", (int)round,
	    wrong, written, want);
}

static bool
exchange(struct rank *me, blinkComm_t comm, void *stream, uint64_t seed, uint64_t round)
{
	struct blocks send, recv;
	place_blocks(me, &send, seed, round, true);
	place_blocks(me, &recv, seed, round, false);
	send.device = device_memory(me, comm, send.n * sizeof *send.data);
	recv.device = device_memory(me, comm, recv.n * sizeof *recv.data);
	device_in(me, comm, send.device, send.data, send.n * sizeof *send.data);
	device_in(me, comm, recv.device, recv.data, recv.n * sizeof *recv.data);
	job_at(me, "alltoallv, round %d", (int)round);
	bool good = fine(me, blinkAlltoAllv(send.device ? send.device : (char *)send.data, send.count, send.displ,
	    recv.device ? recv.device : (char *)recv.data, recv.count, recv.displ, blinkInt32, comm, stream), comm,
	    "alltoallv") && wait_for(me, comm);
	device_out(me, comm, recv.data, recv.device, recv.n * sizeof *recv.data);
	if (good)
		judge_blocks(me, &recv, round);
	device_free(me, comm, send.device);
	device_free(me, comm, recv.device);
	free(send.data);
	free(recv.data);
	return good;
}

/* Other counts in each round, with other collectives between. */
void
uneven(struct rank *me)
{
	const struct order *o = me->arg;
	blinkComm_t comm = job_join(me, NULL);
	void *stream = device_stream(me);
	bool good = comm != NULL;
	for (uint64_t round = 0; good && round < ROUNDS; round++) {
		good = exchange(me, comm, stream, o->seed, round);
		if (good && round % 9 == 5)
			good = flight_run(me, comm, 3, 331, round);
	}
	device_stream_end(me, stream);
	job_leave(me, comm);
}

/* The first rank sends one element more than the last one expects: all hear of it, on the host with both numbers. */
void
uneven_differs(struct rank *me)
{
	int last = me->n - 1;
	size_t count[JOB_RANKS] = { 0 }, at[JOB_RANKS] = { 0 }, expected[JOB_RANKS] = { 0 };
	int32_t sent[4] = { 1, 2, 3, 4 }, received[4];
	blinkComm_t comm = job_join(me, NULL);
	blinkError_t error = { "" };
	char want[100];
	if (!comm)
		return;
	char *device = device_memory(me, comm, sizeof sent + sizeof received);
	count[last] = me->rank == 0 ? 4 : 0;
	expected[0] = me->rank == last ? 3 : 0;
	blinkAlltoAllv(device ? device : (char *)sent, count, at, device ? device + sizeof sent : (char *)received,
	    expected, at, blinkInt32, comm, NULL);
	blinkCommWait(comm, 0);
	for (int i = 0; i < job_margin(5000) && blinkCommGetAsyncError(comm, NULL) == blinkSuccess; i++)
		sleep_ms(1);
	blinkResult_t result = blinkCommGetAsyncError(comm, &error);
	snprintf(want, sizeof want, device
	    ? "rank 0 sends another number of bytes, or another type, than rank %d receives"
	    : "rank 0 sends 4 elements to rank %d, which expects 3", last);
	job_need(me, result == blinkMismatch && strstr(error.text, want), "counts differ: %d: %s: want %s", (int)result,
	    error.text, want);
	blinkCommDestroy(comm);
}

/* Arguments that are none; and the communicator goes on. */
void
uneven_refused(struct rank *me)
{
	const struct order *o = me->arg;
	int32_t of_host[64] = { 0 }, *x = of_host;
	size_t one[JOB_RANKS], apart[JOB_RANKS], same[JOB_RANKS] = { 0 }, large[JOB_RANKS] = { 0 };
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	for (int r = 0; r < me->n; r++) {
		one[r] = 1;
		apart[r] = (size_t)r;
	}
	large[me->n - 1] = SIZE_MAX / 4;
	if (device_wanted())
		x = (int32_t *)device_memory(me, comm, sizeof of_host);
	char *odd = (char *)x + 1;
	const struct {
		const void *send;
		void *recv;
		const size_t *sends, *send_at, *recvs, *recv_at;
		blinkDataType_t type;
		const char *want;
	} bad[] = {
		{ x, x + 32, NULL, apart, one, apart, blinkInt32, "send: no counts" },
		{ x, x + 32, one, apart, one, NULL, blinkInt32, "recv: no counts" },
		{ NULL, x + 32, one, apart, one, apart, blinkInt32, "send: NULL" },
		{ x, NULL, one, apart, one, apart, blinkInt32, "recv: NULL" },
		{ x, x + 32, large, apart, one, apart, blinkInt32, "too large" },
		{ x, x + 32, one, large, one, apart, blinkInt32, "displacement" },
		{ odd, x + 32, one, apart, one, apart, blinkInt32, "not aligned" },
		{ x, x, one, apart, one, apart, blinkInt32, "overlaps" },
		{ x, x + 32, one, apart, one, same, blinkInt32, "overlaps" },
		{ x, x + me->n - 1, one, apart, one, apart, blinkInt32, "overlaps" },
		{ x, x + 32, one, apart, one, apart, (blinkDataType_t)99, "type" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		blinkResult_t result = blinkAlltoAllv(bad[i].send, bad[i].sends, bad[i].send_at, bad[i].recv,
		    bad[i].recvs, bad[i].recv_at, bad[i].type, comm, NULL);
		job_need(me, me->n == 1 || (result == blinkInvalidArgument
		    && strstr(blinkCommGetError(comm), bad[i].want)), "bad arguments %zu: %d: %s", i, (int)result,
		    blinkCommGetError(comm));
	}
	/* What is sent may be sent to several. */
	fine(me, blinkAlltoAllv(x, one, same, x + 32, one, apart, blinkInt32, comm, NULL), comm, "one for all");
	wait_for(me, comm);
	exchange(me, comm, NULL, o->seed, 1);
	if (x != of_host)
		device_free(me, comm, (char *)x);
	job_leave(me, comm);
}
