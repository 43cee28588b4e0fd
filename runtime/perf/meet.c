/* Ranks of a job meet in memory that they share. */
#include "perf/meet.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void
wait_while(atomic_uint *word, unsigned value)
{
	const struct timespec nap = { .tv_nsec = NAP * 1000000L };
	syscall(SYS_futex, word, FUTEX_WAIT, value, &nap, NULL, 0);
}

void
wake_all(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int
job_meet(struct perf *p)
{
	struct job *job = p->job;
	unsigned round = atomic_load(&job->round);
	if (atomic_fetch_add(&job->arrived, 1) + 1 == (unsigned)job->n) {
		atomic_store(&job->arrived, 0);
		atomic_store(&job->round, round + 1);
		wake_all(&job->round);
	}
	while (atomic_load(&job->round) == round && !atomic_load(&job->failed))
		wait_while(&job->round, round);
	return atomic_load(&job->round) == round ? p->code = blinkRemoteError : 0;
}

int
job_share(struct perf *p, double *time, int64_t *n_wrong)
{
	struct job *job = p->job;
	job->rank[p->first].time = *time;
	job->rank[p->first].n_wrong = *n_wrong;
	if (job_meet(p))
		return 1;
	for (int r = 0; r < job->n; r++) {
		*time = job->rank[r].time > *time ? job->rank[r].time : *time;
		*n_wrong += r != p->first && *n_wrong >= 0 ? job->rank[r].n_wrong : 0;
	}
	return job_meet(p);	/* before the places are used again */
}
