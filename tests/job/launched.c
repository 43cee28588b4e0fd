/* One rank of a job that a script starts, on servers of its choice: ranks meet by a file.
 *
 *	launched RANK N DIRECTORY check|rate|split|cut [BYTES [TIMES [COLLECTIVE]]]
 *	launched RANK N DIRECTORY calls BYTES,BYTES... TIMES COLLECTIVE
 *
 * Rank 0 writes the unique id to DIRECTORY/id. check, rate, split: an allreduce of BYTES, in which every element is
 * checked; rate: TIMES more, or TIMES calls of COLLECTIVE (allgather, broadcast, reducescatter, alltoall; BYTES as
 * blink-schedule(5) counts M), of which rank 0 prints the least time until the last rank was done, "0.123 s"; split:
 * one more on a split that has all ranks. cut: one after the other until one fails, for 60 s at most. Each rank makes
 * DIRECTORY/flows.RANK after the first, and prints when one failed, in ms since DIRECTORY/cut appeared, and why: "812
 * ms: 12: rank 3 does not answer". calls: TIMES calls of each size, or as many as go into some seconds, out of place;
 * all ranks make each call at the same time, and each rank prints "BYTES BEGIN END" of every one, in ns of the
 * machine's clock. */
#include "meet.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 120, CALLS_LEAST = 3 };

/* Of the calls of one size, after which there are no more than CALLS_LEAST. */
#define CALLS_SECONDS 0.3

/* Calls that come first, as memory of each place for short ones is taken when it is needed; fewer of those that take
 * long. */
enum { CALLS_FIRST = 18 };

#define FIRST_SECONDS 0.1
#define SOON_SECONDS 1e-3
#define LOOK_SECONDS 200e-6

/* Sums of whole numbers that float holds. */
static void
reduce(blinkComm_t comm, int rank, int n, float *data, size_t count)
{
	size_t wrong = 0;
	for (size_t i = 0; i < count; i++)
		data[i] = (float)((i % 97) + (size_t)rank);
	need_call(blinkAllReduce(data, data, count, blinkFloat32, blinkSum, comm, NULL), "allreduce", comm);
	need_call(blinkCommWait(comm, 0), "wait", comm);
	for (size_t i = 0; i < count; i++)
		wrong += data[i] != (float)(i % 97) * (float)n + (float)(n * (n - 1) / 2);
	if (wrong)
		need(blinkUnverified, "allreduce", "a wrong element");
}

static blinkResult_t
call(const char *name, blinkComm_t comm, int rank, int n, const float *in, float *out, size_t count)
{
	size_t block = count / (size_t)n, own = block * (size_t)rank;
	if (strcmp(name, "allgather") == 0)
		return blinkAllGather(in + own, out, block, blinkFloat32, comm, NULL);
	if (strcmp(name, "broadcast") == 0)
		return blinkBroadcast(in, out, count, blinkFloat32, 0, comm, NULL);
	if (strcmp(name, "reduce") == 0)
		return blinkReduce(in, out, count, blinkFloat32, blinkMax, 0, comm, NULL);
	if (strcmp(name, "reducescatter") == 0)
		return blinkReduceScatter(in, out + own, block, blinkFloat32, blinkMax, comm, NULL);
	if (strcmp(name, "gather") == 0)
		return blinkGather(in + own, out, block, blinkFloat32, 0, comm, NULL);
	if (strcmp(name, "scatter") == 0)
		return blinkScatter(in, out + own, block, blinkFloat32, 0, comm, NULL);
	if (strcmp(name, "alltoall") == 0)
		return blinkAlltoAll(in, out, block, blinkFloat32, comm, NULL);
	if (strcmp(name, "allreduce") == 0)
		return blinkAllReduce(in, out, count, blinkFloat32, blinkMax, comm, NULL);
	return blinkInvalidArgument;
}

static void
wait_for_all(blinkComm_t comm, float *one)
{
	need_call(blinkAllReduce(one, one, 1, blinkFloat32, blinkMax, comm, NULL), "allreduce", comm);
	need_call(blinkCommWait(comm, 0), "wait", comm);
}

static void
time_calls(const char *name, blinkComm_t comm, int rank, int n, float *data, size_t count, int times)
{
	double least = 1e9;
	float one = 1, *out = strcmp(name, "alltoall") == 0 ? data + count : data;
	for (int i = 0; i < times; i++) {
		wait_for_all(comm, &one);
		double start = seconds(CLOCK_MONOTONIC);
		need_call(call(name, comm, rank, n, data, out, count), name, comm);
		need_call(blinkCommWait(comm, 0), "wait", comm);
		if (strcmp(name, "allreduce") != 0)
			wait_for_all(comm, &one);
		double took = seconds(CLOCK_MONOTONIC) - start;
		least = took < least ? took : least;
	}
	if (rank == 0)
		printf("%.4f s\n", least);
}

static void
sleep_until(double at)
{
	struct timespec t = { (time_t)at, (long)((at - (double)(time_t)at) * 1e9) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* The same moment for all ranks, soon. They wake up before, in their order, as each next timer is a ns later, and look
 * at the clock: to wake up takes long. Of those that share a processor the first looks, and the others wait for it. */
static void
begin_together(blinkComm_t comm, int rank)
{
	double at = seconds(CLOCK_MONOTONIC) + SOON_SECONDS;
	need_call(blinkAllReduce(&at, &at, 1, blinkFloat64, blinkMax, comm, NULL), "allreduce", comm);
	need_call(blinkCommWait(comm, 0), "wait", comm);
	sleep_until(at - LOOK_SECONDS + rank * 1e-9);
	while (seconds(CLOCK_MONOTONIC) < at)
		;
}

/* Ranks that share memory have processors in turn, so that the kernel does not move them while they are timed. Those
 * of a network have threads beside this one. */
static void
take_processor(int rank, int processors, bool alone)
{
	cpu_set_t own;
	CPU_ZERO(&own);
	CPU_SET(rank % processors, &own);
	if (alone || !getenv("BLINK_HOST_ID"))
		sched_setaffinity(0, sizeof own, &own);
	prctl(PR_SET_TIMERSLACK, 1);
}

/* A number that all ranks of this machine count up. */
static uint32_t *
shared_number(const char *directory)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/ended", directory);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	uint32_t *number = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, sizeof *number) == 0)
		number = mmap(NULL, sizeof *number, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (number == MAP_FAILED)
		need(blinkSystemError, "ended", path);
	close(fd);
	return number;
}

/* Who has ended its call sleeps until all have, so that it takes no turns from those that have not; without a timer,
 * which takes a virtual machine some us to set. */
static void
rest(uint32_t *ended, uint32_t all)
{
	uint32_t now = __atomic_add_fetch(ended, 1, __ATOMIC_SEQ_CST);
	if (now == all)
		syscall(SYS_futex, ended, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	for (; now != all; now = __atomic_load_n(ended, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, ended, FUTEX_WAIT, now, NULL, NULL, 0);
}

/* sizes: bytes, separated by commas. Calls that take long are fewer; all ranks know of the longest. */
static void
print_calls(const char *directory, const char *name, blinkComm_t comm, int rank, int n, char *sizes, int times)
{
	uint32_t *ended = shared_number(directory), calls = 0;
	int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
	bool alone = processors >= n;
	take_processor(rank, processors, alone);
	for (char *size = strtok(sizes, ","); size; size = strtok(NULL, ",")) {
		size_t count = strtoull(size, NULL, 10) / sizeof(float);
		float *data = calloc(2 * count + 1, sizeof *data), spent = 0;
		if (!data)
			need(blinkOutOfMemory, "memory", "");
		memset(data, 0, 2 * count * sizeof *data);
		for (int i = -CALLS_FIRST; i < times && (i < CALLS_LEAST || spent < CALLS_SECONDS); i++) {
			if (spent > FIRST_SECONDS && i < -CALLS_LEAST)
				continue;
			begin_together(comm, rank);
			double start = seconds(CLOCK_MONOTONIC);
			need_call(call(name, comm, rank, n, data + count, data, count), name, comm);
			need_call(blinkCommWait(comm, 0), "wait", comm);
			double end = seconds(CLOCK_MONOTONIC), took = end - start;
			if (!alone)
				rest(ended, ++calls * (uint32_t)n);
			if (i >= 0)
				printf("%s %.0f %.0f\n", size, start * 1e9, end * 1e9);
			spent = i == 0 ? 0 : spent + (float)took;
			wait_for_all(comm, &spent);
		}
		free(data);
	}
}

static void
split(blinkComm_t comm, int rank, int n, float *data, size_t count)
{
	blinkComm_t same;
	blinkError_t error = { "" };
	need(blinkCommSplit(comm, 0, rank, &same, NULL, &error), "split", error.text);
	reduce(same, rank, n, data, count);
	blinkCommDestroy(same);
}

/* A file flows.RANK: calls are under way. */
static void
tell(const char *directory, int rank)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/flows.%d", directory, rank);
	FILE *f = fopen(path, "w");
	if (!f || fclose(f) != 0)
		need(blinkSystemError, "flows", path);
}

static int
until_cut(blinkComm_t comm, int rank, const char *directory, float *data, size_t count)
{
	char path[4096];
	struct stat cut;
	blinkResult_t result = blinkSuccess;
	double until = seconds(CLOCK_MONOTONIC) + 60;
	for (bool first = true; result == blinkSuccess && seconds(CLOCK_MONOTONIC) < until; first = false) {
		result = blinkAllReduce(data, data, count, blinkFloat32, blinkMax, comm, NULL);
		if (result == blinkSuccess)
			result = blinkCommWait(comm, 0);
		if (first && result == blinkSuccess)
			tell(directory, rank);
	}
	snprintf(path, sizeof path, "%s/cut", directory);
	if (result == blinkSuccess || stat(path, &cut) != 0) {
		printf("%d: %s, without a cut\n", (int)result, blinkCommGetError(comm));
		return 1;
	}
	double at = (double)cut.st_mtim.tv_sec + 1e-9 * (double)cut.st_mtim.tv_nsec;
	printf("%.0f ms: %d: %s\n", (seconds(CLOCK_REALTIME) - at) * 1e3, (int)result, blinkCommGetError(comm));
	return 0;
}

int
main(int argc, char **argv)
{
	blinkUniqueId_t id;
	blinkComm_t comm;
	blinkError_t error = { "" };
	if (argc < 5) {
		fprintf(stderr, "usage: launched RANK N DIRECTORY check|rate|split|cut|calls [BYTES [TIMES "
		    "[COLLECTIVE]]]\n");
		return 2;
	}
	int rank = atoi(argv[1]), n = atoi(argv[2]), failed = 0;
	size_t count = (argc > 5 ? strtoull(argv[5], NULL, 10) : 1 << 20) / sizeof(float);
	int times = argc > 6 ? atoi(argv[6]) : 1;
	float *data = malloc((count ? 2 * count : 1) * sizeof *data);	/* alltoall has two buffers */
	alarm(LIMIT_SECONDS);
	if (!data)
		need(blinkOutOfMemory, "memory", "");
	meet(rank, argv[3], &id);
	need(blinkCommInitRank(&comm, n, &id, rank, NULL, &error), "init", error.text);
	if (strcmp(argv[4], "cut") == 0) {
		failed = until_cut(comm, rank, argv[3], data, count);
	} else if (strcmp(argv[4], "calls") == 0 && argc > 7) {
		print_calls(argv[3], argv[7], comm, rank, n, argv[5], times);
	} else {
		reduce(comm, rank, n, data, count);
		if (strcmp(argv[4], "rate") == 0)
			time_calls(argc > 7 ? argv[7] : "allreduce", comm, rank, n, data, count, times);
		if (strcmp(argv[4], "split") == 0)
			split(comm, rank, n, data, count);
	}
	blinkCommDestroy(comm);
	free(data);
	return failed;
}
