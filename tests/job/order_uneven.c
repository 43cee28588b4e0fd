/* An alltoall whose blocks differ in length. */
#include "blocks.h"
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
exchange(struct rank *me, blinkComm_t comm, void *stream, uint64_t seed, uint64_t round)
{
	struct blocks_pair p;
	blocks_make(me, &p, comm, seed, round);
	blocks_fill(me, &p, round);
	job_at(me, "alltoallv, round %d", (int)round);
	bool good = blocks_exchange(me, &p, stream) && wait_for(me, comm);
	if (good)
		blocks_judge(me, &p, round, (int)round);
	blocks_free(me, &p);
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
	for (uint64_t round = 0; good && round < BLOCKS_ROUNDS; round++) {
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
