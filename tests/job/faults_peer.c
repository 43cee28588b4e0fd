/* A peer ends, is stopped, is late, leaves, or makes no call. */
#include "faults.h"

#include <signal.h>
#include <unistd.h>

void
be_killed(struct rank *me, blinkComm_t comm)
{
	(void)me;
	(void)comm;
	raise(SIGKILL);
}

void
exit_early(struct rank *me, blinkComm_t comm)
{
	(void)me;
	(void)comm;
	_exit(0);
}

/* Calls of a rank that comes back too late: the first may have all it needs, one of the next fails. */
static void
fail_soon(struct rank *me, blinkComm_t comm)
{
	int64_t x[64] = { 0 }, began = job_now();
	blinkResult_t result = blinkSuccess;
	for (int i = 0; result == blinkSuccess && i < 10; i++) {
		result = blinkAllReduce(x, x, 64, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	expect_error(me, result, blinkCommGetError(comm), began, ANY, -1);
	blinkCommDestroy(comm);
}

/* It is woken by wake_victim. */
void
be_stopped(struct rank *me, blinkComm_t comm)
{
	raise(SIGSTOP);
	job_at(me, "call after the stop");
	fail_soon(me, comm);
}

void
wake_victim(struct job *job, struct run *run)
{
	job_await(job->board, FAILED, (uint64_t)run->n - 1);
	kill(job->pid[run->victim], SIGCONT);
}

void
be_late(struct rank *me, blinkComm_t comm)
{
	job_at(me, "late");
	sleep_ms(2 * ((const struct run *)me->arg)->timeout_ms + 2 * MARGIN_MS);
	fail_soon(me, comm);
}

void
leave_early(struct rank *me, blinkComm_t comm)
{
	job_at(me, "destroy while others call");
	job_need(me, blinkCommDestroy(comm) == blinkSuccess, "blinkCommDestroy");
}

void
make_no_call(struct rank *me, blinkComm_t comm)
{
	int64_t began = job_now();
	blinkError_t error = { "" };
	job_need(me, blinkCommWait(comm, 0) == blinkSuccess, "wait for calls that are done");
	job_at(me, "make no call");
	blinkResult_t result = await_failure(me, comm, &error);
	expect_error(me, result, error.text, began, ANY, me->rank);
	blinkCommDestroy(comm);
}

void
dies_at_init(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	blinkUniqueId_t id;
	if (!job_id(me, 0, 0, &id))
		return;
	job_barrier(me, READY, me->n);
	if (me->rank == run->victim)
		raise(SIGKILL);
	init_with(me, me->n, me->rank, &config, &id);
	go_on(me, all_but(run));
	expect_counts(me, before, true);
}
