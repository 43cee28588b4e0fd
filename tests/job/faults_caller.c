/* A rank makes another call than the others, or joins with other arguments. */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t scratch[4096];

/* ---- other calls ---- */

/* Another call than the others make. */
static void
judge_other(struct rank *me, blinkComm_t comm, blinkResult_t result)
{
	const struct run *run = me->arg;
	int64_t began = job_now();
	blinkError_t error = { "" };
	job_at(me, "another call: %s", run->fault->name);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	if (result == blinkSuccess)
		result = await_failure(me, comm, &error);
	expect_error(me, result, error.text, began, MISMATCH | TIMEOUT, me->rank);
	blinkCommDestroy(comm);
}

void
call_more(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 65, blinkInt64, blinkSum, comm, NULL));
}

void
call_less(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 1, blinkInt64, blinkSum, comm, NULL));
}

void
call_nothing(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 0, blinkInt64, blinkSum, comm, NULL));
}

void
call_type(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 64, blinkFloat64, blinkSum, comm, NULL));
}

void
call_op(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 64, blinkInt64, blinkMax, comm, NULL));
}

void
call_collective(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllGather(scratch, scratch + 64, 64, blinkInt64, comm, NULL));
}

void
call_in_other_order(struct rank *me, blinkComm_t comm)
{
	blinkResult_t result = blinkBroadcast(scratch, scratch, 8, blinkInt64, 0, comm, NULL);
	if (result == blinkSuccess)
		result = blinkAllReduce(scratch, scratch, 64, blinkInt64, blinkSum, comm, NULL);
	judge_other(me, comm, result);
}

void
send_instead(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkSend(scratch, 8, blinkInt64, (me->rank + 1) % me->n, comm, NULL));
}

/* ---- roots and messages ---- */

/* Broadcasts of different roots: nobody waits for more than the data of its root. */
void
other_root(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkComm_t comm = job_join(me, &config);
	if (!comm)
		return;
	int root = me->rank == run->victim ? (run->victim + 1) % me->n : run->victim;
	int64_t began = job_now();
	blinkResult_t result = blinkBroadcast(scratch, scratch, 4096, blinkInt64, root, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	/* A rank that is done does not learn of it in this call, but in the next. */
	if (result == blinkSuccess) {
		result = blinkAllReduce(scratch, scratch, 1, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	expect_error(me, result, blinkCommGetError(comm), began, MISMATCH | TIMEOUT | REMOTE, run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* Nobody sends what a rank waits for; and a message of another size. */
void
message_missing(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkComm_t comm = job_join(me, &config);
	int next = (run->victim + 1) % me->n;
	if (!comm)
		return;
	int64_t began = job_now();
	blinkResult_t result = blinkSuccess;
	blinkError_t error = { "" };
	if (me->rank == next) {
		result = blinkRecv(scratch, 8, blinkInt64, run->victim, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	while (result == blinkSuccess && job_now() - began < patience_ns(me)) {
		result = blinkCommGetAsyncError(comm, &error);
		sleep_ms(1);
	}
	expect_error(me, result, me->rank == next ? blinkCommGetError(comm) : error.text, began, TIMEOUT | REMOTE,
	    run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

void
message_size(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkComm_t comm = job_join(me, &config);
	int next = (run->victim + 1) % me->n;
	if (!comm)
		return;
	int64_t began = job_now();
	blinkResult_t result = blinkSuccess;
	if (me->rank == next)
		result = blinkRecv(scratch, 8, blinkInt64, run->victim, comm, NULL);
	if (me->rank == run->victim)
		result = blinkSend(scratch, 9, blinkInt64, next, comm, NULL);
	if (result == blinkSuccess)
		result = blinkAllReduce(scratch, scratch, 1, blinkInt64, blinkSum, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	expect_error(me, result, blinkCommGetError(comm), began, MISMATCH | TIMEOUT, -1);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* ---- at init ---- */

void
init_differs(struct rank *me)
{
	const struct run *run = me->arg;
	const char *fault = run->fault->name;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	blinkUniqueId_t id;
	int n = me->n, rank = me->rank;
	bool victim = rank == run->victim;
	if (!job_id(me, 0, 0, &id))
		return;
	if (victim && strcmp(fault, "other number of ranks") == 0)
		n++;
	if (victim && strcmp(fault, "same rank twice") == 0)
		rank = (rank + 1) % n;
	if (victim && strcmp(fault, "wrong secret") == 0)
		for (int i = 8; i < BLINK_UNIQUE_ID_BYTES; i++)
			id.internal[i] ^= (char)(i >= BLINK_UNIQUE_ID_BYTES / 2 || !id.internal[i] ? 0 : 1);
	if (!victim || strcmp(fault, "never comes") != 0)
		init_with(me, n, rank, &config, &id);
	else
		job_await(me->board, FAILED, (uint64_t)me->n - 1);
	job_add(me->board, FAILED, 1);
	go_on(me, all_but(run));
	expect_counts(me, before, strcmp(fault, "same rank twice") != 0);
}

/* One rank of a server does not share memory. */
void
shm_differs(struct rank *me)
{
	const struct run *run = me->arg;
	const blinkConfig_t config = { .timeoutMs = run->timeout_ms };
	blinkUniqueId_t id;
	if (!job_id(me, 0, 0, &id))
		return;
	if (me->rank == run->victim)
		setenv("BLINK_SHM", "0", 1);
	init_with(me, me->n, me->rank, &config, &id);
	unsetenv("BLINK_SHM");
	go_on(me, all_but(run));
}

/* One rank has a schedule that the others do not have. */
void
other_schedules(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	char path[4096];
	snprintf(path, sizeof path, "%s/allreduce.json", run->directory);
	config.schedules = me->rank == run->victim ? path : NULL;
	if (!job_id(me, 0, 0, &id))
		return;
	int64_t began = job_now();
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	if (result == blinkSuccess) {
		began = job_now();
		result = blinkAllReduce(scratch, scratch, 4096, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	expect_error(me, result, error.text, began, MISMATCH | ARGUMENT, run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* Arguments that are refused at once, by the rank alone. */
void
init_refused(struct rank *me)
{
	blinkConfig_t config = config_of(me), wrong;
	struct counts before = count();
	blinkUniqueId_t id, no_id = { { 0 } };
	if (!job_id(me, 0, 0, &id))
		return;
#define REFUSED(code, n, id, rank, config) do { \
	blinkComm_t comm = NULL; \
	blinkError_t error = { "" }; \
	blinkResult_t result = blinkCommInitRank(&comm, n, id, rank, config, &error); \
	job_need(me, result == (code) && !comm && strlen(error.text) > 10, "%d ranks, rank %d: %d: %s", n, rank, \
	    (int)result, error.text); \
} while (0)
	REFUSED(blinkInvalidArgument, 0, &id, 0, &config);
	REFUSED(blinkInvalidArgument, -1, &id, 0, &config);
	REFUSED(blinkInvalidArgument, me->n, &id, me->n, &config);
	REFUSED(blinkInvalidArgument, me->n, &id, -1, &config);
	REFUSED(blinkInvalidArgument, me->n, &no_id, me->rank, &config);
	REFUSED(blinkInvalidArgument, me->n, NULL, me->rank, &config);
	wrong = config;
	wrong.timeoutMs = -1;
	REFUSED(blinkInvalidArgument, me->n, &id, me->rank, &wrong);
	wrong = config;
	wrong.threads = -1;
	REFUSED(blinkInvalidArgument, me->n, &id, me->rank, &wrong);
#undef REFUSED
	job_barrier(me, READY, me->n);
	blinkComm_t comm = job_join_some(me, AGAIN, (UINT64_C(1) << me->n) - 1, &config);
	if (comm) {
		flight_run(me, comm, 10, 331, 1);
		blinkCommDestroy(comm);
	}
	expect_counts(me, before, true);
}
