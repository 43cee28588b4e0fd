/* What communicators leave in their processes: after many of each kind in a row no thread, descriptor, mapping or
 * memory, also where one rank is stopped meanwhile, or never came. Each rank is a process. Prints TAP. */
#include "blink.h"
#include "quick.h"
#include "tap.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The last rank is the one that is stopped. STAYS_MS: of a hub that some rank has not left, HUB_STAYS. */
enum { RANKS = 4, STAYS_MS = 10000, SPARE_MS = 5000, HEAP_MOST = 1 << 16 };

struct use {
	int threads, files, maps;
	long heap;
};

struct shared {
	pthread_barrier_t all, three;
	blinkUniqueId_t id;
	atomic_int ready, stopped;
	struct use before[RANKS], after[RANKS], at_end[RANKS];
	long late_ms[RANKS];
	char text[RANKS][400];
};

static struct shared *shared;
static int me, n_times = 100;	/* fewer in the quick check */

static void
nap(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static long
now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what a process has ---- */

static int
entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static int
lines(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = 0, c;
	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static struct use
use_now(void)
{
	malloc_trim(0);
	return (struct use){ entries("/proc/self/task"), entries("/proc/self/fd"), lines("/proc/self/maps"),
		(long)mallinfo2().uordblks };
}

/* Mappings: those of malloc and of a sanitizer come and go, some; a leak is one of each communicator made. */
static bool
is_back(const struct use *now, const struct use *before)
{
	return now->threads <= before->threads && now->files <= before->files
	    && now->maps <= before->maps + n_times / 3 && now->heap <= before->heap + HEAP_MOST;
}

/* What it has once that is no more than before, or after that time. */
static struct use
use_within(const struct use *before, int ms)
{
	long until = now_ms() + ms;
	struct use now = use_now();
	for (; !is_back(&now, before) && now_ms() < until; now = use_now())
		nap(20);
	return now;
}

/* ---- communicators ---- */

static void
must(blinkResult_t code, const char *what, const blinkError_t *err)
{
	if (code == blinkSuccess)
		return;
	snprintf(shared->text[me], sizeof shared->text[me], "%s: code %d: %.300s", what, (int)code, err->text);
	_exit(1);
}

/* Of the first n processes, which all call it. */
static blinkComm_t
init(int n)
{
	blinkError_t err = { "" };
	blinkComm_t comm = NULL;
	pthread_barrier_t *b = n == RANKS ? &shared->all : &shared->three;
	if (me == 0)
		must(blinkGetUniqueId(&shared->id, &err), "id", &err);
	pthread_barrier_wait(b);
	must(blinkCommInitRank(&comm, n, &shared->id, me, NULL, &err), "init", &err);
	return comm;
}

static blinkComm_t
split(blinkComm_t comm, int color)
{
	blinkError_t err = { "" };
	blinkComm_t out = NULL;
	must(blinkCommSplit(comm, color, me, &out, NULL, &err), "split", &err);
	return out;
}

/* The communicator ends. */
static blinkComm_t
shrink(blinkComm_t comm, int excluded, blinkShrink_t how)
{
	blinkError_t err = { "" };
	blinkComm_t out = NULL;
	must(blinkCommShrink(comm, &excluded, excluded >= 0, how, &out, NULL, &err), "shrink", &err);
	blinkCommDestroy(comm);
	return out;
}

/* Three and a new one. */
static void
grow(blinkComm_t three)
{
	blinkError_t err = { "" };
	blinkComm_t grown = NULL;
	if (me == 0)
		must(blinkGetUniqueId(&shared->id, &err), "id", &err);
	pthread_barrier_wait(&shared->all);
	must(three ? blinkCommGrow(three, RANKS, me == 0 ? &shared->id : NULL, &grown, NULL, &err)
	    : blinkCommInitRank(&grown, RANKS, &shared->id, me, NULL, &err), "grow", &err);
	pthread_barrier_wait(&shared->all);
	blinkCommDestroy(grown);
}

static void
shrink_in_a_row(blinkComm_t comm, int times)
{
	for (int i = 0; i < times; i++)
		comm = shrink(comm, -1, blinkShrinkDefault);
	blinkCommDestroy(comm);
}

static void
all_kinds(blinkComm_t world, blinkComm_t three, int times)
{
	for (int i = 0; i < times; i++)
		blinkCommDestroy(init(RANKS));
	for (int i = 0; i < times; i++)
		blinkCommDestroy(split(world, i % 2 ? 0 : me % 2));
	for (int i = 0; i < times; i++)
		grow(three);
	shrink_in_a_row(split(world, 0), times);
}

/* ---- a process ---- */

/* The last of four never comes. */
static void
miss_one(void)
{
	const blinkConfig_t config = { .timeoutMs = 500 };
	blinkError_t err = { "" };
	blinkComm_t comm = NULL;
	if (me == 0)
		must(blinkGetUniqueId(&shared->id, &err), "id", &err);
	pthread_barrier_wait(&shared->three);
	if (blinkCommInitRank(&comm, RANKS, &shared->id, me, &config, &err) != blinkTimeout) {
		snprintf(shared->text[me], sizeof shared->text[me], "one that never came: %.300s", err.text);
		_exit(1);
	}
}

static void
be_rank(void)
{
	alarm(200);
	setenv("BLINK_SOCKET_IFNAME", "lo", 1);
	blinkComm_t world = init(RANKS), three = split(world, me == RANKS - 1 ? -1 : 0);
	all_kinds(world, three, 2);
	pthread_barrier_wait(&shared->all);
	nap(100);
	shared->before[me] = use_now();
	all_kinds(world, three, n_times);
	shared->after[me] = use_within(&shared->before[me], SPARE_MS);
	blinkComm_t other = split(world, 0);
	pthread_barrier_wait(&shared->all);
	shared->ready++;
	if (me == RANKS - 1) {
		for (;;)
			nap(1000);
	}
	while (!shared->stopped)
		nap(5);
	for (int i = 0; i < n_times; i++)
		blinkCommDestroy(split(three, 0));
	shrink_in_a_row(shrink(other, RANKS - 1, blinkShrinkAbort), n_times);
	miss_one();
	blinkCommDestroy(three);
	long from = now_ms();
	blinkCommDestroy(world);
	/* Two communicators less than before; nothing is counted that these have. */
	shared->at_end[me] = use_within(&shared->before[me], STAYS_MS + SPARE_MS);
	while (entries("/proc/self/task") > 3 && now_ms() < from + STAYS_MS + SPARE_MS)
		nap(20);
	shared->at_end[me].threads = entries("/proc/self/task") - 2;
	shared->late_ms[me] = now_ms() - from;
	_exit(0);
}

/* ---- */

static void
new_barrier(pthread_barrier_t *b, unsigned n)
{
	pthread_barrierattr_t shares;
	pthread_barrierattr_init(&shares);
	pthread_barrierattr_setpshared(&shares, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(b, &shares, n);
}

static void
compare(int rank, const char *name, const struct use *now)
{
	const struct use *before = &shared->before[rank];
	check(is_back(now, before), name, "rank %d: %d threads, before %d; %d descriptors, %d; %d mappings, %d; %ld "
	    "bytes, %ld", rank, now->threads, before->threads, now->files, before->files, now->maps, before->maps,
	    now->heap, before->heap);
}

int
main(void)
{
	pid_t pid[RANKS];
	int status = 0;
	n_times = quick_check() ? 30 : n_times;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	new_barrier(&shared->all, RANKS);
	new_barrier(&shared->three, RANKS - 1);
	for (me = 0; me < RANKS; me++) {
		pid[me] = fork();
		if (pid[me] == 0)
			be_rank();
	}
	while (shared->ready < RANKS && waitpid(-1, &status, WNOHANG) == 0)
		nap(5);
	kill(pid[RANKS - 1], SIGSTOP);
	shared->stopped = 1;
	for (int r = 0; r < RANKS - 1; r++)
		waitpid(pid[r], &status, 0);
	kill(pid[RANKS - 1], SIGKILL);
	waitpid(pid[RANKS - 1], &status, 0);
	for (int r = 0; r < RANKS; r++)
		check(!*shared->text[r], "communicators are made and end", "rank %d: %s", r, shared->text[r]);
	for (int r = 0; r < RANKS; r++)
		compare(r, "many of each kind leave nothing", &shared->after[r]);
	for (int r = 0; r < RANKS - 1; r++) {
		compare(r, "a rank that is stopped, and one that never came, leave nothing", &shared->at_end[r]);
		check(shared->at_end[r].threads == 1, "no thread is left", "rank %d: %d after %ld ms", r,
		    shared->at_end[r].threads, shared->late_ms[r]);
	}
	return end_tests();
}
