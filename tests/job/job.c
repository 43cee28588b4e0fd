#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined __has_feature
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || HAS(address_sanitizer) || HAS(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#if defined __SANITIZE_THREAD__ || HAS(thread_sanitizer)
/* A GPU's slot is sent by a thread of the relay, and written anew once the other server says that it was read. That
 * order goes through another process, so ThreadSanitizer does not see it. */
const char *__tsan_default_suppressions(void) __attribute__((visibility("default")));

const char *
__tsan_default_suppressions(void)
{
	return "race:send_up_to\nrace:send_slot\n";
}
#endif

enum { FAULTS_PRINTED = 20 };

struct board {
	atomic_int faults, printed;
	atomic_int ended[JOB_RANKS];
	_Atomic uint64_t flag[JOB_FLAGS];
	atomic_int have_id[JOB_IDS];	/* 1: made, 2: could not be made */
	blinkUniqueId_t id[JOB_IDS];
	char note[JOB_RANKS][JOB_NOTE];
	int64_t deadline;
};

/* ---- time, memory, numbers ---- */

int64_t
job_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
sleep_ms(double ms)
{
	int64_t ns = (int64_t)(ms * 1e6);
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

double
job_slack(void)
{
	const char *text = getenv("JOB_SLACK");
	double slack = text ? strtod(text, NULL) : 1;
	return (slack > 0 ? slack : 1) * (SANITIZED ? 5 : 1);
}

/* The average follows a burst after a minute: what runs this very moment counts, too. */
double
job_load(void)
{
	double average = 0, running = 0, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
	FILE *file = fopen("/proc/loadavg", "r");
	if (file && fscanf(file, "%lf %*f %*f %lf/", &average, &running) != 2)
		average = running = 0;
	if (file)
		fclose(file);
	double load = (average > running ? average : running) / cpus;
	return load < 1 ? 1 : load < 8 ? load : 8;
}

double
job_margin(double ms)
{
	return ms * job_slack() * job_load();
}

void *
shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(99);
	}
	return memory;
}

uint64_t
mixed(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xc2b2ae3d27d4eb4fu + 0x165667b19e3779f9u)
	    ^ (c * 0xff51afd7ed558ccdu);
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

uint64_t
next_random(uint64_t *state)
{
	return mixed(++*state, 1, 2);
}

/* Entries of a directory whose names begin so, without . and .. */
static int
entries(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	int n = 0;
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		n += e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return n;
}

int
count_files(void)
{
	return entries("/proc/self/fd", "") - 1;	/* that of the directory */
}

int
count_threads(void)
{
	return entries("/proc/self/task", "");
}

int
count_shm(void)
{
	/* Fuzzers may run beside it. */
	return entries("/dev/shm", "blink") - entries("/dev/shm", "blink-fuzz");
}

int
job_report(const char *name, int wrong)
{
	if (wrong)
		printf("not ok %s: %d wrong\n", name, wrong);
	else
		printf("ok %s\n", name);
	fflush(stdout);
	return wrong != 0;
}

/* ---- ranks ---- */

void
job_server(const struct rank *me, int servers)
{
	char host[32];
	snprintf(host, sizeof host, "server%d", me->rank * servers / me->n);
	if (servers > 1)
		setenv("BLINK_HOST_ID", host, 1);
}

void
job_at(struct rank *me, const char *format, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* a rank may have several threads */
	va_list args;
	pthread_mutex_lock(&lock);
	va_start(args, format);
	vsnprintf(me->board->note[me->rank], JOB_NOTE, format, args);
	va_end(args);
	pthread_mutex_unlock(&lock);
}

static void
print_fault(struct board *board, int rank, const char *text)
{
	atomic_fetch_add(&board->faults, 1);
	if (atomic_fetch_add(&board->printed, 1) < FAULTS_PRINTED)
		dprintf(STDOUT_FILENO, "# rank %d: %s\n", rank, text);
}

bool
job_need(struct rank *me, bool good, const char *format, ...)
{
	char text[1600];
	va_list args;
	if (good)
		return true;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	print_fault(me->board, me->rank, text);
	return false;
}

void
job_set(struct board *board, int slot, uint64_t value)
{
	atomic_store(&board->flag[slot], value);
}

uint64_t
job_add(struct board *board, int slot, uint64_t value)
{
	return atomic_fetch_add(&board->flag[slot], value) + value;
}

uint64_t
job_get(struct board *board, int slot)
{
	return atomic_load(&board->flag[slot]);
}

bool
job_await(struct board *board, int slot, uint64_t value)
{
	while (atomic_load(&board->flag[slot]) < value) {
		if (job_now() > board->deadline)
			return false;
		sleep_ms(0.2);
	}
	return true;
}

bool
job_barrier(struct rank *me, int slot, int n)
{
	job_add(me->board, slot, 1);
	return job_await(me->board, slot, (uint64_t)n);
}

bool
job_id(struct rank *me, int slot, int maker, blinkUniqueId_t *id)
{
	struct board *board = me->board;
	blinkError_t error = { "" };
	if (me->rank == maker) {
		blinkResult_t result = blinkGetUniqueId(&board->id[slot], &error);
		job_need(me, result == blinkSuccess, "blinkGetUniqueId: %d: %s", (int)result, error.text);
		atomic_store(&board->have_id[slot], result == blinkSuccess ? 1 : 2);
	}
	while (!atomic_load(&board->have_id[slot])) {
		if (job_now() > board->deadline)
			return false;
		sleep_ms(0.2);
	}
	*id = board->id[slot];
	return atomic_load(&board->have_id[slot]) == 1;
}

bool
job_have_id(const struct rank *me, int slot, blinkUniqueId_t *id)
{
	bool made = atomic_load(&me->board->have_id[slot]) == 1;
	if (made)
		*id = me->board->id[slot];
	return made;
}

blinkComm_t
job_join_some(struct rank *me, int slot, uint64_t mask, const blinkConfig_t *config)
{
	blinkUniqueId_t id;
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	int n = __builtin_popcountll(mask), rank = __builtin_popcountll(mask & ((UINT64_C(1) << me->rank) - 1));
	job_at(me, "wait for id %d", slot);
	if (!job_id(me, slot, __builtin_ctzll(mask), &id))
		return NULL;
	job_at(me, "init of %d ranks with id %d", n, slot);
	blinkResult_t result = blinkCommInitRank(&comm, n, &id, rank, config, &error);
	job_need(me, result == blinkSuccess, "blinkCommInitRank: %d: %s", (int)result, error.text);
	return result == blinkSuccess ? comm : NULL;
}

blinkComm_t
job_join(struct rank *me, const blinkConfig_t *config)
{
	return job_join_some(me, 0, (UINT64_C(1) << me->n) - 1, config);
}

void
job_leave(struct rank *me, blinkComm_t comm)
{
	job_at(me, "destroy");
	blinkResult_t result = blinkCommDestroy(comm);
	job_need(me, result == blinkSuccess, "blinkCommDestroy: %d", (int)result);
}

/* ---- the job ---- */

struct start {
	struct rank rank;
	job_body *body;
};

static void *
run_rank(void *arg)
{
	struct start *start = arg;
	start->body(&start->rank);
	job_at(&start->rank, "ended");
	atomic_store(&start->rank.board->ended[start->rank.rank], 1);
	return NULL;
}

/* The process of one rank, or of all as threads. */
static void
child(const struct job *job, int first, int n, job_body *body, void *arg)
{
	static struct start start[JOB_RANKS];
	pthread_t thread[JOB_RANKS];
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* also one that is stopped */
	for (int i = 0; i < n; i++) {
		start[i].rank = (struct rank){ .rank = first + i, .n = job->n, .arg = arg, .board = job->board };
		start[i].body = body;
	}
	if (n == 1) {
		run_rank(&start[0]);
		exit(0);
	}
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, run_rank, &start[i]) != 0)
			exit(98);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	exit(0);
}

void
job_start(struct job *job, job_body *body, void *arg)
{
	int processes = job->threads ? 1 : job->n;
	job->board = shared_memory(sizeof *job->board);
	job->seconds_scaled = job_margin(job->seconds);
	job->deadline = job_now() + (int64_t)(job->seconds_scaled * 1e9);
	job->board->deadline = job->deadline;
	fflush(stdout);
	for (int p = 0; p < processes; p++) {
		job->pid[p] = fork();
		if (job->pid[p] == 0)
			child(job, p, job->threads ? job->n : 1, body, arg);
		if (job->pid[p] < 0) {
			perror("fork");
			exit(99);
		}
	}
}

/* Where the threads of a process are: name, system call. With JOB_DEBUGGER, as "gdb -batch -ex bt -p": what that
 * prints. */
static void
print_threads(pid_t pid)
{
	char command[512];
	const char *debugger = getenv("JOB_DEBUGGER");
	snprintf(command, sizeof command, "cd /proc/%d/task && for t in *; do echo \"#   thread $t $(cat $t/comm): "
	    "$(cut -d' ' -f3 $t/stat) $(cut -d' ' -f1 $t/syscall)\"; done 2>/dev/null", (int)pid);
	if (system(command) != 0)
		printf("#   no threads\n");
	if (debugger) {
		snprintf(command, sizeof command, "%s %d", debugger, (int)pid);
		if (system(command) != 0)
			printf("#   %s failed\n", debugger);
	}
}

/* Of the processes that are left: print what hangs, and end them. */
static void
end_all(struct job *job)
{
	for (int r = 0; r < job->n; r++)
		if (!atomic_load(&job->board->ended[r]) && job->pid[job->threads ? 0 : r])
			print_fault(job->board, r, job->board->note[r][0] ? job->board->note[r] : "hangs at the start");
	printf("# %s: hangs after %g s\n", job->name, job->seconds_scaled);
	fflush(stdout);
	for (int p = 0; p < (job->threads ? 1 : job->n); p++) {
		if (!job->pid[p])
			continue;
		printf("#  process of rank %d:\n", p);
		fflush(stdout);
		print_threads(job->pid[p]);
		kill(job->pid[p], SIGKILL);
	}
}

static void
judge_end(struct job *job, int p, int status)
{
	char text[128];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFSIGNALED(status) && job->doomed[p])
		return;
	if (WIFSIGNALED(status))
		snprintf(text, sizeof text, "ended by signal %d, at: %.60s", WTERMSIG(status), job->board->note[p]);
	else
		snprintf(text, sizeof text, "exit status %d, at: %.60s", WEXITSTATUS(status), job->board->note[p]);
	print_fault(job->board, p, text);
}

int
job_wait(struct job *job)
{
	int processes = job->threads ? 1 : job->n, left = processes, faults;
	bool late = false;
	double pause = 0.2;
	while (left > 0) {
		bool any = false;
		for (int p = 0; p < processes; p++) {
			int status;
			if (!job->pid[p] || waitpid(job->pid[p], &status, WNOHANG) != job->pid[p])
				continue;
			job->pid[p] = 0;
			any = true;
			left--;
			if (!late)
				judge_end(job, p, status);
		}
		if (left > 0 && !late && job_now() > job->deadline) {
			late = true;
			end_all(job);
		}
		pause = any ? 0.2 : pause < 5 ? pause * 1.2 : 5;
		if (left > 0)
			sleep_ms(pause);
	}
	faults = atomic_load(&job->board->faults);
	munmap(job->board, sizeof *job->board);
	return faults;
}

int
job_run(const char *name, int n, bool threads, int seconds, job_body *body, void *arg)
{
	struct job job = { .name = name, .n = n, .threads = threads, .seconds = seconds };
	job_start(&job, body, arg);
	return job_wait(&job);
}
