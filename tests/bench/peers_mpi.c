/* The calls of tests/bench/peers.c by MPI: prints the collective, bytes, and us of a call until all have it.
 *
 *	peers_mpi SMALLEST LARGEST [COLLECTIVE [ROUNDS [CALLS]]]
 *
 * CALLS: of a round, at most. */
#include "peers.h"

#include <mpi.h>

#include <stdio.h>

enum { MOST_RANKS = 1024 };

static void
pingpong(int rank, char *send, char *recv, int bytes)
{
	if (rank == 0) {
		MPI_Send(send, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(recv, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(recv, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(send, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void
call(int coll, int rank, int n, char *send, char *recv, int bytes)
{
	int part = bytes / n, counts[MOST_RANKS], displs[MOST_RANKS];
	for (int r = 0; r < n; r++) {
		counts[r] = part;
		displs[r] = r * part;
	}
	switch (coll) {
	case ALLREDUCE:
		MPI_Allreduce(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALLGATHER:
		MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, recv, part, MPI_BYTE, MPI_COMM_WORLD);
		break;
	case BROADCAST:
		MPI_Bcast(recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
		break;
	case REDUCESCATTER:
		MPI_Reduce_scatter_block(send, recv, part / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALLTOALL:
		MPI_Alltoall(send, part, MPI_BYTE, recv, part, MPI_BYTE, MPI_COMM_WORLD);
		break;
	case ALLTOALLV:
		MPI_Alltoallv(send, counts, displs, MPI_BYTE, recv, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
		break;
	case GATHER:
		MPI_Gather(send, part, MPI_BYTE, recv, part, MPI_BYTE, 0, MPI_COMM_WORLD);
		break;
	case SCATTER:
		MPI_Scatter(send, part, MPI_BYTE, recv, part, MPI_BYTE, 0, MPI_COMM_WORLD);
		break;
	default:
		pingpong(rank, send, recv, bytes);
	}
}

static double
measure(int coll, int rank, int n, char *send, char *recv, size_t bytes, int n_rounds, int most)
{
	double rounds[ROUNDS];
	int k = repeats(bytes) < most ? repeats(bytes) : most;
	for (int round = -1; round < n_rounds; round++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double began = MPI_Wtime(), ended, first, last;
		for (int i = 0; i < k; i++)
			call(coll, rank, n, send, recv, (int)bytes);
		ended = MPI_Wtime();		/* one clock: all are on one machine */
		MPI_Allreduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&ended, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		if (round >= 0)
			rounds[round] = (last - first) * 1e6 / k;
	}
	return median(rounds, n_rounds);
}

int
main(int argc, char **argv)
{
	int rank, n, only = argc > 3 ? coll_of(argv[3]) : -1, n_rounds = argc > 4 ? atoi(argv[4]) : ROUNDS,
	    most = argc > 5 ? atoi(argv[5]) : 500;
	size_t smallest = argc > 1 ? (size_t)atol(argv[1]) : 0, largest = argc > 2 ? (size_t)atol(argv[2]) : 1 << 20;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	char *send = malloc(largest), *recv = malloc(largest);
	if (!send || !recv || n_rounds < 1 || n_rounds > ROUNDS || most < 1 || n > MOST_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(send, 1, largest);
	memset(recv, 1, largest);
	for (int i = 0; i < N_SIZES; i++) {
		for (int c = 0; c < N_COLLS; c++) {
			if (sizes[i] < smallest || sizes[i] > largest || (only >= 0 && c != only)
			    || !has_blocks(c, sizes[i], n))
				continue;
			double us = measure(c, rank, n, send, recv, sizes[i], n_rounds, most);
			if (rank == 0) {
				printf("%s %zu %.3f\n", coll_names[c], sizes[i], us);
				fflush(stdout);
			}
		}
	}
	free(send);
	free(recv);
	MPI_Finalize();
	return 0;
}
