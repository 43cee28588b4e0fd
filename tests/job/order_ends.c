/* Aborts, and what is refused. */
#include "order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- aborts ---- */

/* One rank makes a call that the last one does not, waits in a thread, and aborts from another. */
void
aborted(struct rank *me)
{
	char x = 1;
	blinkError_t error = { "" };
	blinkComm_t comm = job_join(me, NULL);
	struct waiter w = { .me = me, .comm = comm };
	pthread_t thread;
	if (!comm)
		return;
	flight_run(me, comm, 5, 331, 1);
	bool calls = me->rank < me->n - 1;
	if (calls) {
		job_need(me, blinkAllReduce(&x, &x, 1, blinkInt8, blinkSum, comm, NULL) == blinkSuccess, "allreduce");
		if (pthread_create(&thread, NULL, wait_in_thread, &w) != 0)
			exit(97);
	}
	job_barrier(me, 0, me->n);
	if (me->rank == 0) {
		sleep_ms(20);
		job_need(me, blinkCommGetAsyncError(comm, &error) == blinkSuccess, "failed before: %s", error.text);
		blinkResult_t result = blinkCommAbort(comm);
		job_need(me, result == blinkSuccess, "blinkCommAbort: %d", (int)result);
	}
	job_at(me, "wait for the abort");
	if (calls)
		pthread_join(thread, NULL);
	for (int i = 0; i < job_margin(1000) && blinkCommGetAsyncError(comm, NULL) == blinkSuccess; i++)
		sleep_ms(1);
	blinkResult_t result = blinkCommGetAsyncError(comm, &error);
	job_need(me, result == blinkAborted, "after an abort: %d: %s", (int)result, error.text);
	job_need(me, me->rank == 0 || strstr(error.text, "rank 0"), "the text does not name rank 0: %s", error.text);
	job_need(me, !calls || w.result == blinkAborted, "the wait: %d", (int)w.result);
	job_need(me, w.took < (int64_t)(1e6 * job_margin(1000)), "the wait took %.0f ms", (double)w.took / 1e6);
	result = blinkAllReduce(&x, &x, 1, blinkInt8, blinkSum, comm, NULL);
	job_need(me, result == blinkAborted, "a call after the abort: %d", (int)result);
	blinkCommDestroy(comm);
}

/* On servers of their own: rank 0 aborts while the others have no place for what it sends, since they make no call. Its
 * memory is its own again, and it leaves without them. */
void
taken_back(struct rank *me)
{
	const size_t bytes = 48 << 20;
	const blinkConfig_t config = { .chunkBytes = 8 << 20 };
	job_server(me, me->n);
	blinkComm_t comm = job_join(me, &config);
	char *data = malloc(bytes);
	if (!comm || !data)
		exit(97);
	flight_run(me, comm, 5, 331, 1);
	if (me->rank == 0) {
		memset(data, 1, bytes);
		blinkResult_t made = blinkBroadcast(data, data, bytes, blinkInt8, 0, comm, NULL);
		sleep_ms(50);
		blinkCommAbort(comm);
		blinkResult_t result = blinkCommWait(comm, 0);
		job_need(me, made == blinkSuccess && result == blinkAborted, "aborted: %d, %d", (int)made, (int)result);
	}
	free(data);
	if (me->rank != 0)
		job_await(me->board, 1, 1);
	int64_t began = job_now();
	job_leave(me, comm);
	job_need(me, job_now() - began < (int64_t)(1e6 * job_margin(2000)), "leaving took %.0f ms",
	    (double)(job_now() - began) / 1e6);
	job_set(me->board, 1, 1);
}

/* ---- what is refused ---- */

/* What is refused at once leaves the communicator as it was. */
void
refused(struct rank *me)
{
	float x[64] = { 0 };
	blinkComm_t comm = job_join(me, NULL), none = NULL;
	blinkError_t error = { "" };
	const int beside[] = { (me->rank + 1) % me->n, (me->rank + 1) % me->n };
	void *at = x;
	if (!comm)
		return;
#define REFUSED(call) do { blinkResult_t result = call; job_need(me, result == blinkInvalidArgument && \
	strlen(blinkCommGetError(comm)) > 10, #call ": %d: %s", (int)result, blinkCommGetError(comm)); } while (0)
	REFUSED(blinkBroadcast(at, at, 1, blinkFloat32, me->n, comm, NULL));
	REFUSED(blinkBroadcast(at, at, 1, blinkFloat32, -1, comm, NULL));
	REFUSED(blinkReduce(at, at, 1, blinkFloat32, blinkSum, 1000, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, (blinkDataType_t)12, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, (blinkDataType_t)-1, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, blinkFloat32, (blinkRedOp_t)17, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, blinkFloat32, (blinkRedOp_t)-1, comm, NULL));
	REFUSED(blinkAllReduce(NULL, at, 1, blinkFloat32, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, NULL, 1, blinkFloat32, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, at, SIZE_MAX / 2, blinkFloat32, blinkSum, comm, NULL));
	REFUSED(blinkAllGather(at, x + 8, SIZE_MAX / 8, blinkFloat32, comm, NULL));
	REFUSED(blinkSend(at, 1, blinkFloat32, me->n, comm, NULL));
	REFUSED(blinkRecv(at, 1, blinkFloat32, -1, comm, NULL));
	REFUSED(blinkCommWait(comm, 1));
	REFUSED(blinkRedOpDestroy(blinkSum, comm));
	REFUSED(blinkCommShrink(comm, beside, 2, blinkShrinkDefault, &none, NULL, NULL));
	REFUSED(blinkCommGrow(comm, me->n, NULL, &none, NULL, NULL));
	REFUSED(blinkCommGrow(comm, me->n + 1, NULL, &none, NULL, NULL));
#undef REFUSED
	blinkResult_t grown = blinkCommGrow(comm, me->n + 1 + (me->rank == 0), NULL, &none, NULL, &error);
	job_need(me, grown == blinkMismatch && strstr(error.text, "want the same"), "grows differ: %d: %s", (int)grown,
	    error.text);
	job_need(me, blinkCommGetAsyncError(comm, NULL) == blinkSuccess, "refused arguments fail the communicator");
	flight_run(me, comm, 10, 331, 3);
	job_leave(me, comm);
}

/* The last rank receives another size, or another type, than rank 0 sends: it says what differs, and all hear of it. */
void
messages_differ(struct rank *me)
{
	int x[2] = { 1, 2 };
	const int last = me->n - 1;
	for (int round = 0; round < 2; round++) {
		blinkComm_t comm = job_join_some(me, round, (UINT64_C(1) << me->n) - 1, NULL);
		blinkError_t error = { "" };
		char want[100];
		if (!comm)
			return;
		if (me->rank == 0)
			blinkSend(x, 2, blinkInt32, last, comm, NULL);
		else if (me->rank == last)
			blinkRecv(x, 2 - (size_t)(round == 0), round == 0 ? blinkInt32 : blinkFloat32, 0, comm, NULL);
		for (int i = 0; i < job_margin(5000) && blinkCommGetAsyncError(comm, NULL) == blinkSuccess; i++)
			sleep_ms(1);
		blinkResult_t result = blinkCommGetAsyncError(comm, &error);
		snprintf(want, sizeof want, round == 0 ? "rank 0 sends 8 bytes; rank %d receives 4"
		    : "rank 0 sends another type than rank %d receives", last);
		job_need(me, result == blinkMismatch && strstr(error.text, want), "messages differ: %d: %s: want %s",
		    (int)result, error.text, want);
		blinkCommDestroy(comm);
	}
}

/* One call of a round: the last rank's differs, in size or in what it is, so that one goes by slots and the other by
 * trees. A root may be done before anybody looks. */
static void
call_differs(int round, bool odd, float *x, blinkComm_t comm)
{
	const size_t few = 2, many = 100000;
	if (round == 0)
		blinkAllReduce(x, x, odd ? many : few, blinkFloat32, blinkSum, comm, NULL);
	else if (round == 1)
		blinkBroadcast(x, x, odd ? many : few, blinkFloat32, 0, comm, NULL);
	else if (round == 2)
		blinkBroadcast(x, x, odd ? few : many, blinkFloat32, 0, comm, NULL);
	else if (odd)
		blinkAllReduce(x, x, few, blinkFloat32, blinkMax, comm, NULL);
	else
		blinkReduce(x, x, few, blinkFloat32, blinkSum, 0, comm, NULL);
}

/* All hear of it long before the time is over. */
void
calls_differ(struct rank *me)
{
	float *x = calloc(100000, sizeof *x);
	for (int round = 0; x && round < 4; round++) {
		blinkComm_t comm = job_join_some(me, round, (UINT64_C(1) << me->n) - 1, NULL);
		blinkError_t error = { "" };
		if (!comm)
			break;
		flight_run(me, comm, 20, 331, (uint64_t)round + 1);
		/* Nobody hears of what follows while it still waits for what was before. */
		job_set(me->board, me->rank, (uint64_t)round + 1);
		for (int r = 0; r < me->n; r++)
			job_await(me->board, r, (uint64_t)round + 1);
		call_differs(round, me->rank == me->n - 1, x, comm);
		blinkCommWait(comm, 0);
		for (int i = 0; i < job_margin(5000) && blinkCommGetAsyncError(comm, NULL) == blinkSuccess; i++)
			sleep_ms(1);
		blinkResult_t result = blinkCommGetAsyncError(comm, &error);
		job_need(me, result == blinkMismatch && strstr(error.text, " called "), "calls differ, round %d: %d: "
		    "%s", round, (int)result, error.text);
		blinkCommDestroy(comm);
	}
	free(x);
}

/* A group with a call that is refused makes none of its calls; nor does one whose communicator ends in between. */
void
groups_fail(struct rank *me)
{
	int x[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	uint64_t all = (UINT64_C(1) << me->n) - 1, last = 9;
	blinkComm_t comm = job_join_some(me, 0, all, NULL), other = comm ? job_join_some(me, 1, all, NULL) : NULL;
	for (int round = 0; other && round < 3; round++) {
		group(me, true);
		blinkAllReduce(x, x, 8, blinkInt32, blinkSum, comm, NULL);
		group(me, true);
		blinkSend(x, 1, blinkInt32, 0, comm, NULL);
		if (round == 0)
			blinkBroadcast(x, x, 1, blinkInt32, me->n, other, NULL);
		else if (round == 1)
			blinkRecv(x, 1, blinkInt32, 0, NULL, NULL);
		else
			blinkCommDestroy(comm);
		group(me, false);
		if (round == 2)
			blinkAllReduce(x, x, 8, blinkInt32, blinkSum, other, NULL);
		blinkResult_t result = blinkGroupEnd();
		job_need(me, result == blinkInvalidArgument, "round %d: the end of a group: %d", round, (int)result);
		blinkCommLastCall(round == 2 ? other : comm, &last);
		job_need(me, last == 0 && x[0] == 1, "round %d: call %llu was made", round, (unsigned long long)last);
	}
	job_need(me, blinkGroupEnd() == blinkInvalidArgument, "the end of no group");
	if (other) {
		flight_run(me, other, 10, 331, 3);
		job_leave(me, other);
	}
}
