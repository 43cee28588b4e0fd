/* Whose caller waits at once wakes no worker, although peers depend on what is left of its call. Two ranks that are
 * processes and share a processor; prints TAP. */
#include "blink.h"
#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2, CALLS = 400, COUNT = 256, LIMIT_S = 60 };

struct shared {
	blinkUniqueId_t id;
	atomic_int state;		/* 1: the id is there; 2: there is none */
	atomic_int done[RANKS], woken[RANKS];
};

static struct shared *shared;
static atomic_int signals;

/* In place of the C library's. */
int
pthread_cond_signal(pthread_cond_t *cond)
{
	signals++;
	return pthread_cond_broadcast(cond);
}

static bool
call_and_wait(blinkComm_t comm, float *data)
{
	return blinkAllReduce(data, data, COUNT, blinkFloat32, blinkMax, comm, NULL) == blinkSuccess
	    && blinkCommWait(comm, 0) == blinkSuccess;
}

static void
be_rank(int rank, int processor)
{
	static float data[COUNT];
	blinkError_t err = { "" };
	blinkComm_t comm = NULL;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	sched_setaffinity(0, sizeof one, &one);
	setenv("BLINK_SMALL", "0", 1);
	alarm(LIMIT_S);
	if (rank == 0)
		shared->state = blinkGetUniqueId(&shared->id, &err) == blinkSuccess ? 1 : 2;
	while (!shared->state)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (shared->state != 1 || blinkCommInitRank(&comm, RANKS, &shared->id, rank, NULL, &err) != blinkSuccess)
		_exit(1);
	call_and_wait(comm, data);
	signals = 0;
	for (int i = 0; i < CALLS; i++)
		shared->done[rank] += call_and_wait(comm, data);
	shared->woken[rank] = signals;
	blinkCommDestroy(comm);
	_exit(0);
}

static int
first_processor(void)
{
	cpu_set_t set;
	int cpu = 0;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &set))
			cpu++;
	return cpu;
}

int
main(void)
{
	int status = 0, processor = first_processor();
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	fflush(stdout);
	for (int r = 0; r < RANKS; r++)
		if (fork() == 0)
			be_rank(r, processor);
	for (int r = 0; r < RANKS; r++)
		wait(&status);
	ok(shared->done[0] == CALLS && shared->done[1] == CALLS, "all calls are done");
	int woken = shared->woken[0] + shared->woken[1];
	printf("# %d calls of %d have woken a worker\n", woken, RANKS * CALLS);
	ok(woken < CALLS / 4, "hardly any of them wakes a worker");
	return end_tests();
}
