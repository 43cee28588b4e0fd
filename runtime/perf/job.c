/* The ranks of a job, and how they end.
 *
 * This process starts them and is none of them: so it can be asked which of them died, and end those that cannot end
 * by themselves. All share one block of memory, in which they meet, and in which each leaves its time, what was wrong,
 * and why it failed: of many failures, all for the one reason that a rank is gone, one line is printed. */
#include "perf/job.h"
#include "perf/find.h"
#include "perf/meet.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LATE = 5000 };	/* ms that ranks have to end after the first failure */

/* ---- a rank ---- */

static int
run_rank(struct job *job, int r)
{
	struct perf p = { .opt = *job->opt, .job = job, .first = r, .end = r + 1 };
	int collective = job->opt->collective < 0 ? blinkCollAllReduce : job->opt->collective;
	bool rooted = collective == blinkCollBroadcast || collective == blinkCollReduce ||
	    collective == blinkCollGather || collective == blinkCollScatter;
	p.info = (blinkScheduleInfo_t){ .collective = (blinkCollective_t)collective, .nRanks = job->n,
		.root = rooted ? job->root : -1, .collectiveName = collectives[collective] };
	p.gpu = job->gpus ? job->gpus[r] : NULL;
	complaint = job->rank[r].text;
	int code = rank_perf(&p);
	job->rank[r].code = code;
	if (code && !p.n_wrong)
		atomic_store(&job->failed, 1);
	perf_release(&p);
	atomic_fetch_add(&job->ended, 1);
	wake_all(&job->ended);
	return code;
}

/* ---- processes ---- */

/* late: it has been killed here, since another had failed. */
static void
died(struct job *job, int r, int status, bool late)
{
	struct member *m = &job->rank[r];
	if (late && WIFSIGNALED(status)) {
		m->code = m->code ? m->code : blinkRemoteError;
	} else if (WIFSIGNALED(status)) {
		m->code = blinkSystemError;
		snprintf(m->text, sizeof m->text, "rank %d: signal %d ended it: %s", r, WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	} else if (!m->code) {
		m->code = WEXITSTATUS(status);
	}
	if (m->code != blinkUnverified)
		atomic_fetch_or(&job->failed, m->code != 0);
}

/* -1: of none. */
static int
rank_of(const pid_t *pid, int n, pid_t which)
{
	int r = n - 1;
	while (r >= 0 && pid[r] != which)
		r--;
	return r;
}

static void
end_late(struct job *job, const pid_t *pid)
{
	for (int r = 0; r < job->n; r++)
		if (pid[r] > 0)
			kill(pid[r], SIGKILL);
}

/* Until all that were started have ended. */
static void
await_processes(struct job *job, pid_t *pid, int left)
{
	double failed_at = 0;
	bool late = false;
	while (left > 0) {
		bool failed = atomic_load(&job->failed);
		int status;
		pid_t who = waitpid(-1, &status, failed ? WNOHANG : 0);
		int r = who > 0 ? rank_of(pid, job->n, who) : -1;
		if (r >= 0) {
			died(job, r, status, late);
			pid[r] = 0;
			left--;
		} else if (failed) {
			struct timespec nap = { .tv_nsec = NAP * 1000000L };
			nanosleep(&nap, NULL);
		}
		if (failed && failed_at == 0)
			failed_at = seconds();
		if (failed && !late && seconds() - failed_at > LATE / 1e3) {
			late = true;
			end_late(job, pid);
		}
	}
}

static pid_t
start_process(struct job *job, int r)
{
	pid_t parent = getpid(), child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(blinkSystemError);
	int code = run_rank(job, r);
	if (fflush(stdout) || ferror(stdout))
		code = complain(blinkSystemError, "standard output: %s", strerror(errno));
	_exit(code);
}

static int
run_processes(struct job *job)
{
	int n = 0;
	pid_t *pid = calloc((size_t)job->n, sizeof *pid);
	if (!pid)
		return complain(blinkOutOfMemory, "out of memory");
	fflush(stdout);
	signal(SIGCHLD, SIG_DFL);	/* who started this may have had it ignored: waitpid would tell of nobody */
	while (n < job->n && (pid[n] = start_process(job, n)) > 0)
		n++;
	if (n < job->n) {
		job->rank[n].code = blinkSystemError;
		snprintf(job->rank[n].text, COMPLAINT, "rank %d: fork: %s", n, strerror(errno));
		atomic_store(&job->failed, 1);
	}
	await_processes(job, pid, n);
	free(pid);
	return 0;
}

/* ---- failures ---- */

/* Of the failures of a job: what others only noticed explains less. */
static int
weight(int code)
{
	return code == 0 ? 0 : code == blinkRemoteError || code == blinkAborted ? 1 : code == blinkTimeout ? 2 : 3;
}

/* Print the line of the failure that explains the others; exit code. */
static int
report(const struct job *job)
{
	const struct member *worst = &job->rank[0];
	for (int r = 1; r < job->n; r++)
		if (weight(job->rank[r].code) > weight(worst->code) ||
		    (weight(job->rank[r].code) == weight(worst->code) && !*worst->text))
			worst = &job->rank[r];
	if (*worst->text)
		complain(worst->code, "%s", worst->text);
	return worst->code > blinkSystemError ? blinkSystemError : worst->code;
}

/* ---- threads ---- */

struct start {
	struct job *job;
	int rank;
	pthread_t thread;
};

static void *
run_thread(void *data)
{
	struct start *s = data;
	run_rank(s->job, s->rank);
	return NULL;
}

/* False: some have not ended in time after a failure, and cannot be made to. */
static bool
await_threads(struct job *job, unsigned n)
{
	double failed_at = 0;
	for (unsigned ended; (ended = atomic_load(&job->ended)) < n;) {
		bool failed = atomic_load(&job->failed);
		if (failed && failed_at == 0)
			failed_at = seconds();
		if (failed && seconds() - failed_at > LATE / 1e3)
			return false;
		wait_while(&job->ended, ended);
	}
	return true;
}

static int
run_threads(struct job *job)
{
	int n = 0;
	struct start *start = calloc((size_t)job->n, sizeof *start);
	if (!start)
		return complain(blinkOutOfMemory, "out of memory");
	for (; n < job->n; n++) {
		start[n] = (struct start){ .job = job, .rank = n };
		int error = pthread_create(&start[n].thread, NULL, run_thread, &start[n]);
		if (error) {
			job->rank[n].code = blinkSystemError;
			snprintf(job->rank[n].text, COMPLAINT, "rank %d: pthread_create: %s", n, strerror(error));
			atomic_store(&job->failed, 1);
			break;
		}
	}
	if (!await_threads(job, (unsigned)n))
		_exit(report(job));
	for (int r = 0; r < n; r++)
		pthread_join(start[r].thread, NULL);
	free(start);
	return 0;
}

/* ---- the job ---- */

static int
run_job(struct job *job)
{
	int code = find_job_gpus(job->opt, &job->gpus);
	if (!code)
		code = find_job_root(job->opt, job->gpus, &job->root);
	if (!code)
		code = job->opt->threads_as_ranks ? run_threads(job) : run_processes(job);
	find_free_gpus(job->gpus, job->n);
	return code ? code : report(job);
}

int
job_perf(const struct options *opt)
{
	size_t bytes = sizeof(struct job) + (size_t)opt->ranks * sizeof(struct member);
	struct job *job = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job == MAP_FAILED)
		return complain(blinkOutOfMemory, "out of memory");
	job->opt = opt;
	job->n = (int)opt->ranks;
	int code = run_job(job);
	munmap(job, bytes);
	return code;
}
