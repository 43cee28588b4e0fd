/* Kills and stops by chance: a rank ends or stops at any moment of its work, which is init, calls, messages, windows,
 * splits, shrinking, growing and destroying, again and again. */
#include "faults.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ID = AGAIN + 1 };

/* What the ranks of a trial do at present, for the judgement of an error. */
struct doing {
	int64_t since;
	bool splits;			/* ranks of a part have other numbers */
	bool grows;			/* a rank that waits for the victim elsewhere is missing, too */
};

static bool
goes_on(struct rank *me)
{
	return job_now() < (int64_t)job_get(me->board, LEFT_OVER);
}

static blinkResult_t
failed(blinkResult_t result, blinkComm_t comm, blinkError_t *error)
{
	if (result != blinkSuccess)
		snprintf(error->text, sizeof error->text, "%s", blinkCommGetError(comm));
	return result;
}

static blinkResult_t
some_calls(struct rank *me, blinkComm_t comm, uint64_t seed, blinkError_t *error)
{
	int n = 1 + (int)(mixed(seed, 0, 1) % 8);
	return failed(flight_try(me, comm, n, seed % 10 ? 331 : 40001, seed), comm, error);
}

static blinkResult_t
window(struct rank *me, blinkComm_t comm, blinkError_t *error)
{
	void *memory = NULL, *handle = NULL;
	job_at(me, "a window");
	blinkResult_t result = blinkMemAlloc(comm, me->rank, 4096, &memory);
	result = result == blinkSuccess ? blinkCommRegister(comm, memory, 4096, &handle) : result;
	result = result == blinkSuccess ? blinkCommDeregister(comm, handle) : result;
	result = result == blinkSuccess ? blinkMemFree(comm, me->rank, memory) : result;
	return failed(result, comm, error);
}

static blinkResult_t
split(struct rank *me, blinkComm_t comm, uint64_t seed, struct doing *doing, blinkError_t *error)
{
	blinkComm_t part = NULL;
	job_at(me, "split");
	doing->splits = true;
	blinkResult_t result = blinkCommSplit(comm, me->rank % 2, me->rank, &part, NULL, error);
	if (result != blinkSuccess)
		return result;
	result = some_calls(me, part, seed + (uint64_t)me->rank % 2, error);
	job_at(me, "destroy a part");
	blinkCommDestroy(part);
	doing->splits = result != blinkSuccess;
	return result;
}

/* The last rank waits for the id of the others, as long as its communicator works. */
static blinkResult_t
await_id(struct rank *me, blinkComm_t comm, int slot, blinkUniqueId_t *id, blinkError_t *error)
{
	blinkResult_t result = blinkSuccess;
	job_at(me, "wait for the id to grow");
	while (result == blinkSuccess && !job_have_id(me, slot, id)) {
		bool left = false;
		for (int r = 0; r < me->n; r++)
			left |= job_get(me->board, REPORTED + r) != 0;
		if (left || !goes_on(me))	/* no id will come: this rank hears why in its calls */
			result = some_calls(me, comm, 1, error);
		else
			result = blinkCommGetAsyncError(comm, error);
		sleep_ms(0.2);
	}
	return result;
}

/* The communicator without the last rank, and with it again. */
static blinkResult_t
shrink_and_grow(struct rank *me, blinkComm_t comm, uint64_t seed, int slot, struct doing *doing, blinkError_t *error)
{
	blinkComm_t less = NULL, again = NULL;
	blinkUniqueId_t id;
	int last = me->n - 1;
	blinkConfig_t config = config_of(me);
	blinkResult_t result;
	doing->grows = true;
	if (me->rank == last) {
		result = await_id(me, comm, slot, &id, error);
		job_at(me, "come again");
		if (result == blinkSuccess)
			result = blinkCommInitRank(&again, me->n, &id, me->rank, &config, error);
	} else {
		job_at(me, "shrink");
		result = blinkCommShrink(comm, &last, 1, blinkShrinkDefault, &less, NULL, error);
		result = result == blinkSuccess ? some_calls(me, less, seed, error) : result;
		job_at(me, "grow");
		if (result == blinkSuccess && me->rank == 0 && !job_id(me, slot, 0, &id))
			result = blinkSystemError;
		if (result == blinkSuccess)
			result = blinkCommGrow(less, me->n, me->rank ? NULL : &id, &again, NULL, error);
	}
	result = result == blinkSuccess ? some_calls(me, again, seed + 1, error) : result;
	doing->grows = result != blinkSuccess;
	job_at(me, "destroy what shrank and grew");
	blinkCommDestroy(again);
	blinkCommDestroy(less);
	return result;
}

/* All of it, until something fails. */
static blinkResult_t
work_until_error(struct rank *me, blinkComm_t comm, uint64_t seed, struct doing *doing, blinkError_t *error)
{
	blinkResult_t result = blinkSuccess;
	for (uint64_t i = 0; result == blinkSuccess && goes_on(me); i++) {
		uint64_t what = mixed(seed, i, 3) % 6;
		int slot = FIRST_ID + (int)i;
		doing->since = job_now();
		if (what == 0)
			result = window(me, comm, error);
		else if (what == 1)
			result = split(me, comm, seed + i, doing, error);
		else if (what == 2 && me->n > 2 && slot < JOB_IDS)
			result = shrink_and_grow(me, comm, seed + i, slot, doing, error);
		else
			result = some_calls(me, comm, seed + i, error);
	}
	return result;
}

/* Within the timeout of the moment when the rank was struck, or the call began that needs it. A process that ends takes
 * its ports along: that nobody listens there is a reason, too, and whose it was may not be known. */
static void
judge(struct rank *me, blinkResult_t result, const char *text, bool joined, const struct doing *doing)
{
	const struct run *run = me->arg;
	int64_t began = (int64_t)job_get(me->board, STRUCK_AT), bye = joined && run->victim ? 0 : 1000000000;
	began = began ? began : job_now();
	began = joined && doing->since > began ? doing->since : began;
	bool made_id = strstr(text, "that made the id") || strstr(text, "the meeting place of");
	expect_error(me, result, text, began + bye, REMOTE | TIMEOUT | 1 << blinkSystemError, -1);
	bool named = blames(me, text, run->victim, false)
	    || (doing->splits && blames(me, text, run->victim, true))
	    || (doing->grows && strstr(text, "not come"));
	job_need(me, named || made_id, "rank %d is not named: %d: %s", run->victim,
	    (int)result, text);
}

static void
trial_body(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	struct doing doing = { 0 };
	if (!job_id(me, 0, 0, &id))
		return;
	job_add(me->board, READY, 1);
	job_at(me, "init, victim %d", run->victim);
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	bool joined = result == blinkSuccess;
	if (joined)
		result = work_until_error(me, comm, run->seed, &doing, &error);
	if (me->rank == run->victim)
		job_need(me, result != blinkSuccess, "stopped, and no error");
	else
		judge(me, result, error.text, joined, &doing);
	job_set(me->board, REPORTED + me->rank, 1);
	job_at(me, "destroy, victim %d", run->victim);
	blinkCommDestroy(comm);
	job_add(me->board, FAILED, 1);
	if (me->rank != run->victim)
		go_on(me, all_but(run));
	job_at(me, "count files and threads");
	expect_hubs(me, before, 2);
}

/* The state of a process, a letter: T, it is stopped. */
static char
state_of(pid_t pid)
{
	char path[64], state = '?';
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (file)
		fclose(file);
	return state;
}

/* Until the others have heard of it. The kernel continues it where the shell that began all this ends meanwhile. */
static void
keep_stopped(struct job *job, int victim, int n_others)
{
	kill(job->pid[victim], SIGSTOP);
	job_await(job->board, FAILED, (uint64_t)n_others);
	sleep_ms(20);
	char state = state_of(job->pid[victim]);
	if (state != 'T')
		printf("# rank %d was not stopped to the end: its state is %c\n", victim, state);
	kill(job->pid[victim], SIGCONT);
}

static int
trial(struct run *run, int i)
{
	uint64_t h = mixed(run->seed, (uint64_t)i, 99);
	struct run one = { .n = 2 + (int)(h % 7), .servers = run->servers, .seed = h };
	one.stops = !run->kills && h >> 8 & 1;
	one.timeout_ms = (int)((500 + (double)(h >> 16 & 127)) * job_load());
	one.victim = (int)((h >> 24) % (uint64_t)one.n);
	double delay = (double)((h >> 32) % 1000) / 1000 * (h >> 48 & 1 ? 8 : 60);
	struct job job = { .name = "trial", .n = one.n, .seconds = 15 };
	job.doomed[one.victim] = true;
	job_start(&job, trial_body, &one);
	job_set(job.board, LEFT_OVER, (uint64_t)job.deadline - 2000000000);
	job_await(job.board, READY, 1);
	sleep_ms(delay);
	job_set(job.board, STRUCK_AT, (uint64_t)job_now());
	if (one.stops)
		keep_stopped(&job, one.victim, one.n - 1);
	else
		kill(job.pid[one.victim], SIGKILL);
	int wrong = job_wait(&job);
	if (wrong)
		printf("# trial %d: rank %d of %d %s after %.1f ms, timeout %d ms\n", i, one.victim, one.n,
		    one.stops ? "stopped" : "killed", delay, one.timeout_ms);
	return wrong;
}

int
play_trials(struct run *run, int n_trials)
{
	char name[128];
	int wrong = 0, shm = count_shm();
	for (int i = 0; i < n_trials; i++)
		wrong += trial(run, i) != 0;
	if (count_shm() > shm && ++wrong)
		printf("# %d more files in /dev/shm\n", count_shm() - shm);
	snprintf(name, sizeof name, "%d kills%s by chance, %s", n_trials, run->kills ? "" : " and stops",
	    run->servers > 1 ? "several servers" : "one server");
	return job_report(name, wrong);
}
