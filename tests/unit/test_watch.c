/* The system refuses to watch a socket, once or from then on: the rank fails or tries again, and its communicator ends.
 * Two ranks that are processes, each on a server of its own; each call of epoll_ctl fails in its turn, in the quick
 * test every fifth. Prints TAP. test_watch SEED N: the full test has N above 15. */
#include "blink.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2, POINTS = 24, COUNT = 1 << 18, LIMIT_S = 60 };

static atomic_int calls;
static int fails_at;			/* 0: never */
static bool fails_on;			/* from then on */

/* In place of the C library's. */
int
epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int n = atomic_fetch_add(&calls, 1) + 1;
	if (fails_at && (n == fails_at || (fails_on && n > fails_at))) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

struct shared {
	blinkUniqueId_t id;
	atomic_int state;		/* 1: the id is there; 2: there is none */
	int calls[RANKS];
};

static struct shared *shared;

static void
be_rank(int rank)
{
	static float data[COUNT];
	blinkError_t err = { "" };
	blinkComm_t comm = NULL;
	setenv("BLINK_HOST_ID", rank ? "b" : "a", 1);
	setenv("BLINK_SOCKET_IFNAME", "lo", 1);
	setenv("BLINK_TIMEOUT", "2", 1);
	alarm(LIMIT_S);
	if (rank == 0)
		shared->state = blinkGetUniqueId(&shared->id, &err) == blinkSuccess ? 1 : 2;
	while (!shared->state)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	int code = shared->state == 1 ? blinkCommInitRank(&comm, RANKS, &shared->id, rank, NULL, &err)
	    : blinkSystemError;
	for (int i = 0; i < 3 && code == blinkSuccess; i++) {
		code = blinkAllReduce(data, data, COUNT, blinkFloat32, blinkSum, comm, NULL);
		if (code == blinkSuccess)
			code = blinkCommWait(comm, 0);
	}
	blinkCommDestroy(comm);
	shared->calls[rank] = calls;
	_exit(code != blinkSuccess);
}

/* Ranks end by themselves, whatever the result. *done: how many of them without a failure. */
static bool
play(int victim, int at, bool on, int *done)
{
	pid_t pid[RANKS];
	bool ended = true;
	memset(shared, 0, sizeof *shared);
	for (int r = 0; r < RANKS; r++) {
		fails_at = r == victim ? at : 0;
		fails_on = on;
		pid[r] = fork();
		if (pid[r] == 0)
			be_rank(r);
	}
	*done = 0;
	for (int r = 0; r < RANKS; r++) {
		int status = 0;
		waitpid(pid[r], &status, 0);
		ended &= WIFEXITED(status);
		*done += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return ended;
}

int
main(int argc, char **argv)
{
	int done, step = argc > 2 && atoi(argv[2]) > 15 ? 1 : 5;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	bool good = play(0, 0, false, &done) && done == RANKS;
	check(good, "without a failure", "%d of %d ranks", done, RANKS);
	int last[RANKS] = { shared->calls[0], shared->calls[1] };
	for (int victim = 0; victim < RANKS; victim++) {
		for (int on = 0; on < 2; on++) {
			int failed = 0, hung = 0;
			for (int at = 1; at <= last[victim] && at <= POINTS; at += step) {
				hung += !play(victim, at, on, &done);
				failed += done < RANKS;
			}
			check(hung == 0 && failed > 0, on ? "all calls from one on fail" : "each call fails once",
			    "rank %d: %d jobs did not end, %d failed", victim, hung, failed);
			printf("# rank %d: %d calls, %d jobs failed\n", victim, last[victim], failed);
		}
	}
	return end_tests();
}
