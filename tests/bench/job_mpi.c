/* The collectives of tests/bench/job.c by MPI: prints the collective, bytes, and us of a call until all have it. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, N_SIZES = 9 };

static const char *const names[] = { "allreduce", "allgather", "broadcast" };
static const size_t sizes[N_SIZES] = { 8, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20, 128 << 20,
	256 << 20 };

static int
repeats(size_t bytes)
{
	size_t n = ((size_t)16 << 20) / (bytes + (64 << 10));
	return n < 1 ? 1 : n > 200 ? 200 : (int)n;
}

static void
call(int coll, int n, const char *send, char *recv, size_t bytes)
{
	int part = (int)(bytes / (size_t)n);
	if (coll == 0)
		MPI_Allreduce(send, recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	else if (coll == 1)
		MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, recv, part, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Bcast(recv, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int
ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static double
measure(int coll, int n, const char *send, char *recv, size_t bytes)
{
	double rounds[ROUNDS];
	int k = repeats(bytes);
	for (int round = -1; round < ROUNDS; round++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double began = MPI_Wtime(), ended, first, last;
		for (int i = 0; i < k; i++)
			call(coll, n, send, recv, bytes);
		ended = MPI_Wtime();		/* one clock: all are on one machine */
		MPI_Allreduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&ended, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		if (round >= 0)
			rounds[round] = (last - first) * 1e6 / k;
	}
	qsort(rounds, ROUNDS, sizeof *rounds, ascending);
	return rounds[ROUNDS / 2];
}

int
main(int argc, char **argv)
{
	int rank, n;
	size_t largest = argc > 1 ? (size_t)atol(argv[1]) : sizes[N_SIZES - 1];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	char *send = malloc(largest), *recv = malloc(largest);
	if (!send || !recv)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(send, 1, largest);
	memset(recv, 1, largest);
	for (int c = 0; c < 3; c++) {
		for (int i = 0; i < N_SIZES && sizes[i] <= largest; i++) {
			double us = measure(c, n, send, recv, sizes[i]);
			if (rank == 0) {
				printf("%s %zu %.3f\n", names[c], sizes[i], us);
				fflush(stdout);
			}
		}
	}
	free(send);
	free(recv);
	MPI_Finalize();
	return 0;
}
