/* A job of processes: each has numbers, and all get their sums.
 *
 *	cc job.c $(pkg-config --cflags --libs blink) -o job
 *	./job 4
 *
 * The processes are forked here. Where a launcher starts them, on one server
 * or several, the id is handed to all: see launched.c and mpi.c. */
#include <blink.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 20, MOST_RANKS = 64 };

static void
check(blinkResult_t result, const char *text)
{
	if (result == blinkSuccess)
		return;
	fprintf(stderr, "job: %s: %s\n", blinkGetErrorString(result), text);
	exit(result);
}

/* Read after the call: arguments are evaluated in any order. */
static void
check_call(blinkResult_t result, blinkComm_t comm)
{
	check(result, blinkCommGetError(comm));
}

/* What one rank does. */
static int
run_rank(int rank, int n, const blinkUniqueId_t *id)
{
	blinkComm_t comm;
	blinkError_t error;
	float *numbers = (float *)malloc(COUNT * sizeof *numbers);
	float want = (float)(n * (n + 1) / 2);
	int wrong = 0;
	if (!numbers)
		check(blinkOutOfMemory, "");
	for (int i = 0; i < COUNT; i++)
		numbers[i] = (float)(rank + 1);

	check(blinkCommInitRank(&comm, n, id, rank, NULL, &error), error.text);
	/* In place. The call returns at once; the wait ends when the sums are
	 * there, or says which rank is at fault. */
	check_call(blinkAllReduce(numbers, numbers, COUNT, blinkFloat32,
	    blinkSum, comm, NULL), comm);
	check_call(blinkCommWait(comm, 0), comm);
	check(blinkCommDestroy(comm), "destroy");

	for (int i = 0; i < COUNT; i++)
		wrong += numbers[i] != want;
	if (rank == 0 || wrong)
		printf("rank %d of %d: sum %g, %d wrong\n", rank, n, want,
		    wrong);
	free(numbers);
	return wrong ? blinkUnverified : 0;
}

int
main(int argc, char **argv)
{
	blinkUniqueId_t id;
	blinkError_t error;
	int n = argc > 1 ? atoi(argv[1]) : 4, failed = 0, status;
	if (n < 1 || n > MOST_RANKS) {
		fprintf(stderr, "usage: job [RANKS]\n");
		return blinkInvalidArgument;
	}

	/* Rank 0 is this process: where the id is made, the ranks meet, and
	 * that process must stay. */
	pid_t child[MOST_RANKS];
	int to[MOST_RANKS][2];
	for (int r = 1; r < n; r++) {
		if (pipe(to[r]) != 0 || (child[r] = fork()) < 0) {
			perror("job");
			return 1;
		}
		if (child[r] == 0) {
			close(to[r][1]);
			ssize_t got = read(to[r][0], &id, sizeof id);
			if (got != (ssize_t)sizeof id)
				return 1;
			return run_rank(r, n, &id);
		}
	}
	check(blinkGetUniqueId(&id, &error), error.text);
	for (int r = 1; r < n; r++)
		if (write(to[r][1], &id, sizeof id) != (ssize_t)sizeof id)
			perror("job");
	failed = run_rank(0, n, &id);
	for (int r = 1; r < n; r++)
		if (waitpid(child[r], &status, 0) != child[r] || status != 0)
			failed = 1;
	return failed;
}
