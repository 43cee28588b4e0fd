/* A worker is a forked process that takes the next task from a counter in shared memory until there are no more. So
 * tasks of any length keep all workers busy, and a crash of one harms no other. A worker writes a byte into a pipe when
 * a task ends; the pipe ends when all workers have. Workers die with their parent. */
#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK = 100 };	/* ms */

struct worker {
	pid_t pid;
	atomic_int task;	/* current one; -1: none */
};

struct crew {
	atomic_int next;	/* next task */
	atomic_uchar *ended;	/* n_tasks */
	struct worker worker[POOL_WORKERS];
};

/* Its size lies before an array. */
enum { HEADER = 64 };

void *
shared_array(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, HEADER, &bytes))
		return NULL;
	char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	memcpy(all, &bytes, sizeof bytes);
	return all + HEADER;
}

void
shared_free(void *array)
{
	size_t bytes;
	if (!array)
		return;
	char *all = (char *)array - HEADER;
	memcpy(&bytes, all, sizeof bytes);
	munmap(all, bytes);
}

int
pool_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > POOL_WORKERS ? POOL_WORKERS : n;
}

static void
run_task(const Pool *pool, int task, TaskEnd *end)
{
	Ctx own;
	ctx_init(&own);
	Status status = pool->run(&own, pool->of, task);
	if (status != OK)
		snprintf(end->text, sizeof end->text, "%.*s", (int)sizeof end->text - 1, own.error.text);
	end->status = status;
	ctx_free(&own);
}

static Status
run_here(const Pool *pool, TaskEnd *end)
{
	for (int i = 0; i < pool->n_tasks; i++) {
		run_task(pool, i, &end[i]);
		if (pool->done)
			pool->done(pool->of, i + 1);
	}
	return OK;
}

static void __attribute__((noreturn))
work(const Pool *pool, struct crew *crew, struct worker *self, pid_t parent, int tell, TaskEnd *end)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (int task; (task = atomic_fetch_add(&crew->next, 1)) < pool->n_tasks;) {
		atomic_store(&self->task, task);
		run_task(pool, task, &end[task]);
		atomic_store(&crew->ended[task], 1);
		atomic_store(&self->task, -1);
		while (write(tell, "", 1) < 0 && errno == EINTR)
			;
	}
	_exit(0);
}

/* Until every worker has ended; *n_done counts the tasks that end. */
static void
listen_to(const Pool *pool, int from, int *n_done)
{
	char told[4096];
	for (;;) {
		struct pollfd fd = { .fd = from, .events = POLLIN };
		int n = poll(&fd, 1, TICK);
		ssize_t size = n > 0 ? read(from, told, sizeof told) : 0;
		if (n > 0 && (size == 0 || (size < 0 && errno != EINTR)))
			return;
		*n_done += size > 0 ? (int)size : 0;
		if (pool->done)
			pool->done(pool->of, *n_done);
	}
}

/* At most one worker for each task; one that dies has failed its task. *died: some did. */
static Status
run_crew(Ctx *ctx, const Pool *pool, struct crew *crew, int *n_done, bool *died, TaskEnd *end)
{
	int fd[2], n = 0, left = pool->n_tasks - atomic_load(&crew->next), error = 0;
	int most = pool->n_workers < left ? pool->n_workers : left;
	pid_t parent = getpid();
	*died = false;
	if (pipe2(fd, O_CLOEXEC) != 0)
		return fail(ctx, IO, "a pipe: %s", strerror(errno));
	fflush(stdout);
	fflush(stderr);
	for (; n < most && n < POOL_WORKERS; n++) {
		struct worker *w = &crew->worker[n];
		atomic_store(&w->task, -1);
		/* Only the parent writes the pid: the memory is shared. */
		pid_t pid = fork();
		if (pid == 0) {
			ctx->told = 0;	/* its CPU time begins there */
			work(pool, crew, w, parent, fd[1], end);
		}
		w->pid = pid;
		if (pid < 0) {
			error = errno;
			break;
		}
	}
	close(fd[1]);
	if (n > 0)
		listen_to(pool, fd[0], n_done);
	close(fd[0]);
	for (int i = 0; i < n; i++) {
		struct worker *w = &crew->worker[i];
		int task, ended = 0;
		while (waitpid(w->pid, &ended, 0) < 0 && errno == EINTR)
			;
		*died = *died || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0;
		if ((task = atomic_load(&w->task)) < 0 || atomic_load(&crew->ended[task]))
			continue;
		atomic_store(&crew->ended[task], 1);
		++*n_done;
		end[task].status = INTERNAL;
		snprintf(end[task].text, sizeof end[task].text,
		    WIFSIGNALED(ended) ? "the worker was killed by signal %d" : "the worker exited with status %d",
		    WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
	}
	return n > 0 || most == 0 ? OK : fail(ctx, IO, "a process: %s", strerror(error));
}

Status
pool_run(Ctx *ctx, const Pool *pool, TaskEnd *end)
{
	if (pool->n_workers <= 1 || pool->n_tasks <= 1)
		return run_here(pool, end);
	struct crew *crew = shared_array(1, sizeof *crew);
	atomic_uchar *ended = shared_array((size_t)pool->n_tasks, sizeof *ended);
	int n_done = 0;
	bool died = true;
	Status status = crew && ended ? OK : fail_memory(ctx);
	if (status == OK)
		crew->ended = ended;
	while (status == OK && died && atomic_load(&crew->next) < pool->n_tasks)
		status = run_crew(ctx, pool, crew, &n_done, &died, end);
	/* Tasks of a worker that was killed between taking one and noting that. */
	for (int i = 0; status == OK && i < pool->n_tasks; i++)
		if (!atomic_load(&ended[i]))
			run_task(pool, i, &end[i]);
	shared_free(crew);
	shared_free(ended);
	return status;
}

Status
pool_run_all(Ctx *ctx, const Pool *pool)
{
	TaskEnd *end = shared_array((size_t)pool->n_tasks, sizeof *end);
	Status status = end ? pool_run(ctx, pool, end) : fail_memory(ctx);
	for (int i = 0; i < pool->n_tasks && status == OK; i++)
		if (end[i].status != OK)
			status = fail(ctx, end[i].status, "%s", end[i].text);
	shared_free(end);
	return status;
}
